//! Files beside a recording: what each kind's blocks become in a batch, and whose they are.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::file::beside::{OpenError, Reader};

use super::decoder::Decoder;
use super::notice;
use super::pace::Due;
use super::process::{PATIENCE, Sink};
use super::stacks::{self, Stacks};
use super::{offcpu, readings};
use activity::Batch;
use activity::feed::Gone;

/// A kind of file that is known here.
struct Kind {
    name: &'static str,
    version: u32,
    /// Its decoder, for the number of the file in this timeline and the process's id.
    decoder: fn(u32, u32) -> Box<dyn Decoder>,
}

/// The kinds. All others are left alone.
const KINDS: [Kind; 3] = [
    Kind {
        name: stacks::KIND,
        version: stacks::VERSION,
        decoder: |series, pid| Box::new(Stacks::new(series, pid)),
    },
    Kind {
        name: readings::KIND,
        version: readings::VERSION,
        decoder: |_, _| Box::new(readings::Readings),
    },
    Kind {
        name: offcpu::KIND,
        version: offcpu::VERSION,
        decoder: |_, _| Box::new(offcpu::OffCpuFile),
    },
];

/// Whether a file's name ends in a kind that is known here.
pub(super) fn is_known(path: &Path) -> bool {
    kind_of(path).is_some()
}

fn kind_of(path: &Path) -> Option<&'static Kind> {
    let end = path.extension()?.to_str()?;
    KINDS.iter().find(|kind| kind.name == end)
}

/// The process that a file's name is about. The name alone says whether a file may belong to a recording that was opened
/// by itself.
pub(super) fn pid_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.split_once('-')?.0.parse().ok()
}

/// A file beside a recording, followed.
#[derive(Debug)]
pub(super) struct Beside {
    reader: Reader,
    decoder: Box<dyn Decoder>,
    /// The process of the timeline that it belongs to.
    pub(super) process: u32,
    unreadable: u64,
    over: bool,
    /// Whether other machines may write to where it lies.
    is_shared: bool,
    /// When it is looked at next.
    pub(super) due: Due,
    /// Whether its writer lived at the last look.
    pub(super) was_alive: bool,
    /// When it was seen to grow, and up to where it was read.
    heard: Instant,
    at: u64,
}

/// Why a file is not followed.
pub(super) enum NotFollowed {
    /// It cannot be read (yet), for this reason.
    Unreadable(String),
    /// It says that it is something else than its name does.
    OtherKind,
}

impl Beside {
    /// Opens a file of a known kind. `number` is what it is to have in this timeline.
    pub(super) fn open(path: &Path, number: u32, is_shared: bool) -> Result<Beside, NotFollowed> {
        let mut reader = Reader::open(path).map_err(|error| {
            NotFollowed::Unreadable(match error {
                OpenError::NoHeader(_) => "its header is missing".to_owned(),
                OpenError::Damaged(_) => "its header is damaged".to_owned(),
                OpenError::Io(_, error) => error.to_string(),
            })
        })?;
        let header = reader.header().clone();
        let kind = kind_of(path)
            .filter(|kind| kind.name == header.kind)
            .ok_or(NotFollowed::OtherKind)?;
        if header.version != kind.version {
            return Err(NotFollowed::Unreadable(format!(
                "it is of format {}; this version of cuptop reads format {}",
                header.version, kind.version
            )));
        }
        reader.wait_for_blocks(is_shared);
        Ok(Beside {
            decoder: (kind.decoder)(number, header.pid),
            reader,
            process: 0,
            unreadable: 0,
            over: false,
            is_shared,
            due: Due::now(),
            was_alive: false,
            heard: Instant::now(),
            at: 0,
        })
    }

    /// Where it lies, and up to where it was read.
    pub(super) fn position(&self) -> (std::path::PathBuf, u64) {
        (self.reader.path().to_path_buf(), self.reader.position())
    }

    /// The folder that it lies in.
    pub(super) fn folder(&self) -> &Path {
        self.reader.path().parent().unwrap_or(Path::new(""))
    }

    /// The process that it is about, by the operating system's id; 0 is the whole machine.
    pub(super) fn pid(&self) -> u32 {
        self.reader.header().pid
    }

    /// When it was begun, in ns of `CLOCK_REALTIME`.
    pub(super) fn start(&self) -> i64 {
        self.reader.header().start
    }

    /// Whether more may come.
    pub(super) fn lives(&self) -> bool {
        !self.over && self.reader.writer_lives() == Some(true)
    }

    /// Looks at it: hands over what has come, and notes whether it has grown.
    pub(super) fn look(
        &mut self,
        now: Instant,
        period: Duration,
        sink: Sink<'_>,
    ) -> Result<(), Gone> {
        self.was_alive = self.lives();
        if self.is_shared && !self.over {
            self.reader.reopen();
        }
        self.read(sink)?;
        let is_stuck = self.is_shared && self.reader.rest().is_ok_and(|rest| rest > 0);
        if is_stuck && now.duration_since(self.heard) > PATIENCE {
            self.skip(sink)?;
        }
        let has_grown = self.reader.position() != self.at;
        if has_grown {
            (self.at, self.heard) = (self.reader.position(), now);
        }
        self.due.looked(now, has_grown, period);
        Ok(())
    }

    /// What has not become whole by now is damage.
    pub(super) fn skip(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.reader.wait_for_blocks(false);
        self.read(sink)?;
        self.reader.wait_for_blocks(self.is_shared);
        Ok(())
    }

    /// Hands over what has come.
    pub(super) fn read(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        if self.over {
            return Ok(());
        }
        loop {
            let mut batch = Batch {
                process: self.process,
                ..Batch::default()
            };
            let (decoder, unreadable) = (&mut self.decoder, &mut self.unreadable);
            let more = self.reader.read(&mut |payload| {
                *unreadable += u64::from(decoder.decode(payload, &mut batch).is_err());
            });
            if !batch.is_empty() {
                sink(super::Message::Batch(batch))?;
            }
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    self.over = true;
                    let path = self.reader.path().display();
                    return sink(notice(
                        true,
                        format!("{path} cannot be read any more: {error}"),
                    ));
                }
            }
        }
    }

    /// Tells what could not be read of it. Once.
    pub(super) fn conclude(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let path = self.reader.path().display();
        if let Some(damage) = self.reader.damage() {
            sink(notice(true, format!("{path}: {damage}")))?;
        }
        if self.unreadable > 0 {
            let text = format!("{path}: {} blocks of it make no sense", self.unreadable);
            sink(notice(true, text))?;
        }
        let rest = self.reader.rest().unwrap_or(0);
        if rest > 0 {
            let text = format!("{path}: its last block is not whole ({rest} bytes)");
            sink(notice(true, text))?;
        }
        Ok(())
    }
}

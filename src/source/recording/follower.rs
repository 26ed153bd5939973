//! Following the recordings of one run: every process one file, new ones picked up as they appear.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use collector::recording::{EXTENSION, OpenError, Reader, State};

use super::{map, notice};
use crate::activity::feed::{Gone, Message};
use crate::activity::{Batch, Def, Health, ProcessInfo, StreamInfo};

/// Activities in a batch, at least: a batch ends with the entries of one read.
const BATCH: usize = 4096;

/// How a process of the run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its id.
    pub pid: u32,
    /// Its recording.
    pub path: PathBuf,
    /// Whether it could be traced.
    pub traced: bool,
    /// Whether it ended in good order, as far as it has ended.
    pub ended_well: Option<bool>,
    /// Records that it received, and what became of them.
    pub health: Health,
}

/// Reads all recordings of some directories and files, as they grow.
#[derive(Debug)]
pub struct Follower {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    processes: Vec<Process>,
    /// Files that are not (yet) readable, with the reason.
    unreadable: HashMap<PathBuf, String>,
}

#[derive(Debug)]
struct Process {
    reader: Reader,
    info: ProcessInfo,
    /// Something about the process changed since it was last told.
    changed: bool,
    streams: HashMap<(u32, u32, u32), StreamInfo>,
    health: Health,
    /// Entries that nothing could be made of.
    unreadable: u64,
    over: bool,
    told_trouble: bool,
}

/// Where messages go.
type Sink<'a> = &'a mut dyn FnMut(Message) -> Result<(), Gone>;

impl Follower {
    /// Follows a recording directory. It may still be empty, but must exist.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(directory: &Path) -> io::Result<Follower> {
        Follower::open_all(&[directory.to_path_buf()])
    }

    /// Follows several directories or single recordings as one timeline.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn open_all(paths: &[PathBuf]) -> io::Result<Follower> {
        let mut follower = Follower {
            directories: Vec::new(),
            files: Vec::new(),
            seen: HashSet::new(),
            processes: Vec::new(),
            unreadable: HashMap::new(),
        };
        for path in paths {
            if path.is_dir() {
                files_of(path)?;
                follower.directories.push(path.clone());
            } else {
                std::fs::File::open(path)?;
                follower.files.push(path.clone());
            }
        }
        Ok(follower)
    }

    /// Everything that has been published since the last call. What a process or this reader has to say beside
    /// activities is left out; [`Follower::poll_into`] hands that over too.
    pub fn poll(&mut self) -> Vec<Batch> {
        collect(|sink| self.poll_into(sink))
    }

    /// The processes are over: reads the rest, and marks those that did not close their recording.
    pub fn finish(&mut self) -> Vec<Batch> {
        collect(|sink| self.finish_into(sink))
    }

    /// As [`Follower::poll`], one message at a time, so that a long recording is never in memory as a whole.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub fn poll_into(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.look_for_files();
        for (index, process) in self.processes.iter_mut().enumerate() {
            // A process that ended after this look is read to its end by the next one.
            let lives = process.over || process.reader.writer_lives() != Some(false);
            process.read(index, sink)?;
            process.conclude(lives, index, sink)?;
        }
        Ok(())
    }

    /// As [`Follower::finish`], one message at a time.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub fn finish_into(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.poll_into(sink)?;
        for (index, process) in self.processes.iter_mut().enumerate() {
            let lives = process.reader.writer_lives() == Some(true);
            process.read(index, sink)?;
            process.conclude(lives, index, sink)?;
            if !process.over {
                let pid = process.reader.identity().pid;
                sink(notice(
                    false,
                    format!("process {pid} still runs; its timeline ends here"),
                ))?;
            }
        }
        for (path, reason) in self.unreadable.drain() {
            sink(notice(true, format!("{}: {reason}", path.display())))?;
        }
        Ok(())
    }

    /// Whether any process may still write.
    #[must_use]
    pub fn any_alive(&self) -> bool {
        self.processes
            .iter()
            .any(|process| !process.over && process.reader.writer_lives() == Some(true))
    }

    /// How each process stands, in the order of their indices in batches.
    #[must_use]
    pub fn standing(&self) -> Vec<Standing> {
        self.processes
            .iter()
            .map(|process| Standing {
                pid: process.reader.identity().pid,
                path: process.reader.path().to_path_buf(),
                traced: process.reader.status().state != State::Refused,
                ended_well: process.info.ended_well,
                health: process.health,
            })
            .collect()
    }

    /// Whether any of the recordings was made by the simulator.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.processes
            .iter()
            .any(|process| process.reader.identity().simulated)
    }

    /// Picks up files that have appeared.
    pub fn look_for_files(&mut self) {
        let mut paths = self.files.clone();
        for directory in &self.directories {
            // A directory that was deleted has nothing new; what was opened before is still read.
            paths.extend(files_of(directory).unwrap_or_default());
        }
        for path in paths {
            if self.seen.contains(&path) {
                continue;
            }
            match Reader::open(&path) {
                Ok(reader) => {
                    self.unreadable.remove(&path);
                    self.seen.insert(path);
                    self.processes.push(Process::new(reader));
                }
                // A file without its header yet is looked at again.
                Err(OpenError::NotARecording(_)) => {
                    let reason = "not a recording of cuptop".to_owned();
                    self.unreadable.insert(path, reason);
                }
                Err(error) => {
                    self.unreadable.insert(path, error.to_string());
                }
            }
        }
    }
}

/// The recordings of a directory, oldest name first.
pub(super) fn files_of(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == EXTENSION) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn collect(run: impl FnOnce(Sink<'_>) -> Result<(), Gone>) -> Vec<Batch> {
    let mut batches = Vec::new();
    // This sink is never gone.
    let _ = run(&mut |message| {
        if let Message::Batch(batch) = message {
            batches.push(batch);
        }
        Ok(())
    });
    batches
}

impl Process {
    fn new(reader: Reader) -> Process {
        let info = ProcessInfo {
            pid: reader.identity().pid,
            ..ProcessInfo::default()
        };
        Process {
            reader,
            info,
            changed: true,
            streams: HashMap::new(),
            health: Health::default(),
            unreadable: 0,
            over: false,
            told_trouble: false,
        }
    }

    /// Hands over what is there.
    fn read(&mut self, index: usize, sink: Sink<'_>) -> Result<(), Gone> {
        if self.over {
            return Ok(());
        }
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        if let Err(error) = self.reader.refresh() {
            return self.fail(&error, sink);
        }
        loop {
            let mut batch = Batch {
                process: index,
                items: Vec::with_capacity(BATCH),
                ..Batch::default()
            };
            let mut notices = Vec::new();
            let (info, streams) = (&mut self.info, &mut self.streams);
            let (mut changed, mut unreadable) = (self.changed, 0);
            let more = self.reader.read(&mut |entry| match map::entry_into(
                &entry, &mut batch, info, streams,
            ) {
                map::Taken::Yes => {}
                map::Taken::Process => changed = true,
                map::Taken::Notice(is_warning, text) => notices.push((is_warning, text)),
                map::Taken::No => unreadable += 1,
            });
            self.unreadable += unreadable;
            self.changed = changed;
            let more = match more {
                Ok(more) => more,
                Err(error) => return self.fail(&error, sink),
            };
            for (is_warning, text) in notices {
                sink(notice(
                    is_warning,
                    format!("process {}: {text}", self.info.pid),
                ))?;
            }
            self.send(batch, sink)?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Sends a batch unless there is nothing in it.
    fn send(&mut self, mut batch: Batch, sink: Sink<'_>) -> Result<(), Gone> {
        if std::mem::take(&mut self.changed) {
            batch.defs.insert(0, Def::Process(self.info.clone()));
        }
        let health = self.current_health();
        if health != self.health {
            self.health = health;
            batch.health = Some(health);
        }
        if batch.items.is_empty() && batch.defs.is_empty() && batch.health.is_none() {
            return Ok(());
        }
        sink(Message::Batch(batch))
    }

    fn current_health(&self) -> Health {
        let mut health = map::health(&self.reader.status().health);
        health.lost += self.reader.lost() + self.unreadable;
        health.unknown += self.reader.unknown();
        if self.over {
            // What was open when a process was killed is not open any more.
            health.oldest_open = None;
        }
        health
    }

    /// Tells what went wrong, and whether the process is over.
    fn conclude(&mut self, lives: bool, index: usize, sink: Sink<'_>) -> Result<(), Gone> {
        if self.over {
            return Ok(());
        }
        let pid = self.info.pid;
        let status = self.reader.status();
        let trouble = status
            .trouble
            .describe()
            .map(|text| format!("process {pid}: {text}; it goes on, what is lost is counted"))
            .or_else(|| {
                let damage = self.reader.damage()?;
                Some(format!("{}: {damage}", self.reader.path().display()))
            });
        if let Some(trouble) = trouble
            && !std::mem::replace(&mut self.told_trouble, true)
        {
            sink(notice(true, trouble))?;
        }
        let ended_well = match status.state {
            State::Closed => Some(true),
            // It runs on untraced, and nobody knows how it ends.
            State::Refused => None,
            State::Running if !lives => Some(false),
            State::Running => return Ok(()),
        };
        self.over = true;
        if ended_well == Some(false) {
            let text = format!(
                "process {pid} ended without closing its recording: what happened after its last flush is missing"
            );
            sink(notice(true, text))?;
        }
        if ended_well.is_some() {
            self.info.ended_well = ended_well;
            self.changed = true;
        }
        let batch = Batch {
            process: u32::try_from(index).unwrap_or(u32::MAX),
            ..Batch::default()
        };
        self.send(batch, sink)
    }

    fn fail(&mut self, error: &io::Error, sink: Sink<'_>) -> Result<(), Gone> {
        self.over = true;
        let path = self.reader.path().display();
        sink(notice(
            true,
            format!("{path} cannot be read any more: {error}"),
        ))
    }
}

//! Traces of PyTorch's Kineto and other Chrome JSON traces of CUDA programs, gzipped or not.
//!
//! The format is Chrome's trace event format, with Kineto's categories and arguments:
//! <https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp>. One file is one
//! process. The text is read once, in blocks that threads read beside each other ([`blocks`]), and never held as a
//! whole. Events of the common shape are read in one pass ([`fast`]); for others [`scan`] finds where they end, and serde
//! reads them.

mod blocks;
mod convert;
mod decimal;
mod event;
mod events;
mod fast;
mod header;
mod input;
mod repair;
mod scan;

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::activity::feed::{Failure, FailureKind, Gone, Outcome, Outlet};
use crate::activity::units;
use crate::source::gather::{Meter, believable, notice};
use crate::text::printable;
use blocks::{BLOCK, Blocks, Parsed, Rest, Torn};
use convert::Converter;
use events::{End, Events, Next};
use header::Header;
use input::Input;
use scan::{Block, ScanError, Scanner};

/// Events and commas between two looks at the stop flag.
const STRIDE: u64 = 2048;
/// How far [`peek`] reads into a file: what stands before `traceEvents` in real traces is a tenth of it.
const PEEK_MAX: u64 = 1 << 20;

/// What can be told of a file by its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peek {
    /// Whether it says of itself that no GPU was involved.
    pub(super) simulated: bool,
}

/// Looks at a file's beginning: `None` when it is no Chrome JSON trace.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn peek(path: &Path) -> io::Result<Option<Peek>> {
    let mut scanner = Scanner::new(Input::open(path)?.take(PEEK_MAX));
    let mut header = Header::default();
    match walk_to_events(&mut scanner, &mut header) {
        Ok(is_trace) => Ok(is_trace.then_some(Peek {
            simulated: header.simulated,
        })),
        // The file is longer than was looked at: it begins like one, and reading it will tell.
        Err(_) if scanner.input().limit() == 0 => Ok(Some(Peek {
            simulated: header.simulated,
        })),
        Err(ScanError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        Err(_) => Ok(None),
    }
}

/// Steps over what stands before the first event. False when there is no `traceEvents`.
fn walk_to_events<R: Read>(
    scanner: &mut Scanner<R>,
    header: &mut Header,
) -> Result<bool, ScanError> {
    scanner.skip_mark()?;
    if scanner.eat(b'[')? {
        return Ok(matches!(scanner.peek()?, Some(b'{' | b']')));
    }
    scanner.expect(b'{', "a JSON trace is an object or a list")?;
    walk_keys(scanner, header)
}

/// Reads keys and values up to the value of `traceEvents`; false when the object ends first.
fn walk_keys<R: Read>(scanner: &mut Scanner<R>, header: &mut Header) -> Result<bool, ScanError> {
    loop {
        if scanner.peek()? != Some(b'"') {
            scanner.expect(b'"', "expected a key")?;
        }
        let key: String = serde_json::from_slice(scanner.value()?).unwrap_or_default();
        scanner.expect(b':', "expected a colon after a key")?;
        if key == "traceEvents" && scanner.peek()? == Some(b'[') {
            scanner.eat(b'[')?;
            return Ok(true);
        }
        if header::KEYS.contains(&key.as_str()) {
            header.take(&key, scanner.value()?);
        } else {
            scanner.skip_value()?;
        }
        if !scanner.eat(b',')? {
            scanner.expect(b'}', "expected a comma or the end of the object")?;
            return Ok(false);
        }
    }
}

/// Why reading ended before the file did.
enum Stop {
    Broken(ScanError),
    Asked,
    Gone,
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Self {
        Stop::Broken(error)
    }
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Stop::Gone
    }
}

/// Reads the file at `path` and sends it as the processes from `*next` on, which is moved behind them.
pub(super) fn read(path: &Path, next: &mut u32, outlet: &Outlet) -> Outcome {
    read_by(BLOCK, path, next, outlet)
}

/// [`read`] in blocks of about so many bytes.
fn read_by(block: usize, path: &Path, next: &mut u32, outlet: &Outlet) -> Outcome {
    let begun = Reading::start(path).and_then(|reading| Ok((reading, Input::open(path)?)));
    let (mut reading, input) = match begun {
        Ok(begun) => begun,
        Err(error) => return failure(path, 0, &ScanError::Io(error)),
    };
    let end = reading.run(input, block, outlet);
    let Reading { events, header, .. } = reading;
    let (mut converter, damaged) = (events.converter, events.damaged);
    converter.finish(&header);
    let (records, first) = (converter.gather.len(), *next);
    *next += converter.gather.processes();
    if matches!(end, Err(Stop::Gone))
        || tell(outlet, path, &converter, &header, damaged).is_err()
        || converter
            .gather
            .send(outlet, first, believable(header.base))
            .is_err()
    {
        return Outcome::Stopped;
    }
    match end {
        Ok(()) if !outlet.stop.is_stopped() => Outcome::Complete,
        Err(Stop::Broken(error)) => failure(path, records, &error),
        _ => Outcome::Stopped,
    }
}

struct Reading {
    header: Header,
    events: Events,
    meter: Meter,
}

impl Reading {
    fn start(path: &Path) -> io::Result<Reading> {
        let total = std::fs::metadata(path)?.len();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Reading {
            header: Header::default(),
            events: Events::default(),
            meter: Meter::new(format!("reading {name}"), total),
        })
    }

    fn run(&mut self, input: Input, block: usize, outlet: &Outlet) -> Result<(), Stop> {
        let mut scanner = Scanner::new(input);
        scanner.skip_mark()?;
        let is_document = scanner.eat(b'[')?;
        if !is_document {
            scanner.expect(b'{', "a JSON trace is an object or a list")?;
            if !walk_keys(&mut scanner, &mut self.header)? {
                return Err(Stop::Broken(ScanError::Malformed {
                    at: scanner.offset(),
                    what: "the object has no list \"traceEvents\"",
                }));
            }
        }
        scanner.peek()?;
        let (begun, input) = scanner.into_parts();
        let consumed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let blocks = Blocks::start(scope, begun, input, Input::consumed, &consumed, block)
                .map_err(ScanError::Io)?;
            let mut rest = self.list(blocks, is_document, &consumed, outlet)?;
            if !is_document {
                self.rest(&mut rest, outlet)?;
            }
            self.events
                .converter
                .gather
                .lost_before(0, self.header.lost);
            // Looked for to the very end, where gzip has its checksum.
            match rest.peek()? {
                None => Ok(()),
                Some(_) => Err(Stop::Broken(ScanError::Malformed {
                    at: rest.offset(),
                    what: "the text goes on behind the end of the trace",
                })),
            }
        })
    }

    /// Reads the first list of events, to behind its closing bracket, and returns what follows. The format allows a list
    /// that is the whole document to lack its end.
    fn list(
        &mut self,
        mut blocks: Blocks,
        is_document: bool,
        consumed: &AtomicU64,
        outlet: &Outlet,
    ) -> Result<Scanner<Rest>, Stop> {
        let mut torn: Option<Torn> = None;
        while let Some(parsed) = blocks.next().map_err(ScanError::Io)? {
            if outlet.stop.is_stopped() {
                return Err(Stop::Asked);
            }
            self.meter.at(outlet, consumed.load(Ordering::Relaxed))?;
            let Parsed { block, events, end } = match torn.take() {
                Some(torn) => torn.join(&parsed.block)?,
                None => parsed,
            };
            self.events.absorb(events);
            let at = self.events.at;
            match end {
                Ok(End::List) => return Ok(blocks.into_rest(&block, at)),
                // What it ends in, or what comes next, is known with the block that follows.
                Err(ScanError::Cut { .. }) if !block.is_last => {
                    torn = Some(Torn::of(&block, at, self.events.next));
                }
                Ok(_) if self.events.next == Next::Comma => {
                    torn = Some(Torn::of(&block, at, Next::Comma));
                }
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            blocks.recycle(block);
        }
        if is_document {
            return Ok(blocks.into_rest(&Block::default(), self.events.at));
        }
        Err(Stop::Broken(ScanError::Cut {
            at: self.events.at,
            what: "the text ends here, before its end",
        }))
    }

    /// Reads what stands behind the first list of events in an object.
    fn rest(&mut self, scanner: &mut Scanner<Rest>, outlet: &Outlet) -> Result<(), Stop> {
        loop {
            if !scanner.eat(b',')? {
                scanner.expect(b'}', "expected a comma or the end of the object")?;
                return Ok(());
            }
            if !walk_keys(scanner, &mut self.header)? {
                return Ok(());
            }
            self.events.next = Next::Event;
            loop {
                match self.events.read(scanner, STRIDE)? {
                    End::List => break,
                    End::Text => {
                        scanner.expect(b']', "expected the end of the list of events")?;
                    }
                    End::Paused if outlet.stop.is_stopped() => return Err(Stop::Asked),
                    End::Paused => {}
                }
            }
        }
    }
}

/// Tells what of the file is not on the timeline.
fn tell(
    outlet: &Outlet,
    path: &Path,
    converter: &Converter,
    header: &Header,
    damaged: Option<(u64, String)>,
) -> Result<(), Gone> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if header.simulated {
        notice(
            outlet,
            true,
            format!("{name} was simulated: no GPU was involved"),
        )?;
    }
    if converter.operations == 0 {
        let text =
            format!("{name} holds no operation of a GPU: was the profiler told to record CUDA?");
        notice(outlet, true, text)?;
    }
    if let Some((at, why)) = damaged {
        let text = format!(
            "{name}: the event at byte {at} can not be read ({why}); such events are counted as lost"
        );
        notice(outlet, true, text)?;
    }
    if !converter.left_out.is_empty() {
        let mut list: Vec<_> = converter.left_out.iter().collect();
        list.sort_by_key(|(category, count)| (std::cmp::Reverse(**count), category.as_str()));
        let list: Vec<String> = list
            .iter()
            .map(|(category, count)| format!("{} {category}", units::count(**count)))
            .collect();
        notice(
            outlet,
            false,
            format!("{name}: not shown: {}", list.join(", ")),
        )?;
    }
    Ok(())
}

fn failure(path: &Path, events: usize, error: &ScanError) -> Outcome {
    let (what, help) = match error {
        ScanError::Io(error) => (format!("cannot be read on: {error}"), ""),
        ScanError::Malformed { .. } | ScanError::Cut { .. } => (
            format!("is damaged at {error}"),
            "The program may have ended while it wrote the trace: record it again.",
        ),
    };
    let kept = match events {
        0 => String::new(),
        _ => format!(
            " The {} records before that are on the timeline.",
            units::count(events as u64)
        ),
    };
    Outcome::Failed(Failure {
        kind: FailureKind::Input,
        message: printable(&format!("{} {what}.{kept}", path.display())),
        help: help.to_owned(),
    })
}

#[cfg(test)]
mod tests;

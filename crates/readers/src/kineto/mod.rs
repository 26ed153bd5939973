//! Traces of PyTorch's Kineto, of XLA ([`xla`]) and other Chrome JSON traces of CUDA programs, gzipped or not.
//!
//! The format is Chrome's trace event format, with Kineto's categories and arguments:
//! <https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp>. One file is one process. Threads read
//! the text once, in blocks beside each other ([`blocks`]); it is never in memory as a whole. [`fast`] reads events of
//! the common shape in one pass. For others [`scan`] finds where they end, and serde reads them.

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
mod values;
mod xla;

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::Path;

use crate::gather::{Meter, Stop, believable, kept, notice};
use activity::door;
use activity::feed::{Failure, FailureKind, Gone, Outcome, Outlet};
use activity::text::printable;
use activity::units;
use blocks::{BLOCK, Blocks, ParsedBlock, Rest, TornEnd};
use convert::Converter;
use events::{End, Events, Next};
use header::Header;
pub(super) use input::GZIP;
use scan::{Block, ScanError, Scanner};

/// How far [`peek`] reads into a file: real traces have a tenth of it before `traceEvents`.
const PEEK_MAX: u64 = 1 << 20;

/// Whether a trace was made without a GPU, by its own account at its beginning; `None` when it is no Chrome JSON trace.
///
/// # Errors
/// When it cannot be read.
pub(super) fn peek(path: &Path) -> io::Result<Option<bool>> {
    let input = input::text(door::open(path)?);
    let mut scanner = Scanner::new(input.take(PEEK_MAX));
    let mut header = Header::default();
    let seen = walk_to_events(&mut scanner, &mut header);
    let (_, input) = scanner.into_parts();
    let is_trace = match seen {
        Ok(is_trace) => is_trace,
        // The text is longer than the peek: it begins like a trace, and reading it will tell.
        Err(_) if input.limit() == 0 => true,
        Err(ScanError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
            return Err(error);
        }
        Err(_) => false,
    };
    Ok(is_trace.then_some(header.simulated))
}

/// Skips everything before the first event. False when there is no `traceEvents`.
fn walk_to_events<R: Read>(
    scanner: &mut Scanner<R>,
    header: &mut Header,
) -> Result<bool, ScanError> {
    scanner.skip_mark()?;
    if !scanner.eat(b'[')? {
        scanner.expect(b'{', "a JSON trace is an object or a list")?;
        return walk_keys(scanner, header);
    }
    // Any list may be one of events: its first value has to look like it.
    match scanner.peek()? {
        Some(b']') => Ok(true),
        Some(b'{') => Ok(event::is_event(scanner.value()?)),
        _ => Ok(false),
    }
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

/// A trace, read to the end or to where it breaks.
pub(super) struct LoadedTrace {
    name: String,
    header: Header,
    converter: Converter,
    damaged: Option<(u64, String)>,
    end: Result<(), Stop<ScanError>>,
}

/// Reads a trace, which messages call `name`.
pub(super) fn load(name: &str, path: &Path, outlet: &Outlet) -> LoadedTrace {
    load_by(BLOCK, name, path, outlet)
}

/// [`load`] in blocks of about so many bytes.
fn load_by(block: usize, name: &str, path: &Path, outlet: &Outlet) -> LoadedTrace {
    let mut reading = Reading {
        header: Header::default(),
        events: Events::default(),
        meter: Meter::new(
            format!("reading {}", short(name)),
            path.metadata().map_or(0, |about| about.len()),
        ),
    };
    let end = door::open(path)
        .map_err(|error| Stop::Broken(ScanError::Io(error)))
        .and_then(|file| reading.run(file, block, outlet));
    let Reading { header, events, .. } = reading;
    let mut converter = events.converter;
    converter.finish(&header);
    LoadedTrace {
        name: name.to_owned(),
        header,
        converter,
        damaged: events.damaged,
        end,
    }
}

impl LoadedTrace {
    /// Whether it has operations without the GPU or machine that they ran on.
    pub(super) fn is_anonymous(&self) -> bool {
        self.converter.operations > 0 && self.header.rank.is_none()
    }

    /// Calls its processes by its file where no launcher has numbered them: beside others they would look alike.
    pub(super) fn tell_apart(&mut self) {
        if self.header.rank.is_none() {
            let name = short(&self.name);
            let stem = name.split(".json").next().unwrap_or(&name).to_owned();
            self.converter.gather.call(&stem);
        }
    }

    /// Sends the trace as the processes from `*next` on, and moves `*next` behind them.
    pub(super) fn send(self, next: &mut u32, outlet: &Outlet) -> Outcome {
        let (records, first) = (self.converter.gather.total, *next);
        *next += self.converter.gather.processes();
        if matches!(self.end, Err(Stop::Gone))
            || self.tell(outlet).is_err()
            || self
                .converter
                .gather
                .send(outlet, first, believable(self.header.base))
                .is_err()
        {
            return Outcome::Stopped;
        }
        match self.end {
            _ if outlet.stop.is_stopped() => Outcome::Stopped,
            Ok(()) => Outcome::Complete,
            Err(Stop::Broken(error)) => failure(&self.name, records, &error),
            Err(Stop::Asked | Stop::Gone) => Outcome::Stopped,
        }
    }

    /// Reports which events of the file are not on the timeline.
    fn tell(&self, outlet: &Outlet) -> Result<(), Gone> {
        let LoadedTrace {
            header,
            converter,
            damaged,
            ..
        } = self;
        let name = short(&self.name);
        if header.simulated {
            let text = format!("{name} was simulated: no GPU was involved");
            notice(outlet, true, text)?;
        }
        // Of a file that breaks off nobody knows what it held.
        if converter.operations == 0 && self.end.is_ok() {
            let asks = match (converter.has_calls, converter.has_tensors()) {
                (true, _) => "",
                _ if converter.has_old_times => {
                    ": an old profiler wrote the GPU's times of whole operators, which are not read; record with torch.profiler"
                }
                (_, Some(false)) => ": its tensors are all on the CPU",
                (_, None) if converter.convolves_on_cpu => ": its convolutions ran on the CPU",
                _ if let Some(by) = converter.writer() => &format!(
                    ": {by} wrote down what CPU threads did, so record with nsys or `cuptop trace`"
                ),
                _ if !converter.is_of_pytorch && header.is_empty() => {
                    ": it is another program's Chrome JSON, without categories"
                }
                _ => ": was the profiler told to record CUDA?",
            };
            let text = format!("{name} holds no operation of a GPU{asks}");
            notice(outlet, true, text)?;
        }
        if let Some((at, why)) = &damaged {
            let text = format!(
                "{name}: the event at byte {at} can not be read ({why}); such events are counted as lost"
            );
            notice(outlet, true, text)?;
        }
        if !converter.left_out.is_empty() {
            let mut list: Vec<_> = converter.left_out.iter().collect();
            list.sort_by_key(|(category, count)| (std::cmp::Reverse(**count), category.as_str()));
            let list = list.iter();
            let list =
                list.map(|(category, count)| format!("{} {category}", units::count(**count)));
            let list: Vec<String> = list.collect();
            let text = format!("{name}: not shown: {}", list.join(", "));
            notice(outlet, false, text)?;
        }
        Ok(())
    }
}

/// A file's name without its folder.
fn short(name: &str) -> String {
    let file = Path::new(name).file_name();
    file.map_or_else(
        || name.to_owned(),
        |file| file.to_string_lossy().into_owned(),
    )
}

struct Reading {
    header: Header,
    events: Events,
    meter: Meter,
}

impl Reading {
    fn run(&mut self, file: File, block: usize, outlet: &Outlet) -> Result<(), Stop<ScanError>> {
        // It is where the reading is.
        let twin = file.try_clone().map_err(ScanError::Io)?;
        let mut scanner = Scanner::new(input::text(file));
        scanner.skip_mark()?;
        let is_document = scanner.eat(b'[')?;
        if !is_document {
            scanner.expect(b'{', "a JSON trace is an object or a list")?;
            if !walk_keys(&mut scanner, &mut self.header)? {
                return Err(Stop::Broken(ScanError::NoEvents));
            }
        }
        scanner.peek()?;
        let (begun, input) = scanner.into_parts();
        std::thread::scope(|scope| {
            let blocks = Blocks::start(scope, begun, input, block).map_err(ScanError::Io)?;
            let mut rest = self.list(blocks, is_document, &twin, outlet)?;
            if !is_document {
                self.rest(&mut rest)?;
            }
            let health = self.events.converter.gather.health(0);
            health.dropped = health.dropped.saturating_add(self.header.lost);
            // It reads to the very end, where gzip has its checksum.
            match rest.peek()? {
                None => Ok(()),
                Some(_) => Err(Stop::Broken(ScanError::Malformed {
                    at: rest.offset(),
                    what: "the text goes on behind the end of the trace",
                })),
            }
        })
    }

    /// Reads the list of events, to behind its closing bracket, and returns the rest. The format allows a list
    /// that is the whole document to lack its end.
    fn list(
        &mut self,
        mut blocks: Blocks,
        is_document: bool,
        mut twin: &File,
        outlet: &Outlet,
    ) -> Result<Scanner<Rest>, Stop<ScanError>> {
        let mut torn: Option<TornEnd> = None;
        while let Some(parsed) = blocks.next().map_err(ScanError::Io)? {
            if outlet.stop.is_stopped() {
                return Err(Stop::Asked);
            }
            let consumed = twin.stream_position().map_err(ScanError::Io)?;
            self.meter
                .report(outlet, consumed)
                .map_err(|_| Stop::Gone)?;
            let ParsedBlock { block, events, end } = match torn.take() {
                Some(torn) => torn.join(&parsed.block)?,
                None => parsed,
            };
            self.events.absorb(events);
            let at = self.events.at;
            match end {
                Ok(End::List) => return Ok(blocks.into_rest(&block, at)),
                // The block that follows tells how it ends or goes on.
                Err(ScanError::Cut { .. }) if !block.is_last => {
                    torn = Some(TornEnd::of(&block, at, self.events.next));
                }
                Ok(_) if self.events.next == Next::Comma => {
                    torn = Some(TornEnd::of(&block, at, Next::Comma));
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

    /// Reads the rest of an object behind its list of events.
    fn rest(&mut self, scanner: &mut Scanner<Rest>) -> Result<(), ScanError> {
        if !scanner.eat(b',')? {
            return scanner.expect(b'}', "expected a comma or the end of the object");
        }
        match walk_keys(scanner, &mut self.header)? {
            false => Ok(()),
            true => Err(ScanError::Malformed {
                at: scanner.offset(),
                what: "a second list of events begins here",
            }),
        }
    }
}

fn failure(name: &str, events: usize, error: &ScanError) -> Outcome {
    let mut help = "";
    let what = match error {
        ScanError::Io(error) => format!("cannot be read on: {error}"),
        ScanError::NoEvents => "is JSON, but no trace: it has no list \"traceEvents\"".to_owned(),
        ScanError::Malformed { .. } | ScanError::Cut { .. } => {
            help = "The program may have ended while it wrote the trace: record it again.";
            format!("is damaged at {error}")
        }
    };
    let what = printable(&format!("{name} {what}.{}", kept(events)));
    Outcome::Failed(Failure::new(FailureKind::Input, what, help))
}

#[cfg(test)]
mod tests;

//! Traces of PyTorch's Kineto and other Chrome JSON traces of CUDA programs, gzipped or not.
//!
//! The format is Chrome's trace event format, with Kineto's categories and arguments:
//! <https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp>. One file is one
//! process. The text is read once, in a stream ([`scan`] finds the events, serde reads them one by
//! one), and never held as a whole.

mod convert;
mod decimal;
mod event;
mod header;
mod scan;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::activity::feed::{Failure, FailureKind, Gone, Outcome, Outlet};
use crate::activity::units;
use crate::source::gather::{Meter, believable, notice};
use crate::text::printable;
use convert::Converter;
use event::Event;
use header::Header;
use scan::{ScanError, Scanner};

/// Events between two looks at the stop flag.
const STRIDE: u64 = 1024;
/// How far [`peek`] reads into a file: what stands before `traceEvents` in real traces is a tenth of it.
const PEEK_MAX: u64 = 1 << 20;

/// What can be told of a file by its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peek {
    /// Whether it says of itself that no GPU was involved.
    pub(super) simulated: bool,
}

/// Counts what is read from a file.
#[derive(Debug)]
struct Counted {
    file: File,
    read: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.read += n as u64;
        Ok(n)
    }
}

#[derive(Debug)]
enum Input {
    Plain(Counted),
    Gzip(Box<MultiGzDecoder<BufReader<Counted>>>),
}

impl Input {
    fn open(path: &Path) -> io::Result<Input> {
        let mut file = File::open(path)?;
        let mut magic = Vec::new();
        (&mut file).take(2).read_to_end(&mut magic)?;
        io::Seek::rewind(&mut file)?;
        let file = Counted { file, read: 0 };
        Ok(if magic == [0x1f, 0x8b] {
            let buffered = BufReader::with_capacity(256 * 1024, file);
            Input::Gzip(Box::new(MultiGzDecoder::new(buffered)))
        } else {
            Input::Plain(file)
        })
    }

    /// Bytes of the file that have been read.
    fn consumed(&self) -> u64 {
        match self {
            Input::Plain(file) => file.read,
            Input::Gzip(decoder) => decoder.get_ref().get_ref().read,
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Plain(file) => file.read(buffer),
            Input::Gzip(decoder) => decoder.read(buffer),
        }
    }
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
    let mut reading = match Reading::start(path) {
        Ok(reading) => reading,
        Err(error) => return failure(path, 0, &ScanError::Io(error)),
    };
    let end = reading.run(outlet);
    let Reading {
        mut converter,
        header,
        damaged,
        ..
    } = reading;
    converter.finish(&header);
    let (events, first) = (converter.gather.len(), *next);
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
        Err(Stop::Broken(error)) => failure(path, events, &error),
        _ => Outcome::Stopped,
    }
}

struct Reading {
    scanner: Scanner<Input>,
    header: Header,
    converter: Converter,
    meter: Meter,
    /// Offset of the first event that could not be read, and why.
    damaged: Option<(u64, String)>,
}

impl Reading {
    fn start(path: &Path) -> io::Result<Reading> {
        let total = std::fs::metadata(path)?.len();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Reading {
            scanner: Scanner::new(Input::open(path)?),
            header: Header::default(),
            converter: Converter::default(),
            meter: Meter::new(format!("reading {name}"), total),
            damaged: None,
        })
    }

    fn run(&mut self, outlet: &Outlet) -> Result<(), Stop> {
        let scanner = &mut self.scanner;
        scanner.skip_mark()?;
        if scanner.eat(b'[')? {
            return self.events(true, outlet);
        }
        scanner.expect(b'{', "a JSON trace is an object or a list")?;
        let mut has_events = false;
        while walk_keys(&mut self.scanner, &mut self.header)? {
            has_events = true;
            self.events(false, outlet)?;
            if !self.scanner.eat(b',')? {
                self.scanner
                    .expect(b'}', "expected a comma or the end of the object")?;
                break;
            }
        }
        self.converter.gather.lost_before(0, self.header.lost);
        if !has_events {
            return Err(Stop::Broken(ScanError::Malformed {
                at: self.scanner.offset(),
                what: "the object has no list \"traceEvents\"",
            }));
        }
        Ok(())
    }

    /// Reads events, from behind the opening bracket to behind the closing one. The format allows a
    /// list that is the whole document to lack its end.
    fn events(&mut self, is_document: bool, outlet: &Outlet) -> Result<(), Stop> {
        let mut seen = 0u64;
        if self.scanner.eat(b']')? {
            return Ok(());
        }
        loop {
            if is_document && self.scanner.peek()?.is_none() {
                return Ok(());
            }
            self.event()?;
            seen += 1;
            if seen.is_multiple_of(STRIDE) {
                if outlet.stop.is_stopped() {
                    return Err(Stop::Asked);
                }
                self.meter.at(outlet, self.scanner.input().consumed())?;
            }
            if self.scanner.eat(b',')? {
                // A comma before the end is common in hand-made traces.
                if self.scanner.eat(b']')? {
                    return Ok(());
                }
                continue;
            }
            if is_document && self.scanner.peek()?.is_none() {
                return Ok(());
            }
            self.scanner
                .expect(b']', "expected a comma or the end of the list of events")?;
            return Ok(());
        }
    }

    fn event(&mut self) -> Result<(), Stop> {
        self.scanner.peek()?;
        let at = self.scanner.offset();
        let text = self.scanner.value()?;
        if let Some((phase, category)) = event::glance(text)
            && self.converter.pass_over(phase, category)
        {
            return Ok(());
        }
        match serde_json::from_slice::<Event<'_>>(text) {
            Ok(event) => self.converter.take(&event),
            Err(_) if text == b"null" => {}
            Err(_) => match serde_json::from_str::<Event<'_>>(&scan::repaired(text)) {
                Ok(event) => self.converter.take(&event),
                Err(error) => {
                    self.converter.gather.damaged(0);
                    self.damaged.get_or_insert_with(|| (at, error.to_string()));
                }
            },
        }
        Ok(())
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
        ScanError::Malformed { .. } => (
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

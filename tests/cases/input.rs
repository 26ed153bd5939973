//! The inputs of the table: a real trace, a bundled scenario on the simulator, or one made for a row.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;

use activity::feed::Message;
use activity::{
    Activity, Batch, Copy, Def, DeviceInfo, Direction, Hardware, HostCall, Kernel, LaunchShape,
    MemoryKind, Memset, NameId, Ns, Place, Range, RangeKind, ShapeId, Span, StallSamples, What,
};
use cuptop::bundled::LIBRARY;
use cuptop::report::{KnownGpus, Report};
use readers::file::{self, Format};
use scenario::plan::Plan;
use scenario::{Overrides, compile};
use sim::{Pace, Profile};
use trace::{SourceInfo, SourceKind, Trace};

pub(crate) struct Input {
    trace: Trace,
    plan: Option<Arc<Plan>>,
}

/// What a report says that a reader acts on: classes, headlines, findings and steps.
const ANSWERS: [&str; 5] = [
    "verdicts",
    "findings",
    "start_up_findings",
    "harness_findings",
    "steps",
];

impl Input {
    /// A file.
    pub(crate) fn of_file(path: &Path) -> Input {
        let opened = file::open(&[path.to_owned()], &mut |_| {}).expect("it opens");
        let mut trace = Trace::new(SourceInfo {
            kind: match opened.format {
                Format::Kineto => SourceKind::Kineto,
                Format::Nsys => SourceKind::Nsys,
                Format::Recording => SourceKind::Recording,
            },
            simulated: opened.simulated,
            ..SourceInfo::default()
        });
        for message in opened.feed.receiver() {
            match message {
                Message::Batch(batch) => trace.apply(batch),
                Message::Finished(_) => break,
                _ => {}
            }
        }
        Input { trace, plan: None }
    }

    /// A bundled scenario on the simulator.
    fn of_scenario(name: &str) -> Option<Input> {
        let scenario = LIBRARY.scenarios.iter().find(|it| it.name == name)?;
        let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
        let plan = Arc::new(compiled.expect("a scenario that is right").plan);
        let feed = sim::run(
            plan.clone(),
            &Profile::bundled(),
            Pace::AsFastAsPossible,
            None,
        );
        let mut trace = Trace::new(SourceInfo::default());
        for message in feed.expect("a thread").receiver() {
            match message {
                Message::Batch(batch) => trace.apply(batch),
                Message::Finished(_) => break,
                _ => {}
            }
        }
        let plan = Some(plan);
        Some(Input { trace, plan })
    }

    /// The answers, as JSON.
    pub(crate) fn answers(&self) -> serde_json::Value {
        let report = Report::new(&self.trace, self.plan.as_deref(), KnownGpus::default());
        let report = serde_json::to_value(report).expect("JSON");
        let pick = |of: &serde_json::Value| {
            let fields = ANSWERS.iter().map(|&field| of[field].clone());
            serde_json::Value::Array(fields.collect())
        };
        let variants = report["variants"].as_array();
        let variants = variants.into_iter().flatten().map(pick);
        [pick(&report)].into_iter().chain(variants).collect()
    }
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All inputs, by name.
pub(crate) fn all() -> BTreeMap<String, Input> {
    let mut all = made();
    let scenarios = LIBRARY.scenarios.iter();
    all.extend(scenarios.filter_map(|it| Some((it.name.to_owned(), Input::of_scenario(it.name)?))));
    let traces = here().join("tests/data/traces");
    for entry in traces.read_dir().expect("the traces").flatten() {
        let path = entry.path();
        let name = path.file_name().expect("a name").to_string_lossy();
        if name.ends_with(".json.gz") || path.is_dir() {
            let name = name.trim_end_matches(".json.gz").to_owned();
            all.insert(name, Input::of_file(&path));
        }
    }
    all
}

/// The inputs that `inputs.py` made.
fn made() -> BTreeMap<String, Input> {
    let text = text();
    let inputs = text.split("= ").filter(|it| !it.is_empty());
    inputs.map(parse).collect()
}

fn text() -> String {
    let file = std::fs::File::open(here().join("tests/cases/inputs.txt.gz")).expect("the inputs");
    let mut text = String::new();
    let read = flate2::read::GzDecoder::new(file).read_to_string(&mut text);
    read.expect("it unpacks");
    text
}

/// Says where the script makes other inputs than there are. Without Python nobody can tell.
pub(crate) fn differs_from_script() -> Option<String> {
    let script = here().join("tests/cases/inputs.py");
    let made = Command::new("python3").arg(script).output().ok()?;
    let is_same = String::from_utf8_lossy(&made.stdout) == text();
    (!is_same).then(|| "tests/cases/inputs.py makes other inputs than lie beside it".to_owned())
}

/// An input from its lines.
fn parse(text: &str) -> (String, Input) {
    let (head, lines) = text.split_once('\n').expect("lines");
    let (name, source) = head.split_once(' ').expect("a name and a source");
    let mut written = Written::default();
    lines.lines().for_each(|line| written.take(line));
    let kind = match source {
        "kineto" => SourceKind::Kineto,
        "nsys" => SourceKind::Nsys,
        "traced" => SourceKind::Traced,
        other => panic!("{other} is no source"),
    };
    let mut trace = Trace::new(SourceInfo {
        kind,
        ..SourceInfo::default()
    });
    trace.apply(written.batch);
    (name.to_owned(), Input { trace, plan: None })
}

/// A timeline as it is read line by line.
#[derive(Default)]
struct Written {
    batch: Batch,
    names: Vec<String>,
    shapes: Vec<LaunchShape>,
    calls: u32,
    /// When the record before began.
    at: Ns,
    /// Which call caused what follows.
    cause: u32,
    /// The thread of calls and ranges, from 0 on.
    thread: u32,
    /// Bytes that a block of the kernels shares.
    shared: u32,
}

impl Written {
    fn take(&mut self, line: &str) {
        let mut fields = line.split(' ');
        let mut next = || fields.next().unwrap_or_else(|| panic!("{line} is short"));
        let letter = next();
        if letter == "n" {
            self.cause = 0;
            return;
        }
        if letter == "t" {
            self.thread = number(next());
            return;
        }
        if letter == "b" {
            self.shared = number(next());
            return;
        }
        if letter == "w" {
            let reasons = vec![(next().to_owned(), number(next()))];
            self.batch.hardware.push(Hardware::Stalls(StallSamples {
                kernel: rest(fields),
                reasons,
                ..StallSamples::default()
            }));
            return;
        }
        if letter == "d" {
            let (multiprocessors, copy_engines) = (number(next()), number(next()));
            let capability = fields.next().and_then(|it| it.split_once('.'));
            let capability = capability.map(|it| (number(it.0), number(it.1)));
            self.batch.defs.push(Def::Device(DeviceInfo {
                multiprocessors,
                copy_engines,
                capability: capability.unwrap_or_default(),
                ..DeviceInfo::default()
            }));
            return;
        }
        self.at += number::<Ns>(next());
        let span = Span::new(self.at, self.at + number::<Ns>(next()));
        let mut correlation = self.cause;
        let what = match letter {
            "c" => {
                let code = number(next());
                self.calls += 1;
                (self.cause, correlation) = (self.calls, self.calls);
                let name = self.name(rest(fields));
                let thread = self.thread + 1;
                What::Call(HostCall { thread, name, code })
            }
            "k" => {
                let (place, grid, block) = (place(next()), number(next()), number(next()));
                let name = self.name(rest(fields));
                let shape = self.shape(LaunchShape {
                    name,
                    grid: [grid, 1, 1],
                    block: [block, 1, 1],
                    static_shared: self.shared,
                    ..LaunchShape::default()
                });
                What::Kernel(Kernel {
                    place,
                    shape,
                    graph: 0,
                    node: 0,
                })
            }
            "m" => copy(place(next()), next(), number(next()), next()),
            "s" => What::Memset(Memset {
                place: place(next()),
                bytes: number(next()),
                graph: 0,
                node: 0,
            }),
            "r" => {
                correlation = 0;
                let kind = match next() {
                    "nvtx" => RangeKind::Nvtx,
                    "op" => RangeKind::CpuOp,
                    "repeat" => RangeKind::Repeat,
                    other => panic!("{other} is no kind of range"),
                };
                let index = number(next());
                What::Range(Range {
                    kind,
                    name: self.name(rest(fields)),
                    thread: self.thread + 1,
                    index,
                })
            }
            other => panic!("{other} is no record"),
        };
        self.batch.items.push(Activity {
            span,
            correlation,
            what,
        });
    }

    fn name(&mut self, text: String) -> NameId {
        let known = self.names.iter().position(|it| *it == text);
        let id = known.unwrap_or(self.names.len()) as NameId;
        if known.is_none() {
            self.names.push(text.clone());
            self.batch.defs.push(Def::Name { id, text });
        }
        id
    }

    fn shape(&mut self, shape: LaunchShape) -> ShapeId {
        let known = self.shapes.iter().position(|it| *it == shape);
        let id = known.unwrap_or(self.shapes.len()) as ShapeId;
        if known.is_none() {
            self.shapes.push(shape);
            self.batch.defs.push(Def::Shape { id, shape });
        }
        id
    }
}

fn number<T: FromStr>(field: &str) -> T {
    let parsed = field.parse().ok();
    parsed.unwrap_or_else(|| panic!("{field} is no number"))
}

/// A name may have spaces in it.
fn rest<'t>(fields: impl Iterator<Item = &'t str>) -> String {
    fields.collect::<Vec<_>>().join(" ")
}

fn place(stream: &str) -> Place {
    Place {
        device: 0,
        context: 1,
        stream: number(stream),
    }
}

fn copy(place: Place, direction: &str, bytes: u64, memory: &str) -> What {
    let host = match memory {
        "pinned" => MemoryKind::Pinned,
        "pageable" => MemoryKind::Pageable,
        "managed" => MemoryKind::Managed,
        other => panic!("{other} is no memory"),
    };
    let (direction, from, to) = match direction {
        "h2d" => (Direction::H2D, host, MemoryKind::Device),
        "d2h" => (Direction::D2H, MemoryKind::Device, host),
        other => panic!("{other} is no direction"),
    };
    What::Copy(Copy {
        place,
        direction,
        from,
        to,
        is_async: true,
        bytes,
        peer: 0,
        graph: 0,
        node: 0,
    })
}

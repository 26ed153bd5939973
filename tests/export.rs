//! Exports of timelines, read back: by cuptop's own reader where that is the point, else by a small
//! decoder of the test's own.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use common::{figures, load, shared_traces};
use cuptop::activity::feed::Outcome;
use cuptop::activity::{
    Activity, Batch, Copy, Def, DeviceInfo, Direction, Health, HostCall, Kernel, LaunchShape,
    MemoryKind, Place, ProcessInfo, Range, RangeKind, Span, Sync, SyncKind, What,
};
use cuptop::export::{self, Format, Timeline};
use cuptop::trace::{LaneKind, SourceInfo, SourceKind, Trace};

fn written(format: Timeline, trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    export::to(format, trace, &mut out).expect("memory can be written to");
    out
}

/// Two processes; a copy and a kernel that overlap, a call for each, a wait, a repeat; simulated, with losses.
fn made() -> Trace {
    let mut trace = Trace::new(SourceInfo {
        kind: SourceKind::Simulator,
        title: "made".to_owned(),
        path: None,
        simulated: true,
    });
    for process in 0..2u32 {
        let place = Place {
            device: process,
            context: 1,
            stream: 7,
        };
        let second = Place {
            stream: 13,
            ..place
        };
        let at = i64::from(process) * 1_000 + 1_000_000_000_000_123;
        let item = |start: i64, end: i64, correlation: u32, what: What| Activity {
            span: Span::new(at + start, at + end),
            correlation,
            what,
        };
        let call = |name| {
            What::Call(HostCall {
                thread: 42,
                name,
                code: 0,
            })
        };
        trace.apply(Batch {
            process,
            defs: vec![
                Def::Name {
                    id: 0,
                    text: "void say<\"a,b\">(int)\n\u{1b}[31m".to_owned(),
                },
                Def::Name {
                    id: 1,
                    text: "cudaLaunchKernel".to_owned(),
                },
                Def::Name {
                    id: 2,
                    text: "cudaMemcpyAsync".to_owned(),
                },
                Def::Name {
                    id: 3,
                    text: "streamed".to_owned(),
                },
                Def::Shape {
                    id: 0,
                    shape: LaunchShape {
                        grid: [8, 4, 1],
                        block: [128, 1, 1],
                        registers: 32,
                        static_shared: 100,
                        dynamic_shared: 24,
                        ..LaunchShape::default()
                    },
                },
                Def::Device(DeviceInfo {
                    id: process,
                    name: "Model".to_owned(),
                    ..DeviceInfo::default()
                }),
                Def::Process(ProcessInfo {
                    pid: 5000 + process,
                    command: "a.out".to_owned(),
                    ..ProcessInfo::default()
                }),
                Def::Thread {
                    thread: 42,
                    name: "main".to_owned(),
                },
            ],
            items: vec![
                item(0, 10, 1, call(2)),
                item(12, 20, 2, call(1)),
                item(
                    100,
                    300,
                    1,
                    What::Copy(Copy {
                        place,
                        direction: Direction::H2D,
                        from: MemoryKind::Pinned,
                        to: MemoryKind::Device,
                        is_async: true,
                        bytes: 10_000,
                        peer: process,
                        graph: 0,
                    }),
                ),
                item(
                    200,
                    450,
                    2,
                    What::Kernel(Kernel {
                        place: second,
                        shape: 0,
                        graph: 3,
                        node: 9,
                    }),
                ),
                // Starts before the kernel before it ends, on the same stream: it can not nest.
                item(
                    440,
                    460,
                    2,
                    What::Kernel(Kernel {
                        place: second,
                        shape: 0,
                        graph: 3,
                        node: 10,
                    }),
                ),
                item(
                    30,
                    460,
                    3,
                    What::Sync(Sync {
                        kind: SyncKind::Stream,
                        context: 1,
                        stream: Some(13),
                        event: None,
                    }),
                ),
                item(
                    0,
                    470,
                    0,
                    What::Range(Range {
                        kind: RangeKind::Repeat,
                        name: 3,
                        thread: 42,
                        index: 1,
                    }),
                ),
            ],
            health: Some(Health {
                received: 9,
                lost: 2,
                ..Health::default()
            }),
        });
    }
    trace
}

/// Exports, opens the export, and hands the new timeline out with the text.
fn round_trip(trace: &Trace) -> (common::Loaded, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("again.json");
    export::to_file(&path, |out| export::to(Timeline::Chrome, trace, out)).expect("a file");
    let text = std::fs::read_to_string(&path).expect("UTF-8");
    let loaded = load(&[path]);
    assert_eq!(loaded.outcome, Outcome::Complete);
    (loaded, text)
}

/// Everything that both formats have a word for, by lane.
fn content(trace: &Trace) -> BTreeMap<String, Vec<String>> {
    let mut lanes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, lane) in trace.lanes().iter().enumerate() {
        let key = match lane.key().kind {
            LaneKind::Stream {
                device,
                context,
                stream,
            } => {
                format!(
                    "{} device {} {context} {stream}",
                    lane.key().process,
                    trace.devices()[device].info.id
                )
            }
            LaneKind::Memory { .. } => continue,
            kind => format!("{} {kind:?}", lane.key().process),
        };
        for row in 0..lane.len() {
            let activity = trace.activity(id, row);
            let what = match activity.what {
                What::Kernel(k) => {
                    let s = trace.shape(k.shape);
                    let shared = u64::from(s.static_shared) + u64::from(s.dynamic_shared);
                    format!(
                        "{} {:?} {:?} {} {shared} {} {}",
                        trace.names().full(s.name),
                        s.grid,
                        s.block,
                        s.registers,
                        k.graph,
                        k.node
                    )
                }
                What::Copy(c) => format!(
                    "{:?} {:?} {:?} {} {}",
                    c.direction, c.from, c.to, c.bytes, c.is_async
                ),
                What::Memset(m) => format!("set {}", m.bytes),
                What::Call(c) => format!("{} {}", trace.names().full(c.name), c.code),
                What::Range(r) => {
                    format!("{} {:?} {}", trace.names().full(r.name), r.kind, r.index)
                }
                What::Sync(s) => format!("{:?} {:?} {:?}", s.kind, s.stream, s.event),
                What::Overhead(o) => trace.names().full(o.name).to_owned(),
                other => format!("{other:?}"),
            };
            lanes.entry(key.clone()).or_default().push(format!(
                "{:?} {} {what}",
                activity.span, activity.correlation
            ));
        }
    }
    for lane in lanes.values_mut() {
        lane.sort();
    }
    lanes
}

#[test]
fn chrome_json_comes_back_the_same() {
    let trace = made();
    let (again, text) = round_trip(&trace);
    assert_eq!(content(&again.trace), content(&trace));
    assert_eq!(figures(&again.trace), figures(&trace));
    assert!(again.trace.source.simulated);
    assert_eq!(again.trace.health().losses(), 4);
    assert!(text.starts_with("{\n\"simulated\": true,\n\"lost records\": 4,"));
    // Any JSON reader can read it, and finds the marks on what viewers show.
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let shown = json["traceEvents"]
        .as_array()
        .expect("events")
        .iter()
        .any(|e| {
            e["args"]["name"]
                .as_str()
                .is_some_and(|n| n.contains("SIMULATED") && n.contains("4 records lost"))
        });
    assert!(shown);
}

#[test]
fn real_traces_come_back_from_chrome_json_with_the_same_figures() {
    let Some(folder) = shared_traces() else {
        return;
    };
    for name in [
        "h200_streamed.json.gz",
        "event_sync_multi_stream.json.gz",
        "h200_first_sum.json.gz",
        "h100_2gpu_1s.sqlite",
    ] {
        let first = load(&[folder.join(name)]);
        let (again, text) = round_trip(&first.trace);
        assert_eq!(figures(&again.trace), figures(&first.trace), "{name}");
        assert!(
            text.starts_with("{\n\"simulated\": false,\n\"lost records\": 0,"),
            "{name}"
        );
    }
}

/// A protobuf message: fields in order, as number and value.
fn fields(mut bytes: &[u8]) -> Vec<(u32, Value<'_>)> {
    let varint = |bytes: &mut &[u8]| {
        let mut value = 0u64;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    };
    let mut list = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Int(varint(&mut bytes)),
            1 => {
                let (head, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Fixed(u64::from_le_bytes(head.try_into().expect("8 bytes")))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (head, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(head)
            }
            other => panic!("wire type {other}"),
        };
        list.push(((tag >> 3) as u32, value));
    }
    list
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Int(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn int(self) -> u64 {
        match self {
            Value::Int(value) | Value::Fixed(value) => value,
            Value::Bytes(_) => panic!("bytes"),
        }
    }
    fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            _ => panic!("a number"),
        }
    }
    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("UTF-8")
    }
}

fn get<'a>(message: &[(u32, Value<'a>)], field: u32) -> Option<Value<'a>> {
    message.iter().find(|(f, _)| *f == field).map(|(_, v)| *v)
}

/// What Perfetto would show: names of tracks with their parents' in front, slices, values of counters.
#[derive(Debug, Default)]
struct Shown {
    tracks: HashMap<u64, String>,
    /// Track, start, end, name, flow.
    slices: Vec<(String, u64, u64, String, Option<u64>)>,
    counters: Vec<(String, u64, f64)>,
    instants: Vec<String>,
}

fn shown(bytes: &[u8]) -> Shown {
    let mut shown = Shown::default();
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut events = Vec::new();
    for (field, packet) in fields(bytes) {
        assert_eq!(field, 1, "Trace.packet");
        let packet = fields(packet.bytes());
        assert_eq!(get(&packet, 10).expect("a sequence").int(), 1);
        if let Some(track) = get(&packet, 60) {
            let track = fields(track.bytes());
            let parent = get(&track, 5)
                .map(|p| shown.tracks[&p.int()].clone() + " / ")
                .unwrap_or_default();
            let name = parent + &get(&track, 2).expect("a name").text();
            shown
                .tracks
                .insert(get(&track, 1).expect("an id").int(), name);
        }
        for (_, entry) in get(&packet, 12)
            .map(|i| fields(i.bytes()))
            .unwrap_or_default()
            .iter()
            .filter(|(f, _)| *f == 2)
        {
            let entry = fields(entry.bytes());
            names.insert(
                get(&entry, 1).expect("an id").int(),
                get(&entry, 2).expect("a name").text(),
            );
        }
        if let Some(event) = get(&packet, 11) {
            events.push((
                get(&packet, 8).expect("a time").int(),
                fields(event.bytes()),
            ));
        }
    }
    // Perfetto sorts by time and keeps the order of the file among equals.
    events.sort_by_key(|(time, _)| *time);
    let mut stacks: HashMap<u64, Vec<(u64, String, Option<u64>)>> = HashMap::new();
    for (time, event) in events {
        let track = get(&event, 11).expect("a track").int();
        let path = shown.tracks[&track].clone();
        let name = || names[&get(&event, 10).expect("a name").int()].clone();
        match get(&event, 9).expect("a type").int() {
            1 => stacks.entry(track).or_default().push((
                time,
                name(),
                get(&event, 47).map(Value::int),
            )),
            2 => {
                let (start, name, flow) = stacks
                    .entry(track)
                    .or_default()
                    .pop()
                    .expect("a slice is open");
                shown.slices.push((path, start, time, name, flow));
            }
            3 => shown.instants.push(name()),
            4 => {
                let value = match (get(&event, 44), get(&event, 30)) {
                    (Some(double), _) => f64::from_bits(double.int()),
                    (None, Some(int)) => int.int() as f64,
                    (None, None) => panic!("a counter without a value"),
                };
                shown.counters.push((path, time, value));
            }
            other => panic!("event type {other}"),
        }
    }
    assert!(stacks.values().all(Vec::is_empty), "every slice ends");
    shown.slices.sort();
    shown
}

#[test]
fn perfetto_shows_every_slice_where_and_when_it_was() {
    let shown = shown(&written(Timeline::Perfetto, &made()));
    let marks = "SIMULATED · INCOMPLETE: 4 records lost";
    let base = 1_000_000_000_000_123;
    let kernel = "void say<\"a,b\">(int)\\n\\u{1b}[31m".to_owned();
    let expect = |track: &str, start: u64, end: u64, name: &str, flow: Option<u64>| {
        (
            track.to_owned(),
            base + start,
            base + end,
            name.to_owned(),
            flow,
        )
    };
    let gpu = format!("GPU 0 Model ({marks})");
    let host = format!("a.out ({marks})");
    for slice in [
        expect(
            &format!("{gpu} / stream 7 · process 0"),
            100,
            300,
            "Memcpy HtoD (Pinned -> Device)",
            Some(1),
        ),
        expect(
            &format!("{gpu} / stream 13 · process 0"),
            200,
            450,
            &kernel,
            Some(2),
        ),
        expect(
            &format!("{gpu} / stream 13 · process 0"),
            440,
            460,
            &kernel,
            Some(2),
        ),
        expect(
            &format!("{host} / main (42)"),
            12,
            20,
            "cudaLaunchKernel",
            Some(2),
        ),
        expect(
            &format!("{host} / passes of thread 42"),
            0,
            470,
            "streamed",
            None,
        ),
        expect(
            &format!("{host} / synchronizations"),
            30,
            460,
            "Stream Sync",
            None,
        ),
    ] {
        assert!(
            shown.slices.contains(&slice),
            "{slice:?} not in {:#?}",
            shown.slices
        );
    }
    assert_eq!(shown.slices.len(), 14);
    // The other process's correlation ids are others.
    assert!(shown.slices.iter().any(|s| s.4 == Some((1 << 32) + 2)));
    // 10,000 bytes in 200 ns.
    let rate = format!("{gpu} / H2D GB/s");
    assert_eq!(
        shown
            .counters
            .iter()
            .filter(|c| c.0 == rate)
            .map(|c| (c.1 - base, c.2))
            .collect::<Vec<_>>(),
        [(100, 50.0), (300, 0.0)]
    );
    assert_eq!(shown.instants, [marks]);
}

#[test]
fn perfetto_has_every_record_of_real_traces() {
    let Some(folder) = shared_traces() else {
        return;
    };
    for name in ["h200_streamed.json.gz", "v100_gpu_bound.json.gz"] {
        let trace = load(&[folder.join(name)]).trace;
        let shown = shown(&written(Timeline::Perfetto, &trace));
        let rows: usize = trace.lanes().iter().map(cuptop::trace::Lane::len).sum();
        assert_eq!(shown.slices.len() + shown.instants.len(), rows, "{name}");
        let length: i64 = trace
            .lanes()
            .iter()
            .flat_map(|l| (0..l.len()).map(|r| l.span(r).len()))
            .sum();
        let drawn: u64 = shown.slices.iter().map(|s| s.2 - s.1).sum();
        assert_eq!(drawn, length.cast_unsigned(), "{name}");
    }
}

/// Cells of CSV with quotes (RFC 4180).
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                cell.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    rows
}

#[test]
fn csv_has_one_line_an_operation() {
    let text = String::from_utf8(written(Timeline::Csv, &made())).expect("UTF-8");
    let table = cells(&text);
    assert_eq!(table.len(), 1 + 6);
    assert!(table.iter().all(|row| row.len() == 24), "{table:?}");
    let columns: HashMap<&str, usize> = table[0]
        .iter()
        .enumerate()
        .map(|(i, c)| (c.as_str(), i))
        .collect();
    let cell = |row: usize, column: &str| table[row][columns[column]].as_str();
    let copy: Vec<_> = [
        "process",
        "pid",
        "device",
        "stream",
        "kind",
        "start_ns",
        "duration_ns",
        "bytes",
        "gb_per_s",
        "from",
        "to",
        "asynchronous",
        "grid",
        "correlation",
    ]
    .map(|c| cell(1, c))
    .to_vec();
    assert_eq!(
        copy,
        [
            "0",
            "5000",
            "0",
            "7",
            "h2d",
            "1000000000000223",
            "200",
            "10000",
            "50.0000",
            "pinned",
            "device",
            "true",
            "",
            "1"
        ]
    );
    let kernel: Vec<_> = [
        "kind",
        "name",
        "bytes",
        "from",
        "grid",
        "block",
        "registers",
        "shared_bytes",
        "graph",
    ]
    .map(|c| cell(2, c))
    .to_vec();
    assert_eq!(
        kernel,
        [
            "kernel",
            "void say<\"a,b\">(int)\\n\\u{1b}[31m",
            "",
            "",
            "8x4x1",
            "128x1x1",
            "32",
            "124",
            "3"
        ]
    );
    for row in 1..table.len() {
        assert_eq!(
            (cell(row, "simulated"), cell(row, "lost_records")),
            ("true", "4")
        );
    }
    let starts: Vec<i64> = (1..table.len())
        .map(|r| cell(r, "start_ns").parse().expect("a number"))
        .collect();
    assert!(starts.is_sorted());
}

#[test]
fn an_empty_timeline_is_no_error() {
    let trace = Trace::default();
    assert!(
        shown(&written(Timeline::Perfetto, &trace))
            .slices
            .is_empty()
    );
    assert_eq!(
        cells(&String::from_utf8(written(Timeline::Csv, &trace)).expect("UTF-8")).len(),
        1
    );
    let json: serde_json::Value =
        serde_json::from_slice(&written(Timeline::Chrome, &trace)).expect("JSON");
    assert_eq!(json["simulated"], false);
}

#[test]
fn errors_name_the_file() {
    let path = PathBuf::from("/nowhere/at/all.csv");
    let error = export::to_file(&path, |out| export::to(Timeline::Csv, &made(), out))
        .expect_err("no folder");
    assert!(error.to_string().contains("/nowhere/at/all.csv"));
    if Path::new("/dev/full").exists() {
        let error = export::to_file("/dev/full".as_ref(), |out| {
            export::to(Timeline::Csv, &made(), out)
        })
        .expect_err("a full disk");
        assert!(
            error.to_string().starts_with("cannot write /dev/full"),
            "{error}"
        );
    }
    for (name, format) in Format::ALL {
        assert_eq!(Format::from_name(name), Some(format));
    }
    assert_eq!(Format::from_name("exe"), None);
}

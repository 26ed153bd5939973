//! Chrome JSON exports as Perfetto's importer takes them in (its `json_trace_parser.cc`), by a small reader of the test's own.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::common::made::{made, written};
use crate::common::{load, real_traces};
use activity::{Batch, Def, DeviceInfo, Hardware, Metric, Reading, Span};
use cuptop::export::TimelineFormat;
use serde_json::Value;
use trace::{Lane, LaneKind, Trace};

/// A slice that Perfetto would show: its process and thread by their names, start, end, name, category, arrow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slice {
    track: String,
    start: i64,
    end: i64,
    name: String,
    category: String,
    arrow: Option<String>,
    bytes: Option<u64>,
}

#[derive(Debug, Default)]
struct Shown {
    /// Processes with their threads, in the order in which they are shown.
    tracks: Vec<String>,
    slices: Vec<Slice>,
    /// The process and the thread of each.
    rows: Vec<(u32, u32)>,
    counters: Vec<(String, i64, f64)>,
    instants: Vec<String>,
}

/// Perfetto's times: whole nanoseconds from a double of microseconds.
fn ns(value: &Value) -> i64 {
    (value.as_f64().expect("a number") * 1000.0).round() as i64
}

/// Perfetto takes what is no 32 bits without a sign for 0, and a thread 0 for its process's main thread.
fn row(event: &Value) -> (u32, u32) {
    let id = |key: &str| match &event[key] {
        Value::Null => 0,
        id => u32::try_from(id.as_i64().expect("a number")).expect("32 bits"),
    };
    let (pid, tid) = (id("pid"), id("tid"));
    (pid, if tid == 0 { pid } else { tid })
}

fn shown(bytes: &[u8]) -> Shown {
    let document: Value = serde_json::from_slice(bytes).expect("JSON");
    let base = document["baseTimeNanoseconds"].as_i64().expect("a time");
    let events = document["traceEvents"].as_array().expect("events");
    let (mut processes, mut threads) = (BTreeMap::new(), BTreeMap::new());
    let mut order = Vec::new();
    for event in events.iter().filter(|it| it["ph"] == "M") {
        let (pid, tid) = row(event);
        let name = &event["args"]["name"];
        match event["name"].as_str().expect("a name") {
            "process_name" => drop(processes.insert(pid, name.as_str().expect("text").to_owned())),
            "thread_name" => {
                let name = name.as_str().expect("text").to_owned();
                let before = threads.insert((pid, tid), name);
                // What Kineto calls thread 0 comes before the main thread's own name.
                assert!(before.is_none_or(|it| it.starts_with("thread 0 (")));
            }
            "thread_sort_index" => order.push((event["args"]["sort_index"].as_i64(), pid, tid)),
            "process_sort_index" => {}
            other => panic!("{other}"),
        }
    }
    order.sort_unstable();
    let track = |pid, tid| {
        let process = processes.get(&pid).cloned().unwrap_or(pid.to_string());
        let thread = threads.get(&(pid, tid)).cloned();
        format!("{process} / {}", thread.unwrap_or(tid.to_string()))
    };
    let mut shown = Shown {
        tracks: order.iter().map(|&(_, pid, tid)| track(pid, tid)).collect(),
        ..Shown::default()
    };
    for event in events {
        let (pid, tid) = row(event);
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        match event["ph"].as_str().expect("a phase") {
            "M" => {}
            "X" => {
                let start = base + ns(&event["ts"]);
                let direction = [&event["flow_out"], &event["flow_in"]];
                let arrow = event.get("bind_id").map(|id| {
                    assert!(direction.iter().filter(|it| ***it == true).count() == 1);
                    id.as_str().expect("hexadecimal").to_owned()
                });
                shown.rows.push((pid, tid));
                shown.slices.push(Slice {
                    track: track(pid, tid),
                    start,
                    end: start + ns(&event["dur"]),
                    name: text("name"),
                    category: text("cat"),
                    arrow,
                    bytes: event["args"]["bytes"].as_u64(),
                });
            }
            "C" => {
                for (unit, value) in event["args"].as_object().expect("values") {
                    let name = format!("{} / {} {unit}", processes[&pid], text("name"));
                    let value = value.as_f64().expect("a number");
                    shown.counters.push((name, base + ns(&event["ts"]), value));
                }
            }
            "i" => shown.instants.push(text("name")),
            other => panic!("{other}"),
        }
    }
    shown
}

#[test]
fn perfetto_shows_every_slice_where_and_when_it_was() {
    let shown = shown(&written(TimelineFormat::Chrome, &made()));
    let marks = "SIMULATED · INCOMPLETE: 4 records lost";
    let base = 1_000_000_000_000_123;
    let kernel = "void say<\"a,b\">(int)\\n\\u{1b}[31m";
    let expect = |track: &str, start, end, name: &str, category: &str, arrow: Option<&str>| Slice {
        track: track.to_owned(),
        start: base + start,
        end: base + end,
        name: name.to_owned(),
        category: category.to_owned(),
        arrow: arrow.map(str::to_owned),
        bytes: (category == "gpu_memcpy").then_some(10_000),
    };
    let gpu = |stream: &str| format!("GPU 0 Model ({marks}) / {stream} · process 0");
    let host = |thread: &str| format!("a.out ({marks}) / {thread}");
    let copy = "Memcpy HtoD (Pinned -> Device)";
    for slice in [
        expect(&gpu("stream 7"), 100, 300, copy, "gpu_memcpy", Some("0x1")),
        expect(&gpu("stream 13"), 200, 450, kernel, "kernel", Some("0x2")),
        expect(&gpu("stream 13"), 440, 460, kernel, "kernel", Some("0x2")),
        expect(
            &host("main"),
            12,
            20,
            "cudaLaunchKernel",
            "cuda_runtime",
            Some("0x2"),
        ),
        expect(&host("main"), 0, 470, "streamed", "user_annotation", None),
        expect(
            &host("synchronizations"),
            30,
            460,
            "Stream Sync",
            "cuda_sync",
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
    let other = Some("0x100000002".to_owned());
    assert_eq!(
        shown.slices.iter().filter(|it| it.arrow == other).count(),
        3
    );
    // 10,000 bytes in 200 ns.
    let rate = format!("GPU 0 Model ({marks}) / H2D GB/s");
    let rates = shown.counters.iter().filter(|it| it.0 == rate);
    assert_eq!(
        rates.map(|it| (it.1 - base, it.2)).collect::<Vec<_>>(),
        [(100, 50.0), (300, 0.0)]
    );
    // GPUs stand above the processes.
    assert_eq!(shown.tracks.len(), 8);
    assert_eq!(shown.tracks[0], gpu("stream 7"));
    assert_eq!(shown.tracks[4], host("main"));
}

/// A sample of a GPU's counters stands where it begins, on the track of its metric; power, which nobody samples, where
/// NVML read it.
#[test]
fn perfetto_has_a_track_of_each_counter() {
    let uuid = [7; 16];
    let reading = |start, end, values| Reading {
        uuid,
        span: Span::new(start, end),
        values,
        reasons: 0,
    };
    let mut trace = Trace::default();
    trace.apply(Batch {
        defs: vec![Def::Device(DeviceInfo {
            name: "Model".to_owned(),
            uuid: Some(uuid),
            ..DeviceInfo::default()
        })],
        hardware: vec![
            Hardware::Reading(reading(
                0,
                900,
                vec![(Metric::Power, 300.0), (Metric::Dram, 0.5)],
            )),
            Hardware::Sample(reading(
                100,
                200,
                vec![(Metric::Dram, 0.875), (Metric::Tensor, 0.0)],
            )),
            Hardware::Sample(reading(
                200,
                300,
                vec![(Metric::Dram, 0.25), (Metric::Tensor, 0.75)],
            )),
        ],
        ..Batch::default()
    });
    let mut counters = shown(&written(TimelineFormat::Chrome, &trace)).counters;
    counters.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let of = |words: &str, time, value| (format!("GPU 0 Model / {words}"), time, value);
    assert_eq!(
        counters,
        [
            of("memory bandwidth used (hardware) share", 100, 0.875),
            of("memory bandwidth used (hardware) share", 200, 0.25),
            of("power (hardware) W", 0, 300.0),
            of("tensor cores busy (hardware) share", 100, 0.0),
            of("tensor cores busy (hardware) share", 200, 0.75),
        ]
    );
}

/// GPUs of two machines have the same number, and two processes the same number of a stream on one GPU: each has a row.
#[test]
fn perfetto_keeps_apart_what_has_the_same_number() {
    let device = |id, uuid: u8| {
        Def::Device(DeviceInfo {
            id,
            uuid: Some([uuid; 16]),
            name: format!("Model {uuid}"),
            ..DeviceInfo::default()
        })
    };
    let mut trace = Trace::default();
    for (process, uuid) in [(0, 1), (1, 1), (2, 2)] {
        let of_one = made_of_one(process);
        trace.apply(Batch {
            defs: [vec![device(0, uuid)], of_one.0].concat(),
            items: of_one.1,
            process,
            ..Batch::default()
        });
    }
    let shown = shown(&written(TimelineFormat::Chrome, &trace));
    let tracks: HashSet<&String> = shown.slices.iter().map(|it| &it.track).collect();
    let expected = [
        "GPU 0 Model 1 / stream 7 · process 0",
        "GPU 0 Model 1 / stream 7 · process 1",
        "GPU 1 Model 2 / stream 7 · process 2",
    ];
    assert_eq!(tracks.len(), 3, "{tracks:?}");
    for track in expected {
        assert!(
            tracks.contains(&track.to_owned()),
            "{track} not in {tracks:?}"
        );
    }
}

/// A memset on stream 7 of the first device of a process.
fn made_of_one(process: u32) -> (Vec<Def>, Vec<activity::Activity>) {
    let place = activity::Place {
        device: 0,
        context: 1,
        stream: 7,
    };
    let item = activity::Activity {
        span: Span::new(10, 20),
        correlation: 1,
        what: activity::What::Memset(activity::Memset {
            place,
            bytes: 100,
            graph: 0,
            node: 0,
        }),
    };
    let info = activity::ProcessInfo {
        pid: 5000 + process,
        ..activity::ProcessInfo::default()
    };
    (vec![Def::Process(info)], vec![item])
}

/// Time in which any of them ran.
fn union(mut spans: Vec<(i64, i64)>) -> i64 {
    spans.sort_unstable();
    let (mut busy, mut end) = (0, i64::MIN);
    for (start, stop) in spans {
        busy += (stop - start.max(end)).max(0);
        end = end.max(stop);
    }
    busy
}

/// The figures are those that the oracle took from the text of each trace.
#[test]
fn perfetto_has_every_record_of_real_traces() {
    for (path, expected) in real_traces() {
        let name = path.display();
        let trace = load(std::slice::from_ref(&path)).trace;
        let shown = shown(&written(TimelineFormat::Chrome, &trace));
        // Allocations are drawn as a counter.
        let is_drawn = |lane: &&Lane| !matches!(lane.key().kind, LaneKind::Memory { .. });
        let rows: usize = trace.lanes().iter().filter(is_drawn).map(Lane::len).sum();
        assert_eq!(shown.slices.len(), rows, "{name}");
        let calls: HashSet<_> = shown
            .slices
            .iter()
            .filter(|it| matches!(it.category.as_str(), "cuda_runtime" | "cuda_driver"))
            .filter_map(|it| it.arrow.as_ref())
            .collect();
        for device in expected["devices"].as_array().expect("devices") {
            let gpu = format!("GPU {}", device["device"]);
            let of_gpu = shown.slices.iter().zip(&shown.rows).filter(|(it, _)| {
                it.track.split(" / ").next().is_some_and(|process| {
                    process == gpu || process.starts_with(&format!("{gpu} "))
                }) && it.category != "cuda_event"
            });
            let (slices, rows): (Vec<&Slice>, Vec<&(u32, u32)>) = of_gpu.unzip();
            let of = |category: &str| slices.iter().filter(|it| it.category == category).count();
            assert_eq!(device["ops"], slices.len(), "{name}");
            assert_eq!(device["kernels"], of("kernel"), "{name}");
            assert_eq!(device["memsets"], of("gpu_memset"), "{name}");
            let spans = slices.iter().map(|it| (it.start, it.end)).collect();
            assert_eq!(device["busy_ns"], union(spans), "{name}");
            for (key, word) in [
                ("h2d", "HtoD"),
                ("d2h", "DtoH"),
                ("d2d", "DtoD"),
                ("p2p", "PtoP"),
            ] {
                let copies = || {
                    slices
                        .iter()
                        .filter(|it| it.name.starts_with(&format!("Memcpy {word}")))
                };
                assert_eq!(device[key]["count"], copies().count(), "{name} {key}");
                let bytes: u64 = copies().filter_map(|it| it.bytes).sum();
                assert_eq!(device[key]["bytes"], bytes, "{name} {key}");
            }
            let lost = slices
                .iter()
                .filter(|it| it.arrow.as_ref().is_none_or(|id| !calls.contains(id)));
            // The oracle does not tell the processes of one trace apart.
            if trace.processes().len() == 1 {
                assert_eq!(device["no_api"], lost.count(), "{name}");
            }
            let mut streams: HashMap<_, usize> = HashMap::new();
            for row in rows {
                *streams.entry(row).or_default() += 1;
            }
            let told = device["streams"].as_object().expect("streams");
            for count in told.values() {
                let count = count.as_u64().expect("a count") as usize;
                assert!(streams.values().any(|&it| it == count), "{name}");
            }
            // Migrations of managed memory have a row, and run on no stream.
            assert!(
                (told.len()..=told.len() + 1).contains(&streams.len()),
                "{name}"
            );
        }
    }
}

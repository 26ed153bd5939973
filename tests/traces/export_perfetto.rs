//! Perfetto exports, read back by a small decoder of the test's own.

use std::collections::HashMap;

use crate::common::made::{made, written};
use crate::common::{load, real_traces};
use activity::{Batch, Def, DeviceInfo, Hardware, Metric, Reading, Span};
use cuptop::export::Timeline;
use trace::{Lane, LaneKind, Trace};

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
            "H2D",
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
            &format!("{host} / main"),
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
            "stream sync",
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
    let mut counters = shown(&written(Timeline::Perfetto, &trace)).counters;
    counters.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let of = |words: &str, time, value| (format!("GPU 0 Model / {words} (hardware)"), time, value);
    assert_eq!(
        counters,
        [
            of("memory bandwidth used", 100, 0.875),
            of("memory bandwidth used", 200, 0.25),
            of("power", 0, 300.0),
            of("tensor cores busy", 100, 0.0),
            of("tensor cores busy", 200, 0.75),
        ]
    );
}

#[test]
fn perfetto_has_every_record_of_real_traces() {
    for (path, _) in real_traces() {
        let name = path.display();
        let trace = load(std::slice::from_ref(&path)).trace;
        let shown = shown(&written(Timeline::Perfetto, &trace));
        // Allocations are drawn as a counter.
        let is_drawn = |lane: &&Lane| !matches!(lane.key().kind, LaneKind::Memory { .. });
        let rows: usize = trace.lanes().iter().filter(is_drawn).map(Lane::len).sum();
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

#[test]
fn an_empty_timeline_is_no_error() {
    let shown = shown(&written(Timeline::Perfetto, &Trace::default()));
    assert!(shown.slices.is_empty());
}

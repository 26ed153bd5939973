//! Laws that hold for whatever the simulator runs: random programs of streams, events, copies and kernels.

#[allow(
    dead_code,
    reason = "each test program uses another part of these helpers"
)]
use std::collections::HashMap;

use activity::{Activity, Direction, Ns, Span, What};
use proptest::prelude::*;
use sim::program::{Item, Step, Target};

use crate::program::{Run, copy_in, copy_out, kernel, record, submit, submit_blocking, sync, wait};

const STREAMS: u32 = 4;
const EVENTS: u32 = 3;

/// A step of a random program, before it is one of the model's.
#[derive(Clone, Debug)]
enum Do {
    Kernel { stream: u32, ns: Ns, tenths: u8 },
    CopyIn { stream: u32, ns: Ns, blocks: bool },
    CopyOut { stream: u32, ns: Ns, blocks: bool },
    Record { event: u32, stream: u32 },
    Wait { event: u32, stream: u32 },
    SyncStream(u32),
    SyncEvent(u32),
    SyncDevice,
}

fn step() -> impl Strategy<Value = Do> {
    let stream = 0..STREAMS;
    let ns = 1..3000i64;
    prop_oneof![
        4 => (stream.clone(), ns.clone(), 1..=10u8)
            .prop_map(|(stream, ns, tenths)| Do::Kernel { stream, ns, tenths }),
        3 => (stream.clone(), ns.clone(), any::<bool>())
            .prop_map(|(stream, ns, blocks)| Do::CopyIn { stream, ns, blocks }),
        3 => (stream.clone(), ns, any::<bool>())
            .prop_map(|(stream, ns, blocks)| Do::CopyOut { stream, ns, blocks }),
        2 => (0..EVENTS, stream.clone()).prop_map(|(event, stream)| Do::Record { event, stream }),
        2 => (0..EVENTS, stream.clone()).prop_map(|(event, stream)| Do::Wait { event, stream }),
        1 => stream.prop_map(Do::SyncStream),
        1 => (0..EVENTS).prop_map(Do::SyncEvent),
        1 => Just(Do::SyncDevice),
    ]
}

fn program() -> impl Strategy<Value = Vec<Do>> {
    prop::collection::vec(step(), 0..60)
}

fn lower(program: &[Do]) -> Vec<Step> {
    let put = |stream, item: Item, blocks| {
        if blocks {
            submit_blocking(stream, item)
        } else {
            submit(stream, item)
        }
    };
    (program.iter())
        .map(|step| match *step {
            Do::Kernel { stream, ns, tenths } => {
                submit(stream, kernel(ns, f64::from(tenths) / 10.0))
            }
            Do::CopyIn { stream, ns, blocks } => put(stream, copy_in(ns), blocks),
            Do::CopyOut { stream, ns, blocks } => put(stream, copy_out(ns), blocks),
            Do::Record { event, stream } => record(event, stream),
            Do::Wait { event, stream } => wait(event, stream),
            Do::SyncStream(stream) => sync(Target::Stream(stream)),
            Do::SyncEvent(event) => sync(Target::Event(event)),
            Do::SyncDevice => sync(Target::Device(0)),
        })
        .collect()
}

/// Calls are numbered in program order, so step `i` has correlation `i + 1`, and so has its operation.
fn by_step(run: &Run) -> HashMap<usize, Activity> {
    (run.operations.iter())
        .map(|a| (a.correlation as usize - 1, *a))
        .collect()
}

fn stream_of(step: &Do) -> Option<u32> {
    match *step {
        Do::Kernel { stream, .. } | Do::CopyIn { stream, .. } | Do::CopyOut { stream, .. } => {
            Some(stream)
        }
        _ => None,
    }
}

fn disjoint(mut spans: Vec<Span>) -> bool {
    spans.sort();
    spans.windows(2).all(|pair| pair[0].end <= pair[1].start)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_operation_appears_once_and_everything_ends(program in program()) {
        let run = Run::of(STREAMS, lower(&program));
        prop_assert!(run.is_done);
        prop_assert_eq!(run.calls.len(), program.len());
        let operations = by_step(&run);
        prop_assert_eq!(operations.len(), run.operations.len());
        let expected: Vec<usize> = (program.iter().enumerate())
            .filter(|(_, s)| stream_of(s).is_some())
            .map(|(i, _)| i)
            .collect();
        let mut found: Vec<usize> = operations.keys().copied().collect();
        found.sort_unstable();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn nothing_runs_faster_than_alone_or_before_its_call(program in program()) {
        let run = Run::of(STREAMS, lower(&program));
        let calls: HashMap<usize, Activity> =
            run.calls.iter().map(|a| (a.correlation as usize - 1, *a)).collect();
        for (step, activity) in by_step(&run) {
            let (Do::Kernel { ns, .. } | Do::CopyIn { ns, .. } | Do::CopyOut { ns, .. }) = program[step]
            else {
                panic!("step {step} is no operation");
            };
            prop_assert!(activity.span.len() >= ns);
            prop_assert!(activity.span.start >= calls[&step].span.start);
        }
    }

    #[test]
    fn a_stream_runs_its_operations_in_order(program in program()) {
        let operations = by_step(&Run::of(STREAMS, lower(&program)));
        for stream in 0..STREAMS {
            let spans: Vec<Span> = (program.iter().enumerate())
                .filter(|(_, s)| stream_of(s) == Some(stream))
                .map(|(i, _)| operations[&i].span)
                .collect();
            prop_assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }

    #[test]
    fn two_copies_of_one_direction_never_overlap(program in program()) {
        let run = Run::of(STREAMS, lower(&program));
        for direction in [Direction::H2D, Direction::D2H] {
            let spans = (run.operations.iter())
                .filter(|a| matches!(a.what, What::Copy(c) if c.direction == direction))
                .map(|a| a.span)
                .collect();
            prop_assert!(disjoint(spans));
        }
    }

    #[test]
    fn events_order_streams(program in program()) {
        let operations = by_step(&Run::of(STREAMS, lower(&program)));
        // What each recording of an event stands behind, by walking the program.
        let mut latest_on: HashMap<u32, Vec<usize>> = HashMap::new();
        let mut recorded: HashMap<u32, Vec<usize>> = HashMap::new();
        for (i, step) in program.iter().enumerate() {
            match *step {
                Do::Record { event, stream } => {
                    recorded.insert(event, latest_on.get(&stream).cloned().unwrap_or_default());
                }
                Do::Wait { event, stream } => {
                    let before = recorded.get(&event).cloned().unwrap_or_default();
                    latest_on.entry(stream).or_default().extend(before);
                }
                _ => {
                    if let Some(stream) = stream_of(step) {
                        for before in latest_on.get(&stream).into_iter().flatten() {
                            prop_assert!(operations[before].span.end <= operations[&i].span.start);
                        }
                        latest_on.insert(stream, vec![i]);
                    }
                }
            }
        }
    }

    #[test]
    fn kernels_never_get_more_than_the_device(program in program()) {
        let run = Run::of(STREAMS, lower(&program));
        // A kernel of share s and length t needs s * t of the device's time. Within any window that is
        // bounded by operations, what ran wholly inside it cannot have needed more than the window.
        let kernels: Vec<(Span, f64)> = (by_step(&run).iter())
            .filter_map(|(step, a)| match program[*step] {
                Do::Kernel { ns, tenths, .. } => {
                    Some((a.span, ns as f64 * f64::from(tenths) / 10.0))
                }
                _ => None,
            })
            .collect();
        for (first, _) in &kernels {
            for (last, _) in &kernels {
                let window = Span::new(first.start, last.end);
                let needed: f64 = (kernels.iter())
                    .filter(|(span, _)| window.start <= span.start && span.end <= window.end)
                    .map(|(_, need)| need)
                    .sum();
                // Each end is rounded up to a whole nanosecond.
                prop_assert!(needed <= window.len() as f64 + 1e-6 || window.is_empty());
            }
        }
    }

    #[test]
    fn a_sync_returns_after_what_it_waits_for(program in program()) {
        let run = Run::of(STREAMS, lower(&program));
        let calls: HashMap<usize, Activity> =
            run.calls.iter().map(|a| (a.correlation as usize - 1, *a)).collect();
        let operations = by_step(&run);
        for (i, step) in program.iter().enumerate() {
            for (before, earlier) in program[..i].iter().enumerate() {
                let waits = match (step.clone(), stream_of(earlier)) {
                    (Do::SyncDevice, Some(_)) => true,
                    (Do::SyncStream(stream), Some(of)) => stream == of,
                    _ => false,
                };
                if waits {
                    prop_assert!(operations[&before].span.end <= calls[&i].span.end);
                }
            }
        }
    }

    #[test]
    fn the_same_program_gives_the_same_timeline(program in program()) {
        let first = Run::of(STREAMS, lower(&program));
        prop_assert_eq!(first, Run::of(STREAMS, lower(&program)));
    }
}

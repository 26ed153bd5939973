//! What streams and engines waited for.

use super::*;
use activity::{DeviceInfo, Hardware, Occupant, Owner, Reading};
use trace::testing::Sentence;

/// Stream 1 waits for what stream 2 does until then, for which an event is recorded, or its record is missing.
fn waits_for_other(until: Ns, is_recorded: bool, (launched, begins): (Ns, Ns)) -> Scene {
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 3_500, 4_000)
        .kernel("other", 2, 6_000, until);
    if is_recorded {
        scene
            .call("cudaEventRecord", 4_100, 4_200)
            .event(2, 5, 4_200);
    }
    scene.call("cudaStreamWaitEvent", 4_300, 4_400);
    scene.sync(SyncKind::StreamWaitEvent, Some(1), Some(5), 4_300, 4_400);
    scene
        .call("cudaLaunchKernel", launched, launched + 500)
        .kernel("second", 1, begins, 99_000);
    scene
}

#[test]
fn a_stream_that_waited_for_an_event_says_for_whose() {
    let seen = |mut scene| pieces(&mut scene, 1, 50_000);
    let (told, found) = seen(waits_for_other(90_000, true, (4_500, 92_000)));
    // Other ran for 80 us of the gap; 2 us later second began.
    assert_eq!(
        told,
        [(Cause::Event, 80_000, Fact), (Cause::Event, 2_000, Fact)]
    );
    assert_eq!(
        found.sentence,
        "Stream 1 waited 82.0 µs for an event recorded after other on stream 2."
    );
    // Without its record the answer is a likely one.
    let (told, found) = seen(waits_for_other(90_000, false, (4_500, 92_000)));
    let likely = [
        (Cause::Event, 80_000, Likely),
        (Cause::Event, 2_000, Likely),
    ];
    assert_eq!(told, likely);
    found.sentence.must_begin("Likely stream 1 waited");
    // One that came before the launch is not to blame.
    let (told, found) = seen(waits_for_other(12_000, true, (90_000, 95_000)));
    let late = [(Cause::Host, 80_000, Fact), (Cause::Latency, 5_000, Fact)];
    assert_eq!(told, late);
    found.sentence.must_have("code that was not traced");
}

#[test]
fn of_several_events_the_one_that_came_last_is_named() {
    let mut scene = begun();
    for (stream, event, end) in [(2, 5, 60_000), (3, 6, 90_000), (4, 7, 30_000)] {
        let at = 3_100 + Ns::from(stream) * 300;
        scene
            .call("cudaLaunchKernel", at, at + 100)
            .kernel("other", stream, 6_000, end);
        scene
            .call("cudaEventRecord", at + 110, at + 120)
            .event(stream, event, at + 120);
        scene.call("cudaStreamWaitEvent", at + 130, at + 140);
        scene.sync(
            SyncKind::StreamWaitEvent,
            Some(1),
            Some(event),
            at + 130,
            at + 140,
        );
    }
    scene
        .call("cudaLaunchKernel", 4_700, 5_000)
        .kernel("second", 1, 92_000, 99_000);
    let (_, found) = pieces(&mut scene, 1, 50_000);
    assert_eq!(found.cause, Cause::Event);
}

#[test]
fn a_node_that_comes_late_waits_for_the_launch_of_its_graph() {
    // Of the 34.4 us between the copy and the node the launch goes on for 27.9.
    let mut scene = Scene::new();
    scene.call("cudaMemcpyAsync", 1_000, 3_000);
    scene.copy(Direction::H2D, 1, 1 << 16, 5_000, 10_000);
    scene.call("cudaGraphLaunch", 3_500, 37_900);
    scene.kernel("node", 1, 44_400, 50_000);
    let (pieces, _) = pieces(&mut scene, 1, 20_000);
    assert_eq!(
        pieces,
        [
            (Cause::GraphSetup, 27_900, Likely),
            (Cause::EngineChange, 6_500, Fact)
        ]
    );
}

#[test]
fn a_gap_before_a_graph_ends_with_the_launch_of_all_of_it() {
    let mut scene = begun();
    scene.call("cudaGraphLaunch", 60_000, 62_000);
    scene.kernel("cast", 1, 66_000, 70_000);
    scene.kernel("gemm", 1, 71_000, 80_000);
    let mut batch = scene.take();
    for item in &mut batch.items {
        match &mut item.what {
            What::Kernel(kernel) if item.span.start > 60_000 => kernel.graph = 7,
            _ => {}
        }
    }
    let (_, found) = pieces_of(&scene.put(batch).trace(), 1, 30_000);
    found.sentence.must_have("before it launched a CUDA graph");
}

#[test]
fn what_was_queued_long_before_is_not_launch_latency() {
    let mut scene = Scene::new();
    scene.call("cudaGraphLaunch", 1_000, 31_000);
    for i in 0..50 {
        let start = 40_000 + i * 3_300;
        scene.kernel("node", 1, start, start + 2_000);
    }
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let idle = causes.idle(0, None);
    assert_eq!(idle.len(), 1);
    assert_eq!(
        (idle[0].cause.id(), idle[0].count, idle[0].total_ns),
        ("between queued operations", 49, 49 * 1_300)
    );
    let (_, found) = pieces_of(&trace, 1, 42_500);
    found
        .sentence
        .must_have("was queued behind node: 1.30 µs is the normal gap");
}

#[test]
fn a_change_of_engine_is_called_so() {
    let mut scene = Scene::new();
    scene
        .call("cudaMemcpyAsync", 1_000, 2_000)
        .copy(Direction::H2D, 1, 100, 5_000, 310_000);
    scene
        .call("cudaLaunchKernel", 3_000, 4_000)
        .kernel("k", 1, 318_000, 400_000);
    let (pieces, found) = pieces(&mut scene, 1, 312_000);
    assert_eq!(pieces, [(Cause::EngineChange, 8_000, Fact)]);
    found
        .sentence
        .must_have("the hand-over from H2D copy engine to SMs took");
}

#[test]
fn a_copy_waits_for_the_engine_of_its_direction() {
    let scene = |direction| {
        let mut scene = Scene::new();
        scene
            .call("cudaMemcpyAsync", 1_000, 2_000)
            .copy(Direction::H2D, 1, 100, 5_000, 10_000);
        scene
            .call("cudaMemcpyAsync", 2_000, 3_000)
            .copy(direction, 2, 100, 10_000, 90_000);
        scene
            .call("cudaMemcpyAsync", 3_000, 4_000)
            .copy(Direction::H2D, 1, 100, 90_500, 95_000);
        scene
    };
    let (found, said) = pieces(&mut scene(Direction::H2D), 1, 50_000);
    assert_eq!(
        found,
        [(Cause::Engine, 80_000, Fact), (Cause::Queued, 500, Fact)]
    );
    said.sentence
        .must_have("for the H2D copy engine, busy with the H2D copy on stream 2");
    // A copy the other way takes no engine from it: that it ended just before is all there is.
    let (found, _) = pieces(&mut scene(Direction::D2H), 1, 50_000);
    assert_eq!(
        found,
        [
            (Cause::Stream, 80_000, Likely),
            (Cause::Stream, 500, Likely)
        ]
    );
}

#[test]
fn graphs_that_left_too_few_operations_are_missing_records() {
    let mut scene = Scene::new();
    for launch in 0..4 {
        let at = launch * 1_000_000;
        scene.call("cudaGraphLaunch", at, at + 10_000);
        // The third launch lost two of its five.
        let nodes = if launch == 2 { 3 } else { 5 };
        for node in 0..nodes {
            let start = at + 20_000 + node * 100_000;
            scene.kernel("node", 1, start, start + 98_000);
        }
    }
    let mut batch: Batch = scene.take();
    for item in &mut batch.items {
        if let What::Kernel(kernel) = &mut item.what {
            kernel.graph = 7;
        }
    }
    let trace = scene.put(batch).trace();
    let graph = Graph::new(&trace);
    let idle = Causes::new(&trace, &graph).idle(0, None);
    let of = |cause: &str| {
        idle.iter()
            .filter(|i| i.cause.id() == cause)
            .map(|i| i.total_ns)
            .sum::<Ns>()
    };
    // Around the third: 502 us before it, 2 us within (before its last), and 702 us after it.
    assert_eq!(of("records missing"), 502_000 + 2_000 + 702_000);
}

/// Eight steps of a graph of three kernels. Before the first three launches of it three kernels are launched that leave no records: XLA
/// captures anew. Where the graph has fewer nodes they did not go into it.
#[test]
fn launches_right_before_a_graph_of_as_many_were_captured() {
    let missing = |nodes: i64| {
        let mut scene = Scene::new();
        for step in 0..8 {
            let at = step * 1_000_000;
            for launch in (0..4).filter(|it| *it == 0 || step > 0 && step < 4) {
                let call = at + launch * 20_000;
                scene.call("cudaLaunchKernelExC", call, call + 5_000);
                if launch == 0 {
                    scene.kernel("eager", 1, at + 6_000, at + 9_000);
                }
            }
            scene.call("cuGraphLaunch", at + 100_000, at + 110_000);
            for node in 0..nodes {
                let start = at + 120_000 + node * 10_000;
                scene.kernel("node", 1, start, start + 9_000);
            }
        }
        // Nearly all launches leave records.
        for i in 0..200 {
            let at = 8_000_000 + i * 10_000;
            scene.call("cudaLaunchKernelExC", at, at + 5_000);
            scene.kernel("eager", 1, at + 6_000, at + 9_000);
        }
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let idle = Causes::new(&trace, &graph).idle(0, None);
        idle.iter().any(|it| it.cause == Cause::Missing)
    };
    assert!(!missing(3));
    assert!(missing(2));
}

#[test]
fn a_longer_pause_in_a_queue_is_likely_one_and_a_long_one_unknown() {
    // 300 kernels launched ahead, 1 us between them, but one that comes after 30 us and one after 50.
    let mut scene = Scene::new();
    let mut start = 2_000_000;
    for i in 0..300 {
        let at = i * 3_000;
        start += match i {
            100 => 30_000,
            200 => 50_000,
            _ => 1_000,
        };
        scene
            .call("cudaLaunchKernel", at, at + 2_000)
            .kernel("k", 1, start, start + 2_000);
        start += 2_000;
    }
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let of = |idle: &[IdleCause], cause, certainty| {
        idle.iter()
            .filter(|i| (i.cause.id(), i.certainty) == (cause, certainty))
            .map(|i| (i.count, i.total_ns))
            .collect::<Vec<_>>()
    };
    let idle = Causes::new(&trace, &graph).idle(0, None);
    assert_eq!(
        of(&idle, "between queued operations", "fact"),
        [(297, 297_000)]
    );
    assert_eq!(
        of(&idle, "between queued operations", "likely"),
        [(1, 30_000)]
    );
    assert_eq!(of(&idle, "late start", "unknown"), [(1, 50_000)]);
}

#[test]
fn launches_and_copies_have_latencies_of_their_own() {
    // Copies begin 3.8 us after their call. Kernels 5.4 us, as each ends when the next was just launched.
    let mut scene = Scene::new();
    for i in 0..400 {
        let at = i * 20_000;
        scene.call("cudaMemcpyAsync", at, at + 1_800).copy(
            Direction::D2H,
            1,
            4,
            at + 3_800,
            at + 5_000,
        );
    }
    for i in 0..4 {
        let at = 9_000_000 + i * 3_000;
        scene
            .call("cudaLaunchKernel", at, at + 2_900)
            .kernel("k", 2, at + 5_400, at + 7_000);
    }
    let (found, _) = pieces(&mut scene, 2, 9_007_500);
    assert_eq!(found, [(Cause::Latency, 1_400, Fact)]);
}

#[test]
fn what_starts_late_behind_another_process_waits_for_its_turn() {
    // Launched at 3.5 us, queued behind nothing of its own since 10 us: another process has the GPU until 60.
    let of = |process: u32| {
        let mut scene = begun();
        scene
            .call("cudaLaunchKernel", 3_500, 4_000)
            .kernel("second", 1, 160_000, 170_000);
        let mut other = Scene::new();
        other.kernel("theirs", 3, 12_000, 60_000);
        let mut trace = scene.trace();
        trace.apply(Batch {
            process,
            ..other.take()
        });
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        let gap = causes.gaps_of_device(0, None).last().expect("a gap");
        let found = causes.explain(gap);
        let short = |p: &Piece| (p.cause, p.span.len(), p.certainty);
        (
            found.pieces.iter().map(short).collect::<Vec<_>>(),
            found.sentence,
        )
    };
    assert_eq!(of(1).0, [(Cause::Process, 100_000, Likely)]);
    assert_eq!(of(0).0, [(Cause::LateStart, 100_000, Certainty::Unknown)]);
}

#[test]
fn what_starts_late_behind_a_function_in_its_stream_waits_for_that() {
    let of = |before: &str, is_between: bool| {
        let mut scene = begun();
        scene.call(before, 3_400, 3_450);
        if is_between {
            scene
                .call("cudaLaunchKernel", 3_460, 3_480)
                .kernel("first", 2, 10_000, 10_010);
        }
        scene
            .call("cudaLaunchKernel", 3_500, 4_000)
            .kernel("second", 1, 160_000, 170_000);
        let (found, text) = pieces(&mut scene, 1, 100_000);
        (found[0].0, text.sentence)
    };
    let (cause, text) = of("cudaLaunchHostFunc", false);
    assert_eq!(cause, Cause::HostFunction);
    text.must_have("which cudaLaunchHostFunc put into the stream");
    assert_eq!(of("cudaLaunchHostFunc", true).0, Cause::LateStart);
    assert_eq!(of("cudaEventRecord", false).0, Cause::LateStart);
}

#[test]
fn a_pageable_copy_is_staged_wherever_its_call_began() {
    // The call begins while the kernel runs, until 10 us, and ends behind the copy's start.
    let of = |bytes: u64| {
        let mut scene = begun();
        scene.call("cudaMemcpy", 4_000, 90_000);
        let copy = Copy {
            from: MemoryKind::Pageable,
            is_async: false,
            ..pinned(Direction::H2D, 1, bytes)
        };
        scene.copy_of(copy, 52_000, 88_000);
        pieces(&mut scene, 1, 30_000).0
    };
    assert_eq!(of(1 << 20), [(Cause::Staging, 42_000, Fact)]);
}

/// One thread launches onto all devices in turn: in the gaps of each it launches onto all others.
#[test]
fn on_more_devices_than_a_process_has_a_walk_comes_to_an_end() {
    let of = |devices: i64| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 1_000);
        scene.kernel("k", 1, 5_000, 6_000);
        for i in 1..=2 * devices {
            let at = 10_000 * i;
            scene.call("cudaLaunchKernel", at, at + 1_000);
            let on = Place {
                device: (i % devices) as u32,
                ..place(1)
            };
            let kernel = Kernel {
                place: on,
                shape: 0,
                graph: 0,
                node: 0,
            };
            scene.push(at + 5_000, at + 6_000, i as u32 + 1, What::Kernel(kernel));
        }
        pieces(&mut scene, 1, 5_000 + 10_000 * devices - 1).0
    };
    // Before its launch the thread is in a call for each other device, and between them at its own work.
    let all = of(DEVICES as i64);
    assert!(all.len() >= DEVICES, "{all:?}");
    assert!(
        all.iter()
            .all(|it| !matches!(it.0, Cause::Unknown | Cause::LateStart)),
        "{all:?}"
    );
    let some = of(100);
    assert!(
        (STEPS..=2 * STEPS + 1).contains(&some.len()),
        "{}",
        some.len()
    );
    assert_eq!(some[0].0, Cause::Unknown);
    assert!(
        some[1..]
            .iter()
            .all(|it| !matches!(it.0, Cause::Unknown | Cause::LateStart))
    );
}

const MS: Ns = 1_000_000;

/// Rounds of 4 ms: a launch, a kernel of 25 us that begins so `late`, and a wait that begins so soon. Behind them kernels of such
/// lengths are `queued`.
fn late_by(late: impl Fn(Ns) -> Ns, queued: &[Ns], waits: impl Fn(Ns) -> Ns) -> Scene {
    let mut scene = begun();
    for round in 1..=20 {
        let (at, late) = (round * 4 * MS, late(round));
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + late, at + late + 25_000);
        scene.call(
            "cudaStreamSynchronize",
            at + waits(late),
            at + late + 30_000,
        );
    }
    let mut begun = 89 * MS + 10_000;
    for (at, &takes) in (0..).zip(queued) {
        let call = 89 * MS + at * 10_000;
        scene.call("cudaLaunchKernel", call, call + 5_000);
        scene.kernel("long", 1, begun, begun + takes);
        begun += takes + 1_000;
    }
    scene
}

/// How many gaps are another process's turns, how long it has one, and how often one lies in a kernel.
fn turns(scene: &mut Scene) -> (usize, Option<Ns>, usize) {
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let all = causes.gaps_with_pieces(0, None);
    let is_one = |it: &Piece| it.cause == Cause::Process && it.certainty == Likely;
    let gaps = all.filter(|(_, pieces)| pieces.iter().any(is_one)).count();
    let turns = causes.turns(0);
    let cut = turns.map_or(0, |it| it.in_kernels(Span::new(0, Ns::MAX)).count());
    (gaps, turns.and_then(|it| it.turn), cut)
}

#[test]
fn what_is_late_by_one_and_the_same_time_waits_for_another_process() {
    let (soon, turn) = (|_: Ns| 6_000, |round: Ns| 2_300_000 + round % 5 * 10_000);
    assert_eq!(
        turns(&mut late_by(turn, &[], soon)),
        (20, Some(2_320_000), 0)
    );
    // Four times are enough where a kernel took as much longer than the others of its shape.
    let few = |round: Ns| if round % 5 == 0 { 2_300_000 } else { 10_000 };
    let cut = [25_000, 25_000, 2_400_000, 26_000];
    assert_eq!(
        turns(&mut late_by(few, &cut, soon)),
        (4, Some(2_300_000), 1)
    );
    // A kernel beside it on another stream lost the same turn.
    let mut two = late_by(few, &cut, soon);
    two.kernel("long", 2, 89 * MS + 70_000, 89 * MS + 2_470_000);
    assert_eq!(turns(&mut two), (4, Some(2_300_000), 1));
    let none = (0, None, 0);
    assert_eq!(turns(&mut late_by(few, &[25_000; 4], soon)), none);
    // Kernels of two sizes tell nothing by themselves, nor does a CPU that thinks as long before each launch.
    assert_eq!(turns(&mut late_by(|_| 10_000, &cut, soon)), none);
    // What is late by any time has another reason; so has what begins once the CPU waits.
    assert_eq!(
        turns(&mut late_by(|round| round * 150_000, &[], soon)),
        none
    );
    assert_eq!(turns(&mut late_by(turn, &[], |late| late - 10_000)), none);
    // No turn is known to last so long.
    assert_eq!(
        turns(&mut late_by(|round| turn(round) + MS, &[], soon)),
        none
    );
}

/// A second GPU does the same, but for so many of the first kernels.
#[test]
fn what_all_gpus_wait_for_before_the_same_kernels_is_no_turn() {
    let beside = |without: usize| {
        let few = |round: Ns| if round % 5 == 0 { 3_200_000 } else { 10_000 };
        let mut scene = late_by(few, &[25_000, 25_000, 3_300_000, 26_000], |_| 6_000);
        let mut batch = scene.take();
        let second = batch.items.iter().filter_map(|it| {
            let What::Kernel(mut kernel) = it.what else {
                return None;
            };
            (kernel.place.device, kernel.place.context) = (1, 2);
            Some(Activity {
                span: it.span,
                correlation: 0,
                what: What::Kernel(kernel),
            })
        });
        let second: Vec<Activity> = second.skip(without).collect();
        batch.items.extend(second);
        turns(scene.put(batch))
    };
    assert_eq!(beside(0), (0, None, 0));
    assert_eq!(beside(3), (4, Some(3_200_000), 1));
}

/// Forty kernels, of which some begin 5 ms late: each tenth, which is another one, or as many at any place. Four take as much longer.
#[test]
fn what_is_late_before_the_same_kernel_each_time_is_no_turn() {
    let of = |is_late: fn(Ns) -> bool, first: &str| {
        let mut scene = Scene::new();
        let mut at = 0;
        for i in 0..40 {
            let name = if i % 10 == 0 { first } else { "k" };
            let late = if is_late(i) { 5 * MS } else { 10_000 };
            scene.call("cudaLaunchKernel", at, at + 4_000);
            let time = if i % 10 == 5 { 5 * MS + 20_000 } else { 20_000 };
            let begin = at + late + 6_000;
            scene.kernel(name, 1, begin, begin + time);
            at = begin + time + 1_000;
        }
        turns(&mut scene)
    };
    assert_eq!(of(|i| i % 10 == 0 && i > 0, "first"), (0, None, 0));
    let anywhere = of(|i| [7, 12, 18, 31].contains(&i), "first");
    // Each begins 6 us and 5 ms behind its call.
    assert_eq!(anywhere, (4, Some(5 * MS + 6_000), 4));
}

/// Of 80 kernels half have no launch that was recorded. Each begins 0.7 ms late, which is no length of a turn but for a process that
/// NVML names, with the multiprocessors at nine tenths.
#[test]
fn a_named_process_may_have_shorter_turns() {
    let of = |owner: Owner| {
        let mut scene = late_by(|_| 700_000, &[], |_| 6_000);
        for at in 0..40 {
            let begin = 90 * MS + at * 720_000;
            scene.without_call().kernel("k", 1, begin, begin + 20_000);
        }
        let uuid = [9; 16];
        scene.device(DeviceInfo {
            uuid: Some(uuid),
            ..DeviceInfo::default()
        });
        let occupant = Occupant {
            pid: 4711,
            name: "python".to_owned(),
            memory: None,
            owner,
        };
        let reading = Reading {
            uuid,
            span: Span::new(0, 120 * MS),
            values: vec![(Metric::Sm, 0.9)],
            reasons: 0,
        };
        let batch = scene.take();
        scene.put(Batch {
            hardware: vec![
                Hardware::Occupants {
                    uuid,
                    time: 0,
                    all: vec![occupant],
                },
                Hardware::Reading(reading),
            ],
            ..batch
        });
        turns(&mut scene)
    };
    assert_eq!(of(Owner::Program), (0, None, 0));
    let (gaps, turn, _) = of(Owner::Other);
    assert_eq!(turn, Some(700_000));
    assert!(gaps >= 59, "{gaps}");
}

#[test]
fn a_pinned_copy_that_the_cpu_waits_for_is_not_staged() {
    let of = |from| {
        let mut scene = begun();
        let copy = Copy {
            from,
            is_async: false,
            ..pinned(Direction::H2D, 1, 1 << 20)
        };
        scene.call("cudaMemcpy", 20_000, 190_000);
        scene.copy_of(copy, 100_000, 180_000);
        let (found, _) = pieces(&mut scene, 1, 50_000);
        found.last().expect("a piece").0
    };
    assert_eq!(of(MemoryKind::Pageable), Cause::Staging);
    assert_eq!(of(MemoryKind::Pinned), Cause::LateStart);
}

//! What was once said wrongly of real traces.

use super::*;
use activity::{Kernel, RangeKind, SyncKind, What};
use trace::SourceKind;
use trace::testing::{Sentence, launched, place};

/// One launch of a graph of 2,000 kernels of this time, 1.3 us apart.
fn graph(time: Ns) -> Scene {
    let mut scene = Scene::new();
    scene.call("cudaGraphLaunch", 1_000, 31_000);
    scene.kernel("k", 1, 40_000, 40_000 + time);
    for i in 1..2_000 {
        let start = 40_000 + (time + 1_300) * i;
        let kernel = Kernel {
            place: place(1),
            shape: 0,
            graph: 1,
            node: i as u64,
        };
        scene.push(start, start + time, 1, What::Kernel(kernel));
    }
    scene
}

#[test]
fn a_graph_that_is_launched_once_is_not_launch_bound() {
    // The GPU is idle for 39 % of the time: it takes that between two nodes.
    cured("launch-bound", &mut graph(2_000));
}

#[test]
fn records_of_nodes_cost_where_nodes_are_short() {
    let found = |time: Ns| {
        let mut trace = graph(time).trace();
        trace.source.kind = SourceKind::Traced;
        in_scope(&trace, None, PEAKS, |scope| {
            all(scope).into_iter().find(|f| f.rule.name() == "machine")
        })
    };
    // 0.15 us a node at the least: 4.5 % of 3.3 us, and 0.15 % of 100.
    let told = found(2_000);
    let told = told.expect("found");
    assert_eq!((told.bound_ns, told.severity), (0, Severity::Info));
    assert_eq!(found(98_700), None);
}

#[test]
fn records_of_launches_cost_where_the_gpu_waits_for_them() {
    let found = |mut scene: Scene| {
        let mut trace = scene.trace();
        trace.source.kind = SourceKind::Traced;
        let all = in_scope(&trace, None, PEAKS, all);
        all.into_iter().find(|f| f.rule.name() == "machine")
    };
    // 199 gaps of 8 us with a launch in each, 0.7 to 2.6 us, in 1.992 ms.
    let told = found(launched(200, 10_000, 2_000)).expect("found");
    assert_eq!((told.bound_ns, told.severity), (0, Severity::Info));
    assert!(told.title.contains("517 µs (26 %"), "{}", told.title);
    assert!(!told.advice.contains("--waits"), "{}", told.advice);
    // The GPU is never without work, or what it waits for takes long.
    assert_eq!(found(launched(200, 10_000, 20_000)), None);
    assert_eq!(found(launched(200, 200_000, 2_000)), None);
    // What waits were recorded for is the first thing to leave out.
    let mut waits = launched(200, 10_000, 2_000);
    waits.sync(SyncKind::Stream, Some(1), None, 2_100_000, 2_110_000);
    let told = found(waits).expect("found");
    told.advice.must_begin("Leave out --waits");
}

/// Kernels of 10 us that are waited for for 12, so far apart.
fn waited_for(apart: Ns) -> Scene {
    let mut scene = Scene::new();
    for i in 0..20 {
        let at = i * apart;
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("k", 1, at + 5_000, at + 15_000);
        scene.call("cudaStreamSynchronize", at + 4_000, at + 16_000);
    }
    scene
}

#[test]
fn without_waits_no_more_is_saved_than_they_last() {
    let found = sick("sync-in-loop", &mut waited_for(50_000));
    // 19 of them are followed by idle time, of 1 us within and no more than 11 us after.
    assert!(found.bound_ns <= 20 * 12_000, "{found:?}");
    // What follows a wait is not its fault beyond what it lasted: 0.24 of 200 ms.
    cured("sync-in-loop", &mut waited_for(10_000_000));
}

/// Kernels of 2 us, each launched 10 us after the one before has ended. So many of them are waited for.
#[test]
fn no_graph_reaches_across_a_wait() {
    let scene = |each: i64| {
        let mut scene = Scene::new();
        for i in 0..120 {
            let at = i * 12_000;
            scene.call("cudaLaunchKernel", at, at + 4_000);
            scene.kernel("k", 1, at + 6_000, at + 8_000);
            if i % each == each - 1 {
                scene.call("cudaDeviceSynchronize", at + 5_000, at + 10_000);
            }
        }
        scene
    };
    cured("launch-bound", &mut scene(1));
    // Of 119 pauses 59 have a wait, and 14.
    let few = sick("launch-bound", &mut scene(2));
    assert_eq!((few.bound_ns, few.severity), (60 * 10_000, Severity::Info));
    let many = sick("launch-bound", &mut scene(8));
    assert_eq!(
        (many.bound_ns, many.severity),
        (105 * 10_000, Severity::Warning)
    );
}

/// Iterations that copy 8 MiB back, wait for it, and work on it for so long; before it they wait once for a kernel.
fn read_back(work: Ns) -> Scene {
    let mut scene = Scene::new();
    let mut at = 0;
    for _ in 0..20 {
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 8_000, at + 108_000);
        scene.call("cudaStreamSynchronize", at + 6_000, at + 110_000);
        at += 110_000;
        scene.call("cudaMemcpyAsync", at + 2_000, at + 6_000);
        scene.copy(Direction::D2H, 1, 8 << 20, at + 10_000, at + 160_000);
        scene.call("cudaStreamSynchronize", at + 7_000, at + 162_000);
        at += 162_000 + work;
    }
    scene
}

#[test]
fn a_wait_for_what_the_cpu_works_on_is_no_wait_to_be_removed() {
    // One core reads 8 MiB in 420 us at best.
    let told = |work: Ns| {
        let all = findings(&mut read_back(work));
        let found = all.into_iter().find(|it| it.rule.name() == "sync-in-loop");
        found.map(|it| (it.count, it.refused.is_some()))
    };
    assert_eq!(told(500_000), None);
    assert_eq!(told(50_000).map(|it| it.1), Some(false));
}

#[test]
fn one_batch_has_nothing_to_run_beside() {
    // An upload, twenty kernels over it, and the way back: bitonic sort.
    let sort = |rounds: i64| {
        let mut scene = Scene::new();
        for round in 0..rounds {
            let at = round * 4_000_000;
            scene.call("cudaMemcpy", at, at + 1_000_000);
            scene.copy(Direction::H2D, 1, 32 << 20, at, at + 1_000_000);
            for i in 0..20 {
                let at = at + 1_000_000 + i * 100_000;
                scene.call("cudaLaunchKernel", at - 9_000, at - 5_000);
                scene.kernel("sort", 1, at, at + 99_000);
            }
            scene.call("cudaMemcpy", at + 2_900_000, at + 4_000_000);
            scene.copy(Direction::D2H, 1, 32 << 20, at + 3_000_000, at + 4_000_000);
        }
        scene
    };
    cured("no-overlap", &mut sort(1));
    sick("no-overlap", &mut sort(4));
}

#[test]
fn pages_that_the_driver_moves_are_no_matter_of_streams() {
    let rounds = |stream: u32| {
        let mut scene = Scene::new();
        for at in (0..10).map(|it| it * 2_000_000) {
            scene.call("cudaMemcpyAsync", at, at + 5_000);
            scene.copy(Direction::H2D, stream, 32 << 20, at + 6_000, at + 1_000_000);
            scene.call("cudaLaunchKernel", at + 5_000, at + 9_000);
            scene.kernel("k", 1, at + 1_000_000, at + 2_000_000);
        }
        scene
    };
    sick("no-overlap", &mut rounds(1));
    cured("no-overlap", &mut rounds(activity::Place::NO_STREAM));
    cured("no-overlap", &mut rounds(activity::Place::PREFETCHED));
}

#[test]
fn one_gap_is_told_by_what_it_ends_with() {
    // Ten kernels of 19.5 ms, and 50 ms in their middle, 46 of which have a name: 19 % of all.
    let scene = |name: &str| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * 19_502_000 + if i > 4 { 50_000_000 } else { 0 };
            let kernel = if i == 5 { "globalMM" } else { "k" };
            scene.call("cudaLaunchKernel", at - 3_000, at);
            scene.kernel(kernel, 1, at + 1_000, at + 19_501_000);
        }
        scene.range(RangeKind::CpuOp, name, 0, 98_000_000, 144_000_000);
        sick("no-cure", &mut scene)
    };
    let found = scene("nanosleep");
    assert_eq!(found.ends_with, " before globalMM");
    for told in [
        "a sleep of the CPU keeps",
        "nearly all in one gap before globalMM (the",
    ] {
        assert!(found.title.contains(told), "{}", found.title);
    }
    let found = scene("solve");
    assert!(found.title.starts_with("CPU work keeps"), "{}", found.title);
}

#[test]
fn pauses_between_tiny_copies_are_not_their_cost() {
    // 100 copies of 4 bytes, a wait of 10 ms after each tenth of them for something else.
    let mut scene = Scene::new();
    let mut at = 0;
    for i in 0..100 {
        scene.call("cudaMemcpyAsync", at, at + 3_000);
        scene.copy(Direction::D2H, 1, 4, at + 4_000, at + 6_000);
        at += 8_000;
        if i % 10 == 9 {
            scene.call("cudaDeviceSynchronize", at, at + 10_000_000);
            at += 10_002_000;
        }
    }
    // Copies and their calls take 1 ms of 90.
    cured("tiny-copies", &mut scene);
}

#[test]
fn idle_time_without_a_rule_is_told_with_where_to_look() {
    let scene = || {
        let mut scene = Scene::new();
        for i in 0..10 {
            scene.kernel("k", 1, i * 1_000_000, i * 1_000_000 + 100_000);
        }
        scene
    };
    let found = sick("no-cure", &mut scene());
    assert_eq!(found.bound_ns, 9 * 900_000);
    found
        .title
        .must_begin("an unknown cause keeps the GPU idle for 8.10 ms");
    assert!(found.advice.contains("no CUDA calls"), "{}", found.advice);
    // Nothing more could have been recorded.
    let mut scene = scene();
    scene.call("cudaStreamSynchronize", 0, 9_000_000);
    assert_eq!(sick("no-cure", &mut scene).advice, "No record says why.");
}

/// Ten kernels whose launches are unknown, and between each two of them a call that `op` holds.
#[test]
fn unknown_idle_time_is_told_by_the_waits_in_it() {
    let scene = |op: &str, call: &str| {
        let mut scene = Scene::new();
        for at in (0..10).map(|it| it * 1_000_000) {
            scene.kernel("k", 1, at, at + 100_000);
        }
        for at in (0..9).map(|it| it * 1_000_000) {
            scene.range(RangeKind::CpuOp, op, 0, at + 200_000, at + 990_000);
            scene.call(call, at + 250_000, at + 925_000);
        }
        scene
    };
    let found = sick(
        "no-cure",
        &mut scene("aten::matmul", "cudaStreamSynchronize"),
    );
    let says = found.says.expect("it");
    // 675 of each 900 us.
    let why = "67 % in 9 syncs, in aten::matmul";
    assert_eq!((says.bound, says.why.as_str()), (Bound::Unknown, why));
    let of = |op, call| sick("no-cure", &mut scene(op, call)).says;
    assert_eq!(of("aten::matmul", "cudaGetDevice"), None);
    assert_eq!(of("step", "cudaStreamSynchronize"), None);
}

#[test]
fn few_pauses_of_one_length_in_unrelated_calls_are_told_as_such() {
    // Fifty launches, one a 100 us. Before five of them the CPU is 5 ms in an operator, each time in another.
    let scene = |name: &dyn Fn(i64) -> String| {
        let mut scene = Scene::new();
        let mut at = 0;
        for i in 0..50 {
            if i % 10 == 5 {
                let length = 5_000_000 - i * 10_000;
                scene.range(RangeKind::CpuOp, &name(i), 0, at, at + length);
                at += length;
            }
            scene.call("cudaLaunchKernel", at + 90_000, at + 95_000);
            scene.kernel("k", 1, at + 100_000, at + 150_000);
            at += 100_000;
        }
        scene
    };
    let found = sick("no-cure", &mut scene(&|i| format!("aten::op_{i}")));
    // The GPU is busy for the first 50 us of each.
    let said = "5 pauses of 4.50 to 4.90 ms, each in another short call, keep the GPU idle for";
    assert!(found.title.starts_with(said), "{found:?}");
    assert!(
        found
            .says
            .is_some_and(|it| it.why.starts_with("5 pauses of"))
    );
    // The same again and again is that operator's, and a range of the program may be as long as it likes.
    for name in [|_| "aten::sort".to_owned(), |i: i64| format!("load {i}")] {
        let all = findings(&mut scene(&name)).into_iter();
        assert!(all.map(|it| it.title).all(|it| !it.contains("pauses")));
    }
}

/// Ten rounds of short kernels, 10 us of launching before each, and a pause of the CPU's own work.
#[test]
fn work_beside_launches_is_a_finding_of_its_own() {
    let scene = |kernels: Ns, work: Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for round in 0..10 {
            for _ in 0..kernels {
                scene.call("cudaLaunchKernel", at, at + 900);
                scene.kernel("k", 1, at + 6_000, at + 8_000);
                at += 12_000;
            }
            // One name holds a third of it.
            let name = match round % 3 {
                0 => "flatten".to_owned(),
                _ => format!("other{round}x"),
            };
            scene.range(RangeKind::CpuOp, &name, 0, at, at + work);
            at += work;
        }
        scene
    };
    // 2 ms of launching and 1.5 ms of work in 3.9 ms.
    sick("launch-bound", &mut scene(200, 1_500_000));
    let found = sick("no-cure", &mut scene(200, 1_500_000));
    assert_eq!(found.count, 9);
    assert!(
        (9 * 1_490_000..9 * 1_515_000).contains(&found.bound_ns),
        "{found:?}"
    );
    found
        .title
        .must_begin("CPU work keeps the GPU idle for 13.");
    found.title.must_have(", above all in flatten (4.5");
    // Of ten steps it is told what one waits.
    let of_steps = |scope: &Scope<'_>| {
        let mut scope = scope.clone();
        scope.steps = 10;
        all(&scope)
    };
    let told = in_scope(&scene(200, 1_500_000).trace(), None, PEAKS, of_steps);
    let mut told = told.into_iter();
    let found = told.find(|it| it.rule == Rule::NoCure).expect("work");
    found
        .title
        .must_have(" for 13.5 ms (36 %, 1.35 ms a step), ");
    // 8 % of the time, and what the bound of launches has already.
    cured("no-cure", &mut scene(1_500, 1_500_000));
    cured("no-cure", &mut scene(900, 1_500_000));
}

/// Ten forwards of DistributedDataParallel, in each of which the CPU packs buffers and unpacks them for 5 ms before it copies them on.
#[test]
fn buffers_that_are_sent_to_all_ranks_are_told_with_the_switch() {
    let told = |rule: &str, ops: &[&str], sent: &str| {
        let mut scene = Scene::new();
        let op = |scene: &mut Scene, name: &str, from: Ns, to: Ns| {
            scene.range(RangeKind::CpuOp, name, 0, from, to);
        };
        for at in (1..11).map(|step| step * 10_000_000) {
            let forward = "DistributedDataParallel.forward";
            op(&mut scene, forward, at - 200_000, at + 9_000_000);
            op(&mut scene, sent, at + 10_000, at + 20_000);
            let each = 5_000_000 / ops.len() as Ns;
            for (from, name) in (at + 500_000..).step_by(each as usize).zip(ops) {
                op(&mut scene, name, from, from + each);
            }
            scene.call("cudaLaunchKernel", at + 5_500_000, at + 5_505_000);
            scene.kernel("k", 1, at + 5_510_000, at + 9_900_000);
        }
        let found = sick(rule, &mut scene);
        let changes = found.change.iter().map(|it| it.to_string());
        (found.advice, changes.collect::<Vec<_>>().join("; "))
    };
    let [packs, unpacks] = ["flatten", "unflatten"].map(|it| format!("aten::{it}_dense_tensors"));
    let [packs, unpacks] = [packs.as_str(), unpacks.as_str()];
    let both = [packs, unpacks, "aten::sort"];
    for (rule, ops) in [("host-bound", &both[1..2]), ("no-cure", &both[..])] {
        let (advice, change) = told(rule, ops, "nccl:broadcast");
        advice.must_begin("DistributedDataParallel sends the model's buffers");
        assert_eq!(change, "DistributedDataParallel: broadcast_buffers=False");
        // Gradients that another wrapper packs.
        let (advice, change) = told(rule, ops, "nccl:all_reduce");
        advice.must_begin("Look at what the CPU does there");
        assert_eq!(change, "");
    }
    // Other work in such a forward.
    let (advice, _) = told("host-bound", &both[2..], "nccl:broadcast");
    advice.must_begin("Look at what the CPU does there");
}

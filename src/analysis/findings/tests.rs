//! For each rule a small timeline that triggers it, and its cured twin that does not.

mod first_use;
mod machine;
mod truth;

use super::*;
use crate::activity::{Batch, Copy, DeviceInfo, Direction, LaunchShape, MemoryKind, Span};
use crate::analysis::causes::Causes;
use crate::analysis::figures::Peaks;
use crate::analysis::graph::Graph;
use crate::analysis::testing::{Scene, h200, pinned};

const PEAKS: Peaks = Peaks {
    h2d: Some(55.0),
    d2h: Some(55.0),
    d2d: None,
    p2p: None,
};

fn findings(scene: &mut Scene) -> Vec<Finding> {
    let all = all_of(scene);
    for finding in &all {
        assert!(finding.bound_ns >= thresholds::WORTH_NS, "{finding:?}");
        // Nothing was predicted.
        assert_eq!((finding.saving_ns, finding.alone_ns), (None, None));
        assert!(!finding.evidence.is_empty() && finding.evidence.len() <= EVIDENCE_MAX);
        assert!(finding.count >= finding.evidence.len() as u64);
        assert!(
            !finding.title.is_empty() && finding.advice.ends_with('.'),
            "{finding:?}"
        );
    }
    all
}

fn all_of(scene: &mut Scene) -> Vec<Finding> {
    let trace = scene.trace();
    let calls = crate::analysis::CallIndex::new(&trace);
    let devices = figures::of(&trace, Some(&calls), None);
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    of(&Scope::new(&trace, &causes, None, &devices, PEAKS))
}

/// What the sick scene triggers and the cured one does not. Other rules may find something in both.
fn sick(rule: &str, scene: &mut Scene) -> Finding {
    let all = findings(scene);
    let names: Vec<_> = all.iter().map(|f| f.rule).collect();
    all.into_iter()
        .find(|f| f.rule == rule)
        .unwrap_or_else(|| panic!("{rule} is not among {names:?}"))
}

fn cured(rule: &str, scene: &mut Scene) {
    if let Some(found) = findings(scene).into_iter().find(|f| f.rule == rule) {
        panic!("{found:?}");
    }
}

/// A copy of 16 MiB at `gbps`, and its end.
fn large(scene: &mut Scene, copy: Copy, start: Ns, gbps: f64) -> Ns {
    let end = start + (copy.bytes as f64 / gbps) as Ns;
    scene.copy_of(copy, start, end);
    end
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let mut names: Vec<_> = RULES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), 28);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 28);
}

#[test]
fn pageable_copies() {
    let copy = |from| Copy {
        from,
        ..pinned(Direction::H2D, 1, 16 << 20)
    };
    let scene = |kind, gbps| {
        let mut scene = Scene::new();
        let end = large(&mut scene, copy(kind), 0, gbps);
        scene.kernel("k", 1, end, end + 1_000_000);
        scene
    };
    let found = sick("pageable-copy", &mut scene(MemoryKind::Pageable, 10.0));
    // 16 MiB at 10 GB/s take 1.678 ms, at the peak of 55 they take 0.305.
    assert_eq!(found.bound_ns, 1_677_721 - 305_041);
    assert_eq!((found.count, found.severity), (1, Severity::Warning));
    cured("pageable-copy", &mut scene(MemoryKind::Pinned, 55.0));
    // A little one is taken along at once.
    let mut small = Scene::new();
    let small_copy = Copy {
        bytes: 4096,
        ..copy(MemoryKind::Pageable)
    };
    small
        .copy_of(small_copy, 0, 2_000)
        .kernel("k", 1, 3_000, 9_000);
    cured("pageable-copy", &mut small);
}

#[test]
fn tiny_copies_and_the_waits_between_them() {
    let mut scene = Scene::new();
    for i in 0..100 {
        let at = i * 20_000;
        scene.call("cudaMemcpyAsync", at, at + 3_000).copy(
            Direction::D2H,
            1,
            4,
            at + 4_000,
            at + 5_500,
        );
        scene.call("cudaStreamSynchronize", at + 3_500, at + 12_000);
    }
    let trace_of = |scene: &mut Scene| scene.take();
    let batch = trace_of(&mut scene);
    let found = sick("tiny-copies", Scene::new().put(batch.clone()));
    // The first copy, and what the host does for each of the others: between two copies nothing but 8 us.
    assert_eq!((found.count, found.bound_ns), (100, 99 * 20_000 + 1_500));
    let found = sick("sync-in-loop", Scene::new().put(batch));
    // The gaps are 18.5 us each, but the waits last 8.5: without them no more is won. The last one begins
    // 2 us before the last copy ends.
    assert_eq!((found.count, found.bound_ns), (99, 100 * 8_500));
    // Work of the host between the copies stays: 50 us of it are none of theirs.
    let mut busy = Scene::new();
    for i in 0..100 {
        let at = i * 60_000;
        busy.call("cudaMemcpyAsync", at, at + 10_000).copy(
            Direction::D2H,
            1,
            4,
            at + 8_000,
            at + 9_500,
        );
    }
    assert_eq!(sick("tiny-copies", &mut busy).bound_ns, 99 * 10_000 + 1_500);
    let mut cure = Scene::new();
    cure.call("cudaMemcpyAsync", 0, 3_000)
        .copy(Direction::D2H, 1, 400, 4_000, 6_000);
    cure.call("cudaStreamSynchronize", 3_500, 12_000);
    let batch = cure.take();
    cured("tiny-copies", Scene::new().put(batch.clone()));
    cured("sync-in-loop", Scene::new().put(batch));
}

/// Eight batches of upload and kernel, one after the other or overlapped.
fn batches(is_async: bool, is_overlapped: bool) -> Scene {
    let mut scene = Scene::new();
    for i in 0..8u32 {
        let step = if is_overlapped { 300_000 } else { 600_000 };
        let at = Ns::from(i) * step;
        let copy = Copy {
            is_async,
            ..pinned(Direction::H2D, i, 15_000_000)
        };
        scene.copy_of(copy, at, at + 290_000);
        scene.kernel("k", i, at + 300_000, at + 590_000);
    }
    scene
}

#[test]
fn copies_that_the_host_waits_for_though_kernels_could_run_beside_them() {
    let found = sick("synchronous-copy", &mut batches(false, false));
    assert_eq!((found.count, found.bound_ns), (8, 8 * 290_000));
    cured("synchronous-copy", &mut batches(true, true));
    // Without anything to hide behind there is nothing to win.
    let mut alone = Scene::new();
    for i in 0..8 {
        let copy = Copy {
            is_async: false,
            ..pinned(Direction::H2D, 1, 15_000_000)
        };
        alone.copy_of(copy, i * 300_000, i * 300_000 + 290_000);
    }
    cured("synchronous-copy", &mut alone);
}

#[test]
fn engines_that_take_turns() {
    let found = sick("no-overlap", &mut batches(true, false));
    // All but what the kernels take, which are as busy as the copies.
    assert_eq!(found.bound_ns, 7 * 600_000 + 590_000 - 8 * 290_000);
    cured("no-overlap", &mut batches(true, true));
    // A program that hardly copies has nothing to overlap.
    let mut kernels = Scene::new();
    kernels
        .copy(Direction::H2D, 1, 1 << 20, 0, 20_000)
        .kernel("k", 1, 20_000, 9_000_000);
    cured("no-overlap", &mut kernels);
}

#[test]
fn allocating_between_launches() {
    let scene = |alloc: &str, free: &str| {
        let mut scene = Scene::new();
        for i in 0..20 {
            let at = i * 100_000;
            scene.call(alloc, at, at + 30_000);
            scene
                .call("cudaLaunchKernel", at + 31_000, at + 34_000)
                .kernel("k", 1, at + 40_000, at + 60_000);
            scene.call(free, at + 62_000, at + 92_000);
        }
        scene
    };
    let found = sick("alloc-in-loop", &mut scene("cudaMalloc", "cudaFree"));
    // All but the first allocation, which came before the first operation, and the last free.
    assert_eq!((found.count, found.bound_ns), (38, 38 * 30_000));
    cured(
        "alloc-in-loop",
        &mut scene("cudaMallocAsync", "cudaFreeAsync"),
    );
    // Twenty buffers allocated before the work are no loop.
    let mut ahead = Scene::new();
    ahead.kernel("warm", 1, 0, 10);
    for i in 0..20 {
        ahead.call("cudaMalloc", i * 30_000, (i + 1) * 30_000);
    }
    ahead
        .call("cudaLaunchKernel", 600_000, 603_000)
        .kernel("k", 1, 610_000, 900_000);
    cured("alloc-in-loop", &mut ahead);
}

/// Kernels of 2 us. Launched 12 us apart onto an idle GPU, or ahead of a busy one.
fn short_kernels(is_ahead: bool) -> Scene {
    let mut scene = Scene::new();
    for i in 0..100 {
        let call = i * if is_ahead { 1_000 } else { 12_000 };
        scene.call("cudaLaunchKernel", call, call + 900);
        let start = if is_ahead {
            200_000 + i * 2_100
        } else {
            call + 6_000
        };
        scene.kernel("k", 1, start, start + 2_000);
    }
    scene
}

#[test]
fn short_kernels_are_launch_bound_only_when_the_gpu_waits_for_them() {
    let found = sick("launch-bound", &mut short_kernels(false));
    assert_eq!((found.count, found.bound_ns), (99, 99 * 10_000));
    assert_eq!(found.severity, Severity::Warning);
    cured("launch-bound", &mut short_kernels(true));
}

#[test]
fn code_that_is_loaded_on_first_use() {
    let scene = |first: Ns| {
        let mut scene = Scene::new();
        scene.overhead("lazy function loading", 1_000, 1_000 + first);
        scene.call("cudaLaunchKernel", 500, 2_000 + first);
        scene.kernel("k", 1, first + 8_000, first + 3_000_000);
        scene
    };
    let found = sick("cold-start", &mut scene(300_000));
    assert_eq!((found.count, found.bound_ns), (1, 300_000));
    cured("cold-start", &mut scene(2_000));
    // What the profiler itself needs is not the program's cold start.
    let mut own = Scene::new();
    own.overhead("activity buffer request", 1_000, 300_000);
    own.kernel("k", 1, 310_000, 3_000_000);
    cured("cold-start", &mut own);
}

#[test]
fn kernels_that_leave_most_of_the_gpu_empty() {
    let scene = |blocks: u32, streams: u32| {
        let mut scene = Scene::new();
        scene.device(h200());
        let shape = LaunchShape {
            grid: [blocks, 1, 1],
            block: [256, 1, 1],
            ..LaunchShape::default()
        };
        for i in 0..8u32 {
            let at = Ns::from(i / streams) * 100_000;
            scene.shaped(shape, "reduce", i % streams, at, at + 100_000);
        }
        scene
    };
    let found = sick("under-filled-gpu", &mut scene(33, 1));
    // 33 of 132 SMs: three quarters of 800 us are wasted.
    assert_eq!((found.count, found.bound_ns), (8, 600_000));
    cured("under-filled-gpu", &mut scene(132, 1));
    cured("under-filled-gpu", &mut scene(128, 1));
    // Four beside each other fill it.
    cured("under-filled-gpu", &mut scene(33, 4));
}

#[test]
fn large_copies_below_the_calibrated_peak() {
    let scene = |gbps: f64| {
        let mut scene = Scene::new();
        let end = large(&mut scene, pinned(Direction::D2H, 1, 16 << 20), 0, gbps);
        large(&mut scene, pinned(Direction::D2H, 1, 16 << 20), end, gbps);
        scene
    };
    let found = sick("low-bandwidth", &mut scene(27.5));
    assert_eq!(found.count, 2);
    // Half the peak takes twice the time: half of it could be saved, give or take a rounding.
    assert!((found.bound_ns - 610_080).abs() <= 2, "{}", found.bound_ns);
    cured("low-bandwidth", &mut scene(52.0));
    // Two at once share the link: each sees half of it, together they fill it.
    let mut shared = Scene::new();
    for stream in 1..=2 {
        large(
            &mut shared,
            pinned(Direction::D2H, stream, 16 << 20),
            0,
            27.5,
        );
    }
    cured("low-bandwidth", &mut shared);
}

#[test]
fn a_pass_is_judged_by_what_starts_in_it() {
    let mut scene = short_kernels(false);
    // Far behind the short kernels, a pass with one long one.
    scene
        .call("cudaLaunchKernel", 5_000_000, 5_001_000)
        .kernel("k", 1, 5_010_000, 9_000_000);
    let trace = scene.trace();
    let calls = crate::analysis::CallIndex::new(&trace);
    let window = Some(Span::new(5_000_000, 10_000_000));
    let devices = figures::of(&trace, Some(&calls), window);
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let scope = Scope::new(&trace, &causes, window, &devices, PEAKS);
    assert_eq!(of(&scope), []);
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let found = sick("launch-bound", &mut short_kernels(false));
    let json = serde_json::to_value(&found).expect("json");
    assert_eq!(json["rule"], "launch-bound");
    assert_eq!(json["severity"], "warning");
    let evidence = json["evidence"][0].as_object().expect("evidence");
    for key in ["device", "stream", "start_ns", "end_ns"] {
        assert!(evidence.contains_key(key), "{key}");
    }
    assert!(json["title"].is_string() && json["advice"].is_string());
    assert_eq!(json["bound_ns"], 990_000);
    assert!(json["saving_ns"].is_null() && json["alone_ns"].is_null());
    assert_eq!(json["edit"], "graph");
}

#[test]
fn a_host_at_other_work() {
    let scene = |pause: Ns| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * 10_000_000;
            scene.call("cudaLaunchKernel", at, at + 3_000).kernel(
                "k",
                1,
                at + 6_000,
                at + 10_000_000 - pause,
            );
        }
        scene
    };
    // Gaps of 5 ms and the 6 us of a launch, which are not the host's other work.
    let found = sick("host-bound", &mut scene(5_000_000));
    assert_eq!((found.count, found.bound_ns), (9, 9 * 5_000_000));
    cured("host-bound", &mut scene(500_000));
}

#[test]
fn copying_all_the_while() {
    let scene = |kernel: Ns| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * (100_000 + kernel);
            scene.copy(Direction::H2D, 1, 4 << 20, at, at + 100_000);
            scene.kernel("k", 1, at + 100_000, at + 100_000 + kernel);
        }
        scene
    };
    let found = sick("copy-bound", &mut scene(2_000));
    assert_eq!((found.count, found.bound_ns), (10, 1_000_000));
    // With more to compute overlap is what is missing.
    let mut more = scene(50_000);
    assert_eq!(sick("no-overlap", &mut more).rule, "no-overlap");
    cured("copy-bound", &mut scene(50_000));
}

#[test]
fn copies_of_one_direction_on_two_streams() {
    let scene = |other: Direction| {
        let mut scene = Scene::new();
        for i in 0..20u32 {
            let at = Ns::from(i) * 100_000;
            let direction = if i % 2 == 0 { Direction::H2D } else { other };
            scene
                .call(
                    "cudaMemcpyAsync",
                    Ns::from(i) * 1_000,
                    Ns::from(i) * 1_000 + 900,
                )
                .copy(direction, 1 + i % 2, 4 << 20, at + 50_000, at + 150_000);
        }
        scene
    };
    let found = all_of(&mut scene(Direction::H2D));
    let found = found.iter().find(|f| f.rule == "same-direction-streams");
    assert_eq!(found.map(|f| (f.count, f.bound_ns)), Some((19, 0)));
    let cure = all_of(&mut scene(Direction::D2H));
    assert!(
        cure.iter().all(|f| f.rule != "same-direction-streams"),
        "{cure:?}"
    );
}

#[test]
fn few_waits_that_cost_much_are_told_and_few_that_cost_little_are_not() {
    // Kernels that are waited for, so many, with 3 us from the end of the one to the start of the next.
    let scene = |batches: i64, kernel: Ns| {
        let mut scene = Scene::new();
        for i in 0..batches {
            let at = i * (kernel + 3_000);
            scene.call("cudaLaunchKernel", at - 1_900, at);
            scene.kernel("k", 1, at, at + kernel);
            scene.call("cudaStreamSynchronize", at + 100, at + kernel + 1_000);
        }
        scene
    };
    // Four gaps of 3 us beside five kernels of 8: 23 %. Two of them would be two parts of a program.
    let found = sick("sync-in-loop", &mut scene(5, 8_000));
    assert_eq!(found.count, 4);
    cured("sync-in-loop", &mut scene(3, 8_000));
    // 1.5 %.
    cured("sync-in-loop", &mut scene(5, 160_000));
}

#[test]
fn communication_that_nothing_runs_beside() {
    // Steps of a kernel of 70 us and a collective of 30, on a stream of its own, and the same beside each other.
    let scene = |is_beside: bool| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * 100_000;
            scene.kernel("gemm", 1, at, at + 70_000);
            let from = at + if is_beside { 40_000 } else { 70_000 };
            let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
            scene.kernel(name, 2, from, from + 30_000);
        }
        scene
    };
    let found = sick("exposed-communication", &mut scene(false));
    assert_eq!((found.count, found.bound_ns), (10, 300_000));
    let words = "nothing runs beside them for 300 µs (30 %), ncclDevKernel_AllReduce";
    assert!(found.title.contains(words), "{}", found.title);
    cured("exposed-communication", &mut scene(true));
}

#[test]
fn pages_that_the_driver_moves() {
    let scene = |stream: u32| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("k", 1, 5_000, 1_005_000);
        scene.without_call();
        for i in 0..100 {
            let at = 10_000 + i * 9_000;
            let direction = if i % 4 == 0 {
                Direction::D2H
            } else {
                Direction::H2D
            };
            scene.copy(direction, stream, 4 << 10, at, at + 2_000);
        }
        scene
    };
    let found = sick(
        "page-migration",
        &mut scene(crate::activity::Place::NO_STREAM),
    );
    assert_eq!((found.count, found.bound_ns), (100, 200_000));
    let words = "75 times to the GPU, 25 times to the host, 400 KiB in 200 µs";
    assert!(found.title.contains(words), "{}", found.title);
    // Nobody asked for them, so that nobody can gather them.
    cured("tiny-copies", &mut scene(crate::activity::Place::NO_STREAM));
    cured("page-migration", &mut scene(2));
    // Without calls on the timeline nothing is said of them.
    let found = sick("tiny-copies", &mut scene(2));
    assert!(!found.title.contains("calls"), "{}", found.title);
}

#[test]
fn places_in_a_headline() {
    let mut found = sick("launch-bound", &mut short_kernels(false));
    found.title = "slow".to_owned();
    let mut told = |places: &[&str]| {
        found.places = places.iter().map(|&place| place.to_owned()).collect();
        found.headline()
    };
    assert_eq!(told(&["GPU 0"]), "GPU 0: slow");
    assert_eq!(
        told(&["GPU 0", "GPU 1"]),
        "GPUs 0 and 1, the worst of them: slow"
    );
    let points = ["at 4 KiB", "at 1 MiB", "at 1 GiB"];
    assert_eq!(told(&points), "at 4 KiB to 1 GiB, the worst of them: slow");
}

#[test]
fn what_two_runs_differ_by_is_silent() {
    // Pageable, but all of it takes 9 us.
    let mut scene = Scene::new();
    let copy = Copy {
        from: MemoryKind::Pageable,
        bytes: 100 << 10,
        ..pinned(Direction::H2D, 1, 0)
    };
    scene.copy_of(copy, 0, 9_000).kernel("k", 1, 9_000, 19_000);
    assert_eq!(findings(&mut scene), []);
}

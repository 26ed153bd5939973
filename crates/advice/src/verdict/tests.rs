mod leading;

use super::split::Split;
use super::*;
use activity::{
    Batch, Copy, Def, DeviceInfo, Direction, Frame, Hardware, HostCall, LaunchShape, MemoryKind,
    Metric, Mode, Occupant, Owner, Place, ProcessInfo, RangeKind, Reading, SampleDef,
    SampledThread as SeenAt, Samples, Sampling, StackSample, What,
};
use causes::Group;
use causes::graph::Graph;
use causes::stacks::LineShare;
use figures::Peaks;
use findings::{Finding, Rule, Says, Scope, Severity};
use trace::SourceKind;
use trace::testing::{Scene, Sentence, pinned, place};

fn verdicts(scene: &mut Scene) -> Vec<Verdict> {
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let devices = figures::count(&trace, None, None);
    let verdicts = find(&trace, &causes, (None, &devices), (&[], None), None);
    for verdict in &verdicts {
        assert!(verdict.ideal_ns <= verdict.span_ns, "{verdict:?}");
        assert!((0.0..=1.0).contains(&verdict.share), "{verdict:?}");
    }
    verdicts
}

/// The same by its steps.
fn by_steps(scene: &mut Scene) -> Vec<Verdict> {
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let devices = figures::count(&trace, None, None);
    let steps = steps::find(&trace, None);
    find(&trace, &causes, (None, &devices), (&steps, None), None)
}

fn verdict(scene: &mut Scene) -> Verdict {
    let mut all = verdicts(scene);
    let [whole, one] = all.as_mut_slice() else {
        panic!("one device: {all:?}");
    };
    // Of one device the whole says the same.
    assert_eq!(whole.device, None);
    whole.device = Some(0);
    assert_eq!(whole, one);
    one.clone()
}

/// Kernels of 10 us, each launched when the one before it has ended, `after` ns later. With a wait the host is
/// told of the end; without one it is at something else until then.
fn one_by_one(is_waiting: bool, after: i64) -> Scene {
    let mut scene = Scene::new();
    let mut at = 0;
    for _ in 0..50 {
        scene.call("cuLaunchKernel", at, at + 2_000);
        let start = at + 5_000;
        scene.kernel("step", 1, start, start + 10_000);
        let end = start + 10_000 + 1_000;
        if is_waiting {
            scene.call("cuStreamSynchronize", at + 2_500, end);
        }
        at = end + after;
    }
    scene
}

#[test]
fn waiting_for_each_kernel_is_sync_bound() {
    // 49 gaps of 10 us: 1 us until the wait returns, 4 us of the host, 5 us until the next one starts.
    let v = verdict(&mut one_by_one(true, 4_000));
    assert_eq!(v.bound_by, Bound::Sync);
    let idle = 49.0 * 10_000.0;
    assert_eq!(v.span_ns, 50 * 10_000 + 49 * 10_000);
    assert!((v.share - idle / v.span_ns as f64).abs() < 1e-9, "{v:?}");
    assert_eq!(v.ideal_ns, 50 * 10_000);
    assert_eq!(
        v.text,
        "sync-bound: GPU idle 49 % of 990 µs, in 49 syncs, mostly cuStreamSynchronize"
    );
}

#[test]
fn memsets_that_take_most_are_bound_by_memory() {
    let told = |kernel: Ns| {
        let mut scene = Scene::new();
        scene.memset(1, 1 << 30, 0, 600_000);
        scene.kernel("k", 1, 600_000, 600_000 + kernel);
        verdict(&mut scene).text
    };
    let memsets = "GPU-bound: memsets of 1 GiB, bound by memory, run 60 % of 1.00 ms";
    assert_eq!(told(400_000), memsets);
    // What the CPU does for less time than that is less to be named.
    let waits = |at: Ns| {
        let mut scene = Scene::new();
        scene.memset(1, 1 << 30, 0, 600_000);
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 7_000, at + 8_000);
        verdict(&mut scene).text
    };
    let memsets = "GPU-bound: memsets of 1 GiB, bound by memory, run 60 % of 1.00 ms";
    assert_eq!(waits(992_000), memsets);
    let text = waits(1_992_000);
    assert!(text.starts_with("CPU-bound: GPU idle 70 %"), "{text}");
    told(900_000).must_begin("GPU-bound: kernels run 60 %");
}

/// Thirty steps of 42 ms, 40 of which lie in one gap before the same kernel, and then forty of 2 ms: each has the same ten kernels.
#[test]
fn slower_steps_say_where_each_has_its_gap() {
    let beside = |gap_before: fn(i64) -> usize, size: fn(i64) -> i64| {
        let mut scene = Scene::new();
        let mut at = 0;
        for step in 0..70 {
            for (i, name) in ["a", "b", "c", "d", "attention", "f", "g", "h", "i", "j"]
                .into_iter()
                .enumerate()
            {
                at += if step < 30 && i == gap_before(step) {
                    40_000_000
                } else {
                    0
                };
                scene.call("cudaLaunchKernel", at, at + 5_000);
                let grid = [if i == 2 { size(step) as u32 } else { 64 }, 1, 1];
                let shape = LaunchShape {
                    grid,
                    block: [128, 1, 1],
                    ..LaunchShape::default()
                };
                scene.shaped(shape, name, 1, at + 7_000, at + 100_000);
                at += 200_000;
            }
        }
        by_steps(&mut scene)[0].beside.join(" · ")
    };
    let told = beside(|_| 4, |_| 64);
    let expected = "with 30 slower steps: in each the GPU waits once for 40.1 ms before attention";
    assert!(told.contains(expected), "{told}");
    let told = beside(|step| step as usize % 10, |_| 64);
    assert!(!told.contains("waits once"), "{told}");
    // Each slower step has one block more than that before it, and the others repeat these sizes.
    let told = beside(|_| 4, |step| 64 + step % 30);
    let expected = "each has a new size, which costs 40.1 ms on the CPU before attention; known sizes cost none";
    assert!(told.contains(expected), "{told}");
    // A size that lasts for two steps, and others that are new later, too: that is not why.
    for size in [|step: i64| 64 + step % 30 / 2, |step: i64| 64 + step] {
        let told = beside(|_| 4, size);
        assert!(told.contains("waits once"), "{told}");
    }
}

#[test]
fn one_short_operation_is_too_little_to_judge() {
    let one = |length: Ns| {
        let mut scene = Scene::new();
        scene.call("cuLaunchKernel", 0, 2_000);
        scene.kernel("foo", 1, 3_000, 3_000 + length);
        verdict(&mut scene)
    };
    let short = one(2_180);
    assert_eq!(short.bound_by, Bound::Nothing);
    assert_eq!(
        short.text,
        "too little to judge: only one operation in 2.18 µs"
    );
    assert_eq!(one(2_000_000).bound_by, Bound::Compute);
    // Three or five kernels of 2 us, one each 10.
    let few = |count: i64| {
        let mut scene = Scene::new();
        for at in (0..count).map(|it| it * 10_000) {
            scene.call("cuLaunchKernel", at, at + 2_000);
            scene.kernel("foo", 1, at + 3_000, at + 5_000);
        }
        verdict(&mut scene).text
    };
    assert_eq!(few(3), "too little to judge: only 3 operations in 22.0 µs");
    assert!(few(5).starts_with("launch-bound"), "{}", few(5));
    // A memset is an operation, too.
    let mut scene = Scene::new();
    scene.memset(1, 4, 0, 2_000);
    scene.kernel("foo", 1, 4_000, 6_000);
    scene.copy_of(pinned(Direction::D2H, 1, 4), 8_000, 10_000);
    let text = verdict(&mut scene).text;
    assert_eq!(text, "too little to judge: only 3 operations in 10.0 µs");
}

/// Sixteen kernels, before each of which the CPU is in one of eight ranges for 9 of 10 ms.
#[test]
fn ranges_that_differ_in_numbers_alone_are_one_place() {
    let told = |name: fn(i64) -> String| {
        let mut scene = Scene::new();
        for i in 0..16 {
            let at = i * 10_000_000;
            scene.range(RangeKind::Nvtx, &name(i % 8), 0, at, at + 9_000_000);
            scene.call("cuLaunchKernel", at + 9_001_000, at + 9_003_000);
            scene.kernel("k", 1, at + 9_004_000, at + 9_900_000);
        }
        verdict(&mut scene).text
    };
    let layers = told(|i| format!("load_layer_{i}"));
    assert!(layers.ends_with("waiting for load_layer_#"), "{layers}");
    let others = told(|i| "x".repeat(i as usize + 1));
    assert!(others.ends_with("in CPU work"), "{others}");
    // Of four each holds a quarter: one of them is told.
    let four = told(|i| "y".repeat(i as usize % 4 + 1));
    assert!(four.contains("in CPU work, above all y"), "{four}");
}

/// Sixteen kernels, before each of which the CPU is in one of these calls for 9 of 10 ms.
#[test]
fn calls_for_memory_of_both_sides_are_told_together() {
    let told = |calls: [&str; 4]| {
        let mut scene = Scene::new();
        for i in 0..16 {
            let at = i * 10_000_000;
            scene.call(calls[i as usize % 4], at, at + 9_000_000);
            scene.call("cudaLaunchKernel", at + 9_001_000, at + 9_003_000);
            scene.kernel("k", 1, at + 9_004_000, at + 9_900_000);
        }
        verdict(&mut scene).text
    };
    told(["cudaMalloc", "cudaHostAlloc", "cudaFree", "cudaFreeHost"])
        .must_end("in allocations, pinning and frees");
    told(["cudaMalloc", "cudaMalloc", "cudaFree", "cudaFree"]).must_have("waiting for cuda");
}

/// Six trials of a convolution, each of a kernel of its own that is waited for, of 40 us every 100: the first shape of a program.
#[test]
fn what_a_library_tries_first_is_a_cold_start() {
    let verdict = |operator: &str| {
        let mut scene = Scene::new();
        for i in 0..12 {
            let at = i * 100_000;
            scene.call("cudaLaunchKernel", at + 10_000, at + 14_000);
            scene.kernel(&format!("trial{i}"), 1, at + 20_000, at + 60_000);
            scene.call("cudaEventSynchronize", at + 15_000, at + 62_000);
        }
        scene.range(RangeKind::CpuOp, operator, 0, 1_000, 1_199_000);
        verdict(&mut scene)
    };
    let searched = verdict("aten::cudnn_convolution");
    // 11 pauses of 60 us between 12 kernels of 40.
    assert!(
        (searched.share - 660.0 / 1_140.0).abs() < 1e-9,
        "{searched:?}"
    );
    searched.text.must_begin("cold start: GPU idle 58 %");
    let plain = verdict("aten::item");
    assert!(!plain.text.starts_with("cold start"), "{}", plain.text);
}

#[test]
fn communication_that_takes_more_than_launching_leaves_a_busy_gpu_busy() {
    // One that computes for longer is kept waiting from a third on. Of 50 times 100 us a kernel takes 55 and an all-reduce the given time; the rest it waits for the next launch.
    let bound = |collective: Ns| {
        let mut scene = Scene::new();
        for i in 0..50 {
            let at = i * 100_000;
            scene.call("cuLaunchKernel", at - 5_000, at - 3_000);
            let end = at + 55_000;
            scene.kernel("gemm", 1, at, end);
            scene.call("cuLaunchKernel", at + 1_000, at + 3_000);
            scene.kernel(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                1,
                end,
                end + collective,
            );
        }
        verdict(&mut scene).bound_by
    };
    assert_eq!(
        [bound(23_000), bound(10_000)],
        [Bound::Compute, Bound::Launch]
    );
}

/// Idle time by group, as a legend has it.
fn by_group(causes: &Causes<'_>) -> [Ns; Group::ALL.len()] {
    let mut sums = [0; Group::ALL.len()];
    for (gap, pieces) in causes.gaps_with_pieces(0, None) {
        for piece in &*pieces {
            sums[causes.group(gap, piece) as usize] += piece.span.len();
        }
    }
    sums
}

#[test]
fn the_groups_of_a_legend_are_the_parts_of_a_verdict() {
    let scenes = [
        (true, 4_000),
        (false, 60_000),
        (true, 500_000),
        (false, 4_000_000),
    ];
    for (mut scene, rest) in scenes.map(|(waits, after)| (one_by_one(waits, after), after)) {
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        let devices = figures::count(&trace, None, None);
        let split = Split::of(&trace, &causes, &devices[0], None, None);
        let [host, launch, sync, set_up, queue, others, profiler, unknown] = by_group(&causes);
        assert_eq!((split.groups, others + profiler), (by_group(&causes), 0));
        assert_eq!(
            [split.time_of(Bound::Host), split.time_of(Bound::Launch)],
            [host + set_up, launch]
        );
        assert_eq!(
            [
                split.time_of(Bound::Sync),
                split.time_of(Bound::Unknown),
                queue
            ],
            [sync, unknown, 0]
        );
        // 49 gaps of the host's time and of 6 us around it, by hand.
        let gaps = 49 * (rest + 6_000);
        assert_eq!(host + launch + sync + set_up + unknown, gaps);
        let [of_host, of_launch] = [rest >= 500_000, rest == 60_000];
        assert_eq!([host > gaps / 2, launch > gaps / 2], [of_host, of_launch]);
    }
}

#[test]
fn the_part_in_a_headline_is_that_of_what_it_names() {
    // Ten kernels of 100 us. After each the CPU allocates for 400 us, then does 1.49 ms of its own, and launches 10 us
    // before the next: of nine pauses of 1.9 ms and 1 ms of kernels, 18.1 ms, its own work is 13.41.
    let mut scene = Scene::new();
    for at in (0..10).map(|i| i * 2_000_000) {
        scene.call("cudaLaunchKernel", at - 10_000, at - 5_000);
        scene.kernel("k", 1, at, at + 100_000);
        scene.call("cudaMalloc", at + 100_000, at + 500_000);
    }
    let v = verdict(&mut scene);
    assert_eq!(
        v.text,
        "CPU-bound: GPU idle 94 % of 18.1 ms, 74 % waiting for untraced CPU work"
    );
}

#[test]
fn what_a_wait_does_not_last_is_not_its_fault() {
    // The waits last 13.5 us, the gaps 506 us: without the waits the host would be at work all the same. That is no part of
    // a dense sequence of launches.
    let v = verdict(&mut one_by_one(true, 500_000));
    assert_eq!(v.bound_by, Bound::Host);
    // Without the 5 us in which a launch is on its way.
    let rest = 49.0 * (501_000.0 - 13_500.0);
    assert!((v.share - rest / v.span_ns as f64).abs() < 1e-9, "{v:?}");
}

#[test]
fn a_cpu_that_works_for_long_after_a_wait_is_what_binds() {
    // Kernels of 60 ms that are waited for, with 82 ms of the CPU's own work behind: the waits would hide 60 of them.
    let mut scene = Scene::new();
    for at in (0..10).map(|i| i * (60_006_000 + 82_000_000)) {
        scene.call("cuLaunchKernel", at, at + 2_000);
        scene.kernel("step", 1, at + 5_000, at + 60_005_000);
        scene.call("cuStreamSynchronize", at + 2_500, at + 60_006_000);
    }
    let v = verdict(&mut scene);
    assert_eq!(v.bound_by, Bound::Host, "{v:?}");
    let work = 9.0 * 82_000_000.0;
    assert!((v.share - work / v.span_ns as f64).abs() < 1e-4, "{v:?}");
}

#[test]
fn launches_that_do_not_keep_up_and_a_host_at_work() {
    let v = verdict(&mut one_by_one(false, 40_000));
    assert_eq!(v.bound_by, Bound::Launch);
    // 50 kernels of 10 us, 49 gaps of 46 us, of which the host is outside of calls for 41: 2,009 of 2,754 us.
    assert_eq!(
        v.text,
        "launch-bound: GPU idle 82 % of 2.75 ms, while the CPU launches 50 kernels of 10.0 µs"
    );
    let v = verdict(&mut one_by_one(false, 4_000_000));
    assert_eq!(v.bound_by, Bound::Host);
    assert_eq!(
        v.text,
        "CPU-bound: GPU idle 100 % of 197 ms, waiting for untraced CPU work"
    );
}

/// A graph of thirty nodes is launched with one call: twenty kernels are launched beside. Where records of graphs are missing nothing
/// is told.
#[test]
fn nodes_of_a_graph_are_no_launches() {
    let scene = |nodes: i64| {
        let mut scene = Scene::new();
        for i in 0..20 {
            let at = i * 60_000;
            scene.call("cudaLaunchKernel", at, at + 4_000);
            scene.kernel("sample", 1, at + 6_000, at + 8_000);
        }
        scene.call("cudaGraphLaunch", 1_200_000, 1_204_000);
        for node in 0..nodes {
            let start = 1_206_000 + node * 2_000;
            scene.kernel("node", 1, start, start + 2_000);
        }
        scene.call("cudaGraphLaunch", 1_300_000, 1_304_000);
        if nodes > 0 {
            scene.kernel("node", 1, 1_306_000, 1_308_000);
        }
        scene
    };
    let text = verdict(&mut scene(30)).text;
    assert!(text.contains("the CPU launches 20 kernels"), "{text}");
    let v = verdict(&mut scene(0));
    assert_eq!((v.bound_by, v.share), (Bound::Unknown, 0.0));
    assert_eq!(
        v.text,
        "no verdict: 2 of 2 graph launches have no GPU records"
    );
}

#[test]
fn kernels_queued_ahead_are_gpu_bound() {
    let mut scene = Scene::new();
    for i in 0..100 {
        scene.call("cuLaunchKernel", i * 3_000, i * 3_000 + 2_000);
        let name = if i % 4 == 0 { "softmax" } else { "gemm" };
        let start = 1_000_000 + i * 10_000;
        scene.kernel(name, 1, start, start + 9_000);
    }
    let v = verdict(&mut scene);
    assert_eq!(v.bound_by, Bound::Compute);
    assert!((v.share - 900.0 / 999.0).abs() < 1e-9, "{v:?}");
    // 900 us of 999 us, three quarters of them in one kernel.
    assert_eq!(
        v.text,
        "GPU-bound: kernels run 90 % of 999 µs, 75 % of their time in gemm"
    );
}

#[test]
fn several_kernels_of_one_kind_of_work_are_told_together() {
    // Of five kernels of 9 us three multiply matrices in two sizes, two do something else: 60 %, and of those two thirds are one.
    let mut scene = Scene::new();
    let names = [
        "nvjet_tst_128",
        "nvjet_tst_64",
        "nvjet_tst_128",
        "softmax",
        "add",
    ];
    for i in 0..100 {
        scene.call("cuLaunchKernel", i * 3_000, i * 3_000 + 2_000);
        let start = 1_000_000 + i * 10_000;
        scene.kernel(names[i as usize % 5], 1, start, start + 9_000);
    }
    assert_eq!(
        verdict(&mut scene).text,
        "GPU-bound: kernels run 90 % of 999 µs, 60 % of their time in matrix products, mostly nvjet_tst_128"
    );
}

#[test]
fn a_headline_is_of_the_time_that_was_recorded() {
    let mut scene = Scene::new();
    for i in 0..100 {
        scene.call("cuLaunchKernel", i * 3_000, i * 3_000 + 2_000);
        let start = 1_000_000 + i * 10_000 + i / 50 * 9_000_000;
        scene.kernel("gemm", 1, start, start + 9_000);
    }
    let mut batch = scene.take();
    let modes = [(0, true), (2_000_000, false), (10_000_000, true)];
    batch.defs.extend(modes.map(|(from, recording)| {
        let waits = false;
        Def::Mode(Mode {
            from,
            recording,
            waits,
        })
    }));
    scene.put(batch);
    // Two halves of 499 us, in which kernels run for 450 us each.
    let text = verdict(&mut scene).text;
    assert!(
        text.starts_with("GPU-bound: kernels run 90 % of the 998 µs recorded"),
        "{text}"
    );
}

#[test]
fn kinds_of_an_optimizers_kernels_are_told_as_one() {
    let mut scene = Scene::new();
    for i in 0..10 {
        let at = i * 100_000;
        scene.kernel("gemm", 1, at, at + 30_000);
        for (kind, at) in [("Add", at + 30_000), ("Mul", at + 60_000)] {
            let name = format!("void at::native::multi_tensor_apply_kernel<{kind}>");
            scene.kernel(&name, 1, at, at + 30_000);
        }
    }
    let told = "kernels run 91 % of 990 µs, 67 % of their time in multi_tensor_apply, as an optimizer's step";
    let text = verdict(&mut scene).text;
    assert!(text.contains(told), "{text}");
}

#[test]
fn a_kernel_on_few_sms_says_on_how_many() {
    let text = |launches: &[(u32, u32)]| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            multiprocessors: 108,
            ..DeviceInfo::default()
        });
        for (at, &(stream, blocks)) in (1..).zip(launches) {
            let shape = LaunchShape {
                grid: [blocks, 1, 1],
                ..LaunchShape::default()
            };
            let start = at * 50_000 / Ns::from(launches.iter().map(|it| it.0).max().unwrap_or(1));
            scene.shaped(shape, "add", stream, start, start + 50_000);
        }
        verdict(&mut scene).text
    };
    let said = "GPU-bound: kernels run 100 % of 100 µs, all in add";
    assert_eq!(text(&[(1, 1), (1, 1)]), format!("{said} on 1 of 108 SMs"));
    let shape = LaunchShape {
        grid: [1; 3],
        block: [1; 3],
        ..LaunchShape::default()
    };
    let mut scene = Scene::new();
    scene.shaped(shape, "add", 1, 0, 50_000);
    let alone = verdict(scene.shaped(shape, "add", 1, 50_000, 100_000)).text;
    assert_eq!(alone, format!("{said} on 1 thread"));
    let most = "on at most 53 of 108 SMs";
    assert_eq!(text(&[(1, 1), (1, 53)]), format!("{said} {most}"));
    assert_eq!(text(&[(1, 1), (1, 54)]), said, "half of them are many");
    // Beside each other they may fill it.
    assert!(!text(&[(1, 1), (2, 1), (1, 1), (2, 1)]).contains("SMs"));
}

#[test]
fn copying_all_the_while_is_copy_bound() {
    let mut scene = Scene::new();
    for i in 0..20 {
        let at = i * 100_000;
        scene.copy(Direction::H2D, 1, 4 << 20, at, at + 95_000);
        scene.kernel("k", 1, at + 95_000, at + 100_000);
    }
    let v = verdict(&mut scene);
    assert_eq!(v.bound_by, Bound::Copy);
    assert!((v.share - 0.95).abs() < 1e-9);
    assert_eq!(v.ideal_ns, 20 * 95_000);
    v.text
        .must_begin("copy-bound: H2D copies run 95 % of 2.00 ms, not overlapped by kernels");
    // Copies that are too few to be named are copies all the same.
    let mut scene = Scene::new();
    for i in 0..20 {
        let at = i * 100_000;
        scene.copy(Direction::H2D, 1, 4 << 20, at, at + 90_000);
        scene.copy(Direction::D2D, 1, 4 << 20, at + 90_000, at + 95_000);
        scene.kernel("k", 1, at + 95_000, at + 100_000);
    }
    let text = verdict(&mut scene).text;
    let said = "copy-bound: copies run 95 % of 2.00 ms (H2D 90 %), not overlapped by kernels";
    assert!(text.starts_with(said), "{text}");
    // The same copies with kernels beside them most of the time.
    let mut scene = Scene::new();
    for i in 0..20 {
        let at = i * 100_000;
        scene.copy(Direction::H2D, 1, 4 << 20, at, at + 100_000);
        scene.kernel("k", 2, at, at + 80_000);
    }
    let v = verdict(&mut scene);
    assert_eq!(v.bound_by, Bound::Copy);
    v.text.must_end("overlapped by kernels for 80 % of it");
}

#[test]
fn a_device_that_nothing_explains_says_so() {
    let mut scene = Scene::new();
    for i in 0..10 {
        scene.kernel("k", 1, i * 100_000, i * 100_000 + 10_000);
    }
    assert_eq!(verdict(&mut scene).bound_by, Bound::Unknown);
    let nothing = verdicts(&mut Scene::new());
    assert_eq!(nothing.len(), 1);
    assert_eq!(nothing[0].bound_by, Bound::Nothing);
}

#[test]
fn a_chain_across_streams_is_the_least_it_can_take() {
    // Kernels of 10 us on two streams, each waiting for the other stream's: no engine is busy at once, and no
    // number of streams would help.
    let mut scene = Scene::new();
    for i in 0..10u32 {
        let (stream, other) = (1 + i % 2, 1 + (i + 1) % 2);
        let at = i64::from(i) * 1_000;
        if i > 0 {
            scene.call("cuStreamWaitEvent", at, at + 100).sync(
                activity::SyncKind::StreamWaitEvent,
                Some(stream),
                Some(i - 1),
                at,
                at + 100,
            );
        }
        let start = 20_000 + i64::from(i) * 12_000;
        scene.call("cuLaunchKernel", at + 200, at + 400);
        scene.copy(
            if other == 1 {
                Direction::D2H
            } else {
                Direction::H2D
            },
            stream,
            1 << 10,
            start,
            start + 10_000,
        );
        scene
            .call("cuEventRecord", at + 500, at + 600)
            .event(stream, i, at + 550);
    }
    let v = verdict(&mut scene);
    assert_eq!(v.ideal_ns, 100_000, "{v:?}");
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let v = verdict(&mut one_by_one(false, 4_000_000));
    let json = serde_json::to_value(&v).expect("json");
    assert_eq!(json["bound_by"], "host");
    assert_eq!(json["device"], 0);
    for key in ["share", "ideal_ns", "text"] {
        assert!(!json[key].is_null(), "{key}");
    }
}

/// Kernels of 10 us, each waited for, and then 5 ms of the host's: `loop.py:4`, where it was seen every 10 ms, in these functions of libraries.
fn sleeping_in(inner: &[(&str, &str)]) -> Verdict {
    let mut scene = one_by_one(true, 5_000_000);
    let mut trace = scene.trace();
    let frames = [("/w/loop.py", "main")].into_iter().chain(inner.to_vec());
    let defs = frames.zip(1_u32..).flat_map(|((file, function), id)| {
        let frame = Frame {
            file: file.to_owned(),
            function: function.to_owned(),
            line: 4,
        };
        let caller = id - 1;
        [
            SampleDef::Frame { id, frame },
            SampleDef::Stack {
                id,
                caller,
                frame: id,
            },
        ]
    });
    let look = |i: i64| StackSample {
        // In the middle of each other sleep.
        time: 16_000 + 2_500_000 + 2 * i * 5_016_000,
        changed: vec![SeenAt {
            thread: 0,
            stack: 1 + inner.len() as u32,
            is_running: false,
        }],
    };
    trace.apply(Batch {
        samples: Some(Samples {
            series: 0,
            defs: defs.collect(),
            looks: (0..20).map(look).collect(),
            sampling: Sampling {
                hz: 100,
                ..Sampling::default()
            },
        }),
        ..Batch::default()
    });
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let devices = figures::count(&trace, None, None);
    find(&trace, &causes, (None, &devices), (&[], None), None).remove(0)
}

#[test]
fn a_loop_that_waits_a_little_and_sleeps_long_is_host_bound_at_the_sleep() {
    let v = sleeping_in(&[]);
    assert_eq!(v.bound_by, Bound::Host, "{v:?}");
    // 49 gaps of 5,006 us, of which the ends of the waits, of 1 us each, and the 5 us that launches take are no part.
    let rest = 49.0 * (5_006_000.0 - 1_000.0 - 5_000.0);
    assert!((v.share - rest / v.span_ns as f64).abs() < 1e-9, "{v:?}");
    assert!(v.text.ends_with("waiting for main at loop.py:4"), "{v:?}");
    let seen = "20 of 20 stack samples saw the CPU in main at loop.py:4.";
    assert_eq!(v.details()[0], seen);
}

#[test]
fn who_waits_for_a_batch_waits_for_the_loader_and_not_for_its_queue() {
    let packages = "/w/lib/python3/site-packages";
    let loader = format!("{packages}/torch/utils/data/dataloader.py");
    let queues = "/usr/lib/python3/multiprocessing/queues.py";
    let v = sleeping_in(&[(&loader, "__next__"), (queues, "Queue.get")]);
    v.text.must_end("waiting for DataLoader at loop.py:4");
    // Of other libraries the deepest function is named.
    let hub = format!("{packages}/hub/model.py");
    let v = sleeping_in(&[(&hub, "generate"), (queues, "Queue.get")]);
    v.text.must_end("waiting for Queue.get at loop.py:4");
}

#[test]
fn idle_time_that_nothing_explains_outweighs_less_that_the_host_explains() {
    // Of so many us 450 are busy, 230 the host's before a launch, the others nobody's: those kernels have no call.
    let of = |whole: Ns| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * whole) {
            scene.call("cuLaunchKernel", at - 6_000, at - 4_000);
            scene.kernel("k", 1, at, at + 200_000);
            scene.without_call();
            scene.kernel("k", 1, at + whole - 480_000, at + whole - 230_000);
        }
        verdict(&mut scene)
    };
    // What has a cure goes before next to as much that has none.
    assert_eq!(of(920_000).bound_by, Bound::Launch);
    let v = of(1_000_000);
    assert_eq!(v.bound_by, Bound::Unknown, "{v:?}");
    // Kernels run 8.98 of 19.77 ms.
    assert_eq!(
        v.text,
        "unknown: GPU idle 54 % of 19.8 ms, 32 % for no recorded reason"
    );
}

#[test]
fn what_processes_exchange_behind_a_wait_is_no_matter_of_the_wait() {
    // Rounds of a kernel of 400 us, a wait for it, and 600 us in a range.
    let of = |range: &str| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 1_000_000) {
            scene.call("cudaLaunchKernel", at - 8_000, at - 4_000);
            scene.kernel("jacobi", 1, at, at + 400_000);
            scene.call("cudaStreamSynchronize", at, at + 405_000);
            scene.range(RangeKind::Nvtx, range, 0, at + 406_000, at + 990_000);
        }
        verdict(&mut scene)
    };
    let exchanges = of("MPI_Sendrecv");
    assert_eq!(exchanges.bound_by, Bound::Host, "{exchanges:?}");
    exchanges.text.must_end("waiting for MPI_Sendrecv");
    assert_eq!(of("pack").bound_by, Bound::Sync);
}

#[test]
fn a_wait_for_processes_that_start_later_is_told_as_such() {
    // 400 ms in MPI_Recv between two kernels; another process calls CUDA for the first time at this moment.
    let of = |starts: Ns| {
        let (mut scene, mut other) = (Scene::new(), Scene::new());
        for at in [0, 401_000_000] {
            scene.call("cudaLaunchKernel", at, at + 4_000);
            scene.kernel("jacobi", 1, at + 6_000, at + 106_000);
        }
        scene.range(RangeKind::Nvtx, "MPI_Recv", 0, 200_000, 400_900_000);
        other.call("cudaMalloc", starts, starts + 100_000);
        let mut trace = scene.trace();
        trace.apply(Batch {
            process: 1,
            ..other.take()
        });
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        let devices = figures::count(&trace, None, None);
        let found = find(&trace, &causes, (None, &devices), (&[], None), None);
        found[0].text.clone()
    };
    of(390_000_000).must_end("waiting for processes that start later");
    of(0).must_end("waiting for MPI_Recv");
}

#[test]
fn work_that_goes_on_at_another_rate_is_no_start_up() {
    // Kernels in a row: so many of 11 ms, and then 200 of 9.
    let mut scene = Scene::new();
    let mut at = 0;
    for takes in [11_000_000; 150].into_iter().chain([9_000_000; 200]) {
        scene.kernel("mine", 1, at, at + takes);
        at += takes + 10_000;
    }
    let verdict = by_steps(&mut scene).remove(0);
    let beside = verdict.beside.join(" · ");
    assert!(!beside.contains("start-up"), "{beside}");
}

#[test]
fn one_slow_launch_is_no_matter_of_launching_often() {
    let mut scene = Scene::new();
    scene.call("cuLaunchKernel", 0, 3_000);
    scene.kernel("k", 1, 5_000, 25_000);
    scene.call("cuLaunchKernel", 30_000, 6_530_000);
    scene.kernel("new", 1, 6_532_000, 6_552_000);
    let v = verdict(&mut scene);
    assert_eq!(v.bound_by, Bound::Host);
    // It is the first launch of its kernel: 6.5 of 6.507 ms idle.
    let told = "cold start: GPU idle 99 % of 6.55 ms, loading GPU code";
    assert_eq!(v.text, told);
}

#[test]
fn the_pause_behind_a_steps_last_operation_is_the_steps() {
    // Each 100 us three kernels of 10 us at once, then nothing for 70 us: 70 % idle, however many steps are looked at.
    let mut scene = Scene::new();
    for i in 0..6 {
        let at = 10_000 + i * 100_000;
        for (nth, name) in (0..).zip(["embed", "layer", "loss"]) {
            let call = at - 9_000 + nth * 2_000;
            scene.call("cuLaunchKernel", call, call + 1_000);
            let start = at + nth * 10_000;
            scene.kernel(name, 1, start, start + 10_000);
        }
    }
    let all = by_steps(&mut scene);
    let count = all[0].steps.expect("steps") as i64;
    assert!(count > 1, "{all:?}");
    assert_eq!(all[0].span_ns, count * 100_000);
    all[0].text.must_have("GPU idle 70 % of each 100 µs step");
}

#[test]
fn the_time_of_a_marked_step_before_its_first_operation_is_the_steps() {
    // The CPU prepares for 300 us of 400; what it launches then keeps the GPU busy for 100.
    let step = |name: &str| {
        let mut scene = Scene::new();
        scene.range(RangeKind::Nvtx, name, 0, 0, 400_000);
        scene.range(RangeKind::Nvtx, "prepare", 0, 1_000, 290_000);
        for i in 0..10 {
            scene.call("cuLaunchKernel", 295_000 + i * 1_000, 296_000 + i * 1_000);
            let start = 300_000 + i * 10_000;
            scene.kernel(&format!("k{i}"), 1, start, start + 10_000);
        }
        verdict(&mut scene)
    };
    let marked = step("ProfilerStep#6");
    assert_eq!((marked.span_ns, marked.ideal_ns), (400_000, 100_000));
    marked
        .text
        .must_have("GPU idle 75 % of the 400 µs step, 72 % waiting for prepare");
    // What any other range holds is no step.
    assert_eq!(step("main").span_ns, 100_000);
}

#[test]
fn a_marked_step_that_work_of_before_runs_into_begins_with_its_first_operation() {
    let mut scene = Scene::new();
    scene.range(RangeKind::Nvtx, "ProfilerStep#3", 0, 0, 400_000);
    scene.kernel("old", 1, 250_000, 300_000);
    scene.call("cuLaunchKernel", 20_000, 25_000);
    scene.kernel("k", 1, 300_000, 500_000);
    let v = verdict(&mut scene);
    assert_eq!((v.span_ns, v.bound_by), (250_000, Bound::Compute), "{v:?}");
}

#[test]
fn what_the_profiler_takes_is_named_beside_what_runs() {
    // Two kernels of 300 us in 2.59 ms, and 1.96 ms between them in which the profiler was at work on itself.
    let mut scene = Scene::new();
    scene.call("cudaLaunchKernel", 0, 5_000);
    scene.kernel("k", 1, 10_000, 310_000);
    scene.overhead("Activity Buffer Request", 320_000, 2_280_000);
    scene.call("cudaLaunchKernel", 2_290_000, 2_295_000);
    scene.kernel("k", 1, 2_300_000, 2_600_000);
    let v = verdict(&mut scene);
    let said = "GPU-bound: kernels run 23 % of 2.59 ms (profiler overhead 76 %), all in k";
    assert_eq!((v.bound_by, &v.text[..said.len()]), (Bound::Compute, said));
}

#[test]
fn where_all_launches_failed_no_kernel_ran() {
    let mut scene = Scene::new();
    let name = scene.name("cudaLaunchKernel");
    let (thread, code) = (1, 209);
    scene.push(0, 90_000, 0, What::Call(HostCall { thread, name, code }));
    scene.call("cudaMemcpyAsync", 95_000, 96_000);
    scene.copy(Direction::D2H, 1, 4, 98_000, 99_000);
    let told = verdict(&mut scene);
    let said = "no kernel ran: 1 of 1 launches failed (error 209: built for other GPUs)";
    assert_eq!((told.text.as_str(), told.bound_by), (said, Bound::Nothing));
}

#[test]
fn memory_says_where_tensors_were_without_any_operation() {
    let told = |has_tensors| {
        let mut scene = Scene::new();
        scene.range(RangeKind::CpuOp, "aten::mm", 0, 0, 1_000);
        let mut batch = scene.take();
        batch.defs.push(Def::Process(ProcessInfo {
            has_tensors,
            ..ProcessInfo::default()
        }));
        nothing_ran(&scene.put(batch).trace())
    };
    let on_cpu = "the GPU had no work: all tensors are on the CPU";
    assert_eq!(told(Some(false)), on_cpu);
    told(Some(true)).must_begin("tensors are on a GPU, but");
    assert_eq!(told(None), "no GPU operation was recorded");
    let of = |name: &str| {
        let mut scene = Scene::new();
        scene.range(RangeKind::CpuOp, name, 0, 0, 1_000);
        nothing_ran(&scene.trace())
    };
    of("aten::mkldnn_convolution").must_end(": convolutions ran on the CPU");
    of("aten::conv2d").must_end("no GPU operation was recorded");
}

#[test]
fn a_profile_of_onnx_runtime_says_what_to_record_instead() {
    let told = |node: &str, command: &str| {
        let mut scene = Scene::new();
        scene.range(RangeKind::CpuOp, node, 0, 0, 1_000);
        let mut batch = scene.take();
        batch.defs.push(Def::Process(ProcessInfo {
            command: command.to_owned(),
            ..ProcessInfo::default()
        }));
        nothing_ran(&scene.put(batch).trace())
    };
    told("Conv on CUDA", "ONNX Runtime").must_end("record with nsys or `cuptop trace`");
    told("Conv on CPU", "ONNX Runtime").must_end("ran all nodes on the CPU");
    told("Conv on CPU", "app").must_end("no GPU operation was recorded");
}

#[test]
fn kernels_that_were_launched_and_left_no_record_did_run() {
    let told = |name: &str, code: i32| {
        let mut scene = Scene::new();
        let name = scene.name(name);
        let thread = 1;
        scene.push(0, 90_000, 0, What::Call(HostCall { thread, name, code }));
        nothing_ran(&scene.trace())
    };
    let missing = "the GPU's records are missing: kernels were launched, but none was recorded";
    assert_eq!(told("cudaLaunchKernel", 0), missing);
    // Their records are there, and say nothing of when.
    let mut scene = Scene::new();
    scene.call("cudaLaunchKernel", 0, 90_000);
    let health = activity::Health {
        no_timestamp: 3,
        ..activity::Health::default()
    };
    let batch = Batch {
        health: Some(health),
        ..Batch::default()
    };
    let mut trace = scene.trace();
    trace.apply(batch);
    nothing_ran(&trace).must_begin("kernels were launched, but their records have no times");
    for (name, code) in [
        ("cudaLaunchKernel", 700),
        ("cudaLaunchHostFunc", 0),
        ("cudaMalloc", 0),
    ] {
        assert_eq!(told(name, code), "no GPU operation was recorded");
    }
}

/// Allocations, of which the last finds no memory, and what the program still does behind it.
#[test]
fn an_allocation_that_ends_a_program_is_its_headline() {
    let told = |code: i32, behind: &str| {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", 0, 100_000_000);
        scene.call("cudaMalloc", 101_000_000, 102_000_000);
        let (name, thread) = (scene.name("cudaMalloc"), 1);
        let what = What::Call(HostCall { thread, name, code });
        scene.push(103_000_000, 104_000_000, 0, what);
        if !behind.is_empty() {
            scene.call(behind, 105_000_000, 105_100_000);
        }
        let trace = scene.trace();
        let failed = figures::failed::Failed::of(&trace, &Graph::new(&trace));
        failed.map(|it| (it.text(), it.is_fatal(), it.is_all()))
    };
    let ended = "1 of 3 allocations failed (error 2: out of memory)".to_owned();
    assert_eq!(told(2, ""), Some((ended.clone(), true, true)));
    assert_eq!(told(2, "cudaFree"), Some((ended, true, true)));
    // It asked again for less, and got it; or it worked without.
    for (code, behind) in [(2, "cudaMalloc"), (2, "cudaMemcpy"), (0, ""), (4, "")] {
        assert_eq!(told(code, behind), None, "{code} {behind}");
    }
}

/// A record of the same function within a call's own has the error.
#[test]
fn a_copy_that_failed_within_its_own_call_is_told() {
    let told = |inner: &str| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 10_000);
        scene.kernel("k", 1, 20_000, 1_000_000);
        scene.call("cudaMemcpy", 1_100_000, 1_200_000);
        let (name, thread, code) = (scene.name(inner), 1, 1);
        let what = What::Call(HostCall { thread, name, code });
        scene.push(1_110_000, 1_190_000, 0, what);
        let trace = scene.trace();
        let failed = figures::failed::Failed::of(&trace, &Graph::new(&trace));
        failed.map(|it| (it.text(), it.is_fatal()))
    };
    let text = "1 of 1 copies failed (error 1: an argument is not valid)".to_owned();
    assert_eq!(told("cudaMemcpy_v3020"), Some((text, true)));
    assert_eq!(told("cuLibraryGetKernel"), None);
}

#[test]
fn a_capture_of_graphs_is_no_work_of_the_gpu() {
    let scene = |runs: Ns, before: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaFree", -before, 0);
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("fill", 1, 5_000, 5_000 + runs);
        scene.call("cudaStreamBeginCapture", 10_000, 11_000);
        for i in 0..100 {
            let at = 12_000 + i * 9_000;
            scene.call("cudaLaunchKernel", at, at + 3_000);
        }
        scene.call("cudaStreamEndCapture", 930_000, 940_000);
        scene.call("cudaLaunchKernel", 950_000, 953_000);
        scene.kernel("fill", 1, 955_000, 956_000);
        verdict(&mut scene)
    };
    // From 10 to 940 us of 953.
    let told = "capturing CUDA graphs takes 930 µs of 953 µs: set-up, done once before launches";
    let capture = scene(1_000, 0);
    assert_eq!(
        (capture.text.as_str(), capture.bound_by),
        (told, Bound::Nothing)
    );
    // Kernels of 301 us are less than a third of that, those of 501 us are not.
    assert_eq!(scene(300_000, 0).bound_by, Bound::Nothing);
    assert_ne!(scene(500_000, 0).bound_by, Bound::Nothing);
    // Behind 5 ms before the first operation, of the 951 us from that to the end of the last.
    let late = scene(1_000, 5_000_000).text;
    assert!(late.contains("takes 930 µs of 951 µs"), "{late}");
}

#[test]
fn a_capture_is_told_while_it_goes_on() {
    let mut scene = Scene::new();
    scene.call("cudaLaunchKernel", 0, 3_000);
    scene.kernel("fill", 1, 5_000, 6_000);
    scene.call("cudaStreamBeginCapture", 10_000, 11_000);
    scene.call("cudaLaunchKernel", 903_000, 906_000);
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let judged = |from| {
        let window = Some(Span::new(from, 910_000));
        let devices = figures::count(&trace, None, window);
        find(&trace, &causes, (window, &devices), (&[], None), None).remove(0)
    };
    // From 10 us on, of 906 until the last call; then of the 206 from 700 us on.
    let [all, late] = [-1, 700_000].map(|from| judged(from).text);
    assert!(all.contains("takes 896 µs of 906 µs"), "{all}");
    assert!(late.contains("takes 206 µs of 206 µs"), "{late}");
}

/// Ranks capture at once: two that do so from 10 to 940 us of 953 us take these 930 us and no more.
#[test]
fn captures_at_the_same_time_count_once() {
    let mut scene = Scene::new();
    scene.call("cudaLaunchKernel", 0, 3_000);
    scene.kernel("fill", 1, 5_000, 6_000);
    for (name, from, to) in [
        ("cudaStreamBeginCapture", 10_000, 11_000),
        ("cudaStreamEndCapture", 930_000, 940_000),
    ] {
        scene.call(name, from, to);
        let name = scene.name(name);
        let other = HostCall {
            thread: 2,
            name,
            code: 0,
        };
        scene.push(from, to, 0, What::Call(other));
    }
    scene.call("cudaLaunchKernel", 950_000, 953_000);
    scene.kernel("fill", 1, 955_000, 956_000);
    let told = verdict(&mut scene).text;
    assert!(told.contains("takes 930 µs of 953 µs"), "{told}");
}

/// Steps that a range counts, of three kernels of 1 ms, launched ahead. In some the CPU saves for so long before.
fn saving(count: i64, saves: fn(i64) -> bool, time: Ns) -> Verdict {
    held_up(count, saves, time, Some("save_checkpoint"))
}

/// The same, or the recorder is at work meanwhile.
fn held_up(count: i64, saves: fn(i64) -> bool, time: Ns, range: Option<&str>) -> Verdict {
    held_in_part(count, saves, (time, time), range)
}

/// The same, where the range, or the call, takes a part of that time.
fn held_in_part(
    count: i64,
    saves: fn(i64) -> bool,
    (time, part): (Ns, Ns),
    range: Option<&str>,
) -> Verdict {
    let mut scene = Scene::new();
    let mut now = 0;
    for step in 0..count {
        let from = now;
        if saves(step) {
            match range {
                None => scene.overhead("Activity Buffer Flush", now, now + time),
                Some(it) if it.starts_with("cu") => scene.call(it, now, now + part),
                Some(it) => scene.range(RangeKind::Nvtx, it, 0, now, now + part),
            };
            now += time;
        }
        for kernel in 0..3 {
            let at = now + 10_000 + kernel * 1_000_000;
            scene.call(
                "cudaLaunchKernel",
                now + kernel * 5_000,
                now + kernel * 5_000 + 4_000,
            );
            scene.kernel("gemm", 1, at, at + 1_000_000);
        }
        scene.call("cudaStreamSynchronize", now + 20_000, now + 3_010_000);
        now += 3_010_000;
        scene.range(RangeKind::Nvtx, &format!("step {step}"), 0, from, now);
    }
    by_steps(&mut scene).remove(0)
}

/// Of 31 steps of three kernels of 1 ms, one has nine, and a range behind them.
fn doing_more(range: &str, time: Ns) -> OddSteps {
    let mut scene = Scene::new();
    let mut now = 0;
    for step in 0..31 {
        let (from, kernels) = (now, if step == 12 { 9 } else { 3 });
        for kernel in 0..kernels {
            let (call, at) = (now + kernel * 1_000, now + 10_000 + kernel * 1_000_000);
            scene.call("cudaLaunchKernel", call, call + 900);
            scene.kernel("gemm", 1, at, at + 1_000_000);
        }
        now += 10_000 + kernels * 1_000_000;
        scene.call("cudaStreamSynchronize", from + 10_000, now);
        if step == 12 && time > 0 {
            match range.starts_with("cu") {
                true => scene.call(range, now, now + time),
                false => scene.range(RangeKind::Nvtx, range, 0, now, now + time),
            };
            now += time;
        }
        scene.range(RangeKind::Nvtx, &format!("step {step}"), 0, from, now);
    }
    by_steps(&mut scene).remove(0).odd.expect("an odd step")
}

#[test]
fn steps_that_mpi_holds_up_by_several_names_are_told_by_mpi() {
    // Thirty-one steps of 3 ms, of which two take 60 more, each in another call.
    let told = |names: [&str; 2]| {
        let (mut scene, mut now) = (Scene::new(), 0);
        for step in 0..31 {
            let from = now;
            scene.call("cudaLaunchKernel", now, now + 900);
            scene.kernel("gemm", 1, now + 10_000, now + 3_000_000);
            now += 3_000_000;
            scene.call("cudaStreamSynchronize", from + 10_000, now);
            if let 12 | 20 = step {
                let name = names[usize::from(step == 20)];
                scene.range(RangeKind::CpuOp, name, 0, now, now + 60_000_000);
                now += 60_000_000;
            }
            scene.range(RangeKind::Nvtx, &format!("step {step}"), 0, from, now);
        }
        let odd = by_steps(&mut scene).remove(0).odd.expect("odd steps");
        odd.sentence()
    };
    told(["MPI_Waitall", "MPI_Barrier"]).must_have(" more each in MPI calls: ");
    let each = told(["save", "load"]);
    assert!(!each.contains("MPI"), "{each}");
}

/// An odd step as a finding, with the rest of a scope that it does not look at.
fn as_finding(odd: &OddSteps) -> Finding {
    let mut scene = Scene::new();
    let trace = scene.kernel("k", 1, 0, 1_000).trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let devices = figures::count(&trace, None, None);
    odd.finding(&Scope::new(
        &trace,
        &causes,
        None,
        &devices,
        Peaks::default(),
    ))
}

/// The iterator of PyTorch's loader makes its workers where it is made, and ends them behind the last batch.
#[test]
fn a_step_that_starts_workers_anew_is_told_to_keep_them() {
    let advice = |function: &str| {
        let mut odd = doing_more("cuSomething", 20_000_000);
        odd.line = Some(LineShare {
            place: "train.py:37".to_owned(),
            file: "/w/train.py".to_owned(),
            line: 37,
            function: "main".to_owned(),
            call: Some(format!("torch/utils/data/dataloader.py {function}")),
            deepest: None,
            deep: 9,
            samples: 9,
            of: 9,
            is_blocked: false,
        });
        as_finding(&odd).advice
    };
    advice("DataLoader.__iter__").must_have("persistent_workers");
    advice("_MultiProcessingDataLoaderIter.__init__").must_have("persistent_workers");
    advice("_MultiProcessingDataLoaderIter.__next__").must_lack("persistent_workers");
}

#[test]
fn a_step_that_does_more_is_told_by_what_it_does() {
    let told = doing_more("", 0).sentence();
    let one = "1 step takes 6.00 ms more, with 6 operations more: 6 % of the time";
    assert_eq!(told, one);
    // What holds it up says what to do about it.
    let loads = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
    let advice = |range| as_finding(&doing_more(range, 60_000_000)).advice;
    assert!(advice(loads).contains("more workers"), "{}", advice(loads));
    assert!(advice("save").contains("less often"), "{}", advice("save"));
    let pins = doing_more("cuMemHostAlloc", 60_000_000);
    let told = "1 step takes 66.0 ms more in cuMemHostAlloc, which pins host memory: ";
    pins.sentence().must_begin(told);
    as_finding(&pins).advice.must_begin("Pin that memory once");
    let save = doing_more("save", 60_000_000).sentence();
    save.must_have(" operations more, mostly in save: ");
}

#[test]
fn what_a_program_does_for_long_outside_cuda_stands_behind() {
    let told = |took: i64, starting: i64| {
        let mut scene = Scene::new();
        scene.range(RangeKind::Nvtx, "init", 0, 0, took);
        scene.overhead("CUDA profiling initialization", 0, starting);
        scene.call("cudaMallocHost", took / 5, took / 5 * 2);
        scene.kernel("k", 1, took, took + 10_000_000);
        verdicts(&mut scene)[0].details()
    };
    let told_so = ["4.00 s outside CUDA before the first operation, most of it in init."];
    assert_eq!(told(5_000_000_000, 1), told_so);
    assert_eq!(told(150_000_000, 1), [""; 0]);
    // Between calls so long is told that dwarfs ten milliseconds of a kernel: three fifths of it lie behind the first one.
    let between = ["360 ms outside CUDA before the first operation, most of it in init."];
    assert_eq!(told(600_000_000, 1), between);
    // The profiler's own start is no matter of the program: of 5 s it takes 4.8.
    assert_eq!(told(5_000_000_000, 4_800_000_000), [""; 0]);
    // A range that begins with the first call holds nothing of what lies before that.
    let mut scene = Scene::new();
    scene.call("cudaMalloc", 2_000_000_000, 4_990_000_000);
    scene.range(RangeKind::Nvtx, "load", 0, 1_999_990_000, 5_000_000_000);
    scene.range(RangeKind::Nvtx, "import", 0, 0, 1_000);
    scene.kernel("k", 1, 5_000_000_000, 5_010_000_000);
    let told = verdicts(&mut scene)[0].details().concat();
    told.must_have("2.01 s outside CUDA before the first operation.");
    // A launcher that is there before is no matter of the process that has the GPU.
    let (mut scene, mut launcher) = (Scene::new(), Scene::new());
    scene.call("cudaMalloc", 5_000_000_000, 5_001_000_000);
    scene.kernel("k", 1, 6_001_000_000, 6_101_000_000);
    launcher.range(RangeKind::CpuOp, "poll", 0, 0, 6_200_000_000);
    let mut trace = scene.trace();
    trace.apply(Batch {
        process: 1,
        ..launcher.take()
    });
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let told = outside::told(&trace, &causes);
    assert_eq!(told.first().map(|it| it.0), Some(1_000_000_000));
    // Before steps, too; nothing is around it there.
    let mut scene = Scene::new();
    scene.range(RangeKind::Nvtx, "init", 0, 0, 1_000_000_000);
    for step in 0..12 {
        let at = 5_000_000_000 + step * 10_000_000;
        scene.range(
            RangeKind::Nvtx,
            &format!("step {step}"),
            0,
            at,
            at + 10_000_000,
        );
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("k", 1, at + 5_000, at + 10_000_000);
    }
    let told = by_steps(&mut scene)[0].details().concat();
    told.must_end("5.00 s outside CUDA before the first operation.");
}

/// A kernel of 20 ms, so long behind the start of the recording, and a call as long behind it; and its headline, where a cold start of
/// 150 ms was found.
fn led(range: &str, before: Ns, behind: Ns, code: i32) -> String {
    let mut scene = Scene::new();
    scene.range(RangeKind::Nvtx, range, 0, 0, before);
    scene.call("cudaLaunchKernel", before, before + 1_000);
    scene.kernel("k", 1, before + 1_000, before + 20_001_000);
    let name = scene.name("cudaFree");
    let (at, thread) = (before + 20_002_000, 1);
    scene.push(
        at,
        at + behind,
        0,
        What::Call(HostCall { thread, name, code }),
    );
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let devices = figures::count(&trace, None, None);
    let mut all = find(&trace, &causes, (None, &devices), (&[], None), None);
    let cold = Finding {
        rule: Rule::ColdStart,
        bound_ns: 150_000_000,
        title: "cold start: 150 ms".to_owned(),
        ..Finding::default()
    };
    let failed = Finding {
        rule: Rule::FailedCalls,
        ..Finding::default()
    };
    let found = [&cold, &failed];
    let found = &found[..1 + usize::from(code > 0)];
    lead(&mut all, (&trace, &causes), found);
    all[0].text.clone()
}

/// Kernels of 20 us that begin every 150 us, though they were launched ahead, and a cold start of so long. Of few operations that is all
/// there is to say.
#[test]
fn a_short_start_leads_before_few_operations() {
    let led = |kernels: Ns, start: Ns| {
        let mut scene = Scene::new();
        for i in 0..kernels {
            let at = i * 150_000;
            scene.call("cudaLaunchKernel", i * 6_000 - 200_000, i * 6_000 - 195_000);
            scene.kernel("k", 1, at + 6_000, at + 26_000);
        }
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        let devices = figures::count(&trace, None, None);
        let mut all = find(&trace, &causes, (None, &devices), (&[], None), None);
        let cold = Finding {
            rule: Rule::ColdStart,
            bound_ns: start,
            title: "cold start".to_owned(),
            ..Finding::default()
        };
        lead(&mut all, (&trace, &causes), &[&cold]);
        all[0].text.clone()
    };
    // Nine take 1.23 ms.
    for (kernels, start, leads) in [
        (9, 60_000_000, true),
        (9, 4_000_000, true),
        (9, 2_000_000, false),
        (30, 60_000_000, false),
    ] {
        let text = led(kernels, start);
        assert_eq!(text == "cold start", leads, "{kernels} {start}: {text}");
    }
}

/// Thirty kernels of 100 us that the CPU waits for, and launches the next 60 us later, behind a cold start of so long.
#[test]
fn a_start_leads_before_short_steps_that_wait() {
    let led = |start: Ns| {
        let mut scene = Scene::new();
        for at in (0..30).map(|i| i * 160_000) {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 8_000, at + 108_000);
            scene.call("cudaDeviceSynchronize", at + 6_000, at + 150_000);
        }
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        let devices = figures::count(&trace, None, None);
        let steps = steps::find(&trace, None);
        let mut all = find(&trace, &causes, (None, &devices), (&steps, None), None);
        let was = all[0].text.clone();
        let cold = Finding {
            rule: Rule::ColdStart,
            bound_ns: start,
            title: "cold start".to_owned(),
            ..Finding::default()
        };
        lead(&mut all, (&trace, &causes), &[&cold]);
        (was, all[0].text.clone())
    };
    led(0).0.must_begin("sync-bound: GPU idle ");
    // They take 4.75 ms.
    assert_eq!(led(105_000_000).1, "cold start");
    led(40_000_000).1.must_begin("sync-bound");
}

/// Graph launches over 54 ms that left no records, and two copies: a start of over ten times that leads.
#[test]
fn a_long_start_leads_where_records_are_missing() {
    let led = |start: Ns| {
        let mut scene = Scene::new();
        for at in (0..10).map(|i| i * 6_000_000) {
            scene.call("cudaGraphLaunch", at, at + 4_000);
        }
        for at in [1_000_000, 2_000_000] {
            scene.call("cudaMemcpyAsync", at, at + 4_000);
            scene.copy(Direction::H2D, 7, 4096, at + 4_000, at + 9_000);
        }
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        let devices = figures::count(&trace, None, None);
        let mut all = find(&trace, &causes, (None, &devices), (&[], None), None);
        let cold = Finding {
            rule: Rule::ColdStart,
            bound_ns: start,
            title: "cold start".to_owned(),
            ..Finding::default()
        };
        lead(&mut all, (&trace, &causes), &[&cold]);
        (all[0].text.clone(), all[0].beside.concat())
    };
    let (text, beside) = led(700_000_000);
    assert_eq!(text, "cold start");
    beside.must_begin("no verdict: 10 of 10 graph launches");
    led(500_000_000)
        .0
        .must_begin("no verdict: 10 of 10 graph launches");
}

#[test]
fn what_takes_many_times_as_long_as_kernels_is_told_before_them() {
    let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    led(loader, 5_000_000_000, 0, 0).must_begin("CPU-bound: 5.00 s outside CUDA before the first");
    led(loader, 150_000_000, 0, 0).must_begin("GPU-bound");
    // Of what no loader does it takes fifty times as long.
    led("init", 5_000_000_000, 0, 0).must_begin("CPU-bound: 5.00 s outside CUDA before the first");
    led("init", 900_000_000, 0, 0).must_begin("GPU-bound");
    // That results are missing is told before.
    led(loader, 5_000_000_000, 0, 700).must_begin("GPU-bound");
    // Of 150 and 200 ms 20 are a part of 17.
    assert_eq!(led("init", 0, 200_000_000, 0), "cold start: 150 ms");
    led("init", 0, 10_000_000, 0).must_begin("GPU-bound");
}

#[test]
fn the_first_batch_before_all_work_stands_behind() {
    let told = |took: i64| {
        let mut scene = Scene::new();
        let name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
        scene.range(RangeKind::Nvtx, name, 0, 0, took);
        scene.kernel("k", 1, took + 1_000, took + 10_001_000);
        verdicts(&mut scene)[0].details()
    };
    let slow = told(5_000_000_000);
    let slow_so = "5.00 s outside CUDA before the first operation, 5.00 s of it in DataLoader.";
    assert_eq!(slow, [slow_so]);
    // It is no tenth of 10 ms.
    assert_eq!(told(900_000), [""; 0]);
}

#[test]
fn what_keeps_a_gpu_idle_that_mostly_computes_stands_behind() {
    // Kernels of 1 ms, each launched so long after the one before it has ended.
    let told = |late: Ns| {
        let mut scene = Scene::new();
        for i in 0..20 {
            let at = i * (1_000_000 + late);
            scene.call("cudaLaunchKernel", at - late + 1_000, at - 1_000);
            scene.kernel("k", 1, at, at + 1_000_000);
        }
        verdict(&mut scene).beside
    };
    // 19 * 80 us of 21.5 ms; and 19 * 20 of 20.4.
    assert_eq!(
        told(80_000),
        ["GPU idle 7 % of 21.5 ms, while the CPU launches 20 kernels of 1.00 ms"]
    );
    assert_eq!(told(20_000), [""; 0]);
}

#[test]
fn work_before_kernels_that_run_for_the_first_time_comes_once() {
    // Twelve kernels, each loaded for 1 ms when it is launched first, and 50 ms of the CPU before four of them; or each loaded already, or
    // launched behind a copy back.
    let told = |load: Ns, is_behind_copy: bool| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for i in 0..12 {
            if i % 3 == 1 {
                at += 50_000_000;
            }
            scene.call("cudaLaunchKernel", at, at + load);
            scene.kernel(&format!("k{i}"), 1, at + load, at + load + 100_000);
            at += load + 100_000;
            if is_behind_copy {
                scene.call("cudaMemcpy", at, at + 20_000);
                scene.copy(Direction::D2H, 1, 4, at + 5_000, at + 10_000);
                at += 20_000;
            }
        }
        for i in 0..12 {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel(&format!("k{i}"), 1, at + 6_000, at + 100_000);
            at += 100_000;
        }
        verdict(&mut scene).text
    };
    let text = told(1_000_000, false);
    assert!(
        text.starts_with("cold start: ") && text.ends_with("before first launches"),
        "{text}"
    );
    for text in [told(5_000, false), told(1_000_000, true)] {
        assert!(text.starts_with("CPU-bound: "), "{text}");
    }
}

#[test]
fn of_next_to_nothing_the_start_up_is_told() {
    let gain = |text: &str, bound_ns| {
        let cold = Finding {
            rule: Rule::ColdStart,
            bound_ns,
            ..Finding::default()
        };
        let mut verdicts = [Verdict {
            text: text.to_owned(),
            span_ns: 2_000,
            ..Verdict::default()
        }];
        promise(&mut verdicts, &[cold]);
        verdicts[0].gain.clone()
    };
    let little = "too little to judge: only one operation in 2.00 µs";
    assert_eq!(
        gain(little, 41_000_000).as_deref(),
        Some("start-up takes 41.0 ms")
    );
    assert_eq!(gain(little, 1_000), None);
    assert_eq!(gain("no single limit: kernels 20 %", 41_000_000), None);
}

#[test]
fn a_headline_ends_with_the_change_that_cures_what_it_says() {
    let found = |rule, severity, bound_ns, cure| Finding {
        rule,
        severity,
        bound_ns,
        cure,
        ..Finding::default()
    };
    let (warn, remark) = (Severity::Warning, Severity::Info);
    let cold = found(Rule::ColdStart, warn, 500, "warming up");
    let says = Says {
        bound: Bound::Compute,
        part: 0.9,
        why: "in fp32".to_owned(),
    };
    let fp32 = |bound_ns| Finding {
        says: Some(says.clone()),
        ..found(
            Rule::IdleTensorCores,
            remark,
            bound_ns,
            "using tensor cores",
        )
    };
    let pins = |bound_ns| found(Rule::PageableCopy, warn, bound_ns, "pinning");
    let grids = found(Rule::UnderFilledGpu, warn, 200, "launching larger grids");
    for (bound, other, gain) in [
        (Bound::Copy, pins(200), Some("up to 200 ns from pinning")),
        // Too little beside the other one.
        (
            Bound::Copy,
            pins(100),
            Some("warming up keeps 500 ns out of a measurement"),
        ),
        (
            Bound::Host,
            grids.clone(),
            Some("warming up keeps 500 ns out of a measurement"),
        ),
        // No copy is what the CPU is busy with.
        (
            Bound::Host,
            pins(9_000),
            Some("warming up keeps 500 ns out of a measurement"),
        ),
        (
            Bound::Compute,
            grids,
            Some("up to 200 ns from launching larger grids"),
        ),
        // A remark promises nothing, and yet what it speaks of is the largest.
        (Bound::Compute, fp32(900), None),
        (
            Bound::Compute,
            fp32(400),
            Some("warming up keeps 500 ns out of a measurement"),
        ),
    ] {
        let verdict = Verdict {
            bound_by: bound,
            ..Verdict::default()
        };
        let mut verdicts = [verdict];
        promise(&mut verdicts, &[cold.clone(), other]);
        assert_eq!(verdicts[0].gain.as_deref(), gain, "{bound:?}");
    }
}

#[test]
fn a_headline_of_copies_ends_with_no_cure_of_kernels_that_take_less() {
    let products = Finding {
        rule: Rule::OwnKernels,
        severity: Severity::Warning,
        bound_ns: 7_000,
        cure: "cuBLAS",
        is_all: true,
        ..Finding::default()
    };
    let gain = |bound_by, cost_ns| {
        let mut verdicts = [Verdict {
            bound_by,
            cost_ns,
            ..Verdict::default()
        }];
        promise(&mut verdicts, std::slice::from_ref(&products));
        let [verdict] = verdicts;
        verdict.gain
    };
    assert_eq!(gain(Bound::Copy, 14_400), None);
    assert_eq!(gain(Bound::Copy, 6_000).as_deref(), Some("try cuBLAS"));
    assert_eq!(gain(Bound::Compute, 14_400).as_deref(), Some("try cuBLAS"));
}

#[test]
fn what_a_headline_adds_of_another_thing_says_so() {
    // Tensor cores save a rank that waits for another one more than that.
    let late = Finding {
        rule: Rule::LateRank,
        severity: Severity::Warning,
        bound_ns: 100,
        ..Finding::default()
    };
    let fp32 = Finding {
        rule: Rule::IdleTensorCores,
        bound_ns: 900,
        estimated: Some([500, 800]),
        cure: "using tensor cores",
        ..Finding::default()
    };
    let gain = |bound, text: &str, ends_with: &str| {
        let mut verdicts = [Verdict {
            bound_by: bound,
            text: text.to_owned(),
            ..Verdict::default()
        }];
        let ends_with = ends_with.to_owned();
        promise(
            &mut verdicts,
            &[
                Finding {
                    ends_with,
                    ..late.clone()
                },
                fp32.clone(),
            ],
        );
        let [verdict] = verdicts;
        (verdict.gain.unwrap_or_default(), verdict.text)
    };
    let told = "using tensor cores saves an estimated 500 to 800 ns";
    assert_eq!(gain(Bound::Peer, "", "").0, format!("beside that, {told}"));
    // What all of them compute for stands first where it is known.
    let mut verdicts = [Verdict {
        bound_by: Bound::Peer,
        share: 0.05,
        text: "straggler rank 1: 3 ms late".to_owned(),
        but_for_late: Some((Bound::Compute, 0.9, "GPU-bound".to_owned())),
        ..Verdict::default()
    }];
    promise(&mut verdicts, &[late.clone(), fp32.clone()]);
    let [leads] = verdicts;
    assert_eq!((leads.bound_by, leads.share), (Bound::Compute, 0.9));
    assert_eq!(leads.headline(), format!("GPU-bound · {told}"));
    assert_eq!(leads.beside, ["straggler rank 1: 3 ms late"]);
    assert_eq!(gain(Bound::Compute, "", "").0, told);
    // One gap holds most of it, and not all.
    let text = "waiting for untraced CPU work";
    let (_, text) = gain(Bound::Host, text, " before softmax");
    assert_eq!(text, "waiting for untraced CPU work, mostly before softmax");
}

/// Who waits for other ranks is told whom to find, and who idles by itself is not.
#[test]
fn ranks_that_wait_are_no_cure_of_ones_own_idle_time() {
    let waits = Finding {
        rule: Rule::ExposedCommunication,
        bound_ns: 400,
        gain: Some("record every rank".to_owned()),
        ..Finding::default()
    };
    let gain = |bound_by| {
        let mut verdicts = [Verdict {
            bound_by,
            ..Verdict::default()
        }];
        promise(&mut verdicts, std::slice::from_ref(&waits));
        verdicts[0].gain.clone()
    };
    for stalls in [Bound::Host, Bound::Launch, Bound::Sync] {
        assert_eq!(gain(stalls), None, "{stalls:?}");
    }
    assert_eq!(gain(Bound::Peer).as_deref(), Some("record every rank"));
}

#[test]
fn a_step_in_which_torch_compiles_again_is_told_what_to_change() {
    let told = |range| {
        let told = held_up(12, |step| step == 5, 20_000_000, Some(range));
        let odd = told.odd.expect("an odd step");
        let gain = told.gain.unwrap_or_default();
        (odd.sentence(), gain + &as_finding(&odd).advice)
    };
    let (sentence, advice) = told("_compile.compile_inner (dynamo_timed)");
    sentence.must_have(" more in torch.compile, which compiles: ");
    advice.must_begin("try dynamic=True, or fewer shapes · the others are GPU-bound");
    advice.must_have("TORCH_LOGS=recompiles");
    // To look for what was compiled is no compiling.
    let (sentence, advice) = told("TorchDynamo Cache Lookup");
    sentence.must_lack("compiles");
    advice.must_lack("dynamic=True");
}

/// All of the longer time was given to what holds most of it.
#[test]
fn what_takes_a_part_of_odd_steps_is_told_with_its_part() {
    let told = |part| {
        let times = (20_000_000, part);
        held_in_part(12, |step| step == 5, times, Some("cudaMalloc")).text
    };
    told(14_000_000).must_begin("1 step takes 20.0 ms more, 70 % of it in cudaMalloc: 38 % of the");
    told(19_000_000).must_begin("1 step takes 20.0 ms more in cudaMalloc: 38 % of the");
}

/// A kernel takes 14 ms in eight steps, then 7: at other clocks it is faster. Three of the later ones are as slow as before.
#[test]
fn steps_as_long_as_all_before_are_not_odd() {
    let told = |first: Ns| {
        let mut scene = Scene::new();
        let mut now = 0;
        for step in 0..60 {
            let takes = match step {
                0..8 => first,
                18..21 => 14_000_000,
                _ => 7_000_000,
            };
            scene.call("cudaLaunchKernel", now, now + 5_000);
            scene.kernel("stencil", 1, now + 10_000, now + 100_000);
            scene.kernel("product", 1, now + 110_000, now + 110_000 + takes);
            now += takes + 120_000;
        }
        by_steps(&mut scene).remove(0)
    };
    let as_before = told(14_000_000);
    assert!(
        as_before.steps.is_some() && as_before.odd.is_none(),
        "{as_before:?}"
    );
    let other = told(28_000_000);
    assert!(other.odd.is_some(), "{other:?}");
}

#[test]
fn odd_steps_that_lose_more_take_the_headline() {
    // Of eleven steps that are seen to their end, 3.01 ms each, one saves before the next begins: 20 of 53.1 ms.
    let once = saving(12, |step| step == 5, 20_000_000);
    assert_eq!(
        once.headline(),
        "1 step takes 20.0 ms more in save_checkpoint: 38 % of the time · the others are GPU-bound (3.01 ms)"
    );
    assert_eq!(
        (once.scope.of, once.bound_by),
        (Answered::OddSteps, Bound::Host)
    );
    assert!((once.share - 20.0 / 53.11).abs() < 1e-3, "{once:?}");
    assert_eq!(once.cost_a_step_ns, Some(20_000_000));
    assert!((once.span_ns - 53_110_000).abs() < 50_000, "{once:?}");
    // As a finding it is told by the step, too: 20 ms in eleven steps.
    let finding = as_finding(once.odd.as_ref().expect("odd steps"));
    assert!(
        (finding.most() - 20_000_000 / 11).abs() < 10_000,
        "{finding:?}"
    );
    // What comes twice in one place is in a loop: 40 of 130.3 ms in 30 steps.
    let twice = saving(31, |step| [5, 21].contains(&step), 20_000_000);
    let gain = twice.gain.unwrap_or_default();
    gain.must_begin("ending that saves at most 1.33 ms a step (mean)");
    // Every tenth of 41: 80 of 200 ms.
    let often = saving(42, |step| step % 10 == 5, 20_000_000);
    often
        .text
        .must_begin("every 10th step takes 20.0 ms more in save_checkpoint");
    // What happened once is no saving of the next run. Without it a step takes 3.01 of 4.96 ms.
    let gain = often.gain.unwrap_or_default();
    gain.must_begin("ending that saves at most 1.95 ms a step (mean)");
    // What is lost once, and less than a tenth, stands behind: 6 of 96.3 ms.
    let little = saving(31, |step| step == 5, 6_000_000);
    little
        .text
        .must_begin("GPU-bound: kernels run 100 % of each 3.01 ms step");
    assert_eq!(
        little.beside,
        ["1 step takes 6.00 ms more in save_checkpoint: 6 % of the time"]
    );
    // One of three that saves for long says nothing of the other two.
    let some = |steps: i64, name: fn(i64) -> &'static str| {
        let mut scene = Scene::new();
        let mut now = 0;
        for step in 0..steps {
            let from = now;
            if step % 9 == 5 {
                let time = if step == 5 { 20_000_000 } else { 4_000_000 };
                scene.range(RangeKind::Nvtx, name(step), 0, now, now + time);
                now += time;
            }
            scene.call("cudaLaunchKernel", now, now + 4_000);
            scene.kernel("gemm", 1, now + 10_000, now + 3_010_000);
            now += 3_010_000;
            scene.range(RangeKind::Nvtx, &format!("step {step}"), 0, from, now);
        }
        by_steps(&mut scene).remove(0)
    };
    let one = |name| some(24, name).odd.and_then(|it| it.why);
    // A sleep before all others is a pause of the program's own.
    assert!(some(13, |_| "save").text.starts_with("1 step takes"));
    let slept = some(13, |_| "clock_nanosleep");
    assert!(
        slept.odd.is_none() && slept.text.starts_with("GPU-bound"),
        "{slept:?}"
    );
    let names = |step| ["save", "log"][usize::from(step > 5)];
    assert_eq!(one(names).as_deref(), Some("different places"));
    assert_eq!(one(|_| "save").as_deref(), Some("save"));
    // What the recorder does is told as its own, and never first.
    let recorded = held_up(42, |step| step % 10 == 5, 20_000_000, None);
    assert!(recorded.text.starts_with("GPU-bound"), "{recorded:?}");
    let told = "every 10th step takes 20.0 ms more in recording itself (Activity Buffer Flush)";
    assert!(recorded.beside[0].starts_with(told), "{recorded:?}");
    // One that takes a little longer is not odd.
    let even = saving(12, |step| step == 5, 400_000);
    assert!(
        even.text.starts_with("GPU-bound") && even.beside.is_empty(),
        "{even:?}"
    );
    assert_eq!((even.scope.of, even.steps), (Answered::Steps, Some(11)));
}

#[test]
fn loading_decides_nothing_between_launching_and_other_work() {
    // 300 kernels are launched one by one, 8 us apart: 2.4 ms. Beside that the CPU works for 2 ms, and loads for 1.
    let by = |call: &str| {
        let mut scene = Scene::new();
        let mut at = 0;
        for i in 0..300 {
            scene.call("cudaLaunchKernel", at, at + 7_000);
            scene.kernel("k", 1, at + 8_000, at + 10_000);
            at += 10_000;
            if i == 100 {
                scene.call(call, at + 5_000, at + 1_005_000);
                at += 1_010_000;
            }
            at += if [150, 250].contains(&i) {
                1_000_000
            } else {
                0
            };
        }
        verdict(&mut scene).bound_by
    };
    assert_eq!(by("cuModuleLoadData"), Bound::Launch);
    assert_eq!(by("cuDeviceGetName"), Bound::Host);
}

#[test]
fn a_second_loop_behind_the_steps_is_told_by_its_own_steps() {
    // 30 steps of 2 ms keep the GPU busy. Behind them each of `count` rounds of 6 ms runs for 1.2 ms and exchanges for 4.8 ms.
    let beside = |count: i64| {
        let mut scene = Scene::new();
        for at in (0..30).map(|it| it * 2_000_000) {
            scene.call("cudaLaunchKernel", at, at + 4_000);
            scene.kernel("serial", 1, at + 10_000, at + 1_000_000);
            scene.kernel("norm", 1, at + 1_000_000, at + 2_000_000);
        }
        for at in (0..count).map(|it| 65_000_000 + it * 6_000_000) {
            scene.range(
                RangeKind::Nvtx,
                "MPI_Allreduce",
                0,
                at - 4_795_000,
                at - 5_000,
            );
            scene.call("cudaLaunchKernel", at - 4_000, at - 1_000);
            scene.kernel("halo", 1, at, at + 600_000);
            scene.kernel("inner", 1, at + 600_000, at + 1_200_000);
        }
        let whole = by_steps(&mut scene).swap_remove(0);
        assert!(whole.text.contains("of each 2.00 ms step"), "{whole:?}");
        whole.beside
    };
    let told = beside(9);
    let is_told = |it: &String| {
        it.contains(" after the steps, CPU-bound: GPU idle 80 % of each 6.00 ms step")
            && it.ends_with("waiting for MPI_Allreduce")
    };
    assert!(told.iter().any(is_told), "{told:?}");
    // A fifth of the run is no part of it to speak of.
    let little = beside(2);
    assert!(
        !little.iter().any(|it| it.contains("after the steps")),
        "{little:?}"
    );
}

#[test]
fn communication_with_nothing_beside_it_is_no_computing() {
    // Of 100 us each 30 compute, 10 compute beside a collective, 60 are that alone.
    let mut scene = Scene::new();
    for i in 0..10 {
        let at = i * 100_000;
        scene.kernel("gemm", 1, at, at + 40_000);
        scene.kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
            2,
            at + 30_000,
            at + 100_000,
        );
    }
    let v = verdict(&mut scene);
    assert_eq!(v.bound_by, Bound::Peer, "{v:?}");
    assert!((v.share - 0.6).abs() < 1e-9, "{v:?}");
    v.text.must_begin(
        "communication-bound: collectives run without overlap 60 % of 1.00 ms, mostly nccl",
    );
}

/// Of 100 us so many are an all-reduce, and the rest computes.
#[test]
fn communication_that_nothing_hides_comes_before_kernels_that_take_longer() {
    let bound = |alone: Ns| {
        let mut scene = Scene::new();
        for at in (0..10).map(|it| it * 100_000) {
            let then = at + 100_000 - alone;
            scene.kernel("gemm", 1, at, then);
            scene.kernel("ncclDevKernel_AllReduce(x)", 2, then, at + 100_000);
        }
        verdict(&mut scene).bound_by
    };
    assert_eq!([30_000, 29_000].map(bound), [Bound::Peer, Bound::Compute]);
}

/// Of 100 us a product takes 70, and a gather that nothing hides 20. What is in the product is of the kernels' time.
#[test]
fn what_kernels_are_of_is_told_before_communication() {
    let mut scene = Scene::new();
    for at in (0..10).map(|it| it * 100_000) {
        scene.kernel("mine", 1, at, at + 70_000);
        scene.kernel("yours", 1, at + 70_000, at + 80_000);
        scene.kernel("ncclDevKernel_AllGather(x)", 2, at + 80_000, at + 100_000);
    }
    verdict(&mut scene).text.must_begin(
        "GPU-bound: kernels run 80 % of 1.00 ms, 88 % of their time in mine, communication alone 20 % of the time",
    );
}

/// What stands beside a hundred steps of 30 us behind a start of 6 ms.
fn beside_a_start(start: impl Fn(&mut Scene)) -> String {
    let mut scene = Scene::new();
    start(&mut scene);
    for at in (0..100).map(|i| 6_010_000 + i * 30_000) {
        for (nth, name) in (0..).zip(["embed", "layer", "loss"]) {
            let start = at + nth * 10_000;
            scene.call("cuLaunchKernel", start - 9_000, start - 8_000);
            scene.kernel(name, 1, start, start + 10_000);
        }
    }
    let verdict = by_steps(&mut scene).remove(0);
    assert!(verdict.is_mostly_beside);
    verdict.beside.join(" · ")
}

/// Two loops of thirty steps of 30 us, and between them six other kernels in 3 ms that nothing names.
#[test]
fn a_seam_between_two_loops_is_nothing_to_do_less_often() {
    let (mut scene, mut now) = (Scene::new(), 10_000);
    let mut kernel = |name: &str| {
        scene.call("cuLaunchKernel", now - 9_000, now - 8_000);
        scene.kernel(name, 1, now, now + 10_000);
        now += if name.starts_with("set") {
            510_000
        } else {
            10_000
        };
    };
    for step in 0..60 {
        if step == 30 {
            (0..6).for_each(|op| kernel(&format!("set{op}")));
        }
        ["embed", "layer", "loss"].into_iter().for_each(&mut kernel);
    }
    let verdict = by_steps(&mut scene).remove(0);
    assert_eq!(verdict.scope.of, Answered::Steps);
    let odd = verdict.odd.as_ref().expect("an odd step");
    odd.sentence().must_have("with 6 operations more");
    assert_eq!(as_finding(odd).bound_ns, 0);
}

#[test]
fn a_start_up_says_what_it_is_spent_on() {
    let filled = |fills: Ns| {
        beside_a_start(|scene| {
            scene.memset(1, 1 << 30, 0, fills);
            scene.kernel("init", 1, fills, 6_000_000);
        })
    };
    assert_eq!(filled(3_100_000), "start-up 6.01 ms, most of it in memsets");
    filled(2_900_000).must_begin("6.01 ms before the steps, GPU-bound");
    // A page comes to the kernel as it runs.
    let faults = beside_a_start(|scene| {
        scene.kernel("init", 1, 0, 6_000_000);
        let pages = Place::NO_STREAM;
        scene.copy(Direction::H2D, pages, 1 << 20, 3_000_000, 3_100_000);
    });
    assert_eq!(
        faults,
        "start-up 6.01 ms, nearly all of it in kernels that wait for pages"
    );
    let in_range = |range: &str| {
        beside_a_start(|scene| {
            scene.call("cuLaunchKernel", -5_000, -1_000);
            scene.kernel("init", 1, 0, 10_000);
            scene.range(RangeKind::Nvtx, range, 0, 100_000, 4_100_000);
        })
    };
    let compiled = in_range("XlaCompile:#module=jit_step#");
    assert_eq!(compiled, "start-up 6.01 ms, most of it compiling kernels");
    in_range("read").must_end("most of it in read");
    let untraced = beside_a_start(|scene| {
        scene.kernel("init", 1, 0, 10_000);
    });
    untraced.must_end("nearly all of it in untraced CPU work");
}

/// A graph is captured for so long in a start-up of 6 ms: a launch every 10 us that runs nothing, and the CPU's work between them.
#[test]
fn a_start_up_in_which_graphs_are_captured_says_so() {
    let told = |captured: Ns| {
        beside_a_start(|scene| {
            scene.kernel("init", 1, 0, 10_000);
            scene.call("cudaStreamBeginCapture", 100_000, 101_000);
            for at in (0..captured / 10_000).map(|i| 110_000 + i * 10_000) {
                scene.call("cuLaunchKernel", at, at + 1_000);
            }
            scene.call(
                "cudaStreamEndCapture",
                110_000 + captured,
                120_000 + captured,
            );
            scene.call(
                "cudaGraphInstantiate",
                130_000 + captured,
                1_000_000 + captured,
            );
        })
    };
    assert_eq!(
        told(3_000_000),
        "start-up 6.01 ms, most of it making CUDA graphs"
    );
    told(1_000_000).must_end("most of it in untraced CPU work");
}

#[test]
fn a_name_of_four_hundred_characters_is_cut() {
    let long = format!("Cijk_{}_WG32_8_1", "MT256x128x64_".repeat(30));
    let mut scene = Scene::new();
    scene.kernel(&long, 1, 0, 1_000_000);
    let v = verdict(&mut scene);
    assert!(v.text.chars().count() <= HEADLINE_MAX, "{}", v.text);
    v.text.must_have("Cijk_");
    v.text.must_end("_WG32_8_1");
}

#[test]
fn pages_that_the_host_touches_are_no_launches_that_do_not_keep_up() {
    let mut scene = Scene::new();
    scene.call("cuLaunchKernel", 0, 2_000);
    scene.kernel("add", 1, 5_000, 15_000);
    scene.call("cuStreamSynchronize", 3_000, 20_000);
    scene.without_call();
    for i in 0..100 {
        let at = 120_000 + 105_000 * i;
        scene.copy(Direction::D2H, Place::NO_STREAM, 4096, at, at + 5_000);
    }
    let v = verdict(&mut scene);
    assert_eq!(v.bound_by, Bound::Host);
    // The gap after the wait may be a part of what the wait cost; the other 99 are the host's.
    let host = 99.0 * 100_000.0;
    assert!(v.share * v.span_ns as f64 >= host, "{v:?}");
    v.text.must_end("waiting for CPU access to managed memory");
}

#[test]
fn what_copies_take_beside_copying_is_told_with_them() {
    // Ten times 250 us of staging, 500 us up, 250 us down: 9,750 us from the first operation to the last.
    let mut scene = Scene::new();
    let copy = Copy {
        from: MemoryKind::Pageable,
        ..pinned(Direction::H2D, 1, 4 << 20)
    };
    for at in (0..10).map(|i| i * 1_000_000) {
        scene.call("cudaMemcpyAsync", at, at + 700_000);
        scene.copy_of(copy, at + 250_000, at + 750_000);
        scene.call("cudaMemcpyAsync", at + 710_000, at + 720_000);
        scene.copy(Direction::D2H, 1, 1 << 20, at + 750_000, at + 1_000_000);
    }
    let text = verdict(&mut scene).text;
    // 5,000, 2,500 and 9 * 250 us of these.
    let told = "copies run 77 % of 9.75 ms (H2D 51 %, D2H 26 %, GPU idle 23 % in staging and gaps before copies)";
    assert!(text.contains(told), "{text}");
}

#[test]
fn graphs_recorded_as_a_whole_are_told_before_a_kernel_beside_them() {
    // Ten graphs of 995 us, and a kernel of 5 us behind each.
    let mut scene = Scene::new();
    for at in (0..10).map(|i| i * 1_000_000) {
        scene.call("cudaGraphLaunch", at - 9_000, at - 2_000);
        let graph = activity::Graph {
            place: place(1),
            graph: 3,
        };
        scene.push(at, at + 995_000, 0, What::Graph(graph));
        scene.kernel("add_one", 1, at + 995_000, at + 1_000_000);
    }
    let verdict = verdict(&mut scene);
    // 9.95 of 10 ms, in whole percents.
    let told = "GPU-bound: CUDA graphs, recorded only as a whole, run 100 % of 10.0 ms";
    assert_eq!(verdict.text, told);
    let beside = verdict.beside.concat();
    assert!(beside.contains("--cuda-graph-trace=node"), "{beside}");
}

/// Kernels of 0.1 ms, each launched when the one before it has ended, begin 1.9 ms later. Somebody else is on the GPU, whose multiprocessors
/// are busy for 90 % of the time; kernels ran for 5 %.
/// Of the second half no launch is recorded where their kernels' time is given.
fn on_a_shared_gpu(owner: Owner, busy: f64, unlaunched: Option<Ns>) -> Scene {
    let mut scene = Scene::new();
    scene.device(DeviceInfo {
        uuid: Some([7; 16]),
        ..DeviceInfo::default()
    });
    for (i, at) in (0..50).map(|i| (i, i * 2_000_000)) {
        let hidden = unlaunched.filter(|_| i >= 25);
        match hidden {
            Some(_) => scene.without_call(),
            None => scene.call("cudaLaunchKernel", at, at + 5_000),
        };
        let takes = hidden.unwrap_or(100_000);
        scene.kernel("decode", 1, at + 2_000_000 - takes, at + 2_000_000);
    }
    let batch = scene.take();
    let occupant = Occupant {
        pid: 4711,
        name: "python3".to_owned(),
        memory: None,
        owner,
    };
    let reading = Reading {
        uuid: [7; 16],
        span: Span::new(0, 100_000_000),
        values: vec![(Metric::Sm, busy)],
        reasons: 0,
    };
    scene.put(Batch {
        hardware: vec![
            Hardware::Occupants {
                uuid: [7; 16],
                time: 0,
                all: vec![occupant],
            },
            Hardware::Reading(reading),
        ],
        ..batch
    });
    scene
}

#[test]
fn launched_kernels_wait_for_another_program() {
    let of = |owner, busy, unlaunched| verdict(&mut on_a_shared_gpu(owner, busy, unlaunched)).text;
    // 49 gaps of 1.9 ms in 98.1 ms, whoever launched what ends them.
    for unlaunched in [None, Some(100_000)] {
        let shared = of(Owner::Other, 0.9, unlaunched);
        shared.must_begin("shared GPU: for 95 % of 98.1 ms kernels likely wait");
    }
    // 24 such gaps; the 25 of 1.5 ms are no turns.
    let half = of(Owner::Other, 0.9, Some(500_000));
    assert!(half.contains("for 46 % of 98.1 ms"), "{half}");
    // Who is there and does nothing is not to blame, and nobody else is there.
    for (owner, busy) in [(Owner::Other, 0.05), (Owner::Program, 0.9)] {
        let unlaunched = Some(100_000);
        of(owner, busy, unlaunched).must_begin("unknown:");
    }
}

#[test]
fn a_gpu_with_next_to_no_work_is_told_so() {
    let of = |kernel: Ns, lost: Ns| {
        let mut scene = Scene::new();
        for at in [0, 5_000_000, 10_000_000] {
            scene.call("cuLaunchKernel", at, at + 2_000);
            scene.kernel("foo", 1, at + 3_000, at + 3_000 + kernel);
        }
        for at in (0..lost).map(|it| 6_000_000 + it * 10_000) {
            scene.call("cuLaunchKernel", at, at + 2_000);
        }
        verdicts(&mut scene).remove(0)
    };
    let told = |kernel| of(kernel, 0).beside;
    // 6 us of 10 ms, and 15.
    let little = "next to no work for a GPU: 3 kernels, 6.00 µs in all".to_owned();
    assert!(told(2_000).contains(&little), "{:?}", told(2_000));
    assert!(told(5_000).is_empty());
    // Where records are missing nobody knows.
    let lost = of(2_000, 40);
    lost.text.must_begin("no verdict");
    assert!(!lost.beside.contains(&little), "{:?}", lost.beside);
}

#[test]
fn copies_are_launched_as_kernels_are() {
    // Each of forty kernels of 2 us, 12 us apart, and behind every `each`-th one a copy within the GPU.
    let told = |each: i64| {
        let mut scene = Scene::new();
        for i in 0..40 {
            let at = i * 24_000;
            scene.call("cudaLaunchKernel", at, at + 900);
            scene.kernel("k", 1, at + 6_000, at + 8_000);
            if i % each == 0 {
                scene.call("cudaMemcpyAsync", at + 12_000, at + 12_900);
                scene.copy(Direction::D2D, 1, 1 << 20, at + 18_000, at + 20_000);
            }
        }
        verdict(&mut scene).text
    };
    told(2).must_have("launches 40 kernels and 20 copies");
    told(10).must_lack("copies");
}

/// The same with what a profiler saw of the CPU at 1,000 looks a second at most: from when to when, how often, and in what.
fn seen_by_nsys(scene: &mut Scene, seen: &[(i64, i64, i64, (&str, &str))]) -> Verdict {
    let (mut defs, mut looks) = (Vec::new(), Vec::new());
    for (id, (from, until, every, (file, function))) in (1..).zip(seen) {
        let frame = Frame {
            file: (*file).to_owned(),
            function: (*function).to_owned(),
            line: 0,
        };
        let (caller, frames) = (0, SampleDef::Frame { id, frame });
        let frame = id;
        defs.extend([frames, SampleDef::Stack { id, caller, frame }]);
        looks.extend((*from..*until).step_by(*every as usize).map(|time| {
            let (thread, stack, is_running) = (1, id, true);
            StackSample {
                time,
                changed: vec![SeenAt {
                    thread,
                    stack,
                    is_running,
                }],
            }
        }));
    }
    let mut batch = scene.take();
    let hz = 1_000;
    batch.samples = Some(Samples {
        series: 0,
        defs,
        looks,
        sampling: Sampling {
            hz,
            ..Sampling::default()
        },
    });
    let mut trace = scene.put(batch).trace();
    trace.source.kind = SourceKind::Nsys;
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let devices = figures::count(&trace, None, None);
    find(&trace, &causes, (None, &devices), (&[], None), None).swap_remove(1)
}

#[test]
fn samples_of_one_gap_tell_nothing_of_another_in_which_the_thread_did_not_run() {
    const MS: i64 = 1_000_000;
    let told = |every: i64| {
        let mut scene = Scene::new();
        for at in [0, 400 * MS, 741 * MS] {
            scene.call("cudaLaunchKernel", at, at + 3_000);
            scene.kernel("k", 1, at + 5_000, at + MS);
        }
        let conv = (402 * MS, 741 * MS, MS, ("main", "Conv2d"));
        let looks = [(2 * MS, 400 * MS, every, ("main", "init")), conv];
        seen_by_nsys(&mut scene, &looks).text
    };
    // 340 ms of 739 are seen where one look in eight is there in the other gap. Else both functions have about half.
    told(8 * MS).must_have("46 % waiting for Conv2d in main");
    told(MS).must_have("waiting for init in main");
}

#[test]
fn samples_of_a_function_tell_nothing_of_calls_that_have_a_name() {
    const MS: i64 = 1_000_000;
    let mut scene = Scene::new();
    for at in [0, 400 * MS] {
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("k", 1, at + 5_000, at + MS);
    }
    scene.call("cudaMallocHost", 200 * MS, 350 * MS);
    let looks = [(0, 400 * MS, MS, ("main", "initData"))];
    // 249 of 399 ms are outside the call.
    let text = seen_by_nsys(&mut scene, &looks).text;
    text.must_have("62 % waiting for initData in main");
}

#[test]
fn what_the_cpu_does_on_managed_memory_behind_all_kernels_is_its_own_work() {
    const MS: i64 = 1_000_000;
    let told = |kernel_at: i64, page: i64| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("gemm", 1, 5_000, 10 * MS);
        scene.call("cudaDeviceSynchronize", 4_000, 10 * MS);
        for at in (1..10).map(|it| it * 100 * MS) {
            if at == kernel_at {
                scene.call("cudaLaunchKernel", at - 10_000, at - 9_000);
                scene.kernel("gemm", 1, at - 8_000, at - 1_000);
            }
            scene.without_call();
            let stream = Place::NO_STREAM;
            scene.copy(Direction::D2H, stream, 64 << 10, at, at + page);
        }
        verdict(&mut scene).text
    };
    let alone = "in CPU work on managed memory after the last kernel";
    told(0, 10_000).must_have(alone);
    // With a kernel near its end, and with pages that take much of it.
    told(900 * MS, 10_000).must_have("waiting for CPU access to managed memory");
    told(0, 20 * MS).must_have("waiting for CPU access to managed memory");
}

#[test]
fn a_start_of_far_longer_than_copies_leads_before_them() {
    let led = |start: Ns| {
        let mut scene = Scene::new();
        for at in (0..100).map(|it| it * 10_000) {
            scene.call("cudaMemcpyAsync", at, at + 2_000);
            scene.copy(Direction::H2D, 7, 1 << 16, at + 1_000, at + 10_000);
        }
        scene.kernel("k", 7, 1_000_000, 1_010_000);
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        let devices = figures::count(&trace, None, None);
        let mut all = find(&trace, &causes, (None, &devices), (&[], None), None);
        assert_eq!(all[0].bound_by, Bound::Copy);
        let cold = Finding {
            rule: Rule::ColdStart,
            bound_ns: start,
            title: "cold start".to_owned(),
            ..Finding::default()
        };
        lead(&mut all, (&trace, &causes), &[&cold]);
        all[0].text.clone()
    };
    // 1 ms of copies: 200 times as long, and 40 times.
    led(200_000_000).must_begin("cold start");
    led(40_000_000).must_begin("copy-bound");
}

#[test]
fn what_a_runtime_brings_into_its_buffer_between_copies_is_staging() {
    const MS: i64 = 1_000_000;
    let told = |seen: (&str, &str), kernels: bool| {
        let mut scene = Scene::new();
        for at in (0..50).map(|it| it * 4 * MS) {
            scene.call("cuMemcpyHtoDAsync_v2", at, at + 3_000);
            scene.copy(Direction::H2D, 1, 16 << 20, at + 5_000, at + MS);
            if kernels {
                scene.call("cuLaunchKernel", at + MS, at + MS + 3_000);
                scene.kernel("k", 1, at + MS + 5_000, at + MS + 10_000);
            }
        }
        scene.call("cuLaunchKernel", 200 * MS, 200 * MS + 3_000);
        scene.kernel("k", 1, 200 * MS + 5_000, 200 * MS + 10_000);
        seen_by_nsys(&mut scene, &[(0, 200 * MS, MS, seen)])
    };
    let moves = ("<libnvc.so>", "__c_mcopy8_nt_avx2");
    let found = told(moves, false);
    assert_eq!(found.bound_by, Bound::Copy, "{}", found.text);
    found.text.must_have("in staging and gaps before copies");
    // Where no function of the program is seen, a library's is told that half of the samples are in.
    told(moves, true)
        .text
        .must_have("waiting for __c_mcopy8_nt_avx2 in libnvc.so");
    // Behind kernels it may bring anything; the program's own function works on the bytes; a libc's serves anybody.
    assert_eq!(told(moves, true).bound_by, Bound::Host);
    assert_eq!(told(("main", "fill"), false).bound_by, Bound::Host);
    let libc = ("<libc.so.6>", "memcpy");
    assert_eq!(told(libc, false).bound_by, Bound::Host);
}

/// Forty nodes of a graph and ten kernels beside it, with a long pause before: how long both take decides which is told first.
#[test]
fn many_short_nodes_of_graphs_are_not_told_as_what_the_gpu_works_for() {
    let told = |node: Ns| {
        let mut scene = Scene::new();
        for at in (0..40).map(|i| i * 10_000) {
            scene.call("cudaGraphLaunch", at, at + 2_000);
            scene.kernel("node", 1, at + 3_000, at + 3_000 + node);
        }
        for at in (0..10).map(|i| 50_000_000 + i * 10_000) {
            scene.call("cudaLaunchKernel", at, at + 2_000);
            scene.kernel("softmax", 1, at + 3_000, at + 9_000);
        }
        let mut batch = scene.take();
        for it in &mut batch.items {
            if let What::Kernel(kernel) = &mut it.what
                && it.span.start < 1_000_000
            {
                kernel.graph = 3;
            }
        }
        verdict(Scene::new().put(batch)).beside.concat()
    };
    // 20 and 60 us, 240 and 60 us.
    let few = "softmax takes 75 % of kernel time, CUDA graphs 25 %: 40 of 50 kernels, mostly node";
    assert!(told(500).contains(few), "{}", told(500));
    let most = "CUDA graphs run 40 of 50 kernels, 80 % of their time, mostly node";
    assert!(told(6_000).contains(most), "{}", told(6_000));
}

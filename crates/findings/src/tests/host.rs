//! A host that does not keep up: it launches, allocates, loads, waits, or is at something else.

use super::*;
use activity::RangeKind;
use activity::{Activity, Def, Range};
use trace::testing::Sentence;

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
    // AMD's take as long, and so does pinned memory, which has a cure of its own.
    let found = sick("alloc-in-loop", &mut scene("hipMalloc", "hipFree"));
    assert_eq!((found.count, found.bound_ns), (38, 38 * 30_000));
    let found = sick("alloc-in-loop", &mut scene("hipHostMalloc", "hipHostFree"));
    assert_eq!((found.count, found.bound_ns), (38, 38 * 30_000));
    assert!(found.advice.starts_with("Pin once"), "{}", found.advice);
    // A pool that gives its memory back at each sync takes as long as none.
    let found = sick(
        "alloc-in-loop",
        &mut scene("cudaMallocAsync", "cudaFreeAsync"),
    );
    assert_eq!((found.count, found.bound_ns), (38, 38 * 30_000));
    found.advice.must_have("release threshold");
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

/// No graph holds calls that take memory: launches are told once those are gone. Memory of a pool it does hold.
#[test]
fn launches_between_longer_allocations_are_told_later() {
    let scene = |alloc: &str, time: Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for _ in 0..40 {
            scene.call(alloc, at, at + time);
            at += time + 1_000;
            for _ in 0..3 {
                scene.call("cudaLaunchKernel", at, at + 5_000);
                scene.kernel("k", 1, at + 7_000, at + 9_000);
                at += 10_000;
            }
        }
        scene
    };
    sick("alloc-in-loop", &mut scene("cudaMalloc", 60_000));
    cured("launch-bound", &mut scene("cudaMalloc", 60_000));
    sick("launch-bound", &mut scene("cudaMalloc", 20_000));
    sick("launch-bound", &mut scene("cudaMallocAsync", 60_000));
}

#[test]
fn short_kernels_are_launch_bound_only_when_the_gpu_waits_for_them() {
    let found = sick("launch-bound", &mut short_kernels(false));
    assert_eq!((found.count, found.bound_ns), (99, 99 * 10_000));
    assert_eq!(found.severity, Severity::Warning);
    cured("launch-bound", &mut short_kernels(true));
    // A loader takes 4 us of each gap: launching less often leaves that.
    let mut loaded = short_kernels(false);
    for at in (0..99).map(|i| i * 12_000 + 8_000) {
        loaded.range(RangeKind::CpuOp, "DataLoader.__next__", 0, at, at + 4_000);
    }
    assert_eq!(sick("launch-bound", &mut loaded).bound_ns, 99 * 6_000);
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
    // With the launch around it, which is the first of its kernel.
    assert_eq!((found.count, found.bound_ns), (2, 301_500));
    cured("cold-start", &mut scene(2_000));
    // What the profiler itself needs is not the program's cold start.
    let mut own = Scene::new();
    own.overhead("activity buffer request", 1_000, 300_000);
    own.kernel("k", 1, 310_000, 3_000_000);
    cured("cold-start", &mut own);
}

#[test]
fn a_host_at_other_work() {
    let scene = |pause: Ns, name: &str| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * 10_000_000;
            if !name.is_empty() {
                let kind = RangeKind::CpuOp;
                scene.range(kind, name, 0, at + 4_000, at + 10_000_000);
            }
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
    let found = sick("host-bound", &mut scene(5_000_000, "DataLoader"));
    assert_eq!((found.count, found.bound_ns), (9, 9 * 5_000_000));
    assert!(found.advice.contains("next batch"), "{}", found.advice);
    cured("host-bound", &mut scene(500_000, "DataLoader"));
    // Other processes prepare batches already.
    let workers = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
    let found = sick("host-bound", &mut scene(5_000_000, workers));
    found.advice.must_begin("Its workers are too slow");
    // Frames that a video decoder of the GPU brings are read by kernels of their layout.
    let decodes = |kernel, name| {
        let mut scene = scene(5_000_000, name);
        scene.kernel(kernel, 1, 99_000_000, 99_900_000);
        sick("host-bound", &mut scene).advice
    };
    let nv12 = "ConvertNV12BLtoNV12";
    decodes(nv12, "avcodec_send_packet").must_have("video decoder");
    decodes("scale", "avcodec_send_packet").must_lack("video decoder");
    decodes(nv12, "parse").must_lack("video decoder");
    // What is no loading may need what the GPU made.
    let found = sick("host-bound", &mut scene(5_000_000, "solve"));
    let gain = Some("up to 45.0 ms from cutting CPU work".to_owned());
    assert_eq!((found.bound_ns, found.gain(0.0)), (9 * 5_000_000, gain));
    assert!(!found.advice.contains("next batch"), "{}", found.advice);
    assert!(!found.advice.contains("managed"), "{}", found.advice);
    // Launches run ahead without it: idle time of 0.2 ms before four of them a round goes, too. As much as half of it is a cause of its own.
    let launches = |number: Ns, pause: Ns| {
        let mut scene = Scene::new();
        for at in (0..10).map(|it| it * 40_000_000) {
            let kind = RangeKind::CpuOp;
            let launched = at + number * (pause + 100_000);
            scene.range(kind, "solve", 0, launched, at + 40_000_000);
            for begin in (0..number).map(|it| at + it * (pause + 100_000)) {
                scene.call("cudaLaunchKernel", begin, begin + 3_000);
                scene.kernel("k", 1, begin + 6_000, begin + 100_000);
            }
        }
        sick("host-bound", &mut scene).beside_ns
    };
    assert!(launches(5, 200_000) >= 10 * 4 * 200_000);
    assert!(launches(20, 900_000) < 10_000_000);
    // A call of the system waits for others, in PyTorch for a loader.
    let found = sick("host-bound", &mut scene(5_000_000, "poll"));
    found.advice.must_begin("There it waits for other threads");
    let mut torch = scene(5_000_000, "poll");
    torch.kernel("void at::native::add", 1, 99_000_000, 99_900_000);
    let found = sick("host-bound", &mut torch);
    found.advice.must_have("persistent_workers");
    // With managed memory it may be pages that come and go.
    let mut managed = scene(5_000_000, "solve");
    managed.call("cudaMallocManaged", -90_000, -80_000);
    let found = sick("host-bound", &mut managed);
    assert!(found.advice.contains("managed memory"), "{}", found.advice);
    // A library takes some of its own, beside what the program takes.
    let mut beside = scene(5_000_000, "solve");
    for (at, name) in (-9..).zip(["cudaMallocManaged", "cudaMalloc", "cudaMalloc"]) {
        beside.call(name, at * 10_000, at * 10_000 + 5_000);
    }
    let found = sick("host-bound", &mut beside);
    assert!(!found.advice.contains("managed memory"), "{}", found.advice);
    // Nor does anybody know what the CPU does there, and for how long kernels wait for pages.
    let mut managed = scene(5_000_000, "");
    managed.call("cudaMallocManaged", -90_000, -80_000);
    let found = sick("managed-memory", &mut managed);
    assert_eq!(found.gain(0.0).as_deref(), Some("try prefetching pages"));
    let whole = 95_000_000 - 6_000;
    assert_eq!(found.promise(whole)[2], 1.0);
    let why = found.says.expect("words for the headline").why;
    why.must_have("in untraced CPU work with managed memory");
    // Pages that move elsewhere are not what the CPU waits for there; those beside its gaps are.
    for (end, rule) in [(5_000_000, "managed-memory"), (2_000_000, "no-cure")] {
        let mut moves = scene(5_000_000, "");
        moves.call("cudaMallocManaged", -90_000, -80_000);
        moves.without_call();
        for at in (0..10).map(|i| i * 10_000_000 + end) {
            moves.copy(
                Direction::D2H,
                activity::Place::NO_STREAM,
                4_096,
                at,
                at + 1_000,
            );
        }
        sick(rule, &mut moves);
    }
    // Of code that nobody knows nothing can be advised.
    cured("host-bound", &mut scene(5_000_000, ""));
    sick("no-cure", &mut scene(5_000_000, ""));
}

#[test]
fn data_that_is_set_up_is_no_batch() {
    // Ten weights of 1 MiB are read for 5 ms each and sent: of 55 ms 50 are the CPU's. With kernels they are batches.
    let scene = |has_kernels: bool| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * 5_500_000;
            scene.range(RangeKind::CpuOp, "load", 0, at - 5_000_000, at);
            scene.call("cudaMemcpyAsync", at, at + 3_000);
            scene.copy(Direction::H2D, 1, 1 << 20, at + 6_000, at + 200_000);
            if has_kernels {
                scene.call("cudaLaunchKernel", at + 4_000, at + 7_000);
                scene.kernel("k", 1, at + 200_000, at + 500_000);
            }
        }
        scene
    };
    sick("host-bound", &mut scene(true));
    cured("host-bound", &mut scene(false));
}

/// After one kernel the CPU reads what it wrote, 4 ms between each two of ten pages: nothing could be prepared ahead.
#[test]
fn a_cpu_that_reads_managed_results() {
    let mut scene = Scene::new();
    scene
        .call("cudaLaunchKernel", 0, 3_000)
        .kernel("k", 1, 6_000, 1_000_000);
    scene.call("cudaDeviceSynchronize", 4_000, 1_002_000);
    scene.without_call();
    for page in 0..10 {
        let at = 5_000_000 + page * 4_002_000;
        scene.copy(
            Direction::D2H,
            activity::Place::NO_STREAM,
            4096,
            at,
            at + 2_000,
        );
    }
    let batch = scene.take();
    cured("host-bound", Scene::new().put(batch.clone()));
    // Page faults may take all of it.
    cured("no-cure", Scene::new().put(batch.clone()));
    let mut scene = Scene::new();
    scene.put(batch);
    let at = 5_000_000 + 10 * 4_002_000;
    scene
        .call("cudaLaunchKernel", at, at + 3_000)
        .kernel("k", 1, at + 4_000, at + 9_000);
    cured("host-bound", Scene::new().put(scene.take()));
}

/// Pages go to the GPU, and 50 ms later the only kernel is launched: there is nothing to prepare it beside.
#[test]
fn what_precedes_all_work_cannot_be_prepared_ahead() {
    let scene = |kernels: Ns| {
        let mut scene = Scene::new();
        let stream = activity::Place::NO_STREAM;
        scene.copy(Direction::H2D, stream, 4096, 0, 2_000);
        scene.range(RangeKind::CpuOp, "load", 0, 0, 100_001_000);
        scene.range(RangeKind::CpuOp, "load", 0, 100_001_000, 1_000_000_000);
        for at in (1..=kernels).map(|i| i * 50_000_000) {
            scene.call("cudaLaunchKernel", at, at + 3_000).kernel(
                "k",
                1,
                at + 4_000,
                at + 1_000_000,
            );
        }
        scene
    };
    cured("host-bound", &mut scene(1));
    assert_eq!(sick("host-bound", &mut scene(3)).count, 2);
}

/// Twenty kernels of 500 us. After each its sync returns 10 us late, the CPU reads for so long, and launches the next.
fn turns(takes: &str, reads: Ns) -> Scene {
    let mut scene = Scene::new();
    scene.call(takes, -50_000, -40_000);
    for at in (0..20).map(|i| i * (520_000 + reads)) {
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("k", 1, at + 5_000, at + 505_000);
        scene.call("cudaDeviceSynchronize", at + 4_000, at + 515_000);
    }
    scene
}

#[test]
fn a_sync_before_managed_memory_is_read_may_have_to_stay() {
    // Of each gap of 420 us the CPU reads for 405.
    let found = sick("sync-in-loop", &mut turns("cudaMalloc", 400_000));
    assert_eq!((found.severity, found.count), (Severity::Warning, 19));
    cured("sync-in-loop", &mut turns("cudaMallocManaged", 4_000_000));
    let kept = |reads| {
        let mut scene = turns("cudaMallocManaged", reads);
        findings(&mut scene)
            .into_iter()
            .find(|it| it.rule.name() == "sync-in-loop")
    };
    // The syncs' own ends and the launches stay: 19 times 15 us of 18 ms, which is below 2 %.
    assert_eq!(kept(400_000), None);
    // Of 10 ms they are more, and whether the CPU reads between them nobody knows.
    let found = kept(0).expect("a remark");
    assert_eq!(found.severity, Severity::Info);
    assert!(found.refused.is_some(), "{found:?}");
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
fn a_value_that_is_fetched_before_long_work_keeps_its_sync() {
    // Ten kernels of 60 ms whose flag of one byte is copied back, with 82 ms of the CPU's own work behind each.
    let mut scene = Scene::new();
    let copy = Copy {
        to: MemoryKind::Pageable,
        ..pinned(Direction::D2H, 1, 1)
    };
    for at in (0..10).map(|i| i * 142_000_000) {
        scene.call("cudaLaunchKernel", at, at + 2_000);
        scene.kernel("k", 1, at + 5_000, at + 60_000_000);
        scene.call("cudaMemcpy", at + 3_000, at + 60_004_000);
        scene.copy_of(copy, at + 60_001_000, at + 60_002_000);
    }
    let batch = scene.take();
    cured("sync-in-loop", Scene::new().put(batch.clone()));
    let found = sick("no-cure", Scene::new().put(batch));
    // Nine times from the copy's call, which ends 60.004 ms after the launch began, to the next launch.
    assert_eq!(
        (found.count, found.bound_ns),
        (9, 9 * (142_000_000 - 60_004_000))
    );
}

/// Twenty kernels of 6 ms that are waited for, with 5 ms of the CPU behind each: it may need what they left in its memory.
#[test]
fn what_the_cpu_works_on_for_long_may_be_what_it_waited_for() {
    let scene = |work: Ns| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * (6_015_000 + work)) {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 10_000, at + 6_010_000);
            scene.call("cudaDeviceSynchronize", at + 10_000, at + 6_015_000);
        }
        scene
    };
    cured("sync-in-loop", &mut scene(5_000_000));
    // From a kernel's end to the next one's begin, 19 times.
    let found = sick("sync-in-loop", &mut scene(900_000));
    assert_eq!(found.bound_ns, 19 * 915_000);
}

/// A loop whose kernel says by a value whether it goes on. What `.item()` of PyTorch brings is mostly printed.
#[test]
fn a_value_may_decide_what_is_launched_next() {
    let scene = |bytes: u64, operator: Option<&str>| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 60_000) {
            scene.call("cudaLaunchKernel", at, at + 2_000);
            scene.kernel("at::native::reduce", 1, at + 3_000, at + 9_000);
            scene.call("cudaMemcpyAsync", at + 3_000, at + 13_000);
            scene.copy_of(pinned(Direction::D2H, 1, bytes), at + 15_000, at + 16_000);
            scene.call("cudaStreamSynchronize", at + 13_500, at + 17_500);
            if let Some(operator) = operator {
                scene.range(RangeKind::CpuOp, operator, 0, at + 2_500, at + 18_000);
            }
        }
        scene
    };
    let found = sick(
        "sync-in-loop",
        &mut scene(4, Some("aten::_local_scalar_dense")),
    );
    assert_eq!((found.severity, found.refused), (Severity::Warning, None));
    let found = sick("sync-in-loop", &mut scene(4, Some("aten::nonzero")));
    assert!(found.refused.is_some());
    let by = "a value is read back after every kernel, by aten::nonzero";
    assert_eq!(found.says.map(|it| it.why).as_deref(), Some(by));
    // One kernel from value to value: it may be looked at less often, and then all that the GPU idles may go.
    let found = sick("sync-in-loop", &mut scene(4, None));
    assert_eq!(
        (found.severity, found.bound_ns),
        (Severity::Warning, 20 * 6_000 + 19 * 47_000)
    );
    assert!(found.refused.is_some());
    let says = found.says.expect("a headline of its own");
    assert_eq!(says.why, "a value is read back after every kernel");
    // 16 KiB are a result, and no value.
    let found = sick("sync-in-loop", &mut scene(16 << 10, None));
    assert_eq!((found.says, found.refused), (None, None));
}

/// A graph with so many bytes of input, whose result of as many the CPU waits for.
#[test]
fn what_a_graph_makes_of_its_input_is_a_result_and_ends_no_loop() {
    let scene = |bytes: u64| {
        let mut scene = Scene::new();
        for at in (0..30).map(|i| i * 60_000) {
            scene.call("cudaMemcpyAsync", at, at + 1_000);
            scene.copy_of(pinned(Direction::H2D, 1, bytes), at + 2_000, at + 3_000);
            scene.call("cudaGraphLaunch", at + 1_500, at + 3_500);
            scene.kernel("layer", 1, at + 5_000, at + 9_000);
            scene.kernel("layer", 1, at + 9_000, at + 13_000);
            scene.call("cudaMemcpyAsync", at + 4_000, at + 5_000);
            scene.copy_of(pinned(Direction::D2H, 1, bytes), at + 13_500, at + 14_500);
            scene.call("cudaEventSynchronize", at + 6_000, at + 17_000);
        }
        sick("sync-in-loop", &mut scene)
    };
    let found = scene(300);
    found
        .advice
        .must_begin("Each graph launch has input of its own");
    assert_eq!((found.cure, found.change.len()), ("batching requests", 0));
    // A flag that is set back before each round is no input: it may end the loop.
    assert_eq!(scene(4).cure, "reading it less often");
}

/// Values that come back one by one, and then kernels: no kernel lies between two of the reads.
#[test]
fn values_that_come_back_before_all_kernels_take_no_turns_with_them() {
    let mut scene = Scene::new();
    for at in (0..20).map(|i| i * 50_000) {
        scene.call("cudaMemcpyAsync", at, at + 5_000);
        scene.copy_of(pinned(Direction::D2H, 1, 4), at + 7_000, at + 8_000);
        scene.call("cudaStreamSynchronize", at + 5_500, at + 9_500);
    }
    for at in (20..40).map(|i| i * 50_000) {
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 7_000, at + 9_000);
    }
    let found = sick("sync-in-loop", &mut scene);
    assert_eq!(found.says.map(|it| it.why), None);
    // Between the reads and until the first kernel the GPU is idle for 19 * 49 + 49 us.
    assert!(found.bound_ns <= 20 * 49_000, "{}", found.bound_ns);
}

/// Rounds of so many kernels with so many values that come back behind them.
#[test]
fn values_that_come_back_less_often_than_kernels_run_are_told_as_they_are() {
    let why = |kernels: i64, values: i64| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 60_000) {
            for kernel in 0..kernels {
                let at = at + kernel * 8_000;
                scene.call("cudaLaunchKernel", at, at + 2_000);
                scene.kernel("k", 1, at + 3_000, at + 9_000);
            }
            for value in 0..values {
                let at = at + kernels * 8_000 + value * 10_000;
                scene.call("cudaMemcpyAsync", at, at + 5_000);
                scene.copy_of(pinned(Direction::D2H, 1, 4), at + 7_000, at + 8_000);
                scene.call("cudaStreamSynchronize", at + 5_500, at + 9_500);
            }
        }
        let says = sick("sync-in-loop", &mut scene).says;
        says.expect("a headline of its own").why
    };
    assert_eq!(why(1, 1), "a value is read back after every kernel");
    assert_eq!(why(2, 1), "a value is read back after every 2 kernels");
    // Behind the last of 40 nothing is idle.
    assert_eq!(why(3, 2), "values are read back 39 times beside 60 kernels");
}

/// Steps of so many pieces of 12 kernels, and a value that comes back behind each.
fn pieces(pieces: i64, behind: &str) -> Scene {
    let mut scene = Scene::new();
    let mut at = 0;
    for _ in 0..12 * pieces {
        for kernel in 0..12 {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            let name = if kernel == 0 { behind } else { "k" };
            scene.kernel(name, 1, at + 7_000, at + 9_000);
            at += 10_000;
        }
        scene.call("cudaMemcpyAsync", at, at + 5_000);
        scene.copy_of(pinned(Direction::D2H, 1, 4), at + 7_000, at + 8_000);
        scene.call("cudaStreamSynchronize", at + 6_000, at + 10_000);
        at += 12_000;
    }
    scene
}

/// Twenty steps of PyTorch that go through 40 tensors, two kernels for each, of so many sizes, and end with one of another name.
#[test]
fn a_loop_over_tensors_is_told_beside_a_graph() {
    let told_before = |last: &str, sizes: u32, framework: &str| {
        let mut scene = Scene::new();
        for i in 0..20 * 81 {
            let at = i * 12_000;
            scene.call("cudaLaunchKernel", at, at + 5_000);
            let name = match i % 81 {
                80 => last.to_owned(),
                it => format!("{framework}elementwise_kernel<{}>", it % 2),
            };
            let shape = launch(1 + (i % 81) as u32 / 2 % sizes, 128);
            scene.shaped(shape, &name, 1, at + 7_000, at + 9_000);
        }
        let found = sick("launch-bound", &mut scene);
        let changes: Vec<String> = found.change.iter().map(|it| it.to_string()).collect();
        found.advice + &changes.join("; ")
    };
    let told = |sizes, framework| told_before("gemm", sizes, framework);
    // What joins their results shows that they are pieces, though all are of one size.
    let join = "void at::native::CatArrayBatchedCopy_vectorized<float>";
    let found = told_before(join, 1, "void at::native::");
    found.must_have(
        "99 % of the kernels do the same to one piece after the other. Joined they are one tensor",
    );
    found.must_have("try torch.vmap: over all pieces at once");
    let found = told(5, "void at::native::");
    found.must_have("99 % of the kernels do the same to one tensor after the other");
    found.must_have("CUDA graph");
    told(1, "void at::native::").must_lack("foreach");
    told(5, "my_").must_lack("foreach");
    // The norms of all gradients are joined as well; what autograd copies for each is no loop of the program's.
    let norm = "void at::native::reduce_kernel<512, NormTwoOps<float>>(float*) ";
    told_before(join, 5, norm).must_have("foreach");
    told_before(join, 5, "void at::native::direct_copy_kernel_").must_lack("one after");
}

/// No graph reaches across values that are read within a step, nor holds kernels of a size that is read first. At the end of a step
/// it holds all.
#[test]
fn values_that_are_read_within_a_step_leave_no_graph() {
    let told = |scene: &mut Scene, steps: usize| {
        let trace = scene.trace();
        in_scope(&trace, None, PEAKS, |scope| {
            let mut scope = scope.clone();
            scope.steps = steps;
            all(&scope)
        })
    };
    let rules = |all: &[Finding]| -> Vec<Rule> {
        let slow = all.iter().filter(|it| it.severity == Severity::Warning);
        slow.map(|it| it.rule).collect()
    };
    let found = told(&mut pieces(4, "k"), 12);
    assert_eq!(rules(&found), [Rule::SyncInLoop]);
    let says = found[0].says.clone().expect("a headline of its own");
    assert_eq!(says.why, "a value is read back after every 12 kernels");
    assert_eq!(rules(&told(&mut pieces(1, "k"), 12)), [Rule::LaunchBound]);
    assert_eq!(rules(&told(&mut pieces(4, "k"), 0)), [Rule::LaunchBound]);
    let nonzero = "void at_cuda_detail::cub::detail::scan::DeviceCompactInitKernel<int>";
    let found = told(&mut pieces(1, nonzero), 12);
    assert_eq!(rules(&found), [Rule::SyncInLoop]);
    found[0].advice.must_have("fixed sizes");
}

/// A capture ends at a sync. One read a step may be at its end, and two are not.
#[test]
fn a_graph_around_a_step_holds_no_value_that_is_read_back() {
    let told = |pieces: i64, is_torch: bool| {
        let mut scene = self::pieces(pieces, "k");
        if is_torch {
            scene.range(RangeKind::CpuOp, "aten::is_nonzero", 0, 120_000, 131_000);
        }
        in_scope(&scene.trace(), None, PEAKS, |scope| {
            let mut scope = scope.clone();
            scope.steps = 12;
            let found = all(&scope).into_iter();
            let mut found = found.filter(|it| it.rule == Rule::LaunchBound);
            let found = found.next().expect("launches");
            let changes = found.change.iter().map(|it| it.to_string());
            (found.advice, changes.collect::<Vec<_>>().join("; "))
        })
    };
    let (advice, change) = told(1, true);
    advice.must_lack("capture");
    change.must_have("torch.cuda.graph around the step");
    let (advice, change) = told(2, true);
    advice.must_have(
        "No capture can hold what aten::is_nonzero reads back within the step: take that out first.",
    );
    let first = "what aten::is_nonzero reads back: out of the step first";
    assert_eq!(
        change,
        format!("try torch.compile: mode=\"reduce-overhead\"; {first}")
    );
    let (advice, change) = told(2, false);
    advice.must_have(" the copy of 4 B to the CPU within the step");
    change.must_have("around what is launched between read-backs");
    change.must_lack("out of the step");
}

/// One read a step, which may be at its end, but where an exchange needs sizes from it; and a timeline of TensorFlow.
#[test]
fn no_graph_is_promised_across_exchanges_or_to_tensorflow() {
    let told = |pieces: i64, name: &str| {
        let mut scene = self::pieces(pieces, "k");
        scene.name("aten::mm");
        scene.range(RangeKind::CpuOp, name, 0, 120_000, 131_000);
        in_scope(&scene.trace(), None, PEAKS, |scope| {
            let mut scope = scope.clone();
            scope.steps = 12;
            let found = all(&scope).into_iter();
            let mut found = found.filter(|it| it.rule == Rule::LaunchBound);
            found.next().expect("launches").gain
        })
    };
    let parts = "capture the parts between its syncs in CUDA graphs";
    assert_eq!(told(1, "c10d::alltoall_base_").as_deref(), Some(parts));
    assert_eq!(told(1, "c10d::allreduce_"), None);
    let change = |name: &str| {
        let mut scene = short_kernels(false);
        scene.name(name);
        let found = sick("launch-bound", &mut scene);
        (found.cure, found.change[0].to_string())
    };
    let (cure, told) = change("Launch of MatMul");
    assert_eq!(cure, "compiling the step with XLA");
    told.must_have("jit_compile=True");
    change("Launches").1.must_have("cudaStreamBeginCapture");
}

#[test]
fn what_is_compiled_already_is_told_what_it_lacks() {
    let told = |names: &[&str]| {
        let mut scene = short_kernels(false);
        for name in names.iter().chain(&["aten::mm"]) {
            scene.name(name);
        }
        sick("launch-bound", &mut scene).change[0].to_string()
    };
    // torch's docs: "reduce-overhead" is the mode of torch.compile that makes CUDA graphs, and the default makes none.
    told(&["Torch-Compiled Region: 0/0"]).must_have("where it compiles already");
    told(&["triton_poi_fused_add_0"]).must_have("where it compiles already");
    // vLLM's: enforce_eager=True makes no graphs.
    let vllm = ["vllm::unified_attention", "## Call CompiledFxGraph x ##"];
    assert_eq!(told(&vllm), "LLM: enforce_eager=False");
    told(&["vllm::rms_norm", "cudaGraphLaunch"]).must_have("torch.cuda.graph around the step");
    told(&["triton_attention"]).must_have("torch.cuda.graph around the step");
}

/// Kernels of 6 us that are waited for every 60: the CPU reads what they left in managed memory without a copy of its own.
#[test]
fn managed_memory_may_decide_what_is_launched_next() {
    let scene = |is_managed: bool| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 60_000) {
            scene.call("cudaLaunchKernel", at, at + 2_000);
            scene.kernel("relax", 1, at + 3_000, at + 9_000);
            scene.call("cudaDeviceSynchronize", at + 3_000, at + 40_000);
        }
        if is_managed {
            let stream = activity::Place::NO_STREAM;
            scene.without_call();
            scene.copy(Direction::D2H, stream, 4 << 10, 45_000, 46_000);
        }
        scene
    };
    let found = sick("sync-in-loop", &mut scene(false));
    assert_eq!((found.severity, found.refused), (Severity::Warning, None));
    let stays = "Where a result decides what is launched next, its sync has to stay.";
    assert!(found.advice.ends_with(stays), "{}", found.advice);
    let found = sick("sync-in-loop", &mut scene(true));
    assert_eq!(found.severity, Severity::Info);
    assert!(found.refused.is_some());
}

#[test]
fn one_gap_that_holds_nearly_all_is_told_as_one() {
    // A kernel of 1 ms, 10 s of the CPU, and 100 kernels of 1 ms that begin 1.5 ms apart: 101 ms in 149.5 without it.
    let mut scene = Scene::new();
    for i in 0..101 {
        let at = i * 1_500_000 + if i > 0 { 9_999_500_000 } else { 0 };
        scene.call("cudaLaunchKernel", at - 5_000, at - 3_000);
        scene.kernel("k", 1, at, at + 1_000_000);
    }
    let batch = scene.take();
    cured("host-bound", Scene::new().put(batch.clone()));
    let found = sick("no-cure", Scene::new().put(batch));
    let told = "nearly all in one gap before k (the GPU is busy for 67 % of the remaining time): what a cure saves is not known";
    assert!(found.title.ends_with(told), "{}", found.title);
}

/// A kernel of 1 ms, 10 s of the CPU, and 100 kernels of 1 ms that begin 1.5 ms apart, but four 25 ms later: 101 ms in 250.5 without
/// the one gap, and in 148.5 without those of 25.5 ms.
#[test]
fn what_remains_beside_one_gap_has_the_others_in_it() {
    let mut scene = Scene::new();
    for i in 0..101 {
        let late = i / 25 * 25_000_000;
        let at = i * 1_500_000 + late + if i > 0 { 9_999_500_000 } else { 0 };
        scene.call("cudaLaunchKernel", at - 5_000, at - 3_000);
        scene.kernel("k", 1, at, at + 1_000_000);
    }
    let title = sick("no-cure", &mut scene).title;
    title.must_have(
        "(of what remains 4 gaps take 102 ms, and the GPU is busy for 68 % of the rest)",
    );
}

#[test]
fn a_memset_that_ends_a_gap_is_told_by_its_operator() {
    // Two kernels of 1 ms with 10 s between them, and a memset before the second that a product makes.
    let scene = |operator: &str| {
        let mut scene = Scene::new();
        let second = 10_000_000_000;
        for at in [0, second] {
            scene.range(RangeKind::CpuOp, operator, 0, at - 40_000, at + 10_000);
            scene.call("cudaMemsetAsync", at - 30_000, at - 25_000);
            scene.memset(1, 4, at - 20_000, at - 18_000);
            scene.call("cudaLaunchKernel", at - 5_000, at - 3_000);
            scene.kernel("k", 1, at, at + 1_000_000);
        }
        sick("no-cure", &mut scene).title
    };
    scene("aten::mm").must_have(" before the memset of aten::mm (the GPU");
    scene("step").must_have(" before the memset (the GPU");
}

#[test]
fn what_precedes_a_kernels_first_launch_is_no_next_batch() {
    // A kernel every 5 ms, launched within 6 us. It runs for 10 us: the CPU works for 4.984 ms before each but the first.
    let scene = |names: [&str; 5]| {
        let mut scene = Scene::new();
        for (i, name) in (0..).zip(names) {
            let at = i * 5_000_000;
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel(name, 1, at + 6_000, at + 16_000);
        }
        scene.range(RangeKind::CpuOp, "load", 0, 0, 10_001_000);
        scene.range(RangeKind::CpuOp, "load", 0, 10_001_000, 30_000_000);
        scene
    };
    let found = sick("host-bound", &mut scene(["a", "a", "b", "a", "b"]));
    assert_eq!((found.count, found.bound_ns), (3, 3 * 4_984_000));
    cured("host-bound", &mut scene(["a", "b", "c", "d", "e"]));
}

#[test]
fn what_a_library_tries_is_no_sync_of_the_program() {
    let scene = |operator: &str| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * 100_000;
            scene.range(RangeKind::CpuOp, operator, 0, at, at + 80_000);
            scene.call("cudaLaunchKernel", at + 1_000, at + 4_000);
            scene.kernel("k", 1, at + 8_000, at + 40_000);
            scene.call("cudaEventSynchronize", at + 5_000, at + 41_000);
        }
        scene
    };
    sick("sync-in-loop", &mut scene("aten::item"));
    let all = all_of(&mut scene("aten::cudnn_convolution"));
    assert!(
        all.iter().all(|it| it.rule.name() != "sync-in-loop"),
        "{all:?}"
    );
}

#[test]
fn what_comes_behind_a_long_gap_is_a_batch_or_a_model() {
    // Kernels of 1 ms behind 8 MiB each; 80 ms later as much comes again, and arrays of a model with it.
    let told = |arrays: Ns| {
        let mut scene = Scene::new();
        for (at, arrays) in [(0, 0), (5_000_000, 0), (90_000_000, arrays)] {
            for i in 0..=arrays {
                let bytes = if i == 0 { 8 << 20 } else { 1 << 20 };
                let at = at + i * 20_000;
                scene.call("cudaMemcpyAsync", at, at + 2_000);
                scene.copy(Direction::H2D, 1, bytes, at + 3_000, at + 18_000);
            }
            let at = at + (arrays + 1) * 20_000;
            scene.call("cudaLaunchKernel", at, at + 2_000);
            scene.kernel("k", 1, at + 3_000, at + 1_000_000);
        }
        let found = findings(&mut scene).into_iter();
        let found = found.map(|it| (it.rule, it.says.map(|it| it.why)));
        found.collect::<Vec<_>>()
    };
    let batch = "waiting for the next batch of 8 MiB".to_owned();
    assert_eq!(told(1), [(Rule::NextBatch, Some(batch))]);
    assert_eq!(told(100), [(Rule::NoCure, None)]);
}

#[test]
fn batches_that_are_waited_for_again_and_again_are_named() {
    // Twenty kernels of 1 ms, each behind 8 MiB, 4 ms of unnamed CPU work before these or behind them.
    let told = |rule, before: Ns| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 6_000_000 + before) {
            scene.call("cudaMemcpyAsync", at, at + 2_000);
            scene.copy(Direction::H2D, 1, 8 << 20, at + 3_000, at + 203_000);
            let at = at + 4_210_000 - before;
            scene.call("cudaLaunchKernel", at, at + 2_000);
            scene.kernel("k", 1, at + 3_000, at + 1_003_000);
        }
        sick(rule, &mut scene)
    };
    let found = told("next-batch", 4_000_000);
    found
        .title
        .must_have("most of it before 8 MiB come to the GPU");
    let why = found.says.expect("a batch").why;
    why.must_end("waiting for the next batch of 8 MiB");
    assert!(told("no-cure", 0).says.is_none());
}

#[test]
fn what_comes_but_once_is_no_next_batch() {
    // Five kernels, and 30 ms of the CPU before a copy of 8 MiB; 10 ms before two others, of as many bytes or of fewer.
    let told = |bytes: [u64; 2]| {
        let mut scene = Scene::new();
        for i in 0..5 {
            let at = i * 1_010_000;
            scene.call("cudaLaunchKernel", at, at + 2_000);
            scene.kernel("k", 1, at + 3_000, at + 1_003_000);
        }
        let copies = [(40_000_000, 8 << 20), (50_000_000, bytes[0])];
        for (at, bytes) in copies.into_iter().chain([(55_000_000, bytes[1])]) {
            scene.call("cudaMemcpyAsync", at, at + 2_000);
            scene.copy(Direction::H2D, 1, bytes, at + 3_000, at + 203_000);
        }
        sick("no-cure", &mut scene).advice
    };
    told([8 << 20, 8 << 20]).must_have("the next batch");
    told([1 << 20, 1 << 20]).must_lack("the next batch");
}

#[test]
fn a_loader_that_has_workers_is_not_told_to_have_some() {
    // Kernels of 1 ms, with a loader before each that takes 4.
    let advice = |loader: &str| {
        let mut scene = Scene::new();
        for at in (0..10).map(|i| i * 5_000_000) {
            scene.range(RangeKind::CpuOp, loader, 0, at + 1_000_000, at + 4_990_000);
            // A call of the system that waits in it says nothing more.
            scene.range(RangeKind::CpuOp, "poll", 0, at + 1_100_000, at + 4_980_000);
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 10_000, at + 1_010_000);
        }
        sick("host-bound", &mut scene).advice
    };
    let single = advice("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    assert!(single.starts_with("Prepare the next batch"), "{single}");
    let several = advice("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    assert!(several.contains("num_workers"), "{several}");
}

#[test]
fn a_finding_of_a_small_part_does_not_tell_of_the_rest() {
    // Kernels of 100 us, an allocation of 100 us behind each, and 2.8 ms of unnamed CPU work.
    let mut scene = Scene::new();
    for at in (0..20).map(|i| i * 3_020_000) {
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 10_000, at + 110_000);
        scene.call("cudaMalloc", at + 120_000, at + 220_000);
    }
    let batch = scene.take();
    sick("alloc-in-loop", Scene::new().put(batch.clone()));
    let found = sick("no-cure", Scene::new().put(batch));
    found.title.must_begin("CPU work keeps the GPU idle");
}

#[test]
fn what_is_launched_ahead_does_not_start_late_behind_a_sync() {
    // Rounds of a launch, a kernel of 300 us that begins so long behind it, and a wait until 5 us behind that; 10 us of work.
    let bound = |late: Ns| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * (late + 315_000)) {
            let end = at + late + 300_000;
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + late, end);
            scene.call("cudaEventSynchronize", at + 6_000, end + 5_000);
        }
        sick("sync-in-loop", &mut scene).bound_ns
    };
    assert_eq!(bound(150_000), 19 * 165_000);
}

#[test]
fn what_is_written_to_a_file_is_told_so_by_all_its_calls() {
    let scene = |calls: [&str; 2]| {
        let (mut scene, mut now) = (Scene::new(), 0);
        for _ in 0..6 {
            scene.call("cudaLaunchKernel", now, now + 5_000);
            scene.kernel("k", 7, now + 10_000, now + 10_000_000);
            now += 10_010_000;
            for name in calls {
                scene.range(RangeKind::CpuOp, name, 0, now, now + 9_000_000);
                now += 10_000_000;
            }
        }
        sick("host-bound", &mut scene)
    };
    let found = scene(["fwrite", "fsync"]);
    found.title.must_have("90 % of it in writing a file (f");
    assert_eq!(found.cure, "writing beside the GPU's work");
    assert_eq!(found.change[0].call, "file");
    // What is read is another matter.
    let found = scene(["fread", "fread"]);
    found.title.must_have("90 % of it in fread");
    assert_ne!(found.cure, "writing beside the GPU's work");
}

/// Ten rounds of 8 ms: 0.1 ms of a kernel, 2 ms in which its result comes back, and work on that. Done on the GPU all goes but the
/// kernels: 74.2 ms from the first operation to the last, without 1 ms.
#[test]
fn copies_go_with_the_work_on_what_they_bring_back() {
    let mut scene = Scene::new();
    for at in (0..10).map(|i| i * 8_000_000) {
        scene.call("cudaLaunchKernel", at - 6_000, at - 3_000);
        scene.kernel("k", 1, at, at + 100_000);
        scene.call("cudaMemcpy", at + 10_000, at + 2_250_000);
        scene.copy(Direction::D2H, 1, 16 << 20, at + 200_000, at + 2_200_000);
        scene.range(RangeKind::CpuOp, "solve", 0, at + 2_250_000, at + 7_900_000);
    }
    let found = sick("host-bound", &mut scene);
    assert_eq!(found.bound_ns + found.beside_ns, 73_200_000);
    assert!(found.bound_ns < 60_000_000, "{}", found.bound_ns);
}

/// A kernel of 1 ms, behind 90 ms in which the launching thread of TensorFlow does nothing, and another thread is in a range.
fn another_thread_works(thread: &str, own: bool) -> Finding {
    while_another_works(thread, own, true)
}

/// The same, where the second kernel has a call or none.
fn while_another_works(thread: &str, own: bool, is_called: bool) -> Finding {
    let mut scene = Scene::new();
    scene.name("ExecutorState::Process");
    scene.call("cuLaunchKernel", 0, 5_000);
    if thread.ends_with("/asked") {
        scene.range(
            RangeKind::CpuOp,
            "IteratorGetNextOp::DoCompute",
            0,
            1,
            90_000,
        );
    }
    scene.kernel("first", 1, 10_000, 1_000_000);
    if is_called {
        scene.call("cuLaunchKernel", 91_000_000, 91_005_000);
    }
    scene.kernel("second", 1, 91_010_000, 92_000_000);
    if own {
        scene.range(RangeKind::CpuOp, "Tile", 0, 900_000, 91_100_000);
    }
    let mut batch = scene.take();
    let second = batch
        .items
        .iter_mut()
        .filter(|it| it.span.start > 91_005_000);
    second.for_each(|it| it.correlation *= u32::from(is_called));
    let name = scene.name("Iterator::Prefetch");
    batch.defs.extend(scene.take().defs);
    batch.defs.push(Def::Thread {
        thread: 9,
        name: thread.to_owned(),
    });
    let what = What::Range(Range {
        kind: RangeKind::CpuOp,
        name,
        thread: 9,
        index: 0,
    });
    let (span, correlation) = (Span::new(950_000, 90_900_000), 0);
    batch.items.push(Activity {
        span,
        correlation,
        what,
    });
    sick("no-cure", scene.put(batch))
}

/// A timeline of TensorFlow 1 has no calls of copies: what its ops on the CPU did before names the gap, and another thread does not.
#[test]
fn an_operation_without_a_call_waits_for_the_ops_of_tensorflow_on_the_cpu() {
    let told = |thread: &str| while_another_works(thread, false, false).title;
    told("TensorFlow CPU:0").must_begin("CPU work");
    told("python").must_begin("an unknown cause");
}

#[test]
fn a_launching_thread_that_does_nothing_waits_for_the_input_of_tensorflow() {
    let found = another_thread_works("tf_data_iterator_get_next/7", false);
    assert!(found.advice.contains("num_parallel_calls"), "{found:?}");
    let change = found.change[0].to_string();
    assert!(change.contains("tf.data.AUTOTUNE"), "{change}");
    // Work of its own is what it is at, and other threads say nothing.
    for (thread, own) in [
        ("tf_data_iterator_get_next/7", true),
        ("tf_Compute/7", false),
        // The step had its batch long before.
        ("tf_data_iterator_get_next/asked", false),
    ] {
        let found = another_thread_works(thread, own);
        assert!(!found.advice.contains("tf.data"), "{found:?}");
    }
}

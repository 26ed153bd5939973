//! What the host did meanwhile.

use super::*;
use trace::testing::Sentence;

#[test]
fn a_wait_its_return_and_the_launch_after_it_are_three_pieces() {
    let mut scene = begun();
    scene.call("cudaStreamSynchronize", 3_500, 20_000);
    scene
        .call("cudaLaunchKernel", 22_000, 23_000)
        .kernel("second", 1, 26_000, 30_000);
    let (pieces, found) = pieces(&mut scene, 1, 15_000);
    assert_eq!(
        pieces,
        [
            (Cause::SyncStream, 10_000, Fact),
            (Cause::Host, 2_000, Fact),
            (Cause::Latency, 4_000, Fact)
        ]
    );
    // The wait is why nothing had been queued ahead.
    let roots: Vec<bool> = found.pieces.iter().map(|p| p.root.is_some()).collect();
    assert_eq!(roots, [false, true, true]);
    found
        .sentence
        .must_end(": 10.0 µs until cudaStreamSynchronize returned with nothing queued, then 6.00 µs until second ran.");
}

/// A kernel of `first` ns that the host waits for, then two short ones, 20 us of other work between them.
fn after_a_wait(first: Ns) -> (Vec<(Cause, Ns, Certainty)>, Explanation) {
    let mut scene = Scene::new();
    let end = 5_000 + first;
    scene
        .call("cudaLaunchKernel", 1_000, 3_000)
        .kernel("first", 1, 5_000, end);
    scene.call("cudaDeviceSynchronize", 3_500, end + 2_000);
    scene
        .call("cudaLaunchKernel", end + 4_000, end + 5_000)
        .kernel("second", 1, end + 8_000, end + 10_000);
    scene
        .call("cudaLaunchKernel", end + 30_000, end + 31_000)
        .kernel("third", 1, end + 34_000, end + 36_000);
    pieces(&mut scene, 1, end + 20_000)
}

/// A kernel of 1 ms is waited for, then an event of 4 us that had passed long ago: most is due to the long wait.
#[test]
fn of_two_waits_the_one_that_most_is_due_to_is_told() {
    let mut scene = Scene::new();
    scene
        .call("cudaLaunchKernel", 1_000, 3_000)
        .kernel("first", 1, 5_000, 1_000_000);
    scene.call("cudaDeviceSynchronize", 4_000, 1_002_000);
    scene.call("cudaEventSynchronize", 1_220_000, 1_224_000);
    scene
        .call("cudaLaunchKernel", 1_600_000, 1_602_000)
        .kernel("second", 1, 1_605_000, 1_700_000);
    let (_, said) = pieces(&mut scene, 1, 1_300_000);
    said.sentence
        .must_end(": 2.00 µs until cudaDeviceSynchronize returned with nothing queued, then 603 µs until second ran.");
}

#[test]
fn a_root_may_lie_before_the_gap_while_the_time_waited_is_not_made_up_for() {
    let expected = [(Cause::Host, 20_000, Fact), (Cause::Latency, 4_000, Fact)];
    // The host waited 51.5 us and the device idled 8 since: without the wait it would have been ahead.
    let (found, said) = after_a_wait(50_000);
    assert_eq!(found, expected);
    said.sentence.must_end(
        "24.0 µs: cudaDeviceSynchronize left nothing queued, then 24.0 µs until third ran.",
    );
    // It waited 8.5 us, of which 0.5 are not made up for: it would be late all the same.
    let (found, said) = after_a_wait(5_000);
    let (due, rest) = ((Cause::Host, 500, Fact), (Cause::Host, 19_500, Fact));
    assert_eq!(found, [due, rest, expected[1]]);
    let is_due: Vec<bool> = said.pieces.iter().map(|p| p.root.is_some()).collect();
    assert_eq!(is_due, [true, false, false]);
    assert!(!said.sentence.contains("had waited"), "{}", said.sentence);
}

/// The CPU waits for 2 us, and then does 20 us of its own work: it would be late without the wait, too.
#[test]
fn a_short_wait_is_no_reason_for_a_long_pause() {
    let rooted = |wait: Ns| {
        let mut scene = begun();
        scene.call("cudaStreamSynchronize", 11_000 - wait, 11_000);
        scene
            .call("cudaLaunchKernel", 31_000, 32_000)
            .kernel("second", 1, 35_000, 36_000);
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let idle = Causes::new(&trace, &graph).idle(0, None);
        let rooted = idle.iter().filter(|row| row.root.is_some());
        rooted.map(|row| row.total_ns).sum::<Ns>()
    };
    // Without it the CPU is ahead by what it took: 1 us of that is the wait's own idle time, the rest is due to it. Of the
    // pause behind it, 20 us of work and 4 of latency, no more than that.
    let due = [2_000, 24_001, 26_000].map(rooted);
    assert_eq!(due, [1_000, 23_001, 24_000]);
}

#[test]
fn a_wait_that_outlives_the_gap_is_not_blamed() {
    // Two threads: one waits for the device all the while, the other launches.
    let mut scene = begun();
    scene.call("cudaDeviceSynchronize", 3_500, 200_000);
    let name = scene.name("cudaLaunchKernel");
    let mut batch = scene.take();
    for (i, start) in [50_000, 90_000].into_iter().enumerate() {
        let correlation = 100 + i as u32;
        let mut push = |start, end, what| {
            batch.items.push(Activity {
                span: Span::new(start, end),
                correlation,
                what,
            });
        };
        push(
            start,
            start + 2_000,
            What::Call(HostCall {
                thread: 2,
                name,
                code: 0,
            }),
        );
        push(
            start + 5_000,
            start + 8_000,
            What::Kernel(Kernel {
                place: place(1),
                shape: 0,
                graph: 0,
                node: 0,
            }),
        );
    }
    let (pieces, found) = pieces(scene.put(batch), 1, 70_000);
    // 58 to 90: thread 2 did something else. 90 to 95: the launch.
    assert_eq!(
        pieces,
        [(Cause::Host, 32_000, Fact), (Cause::Latency, 5_000, Fact)]
    );
    assert!(found.pieces.iter().all(|p| p.root.is_none()));
}

#[test]
fn a_copy_that_blocks_its_caller_is_a_wait() {
    use trace::testing::pinned;
    let mut scene = Scene::new();
    let copy = Copy {
        is_async: false,
        ..pinned(Direction::D2H, 1, 100)
    };
    scene
        .call("cudaMemcpy", 1_000, 14_000)
        .copy_of(copy, 5_000, 10_000);
    scene
        .call("cudaMemcpy", 15_000, 24_000)
        .copy_of(copy, 18_000, 22_000);
    let (pieces, found) = pieces(&mut scene, 1, 12_000);
    assert_eq!(
        pieces,
        [
            (Cause::BlockingD2H, 4_000, Fact),
            (Cause::Host, 1_000, Fact),
            // Staged copies say nothing of what launches take: the limit is the general one.
            (Cause::Latency, 3_000, Fact)
        ]
    );
    assert!(found.pieces[1].root.is_some());
}

#[test]
fn the_host_inside_the_operations_own_call() {
    // Ordinary launches take 4 us; one took 2 ms in its own call.
    let scene = |name: &str, overhead: Option<&str>| {
        let mut scene = Scene::new();
        for i in 0..200 {
            let at = i * 100_000;
            scene
                .call("cudaLaunchKernel", at, at + 3_000)
                .kernel("k", 1, at + 4_000, at + 6_000);
        }
        let at = 200 * 100_000;
        if let Some(name) = overhead {
            scene.overhead(name, at + 500_000, at + 1_500_000);
        }
        scene.call("cudaLaunchKernel", at, at + 2_000_000).kernel(
            name,
            1,
            at + 1_999_000,
            at + 2_100_000,
        );
        scene
    };
    let at = 200 * 100_000 + 100_000;
    // The gap begins at 19,906 us: 94 us of other work, then the call.
    let (found, _) = pieces(&mut scene("new", None), 1, at);
    // The first launch of a kernel: its code is loaded. What Nsight Systems calls "Unknown" is nobody's.
    let loads = [
        (Cause::Host, 94_000, Fact),
        (Cause::Load, 1_999_000, Likely),
    ];
    assert_eq!(found, loads);
    assert_eq!(pieces(&mut scene("new", Some("Unknown")), 1, at).0, loads);
    let (found, said) = pieces(&mut scene("k", None), 1, at);
    assert_eq!(
        found,
        [
            (Cause::Host, 94_000, Fact),
            (Cause::SlowLaunch, 1_999_000, Fact)
        ]
    );
    said.sentence
        .must_begin("The CPU was inside one slow launch (cudaLaunchKernel)");
    let (found, _) = pieces(&mut scene("k", Some("lazy function loading")), 1, at);
    assert_eq!(
        found,
        [
            (Cause::Host, 94_000, Fact),
            (Cause::SlowLaunch, 500_000, Fact),
            (Cause::Load, 1_000_000, Fact),
            (Cause::SlowLaunch, 499_000, Fact)
        ]
    );
    // Only what is named so is loading.
    let (found, _) = pieces(
        &mut scene("k", Some("CUDA profiling initialization")),
        1,
        at,
    );
    assert_eq!(found[2], (Cause::Profiler, 1_000_000, Fact));
}

#[test]
fn a_host_that_is_late_says_what_it_did() {
    let cases = [
        ("cudaMalloc", Cause::Memory),
        ("cuModuleLoadData", Cause::Load),
        ("cudaGetDeviceProperties", Cause::Call),
        ("cudaGraphInstantiate", Cause::GraphSetup),
        ("cudaDeviceSynchronize", Cause::SyncDevice),
    ];
    for (name, cause) in cases {
        let mut scene = begun();
        scene.call(name, 12_000, 80_000);
        scene
            .call("cudaLaunchKernel", 81_000, 82_000)
            .kernel("second", 1, 86_000, 90_000);
        let (pieces, _) = pieces(&mut scene, 1, 50_000);
        assert_eq!(
            pieces,
            [
                (Cause::Host, 2_000, Fact),
                (cause, 68_000, Fact),
                (Cause::Host, 1_000, Fact),
                (Cause::Latency, 5_000, Fact)
            ],
            "{name}"
        );
    }
}

#[test]
fn the_range_under_the_gap_is_named() {
    let mut scene = begun();
    scene
        .range(activity::RangeKind::Nvtx, "ProfilerStep#3", 0, 0, 200_000)
        .range(activity::RangeKind::Nvtx, "aten::outer", 0, 4_000, 79_000)
        .range(activity::RangeKind::Nvtx, "aten::inner", 0, 20_000, 75_000);
    scene
        .call("cudaLaunchKernel", 81_000, 82_000)
        .kernel("second", 1, 86_000, 90_000);
    let (pieces, found) = pieces(&mut scene, 1, 50_000);
    assert_eq!(
        pieces,
        [
            (Cause::Host, 69_000, Fact),
            (Cause::Host, 2_000, Fact),
            (Cause::Latency, 5_000, Fact)
        ]
    );
    // Outer ends 2 us before the launch; inner covers 55 of the 69 us of it. The profiler's step says nothing.
    found
        .sentence
        .must_begin("Between launches the CPU was in aten::inner for 55.0 µs of 76.0 µs before");
}

/// A function is open for 69 of 76 us: what an operator within it takes is no time beside it.
#[test]
fn a_function_has_the_time_of_what_it_calls() {
    let mut scene = begun();
    scene
        .range(activity::RangeKind::Function, "forward", 0, 12_000, 85_000)
        .range(activity::RangeKind::Nvtx, "aten::slice", 0, 30_000, 50_000);
    scene
        .call("cudaLaunchKernel", 81_000, 82_000)
        .kernel("second", 1, 86_000, 90_000);
    let (_, found) = pieces(&mut scene, 1, 60_000);
    let said =
        "Between launches the CPU was in forward for 69.0 µs of 76.0 µs before it launched second.";
    assert_eq!(found.sentence, said);
}

/// Three steps of 50 ms with 40 ms of the CPU's work before each second kernel, in a range that takes so long of each, and in it an operator.
fn idle_in_a_step(forward: Ns, operator: Ns) -> Vec<(Option<String>, Ns)> {
    const MS: Ns = 1_000_000;
    let mut scene = Scene::new();
    for at in (0..3).map(|it| it * 50 * MS) {
        let ranges = [
            ("ProfilerStep#1", 0, 50 * MS),
            ("Net.forward", 0, forward),
            ("aten::split", 10 * MS, 10 * MS + operator),
        ];
        for (name, from, to) in ranges {
            scene.range(activity::RangeKind::Nvtx, name, 1, at + from, at + to);
        }
        for launch in [at, at + 40 * MS] {
            scene.call("cudaLaunchKernel", launch, launch + 5_000);
            scene.kernel("k", 1, launch + 7_000, launch + 8_000);
        }
    }
    scene.kernel("end", 1, 149 * MS, 150 * MS);
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let mut gaps = causes.gaps_with_pieces(0, None);
    let (_, pieces) = gaps.next().expect("a gap");
    let work = pieces.iter().filter(|it| it.cause == Cause::Host);
    work.map(|it| (causes.culprit(it), it.span.len() / MS))
        .collect()
}

#[test]
fn in_a_range_around_all_of_each_step_the_operator_is_named() {
    let named = |forward: Ns, operator: Ns| {
        let all = idle_in_a_step(forward * 1_000_000, operator * 1_000_000);
        let all = all
            .into_iter()
            .map(|it| format!("{} {}", it.0.unwrap_or_default(), it.1));
        all.collect::<Vec<_>>().join(", ")
    };
    // 10 ms before the operator, 24 in it, and 6 behind it, but for some microseconds of the launch.
    assert_eq!(
        named(49, 24),
        "Net.forward 9, aten::split 24, Net.forward 6"
    );
    // A seventh of the gap is no place of it, and a range that is left between is one.
    assert_eq!(named(49, 6), "Net.forward 39");
    assert_eq!(named(41, 24), "Net.forward 39");
}

/// A graph, two launches 70 us apart, and 300 us of the CPU's own work before them.
#[test]
fn work_between_few_launches_beside_graphs_is_no_launching() {
    let group = |nodes: Ns| {
        let mut scene = Scene::new();
        for at in (0..6).map(|step| step * 1_000_000) {
            scene.call("cudaGraphLaunch", at, at + 4_000);
            for node in (0..nodes).map(|it| at + 6_000 + it * 5_000) {
                scene.kernel("node", 1, node, node + 4_000);
            }
            for launch in [at + 345_000, at + 420_000] {
                scene.call("cudaLaunchKernel", launch, launch + 5_000);
                scene.kernel("k", 1, launch + 7_000, launch + 8_000);
            }
        }
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        let mut gaps = causes.gaps_with_pieces(0, None);
        let (gap, pieces) = gaps.find(|it| it.0.span.len() > 290_000).expect("a gap");
        let work = pieces.iter().find(|it| it.cause == Cause::Host);
        let work = work.expect("work of the CPU");
        (causes.group(gap, work), causes.is_beside_graphs(gap, work))
    };
    assert_eq!(group(8), (Group::Host, true));
    // Where most is launched one by one, ten times what lies between two launches is still on the way to the next.
    assert_eq!(group(1), (Group::Launch, false));
}

#[test]
fn a_thread_that_hands_over_is_followed() {
    // Thread 1 launches and goes quiet; 60 us later thread 2, quiet until then, goes on.
    let mut scene = begun();
    scene.call("cudaStreamSynchronize", 3_500, 15_000);
    scene.call("cudaEventRecord", 16_000, 17_000);
    let name = scene.name("cudaLaunchKernel");
    let call = What::Call(HostCall {
        thread: 2,
        name,
        code: 0,
    });
    scene.push(77_000, 78_000, 50, call);
    let kernel = What::Kernel(Kernel {
        place: place(1),
        shape: 0,
        graph: 0,
        node: 0,
    });
    scene.push(81_000, 90_000, 50, kernel);
    let (pieces, found) = pieces(&mut scene, 1, 50_000);
    assert_eq!(
        pieces,
        [
            (Cause::SyncStream, 5_000, Fact),
            (Cause::Host, 1_000, Fact),
            (Cause::Call, 1_000, Fact),
            // The wait took 11.5 us: 7 are behind, 4.5 are due to it.
            (Cause::Host, 4_500, Likely),
            (Cause::Host, 55_500, Likely),
            (Cause::Latency, 4_000, Fact)
        ]
    );
    let is_due = [3, 4].map(|at| found.pieces[at].root.is_some());
    assert_eq!(is_due, [true, false]);
}

#[test]
fn a_watchdog_hands_nothing_over() {
    // Thread 2 asks every 68 us, also after thread 1 has been quiet for 20 us. Thread 1 was in a call before.
    let mut scene = begun();
    let name = scene.name("cudaEventQuery");
    for at in [2_000, 70_000] {
        let (thread, code) = (2, 600);
        let call = What::Call(HostCall { thread, name, code });
        scene.push(at, at + 500, 50, call);
    }
    scene.call("cudaFree", 12_000, 50_000);
    scene
        .call("cudaLaunchKernel", 80_000, 81_000)
        .kernel("second", 1, 84_000, 90_000);
    let (pieces, _) = pieces(&mut scene, 1, 50_000);
    assert_eq!(
        pieces,
        [
            (Cause::Host, 2_000, Fact),
            (Cause::Memory, 38_000, Fact),
            (Cause::Host, 30_000, Fact),
            (Cause::Latency, 4_000, Fact)
        ]
    );
}

#[test]
fn what_a_thread_only_waits_for_is_named_by_the_thread_that_launches() {
    // Thread 1 is in the range until 74 us and launches at 75. Thread 2 calls for the first time at 61, 14 us before: it
    // was not handed over to, and has no range.
    let mut scene = begun();
    scene.range(activity::RangeKind::Nvtx, "loader", 0, 9_000, 74_000);
    let name = scene.name("cudaPointerGetAttributes");
    let (thread, code) = (2, 0);
    let call = What::Call(HostCall { thread, name, code });
    scene.push(61_000, 62_000, 50, call);
    scene
        .call("cudaLaunchKernel", 75_000, 76_000)
        .kernel("second", 1, 79_000, 90_000);
    let (pieces, found) = pieces(&mut scene, 1, 50_000);
    assert_eq!(
        pieces,
        [
            (Cause::Host, 51_000, Likely),
            (Cause::Call, 1_000, Fact),
            (Cause::Host, 12_000, Likely),
            (Cause::Host, 1_000, Likely),
            (Cause::Latency, 4_000, Fact)
        ]
    );
    let named = found
        .pieces
        .iter()
        .map(|it| matches!(it.culprit, Culprit::Row(..)));
    assert_eq!(named.collect::<Vec<_>>(), [true, false, true, false, false]);
}

#[test]
fn what_nothing_shows_is_unknown() {
    let mut scene = begun();
    scene.without_call().kernel("second", 1, 86_000, 90_000);
    let (_, found) = pieces(&mut scene, 1, 50_000);
    assert_eq!(found.cause, Cause::Unknown);
    found.sentence.must_have("No record says who launched");
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 4_000, 5_000)
        .kernel("second", 1, 86_000, 90_000);
    let (_, found) = pieces(&mut scene, 1, 50_000);
    assert_eq!(found.cause, Cause::LateStart);
    // The profiler's own time in it is known all the same.
    let mut scene = begun();
    scene.overhead("activity buffer flush", 20_000, 80_000);
    scene
        .call("cudaLaunchKernel", 4_000, 5_000)
        .kernel("second", 1, 86_000, 90_000);
    let (found, _) = pieces(&mut scene, 1, 50_000);
    assert_eq!(found[1], (Cause::Profiler, 60_000, Likely));
}

#[test]
fn a_launch_that_lies_in_the_profilers_work_on_another_thread_is_held_up_by_it() {
    // The call lasts 100 us, the flush all of it or the first half.
    let scene = |until: i64| {
        let mut scene = begun();
        let name = scene.name("CUPTI Buffer flush");
        let flush = What::Overhead(Overhead { name, thread: 9 });
        scene.push(15_000, until, 0, flush);
        scene
            .call("cudaLaunchKernel", 20_000, 120_000)
            .kernel("first", 1, 119_000, 130_000);
        pieces(&mut scene, 1, 15_000).0
    };
    let before = (Cause::Host, 10_000, Fact);
    assert_eq!(scene(119_000), [before, (Cause::Profiler, 99_000, Likely)]);
    assert_eq!(scene(70_000), [before, (Cause::SlowLaunch, 99_000, Fact)]);
}

#[test]
fn a_launch_that_is_slow_and_more_that_nothing_explains_are_two_pieces() {
    // The call lasts 100 us, and the kernel begins 180 us after it: longer than the call, which says so much less of it.
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 20_000, 120_000)
        .kernel("first", 1, 300_000, 310_000);
    let (found, _) = pieces(&mut scene, 1, 15_000);
    assert_eq!(
        found,
        [
            (Cause::Host, 10_000, Fact),
            (Cause::SlowLaunch, 100_000, Likely),
            (Cause::LateStart, 180_000, Certainty::Unknown)
        ]
    );
    // A call as launches take it says nothing of what came 280 us later.
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 20_000, 25_000)
        .kernel("second", 1, 300_000, 310_000);
    let (found, _) = pieces(&mut scene, 1, 15_000);
    assert_eq!(
        found,
        [
            (Cause::Host, 10_000, Fact),
            (Cause::LateStart, 280_000, Certainty::Unknown)
        ]
    );
}

#[test]
fn pages_come_back_where_the_host_touches_them_between_its_calls() {
    let scene = || {
        let mut scene = begun();
        scene.call("cudaDeviceSynchronize", 3_500, 12_000);
        scene.without_call();
        for start in [13_000, 90_000] {
            scene.copy(Direction::D2H, Place::NO_STREAM, 4096, start, start + 2_000);
        }
        scene
    };
    let of = |scene: &mut Scene| pieces(scene, Place::NO_STREAM, 50_000).0;
    // A page had come back before, too. Before the first one it may have been at anything.
    assert_eq!(of(&mut scene()), [(Cause::Pages, 75_000, Likely)]);
    let trace = scene().trace();
    let graph = Graph::new(&trace);
    let idle = Causes::new(&trace, &graph).idle(0, None);
    let by: Vec<_> = sum_by(idle.iter().map(|it| (it.cause, it.total_ns)))
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(by, [Cause::Pages, Cause::SyncDevice, Cause::Host]);
    // With two threads that call CUDA, or in a call, nobody knows who touched them.
    let mut two = scene();
    let name = two.name("cudaFree");
    let free = HostCall {
        thread: 2,
        name,
        code: 0,
    };
    two.push(20_000, 30_000, 77, What::Call(free));
    assert_eq!(of(&mut two), [(Cause::Unknown, 75_000, Certainty::Unknown)]);
    let mut within = scene();
    within.call("cudaFree", 20_000, 100_000);
    assert_eq!(
        of(&mut within),
        [(Cause::Unknown, 75_000, Certainty::Unknown)]
    );
    // A prefetch moves them: 5 us of the CPU's own before it, and 70 in it.
    let mut prefetch = scene();
    prefetch.call("cudaMemPrefetchAsync_v8000", 20_000, 100_000);
    assert_eq!(
        of(&mut prefetch),
        [(Cause::Host, 5_000, Fact), (Cause::Launching, 70_000, Fact)]
    );
    // Pages may move to the GPU some time after the call that asked for it has ended.
    let mut ahead = begun();
    ahead.call("cudaMemPrefetchAsync", 20_000, 60_000);
    ahead.without_call();
    let page = Copy {
        place: place(Place::NO_STREAM),
        from: MemoryKind::Managed,
        ..pinned(Direction::H2D, 1, 2 << 20)
    };
    ahead.copy_of(page, 95_000, 120_000);
    let trace = ahead.trace();
    let graph = Graph::new(&trace);
    let idle = Causes::new(&trace, &graph).idle(0, None);
    let told: Vec<_> = idle.iter().map(|it| (it.cause, it.total_ns)).collect();
    assert_eq!(
        told[..2],
        [(Cause::Launching, 40_000), (Cause::Latency, 35_000)]
    );
}

#[test]
fn a_gap_that_is_the_profilers_is_known_as_such() {
    let scene = |name: &str| {
        let mut scene = begun();
        scene.overhead(name, 20_000, 80_000);
        scene.kernel("second", 1, 86_000, 90_000);
        scene.trace()
    };
    let gap = Span::new(10_000, 86_000);
    assert!(is_profilers(&scene("activity buffer flush"), gap));
    assert!(!is_profilers(&scene("Unknown"), gap));
    assert!(!is_profilers(&scene("lazy function loading"), gap));
}

#[test]
fn launches_that_were_recorded_after_their_kernels_explain_nothing() {
    // From the end of `first` it is 50 us to a kernel whose launch is recorded 5 us after that began, and 1 us to another.
    let scene = |begin: Ns| {
        let mut scene = begun();
        scene.call("cudaLaunchKernel", begin + 5_000, begin + 7_000);
        scene.kernel("second", 1, begin, begin + 10_000);
        scene
    };
    let late = pieces(&mut scene(60_000), 1, 10_000).0;
    assert_eq!(late, [(Cause::Unknown, 50_000, Certainty::Unknown)]);
    let behind = pieces(&mut scene(11_000), 1, 10_000).0;
    assert_eq!(behind, [(Cause::Queued, 1_000, Likely)]);
}

#[test]
fn a_gap_names_the_line_that_launched_what_ended_it() {
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 22_000, 23_000)
        .kernel("second", 1, 26_000, 30_000);
    let mut batch = scene.take();
    let at = batch.items.last().expect("a kernel").correlation;
    let frame = activity::Frame {
        file: "/home/me/train.py".to_owned(),
        function: "step".to_owned(),
        line: 12,
    };
    use activity::SampleDef::{Frame, Nodes, Stack};
    let (id, caller) = (1, 0);
    let stack = Stack {
        id,
        caller,
        frame: 1,
    };
    batch.samples = Some(activity::Samples {
        defs: vec![Frame { id, frame }, stack, Nodes(vec![(at.into(), id)])],
        ..Default::default()
    });
    let mut trace = Trace::default();
    trace.apply(batch);
    let (_, found) = pieces_of(&trace, 1, 15_000);
    let said = " second was launched at train.py:12 step.";
    assert!(found.sentence.ends_with(said), "{}", found.sentence);
}

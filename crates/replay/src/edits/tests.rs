//! Each edit on a few records, against times worked out by hand.

use super::*;
use crate::program::GpuRates;
use crate::testing::known_with_graphs;
use activity::{Direction, MemoryKind, RangeKind};
use trace::testing::Scene as Made;
use trace::testing::{pinned, waits};

fn makespan(made: &mut Made, edit: &str) -> Result<Ns, String> {
    makespan_at(made, edit, Bound::Likely)
}

fn makespan_at(made: &mut Made, edit: &str, bound: Bound) -> Result<Ns, String> {
    makespan_by(made, edit, bound, &known_with_graphs())
}

fn makespan_by(made: &mut Made, edit: &str, bound: Bound, known: &GpuRates) -> Result<Ns, String> {
    let trace = made.trace();
    let graph = Graph::new(&trace);
    let mut program = Program::new(&trace, &graph, None, known);
    let scene = Scene {
        trace: &trace,
        graph: &graph,
        steps: &[],
        bound,
    };
    let set = edit.parse().expect("an edit");
    apply(&set, &mut program, scene)?;
    Ok(program.makespan(&program.replay()))
}

#[test]
fn without_waits_launches_come_as_fast_as_the_host_does() {
    // Launched at 0, at 17 and at 34 (3 of the call, 1 and 13 of the thread), so that the first kernel
    // starts at 5 and each next one 1 after the one before it has ended: 5, 26, 47 to 67.
    assert_eq!(makespan(&mut waits(3), "no-sync"), Ok(62_000));
}

#[test]
fn scaled_operations_take_their_share() {
    // The waits shrink with the kernels: 10 us less for each.
    assert_eq!(makespan(&mut waits(3), "scale:k=0.5"), Ok(100_000 - 30_000));
    let none = makespan(&mut waits(3), "scale:nobody=0.5");
    assert_eq!(
        none,
        Err("nothing with this name can be changed".to_owned())
    );
}

#[test]
fn what_is_dropped_takes_no_time() {
    let mut made = Made::new();
    made.call("cudaLaunchKernel", 0, 3_000);
    made.kernel("a", 7, 5_000, 25_000);
    made.call("cudaLaunchKernel", 4_000, 7_000);
    made.kernel("b", 7, 26_000, 46_000);
    made.call("cudaLaunchKernel", 8_000, 11_000);
    made.kernel("c", 7, 47_000, 67_000);
    // `c` follows `a` after the pause that it had after `b`.
    assert_eq!(makespan(&mut made, "drop:b"), Ok(20_000 + 20_000));
}

/// The only wait of a program lasts 50 ms, as long as its kernel: what is left of it without that is the 5 us behind.
#[test]
fn the_only_wait_of_a_program_is_no_work_of_the_cpu() {
    let edited = |edit: &str| {
        let mut made = Made::new();
        made.call("cudaLaunchKernel", 0, 3_000);
        made.kernel("long", 7, 5_000, 50_005_000);
        made.call("cudaDeviceSynchronize", 4_000, 50_010_000);
        made.call("cudaLaunchKernel", 50_020_000, 50_023_000);
        made.kernel("short", 7, 50_025_000, 50_035_000);
        makespan(&mut made, edit).expect("an answer")
    };
    // 4 us, 5 of the sync, 10 of the CPU, 5 to the start of the kernel and its own 10.
    let without = edited("drop:long");
    assert!(without <= 34_000, "{without}");
    assert_eq!(edited("scale:long=0.5"), 50_030_000 - 25_000_000);
}

fn pageable_copy(name: &str) -> Made {
    let mut made = Made::new();
    made.call(name, 0, 130_000);
    let copy = activity::Copy {
        from: MemoryKind::Pageable,
        is_async: false,
        ..pinned(Direction::H2D, 7, 1_000_000)
    };
    made.copy_of(copy, 20_000, 120_000);
    made.call("cudaLaunchKernel", 135_000, 138_000);
    made.kernel("k", 7, 140_000, 150_000);
    made
}

#[test]
fn a_pinned_copy_gives_its_caller_the_time_back_that_it_gains() {
    // The only other call loads code for 30 ms. At 50 GB/s 500 MB take 10 of their 40 ms: the call ends 30 ms earlier.
    let copy = activity::Copy {
        from: MemoryKind::Pageable,
        ..pinned(Direction::H2D, 7, 500_000_000)
    };
    let mut made = Made::new();
    made.call("cudaMemcpyAsync", 0, 40_000_000);
    made.copy_of(copy, 50_000, 40_050_000);
    made.call("cudaLaunchKernel", 50_000_000, 80_000_000);
    made.kernel("k", 7, 80_000_000, 82_000_000);
    let known = GpuRates {
        copy_call: None,
        ..known_with_graphs()
    };
    let with = makespan_by(&mut made, "pin:50GB/s", Bound::Likely, &known);
    // From the copy's start on: 10 of the copy, 10 of the CPU, 30 of the launch, 2 of the kernel.
    let with = with.expect("an answer");
    assert!((51_500_000..52_100_000).contains(&with), "{with}");
}

#[test]
fn a_part_that_finds_nothing_leaves_the_others_their_work() {
    // As `no-sync` alone.
    for edit in ["no-sync+merge-copies", "merge-copies+no-sync"] {
        assert_eq!(makespan(&mut waits(3), edit), Ok(62_000));
    }
    let none = makespan(&mut waits(3), "merge-copies+pin");
    assert!(none.is_err(), "{none:?}");
}

#[test]
fn what_is_pinned_is_asynchronous_in_any_order() {
    // 1 MB takes 21 us from 4 on. Without the wait the launch comes at 5, and the kernel 1 behind the copy, for 10.
    for edit in ["pin+async", "async+pin"] {
        let mut made = pageable_copy("cudaMemcpyAsync");
        made.call("cudaStreamSynchronize", 131_000, 133_000);
        assert_eq!(makespan(&mut made, edit), Ok(32_000), "{edit}");
    }
}

#[test]
fn blocking_copies_are_waits() {
    let mut made = Made::new();
    made.call("cudaLaunchKernel", 0, 3_000);
    made.kernel("a", 7, 5_000, 25_000);
    made.call("cudaMemcpy", 10_000, 40_000);
    let copy = activity::Copy {
        is_async: false,
        ..pinned(Direction::D2H, 7, 1_000)
    };
    made.copy_of(copy, 26_000, 36_000);
    made.call("cudaLaunchKernel", 45_000, 48_000);
    made.kernel("b", 7, 50_000, 70_000);
    made.call("cudaDeviceSynchronize", 50_000, 72_000);
    // The copy is there at 36, and `b` begins 1 later: launched at 17, not at 45.
    assert_eq!(makespan(&mut made, "no-sync"), Ok(37_000 - 5_000 + 20_000));
}

#[test]
fn kernels_that_were_seen_together_may_run_together() {
    let mut made = Made::new();
    let mut call = 0;
    let mut launched = |made: &mut Made, name: &str, stream: u32, start: Ns, time: Ns| {
        made.call("cudaLaunchKernel", call, call + 1_000);
        call += 1_500;
        made.kernel(name, stream, start, start + time);
    };
    for i in 0..3 {
        launched(&mut made, "long", 7, 20_000 + i * 201_000, 200_000);
    }
    for i in 0..6 {
        launched(&mut made, "short", 8, 20_000 + i * 61_000, 60_000);
    }
    // Each takes all SMs by its shape. The third `long` ran behind all of `short`, and need not: `short` ends at 385.
    assert_eq!(makespan(&mut made, "scale:long=0.5"), Ok(365_000));
}

#[test]
fn a_pinned_copy_takes_the_pinned_rate_and_returns_at_once() {
    // 1 MB at 50 GB/s take 20 us, and 1 us. The call takes 2, the thread 5: launched at 7. The copy runs
    // from 4 to 25, the kernel 1 later for 10.
    assert_eq!(
        makespan(&mut pageable_copy("cudaMemcpyAsync"), "pin"),
        Ok(32_000)
    );
    // At 20 GB/s it takes 51 us.
    assert_eq!(
        makespan(&mut pageable_copy("cudaMemcpyAsync"), "pin:20GB/s"),
        Ok(51_000 + 11_000)
    );
    // A synchronous call returns 2 after the copy: at 27, launches at 32, which starts at 37.
    assert_eq!(
        makespan(&mut pageable_copy("cudaMemcpy"), "pin"),
        Ok(47_000 - 4_000)
    );
}

#[test]
fn a_rate_that_nobody_knows_is_refused() {
    let mut made = pageable_copy("cudaMemcpyAsync");
    let small = activity::Copy {
        from: MemoryKind::Pageable,
        ..pinned(Direction::H2D, 7, 4)
    };
    made.call("cudaMemcpyAsync", -9_000, -7_000);
    made.copy_of(small, -4_000, -2_500);
    let trace = made.trace();
    let graph = Graph::new(&trace);
    let mut program = Program::new(&trace, &graph, None, &GpuRates::default());
    let scene = Scene {
        trace: &trace,
        graph: &graph,
        steps: &[],
        bound: Bound::Likely,
    };
    let refused = apply(&"pin".parse().expect("an edit"), &mut program, scene);
    // The one that is refused, though another before it is taken along with its command anyway.
    let is_named = |reason: String| reason.contains("pin:55GB/s") && reason.contains("977 KiB");
    assert!(refused.is_err_and(is_named));
}

/// Two batches of copy, kernel and copy back, 100 us each.
fn two_batches(launch: &str) -> Made {
    let mut made = Made::new();
    for i in 0..2 {
        let at = 3 * i;
        let row = |k: i64| 100_000 * (at + k);
        let call = 10_000 * at;
        made.call("cudaMemcpyAsync", call, call + 2_000);
        made.copy(Direction::H2D, 7, 1, row(0) + 100_000, row(1) + 99_000);
        made.call(launch, call + 10_000, call + 12_000);
        made.kernel("k", 7, row(1) + 100_000, row(2) + 99_000);
        made.call("cudaMemcpyAsync", call + 20_000, call + 22_000);
        made.copy(Direction::D2H, 7, 1, row(2) + 100_000, row(3) + 99_000);
    }
    made
}

#[test]
fn batches_on_their_own_streams_wait_only_for_engines() {
    // The second batch's copy follows the first one's on the engine, then its kernel the first kernel, and
    // its copy back the first copy back: four rows of 100 us instead of six, the last without its pause.
    let mut made = two_batches("cudaLaunchKernel");
    assert_eq!(makespan(&mut made, "own-stream"), Ok(399_000));
    // The same graph again works in the same memory.
    let refused = makespan(&mut two_batches("cudaGraphLaunch"), "own-stream");
    assert!(refused.is_err_and(|reason| reason.contains("their own copies and memory")));
}

#[test]
fn an_edit_may_be_limited_to_a_range() {
    let mut made = waits(3);
    made.range(RangeKind::Nvtx, "first", 0, 0, 30_000);
    assert_eq!(
        makespan(&mut made, "scale:k=0.5@first"),
        Ok(100_000 - 10_000)
    );
    let unknown = makespan(
        waits(3).range(RangeKind::Nvtx, "first", 0, 0, 1),
        "pin@frist",
    );
    assert_eq!(
        unknown,
        Err("no range or function is called `frist`; did you mean `first`?".to_owned())
    );
}

#[test]
fn neighbouring_copies_become_one_but_for_work_between_them() {
    let copies = |pause: Ns| {
        let mut made = Made::new();
        for i in 0..10 {
            let at = (20_000 + pause) * i;
            made.call("cudaMemcpyAsync", at, at + 2_000);
            made.copy(Direction::H2D, 7, 5_000, at + 4_000, at + 6_000);
            made.call("cudaStreamSynchronize", at + 3_000, at + 8_000);
        }
        made
    };
    // 50 KB at 50 GB/s take 1 us, and 1 that every copy takes; no less than one of them took.
    assert_eq!(makespan(&mut copies(0), "merge-copies"), Ok(2_000));
    let worked = makespan(&mut copies(30_000), "merge-copies");
    let none = "nothing to merge: no two copies of one direction come in a row without a sync";
    assert_eq!(worked, Err(none.to_owned()));
}

/// Ten copies of 4 KiB take 2 us, every other one 3 us. Without a profile their size explains none of that.
#[test]
fn copies_of_one_size_differ_by_chance_and_not_by_their_bytes() {
    let copies = || {
        let mut made = Made::new();
        for i in 0..10 {
            let at = 5_000 * i;
            made.call("cudaMemcpyAsync", at, at + 2_000);
            made.copy(
                Direction::H2D,
                7,
                4_096,
                at + 4_000,
                at + 6_000 + 1_000 * (i % 2),
            );
        }
        made
    };
    let merged = |bound| makespan_by(&mut copies(), "merge-copies", bound, &GpuRates::default());
    assert_eq!(merged(Bound::Likely), Ok(2_000));
    // If it does, five take 1 us more.
    assert_eq!(merged(Bound::Most), Ok(7_000));
}

#[test]
fn large_copies_take_as_long_together() {
    let mut made = Made::new();
    for i in 0..3 {
        let (call, copy) = (10_000 * i, 4_000 + 1_301_000 * i);
        made.call("cudaMemcpyAsync", call, call + 2_000);
        made.copy(Direction::H2D, 7, 64 << 20, copy, copy + 1_300_000);
    }
    // 192 MiB take three times 1.3 ms; the pauses of 1 us between them go.
    let merged = makespan_by(
        &mut made,
        "merge-copies",
        Bound::Likely,
        &GpuRates::default(),
    );
    assert_eq!(merged, Ok(3_900_000));
}

#[test]
fn a_pause_that_comes_once_in_a_hundred_copies_may_be_lost_time() {
    let copies = || {
        let mut made = Made::new();
        for i in 0..201 {
            let at = 20_000 * i + if i > 100 { 30_000 } else { 0 };
            made.call("cudaMemcpyAsync", at, at + 2_000);
            made.copy(Direction::H2D, 7, 5_000, at + 4_000, at + 6_000);
        }
        made
    };
    let [least, likely, most] = ends(copies, "merge-copies");
    // 1.005 MB at 50 GB/s take 20.1 us, and 1 that every copy takes.
    assert_eq!(least, Ok(21_100));
    // In two parts they take 1 more, and the pause of the thread, which was 48 us, keeps them apart.
    assert_eq!(likely, most);
    assert!(
        likely > Ok(21_100 + 1_000) && likely < Ok(21_100 + 80_000),
        "{likely:?}"
    );
}

#[test]
fn an_asynchronous_copy_of_pinned_memory_does_not_hold_its_caller() {
    let copies = |from: MemoryKind| {
        let mut made = Made::new();
        made.call("cudaMemcpy", 0, 106_000);
        let copy = activity::Copy {
            from,
            is_async: false,
            ..pinned(Direction::H2D, 7, 5_000_000)
        };
        made.copy_of(copy, 4_000, 104_000);
        made.call("cudaLaunchKernel", 116_000, 119_000);
        made.kernel("k", 8, 121_000, 221_000);
        made.call("cudaDeviceSynchronize", 120_000, 223_000);
        made
    };
    // The copy's call takes 2 (as known of the GPU), the thread 10: launched at 12, the kernel runs from 17 to 117.
    let made = makespan(&mut copies(MemoryKind::Pinned), "async");
    assert_eq!(made, Ok(117_000 - 4_000));
    // Of pageable memory it would be staged all the same.
    let none = "nothing to make asynchronous: no copy of pinned memory is blocking";
    let staged = makespan(&mut copies(MemoryKind::Pageable), "async");
    assert_eq!(staged, Err(none.to_owned()));
}

/// What is not known, from its one end to the other.
fn ends(made: fn() -> Made, edit: &str) -> [Result<Ns, String>; 3] {
    [Bound::Least, Bound::Likely, Bound::Most].map(|bound| makespan_at(&mut made(), edit, bound))
}

#[test]
fn a_graph_of_tiny_kernels_takes_what_its_nodes_are_watched_to_take() {
    let three = || {
        let mut made = Made::new();
        for i in 0..3 {
            let at = 10_000 * i;
            made.call("cudaLaunchKernel", at, at + 3_000);
            made.kernel("k", 7, at + 5_000, at + 6_000);
        }
        made
    };
    // As recorded 1 us each and 200 ns between them; at the least 530 ns each; at the most one every 2.8 us.
    let expected = [3 * 530, 3 * 1_000 + 2 * 200, 2 * 2_800 + 1_000];
    assert_eq!(ends(three, "graph"), expected.map(Ok));
}

/// Three kernels of 2 us, launched 30 us apart by a thread that is in a range for most of the time, and a copy back.
fn three_and_a_copy() -> Made {
    let mut made = Made::new();
    for i in 0..3 {
        let at = 33_000 * i;
        made.call("cudaLaunchKernel", at, at + 3_000);
        made.kernel("k", 7, at + 5_000, at + 7_000);
    }
    made.call("cudaMemcpyAsync", 99_000, 101_000);
    made.copy(Direction::D2H, 7, 1, 103_000, 104_000);
    made.range(RangeKind::Nvtx, "optimiser", 0, 0, 80_000);
    made
}

#[test]
fn what_the_host_does_between_fused_launches_may_stay() {
    // The copy's call comes 30 us after the first launch has returned, at 33, or 60 us later, when nothing goes; its copy
    // starts 4 us after and takes 1. The kernel starts at 5.
    let made = ends(three_and_a_copy, "fuse");
    assert_eq!(made, [33_000, 33_000, 93_000].map(Ok));
    // Within the range the last 11 us may go as well.
    let made = ends(three_and_a_copy, "fuse@optimiser");
    assert_eq!(made, [22_000, 33_000, 93_000].map(Ok));
}

#[test]
fn what_is_made_ahead_takes_no_time_beyond_what_the_rest_takes() {
    let loads = || {
        let mut made = Made::new();
        made.call("cudaGetDevice", 0, 1_000);
        for i in 0..3 {
            let at = 1_000 + 25_000 * i;
            made.range(RangeKind::Nvtx, "load", 0, at, at + 15_000);
            made.call("cudaLaunchKernel", at + 15_000, at + 18_000);
            made.kernel("k", 7, at + 20_000, at + 24_000);
            made.call("cudaStreamSynchronize", at + 19_000, at + 25_000);
        }
        made
    };
    // Launched at 15; then no sooner than the 10 us of a step after the launch before, and the 15 us in which one worker
    // makes the next: at 30 and at 45. Or, when taking over takes as long as making did, as recorded.
    let made = ends(loads, "prefetch:load");
    assert_eq!(made, [34_000, 34_000, 54_000].map(Ok));
    // Two make one every 7.5 us: the launches are 10 us apart.
    assert_eq!(makespan(&mut loads(), "prefetch:load=2"), Ok(24_000));
    let none = "no CPU work was found inside ranges of this name";
    assert_eq!(makespan(&mut loads(), "prefetch:k"), Err(none.to_owned()));
}

#[test]
fn what_nobody_knows_the_cause_of_is_not_saved_with_the_waits() {
    // Each of five kernels of 10 ms begins 4 ms after its launch, for no reason that is recorded. The host waits for each.
    let mut made = Made::new();
    for i in 0..5 {
        let at = 14_010_000 * i;
        made.call("cudaLaunchKernel", at, at + 3_000);
        made.kernel("k", 7, at + 4_000_000, at + 14_000_000);
        made.call("cudaStreamSynchronize", at + 4_000, at + 14_002_000);
    }
    // Without the waits launches are ahead. Of the 4 ms the 3 us of the call and 40 us are what launches may take: the rest
    // is before each kernel as it was, after the 1 us from one queued kernel to the next.
    let rest = 4_000_000 - 3_000 - 40_000;
    let pause = 1_000;
    assert_eq!(
        makespan(&mut made, "no-sync"),
        Ok(5 * 10_000_000 + 4 * (rest + pause))
    );
}

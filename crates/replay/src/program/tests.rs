//! What holds of every replay.

use proptest::prelude::*;

use super::*;
use crate::edits::{self, Scene};
use activity::{Copy, Direction, MemoryKind, Place};
use causes::graph::Graph;
use causes::testing::{run, steps, trace_of};
use trace::Trace;
use trace::testing::Scene as Made;
use trace::testing::pinned;

fn program<'g>(trace: &Trace, graph: &'g Graph) -> Program<'g> {
    Program::new(trace, graph, None, &GpuRates::default())
}

/// Time covered by any of the spans.
fn union(mut spans: Vec<Span>) -> Ns {
    spans.sort_unstable_by_key(|span| span.start);
    let (mut sum, mut until) = (0, Ns::MIN);
    for span in spans {
        sum += (span.end - span.start.max(until)).max(0);
        until = until.max(span.end);
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn unchanged_it_gives_back_what_was_recorded(steps in steps()) {
        let trace = trace_of(run(&steps));
        let graph = Graph::new(&trace);
        let program = program(&trace, &graph);
        let times = program.replay();
        for i in 0..program.ops.len() {
            prop_assert_eq!(Span::new(times.op_start[i], times.op_end[i]), graph.ops.span(i as u32), "operation {}", i);
        }
        for i in 0..program.calls.len() {
            prop_assert_eq!(Span::new(times.call_start[i], times.call_end[i]), graph.calls.span(i as u32), "call {}", i);
        }
    }

    #[test]
    fn what_gets_shorter_makes_nothing_later(steps in steps(), which in 0usize..60, share in 0i64..100) {
        let trace = trace_of(run(&steps));
        let graph = Graph::new(&trace);
        let mut program = program(&trace, &graph);
        let before = program.replay();
        let count = program.ops.len();
        if count > 0 {
            let op = &mut program.ops[which % count];
            op.time = op.time * share / 100;
        }
        for call in program.calls.iter_mut().skip(which).step_by(3) {
            call.think = call.think * share / 100;
        }
        let after = program.replay();
        for i in 0..count {
            prop_assert!(after.op_end[i] <= before.op_end[i], "operation {}", i);
        }
        for i in 0..program.calls.len() {
            prop_assert!(after.call_end[i] <= before.call_end[i], "call {}", i);
        }
    }

    #[test]
    fn without_waits_no_more_is_saved_than_they_took(steps in steps()) {
        let trace = trace_of(run(&steps));
        let graph = Graph::new(&trace);
        let mut program = program(&trace, &graph);
        let waits: Vec<Span> = program
            .calls
            .iter()
            .zip(0..)
            .filter(|(call, c)| program.kind(*c).is_wait() || !call.waits.is_empty())
            .map(|(_, c)| program.call_span(c))
            .collect();
        let before = program.makespan(&program.replay());
        let scene = Scene { trace: &trace, graph: &graph, steps: &[], bound: edits::Bound::Likely };
        let set = "no-sync".parse().expect("an edit");
        if edits::apply(&set, &mut program, scene).is_ok() {
            let after = program.makespan(&program.replay());
            prop_assert!(before - after <= union(waits), "{} to {}", before, after);
        }
    }
}

#[test]
fn a_host_without_waits_is_ahead_by_what_a_queue_takes() {
    let mut made = Made::new();
    // 3,000 kernels of 10 us, each waited for; 15 ms later one more.
    for i in 0..3_000 {
        let at = 16_000 * i;
        made.call("cudaLaunchKernel", at, at + 3_000);
        made.kernel("k", 7, at + 5_000, at + 15_000);
        made.call("cudaStreamSynchronize", at + 3_000, at + 16_000);
    }
    let at = 16_000 * 3_000 + 15_000_000;
    made.call("cudaLaunchKernel", at, at + 3_000);
    made.kernel("k", 7, at + 5_000, at + 15_000);
    made.call("cudaStreamSynchronize", at + 3_000, at + 16_000);
    let trace = made.trace();
    let graph = Graph::new(&trace);
    let known = GpuRates {
        queued: Some([1_000; 4]),
        ..GpuRates::default()
    };
    let mut program = Program::new(&trace, &graph, None, &known);
    let scene = Scene {
        trace: &trace,
        graph: &graph,
        steps: &[],
        bound: edits::Bound::Likely,
    };
    let set = "no-sync".parse().expect("an edit");
    edits::apply(&set, &mut program, scene).expect("waits");
    // A kernel every 11 us from 5 us on. The 3,000th launch returns when the 1,976th kernel begins, at 5 + 11 * 1,975 us;
    // 15 ms after that comes the last one's call, whose kernel begins 5 us later and takes 10. A host that nothing holds
    // back would have launched all at 9 ms, so that the last kernel would end 11 us after the one before it.
    let launched = 5 + 11 * 1_975 + 15_000;
    assert_eq!(
        program.makespan(&program.replay()),
        1_000 * (launched + 5 + 10 - 5)
    );
}

#[test]
fn a_value_that_goes_with_its_command_is_held_by_the_kernel_before_it() {
    let mut made = Made::new();
    // Three rounds of a kernel of 1 ms, 8 pageable bytes behind it, and a wait for both: 1,020 us a round.
    for i in 0..3 {
        let at = 1_020_000 * i;
        made.call("cudaLaunchKernel", at, at + 3_000);
        made.kernel("k", 7, at + 5_000, at + 1_005_000);
        made.call("cudaMemcpyAsync", at + 4_000, at + 8_000);
        let copy = Copy {
            from: MemoryKind::Pageable,
            ..pinned(Direction::H2D, 7, 8)
        };
        made.copy_of(copy, at + 1_006_000, at + 1_007_000);
        made.call("cudaStreamSynchronize", at + 9_000, at + 1_010_000);
    }
    let trace = made.trace();
    let graph = Graph::new(&trace);
    let mut program = program(&trace, &graph);
    let scene = Scene {
        trace: &trace,
        graph: &graph,
        steps: &[],
        bound: edits::Bound::Likely,
    };
    edits::apply(&"drop:k".parse().expect("an edit"), &mut program, scene).expect("kernels");
    // Of each of the three kernels 1,000 us go, but what a launch of the copy takes instead: a few us.
    let left = program.makespan(&program.replay());
    assert!(left < 3 * 1_020_000 - 3 * 980_000, "{left}");
}

#[test]
fn a_page_that_the_cpu_touches_comes_back_as_long_after_the_kernel() {
    // A kernel of 10 ms, then four pages 100 us apart. Without it only these are left, 20 us behind where it began.
    let mut made = Made::new();
    made.call("cudaLaunchKernel", 0, 3_000);
    made.kernel("k", 7, 5_000, 10_005_000);
    made.call("cudaDeviceSynchronize", 4_000, 10_006_000);
    made.without_call();
    // What the kernel touches comes while it runs, and goes with it.
    for at in [2_000_000, 4_000_000, 9_000_000] {
        made.copy(Direction::H2D, Place::NO_STREAM, 4096, at, at + 2_000);
    }
    for page in 0..4 {
        let at = 10_025_000 + page * 100_000;
        made.copy(Direction::D2H, Place::NO_STREAM, 4096, at, at + 2_000);
    }
    let trace = made.trace();
    let graph = Graph::new(&trace);
    let mut program = program(&trace, &graph);
    let scene = Scene {
        trace: &trace,
        graph: &graph,
        steps: &[],
        bound: edits::Bound::Likely,
    };
    edits::apply(&"drop:k".parse().expect("an edit"), &mut program, scene).expect("a kernel");
    assert_eq!(program.makespan(&program.replay()), 302_000);
}

#[test]
fn what_loads_code_or_works_for_long_takes_its_time_in_fewer_launches_too() {
    // Three kernels of 10 us: the second's launch loads code for 5 ms, and the CPU works for 3 ms before the third's.
    let mut made = Made::new();
    made.call("cudaLaunchKernel", 0, 3_000);
    made.kernel("a", 7, 5_000, 15_000);
    made.call("cudaLaunchKernel", 4_000, 5_004_000);
    made.kernel("b", 7, 5_006_000, 5_016_000);
    made.call("cudaLaunchKernel", 8_004_000, 8_007_000);
    made.kernel("c", 7, 8_009_000, 8_019_000);
    made.call("cudaMalloc", 8_010_000, 8_011_000);
    made.call("cudaLaunchKernel", 8_012_000, 8_013_000);
    made.kernel("last", 8, 8_020_000, 8_030_000);
    let trace = made.trace();
    let graph = Graph::new(&trace);
    let mut program = program(&trace, &graph);
    let scene = Scene {
        trace: &trace,
        graph: &graph,
        steps: &[],
        bound: edits::Bound::Likely,
    };
    edits::apply(&"fuse".parse().expect("an edit"), &mut program, scene).expect("kernels");
    // The launch of the last one still comes 8 ms behind the first.
    assert!(program.makespan(&program.replay()) > 8_000_000);
}

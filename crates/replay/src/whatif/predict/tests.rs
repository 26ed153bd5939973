//! The interval of a prediction, by hand.

use super::super::{Basis, WhatIf};
use super::of_median;
use crate::program::GpuRates;
use crate::testing::known;
use activity::{Copy, Direction, MemoryKind, Ns, RangeKind};
use causes::graph::Graph;
use figures::steps;
use trace::Trace;
use trace::testing::Scene as Made;
use trace::testing::pinned;

/// What is asked about of a program: its steady steps, or all of it.
fn of_program<'a>(trace: &'a Trace, graph: &'a Graph, known: &'a GpuRates) -> WhatIf<'a> {
    let basis = Basis {
        trace,
        graph,
        known,
    };
    let steps = steps::find(trace, None);
    WhatIf::of_steps(basis, steps::main(&steps), None).expect("operations")
}

/// Predicts a graph of three kernels of 1 us that are launched so far apart, on a GPU with round numbers.
fn graph(apart: Ns) -> Result<[Ns; 3], String> {
    let mut made = Made::new();
    for i in 0..3 {
        let at = apart * i;
        made.call("cudaLaunchKernel", at, at + apart.min(3_000));
        made.kernel("k", 7, at + 5_000, at + 6_000);
    }
    let trace = made.trace();
    let known = GpuRates {
        launch_call: Some(3_000),
        launch: Some([5_000, 4_000]),
        kernel_fixed: Some(500),
        graph_call: Some([1_000, 100]),
        graph_upload: Some(300),
        graph_node: Some(200),
        queued: Some([1_000; 4]),
        ..GpuRates::default()
    };
    let graph = Graph::new(&trace);
    let whatif = of_program(&trace, &graph, &known);
    assert_eq!(whatif.replay_error(), 0.0);
    let outcome = whatif.predict(&"graph".parse().expect("an edit")).outcome?;
    assert!(outcome.unknowns[0].contains("530 ns") && outcome.unknowns.len() == 1);
    Ok([outcome.low, outcome.predicted, outcome.high])
}

#[test]
fn what_no_record_tells_is_in_the_interval() {
    // 1 us each and 200 ns between them. The ends are 530 ns a node and one every 2.8 us: 1,590 and 6,600 ns. Of the way to them, in
    // logarithms, 0.6 is in the interval, with 9 % that hold for themselves.
    assert_eq!(graph(10_000), Ok([2_136, 3_400, 5_113]));
}

#[test]
fn what_may_save_or_cost_has_a_value() {
    // Launched every 2.5 us they take 6 us: fewer than the 6.6 us that the graph may take.
    assert_eq!(graph(2_500), Ok([2_136, 3_400, 5_113]));
}

#[test]
fn steps_that_run_beside_each_other_take_what_the_busiest_engine_needs() {
    // Six steps of a copy of 10 us and a kernel of 300, one behind the other, launched far ahead.
    let mut made = Made::new();
    for i in 0..6 {
        let (call, at) = (20_000 * i, 10_000 + 312_000 * i);
        let name = format!("ProfilerStep#{i}");
        made.range(RangeKind::Nvtx, &name, 0, call, call + 19_000);
        made.call("cudaMemcpyAsync", call + 1_000, call + 3_000);
        made.copy(Direction::H2D, 7, 500_000, at, at + 10_000);
        made.call("cudaLaunchKernel", call + 4_000, call + 7_000);
        made.kernel("k", 7, at + 11_000, at + 311_000);
    }
    let trace = made.trace();
    let (graph, known) = (Graph::new(&trace), known());
    let whatif = of_program(&trace, &graph, &known);
    assert_eq!(whatif.measured(), 312_000);
    // On streams of their own the copies follow each other every 11 us, the kernels only every 300.
    let edit = "own-stream".parse().expect("an edit");
    let outcome = whatif.predict(&edit).outcome.expect("predicted");
    assert_eq!((outcome.predicted, outcome.low), (300_000, 300_000));
}

#[test]
fn a_median_of_few_is_uncertain() {
    // The median distance is a tenth: 1.2533 * 1.4826 * 0.1 / sqrt(3).
    assert!((of_median(&[90, 100, 110]) - 0.107_28).abs() < 1e-5);
    assert_eq!((of_median(&[100]), of_median(&[])), (0.0, 0.0));
}

#[test]
fn what_a_lone_sync_waited_for_is_no_time_of_the_cpu() {
    // A kernel of a millisecond, the only sync for it, and a blocking copy that waits for another.
    let mut made = Made::new();
    made.call("cudaLaunchKernel", 0, 4_000);
    made.kernel("first", 7, 6_000, 1_006_000);
    made.call("cudaDeviceSynchronize", 10_000, 1_010_000);
    made.call("cudaLaunchKernel", 1_012_000, 1_016_000);
    made.kernel("second", 7, 1_018_000, 3_018_000);
    made.call("cudaMemcpy", 1_017_000, 3_024_000);
    let back = Copy {
        to: MemoryKind::Pageable,
        is_async: false,
        ..pinned(Direction::D2H, 7, 8)
    };
    made.copy_of(back, 3_019_000, 3_020_000);
    made.call("cudaLaunchKernel", 3_030_000, 3_034_000);
    made.kernel("last", 7, 3_036_000, 3_040_000);
    let trace = made.trace();
    let graph = Graph::new(&trace);
    let unknown = GpuRates::default();
    let whatif = of_program(&trace, &graph, &unknown);
    let run = whatif.measured();
    assert_eq!(run, 3_034_000);
    let saves = |edit: &str| {
        let edit = edit.parse().expect("an edit");
        run - whatif.predict(&edit).outcome.expect("predicted").predicted
    };
    // Without the first the run begins with the second, at 1,018 us. Without the second the copy's call comes 3 us after
    // the sync, at 1,013, and the copy another 3 after that.
    let saved = ["drop:first", "drop:second"].map(saves);
    assert_eq!(saved, [1_012_000, 3_019_000 - 1_016_000]);
    assert!(whatif.ideal().host < 60_000);
}

//! Replays of real traces.

use crate::common::{load, real_traces};
use causes::graph::Graph;
use replay::program::{GpuRates, Program, Times};

/// Fewer operations than this owe too much to each delay.
const OPS_MIN: usize = 500;

#[test]
fn unchanged_traces_are_given_back_exactly_and_nearly_with_typical_delays() {
    let mut errors = Vec::new();
    for (path, _) in real_traces() {
        let name = path.display().to_string();
        let trace = load(&[path]).trace;
        let graph = Graph::new(&trace);
        let program = Program::new(&trace, &graph, None, &GpuRates::default());
        let times = program.replay();
        let (ops, calls) = (&graph.ops, &graph.calls);
        assert_eq!(times.op_start, ops.start, "{name}");
        assert_eq!(times.op_end, ops.end, "{name}");
        assert_eq!(times.call_start, calls.start, "{name}");
        assert_eq!(times.call_end, calls.end, "{name}");
        let measured = program.makespan(&times) as f64;
        let typical = program.makespan(&program.replay_typical_in(Times::default())) as f64;
        let error = (typical / measured - 1.0).abs();
        eprintln!(
            "{name}: {} operations, {:.2} %",
            program.ops.len(),
            error * 100.0
        );
        if program.ops.len() >= OPS_MIN {
            errors.push(error);
        }
    }
    errors.sort_by(f64::total_cmp);
    match errors.get(errors.len() / 2) {
        // The best mean error that anyone has published for replays of unchanged traces.
        Some(median) => assert!(*median <= 0.033, "{errors:?}"),
        None => eprintln!("left out: no trace of {OPS_MIN} operations is at hand"),
    }
}

//! Replays of real traces.

mod common;

use common::{load, real_traces};
use cuptop::analysis::graph::Graph;
use cuptop::analysis::replay::Program;

/// Fewer operations than this owe too much to each residual.
const OPS_MIN: usize = 500;

#[test]
fn unchanged_traces_are_given_back_exactly_and_nearly_without_residuals() {
    let mut errors = Vec::new();
    for (path, _) in real_traces() {
        let name = path.display().to_string();
        let trace = load(&[path]).trace;
        let graph = Graph::new(&trace);
        let program = Program::of(&trace, &graph);
        let times = program.run();
        assert_eq!(times.op_start, graph.ops.start, "{name}");
        assert_eq!(times.op_end, graph.ops.end, "{name}");
        assert_eq!(times.call_start, graph.calls.start, "{name}");
        assert_eq!(times.call_end, graph.calls.end, "{name}");
        let error = program.replay_error().expect("operations");
        eprintln!(
            "{name}: {} operations, {:.3} %",
            graph.ops.len(),
            error * 100.0
        );
        if graph.ops.len() >= OPS_MIN {
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

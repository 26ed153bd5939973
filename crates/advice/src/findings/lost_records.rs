//! Launches of CUDA graphs of which the profiler lost the records: nothing can be said of when the GPU was idle.

use super::{Finding, Occurrence, Scope, Severity};
use activity::What;
use activity::units::{count, share};
use causes::graph::{CallId, CallKind, Graph, NONE};
use trace::Trace;

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let lost = LostGraphs::of(scope.trace, scope.causes.graph())?;
    let at = lost.calls.iter();
    let at = at.map(|&call| Occurrence::Row(scope.causes.graph().calls.at(call)));
    Some(Finding {
        severity: Severity::Warning,
        title: format!("{}: what looks idle may be work", lost.text()),
        advice: "Record fewer steps, or graphs as a whole (nsys --cuda-graph-trace=graph, cuptop trace --graphs whole).".to_owned(),
        ..scope.found(0, 0, &at.collect::<Vec<_>>())
    })
}

/// Launches of graphs that left no operation, though they returned no error.
pub(crate) struct LostGraphs {
    calls: Vec<CallId>,
    of: usize,
}

impl LostGraphs {
    /// `None` where they are few: the last ones may have run when recording had ended.
    pub(crate) fn of(trace: &Trace, graph: &Graph) -> Option<LostGraphs> {
        let is_launch = |call: &CallId| {
            let (lane, row) = graph.calls.at(*call);
            let is_one = graph.calls.kind[*call as usize] == CallKind::GraphLaunch;
            is_one && matches!(trace.what(lane, row), What::Call(it) if it.code == 0)
        };
        let all: Vec<CallId> = (0..graph.calls.len() as CallId).filter(is_launch).collect();
        // Nodes whose launch is unknown may be those of any.
        let ops = 0..graph.ops.len() as u32;
        let is_nobodys = |&op: &u32| graph.ops.is_graph(op) && graph.ops.call[op as usize] == NONE;
        let is_lost = |call: &CallId| graph.calls.first_op[*call as usize] == NONE;
        let (of, calls): (usize, Vec<CallId>) =
            (all.len(), all.into_iter().filter(is_lost).collect());
        let is_much = cases::LOST_SHARE.is_reached_by(share(calls.len() as i64, of as i64));
        (is_much && calls.len() > 1 && !ops.into_iter().any(|op| is_nobodys(&op)))
            .then_some(LostGraphs { calls, of })
    }

    /// "30 of 40 graph launches have no GPU records".
    pub(crate) fn text(&self) -> String {
        let (lost, of) = (count(self.calls.len() as u64), count(self.of as u64));
        format!("{lost} of {of} graph launches have no GPU records")
    }
}

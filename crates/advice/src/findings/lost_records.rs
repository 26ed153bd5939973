//! Launches of CUDA graphs of which the profiler lost the records: nothing can be said of when the GPU was idle.

use super::{Finding, Occurrence, Scope, Severity};
use crate::thresholds;
use activity::units::{count, duration, share};
use activity::{Metric, Span, What};
use causes::graph::{CallId, CallKind, Graph, NONE};
use trace::Trace;

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let Some(lost) = LostGraphs::of(scope.trace, scope.causes.graph()) else {
        return blind(scope);
    };
    let at = lost.calls.iter();
    let at = at.map(|&call| Occurrence::Row(scope.causes.graph().calls.at(call)));
    Some(Finding {
        severity: Severity::Warning,
        title: format!("{}: what looks idle may be work", lost.text()),
        advice: "Record fewer steps, or graphs as a whole (nsys --cuda-graph-trace=graph, cuptop trace --graphs whole).".to_owned(),
        ..scope.found(0, 0, &at.collect::<Vec<_>>())
    })
}

/// From some moment on no kernel is recorded, though they ran: the program waited for them and went on, and NVML saw the GPU busy.
/// CUPTI says no error where another user of the counters came.
fn blind(scope: &Scope) -> Option<Finding> {
    let calls = &scope.causes.graph().calls;
    let last = scope.devices.iter().map(|f| f.span.end).max()?;
    let is_later = |id: &CallId| {
        let (lane, row) = calls.at(*id);
        let is_done = || matches!(scope.trace.what(lane, row), What::Call(it) if it.code == 0);
        calls.start[*id as usize] > last && is_done()
    };
    let later = (0..calls.len() as CallId).filter(is_later);
    let later: Vec<usize> = later.map(|id| id as usize).collect();
    let is_launch = |id: &&usize| calls.kind[**id] == CallKind::Launch;
    let launches = || later.iter().filter(is_launch);
    let waits = later.iter().filter(|id| calls.kind[**id].is_wait());
    let from = launches().map(|id| calls.start[*id]).min()?;
    let span = Span::new(from, waits.map(|id| calls.end[*id]).max()?.max(from));
    let readings = scope.devices.iter().map(|f| scope.trace.readings(f.index));
    let mut levels = readings.filter_map(|it| it?.level(Metric::Sm, span));
    let is_busy = levels.any(|it| it.mean >= thresholds::BLIND_BUSY);
    let has_none = launches().all(|id| calls.first_op[*id] == NONE);
    let is_long = span.len() >= thresholds::BLIND_NS;
    let is_blind = has_none && is_long && is_busy;
    let at = launches().map(|id| Occurrence::Row(calls.at(*id as CallId)));
    is_blind.then(|| Finding {
        severity: Severity::Warning,
        title: format!(
            "blind for the last {}: of {} launched kernels none is recorded, though the GPU was busy",
            duration(span.len()),
            count(launches().count() as u64)
        ),
        advice: "Record again while nobody else uses the GPU's counters, with --counters off and without --stalls.".to_owned(),
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

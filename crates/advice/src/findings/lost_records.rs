//! Launches of CUDA graphs of which the profiler lost the records: nothing can be said of when the GPU was idle.

use super::{DeviceFigures, Finding, Occurrence, Scope, Severity};
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
    let ids = 0..calls.len() as CallId;
    let later = |id: &CallId| {
        let (lane, row) = calls.at(*id);
        let is_done = || matches!(scope.trace.what(lane, row), What::Call(it) if it.code == 0);
        calls.start[*id as usize] > last && is_done()
    };
    let (launches, others): (Vec<CallId>, Vec<CallId>) = ids
        .filter(later)
        .partition(|id| calls.kind[*id as usize] == CallKind::Launch);
    let from = launches.iter().map(|id| calls.start[*id as usize]).min()?;
    let waits = others
        .iter()
        .filter(|id| calls.kind[**id as usize].is_wait());
    let end = waits.map(|id| calls.end[*id as usize]).max()?;
    let has_none = launches
        .iter()
        .all(|id| calls.first_op[*id as usize] == NONE);
    let span = Span::new(from, end.max(from));
    let is_busy = |f: &DeviceFigures| {
        let level = scope.trace.readings(f.index)?.level(Metric::Sm, span)?;
        Some(level.mean >= thresholds::BLIND_BUSY)
    };
    let is_blind = has_none
        && span.len() >= thresholds::BLIND_NS
        && scope.devices.iter().any(|f| is_busy(f) == Some(true));
    let at = launches.iter().map(|id| Occurrence::Row(calls.at(*id)));
    is_blind.then(|| Finding {
        severity: Severity::Warning,
        title: format!(
            "blind for the last {}: of {} launched kernels none is recorded, though the GPU was busy",
            duration(span.len()),
            count(launches.len() as u64)
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

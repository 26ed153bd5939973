//! Launches of which the profiler lost the records: nothing can be said of when the GPU was idle.

use super::{Finding, Occurrence, Rule, Scope, Severity};
use crate::thresholds;
use activity::text::{NAME_MAX, cut_middle, printable};
use activity::units::{count, duration};
use activity::{Metric, Span};
use causes::graph::{CallKind, NONE};
use causes::launched;
use figures::lost::{Lost, Silent, has_bare, launches_of};

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let Some(lost) = Lost::of(scope.trace, scope.causes.graph(), None) else {
        return has_bare(scope.causes.graph()).then(|| blind(scope))?;
    };
    let at = lost.calls().iter();
    let at = at.map(|&call| Occurrence::Row(scope.causes.graph().calls.at(call)));
    Some(Finding {
        severity: Severity::Warning,
        title: format!("{}: what looks idle may be work", lost.text()),
        advice: match (lost.are_graphs(), lost.are_left_out()) {
            (_, true) => "Open the export as it was made, with all its tables and rows, or record again.",
            (true, _) => "Record fewer steps, or graphs as a whole (nsys --cuda-graph-trace=graph, cuptop trace --graphs whole). An nsys older than that which recorded leaves such graphs out of its export.",
            _ => "Record a shorter part, or fewer processes at once.",
        }
        .to_owned(),
        ..scope.found(0, 0, &at.collect::<Vec<_>>())
    })
}

/// From some moment on no kernel is recorded, though they ran: the program waited for them and went on, and NVML saw the GPU busy.
/// CUPTI says no error where another user of the counters came.
fn blind(scope: &Scope) -> Option<Finding> {
    let graph = scope.causes.graph();
    let calls = &graph.calls;
    let last = scope.devices.iter().map(|f| f.span.end).max()?;
    let mut launches = launches_of(graph, &launched(scope.trace, graph), CallKind::Launch);
    launches.retain(|id| calls.start[*id as usize] > last);
    let from = calls.start[*launches.first()? as usize];
    let waits = (0..calls.len()).filter(|id| calls.kind[*id].is_wait());
    let span = Span::new(from, waits.map(|id| calls.end[id]).max()?.max(from));
    let readings = scope.devices.iter().map(|f| scope.trace.readings(f.index));
    let mut levels = readings.filter_map(|it| it?.level(Metric::Sm, span));
    let is_busy = levels.any(|it| it.mean >= thresholds::BLIND_BUSY);
    let has_none = launches
        .iter()
        .all(|id| calls.first_op[*id as usize] == NONE);
    let is_long = span.len() >= thresholds::BLIND_NS;
    let is_blind = has_none && is_long && is_busy;
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

/// A thread whose records end, as a finding of what lies before.
pub fn of_silent(silent: &Silent) -> Finding {
    let (name, rest) = (
        printable(&cut_middle(&silent.name, NAME_MAX)),
        duration(silent.rest),
    );
    Finding {
        rule: Rule::LostRecords,
        severity: Severity::Warning,
        title: format!(
            "thread {} has no records in the last {rest}, though `{name}` goes on: told is the {} before",
            silent.thread,
            duration(silent.before.len())
        ),
        advice: "Record a shorter part, or fewer processes at once.".to_owned(),
        places: vec!["whole run".to_owned()],
        ..Finding::default()
    }
}

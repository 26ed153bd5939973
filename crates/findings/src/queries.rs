//! Calls that only ask the driver something that stays as it is, between launches, over and over.

use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope, longest_first};
use activity::Ns;
use activity::units::{count, duration, percent};
use causes::graph::CallId;
use causes::{Bound, Culprit, Gap, Group, Piece};
use figures::launches::is_query;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    scope.has_name(is_query).then_some(())?;
    let graph = scope.causes.graph();
    let (calls, first) = (&graph.calls, scope.causes.first_use());
    let function = |call| graph.function(scope.trace, call);
    let asks = |it: &Piece| matches!(it.culprit, Culprit::Call(call) if is_query(function(call)));
    let idle = scope.idle_that(f, |gap, it| {
        asks(it) && !scope.causes.is_first(gap.next, it)
    });
    let window = scope.window_on(f.index).unwrap_or(f.span);
    let is_asked = |&call: &CallId| {
        let (span, at) = (calls.span(call), calls.at(call));
        window.overlaps(span) && is_query(function(call)) && !first.has_call(span, at)
    };
    let asked: Vec<CallId> = (0..calls.len() as CallId).filter(is_asked).collect();
    let took = |&call: &CallId| calls.span(call).len();
    let time = asked.iter().map(took).sum::<Ns>().min(f.idle_ns);
    // Where it takes long, launches come late for it, though the last one is still on its way to the GPU meanwhile.
    let is_much = cases::WARNING_SHARE.is_reached_by(f.part(idle))
        || cases::LAUNCH_IDLE_SHARE.is_reached_by(f.part(time));
    if !is_much || !cases::LOOP_MIN.is_reached_by(asked.len()) {
        return None;
    }
    let is_sync = |gap: &Gap, it: &Piece| scope.causes.group(*gap, it) == Group::Sync;
    let synced = scope.idle_that(f, |gap, it| !asks(it) && is_sync(gap, it));
    let (name, _) = *causes::sum_by(asked.iter().map(|it| (function(*it), took(it)))).first()?;
    let row = |&call: &CallId| (took(&call), Occurrence::Row(calls.at(call)));
    let at = longest_first(asked.iter().map(row).collect());
    let part = percent(f.part(time));
    Some(Finding {
        title: format!(
            "{name} is called {} times between launches: {} ({part})",
            count(asked.len() as u64),
            duration(time),
        ),
        advice: "The driver looks it up each time: ask once, and keep the answer.".to_owned(),
        change: scope.changes(&format!("{name}: once, before the loop"), None),
        says: Some(Says {
            bound: Bound::Host,
            part: f.part(time),
            why: format!("{part} of the time in {name} between launches"),
        }),
        // Syncs cost what lies before the next launch, and nothing of what is asked behind them.
        instead_of: match 2 * synced <= idle {
            true => &[Rule::LaunchBound, Rule::SyncInLoop],
            false => &[Rule::LaunchBound],
        },
        ..scope.found(f.span_ns, time, &at)
    })
}

//! Time that only the first run pays: modules loaded, functions loaded on first use, code compiled, libraries started.

use super::{Finding, Occurrence, Scope, Severity, longest_first};
use crate::causes::is_loading;
use crate::figures::DeviceFigures;
use crate::first_use::{self, First};
use crate::graph::CallKind;
use crate::thresholds;
use activity::text::listed;
use activity::units::{duration, share};
use activity::{NameId, Ns, Span, What};
use rustc_hash::FxHashMap;
use trace::{LaneId, LaneKind, Trace};

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let mut at = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    let mut has_context = false;
    // What is let go at the end is nothing that a first run pays.
    let whole = scope.span();
    let mut known: FxHashMap<u32, bool> = FxHashMap::default();
    for (id, lane) in scope.trace.lanes().iter().enumerate() {
        let key = lane.key();
        if !matches!(key.kind, LaneKind::Thread { .. } | LaneKind::Overhead) {
            continue;
        }
        for row in scope.rows(id) {
            let is_one = *known
                .entry(scope.trace.what_id(id, row))
                .or_insert_with(|| is_cold(scope.trace, scope.trace.what(id, row)));
            if is_one {
                let activity = scope.trace.activity(id, row);
                let span = scope.on_all(key.process, activity.span);
                if span.start >= whole.end {
                    continue;
                }
                let names = scope.trace.names();
                has_context |=
                    matches!(activity.what, What::Call(call) if is_context(names.full(call.name)));
                spans.push(span);
                at.push((activity.span.len(), Occurrence::Row((id, row))));
            }
        }
    }
    let mut has_loading = !spans.is_empty();
    let process_of = |(lane, _): (LaneId, usize)| scope.trace.lanes()[lane].key().process;
    let is_looked_at = |&&(span, place): &&First| {
        let window = scope.window_of(process_of(place));
        let is_before = scope.on_all(process_of(place), span).start < whole.end;
        is_before && window.is_none_or(|w| (w.start..w.end).contains(&span.start))
    };
    let first = scope.causes.first_use();
    let (mut has_first, mut has_built) = (false, false);
    for &(span, place) in first.calls.iter().filter(is_looked_at) {
        let names = scope.trace.names();
        // What a launch takes so long for the first time is its kernel's code.
        match scope.trace.what(place.0, place.1) {
            What::Call(of) if CallKind::of(names.full(of.name)) == CallKind::Launch => {
                has_loading = true;
            }
            _ => has_first = true,
        }
        spans.push(scope.on_all(process_of(place), span));
        at.push((span.len(), Occurrence::Row(place)));
    }
    for &(_, place) in first.operators.iter().filter(is_looked_at) {
        let own = first_use::own(scope.trace, place).into_iter();
        let own: Vec<Span> = own
            .map(|part| scope.on_all(process_of(place), part))
            .collect();
        let time = own.iter().map(|part| part.len()).sum::<Ns>();
        // The calls in it may be all there is to it.
        let rest = time - within(&own, &spans);
        if cases::COLD_MIN.is_reached_by(rest) {
            has_first = true;
            at.push((time, Occurrence::Row(place)));
            spans.extend(own);
        }
    }
    let graph = scope.causes.graph();
    for (&op, &span) in &first.made {
        let place = graph.calls.at(graph.ops.call[op as usize]);
        if is_looked_at(&&(span, place)) {
            has_built = true;
            spans.push(scope.on_all(process_of(place), span));
            at.push((span.len(), Occurrence::Row(place)));
        }
    }
    let time = Span::union_len(spans);
    // Its time is the host's: it may be longer than all that the GPU did.
    let part = share(time, whole.len());
    if !cases::COLD_MIN.is_reached_by(time) || part < thresholds::WORTH_SHARE {
        return None;
    }
    let inside = |f: &DeviceFigures| {
        scope.idle_that(f, |gap, piece| {
            piece.cause.is_of_host() && scope.causes.is_first(gap.next, piece)
        })
    };
    let inside = scope.devices.iter().map(inside).max();
    // What lies before the GPU's work costs none of its time.
    let is_much = share(inside.unwrap_or(0), whole.len()) >= thresholds::WARNING_SHARE;
    Some(Finding {
        severity: match is_much {
            true => Severity::Warning,
            false => Severity::Info,
        },
        title: format!(
            "cold start: {} spent on {}; the GPU's work spans {}",
            duration(time),
            spent_on(has_context, has_loading, has_built, has_first),
            duration(whole.len()),
        ),
        advice: match has_loading && is_cuda(scope) {
            true => "Warm up before measuring: run everything once, or load ahead with CUDA_MODULE_LOADING=EAGER.",
            false => "Warm up before measuring: run everything once.",
        }
        .to_owned(),
        bound_ns: time,
        inside_ns: inside,
        ..scope.found(whole.len(), time, &longest_first(at))
    })
}

/// Whether the program's calls are CUDA's: HIP has no such setting.
fn is_cuda(scope: &Scope) -> bool {
    let names = scope.trace.names();
    !(0..names.len() as NameId).any(|id| names.full(id).starts_with("hip"))
}

/// How much of `parts` lies within `spans`.
fn within(parts: &[Span], spans: &[Span]) -> Ns {
    let both = [parts, spans].concat();
    Span::union_len(parts.to_vec()) + Span::union_len(spans.to_vec()) - Span::union_len(both)
}

/// Whether a call or a profiler's record is one of loading code or making a context.
fn is_cold(trace: &Trace, what: What) -> bool {
    match what {
        What::Call(call) => loads(trace.names().full(call.name)),
        What::Overhead(o) => is_loading(trace.names().full(o.name)),
        _ => false,
    }
}

fn loads(name: &str) -> bool {
    CallKind::of(name) == CallKind::Load || is_context(name)
}

fn is_context(name: &str) -> bool {
    name.contains("CtxCreate") || name.contains("PrimaryCtxRetain")
}

fn spent_on(has_context: bool, has_loading: bool, has_built: bool, has_first: bool) -> String {
    let parts = [
        (has_context, "making the context"),
        (has_built, "building kernels"),
        (has_loading, "loading GPU code"),
        (has_first, "slow first calls to libraries"),
    ];
    let parts = parts.iter().filter(|part| part.0).map(|part| part.1);
    listed(&parts.collect::<Vec<_>>())
}

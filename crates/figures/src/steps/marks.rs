//! Steps of a server of a language model that names mark.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::batches::{self, Batch, Phase};
use super::operations::{self, ByCall};
use super::ranges::{self, Marked};
use super::{Found, Origin, tokens};
use activity::{NameId, Ns, Range, RangeKind, Span, What};
use trace::{Lane, LaneKind, Trace};

/// Steps that names mark; `None` where they mark none, or one phase by a word of the program's own alone.
pub(super) fn find(trace: &Trace, process: usize, window: Option<Span>) -> Option<Found> {
    let lanes = trace.others_in(process);
    let kind = RangeKind::Nvtx;
    let is_one =
        |lane: &Lane| matches!(lane.key().kind, LaneKind::Range { kind: of, .. } if of == kind);
    let lanes: Vec<_> = lanes.filter(|it| is_one(it.1)).collect();
    if lanes.is_empty() {
        return None;
    }
    let names = 0..trace.names().len() as NameId;
    let known = names.filter_map(|id| Some((id, batches::read(trace.names().full(id))?)));
    let known: FxHashMap<NameId, Batch> = known.collect();
    let mut marks = BTreeMap::<Ns, (Span, NameId)>::new();
    for (id, lane) in lanes.into_iter().filter(|_| !known.is_empty()) {
        for (_, it) in trace.activities(id, lane.rows_in(window)) {
            if let What::Range(Range { name, .. }) = it.what
                && known.contains_key(&name)
            {
                marks.insert(it.span.start, (it.span, name));
            }
        }
    }
    let name = marks.first_key_value()?.1.1;
    let is_same = |it: &(Span, NameId)| it.1 == name;
    if known[&name].fields.is_empty() && marks.values().all(is_same) {
        return None;
    }
    let spans: Vec<Span> = marks.values().map(|it| it.0).collect();
    let calls = ByCall::new(trace, process, window);
    let steps = ranges::caused_by(trace, process, window, &calls, &spans);
    let all = operations::count(trace, process, window);
    if !ranges::are_steps(&steps, all, cases::STEPS_MIN.value()) {
        return None;
    }
    let batch = |step: &Marked| {
        let mut batch = known[&marks[&step.range.start].1].clone();
        batch.start = step.caused.start;
        let copied = || tokens::copied(trace, process, step.caused);
        batch.tokens = batch.tokens.or_else(copied);
        batch
    };
    let batches: Vec<Batch> = steps.iter().map(batch).collect();
    let spans = ranges::from_start_to_start(trace, process, &steps).0;
    let spans = join(spans, &batches, |it| {
        tokens::copied(trace, process, it).is_some()
    });
    let engine = trace.names().full(name).split_once(['_', '[']);
    let words = engine.map_or("prefill, decode".to_owned(), |it| format!("{}…", it.0));
    Some(Found::of_server(
        (trace, process),
        Origin::Ranges(words),
        spans,
        batches,
    ))
}

/// Puts steps together of which only the last one copies tokens back: an engine may name each of several graphs that make one.
fn join(spans: Vec<Span>, batches: &[Batch], copies: impl Fn(Span) -> bool) -> Vec<Span> {
    let phase = |span: &Span| batches::find(batches, span.start).map(|it| it.phase);
    let is_decode = |span: &Span| phase(span) == Some(Phase::Decode);
    let decodes = spans.iter().copied().filter(is_decode);
    let (ends, parts): (Vec<Span>, Vec<Span>) = decodes.partition(|it| copies(*it));
    if !cases::STEPS_MIN.is_reached_by(ends.len()) || ends.len() > parts.len() {
        return spans;
    }
    let is_part = |a: &Span, b: &Span| is_decode(a) && is_decode(b) && !copies(*a);
    let joined = spans.chunk_by(|a, b| a.end == b.start && is_part(a, b));
    joined.map(|it| it[0].hull(it[it.len() - 1])).collect()
}

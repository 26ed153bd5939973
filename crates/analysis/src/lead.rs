//! The time before the first operation of the only step that a profiler marks.

use rustc_hash::FxHashSet;

use activity::{NameId, Ns, RangeKind, Span, What};
use trace::{Lane, LaneKind, Trace};

/// What the names of a profiler's steps begin with.
pub(crate) const PROFILER_STEP: &str = "ProfilerStep#";

/// What lies before the first operation of a device in the only step that a profiler marks: the CPU's work there belongs
/// to the step. With a window, where it holds both.
pub fn find(trace: &Trace, device: usize, window: Option<Span>) -> Option<Span> {
    let lanes = trace.streams_of(device).map(|(_, lane)| lane);
    let lanes: Vec<&Lane> = lanes.filter(|lane| !lane.kept().is_empty()).collect();
    let [one, ..] = lanes[..] else { return None };
    let process = one.key().process;
    let first = lanes.iter().map(|lane| lane.span(lane.kept().start).start);
    let first = first.min()?;
    let holds = |start: Ns| window.is_none_or(|it| it.start <= start && first < it.end);
    let is_whole = trace.evicted().is_none() && !trace.has_unrecorded();
    if !is_whole || !holds(first - 1) || lanes.iter().any(|lane| lane.key().process != process) {
        return None;
    }
    let mark = only_marked(trace, process)?;
    let is_in = mark.start < first && first < mark.end && holds(mark.start);
    is_in.then(|| Span::new(mark.start, first))
}

/// The only step that a profiler marks in a process.
fn only_marked(trace: &Trace, process: usize) -> Option<Span> {
    let names = 0..trace.names().len() as NameId;
    let is_mark = |name: &NameId| trace.names().full(*name).starts_with(PROFILER_STEP);
    let marks: FxHashSet<NameId> = names.filter(is_mark).collect();
    let lanes = trace.lanes().iter().enumerate().filter(|(_, lane)| {
        let key = lane.key();
        let is_nvtx = matches!(
            key.kind,
            LaneKind::Range {
                kind: RangeKind::Nvtx,
                ..
            }
        );
        !marks.is_empty() && is_nvtx && key.process == process
    });
    let rows = lanes.flat_map(|(id, lane)| trace.activities(id, lane.kept()));
    let mut marked =
        rows.filter(|(_, it)| matches!(it.what, What::Range(range) if marks.contains(&range.name)));
    let only = marked.next()?.1.span;
    marked.next().is_none().then_some(only)
}

//! Where an edit is limited to: the ranges of a name.

use rustc_hash::FxHashMap;

use super::Scene;
use activity::{NameId, Ns, Span, What};
use scenario::diagnostics::did_you_mean;
use trace::{LaneId, LaneKind, Trace};

/// How many ranges that began before a moment are looked at for one around it.
const BACK: usize = 256;

/// Ranges by process and thread, in order of their start.
pub(super) type Ranges = FxHashMap<(usize, u32), Vec<Span>>;

/// The ranges of a name. `None` is everywhere.
#[derive(Clone, Debug)]
pub(super) struct Within(pub(super) Option<Ranges>);

/// The ranges of a thread, by the lane of its calls.
pub(super) fn of_thread<'r>(trace: &Trace, lane: LaneId, ranges: &'r Ranges) -> &'r [Span] {
    let key = trace.lanes()[lane].key();
    match key.kind {
        LaneKind::Thread { thread } => ranges
            .get(&(key.process, thread))
            .map_or(&[][..], Vec::as_slice),
        _ => &[],
    }
}

impl Within {
    /// # Errors
    /// When there is no such range.
    pub(super) fn new(name: Option<&str>, scene: Scene<'_>) -> Result<Within, String> {
        let Some(name) = name else {
            return Ok(Within(None));
        };
        let ranges = ranges(scene.trace, name);
        if ranges.is_empty() {
            let mut seen: Vec<NameId> = Vec::new();
            rows(scene.trace, |_, _, id| {
                if !seen.contains(&id) && seen.len() < 1000 {
                    seen.push(id);
                }
            });
            let names = seen.iter().map(|&id| scene.trace.names().full(id));
            let help = did_you_mean(name, names).map_or(String::new(), |help| format!("; {help}"));
            return Err(format!("no range or function is called `{name}`{help}"));
        }
        Ok(Within(Some(ranges)))
    }

    /// Whether a moment of a thread (the lane of its calls) lies in one of the ranges.
    pub(super) fn has(&self, trace: &Trace, lane: LaneId, time: Ns) -> bool {
        let ranges = self.0.as_ref();
        ranges.is_none_or(|ranges| is_in(of_thread(trace, lane, ranges), time))
    }
}

/// Whether a moment lies in one of the spans, which are in order of their start.
pub(super) fn is_in(list: &[Span], time: Ns) -> bool {
    let to = list.partition_point(|span| span.start <= time);
    let mut before = list[..to].iter().rev().take(BACK);
    before.any(|span| time < span.end)
}

/// The ranges of a name, by process and thread; those that have it as a part of theirs when none is
/// called so.
pub(super) fn ranges(trace: &Trace, name: &str) -> Ranges {
    let mut whole = Ranges::default();
    let mut part = whole.clone();
    let mut fits: FxHashMap<NameId, (bool, bool)> = FxHashMap::default();
    rows(trace, |thread, span, id| {
        let (is_whole, is_part) = *fits.entry(id).or_insert_with(|| {
            let full = trace.names().full(id);
            (
                full == name || trace.names().short(id) == name,
                full.contains(name),
            )
        });
        if is_whole {
            whole.entry(thread).or_default().push(span);
        } else if is_part {
            part.entry(thread).or_default().push(span);
        }
    });
    let mut ranges = if whole.is_empty() { part } else { whole };
    for list in ranges.values_mut() {
        list.sort_unstable_by_key(|span| (span.start, span.end));
    }
    ranges
}

fn rows(trace: &Trace, mut each: impl FnMut((usize, u32), Span, NameId)) {
    for (id, lane) in trace.lanes().iter().enumerate() {
        let LaneKind::Range { thread, .. } = lane.key().kind else {
            continue;
        };
        for (_, activity) in trace.activities(id, lane.kept()) {
            if let What::Range(range) = activity.what {
                each((lane.key().process, thread), activity.span, range.name);
            }
        }
    }
}

//! The gaps of what is in view by their length: the longest, and each time it is asked for again the next one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Item, RowKind, Scope, Selection, State, camera};
use activity::{Ns, Span, units};
use trace::{Measure, Trace};

/// A gap that takes less of what is in view is zoomed to.
const SMALL: Ns = 8;

/// How far through the gaps of a stretch it has come.
#[derive(Clone, Copy, Debug)]
pub struct LongestGaps {
    /// What was in view when the longest one was asked for.
    view: Span,
    /// Gaps that were shown.
    shown: usize,
    /// What was selected last: as long as that is selected, the next one is meant.
    last: Selection,
    /// What was put into view then: who looks at more since, or elsewhere, means the longest of that.
    put: Span,
    /// Gaps of its GPU, how many are about as long, and how long all of those are.
    alike: Option<[usize; 3]>,
}

/// Gaps of about one length that are told together: so many at least.
const ALIKE_MIN: usize = 8;

/// Idle time that is this part of what is in view is little to win, and a gap that is this part of idle time.
const LITTLE: f64 = 0.05;

/// A gap that is this part of all idle time happens once.
const ONCE: f64 = 0.9;

impl State {
    /// Selects the longest gap of what is in view: of the selected lane, else of all GPUs. Again: the next one.
    pub(crate) fn select_longest_gap(&mut self) {
        let selected = self.focus.selection;
        let in_view = self.focus.camera.viewport.window;
        let is_inside = |it: &LongestGaps| it.put.hull(in_view) == it.put;
        let before = self
            .focus
            .longest
            .filter(|it| it.last == selected && is_inside(it));
        let (view, shown) = before.map_or((in_view, 0), |it| (it.view, it.shown));
        let rows: Vec<RowKind> = match selected.row.filter(|row| row.lane().is_some()) {
            Some(lane) => vec![lane],
            None => self.rows.gpus().map(RowKind::Gpu).collect(),
        };
        let trace = &self.model.run.trace;
        // The profiler's own time is an artefact of looking.
        let is_real = |it: &(RowKind, Span)| !causes::is_profilers(trace, it.1);
        let found = self.gaps_by_length(&rows, view).filter(is_real).nth(shown);
        let Some((row, gap)) = found else {
            let is_profilers = self.gaps_by_length(&rows, view).next().is_some();
            self.focus.longest = None;
            return self.say(match shown {
                0 if is_profilers => "what is idle in view is profiler overhead, and nothing else",
                0 => "no GPU is idle in view between its operations",
                _ => "that was the last gap of what was in view; L begins again with the longest",
            });
        };
        let (item, cursor) = (Item::Gap(gap), gap.start);
        let (row, shown) = (Some(row), shown + 1);
        let last = Selection { row, item, cursor };
        self.focus.selection = last;
        let alike = last.row.and_then(RowKind::device).map(|device| {
            let usage = &self.model.run.trace.devices()[device].usage;
            // What lies before its first operation and behind its last one is no gap of what is looked at.
            let view = self.used(device).intersect(view);
            let all = usage.gaps_within(view);
            let all = all.filter(|it| it.len() >= Trace::GAP_MIN && it.overlaps(view));
            all.fold([0; 3], |[all, alike, sum], it| {
                // Those at the border lie partly out of view.
                let here = it.intersect(view).len() as usize;
                match (gap.len() / 2..=2 * gap.len()).contains(&it.len()) {
                    true => [all + 1, alike + 1, sum + here],
                    false => [all + 1, alike, sum],
                }
            })
        });
        let around = Span::new(gap.start - gap.len(), gap.end + gap.len());
        let is_small = gap.len() < view.len() / SMALL;
        let viewport = &mut self.focus.camera.viewport;
        viewport.show(if is_small { around } else { view });
        self.focus.longest = Some(LongestGaps {
            view,
            shown,
            last,
            put: self.focus.camera.viewport.window,
            alike,
        });
    }

    /// Which part of a device's idle time a selected gap is, of what was in view when the longest one was asked for: "4,095 gaps
    /// like it: 38 % of idle time", and of how much that is where less is in view now.
    pub fn part_of_idle(&self, device: usize, gap: Span) -> Option<String> {
        let asked = self.focus.longest?;
        let usage = &self.model.run.trace.devices()[device].usage;
        let used = self.used(device).intersect(asked.view);
        let idle = used.len() - usage.time(Measure::Busy, used);
        let is_told = asked.last == self.focus.selection && idle >= gap.len();
        let part = |time| units::percent(units::share(time, idle));
        let of = match asked.view == self.focus.camera.viewport.window {
            true => String::new(),
            false => format!(" in {}", units::duration(used.len())),
        };
        if self.is_early() {
            return is_told.then(|| "computing how much of idle time this is …".to_owned());
        }
        let little = units::share(idle, used.len());
        let words = || match asked.alike {
            _ if little < LITTLE => format!("all gaps: {} of the time", units::percent(little)),
            Some([_, number, sum]) if number >= ALIKE_MIN => {
                let (number, sum) = (units::count(number as u64), part(sum as Ns));
                format!("{number} gaps like it: {sum} of idle time")
            }
            Some([all, ..]) if units::share(gap.len(), idle) < LITTLE => {
                let (all, of) = (units::count(all as u64), part(gap.len()));
                format!("this gap: {of} of idle time, one of {all} gaps")
            }
            // In a step the same may come again in the next one.
            _ if units::share(gap.len(), idle) >= ONCE
                && used == self.used(device)
                && self.steps().is_none() =>
            {
                format!("this gap: {} of idle time, once", part(gap.len()))
            }
            _ => format!("this gap: {} of idle time", part(gap.len())),
        };
        is_told.then(|| words() + &of)
    }

    /// Whether the steps of a file are still being looked for: what is in view will be one of them, and shares other ones.
    pub fn is_early(&self) -> bool {
        let run = &self.model.run;
        let is_file = run.plan.is_none() && !run.is_running() && self.scope() == Scope::Whole;
        is_file && self.model.answers.is_open() && self.steps().is_none()
    }

    /// The gaps of some rows that lie within a stretch, the longest first. Time in which only other GPUs have work counts as one, and so
    /// does what lies before the first operation of a marked step.
    fn gaps_by_length<'a>(
        &'a self,
        rows: &'a [RowKind],
        view: Span,
    ) -> impl Iterator<Item = (RowKind, Span)> + 'a {
        let (trace, least) = (&self.model.run.trace, Trace::GAP_MIN);
        let longest = move |at: usize, part: Span| {
            let gap = match (rows[at].lane(), rows[at].device()) {
                (Some(id), _) => trace.lanes()[id].longest_gap(part, least),
                (None, Some(device)) => trace.devices()[device].usage.longest_gap(part, least),
                (None, None) => None,
            }?;
            Some((gap.len(), Reverse((gap, at)), part))
        };
        let all = self.operations().unwrap_or_default().intersect(view);
        let edges = rows.iter().enumerate().filter_map(|(at, row)| {
            let device = row.device()?;
            let used = camera::used(&trace.devices()[device].usage, self.operations());
            let before = Span::new(all.start, used.start.min(all.end));
            let behind = Span::new(used.end.max(all.start), all.end);
            Some([before, behind].map(|gap| (gap.len(), Reverse((gap, at)), gap)))
        });
        let edges = edges.flatten().filter(|it| it.0 >= least);
        let mut left: BinaryHeap<_> = (0..rows.len()).filter_map(|at| longest(at, view)).collect();
        left.extend(edges);
        std::iter::from_fn(move || {
            let (_, Reverse((gap, at)), part) = left.pop()?;
            // The next ones lie before it or after it.
            let parts = [(part.start, gap.start), (gap.end, part.end)];
            let parts = parts.map(|(start, end)| Span::new(start, end));
            left.extend(parts.iter().filter_map(|&part| longest(at, part)));
            Some((rows[at], gap))
        })
    }
}

//! Columns of many short ranges: what took most of each, and names that say what their colours stand for.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Name, Painter};
use crate::tui::draw::ink::{Ink, Paint};
use crate::tui::draw::{label, pen};
use activity::{Ns, Span, units};

/// Columns of short ranges from which names say what their colours stand for, how many of them, and from which share on.
const KEYED: usize = 16;
const KEYS: usize = 3;
const WORTH: f64 = 0.1;

/// What short ranges took, by what they are, with the first of each.
pub(super) type ShareParts = FxHashMap<u32, (usize, Ns)>;

/// Columns of short ranges.
#[derive(Default)]
pub(super) struct Dense {
    /// Those that follow each other, and what they hold.
    stretches: Vec<(Range<u16>, ShareParts)>,
}

impl Dense {
    /// A cell: what took most of it, and all.
    pub(super) fn ink(
        &mut self,
        rows: &[(usize, Span)],
        cell: Span,
        x: u16,
        painter: &mut Painter<'_>,
    ) -> Ink {
        let mut parts = ShareParts::default();
        for &(row, span) in rows {
            let what = painter.trace.what_id(painter.id, row);
            put(&mut parts, what, row, span.intersect(cell).len());
        }
        let stretch = match self.stretches.last_mut() {
            Some(last) if last.0.end == x => last,
            _ => {
                self.stretches.push((x..x, ShareParts::default()));
                let last = self.stretches.len() - 1;
                &mut self.stretches[last]
            }
        };
        stretch.0.end = x + 1;
        for (&what, &(row, ns)) in &parts {
            put(&mut stretch.1, what, row, ns);
        }
        let mut parts: Vec<(usize, Ns)> = parts.into_values().collect();
        let share = |ns: Ns| ns as f32 / cell.len() as f32;
        let all = share(parts.iter().map(|part| part.1).sum()).max(f32::MIN_POSITIVE);
        // A hit among many names the cell.
        let has_hits = painter.found.is_some();
        parts.sort_by_cached_key(|&(row, ns)| {
            let is_calm = has_hits && painter.role(row).1;
            (is_calm, std::cmp::Reverse(ns), row)
        });
        let paint = |&(row, _): &(usize, Ns)| Paint {
            role: painter.role_among(row),
            ..painter.of_several(row, cell)
        };
        let mut paints = parts.iter().take(2).map(paint);
        let Some(first) = paints.next() else {
            return Ink::Nothing;
        };
        let second = paints.next().map_or(first, |second| Paint {
            is_second: second.role == first.role,
            ..second
        });
        Ink::Shares([share(parts[0].1), all], [first, second])
    }

    /// The names that matter in the widest stretch, with their shares of its time: they take up to half of it.
    pub(super) fn name(&self, painter: &mut Painter<'_>, names: &mut Vec<Name>) {
        let widest = self.stretches.iter().max_by_key(|it| it.0.len());
        let Some((columns, parts)) = widest.filter(|it| it.0.len() >= KEYED) else {
            return;
        };
        let mut parts: Vec<(usize, Ns)> = parts.values().copied().collect();
        parts.sort_unstable_by_key(|&(row, ns)| (std::cmp::Reverse(ns), row));
        let all: Ns = parts.iter().map(|part| part.1).sum::<Ns>().max(1);
        let end = columns.start + columns.end.div_ceil(2) - columns.start / 2;
        let mut x = columns.start;
        for (row, ns) in parts.into_iter().take(KEYS) {
            let share = ns as f64 / all as f64;
            let figure = format!(" {} ", units::percent(share));
            let room = usize::from(end.saturating_sub(x)).saturating_sub(pen::width(&figure));
            let name = label::short(painter.trace, painter.id, row, room);
            if share < WORTH || name.is_empty() {
                return;
            }
            let role = painter.role_among(row);
            let key = Name::key(x, format!("{name}{figure}"), role);
            x += key.columns;
            names.push(key);
        }
    }
}

pub(super) fn put(parts: &mut ShareParts, what: u32, row: usize, ns: Ns) {
    let part = parts.entry(what).or_insert((row, 0));
    *part = (part.0.min(row), part.1 + ns);
}

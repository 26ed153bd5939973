//! A cell of few operations, which are looked at one by one.

use super::{FEW, Painter, touches};
use crate::tui::draw::ink::Ink;
use crate::tui::theme::Theme;
use activity::{Ns, Span};

/// The operations of a cell, in order of their starts.
pub(super) struct Few {
    rows: [(usize, Span); FEW],
    pub(super) count: usize,
}

impl Few {
    /// Those of `rows` that touch `cell`; `None` when there are more.
    pub(super) fn of(rows: impl Iterator<Item = (usize, Span)>, cell: Span) -> Option<Few> {
        let mut few = Few {
            rows: [(0, Span::at(0)); FEW],
            count: 0,
        };
        for found in rows.filter(|(_, span)| touches(*span, cell)) {
            *few.rows.get_mut(few.count)? = found;
            few.count += 1;
        }
        Some(few)
    }

    fn all(&self) -> &[(usize, Span)] {
        &self.rows[..self.count]
    }

    /// The one that runs all through the cell.
    pub(super) fn covering(&self, cell: Span) -> Option<(usize, Span)> {
        let covers = |(_, span): &&(usize, Span)| span.start <= cell.start && span.end >= cell.end;
        self.all().iter().find(covers).copied()
    }

    /// What the cell looks like, where none covers it.
    pub(super) fn ink(&self, cell: Span, x: u16, painter: &mut Painter) -> Ink {
        let rows = self.all();
        // The union, the longest part, and whether one stretch is all of it.
        let (mut busy, mut end, mut is_one) = (0, cell.start, true);
        let (mut start, mut longest) = (cell.end, (-1, 0));
        for (i, &(row, span)) in rows.iter().enumerate() {
            let part = span.intersect(cell);
            let from = part.start.max(end);
            is_one &= i == 0 || part.start <= end;
            busy += (part.end - from).max(0);
            start = start.min(part.start);
            end = end.max(part.end);
            if part.len() > longest.0 {
                longest = (part.len(), row);
            }
        }
        let share = busy as f64 / cell.len() as f64;
        let eighths = Theme::eighths(share).max(1);
        let (before, after) = (start - cell.start, cell.end - end);
        let is_near = |distance: Ns| 16 * distance <= cell.len();
        if let [(left, first), (right, second)] = *rows
            && share >= 0.875
            && 8 * before.max(after) <= cell.len()
            && second.end > first.end
        {
            let middle = second.start.clamp(cell.start, cell.end) - cell.start;
            let at = (8 * middle + cell.len() / 2) / cell.len();
            let [left, right] = [left, right].map(|row| painter.paint(row, x..x + 1));
            return Ink::Split(at.clamp(1, 7) as u8, left, right);
        }
        let paint = match rows {
            [(row, _)] => painter.paint(*row, x..x + 1),
            _ => {
                let hit = painter.found.is_some().then(|| {
                    let mut all = rows.iter().map(|(row, _)| *row);
                    all.find(|&row| !painter.role(row).1)
                });
                painter.of_several(hit.flatten().unwrap_or(longest.1), cell)
            }
        };
        match eighths {
            8 if rows.len() == 1 => Ink::Full(paint),
            1..8 if is_one && is_near(before) && before <= after => Ink::Left(eighths, paint),
            1..8 if is_one && is_near(after) => Ink::Right(eighths, paint),
            _ => Ink::Level(share as f32, paint),
        }
    }
}

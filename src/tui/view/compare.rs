//! Variants against the first one at the same value of the sweep, and this run against the one before.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::list::{Cell, List};
use super::{Request, View};
use crate::activity::units;
use crate::trace::printable;
use crate::tui::app::{State, VariantRow};
use crate::tui::draw::pen;
use crate::tui::theme::{Role, Theme};

/// Two runs of one program differ by that much without a reason.
const SAME: f64 = 0.02;

/// The view.
#[derive(Debug)]
pub(super) struct Compare {
    /// The run and its revision that the figures are of.
    of: Option<(u64, u64, bool)>,
    variants: Vec<VariantRow>,
    list: List,
}

impl Default for Compare {
    fn default() -> Self {
        Compare {
            of: None,
            variants: Vec::new(),
            list: List::new("no variant has ended yet"),
        }
    }
}

impl View for Compare {
    fn has_content(&self, state: &State) -> bool {
        state.run.passes.variants.len() > 1 || !state.run.previous.is_empty()
    }

    fn prepare(&mut self, state: &State, area: Rect, is_on_screen: bool) {
        if !is_on_screen {
            return;
        }
        let run = &state.run;
        let of = Some((run.number, run.trace.revision(), run.is_running()));
        if self.of != of {
            self.of = of;
            self.variants = run.variant_figures();
        }
        self.fill(state, area);
    }

    fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        self.list.draw(theme, area, buf);
    }

    fn list(&mut self) -> Option<&mut List> {
        Some(&mut self.list)
    }

    fn choose(&mut self, state: &State) -> Option<Request> {
        let variant = self.variants.get(self.list.cursor)?.variant;
        let pass = state.run.passes.representative(variant)?;
        Some(Request::Pass(pass))
    }
}

impl Compare {
    fn fill(&mut self, state: &State, area: Rect) {
        let (text, dim) = (Role::Text, Role::Dim);
        let (now, previous) = (&self.variants, &state.run.previous);
        let longest = now.iter().map(|row| pen::width(&row.label)).max();
        let name = longest.unwrap_or(0).clamp(8, 30) as u16;
        let has_before = !previous.is_empty();
        let is_wide = area.width >= name + if has_before { 96 } else { 74 };
        let mut heading = vec![
            Cell::left("variant", name, dim),
            Cell::right("makespan", 9, dim),
            Cell::right("speed-up", 8, dim),
        ];
        if is_wide {
            heading.push(Cell::right("host time", 9, dim));
        }
        heading.extend([Cell::right("idle", 6, dim), Cell::right("overlap", 7, dim)]);
        if is_wide {
            let rates = ["H2D GB/s", "D2H GB/s"];
            heading.extend(rates.map(|rate| Cell::right(rate, 8, dim)));
        }
        if has_before {
            heading.push(Cell::right("run before", 10, dim));
            heading.push(Cell::right("change", 9, dim));
        }
        self.list.heading = heading;
        let variants = &state.run.passes.variants;
        let point = |row: &VariantRow| variants.get(row.variant).and_then(|v| v.point);
        self.list.fill(area, now.len(), |i| {
            let row = &now[i];
            let base = now.iter().find(|other| point(other) == point(row));
            let speedup = match base {
                Some(base) if row.makespan > 0 => {
                    format!("{:.2}×", base.makespan as f64 / row.makespan as f64)
                }
                _ => "-".to_owned(),
            };
            let figures = &row.figures;
            let hidden = figures
                .hidden()
                .map_or_else(|| "-".to_owned(), units::percent);
            let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), units::rate);
            let mut cells = vec![
                Cell::left(printable(&row.label), name, text),
                Cell::right(units::duration(row.makespan), 9, text),
                Cell::right(speedup, 8, text),
            ];
            if is_wide {
                cells.push(Cell::right(units::duration(row.wall), 9, dim));
            }
            let idle = units::percent(figures.share(figures.idle));
            cells.push(Cell::right(idle, 6, text));
            cells.push(Cell::right(hidden, 7, text));
            if is_wide {
                cells.push(Cell::right(rate(figures.h2d), 8, text));
                cells.push(Cell::right(rate(figures.d2h), 8, text));
            }
            let before = previous.iter().find(|other| other.label == row.label);
            if let Some(before) = before.filter(|before| before.makespan > 0) {
                let change = row.makespan as f64 / before.makespan as f64 - 1.0;
                let role = match change {
                    c if c < -SAME => Role::Good,
                    c if c > SAME => Role::Bad,
                    _ => Role::Dim,
                };
                cells.push(Cell::right(units::duration(before.makespan), 10, dim));
                cells.push(Cell::right(format!("{:+.1} %", change * 100.0), 9, role));
            }
            cells
        });
    }
}

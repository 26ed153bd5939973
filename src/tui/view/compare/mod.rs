//! Variants against the one that they are compared with, and this run against the one before: a table, and under it the
//! variant under the cursor below its baseline on one axis.

mod picture;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::list::{Cell, List};
use super::{Place, Request, View};
use crate::tui::draw::pen;
use crate::tui::state::State;
use crate::tui::state::beside::{Beside, Pair};
use crate::tui::theme::{Role, Theme};
use activity::text::printable;
use activity::units;
use analysis::VariantFigures;
use analysis::variants::measure::speedup;
use picture::Picture;
use scenario::figures::Kind;

/// Two runs of one program differ by that much without a reason.
const SAME: f64 = 0.02;

/// What stands there instead of lines.
const EMPTY: &str = "no variant has ended yet";

/// Lines of the table, its heading not among them, before it takes more than a quarter of the view.
const FEW: u16 = 3;

/// The view.
#[derive(Debug)]
pub(super) struct Compare {
    list: List,
    /// The lines of the table that the filter leaves, as indices into the variants or the pairs.
    shown: Vec<usize>,
    picture: Picture,
    /// That the line to begin with is to be told as soon as there are figures.
    wants_first: bool,
}

impl Default for Compare {
    fn default() -> Self {
        Compare {
            list: List::new(EMPTY),
            shown: Vec::new(),
            picture: Picture::default(),
            wants_first: false,
        }
    }
}

impl View for Compare {
    fn has_content(&self, state: &State) -> bool {
        let run = &state.run;
        run.passes.variants.len() > 1 || !run.previous.is_empty() || run.beside.is_some()
    }

    fn prepare(&mut self, state: &State, area: Rect, is_on_screen: bool) {
        if !is_on_screen {
            return;
        }
        if self.wants_first && !state.run.measured.variants.is_empty() {
            self.wants_first = false;
            self.choose_lines(state);
            let first = picture::first(state);
            let at = self.shown.iter().position(|line| *line == first);
            self.list.cursor = at.unwrap_or(0);
        }
        self.choose_lines(state);
        let beside = state.run.beside.as_deref();
        let count = self.shown.len().max(1) as u16;
        let table = (1 + count.min(FEW.max(area.height / 4))).min(area.height);
        let top = Rect {
            height: table,
            ..area
        };
        match beside {
            Some(beside) => self.fill_pairs(beside, top),
            None => self.fill(state, top),
        }
        // Set apart where there is a line for that.
        let apart = u16::from(area.height > 2 * table + 12);
        let below = Rect {
            y: area.y + table + apart,
            height: area.height - (table + apart).min(area.height),
            ..area
        };
        let line = self.shown.get(self.list.cursor).copied();
        self.list.in_full = beside.map(|beside| in_full(beside, line));
        self.picture.prepare(state, line, below);
    }

    fn open(&mut self, _state: &State) {
        self.list.cursor = 0;
        self.wants_first = true;
    }

    fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        self.list.draw(theme, area, buf);
        self.picture.draw(theme, buf);
    }

    fn list(&self) -> Option<&List> {
        Some(&self.list)
    }

    fn list_mut(&mut self) -> Option<&mut List> {
        Some(&mut self.list)
    }

    fn choose(&mut self, state: &State) -> Option<Request> {
        let line = *self.shown.get(self.list.cursor)?;
        if let Some(beside) = &state.run.beside {
            let span = beside.pairs.get(line)?.spans[1];
            return Some(Request::Place(Place {
                row: None,
                record: None,
                span,
            }));
        }
        let variant = state.run.measured.variants.get(line)?.position;
        let pass = state.run.passes.representative(variant)?;
        Some(Request::Pass(pass))
    }
}

impl Compare {
    /// The lines that the filter leaves: of variants by their names, of two timelines by what is compared.
    fn choose_lines(&mut self, state: &State) {
        let names: Vec<String> = match state.run.beside.as_deref() {
            Some(beside) => beside.pairs.iter().map(|pair| pair.of.clone()).collect(),
            None => {
                let variants = state.run.measured.variants.iter();
                variants.map(VariantFigures::label).collect()
            }
        };
        let lines = 0..names.len();
        self.shown = lines
            .filter(|&i| self.list.filter.lets([&names[i]]))
            .collect();
        self.list.filter.count(self.shown.len(), names.len());
        self.list.empty = match self.list.filter.is_on() {
            true => "no line has this",
            false => EMPTY,
        };
    }

    /// Two timelines: what is compared, and what that came to.
    fn fill_pairs(&mut self, beside: &Beside, area: Rect) {
        let (text, dim) = (Role::Text, Role::Dim);
        let longest = beside.pairs.iter().map(|pair| pen::width(&pair.of)).max();
        let name = longest.unwrap_or(0).clamp(8, 30) as u16;
        self.list.heading = vec![
            Cell::left("compared", name, dim),
            Cell::right("A", 9, dim),
            Cell::right("B", 9, dim),
            Cell::rest(printable(&beside.headline), dim),
        ];
        let shown = &self.shown;
        self.list.fill(area, shown.len(), |i| {
            let pair = &beside.pairs[shown[i]];
            let role = match pair.ratio {
                _ if !pair.differs => dim,
                ratio if ratio < 1.0 => Role::Good,
                _ => Role::Warning,
            };
            let [a, b] = pair.spans.map(|span| units::duration(span.len()));
            vec![
                Cell::left(printable(&pair.of), name, text),
                Cell::right(a, 9, text),
                Cell::right(b, 9, text),
                Cell::rest(said(pair), role),
            ]
        });
    }

    fn fill(&mut self, state: &State, area: Rect) {
        let (text, dim) = (Role::Text, Role::Dim);
        let (passes, previous) = (&state.run.passes, &state.run.previous);
        let now = &state.run.measured.variants;
        let longest = now.iter().map(|v| pen::width(&v.label())).max();
        let name = longest.unwrap_or(0).clamp(8, 30) as u16;
        let has_before = !previous.is_empty();
        let is_wide = area.width >= name + if has_before { 100 } else { 78 };
        let mut heading = vec![
            Cell::left("variant", name, dim),
            Cell::right("makespan", 9, dim),
            Cell::right("speed-up", 12, dim),
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
        let shown = &self.shown;
        self.list.fill(area, shown.len(), |i| {
            let v: &VariantFigures = &now[shown[i]];
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let figure =
                |kind: Kind| or_dash(v.value(kind).map(|value| kind.spec().unit.show(value)));
            let rate = |kind: Kind| or_dash(v.value(kind).map(units::rate));
            let faster = match speedup(passes, v, now) {
                Some(speedup) => speedup.text(),
                None if passes.is_baseline(v.position) => units::factor(1.0),
                None => "-".to_owned(),
            };
            let mut cells = vec![
                Cell::left(printable(&v.label()), name, text),
                Cell::right(figure(Kind::Makespan), 9, text),
                Cell::right(faster, 12, text),
            ];
            if is_wide {
                cells.push(Cell::right(figure(Kind::Wall), 9, dim));
            }
            cells.push(Cell::right(figure(Kind::Idle), 6, text));
            cells.push(Cell::right(figure(Kind::Overlap), 7, text));
            if is_wide {
                cells.push(Cell::right(rate(Kind::H2dGbps), 8, text));
                cells.push(Cell::right(rate(Kind::D2hGbps), 8, text));
            }
            let before = previous.iter().find(|other| other.label() == v.label());
            // The host's time tells where either had no GPU work.
            let times = before.map(|old| match (old.makespan_ns, v.makespan_ns) {
                (0, _) | (_, 0) => (old.wall_ns, v.wall_ns),
                makespans => makespans,
            });
            if let Some((before, now)) = times.filter(|(before, _)| *before > 0) {
                let change = now as f64 / before as f64 - 1.0;
                let role = match change {
                    c if c < -SAME => Role::Good,
                    c if c > SAME => Role::Bad,
                    _ => Role::Dim,
                };
                cells.push(Cell::right(units::duration(before), 10, dim));
                cells.push(Cell::right(format!("{:+.1} %", change * 100.0), 9, role));
            }
            cells
        });
    }
}

/// What a pair came to.
fn said(pair: &Pair) -> String {
    match pair.differs {
        true => format!("B is {}", pair.told),
        false => pair.told.clone(),
    }
}

/// What the comparison of two timelines comes to, and the pair under the cursor, in full.
fn in_full(beside: &Beside, line: Option<usize>) -> String {
    let pair = line.and_then(|line| beside.pairs.get(line)).map(|pair| {
        let [a, b] = pair.spans.map(|span| units::duration(span.len()));
        format!("\n{}: A {a}, B {b}: {}", printable(&pair.of), said(pair))
    });
    printable(&beside.headline) + &pair.unwrap_or_default()
}

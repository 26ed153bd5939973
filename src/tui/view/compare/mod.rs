//! Variants against the one that they are compared with, and this run against the one before. A table stands above, and
//! under it the variant under the cursor below its baseline on one axis.

mod picture;

use super::list::{Cell, List};
use super::table::TableLayout;
use super::{Place, Request, View};
use crate::report::compare::ComparedRow;
use crate::report::runs::Variant;
use crate::tui::draw::prelude::*;
use crate::tui::state::State;
use crate::tui::state::other_run::OtherRun;
use activity::text::printable;
use activity::units;
use figures::VariantFigures;
use figures::variants::measure::speedup;
use picture::ComparePicture;

/// Two runs of one program differ by that much without a reason.
const SAME: f64 = 0.02;

/// Of a pair that shows no difference.
const NOT_TOLD: &str = "no difference shown";
/// Lines of the table, its heading not among them, before it takes more than a quarter of the view.
const FEW: u16 = 3;

#[derive(Debug, Default)]
pub(super) struct Compare {
    /// The lines of the table that the filter leaves, as indices into the variants or the pairs.
    shown: Vec<usize>,
    picture: ComparePicture,
    /// That the line to begin with is to be told as soon as there are figures.
    wants_first: bool,
}

impl View for Compare {
    fn has_content(&self, state: &State) -> bool {
        let run = &state.model.run;
        run.passes.variants.len() > 1 || !run.previous.is_empty() || run.beside.is_some()
    }

    fn prepare(&mut self, list: &mut List, state: &State, area: Rect) {
        if self.wants_first && !state.model.run.measured.variants.is_empty() {
            self.wants_first = false;
            self.choose_lines(list, state);
            let first = picture::first(state);
            let at = self.shown.iter().position(|line| *line == first);
            list.cursor = at.unwrap_or(0);
        }
        self.choose_lines(list, state);
        let beside = state.model.run.beside.as_deref();
        let count = self.shown.len().max(1) as u16;
        let table = (1 + count.min(FEW.max(area.height / 4))).min(area.height);
        let top = Rect {
            height: table,
            ..area
        };
        match beside {
            Some(beside) => self.fill_pairs(list, beside, top),
            None => self.fill(list, state, top),
        }
        // Set apart where there is a line for that.
        let apart = u16::from(area.height > 2 * table + 12);
        let below = Rect {
            y: area.y + table + apart,
            height: area.height - (table + apart).min(area.height),
            ..area
        };
        let line = self.shown.get(list.cursor).copied();
        list.in_full = beside.map(|beside| in_full(beside, line));
        self.picture.prepare(state, line, below);
    }

    fn open(&mut self, list: &mut List, _state: &State) {
        list.cursor = 0;
        self.wants_first = true;
    }

    fn draw(&self, list: &List, theme: &Theme, area: Rect, buf: &mut Buffer) {
        list.draw(theme, area, buf);
        self.picture.draw(theme, buf);
    }

    fn choose(&mut self, at: usize, state: &State) -> Option<Request> {
        let line = *self.shown.get(at)?;
        if let Some(beside) = &state.model.run.beside {
            let span = beside.pairs.get(line)?.spans[1];
            return Some(Request::Place(Place::new(None, None, span)));
        }
        let variant = state.model.run.measured.variants.get(line)?.position;
        let pass = state.model.run.passes.representative(variant)?;
        Some(Request::Pass(pass))
    }
}

impl Compare {
    /// The lines that the filter leaves: of variants by their names, of two timelines by what is compared.
    fn choose_lines(&mut self, list: &mut List, state: &State) {
        let names: Vec<String> = match state.model.run.beside.as_deref() {
            Some(beside) => beside.pairs.iter().map(|pair| pair.of.clone()).collect(),
            None => {
                let variants = state.model.run.measured.variants.iter();
                variants.map(VariantFigures::label).collect()
            }
        };
        let lines = 0..names.len();
        self.shown = lines.filter(|&i| list.filter.lets([&names[i]])).collect();
        // What one wants of a sweep is all variants at one value.
        let variants = &state.model.run.measured.variants;
        if state.model.run.beside.is_none() {
            self.shown.sort_by_key(|&i| variants[i].variant.point);
        }
        list.filter.count(self.shown.len(), names.len());
        list.say(false, "no line has this", "no variant has ended yet");
    }

    /// Two timelines: what is compared, and what that came to.
    fn fill_pairs(&self, list: &mut List, beside: &OtherRun, area: Rect) {
        let (text, dim) = (Role::Text, Role::Dim);
        let name = name_width(beside.pairs.iter().map(|pair| pair.of.clone()));
        list.heading = vec![
            Cell::left("compared", name, dim),
            Cell::right("A", 9, dim),
            Cell::right("B", 9, dim),
            Cell::rest("B against A", dim),
        ];
        let shown = &self.shown;
        list.fill(area, shown.len(), |i| {
            let pair = &beside.pairs[shown[i]];
            let role = match pair.ratio {
                _ if pair.told().is_none() => dim,
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

    fn fill(&self, list: &mut List, state: &State, area: Rect) {
        let (passes, previous) = (&state.model.run.passes, &state.model.run.previous);
        let now = &state.model.run.measured.variants;
        let mut columns = Variant::columns();
        columns[0].width = name_width(now.iter().map(VariantFigures::label));
        columns
            .retain(|it| !previous.is_empty() || !["run before", "change"].contains(&it.heading));
        let layout = TableLayout::new(columns, area.width);
        list.heading = layout.heading("");
        let shown = &self.shown;
        list.fill(area, shown.len(), |i| {
            let v: &VariantFigures = &now[shown[i]];
            let before = previous.iter().find(|other| other.label() == v.label());
            // The wall time tells where either had no GPU work.
            let times = before.map(|old| match (old.makespan_ns, v.makespan_ns) {
                (0, _) | (_, 0) => (old.wall_ns, v.wall_ns),
                makespans => makespans,
            });
            let row = Variant {
                figures: v,
                repeats: None,
                faster: match speedup(passes, v, now) {
                    Some(speedup) => speedup.text(),
                    None if passes.is_baseline(v.position) => units::factor(1.0),
                    None => "—".to_owned(),
                },
                before: times.filter(|(before, _)| *before > 0),
            };
            let change = match row.change() {
                Some(change) if change < -SAME => Role::Good,
                Some(change) if change > SAME => Role::Bad,
                _ => Role::Dim,
            };
            layout.cells(&row, |column| (column == "change").then_some(change))
        });
    }
}

/// Columns of the longest of these names, as far as there is room for it.
fn name_width(names: impl Iterator<Item = String>) -> u16 {
    let longest = names.map(|name| pen::width(&name)).max();
    longest.unwrap_or(0).clamp(8, 30) as u16
}

/// What a pair came to.
fn said(pair: &ComparedRow) -> String {
    let told = pair.told().map(|told| format!("B is {told}"));
    told.unwrap_or_else(|| NOT_TOLD.to_owned())
}

/// The pair under the cursor, in full.
fn in_full(beside: &OtherRun, line: Option<usize>) -> String {
    let pair = line.and_then(|line| beside.pairs.get(line));
    pair.map_or_else(String::new, |pair| {
        let [a, b] = pair.spans.map(|span| units::duration(span.len()));
        format!("{}: A {a}, B {b}: {}", printable(&pair.of), said(pair))
    })
}

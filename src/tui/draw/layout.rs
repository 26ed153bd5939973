//! Where everything stands: the only file that knows sizes.

use ratatui::layout::{Rect, Size};

use super::pen;
use super::verdict::VerdictLine;
use crate::tui::state::troubles::Weight;
use crate::tui::state::{RowKind, State};
use crate::tui::time_scale::TimeScale;
use activity::{Ns, Span};

/// Below this the screen says that it is too small.
pub const SMALLEST: Size = Size {
    width: 24,
    height: 5,
};

/// Columns left of the plot from which a rate stands with its unit beside the name: " H2D 9.02 GB/s ".
pub const FIGURE: u16 = 15;

/// Lines of the screen from which a rule stands above the details. Lower ones are for rows.
const TALL: u16 = 30;

/// Lines for what could be better below the rows, on screens that are no lower than usual.
const BELOW: usize = 5;

/// Lines that a headline may take, and those for details, by the screen's: of what is longer the end is cut. On low screens what is
/// selected takes lines of what could be better, and what stands over the axis one of the headline's.
fn lines_of_words(state: &State, map: u16, headline: u16) -> (u16, u16) {
    let is_selected = state.focus.selection.row.is_some();
    let told = state.answer().and_then(|it| it.verdicts.first());
    let is_mostly_beside = told.is_some_and(|it| it.is_mostly_beside);
    let (most, details) = match (state.size.height, is_selected) {
        (0..9, _) => (0, 0),
        (9..20, _) => (0, 1),
        (20..TALL, true) => (headline.clamp(2, 3) + u16::from(is_mostly_beside), 3),
        // A sentence that ends before it says what to change is worth less than a row.
        (20..TALL, false) => {
            let least = (3 - map).max(headline.min(3));
            // A short headline leaves a line for the second part of the answer.
            let beside = if headline < 3 { 2 } else { 1 };
            (least + if is_mostly_beside { beside } else { 0 }, 1)
        }
        (TALL..36, _) => (3, 3),
        _ => (4, 4),
    };
    // A picture has no details where nothing is selected.
    let has_details = !state.is_bare || is_selected;
    (most, if has_details { details } else { 0 })
}

/// Lines for the map of the run: of its steps, or of what of it is on screen.
fn map_lines(state: &State) -> u16 {
    let viewport = &state.focus.camera.viewport;
    let has_steps = state.steps().is_some();
    match state.size.height {
        36.. if has_steps => 2,
        20.. => u16::from(has_steps || viewport.window != viewport.bounds),
        _ => 0,
    }
}

/// The parts of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The first line.
    pub header: Rect,
    /// What is wrong; empty when nothing is, or on the lowest screens.
    pub alert: Rect,
    /// What bounds what is on screen, on as many lines as it needs; empty on low screens.
    pub verdict: Rect,
    /// How a program that is watched goes on; empty for others, and on low screens.
    pub pulse: Rect,
    /// The rule under that; empty on low screens.
    pub rule: Rect,
    /// Over that, the steps of the program; without any the whole scope, empty while all of it is on screen.
    pub map: Rect,
    /// Columns of it behind the gutter that its bars have; words have the others.
    pub map_columns: u16,
    /// The time axis, over the plot.
    pub axis: Rect,
    /// The rows, with gutter and side column; on other views all of the middle, the axis with it.
    pub rows: Rect,
    /// Beside the rows, what could be better; empty on narrow screens, and where nothing is known.
    pub panel: Rect,
    /// The rule above the details; empty on low screens.
    pub details_rule: Rect,
    /// Lines for that below the rows: before further depths of what is nested and further lines of a row.
    pub below: usize,
    /// Details of the selection.
    pub details: Rect,
    /// Totals and hints.
    pub footer: Rect,
    /// Columns left of the plot.
    pub gutter: u16,
    /// Columns right of the plot.
    pub side: u16,
}

impl Layout {
    /// The layout of the screen as it is.
    pub fn of(state: &State) -> Self {
        let Size { width, height } = state.size;
        let gutter = gutter(state);
        // A tenth, and a free column at its end.
        let side = if width < 60 { 0 } else { width / 10 + 1 };
        let map = map_lines(state);
        let [headline, lines] = VerdictLine::lines(state, usize::from(width.saturating_sub(2)));
        let (most, details) = lines_of_words(state, map, headline);
        let rule = u16::from(height >= 12);
        let is_low = (20..TALL).contains(&height);
        let is_selected = state.focus.selection.row.is_some();
        // What a short headline leaves goes to what is to be looked for, where that is longer than a line.
        let is_long = || pen::width(&super::details::prose(state)) + 1 > usize::from(width);
        let spare = is_low && !is_selected && lines + map < 3 && is_long();
        let details = details + u16::from(spare && details > 0);
        let has_alert = state.model.troubles.iter().any(|t| t.weight < Weight::Note);
        let is_live = state.model.run.is_running() && !state.model.run.is_being_read();
        let mut y = 0;
        let mut take = |lines: u16| {
            let lines = lines.min(height.saturating_sub(y));
            let rect = Rect::new(0, y, width, lines);
            y += lines;
            rect
        };
        let header = take(1);
        let alert = take(u16::from(has_alert && height >= 8));
        let verdict = take(lines.min(most));
        let pulse = take(u16::from(is_live && height >= 20));
        let top_rule = take(rule);
        let map = take(map);
        let axis = take(1);
        let bottom = u16::from(details > 0 && height >= TALL);
        // A picture has no hints.
        let foot = u16::from(!state.is_bare);
        let rows = take(height.saturating_sub(axis.bottom() + bottom + details + foot));
        let details_rule = take(bottom);
        let details = take(details);
        let footer = take(foot);
        let findings = state.answer().map_or(0, |it| it.findings.len());
        let panel = if findings > 0 && width >= 160 {
            width / 4
        } else {
            0
        };
        let plot = width.saturating_sub(gutter + side + panel);
        let left = width - panel;
        let beside = |it: Rect| Rect::new(0, it.y, left, it.height);
        Layout {
            header,
            alert,
            verdict,
            pulse,
            rule: top_rule,
            map: beside(map),
            map_columns: match state.steps().is_some() {
                true => left.saturating_sub(gutter + (left * 2 / 5).clamp(46, 72)),
                false => plot,
            },
            axis: Rect::new(gutter.min(width), axis.y, plot, axis.height),
            rows: beside(rows),
            panel: Rect::new(left, axis.y, panel, rows.height + 1),
            // A title, and two lines for most findings.
            below: match findings > 0 && panel == 0 && !(is_low && is_selected) {
                true => BELOW
                    .min(1 + 2 * findings)
                    .min(usize::from(rows.height) / 5),
                false => 0,
            },
            details_rule,
            details,
            footer,
            gutter: gutter.min(width),
            side,
        }
    }

    pub fn plot_columns(&self) -> u16 {
        self.axis.width
    }

    /// The middle of the screen for views other than the timeline.
    pub fn middle(&self) -> Rect {
        let y = self.axis.y - self.map.height;
        let width = self.rows.width + self.panel.width;
        Rect::new(0, y, width, self.rows.bottom().saturating_sub(y))
    }

    /// The moment under column `x` of the screen, when it is on the plot.
    pub fn time_at(&self, x: u16, window: Span) -> Option<Ns> {
        let column = x.checked_sub(self.axis.x)?;
        (column < self.axis.width).then(|| {
            let cell = TimeScale::new(window, self.axis.width).cell(column);
            cell.start + cell.len() / 2
        })
    }
}

/// How many lines rows have, by their kind.
#[derive(Clone, Copy, Debug)]
pub struct Heights([u16; 4]);

impl Default for Heights {
    fn default() -> Self {
        Heights([1; 4])
    }
}

impl Heights {
    /// Shares out `spare` lines, so that no row has more than `most`. Rows of a kind get one at once, and third and
    /// fourth lines leave `below`.
    pub fn new(
        kinds: impl Iterator<Item = RowKind> + Clone,
        most: u16,
        mut spare: usize,
        below: usize,
    ) -> Self {
        let mut heights = Heights::default();
        for height in 2..=most {
            let kept = if height == 2 { 0 } else { below };
            for (i, of_turn) in heights.0.iter_mut().enumerate() {
                let count = kinds.clone().filter(|kind| turn(*kind) == Some(i)).count();
                if *of_turn == height - 1 && count + kept <= spare {
                    *of_turn = height;
                    spare -= count;
                }
            }
        }
        heights
    }

    pub fn lines(&self, kind: RowKind) -> u16 {
        turn(kind).map_or(1, |turn| self.0[turn])
    }
}

/// In which order rows get more lines where there is room for it; `None` for those that never do.
fn turn(kind: RowKind) -> Option<usize> {
    match kind {
        RowKind::Gpu(_) => Some(0),
        RowKind::Stream(_) | RowKind::Predicted(_) | RowKind::Bound => Some(1),
        RowKind::Bandwidth(..)
        | RowKind::Overlap(_)
        | RowKind::Memory(_)
        | RowKind::Counter(..) => Some(2),
        RowKind::Thread(_) | RowKind::Range(..) => Some(3),
        RowKind::Title | RowKind::Folded(_) | RowKind::Overhead(_) => None,
    }
}

/// Columns left of the plot.
fn gutter(state: &State) -> u16 {
    match state.size.width {
        0..40 => 6,
        40..80 => 11,
        width => names(state).clamp(11, (width / 6).max(16)),
    }
}

/// Columns that the names of rows would take.
fn names(state: &State) -> u16 {
    let widths = state.rows.list.iter().map(|row| match row.kind {
        RowKind::Title | RowKind::Folded(_) => 0,
        // Where there is little room, figures stand at the end.
        RowKind::Bandwidth(..) | RowKind::Counter(..) if state.size.width < 100 => 0,
        RowKind::Bandwidth(..) | RowKind::Counter(..) => FIGURE,
        _ => pen::width(&row.label) as u16 + 2,
    });
    widths.max().unwrap_or(0)
}

//! Where everything stands: the only file that knows sizes.

use ratatui::layout::{Rect, Size};

use crate::activity::{Ns, Span};
use crate::tui::app::App;
use crate::tui::app::rows::RowKind;
use crate::tui::time_scale::TimeScale;

/// Below this the screen says that it is too small.
pub const SMALLEST: Size = Size {
    width: 24,
    height: 5,
};

/// A row that shows a height gets no more lines than this.
const TALLEST: u16 = 2;

fn is_meter(kind: RowKind) -> bool {
    matches!(
        kind,
        RowKind::Bandwidth(..) | RowKind::Overlap(_) | RowKind::Memory(_)
    )
}

/// The parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The first line.
    pub header: Rect,
    /// The rule under it; empty on low screens.
    pub rule: Rect,
    /// The time axis, over the plot.
    pub axis: Rect,
    /// The rows, with gutter and side column; on other views all of the middle, the axis with it.
    pub rows: Rect,
    /// The rule above the details; empty on low screens.
    pub details_rule: Rect,
    /// Details of the selection.
    pub details: Rect,
    /// Totals and hints.
    pub footer: Rect,
    /// Columns left of the plot.
    pub gutter: u16,
    /// Columns right of the plot.
    pub side: u16,
    /// Lines of a row that shows a height: more than one where there is room to spare.
    pub meter: u16,
    first_row: usize,
}

/// What is at a line of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A row: index into the app's rows.
    Row(usize),
    /// Anything else.
    Other,
}

impl Layout {
    /// The layout of the app's screen.
    #[must_use]
    pub fn new(app: &App) -> Self {
        let Size { width, height } = app.size;
        let gutter = match width {
            0..40 => 6,
            40..100 => 11,
            _ => 13,
        };
        let side = match width {
            0..60 => 0,
            60..110 => 7,
            _ => 24,
        };
        let details = match height {
            0..9 => 0,
            9..20 => 1,
            20..36 => 2,
            _ => 4,
        };
        let rule = u16::from(height >= 12);
        let mut y = 0;
        let mut take = |lines: u16| {
            let lines = lines.min(height.saturating_sub(y));
            let rect = Rect::new(0, y, width, lines);
            y += lines;
            rect
        };
        let header = take(1);
        let top_rule = take(rule);
        let axis_line = take(1);
        let below = rule + details + 1;
        let middle = height.saturating_sub(2 + rule + below);
        let rows = take(middle);
        let details_rule = take(rule);
        let details = take(details);
        let footer = take(1);
        let plot = width.saturating_sub(gutter + side);
        let meters = app.rows.iter().filter(|r| is_meter(r.kind)).count();
        let spare = usize::from(rows.height).saturating_sub(app.rows.len());
        let meter = match spare.checked_div(meters) {
            Some(more) if app.first_row == 0 => 1 + more.min(usize::from(TALLEST) - 1) as u16,
            _ => 1,
        };
        Layout {
            header,
            rule: top_rule,
            axis: Rect::new(gutter.min(width), axis_line.y, plot, axis_line.height),
            rows,
            details_rule,
            details,
            footer,
            gutter: gutter.min(width),
            side,
            meter,
            first_row: app.first_row,
        }
    }

    /// Columns of the plot.
    #[must_use]
    pub fn plot_columns(&self) -> u16 {
        self.axis.width
    }

    /// How many rows are on screen.
    #[must_use]
    pub fn row_count(&self) -> usize {
        usize::from(self.rows.height)
    }

    /// The middle of the screen for views other than the timeline.
    #[must_use]
    pub fn middle(&self) -> Rect {
        Rect::new(
            0,
            self.axis.y,
            self.rows.width,
            self.axis.height + self.rows.height,
        )
    }

    /// What is at line `y`.
    #[must_use]
    pub fn place(&self, app: &App, y: u16) -> Place {
        if y < self.rows.y || y >= self.rows.bottom() {
            return Place::Other;
        }
        let mut bottom = self.rows.y;
        for (i, row) in app.rows.iter().enumerate().skip(self.first_row) {
            bottom += self.lines(row.kind);
            if y < bottom {
                return Place::Row(i);
            }
        }
        Place::Other
    }

    /// Lines of a row.
    #[must_use]
    pub fn lines(&self, kind: RowKind) -> u16 {
        if is_meter(kind) { self.meter } else { 1 }
    }

    /// The moment under column `x` of the screen, when it is on the plot.
    #[must_use]
    pub fn time_at(&self, x: u16, window: Span) -> Option<Ns> {
        let column = x.checked_sub(self.axis.x)?;
        (column < self.axis.width).then(|| {
            let cell = TimeScale::new(window, self.axis.width).cell(column);
            cell.start + cell.len() / 2
        })
    }
}

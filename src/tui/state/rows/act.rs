//! What keys and the mouse do to the choice of rows.

use crate::tui::state::{RowKind, Selection, State};
use activity::text::plural;
use trace::LaneId;

impl State {
    /// Folds the group of the selected row, or unfolds it; of a stack of ranges first the stack.
    pub fn fold_lanes(&mut self) {
        let Some(kind) = self.focus.selection.row else {
            return self.say("select a row of what to fold first");
        };
        let at = self.focus.selection.position(&self.rows.list);
        let stands_for = self.rows.lanes.fold(kind, self.is_stack(kind));
        self.folded(stands_for);
        if stands_for.is_none() {
            // Where it stood stands the title now.
            let first = at.and_then(|at| self.rows.list.get(at + 1));
            self.focus.selection.row = first.map(|row| row.kind);
        }
    }

    pub fn fold_title(&mut self, title: &str) {
        let stands_for = self.rows.lanes.fold_title(title);
        self.folded(stands_for);
    }

    fn folded(&mut self, stands_for: Option<RowKind>) {
        self.focus.selection = Selection {
            row: stands_for,
            cursor: self.focus.selection.cursor,
            ..Selection::default()
        };
        self.renew_rows();
    }

    /// Whether a row is of a stack of ranges with depths, seen or folded.
    fn is_stack(&self, kind: RowKind) -> bool {
        let RowKind::Range(lane, _) = kind else {
            return false;
        };
        let below = RowKind::Range(lane, 1);
        self.rows.lanes.is_flat(kind) || self.rows.list.iter().any(|row| row.kind == below)
    }

    pub fn show_all_lanes(&mut self) {
        self.rows.lanes.show_all();
        self.renew_rows();
    }

    pub fn filter_lanes(&mut self, text: &str) {
        self.rows.lanes.filter(text);
        self.renew_rows();
    }

    /// Shows a row that was kept away, and says so.
    pub fn reveal_row(&mut self, kind: RowKind) {
        if self.rows.lanes.reveal(kind) {
            self.renew_rows();
            self.say("its lane was hidden or folded; it is shown again");
        }
    }

    /// The same for the row of a lane.
    pub fn reveal_lane(&mut self, lane: LaneId) {
        if let Some(kind) = self.rows.lanes.row_of(lane) {
            self.reveal_row(kind);
        }
    }

    /// That rows are kept away, which key shows them, and by what name they are.
    pub fn hidden_words(&self) -> Option<String> {
        let lanes = &self.rows.lanes;
        if lanes.left_out == 0 || self.is_bare {
            return None;
        }
        let count = plural(lanes.left_out as u64, "lane");
        let by = match lanes.text.as_str() {
            "" => String::new(),
            text => format!(" (&{})", activity::text::cut(text, 16)),
        };
        Some(format!("{count} hidden, S shows all{by}"))
    }
}

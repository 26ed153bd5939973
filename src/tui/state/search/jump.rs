//! Going from hit to hit.

use super::Hit;
use crate::tui::state::{Item, Row, RowKind, State, nest};
use activity::Span;

impl State {
    /// Selects the hit after (or before) what is selected; of a name that only lanes have, the lane.
    pub fn step_hit(&mut self, is_forwards: bool) {
        let Some(needle) = self.focus.search.needle() else {
            return;
        };
        if let Some(why) = needle.error() {
            return self.say(why.to_owned());
        }
        let rows = &self.rows.list;
        let found = self.focus.search.step(self, is_forwards);
        self.focus.camera.is_following = false;
        if let Some((hit, went_round)) = found {
            if went_round {
                let end = if is_forwards { "first" } else { "last" };
                self.say(format!("from the {end} one again"));
            }
            self.select_hit(hit);
            return;
        }
        let is_hit = |row: &Row| needle.is_in(&row.label) && row.kind != RowKind::Title;
        let lanes: Vec<RowKind> = rows.iter().filter(|r| is_hit(r)).map(|r| r.kind).collect();
        if lanes.is_empty() {
            return self.say(self.nothing_found());
        }
        let at = lanes
            .iter()
            .position(|kind| self.focus.selection.row == Some(*kind));
        let next = match (at, is_forwards) {
            (Some(at), true) => (at + 1) % lanes.len(),
            (Some(at), false) => (at + lanes.len() - 1) % lanes.len(),
            (None, true) => 0,
            (None, false) => lanes.len() - 1,
        };
        self.focus.selection.row = Some(lanes[next]);
        self.focus.selection.item = Item::None;
    }

    /// Why there is nothing to go to.
    fn nothing_found(&self) -> String {
        let text = &self.focus.search.text;
        match self.focus.search.tally(self) {
            None => "still searching …".to_owned(),
            Some(tally) if tally.whole > 0 => {
                let whole = tally.whole;
                format!("\"{text}\" is not on screen; {whole} in the whole run (a shows all of it)")
            }
            Some(_) => format!("nothing here is called \"{text}\""),
        }
    }

    fn select_hit(&mut self, (lane, record): Hit) {
        let Some(kind) = self.row_of(lane, record) else {
            return;
        };
        self.focus.selection.row = Some(kind);
        self.select_record(lane, record);
        if let Some(span) = self.focus.selection.item.span() {
            self.focus.camera.viewport.focus(span);
        }
    }

    /// The row that shows a record: of a stack of ranges the one of its depth, as far as it has one.
    pub fn row_of(&self, lane: usize, record: usize) -> Option<RowKind> {
        let lanes = &self.model.run.trace.lanes()[lane];
        let kinds = self.rows.kinds();
        let of_lane: Vec<RowKind> = kinds.filter(|it| it.lane() == Some(lane)).collect();
        let depth = || {
            let at = Span::at(lanes.span(record).start);
            let levels = nest::levels(&self.model.run.trace, lane, at, nest::DEEPEST)?;
            let has = |level: &nest::Level| level.iter().any(|(row, _)| *row == record);
            levels.iter().position(has)
        };
        match of_lane.len() {
            0 | 1 => of_lane.first().copied(),
            count => of_lane.get(depth().unwrap_or(0).min(count - 1)).copied(),
        }
    }
}

//! What is selected: a row of the timeline, and on it an operation, a gap, or just a moment.

use super::{Row, RowKind, nest};
use activity::{Ns, Span};
use trace::{Lane, LaneId, Trace};

/// What is selected on a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Item {
    /// Nothing but the row.
    #[default]
    None,
    /// A row of a lane, with its span to find it again when late records moved it.
    Record {
        /// Its number in the lane.
        row: usize,
        span: Span,
    },
    /// Time with nothing running between two operations.
    Gap(Span),
}

impl Item {
    pub fn span(self) -> Option<Span> {
        match self {
            Item::None => None,
            Item::Record { span, .. } | Item::Gap(span) => Some(span),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Which row; `None` before anything was selected.
    pub row: Option<RowKind>,
    /// What on it.
    pub item: Item,
    /// The moment that the next movement starts from.
    pub cursor: Ns,
}

impl Selection {
    /// The selected record, where its lane still holds it.
    pub fn record(&self, trace: &Trace) -> Option<(LaneId, usize)> {
        match (self.row.and_then(RowKind::lane), self.item) {
            (Some(id), Item::Record { row, .. }) if trace.lanes().get(id)?.holds(row) => {
                Some((id, row))
            }
            _ => None,
        }
    }

    /// The same at other times.
    pub(super) fn retime(&mut self, cursor: Ns, item: Option<Span>) {
        self.cursor = cursor;
        if let (Item::Record { span, .. } | Item::Gap(span), Some(moved)) = (&mut self.item, item) {
            *span = moved;
        }
    }

    /// Where the selected row stands among `rows`.
    pub fn position(&self, rows: &[Row]) -> Option<usize> {
        let kind = self.row?;
        rows.iter().position(|r| r.kind == kind)
    }

    /// Selects the row `by` rows further, titles passed over, and on it what is at the cursor.
    pub fn step_row(&mut self, trace: &Trace, rows: &[Row], by: i32) {
        let kinds = rows.iter().map(|row| row.kind);
        let selectable: Vec<RowKind> = kinds.filter(|kind| *kind != RowKind::Title).collect();
        if selectable.is_empty() {
            *self = Selection::default();
            return;
        }
        let last = selectable.len() - 1;
        let current = self
            .row
            .and_then(|kind| selectable.iter().position(|k| *k == kind));
        let next = match current {
            Some(i) => i.saturating_add_signed(by as isize).min(last),
            // The first row that has records is what people look for first.
            None => selectable
                .iter()
                .position(|k| k.lane().is_some())
                .unwrap_or(0),
        };
        self.row = Some(selectable[next]);
        self.select_near(trace, self.cursor);
    }

    /// Selects on the row what is at `time`: the record, else the gap, else the nearest record.
    pub fn select_near(&mut self, trace: &Trace, time: Ns) {
        self.cursor = time;
        self.item = match self.row {
            Some(RowKind::Range(id, depth)) => range_at(trace, id, depth, time),
            None | Some(RowKind::Memory(_) | RowKind::Counter(..)) => Item::None,
            Some(kind) => match (kind.lane(), kind.device()) {
                (Some(id), _) => near(trace, id, time),
                (None, Some(device)) => {
                    let gap = trace.devices()[device].usage.gap_at(time);
                    gap.map_or(Item::None, Item::Gap)
                }
                (None, None) => Item::None,
            },
        };
    }

    /// Selects the record after (or before) what is selected.
    pub fn step_record(&mut self, trace: &Trace, is_forwards: bool) {
        let Some(id) = self.row.and_then(RowKind::lane) else {
            return;
        };
        let lane = &trace.lanes()[id];
        let row = match (self.item, is_forwards) {
            (Item::Record { row, .. }, true) => Some(row + 1),
            (Item::Record { row, .. }, false) => row.checked_sub(1),
            (Item::Gap(gap), true) => lane.next(gap.end),
            (Item::Gap(gap), false) => lane.previous(gap.start),
            (Item::None, true) => lane.next(self.cursor),
            (Item::None, false) => lane.previous(self.cursor),
        };
        if let Some(row) = row.filter(|&row| lane.holds(row)) {
            self.select_record(trace, id, row);
        }
    }

    /// Selects the gap after (or before) what is selected: of the lane, or of the device on rows that
    /// show a device. Returns whether there is one.
    pub fn step_gap(&mut self, trace: &Trace, is_forwards: bool) -> bool {
        let Some(kind) = self.row else {
            return false;
        };
        let from = match self.item {
            Item::Gap(gap) if is_forwards => gap.end,
            item => item.span().map_or(self.cursor, |span| span.start),
        };
        let least = Trace::GAP_MIN;
        let from_there = |from: Ns| match (kind.lane(), kind.device(), is_forwards) {
            (Some(id), _, true) => trace.lanes()[id].next_gap(from, least),
            (Some(id), _, false) => trace.lanes()[id].previous_gap(from, least),
            (None, Some(d), true) => trace.devices()[d].usage.next_gap(from, least),
            (None, Some(d), false) => trace.devices()[d].usage.previous_gap(from, least),
            (None, None, _) => None,
        };
        let beyond = |gap: &Span| from_there(if is_forwards { gap.end } else { gap.start });
        let mut gaps = std::iter::successors(from_there(from), beyond);
        // The profiler's own time is an artefact of looking.
        let Some(gap) = gaps.find(|&gap| !causes::is_profilers(trace, gap)) else {
            return false;
        };
        self.item = Item::Gap(gap);
        self.cursor = gap.start;
        true
    }

    pub fn select_record(&mut self, trace: &Trace, id: LaneId, row: usize) {
        let span = trace.lanes()[id].span(row);
        self.item = Item::Record { row, span };
        self.cursor = span.start;
    }

    /// Finds what is selected again after records were added: its row, and on it its record.
    pub fn settle(&mut self, trace: &Trace, rows: &[Row]) {
        self.find_record(trace);
        if self.row.is_some() && self.position(rows).is_none() {
            *self = Selection::default();
        }
    }

    fn find_record(&mut self, trace: &Trace) {
        let (Some(id), Item::Record { row, span }) = (self.row.and_then(RowKind::lane), self.item)
        else {
            return;
        };
        let Some(lane) = trace.lanes().get(id) else {
            *self = Selection::default();
            return;
        };
        let found = row_now(lane, row, span);
        self.item = found.map_or(Item::None, |row| Item::Record { row, span });
    }
}

/// Which row of a lane has a span that was row `row`: while the timeline grows, rows come between.
pub fn row_now(lane: &Lane, row: usize, span: Span) -> Option<usize> {
    if lane.holds(row) && lane.span(row) == span {
        return Some(row);
    }
    let at = span.start;
    let mut same = lane.starting(Span::new(at, at.saturating_add(1)));
    same.find(|&row| lane.span(row) == span)
}

/// The range of this depth, else what is nearest on the lane.
fn range_at(trace: &Trace, id: LaneId, depth: usize, time: Ns) -> Item {
    match nest::range_at(trace, id, depth, time) {
        Some(row) => record(&trace.lanes()[id], row),
        None => near(trace, id, time),
    }
}

fn record(lane: &Lane, row: usize) -> Item {
    let span = lane.span(row);
    Item::Record { row, span }
}

fn near(trace: &Trace, id: LaneId, time: Ns) -> Item {
    let lane = &trace.lanes()[id];
    if let Some(row) = lane.at(time) {
        return record(lane, row);
    }
    if let Some(gap) = lane.gap_at(time).filter(|g| g.len() >= Trace::GAP_MIN) {
        return Item::Gap(gap);
    }
    let distance = |row: usize| {
        let span = lane.span(row);
        (span.start - time).max(time - span.end).max(0)
    };
    match (lane.previous(time), lane.next(time)) {
        (Some(a), Some(b)) => record(lane, if distance(a) <= distance(b) { a } else { b }),
        (Some(row), None) | (None, Some(row)) => record(lane, row),
        (None, None) => Item::None,
    }
}

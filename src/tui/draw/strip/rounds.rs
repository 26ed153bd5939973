//! Where operations of a CUDA graph are too short for names of their own: which round of the graph's nodes they are.

use std::ops::Range;

use super::{Name, Strip};
use crate::tui::draw::prelude::*;
use crate::tui::state::rounds::NodeRounds;
use crate::tui::time_scale::TimeScale;
use activity::Span;
use figures::nodes::Nth;
use trace::{LaneId, Trace};

/// Operations in view up to which rounds are told: of more, none is wide enough.
const LOOKED_AT: usize = 8_192;

impl Strip {
    /// Says where rounds begin: "│round 3 of 32", or "│round 3" for all of them. One whose operations have names needs none.
    pub(super) fn tell_rounds(
        &mut self,
        trace: &Trace,
        id: LaneId,
        rounds: &NodeRounds,
        scale: TimeScale,
    ) {
        let spans = in_view(trace, id, rounds, scale.window);
        let columns = |it: &(Nth, Span)| scale.columns_of(it.1);
        let is_named = |at: Range<u16>| {
            let mut names = self.names.iter().filter(|it| !it.text.is_empty());
            names.any(|it| at.start < it.x + it.columns && it.x < at.end)
        };
        let forms: [fn(Nth) -> String; 2] = [
            |(number, of)| format!("│round {number} of {of} "),
            |(number, _)| format!("│round {number} "),
        ];
        // The first and the last of many may be cut by the window.
        let whole = match spans.len() {
            0..3 => &spans[..],
            many => &spans[1..many - 1],
        };
        let least = whole.iter().map(|it| columns(it).len()).min().unwrap_or(0);
        let has_room =
            |form: &fn(Nth) -> String| whole.iter().all(|it| pen::width(&form(it.0)) < least);
        let Some(form) = forms.into_iter().find(has_room) else {
            return;
        };
        let told = spans.iter().filter(|it| !is_named(columns(it)));
        let names = told.filter_map(|it| {
            let at = columns(it);
            let name = Name::key(at.start, form(it.0), Role::Text);
            (usize::from(name.columns) < at.len()).then_some(name)
        });
        let names: Vec<Name> = names.collect();
        self.names.extend(names);
        self.names.sort_by_key(|it| it.x);
    }
}

/// The rounds in view, each from its first operation to its last one there.
fn in_view(trace: &Trace, id: LaneId, rounds: &NodeRounds, window: Span) -> Vec<(Nth, Span)> {
    let lane = &trace.lanes()[id];
    let rows = lane.rows(window);
    let mut found: Vec<(Nth, Span)> = Vec::new();
    if rows.len() > LOOKED_AT {
        return found;
    }
    for (row, span) in lane.spans(rows) {
        // Operations between them that nobody knows, as memsets may be, end no round.
        let Some(round) = rounds.get(lane.key().process, &trace.what(id, row)) else {
            continue;
        };
        match found.last_mut() {
            Some(open) if open.0 == round => open.1 = open.1.hull(span),
            _ => found.push((round, span)),
        }
    }
    found
}

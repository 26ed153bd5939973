//! From a host call to the operation that it launched, and back.

use super::{RowKind, State};
use activity::What;
use trace::{LaneId, Trace};

/// A host call and the first operation that it launched, as lanes and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub call: (LaneId, usize),
    pub operation: (LaneId, usize),
}

impl Link {
    /// The link that a record is one end of.
    pub fn of(trace: &Trace, lane: LaneId, row: usize) -> Option<Link> {
        let lanes = trace.lanes();
        if !lanes.get(lane)?.holds(row) {
            return None;
        }
        let process = lanes[lane].key().process;
        let activity = trace.activity(lane, row);
        let here = (lane, row);
        let link = if activity.is_operation() {
            Link {
                call: trace.call(process, activity.correlation)?,
                operation: here,
            }
        } else if let What::Call(_) = activity.what {
            Link {
                call: here,
                operation: trace.operation(process, activity.correlation)?,
            }
        } else {
            return None;
        };
        // Where records were let go one end may be no more.
        let is_there = |(lane, row): (LaneId, usize)| lanes[lane].holds(row);
        (is_there(link.call) && is_there(link.operation)).then_some(link)
    }
}

impl State {
    /// The name of the selected record, as it is looked for.
    pub fn selected_name(&self) -> Option<&str> {
        let trace = &self.model.run.trace;
        let (lane, row) = self.focus.selection.record(trace)?;
        Some(match &trace.activity(lane, row).what {
            What::Kernel(kernel) => trace.names().full(trace.shape(kernel.shape).name),
            What::Copy(copy) => copy.direction.label(),
            What::Memset(_) => "memset",
            What::Call(call) => trace.names().full(call.name),
            What::Range(range) => trace.names().full(range.name),
            _ => return None,
        })
    }

    /// Looks for the selected name.
    pub fn search_selected(&mut self) {
        let name = self.selected_name().map(regex::escape);
        if let Some(name) = name {
            self.focus.search.set(&format!("re:^{name}$"));
        }
    }

    /// The link that what is selected is one end of.
    pub fn link(&self) -> Option<Link> {
        let trace = &self.model.run.trace;
        let (lane, row) = self.focus.selection.record(trace)?;
        Link::of(trace, lane, row)
    }

    /// Selects the other end of the link, and brings it on screen with this one where both fit.
    pub fn go_to_other_end(&mut self) {
        let lane = self.focus.selection.row.and_then(RowKind::lane);
        let (Some(link), Some(span)) = (self.link(), self.focus.selection.item.span()) else {
            return;
        };
        let (other, other_row) = if lane == Some(link.call.0) {
            link.operation
        } else {
            link.call
        };
        if self.row_of(other, other_row).is_none() {
            self.reveal_lane(other);
        }
        let trace = &self.model.run.trace;
        let Some(kind) = self.row_of(other, other_row) else {
            return self.say("the other end is on a lane that is not shown");
        };
        let there = trace.lanes()[other].span(other_row);
        self.focus.selection.row = Some(kind);
        self.select_record(other, other_row);
        self.focus.camera.is_following = false;
        let viewport = &mut self.focus.camera.viewport;
        let both = span.hull(there);
        let fits = both.len() + both.len() / 5 <= viewport.window.len();
        viewport.reveal(if fits { both } else { there });
    }
}

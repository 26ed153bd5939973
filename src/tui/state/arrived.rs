//! Up to where the records of a program that runs have come.

use crate::activity::{Ns, Span};
use crate::trace::{LaneKind, Trace};

/// From the first record to the moment up to which the records of operations and those of calls have both
/// come: they arrive in buffers of their own. `None` before the first operation.
pub(super) fn arrived(trace: &Trace) -> Option<Span> {
    let mut last = vec![(None::<Ns>, None::<Ns>); trace.processes().len()];
    for lane in trace.lanes() {
        let Some(row) = lane.len().checked_sub(1) else {
            continue;
        };
        let (operation, call) = last.get_mut(lane.key().process)?;
        let of = match lane.key().kind {
            LaneKind::Stream { .. } => operation,
            LaneKind::Thread { .. } => call,
            _ => continue,
        };
        *of = (*of).max(Some(lane.span(row).start));
    }
    let until = last
        .iter()
        .filter_map(|&(operation, call)| {
            let operation = operation?;
            Some(call.map_or(operation, |call| call.min(operation)))
        })
        .max()?;
    let start = trace.extent()?.start;
    Some(Span::new(start, until.max(start).saturating_add(1)))
}

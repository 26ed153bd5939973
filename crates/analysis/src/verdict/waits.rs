//! How much of idle time is due to waits of the host.

use rustc_hash::FxHashMap;

use super::super::causes::{Causes, Culprit, Piece};
use super::super::graph::{CallId, CallKind};
use activity::Ns;

/// What each wait can still be blamed for: without it the host would be ahead by as much as it lasted, and
/// no more, whatever came after it.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    left: FxHashMap<CallId, Ns>,
}

impl Waits {
    /// The wait that a piece of a gap is due to and how much of the piece that is. Pieces in order of time.
    pub(crate) fn take(&mut self, causes: &Causes<'_>, piece: &Piece) -> Option<(CallId, Ns)> {
        let calls = &causes.graph().calls;
        let wait = match piece.culprit {
            Culprit::Call(call) if piece.cause.is_wait() => call,
            // A free that waits is an allocation to be saved, not a wait.
            _ => piece.root.filter(|&root| {
                let kind = calls.kind[root as usize];
                kind.is_wait() || kind == CallKind::Copy
            })?,
        };
        let left = self
            .left
            .entry(wait)
            .or_insert_with(|| calls.span(wait).len());
        let part = piece.span.len().min(*left);
        *left -= part;
        (part > 0).then_some((wait, part))
    }

    /// How many waits were blamed.
    pub(crate) fn count(&self) -> u64 {
        self.left.len() as u64
    }
}

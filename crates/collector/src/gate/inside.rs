//! The calls that are inside, counted anew each time the gate is used.

use super::sync::{AtomicU64, Ordering};

const TURN: u64 = 1 << 32;

/// How many are inside, in the lower half. The upper half counts how often the gate was used: a call that is still inside
/// from an earlier time does not count.
#[derive(Debug)]
pub(super) struct Inside(pub(super) AtomicU64);

impl Inside {
    /// Counts a call. What comes back is for its end.
    pub(super) fn enter(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Counts a call no more, unless the gate has been used since it came. Both in one step: between two another turn may begin, of
    /// which it was never counted.
    pub(super) fn leave(&self, entered: u64) {
        let counts = |now: u64| now / TURN == entered / TURN && !now.is_multiple_of(TURN);
        self.update(|now| counts(now).then(|| now - 1));
    }

    /// Begins to count from none.
    pub(super) fn begin_turn(&self) {
        self.update(|now| Some((now / TURN + 1) * TURN));
    }

    fn update(&self, change: impl Fn(u64) -> Option<u64>) {
        // Refused by `change`, or done.
        let _ = (self.0).fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::SeqCst).is_multiple_of(TURN)
    }
}

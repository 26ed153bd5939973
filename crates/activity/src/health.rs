//! Counters of one process.

use crate::Ns;

/// What was received and what was not. Every count is a total since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Records that arrived, the rejected ones included.
    pub received: u64,
    /// Records that the collecting library said it dropped.
    pub dropped: u64,
    /// Records that could not be written or read (disk full, damaged, over a size limit).
    pub lost: u64,
    /// Rejected: start or end time zero.
    pub no_timestamp: u64,
    /// Rejected: ended before it started.
    pub end_before_start: u64,
    /// Rejected: a time outside the session (a broken clock).
    pub bad_clock: u64,
    /// Records of a kind this program does not know, skipped whole.
    pub unknown: u64,
    /// The start of the oldest operation known to be unfinished, when the source can tell: records of
    /// its buffer are withheld until it ends.
    pub oldest_open: Option<Ns>,
}

impl Health {
    /// Everything that was collected and is not on the timeline.
    pub fn losses(&self) -> u64 {
        self.dropped + self.lost + self.rejected() + self.unknown
    }

    /// Records that arrived and were not believable.
    pub fn rejected(&self) -> u64 {
        self.no_timestamp + self.end_before_start + self.bad_clock
    }

    /// Adds another process's counters.
    pub fn add(&mut self, other: &Health) {
        self.received += other.received;
        self.dropped += other.dropped;
        self.lost += other.lost;
        self.no_timestamp += other.no_timestamp;
        self.end_before_start += other.end_before_start;
        self.bad_clock += other.bad_clock;
        self.unknown += other.unknown;
        self.oldest_open = match (self.oldest_open, other.oldest_open) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

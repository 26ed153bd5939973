//! When wait records are taken, if for short whiles only.
//!
//! They make launches in a row 6 to 14 % slower (measured on an H200), so they are on for no more than a twentieth of the time
//! since the GPU was first used: 0.7 % at the worst. The first whiles are short and come early, so that short
//! programs have some too; then it is half a second in every ten.

use std::time::Duration;

/// A twentieth.
const PART: u32 = 20;
/// The shortest while.
const SHORTEST: Duration = Duration::from_millis(25);
/// The longest.
const LONGEST: Duration = Duration::from_millis(500);

/// Whether a while is under way. Times are since the GPU was first used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Duty {
    /// When the present while began.
    since: Option<Duration>,
    /// How long the earlier ones lasted together.
    spent: Duration,
}

impl Duty {
    /// Whether wait records are to be on at `now`.
    pub(crate) fn is_on(&mut self, now: Duration) -> bool {
        match self.since {
            None if now / PART >= self.spent + length(now) => self.since = Some(now),
            Some(since) if now.saturating_sub(since) >= length(since) => {
                self.spent += now.saturating_sub(since);
                self.since = None;
            }
            _ => {}
        }
        self.since.is_some()
    }

    /// How long until the present while is to end; `None` between two.
    pub(crate) fn left(&self, now: Duration) -> Option<Duration> {
        let since = self.since?;
        Some((since + length(since)).saturating_sub(now))
    }
}

/// How long a while lasts that begins at `time`.
fn length(time: Duration) -> Duration {
    (time / (2 * PART)).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every `step` ms for `end` ms. Returns the whiles.
    fn whiles(step: u64, end: u64) -> Vec<(u64, u64)> {
        let mut duty = Duty::default();
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut on = None;
        for now in (0..end).step_by(step as usize) {
            match (duty.is_on(Duration::from_millis(now)), on) {
                (true, None) => on = Some(now),
                (false, Some(since)) => {
                    found.push((since, now));
                    on = None;
                }
                _ => {}
            }
        }
        found
    }

    #[test]
    fn no_more_than_a_twentieth_at_any_time() {
        let found = whiles(1, 3_600_000);
        let mut spent = 0;
        for (since, until) in &found {
            spent += until - since;
            assert!(spent * 20 <= until + 20 * 25, "{spent} ms of {until} ms");
        }
        // 25 ms after half a second, and again after one.
        assert_eq!(found[..2], [(500, 525), (1_000, 1_025)]);
        // In the end half a second in ten.
        assert!(found.iter().rev().take(100).all(|w| w.1 - w.0 == 500));
        let last = found.len() - 1;
        assert_eq!(found[last].0 - found[last - 1].0, 10_000);
    }

    #[test]
    fn looking_rarely_makes_whiles_longer_and_rarer() {
        let spent: u64 = whiles(700, 600_000).iter().map(|w| w.1 - w.0).sum();
        assert!(spent <= 600_000 / 20 + 700, "{spent}");
    }
}

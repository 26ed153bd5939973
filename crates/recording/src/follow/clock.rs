//! Whether the system's clock, which gives a recording its times, was set while it was recorded.

use crate::file::Clocks;

use activity::units::duration;

/// Clocks are read one after the other, and whoever reads them may be kept from it in between: what differs by less is none. (Slewing,
/// as time servers do, is the same on both clocks.)
const LEAST: i64 = 20_000_000;

/// By how much the clock has been set forward, in ns, between two moments; 0 when it was not.
fn set_by(start: &Clocks, now: &Clocks) -> i64 {
    let passed = now.monotonic.saturating_sub(start.monotonic);
    let shown = now.realtime.saturating_sub(start.realtime);
    Some(shown.saturating_sub(passed))
        .filter(|by| by.unsigned_abs() >= LEAST.unsigned_abs())
        .unwrap_or(0)
}

/// What has been said of it.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    told: i64,
}

impl ClockWatch {
    /// A sentence, when the clock was set since the last one.
    pub(super) fn compare(&mut self, start: &Clocks, now: &Clocks) -> Option<String> {
        if [start, now].contains(&&Clocks::default()) {
            return None;
        }
        let by = set_by(start, now);
        if by.abs_diff(self.told) < LEAST.unsigned_abs() {
            return None;
        }
        let more = by.saturating_sub(self.told);
        self.told = by;
        let direction = if more > 0 { "forward" } else { "back" };
        Some(format!(
            "the system's clock was set {direction} by {} while it was recorded (or the machine slept): times from before and \
             after do not fit together",
            duration(more.saturating_abs())
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_once_in_each_direction_and_slewing_is_none() {
        let second = 1_000_000_000;
        let at = |realtime: i64, monotonic: i64| Clocks {
            realtime: 1_700_000_000 * second + realtime,
            monotonic,
            raw: monotonic,
        };
        let start = at(0, 0);
        let mut watch = ClockWatch::default();
        assert_eq!(watch.compare(&start, &at(60 * second, 60 * second)), None);
        assert_eq!(
            watch.compare(&start, &at(60 * second + 5_000_000, 60 * second)),
            None
        );
        let said = watch
            .compare(&start, &at(63 * second, 61 * second))
            .expect("two seconds");
        assert!(said.contains("forward by 2.00 s"), "{said}");
        assert_eq!(watch.compare(&start, &at(64 * second, 62 * second)), None);
        let said = watch
            .compare(&start, &at(61 * second, 62 * second))
            .expect("three back");
        assert!(said.contains("back by 3.00 s"), "{said}");
        // Whoever wrote it did not say when.
        assert_eq!(watch.compare(&Clocks::default(), &start), None);
    }
}

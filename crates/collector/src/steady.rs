//! A clock that goes on where somebody sets the machine's. CUPTI's times are of `CLOCK_REALTIME`.

use recording::file::{Clocks, boot_time};

/// A clock that moves by more was set. Less is how time servers correct it.
const SET: i64 = 1_000_000_000;
/// A time may lie this far after now: GPUs' clocks are not exactly the machine's.
pub(crate) const AFTER: i64 = 1_000_000_000;
/// Steps that are kept. Records of one come within seconds of it.
const STEPS_MAX: usize = 16;

/// Time as `CLOCK_REALTIME` would show it, had nobody set it since the start. All in nanoseconds.
#[derive(Debug)]
pub(crate) struct SteadyClock {
    realtime: i64,
    boot: i64,
    /// By how much it was set altogether.
    by: i64,
    /// Steady times that the clock was set after, each with by how much it was set altogether then.
    steps: Vec<(i64, i64)>,
}

impl SteadyClock {
    /// `boot` is of `CLOCK_BOOTTIME`, which nobody can set and which goes on while the machine sleeps.
    pub(crate) fn new(realtime: i64, boot: i64) -> SteadyClock {
        SteadyClock {
            realtime,
            boot,
            by: 0,
            steps: Vec::new(),
        }
    }

    /// The steady time at the last look.
    pub(crate) fn now(&self) -> i64 {
        self.realtime - self.by
    }

    /// Looks at the clocks; returns what to say where the one was set since the last look.
    pub(crate) fn check(&mut self, realtime: i64, boot: i64) -> Option<String> {
        let set = (realtime - self.realtime) - (boot - self.boot);
        let before = (self.now(), self.realtime);
        (self.realtime, self.boot) = (realtime, boot);
        if set.abs() <= SET {
            return None;
        }
        self.by += set;
        if self.steps.len() == STEPS_MAX {
            self.steps.remove(0);
        }
        self.steps.push((before.0, self.by));
        let second = (before.1 / 1_000_000_000).rem_euclid(86_400);
        Some(format!(
            "the clock was set by {:+} s at {:02}:{:02}:{:02} UTC: records go on as if it had not been, sensors and Python lines do not",
            (set + set.signum() * SET / 2) / 1_000_000_000,
            second / 3600,
            second / 60 % 60,
            second % 60
        ))
    }

    /// The steady time of a record's time. One that fits after a step is of the clock that was set.
    pub(crate) fn steady(&self, time: i64) -> i64 {
        let fits = |&(from, by): &(i64, i64)| {
            let steady = time.checked_sub(by)?;
            (from..=self.now() + AFTER)
                .contains(&steady)
                .then_some(steady)
        };
        self.steps.iter().rev().find_map(fits).unwrap_or(time)
    }
}

/// `CLOCK_REALTIME` and `CLOCK_BOOTTIME` now, at one moment: a program may be stopped between the two.
pub(crate) fn read() -> (i64, i64) {
    loop {
        let (before, now) = (boot_time(), Clocks::now().realtime);
        let after = boot_time();
        if after - before < SET / 10 {
            return (now, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    /// 12:01:06 of some day.
    const NOON: i64 = (20_000 * 86_400 + 12 * 3600 + 66) * S;

    #[test]
    fn records_after_a_step_of_the_clock_stand_where_they_were() {
        for by in [3600, 2, -2, -3600, 86_400 * 365] {
            let mut clock = SteadyClock::new(NOON, 500 * S);
            assert_eq!(clock.check(NOON + S, 501 * S), None);
            // It is set between two looks; a kernel runs before it, one across it, one after it.
            let said = clock.check(NOON + 2 * S + by * S, 502 * S);
            let expected = format!("the clock was set by {by:+} s at 12:01:07 UTC");
            assert!(said.is_some_and(|it| it.starts_with(&expected)), "{by}");
            assert_eq!(clock.now(), NOON + 2 * S);
            for ms in [1100, 1400] {
                let real = NOON + ms * S / 1000;
                assert_eq!(clock.steady(real), real, "{by}: before");
                assert_eq!(clock.steady(real + by * S), real, "{by}: after");
            }
            // Set back, and all is as before.
            assert!(clock.check(NOON + 3 * S, 503 * S).is_some());
            assert_eq!(clock.now(), NOON + 3 * S);
            assert_eq!(clock.steady(NOON + 5 * S / 2), NOON + 5 * S / 2);
        }
    }

    #[test]
    fn sleep_and_a_time_server_are_no_step() {
        let mut clock = SteadyClock::new(NOON, 0);
        // An hour of sleep: both go on. Then half a second in each second.
        assert_eq!(clock.check(NOON + 3600 * S, 3600 * S), None);
        for i in 1..100 {
            let at = 3600 * S + i * S;
            assert_eq!(clock.check(NOON + at + i * S / 2, at), None);
        }
        assert_eq!(clock.steady(NOON), NOON);
    }

    #[test]
    fn what_is_set_again_and_again_takes_no_room() {
        let mut clock = SteadyClock::new(NOON, 0);
        for i in 1..1000 {
            assert!(clock.check(NOON + (i % 2) * 9 * S, 0).is_some());
        }
        assert!(clock.steps.len() <= STEPS_MAX);
        assert_eq!(clock.steady(i64::MIN), i64::MIN);
    }
}

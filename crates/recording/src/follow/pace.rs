//! How often each of many files is looked at.
//!
//! A file system that other machines write to sends no word of change, so it polls. That is 1,000 times a second in
//! all, 200 where each is a question to a server. A file that was found as it was is looked at more seldom.

use std::time::{Duration, Instant};

/// The shortest time between two looks at a file, and what each further file adds to it.
const LOCAL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(1));
const SHARED: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(5));
/// A file at rest is looked at no more seldom than this, or than all others are.
const LONGEST: Duration = Duration::from_secs(1);

/// The time between two looks at each of `count` files that grow.
pub fn period(count: usize, is_shared: bool) -> Duration {
    let (least, each) = if is_shared { SHARED } else { LOCAL };
    least.max(each * u32::try_from(count).unwrap_or(u32::MAX))
}

/// When a file is looked at next.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// `None` for at once.
    at: Option<Instant>,
    wait: Duration,
}

impl Due {
    /// At once.
    pub fn now() -> Due {
        Due {
            at: None,
            wait: Duration::ZERO,
        }
    }

    /// Whether it is time.
    pub fn is(&self, now: Instant) -> bool {
        self.at.is_none_or(|at| now >= at)
    }

    /// It was looked at, and had or had not grown.
    pub fn polled(&mut self, now: Instant, has_grown: bool, period: Duration) {
        self.wait = match has_grown {
            true => period,
            false => (self.wait * 2).clamp(period, LONGEST.max(period)),
        };
        self.at = Some(now + self.wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_bounded_however_many_files_there_are() {
        let rate = |count: usize, is_shared| count as f64 / period(count, is_shared).as_secs_f64();
        for count in [1, 8, 64, 512, 4_096] {
            assert!(rate(count, false) <= 1_000.1 && rate(count, true) <= 200.1);
        }
        assert_eq!(period(1, false), Duration::from_millis(10));
        assert_eq!(period(512, false), Duration::from_millis(512));
    }

    #[test]
    fn a_file_at_rest_is_looked_at_more_seldom_until_it_grows() {
        let (now, mut due) = (Instant::now(), Due::now());
        assert!(due.is(now));
        let ms = Duration::from_millis;
        let mut waits = Vec::new();
        for has_grown in [true, false, false, false, false, false, false, false, true] {
            due.polled(now, has_grown, ms(10));
            waits.push(due.wait.as_millis());
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1_000, 10]);
        assert!(!due.is(now) && due.is(now + ms(10)));
    }
}

//! When is sampled: slowly all the time, which the rows of the timeline need, and fast for some moments, which short kernels need.

use std::time::Duration;

/// Samples a second all the time, where nobody asks for more.
const SLOW_HZ: u32 = 500;
/// And for a moment.
const FAST_HZ: u32 = 20_000;
/// How long that is.
const FAST: Duration = Duration::from_millis(10);
/// One such moment lies in each of these.
const TURN: Duration = Duration::from_secs(1);
/// The part of one core that sampling may take.
const BUDGET: f64 = 0.1;
/// Samples a second below which it is not worth while.
const LEAST_HZ: u32 = 50;

/// A stretch of samples at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) hz: u32,
    /// How long; `None`: until the end.
    pub(super) length: Option<Duration>,
}

/// Which stretch comes next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// What was asked for.
    fixed: Option<u32>,
    slow_hz: u32,
    has_fast: bool,
    is_fast_next: bool,
    turns: u64,
    /// Of a turn, what is left after its fast moment.
    rest: Duration,
}

impl Rhythm {
    pub(super) fn new(fixed: Option<u32>) -> Rhythm {
        Rhythm {
            fixed,
            slow_hz: SLOW_HZ,
            has_fast: true,
            is_fast_next: false,
            turns: 0,
            rest: Duration::ZERO,
        }
    }

    /// What to sample now.
    pub(super) fn next(&mut self) -> Stretch {
        let hz = self.fixed.unwrap_or(self.slow_hz);
        if self.fixed.is_some() || !self.has_fast {
            return Stretch { hz, length: None };
        }
        if std::mem::replace(&mut self.is_fast_next, false) {
            return Stretch {
                hz: FAST_HZ,
                length: Some(FAST),
            };
        }
        self.is_fast_next = true;
        // Where in its turn the fast moment lies changes by the golden ratio, which beats with no period of a program.
        self.turns += 1;
        let at = (self.turns as f64 * 0.618_033_988_75).fract();
        let before = (TURN - FAST).mul_f64(at);
        let length = std::mem::replace(&mut self.rest, TURN - FAST - before) + before;
        Stretch {
            hz,
            length: Some(length),
        }
    }

    /// Without fast moments from now on. Whether there were some.
    pub(super) fn refuse_fast(&mut self) -> bool {
        self.is_fast_next = false;
        self.fixed.is_none() && std::mem::replace(&mut self.has_fast, false)
    }

    /// Takes less, where this share of a core was taken. Whether the stretch that is under way must end for it.
    pub(super) fn spend(&mut self, share: f64) -> bool {
        if self.fixed.is_some() || share <= BUDGET {
            return false;
        }
        // Kernels need the fast moments more than rows need the last half of the others.
        let hz = self.slow_hz;
        if hz < SLOW_HZ && self.refuse_fast() {
            return true;
        }
        self.slow_hz = (hz / 2).max(LEAST_HZ);
        self.slow_hz != hz
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let hz = self.fixed.unwrap_or(self.slow_hz);
        if self.fixed.is_none() && self.has_fast {
            let ms = FAST.as_millis();
            return format!("{hz} times a second, and {ms} ms of each second {FAST_HZ} times");
        }
        format!("{hz} times a second")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_one_fast_moment_at_changing_places() {
        let mut rhythm = Rhythm::new(None);
        let mut at = Duration::ZERO;
        let mut moments = Vec::new();
        while at < Duration::from_secs(100) {
            let stretch = rhythm.next();
            let length = stretch.length.expect("one with an end");
            if stretch.hz == FAST_HZ {
                moments.push(at.as_secs_f64());
            }
            at += length;
        }
        // One in each second.
        for (second, moment) in moments.iter().take(99).enumerate() {
            assert_eq!(*moment as usize, second, "{moment}");
        }
        // And in each hundredth of it not more than two of a hundred.
        let mut places = [0; 100];
        for moment in moments {
            places[(moment.fract() * 100.0) as usize] += 1;
        }
        assert!(places.iter().all(|it| *it <= 3), "{places:?}");
    }

    #[test]
    fn what_costs_too_much_becomes_less_and_what_was_asked_for_does_not() {
        let mut rhythm = Rhythm::new(None);
        assert!(!rhythm.spend(0.08));
        assert!(rhythm.spend(0.12));
        assert_eq!(
            rhythm.words(),
            "250 times a second, and 10 ms of each second 20000 times"
        );
        assert!(rhythm.spend(0.12));
        assert_eq!(rhythm.words(), "250 times a second");
        assert!(rhythm.spend(0.12));
        let slow = Stretch {
            hz: 125,
            length: None,
        };
        assert_eq!(rhythm.next(), slow);
        let mut rhythm = Rhythm::new(Some(20_000));
        assert!(!rhythm.spend(0.9));
        assert_eq!(rhythm.next().hz, 20_000);
    }
}

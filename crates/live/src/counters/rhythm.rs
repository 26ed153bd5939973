//! When is sampled: slowly all the time, which the rows of the timeline need, and fast for some moments, which short kernels need.

use std::time::Duration;

/// Samples a second all the time, where nobody asks for more.
const SLOW_HZ: u32 = 500;
/// And for a moment.
const FAST_HZ: u32 = 20_000;
/// How long that is.
const FAST: Duration = Duration::from_millis(10);
/// The part of one core that sampling may take: a tenth, less what no sample and no change of the rate takes.
const BUDGET: f64 = 0.09;
/// Seconds of which one has a fast moment, best first.
const TURNS: [u32; 5] = [1, 2, 4, 8, 16];
/// Samples a second below which fast moments become rarer instead.
const FEW_HZ: f64 = 250.0;
/// Samples a second below which it is not worth while.
const LEAST_HZ: u32 = 50;
/// Samples of a decode: many, as each clears room for all, and few enough for rows that follow.
const AT_ONCE: u32 = 120;
/// Bytes of the hardware's buffer that a sample takes, and for how many seconds it must suffice.
const ROOM: usize = 8 << 10;
const RESERVE: usize = 4;

/// A stretch of samples at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) hz: u32,
    /// How long; `None`: until the end.
    pub(super) length: Option<Duration>,
}

impl Stretch {
    /// Time between two decodes.
    pub(super) fn period(self) -> Duration {
        let many = Duration::from_secs(1) * AT_ONCE / self.hz.max(1);
        many.clamp(Duration::from_millis(20), Duration::from_millis(480))
    }
}

/// What sampling takes of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Costs {
    /// Seconds for a sample.
    pub(super) sample: f64,
    /// Seconds for a change of the rate.
    pub(super) change: f64,
}

/// Which stretch comes next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// What was asked for, or what is chosen.
    slow_hz: u32,
    /// Seconds of which one has a fast moment; `None` without any.
    turn: Option<u32>,
    is_fast_next: bool,
    turns: u64,
    /// Of a turn, what is left after its fast moment.
    rest: Duration,
}

impl Rhythm {
    pub(super) fn new(fixed: Option<u32>) -> Rhythm {
        Rhythm {
            slow_hz: fixed.unwrap_or(SLOW_HZ),
            turn: fixed.is_none().then_some(TURNS[0]),
            is_fast_next: false,
            turns: 0,
            rest: Duration::ZERO,
        }
    }

    /// What to sample now.
    pub(super) fn next(&mut self) -> Stretch {
        let hz = self.slow_hz;
        let Some(turn) = self.turn else {
            return Stretch { hz, length: None };
        };
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
        let slow = Duration::from_secs(turn.into()) - FAST;
        let before = slow.mul_f64(at);
        let length = std::mem::replace(&mut self.rest, slow - before) + before;
        Stretch {
            hz,
            length: Some(length),
        }
    }

    /// Samples that are decoded at once, with some to spare.
    pub(super) fn at_once(&self) -> u32 {
        let (hz, length) = (self.slow_hz, None);
        let samples = Stretch { hz, length }.period().as_secs_f64() * f64::from(hz);
        (samples * 1.07) as u32 + 2
    }

    /// Bytes of room in the hardware. What does not fit is lost.
    pub(super) fn buffer(&self) -> usize {
        (self.slow_hz as usize * RESERVE * ROOM).clamp(16 << 20, 256 << 20)
    }

    /// Without fast moments from now on. Whether there were some.
    pub(super) fn refuse_fast(&mut self) -> bool {
        self.is_fast_next = false;
        self.turn.take().is_some()
    }

    /// Takes as much as the budget has, at these costs. Kernels need the fast moments more than rows need the last half of the others.
    pub(super) fn keep_to(&mut self, costs: Costs) {
        if self.turn.is_none() {
            return;
        }
        let fast = f64::from(FAST_HZ) * FAST.as_secs_f64() * costs.sample + 2.0 * costs.change;
        let slow = |turn: u32| (BUDGET - fast / f64::from(turn)) / costs.sample.max(1e-9);
        let last = TURNS[TURNS.len() - 1];
        let turn = TURNS.into_iter().find(|turn| slow(*turn) >= FEW_HZ);
        let turn = turn.unwrap_or(last);
        // In tens, as nobody needs more.
        self.slow_hz = ((slow(turn) / 10.0) as u32 * 10).clamp(LEAST_HZ, SLOW_HZ);
        self.turn = Some(turn);
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let (hz, ms) = (self.slow_hz, FAST.as_millis());
        let every = match self.turn {
            None => return format!("{hz} times a second"),
            Some(1) => "each second".to_owned(),
            Some(turn) => format!("every {turn} s"),
        };
        format!("{hz} times a second, and {ms} ms of {every} {FAST_HZ} times")
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

    /// Each by hand: 0.09 of a core, 200 samples and two changes a fast moment.
    #[test]
    fn a_tenth_of_a_core_is_kept_to_and_comes_back() {
        let mut rhythm = Rhythm::new(None);
        for (sample, change, words) in [
            // 700 samples and two changes: 7 % and 1 %.
            (
                100e-6,
                5e-3,
                "500 times a second, and 10 ms of each second 20000 times",
            ),
            // 4 % and 1.6 % for fast moments leave 3.4 % for 170, of every other second 6.2 % for 310.
            (
                200e-6,
                8e-3,
                "310 times a second, and 10 ms of every 2 s 20000 times",
            ),
            // 12 % for changes: not each second; of every other 6 and 1 % leave 2 % for 200, of every fourth 5.5 % for 550.
            (
                100e-6,
                60e-3,
                "500 times a second, and 10 ms of every 4 s 20000 times",
            ),
            // Of sixteen, 1.25 % for fast moments leave 7.75 % for 77 and no more.
            (
                1e-3,
                0.0,
                "70 times a second, and 10 ms of every 16 s 20000 times",
            ),
            (
                0.1,
                0.0,
                "50 times a second, and 10 ms of every 16 s 20000 times",
            ),
            (
                100e-6,
                5e-3,
                "500 times a second, and 10 ms of each second 20000 times",
            ),
        ] {
            rhythm.keep_to(Costs { sample, change });
            assert_eq!(rhythm.words(), words);
        }
        assert!(rhythm.refuse_fast() && !rhythm.refuse_fast());
        assert_eq!(rhythm.next().length, None);
    }

    #[test]
    fn what_was_asked_for_is_kept_to_with_room_for_it() {
        let mut rhythm = Rhythm::new(Some(20_000));
        rhythm.keep_to(Costs {
            sample: 1.0,
            change: 1.0,
        });
        assert!(!rhythm.refuse_fast());
        let stretch = rhythm.next();
        assert_eq!((stretch.hz, stretch.length), (20_000, None));
        // 400 samples in 20 ms; 7 KB each are 140 MB a second.
        assert_eq!(stretch.period(), Duration::from_millis(20));
        assert_eq!((rhythm.at_once(), rhythm.buffer() >> 20), (430, 256));
        let usual = Rhythm::new(None);
        assert_eq!((usual.at_once(), usual.buffer() >> 20), (130, 16));
    }
}

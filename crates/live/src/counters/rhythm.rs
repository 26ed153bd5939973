//! When is sampled: in bursts, as short kernels need many samples a second, or all the time at a rate that was asked for.
//!
//! On an H100 (CUPTI 13.0, driver 580) decoding took at least a third of a core while sampling ran, however few samples came.
//! A rate once set stayed until counting was enabled anew. So sampling is off between bursts, and they have one rate.

use std::time::Duration;

/// Samples a second in a burst.
const FAST_HZ: u32 = 20_000;
/// How long a burst is.
const BURST: Duration = Duration::from_millis(10);
/// The part of one core that sampling may take: a tenth, less what is in no burst.
const BUDGET: f64 = 0.09;
/// Milliseconds of which each has a burst, best first.
const TURNS: [u64; 7] = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000];
/// Time between two decodes while samples come all the time, at least and at most. After a quarter of a second 16 MiB of room are full.
const PERIOD: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(50));
/// Samples that are decoded at once, at least: more than a burst has.
const AT_ONCE: u32 = 256;
/// MiB of room in the hardware: at first for bursts, at first for samples all the time, at most. What does not fit is lost.
const ROOM: (usize, usize, usize) = (64, 256, 1024);

/// When to sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// Samples a second.
    pub(super) hz: u32,
    /// Of which time each part has a burst; `None` where samples come all the time.
    turn: Option<Duration>,
    turns: u64,
    /// Of a turn, what is left after its burst.
    rest: Duration,
    /// What a burst takes of a core, in seconds.
    cost: Option<f64>,
    /// MiB of room in the hardware.
    room: usize,
}

impl Rhythm {
    pub(super) fn new(fixed: Option<u32>) -> Rhythm {
        Rhythm {
            hz: fixed.unwrap_or(FAST_HZ),
            turn: fixed.is_none().then_some(Duration::from_millis(TURNS[0])),
            turns: 0,
            rest: Duration::ZERO,
            cost: None,
            room: if fixed.is_none() { ROOM.0 } else { ROOM.1 },
        }
    }

    /// How long a burst is; `None`: until the end.
    pub(super) fn length(&self) -> Option<Duration> {
        self.turn.map(|_| BURST)
    }

    /// The time until the next burst.
    pub(super) fn pause(&mut self) -> Duration {
        let Some(turn) = self.turn else {
            return Duration::ZERO;
        };
        // Where in its turn the burst lies changes by the golden ratio, which beats with no period of a program.
        self.turns += 1;
        let at = (self.turns as f64 * 0.618_033_988_75).fract();
        let free = turn - BURST;
        let before = free.mul_f64(at);
        std::mem::replace(&mut self.rest, free - before) + before
    }

    /// Time between two decodes.
    pub(super) fn period(&self) -> Duration {
        let many = Duration::from_secs(1) * AT_ONCE / self.hz.max(1);
        many.clamp(PERIOD.0, PERIOD.1)
    }

    /// Samples that are decoded at once, with some to spare.
    pub(super) fn at_once(&self) -> u32 {
        let samples = self.period().as_secs_f64() * f64::from(self.hz);
        ((samples * 1.07) as u32 + 2).max(AT_ONCE)
    }

    /// Bytes of room in the hardware.
    pub(super) fn room(&self) -> usize {
        self.room << 20
    }

    /// Takes twice the room. Whether there is so much.
    pub(super) fn grow(&mut self) -> bool {
        let more = (self.room * 2).min(ROOM.2);
        std::mem::replace(&mut self.room, more) < more
    }

    /// Takes as much as the budget has, by what a burst took of a core and what was known before.
    pub(super) fn keep_to(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        let cost = self.cost.map_or(took, |known| (known + took) / 2.0);
        self.cost = Some(cost);
        let fits = |ms: &&u64| cost <= BUDGET * **ms as f64 / 1e3;
        let ms = TURNS.iter().find(fits).unwrap_or(&TURNS[TURNS.len() - 1]);
        self.turn = self.turn.map(|_| Duration::from_millis(*ms));
    }

    /// In words.
    pub(super) fn describe(&self) -> String {
        let (hz, ms) = (self.hz, BURST.as_millis());
        let every = match self.turn.map(|it| it.as_millis()) {
            None => return format!("{hz} times a second"),
            Some(turn @ ..1000) => format!("{} times a second", 1000 / turn),
            Some(1000) => "each second".to_owned(),
            Some(turn) => format!("every {} s", turn / 1000),
        };
        format!("{hz} times a second for {ms} ms, {every}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quarter_of_a_second_has_a_burst_at_changing_places() {
        let mut rhythm = Rhythm::new(None);
        let (mut at, mut moments) = (Duration::ZERO, Vec::new());
        while at < Duration::from_secs(25) {
            at += rhythm.pause();
            moments.push(at.as_secs_f64() * 4.0);
            at += rhythm.length().expect("an end");
        }
        for (quarter, moment) in moments.iter().take(99).enumerate() {
            assert_eq!(*moment as usize, quarter, "{moment}");
        }
        // In each hundredth of it not more than three of a hundred.
        let mut places = [0; 100];
        for moment in moments {
            places[(moment.fract() * 100.0) as usize] += 1;
        }
        assert!(places.iter().all(|it| *it <= 3), "{places:?}");
    }

    /// Each by hand: 0.09 of a core; what is known counts as much as what comes.
    #[test]
    fn a_tenth_of_a_core_is_kept_to_and_comes_back() {
        let mut rhythm = Rhythm::new(None);
        for (ms, words) in [
            // 22 of 250 ms are 8.8 %.
            (22, "20000 times a second for 10 ms, 4 times a second"),
            // In the mean 36: 7.2 % of half a second.
            (50, "20000 times a second for 10 ms, 2 times a second"),
            // 68.
            (100, "20000 times a second for 10 ms, each second"),
            // 134.
            (200, "20000 times a second for 10 ms, every 2 s"),
            (9_000, "20000 times a second for 10 ms, every 16 s"),
        ] {
            rhythm.keep_to(Duration::from_millis(ms));
            assert_eq!(rhythm.describe(), words);
        }
        for _ in 0..20 {
            rhythm.keep_to(Duration::from_millis(22));
        }
        assert!(rhythm.describe().ends_with("4 times a second"));
    }

    #[test]
    fn what_was_asked_for_is_kept_to_with_room_for_it() {
        let mut rhythm = Rhythm::new(Some(20_000));
        rhythm.keep_to(Duration::from_secs(9));
        assert_eq!(rhythm.describe(), "20000 times a second");
        assert_eq!((rhythm.length(), rhythm.pause()), (None, Duration::ZERO));
        // 400 samples in 20 ms, with some to spare; 200 in a burst.
        assert_eq!(rhythm.period(), Duration::from_millis(20));
        assert_eq!((rhythm.at_once(), Rhythm::new(None).at_once()), (430, 430));
        assert_eq!(Rhythm::new(Some(500)).at_once(), 256);
        assert!(rhythm.grow() && rhythm.grow() && !rhythm.grow());
        assert_eq!(rhythm.room(), 1 << 30);
    }
}

//! When the next frame is due.

use std::time::{Duration, Instant};

/// Frames are at least this far apart: 40 a second. One that answers a key is drawn at once.
const FRAME: Duration = Duration::from_millis(25);
/// Where nobody has pressed a key for a while, frames take one part in so many of the time. They are so far apart at most.
const REST: u32 = 80;
const FAR: Duration = Duration::from_millis(250);
const AWHILE: Duration = Duration::from_secs(2);

/// What waits to be drawn, and since when it may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    next: Instant,
    is_dirty: bool,
    is_awaited: bool,
    pressed: Instant,
}

impl Pace {
    /// The first frame is due at once.
    pub(super) fn new(now: Instant) -> Self {
        Pace {
            next: now,
            is_dirty: true,
            is_awaited: false,
            pressed: now,
        }
    }

    /// Something is not as it was drawn.
    pub(super) fn changed(&mut self) {
        self.is_dirty = true;
    }

    /// A key was pressed: somebody looks for what it does.
    pub(super) fn pressed(&mut self, now: Instant) {
        self.is_awaited = true;
        self.pressed = now;
    }

    /// Whether to draw now. Of keys that wait behind each other (held down, pasted: `has_more`) the last one is answered
    /// at once, and the others as often as anything else.
    pub(super) fn is_due(&self, now: Instant, has_more: bool) -> bool {
        self.is_dirty && (now >= self.next || (self.is_awaited && !has_more))
    }

    /// A frame was begun, and took so long.
    pub(super) fn drawn(&mut self, at: Instant, took: Duration) {
        let rest = match at.saturating_duration_since(self.pressed) < AWHILE {
            true => Duration::ZERO,
            false => (took * REST).min(FAR),
        };
        *self = Pace {
            next: at + FRAME.max(rest),
            is_dirty: false,
            is_awaited: false,
            pressed: self.pressed,
        };
    }

    /// When to look again if nothing else happens.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.is_dirty.then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_waits_for_its_turn_and_a_key_does_not() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let (mut pace, short) = (Pace::new(start), Duration::from_micros(500));
        assert!(pace.is_due(start, false));
        pace.drawn(start, short);
        assert!(!pace.is_due(at(1_000), false), "nothing has changed");
        pace.changed();
        assert!(!pace.is_due(at(24), false));
        assert_eq!(pace.wake(), Some(at(25)));
        assert!(pace.is_due(at(25), false));
        pace.pressed(at(1));
        assert!(pace.is_due(at(1), false), "a key that shows");
        assert!(!pace.is_due(at(1), true), "another one waits behind it");
        pace.drawn(at(1), short);
        pace.pressed(at(2));
        assert!(!pace.is_due(at(2), false), "a key that changes nothing");
    }
    #[test]
    fn frames_that_take_long_are_far_apart_until_a_key_comes() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new(start);
        let mut next = |now, took| {
            pace.drawn(at(now), Duration::from_millis(took));
            pace.changed();
            pace.wake()
        };
        assert_eq!(next(0, 3), Some(at(25)), "somebody has just begun to look");
        assert_eq!(next(5_000, 0), Some(at(5_025)));
        assert_eq!(next(5_000, 3), Some(at(5_240)));
        assert_eq!(next(5_000, 90), Some(at(5_250)));
        pace.pressed(at(5_100));
        assert!(pace.is_due(at(5_100), false));
        pace.drawn(at(5_100), Duration::from_millis(3));
        pace.changed();
        assert_eq!(pace.wake(), Some(at(5_125)));
    }
}

//! When the next frame is due.

use std::time::{Duration, Instant};

/// Frames are at least this far apart: 40 a second. One that answers a key is drawn at once.
const FRAME: Duration = Duration::from_millis(25);

/// What waits to be drawn, and since when it may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    next: Instant,
    is_dirty: bool,
    is_awaited: bool,
}

impl Pace {
    /// The first frame is due at once.
    pub(super) fn new(now: Instant) -> Self {
        Pace {
            next: now,
            is_dirty: true,
            is_awaited: false,
        }
    }

    /// Something is not as it was drawn.
    pub(super) fn changed(&mut self) {
        self.is_dirty = true;
    }

    /// A key was pressed: somebody looks for what it does.
    pub(super) fn pressed(&mut self) {
        self.is_awaited = true;
    }

    /// Whether to draw now. Of keys that wait behind each other (held down, pasted: `has_more`) the last one is answered
    /// at once, and the others as often as anything else.
    pub(super) fn is_due(&self, now: Instant, has_more: bool) -> bool {
        self.is_dirty && (now >= self.next || (self.is_awaited && !has_more))
    }

    /// A frame was begun.
    pub(super) fn drawn(&mut self, at: Instant) {
        *self = Pace {
            next: at + FRAME,
            is_dirty: false,
            is_awaited: false,
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
        let mut pace = Pace::new(start);
        assert!(pace.is_due(start, false));
        pace.drawn(start);
        assert!(!pace.is_due(at(1_000), false), "nothing has changed");
        pace.changed();
        assert!(!pace.is_due(at(24), false));
        assert_eq!(pace.wake(), Some(at(25)));
        assert!(pace.is_due(at(25), false));
        pace.pressed();
        assert!(pace.is_due(at(1), false), "a key that shows");
        assert!(!pace.is_due(at(1), true), "another one waits behind it");
        pace.drawn(at(1));
        pace.pressed();
        assert!(!pace.is_due(at(2), false), "a key that changes nothing");
    }
}

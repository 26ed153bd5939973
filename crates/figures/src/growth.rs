//! How the grid of a kernel grows from one launch to the next.

/// A launch has at most this part more blocks than the one before it: more is other work.
const MOST: u64 = 8;

/// How the blocks of a kernel change from one launch to the next.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// How often by a few more, and how often by many, or to fewer.
    pub grown: usize,
    pub anew: usize,
    /// The fewest blocks, and the most.
    pub least: u64,
    pub most: u64,
}

impl Growth {
    /// Of launches in order of time, by the blocks of each.
    pub fn of(blocks: impl Iterator<Item = u64>) -> Growth {
        let mut growth = Growth {
            grown: 0,
            anew: 0,
            least: u64::MAX,
            most: 0,
        };
        let mut before = None;
        for it in blocks {
            (growth.least, growth.most) = (growth.least.min(it), growth.most.max(it));
            match before {
                Some(last) if it > last && it - last <= last / MOST => growth.grown += 1,
                Some(last) if it != last => growth.anew += 1,
                _ => {}
            }
            before = Some(it);
        }
        growth
    }

    /// Whether one launch after the other has a few more, and seldom one begins anew.
    pub fn is_steady(&self) -> bool {
        cases::LOOP_MIN.is_reached_by(self.grown) && self.grown >= 4 * self.anew
    }
}

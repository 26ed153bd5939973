//! Who touched which bytes of a buffer last.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Access;
use super::clock::Agent;

/// An access and when it was, by its agent's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastTouch {
    pub(super) agent: Agent,
    pub(super) epoch: u32,
    pub(super) access: Access,
}

/// A piece of the buffer whose bytes were all touched alike.
#[derive(Clone, Debug)]
struct Stretch {
    end: u64,
    /// The last write and the reads since, at most one of each agent.
    touches: Vec<LastTouch>,
}

/// The pieces of a buffer by their first byte. Bytes that nothing has touched are in none.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    pieces: BTreeMap<u64, Stretch>,
}

impl Ranges {
    /// Adds an access. Calls `is_before` with each earlier one that it must come after; it says
    /// whether it does. Returns a measure of the work.
    ///
    /// A write forgets everything before it: what races with that later also races with the write,
    /// or the write raced itself and is reported already.
    pub(super) fn touch(
        &mut self,
        span: Range<u64>,
        touch: LastTouch,
        mut is_before: impl FnMut(&LastTouch) -> bool,
    ) -> u64 {
        if span.is_empty() {
            return 1;
        }
        self.split(span.start);
        self.split(span.end);
        let mut work = 2;
        for piece in self.pieces.range_mut(span.clone()).map(|(_, piece)| piece) {
            work += 1 + piece.touches.len() as u64;
            let writes = touch.access.writes;
            piece.touches.retain(|earlier| {
                let before = is_before(earlier);
                // A read of the same agent that comes earlier says nothing more.
                writes || earlier.access.writes || !(before && earlier.agent == touch.agent)
            });
            piece.touches.push(touch);
        }
        if touch.access.writes {
            let starts: Vec<u64> = self
                .pieces
                .range(span.clone())
                .map(|(start, _)| *start)
                .collect();
            for start in starts {
                self.pieces.remove(&start);
            }
            self.pieces.insert(
                span.start,
                Stretch {
                    end: span.end,
                    touches: vec![touch],
                },
            );
        } else {
            work += self.fill(span, touch);
        }
        work
    }

    /// Cuts the piece that has this byte inside.
    fn split(&mut self, at: u64) {
        let Some((_, piece)) = self.pieces.range_mut(..at).next_back() else {
            return;
        };
        if piece.end > at {
            let rest = Stretch {
                end: piece.end,
                touches: piece.touches.clone(),
            };
            piece.end = at;
            self.pieces.insert(at, rest);
        }
    }

    /// Adds pieces where the span has none yet.
    fn fill(&mut self, span: Range<u64>, touch: LastTouch) -> u64 {
        let mut gaps = Vec::new();
        let mut at = span.start;
        for (start, piece) in self.pieces.range(span.clone()) {
            if *start > at {
                gaps.push(at..*start);
            }
            at = piece.end;
        }
        if at < span.end {
            gaps.push(at..span.end);
        }
        let work = gaps.len() as u64;
        for gap in gaps {
            self.pieces.insert(
                gap.start,
                Stretch {
                    end: gap.end,
                    touches: vec![touch],
                },
            );
        }
        work
    }
}

//! Which of a lane's tracks a slice goes to, so that the slices of each track nest.

use activity::{Ns, Span};

/// Tracks that one lane may spread over. What overlaps even more becomes an instant, with its length
/// as an argument.
const LEVELS_MAX: usize = 64;

/// The open slices of each track, outermost first, by their ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    open: Vec<Vec<Ns>>,
}

/// Where a slice goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrackPlace {
    /// Slices that end before it: their track, and when.
    pub(super) ended: Vec<(usize, Ns)>,
    /// Its track; one more than there were for a new one.
    pub(super) level: usize,
    /// Whether it can be a slice there.
    pub(super) fits: bool,
}

impl Levels {
    /// Places a slice that starts no earlier than any before it (of equal starts, the longest first).
    pub(super) fn place(&mut self, span: Span) -> TrackPlace {
        let mut ended = Vec::new();
        for level in 0..self.open.len() {
            let open = &mut self.open[level];
            while let Some(&end) = open.last()
                && end <= span.start
            {
                open.pop();
                ended.push((level, end));
            }
            if open.last().is_none_or(|&end| end >= span.end) {
                open.push(span.end);
                return TrackPlace {
                    ended,
                    level,
                    fits: true,
                };
            }
        }
        let level = self.open.len();
        if level == LEVELS_MAX {
            return TrackPlace {
                ended,
                level: level - 1,
                fits: false,
            };
        }
        self.open.push(vec![span.end]);
        TrackPlace {
            ended,
            level,
            fits: true,
        }
    }

    /// What is still open, innermost first.
    pub(super) fn rest(self) -> impl Iterator<Item = (usize, Ns)> {
        self.open
            .into_iter()
            .enumerate()
            .flat_map(|(level, ends)| ends.into_iter().rev().map(move |end| (level, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_of_a_track_nest_and_none_is_lost(mut spans in prop::collection::vec((0i64..200, 0i64..40), 0..80)) {
            spans.sort_by_key(|&(start, len)| (start, std::cmp::Reverse(len)));
            let mut levels = Levels::default();
            // What a viewer does: a stack for each track.
            let mut stacks: Vec<Vec<Span>> = vec![Vec::new(); LEVELS_MAX];
            let mut closed = Vec::new();
            let mut close = |stacks: &mut Vec<Vec<Span>>, level: usize, time: Ns| {
                let span = stacks[level].pop().expect("something is open");
                assert_eq!(span.end, time);
                closed.push(span);
            };
            for &(start, len) in &spans {
                let span = Span::new(start, start + len);
                let placed = levels.place(span);
                for (level, time) in placed.ended {
                    close(&mut stacks, level, time);
                }
                prop_assert!(placed.fits);
                if let Some(outer) = stacks[placed.level].last() {
                    prop_assert!(outer.start <= span.start && span.end <= outer.end);
                }
                stacks[placed.level].push(span);
            }
            for (level, time) in levels.rest() {
                close(&mut stacks, level, time);
            }
            closed.sort();
            let mut all: Vec<Span> = spans.iter().map(|&(s, l)| Span::new(s, s + l)).collect();
            all.sort();
            prop_assert_eq!(closed, all);
        }
    }

    #[test]
    fn beyond_all_tracks_a_slice_is_an_instant() {
        let mut levels = Levels::default();
        for i in 0..100 {
            let placed = levels.place(Span::new(i, 1000 + i));
            assert_eq!(placed.fits, i < 64);
        }
    }
}

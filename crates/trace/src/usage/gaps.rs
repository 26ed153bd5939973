//! The stretches in which nothing ran on a device.

use super::moments::Moments;
use super::{STRIDE, Set, Usage};
use crate::lane::longest;
use crate::series::Chunk as _;
use activity::{Ns, Span};

impl Usage {
    /// The stretches with nothing running, between the first operation and the last, that begin within `window`, in order.
    pub fn gaps_within(&self, window: Span) -> impl Iterator<Item = Span> + '_ {
        let mut last: Option<(Ns, Set)> = None;
        let gaps = self
            .from(self.spot(window.start))
            .filter_map(move |(time, set)| {
                let (start, held) = last.replace((time, set))?;
                (held == 0).then(|| Span::new(start, time))
            });
        gaps.take_while(move |gap| gap.start < window.end)
    }

    /// The first gap of at least `min` ns that starts at or after `time`.
    pub fn next_gap(&self, time: Ns, min: Ns) -> Option<Span> {
        let from = self.spot(time);
        let mut last: Option<(Ns, Set)> = None;
        for chunk in from.chunk..self.moments.count() {
            let moments = self.moments.chunk(chunk);
            let mut i = if chunk == from.chunk { from.row } else { 0 };
            while i < moments.len() {
                // A gap that ends at a chunk's first moment begins in another chunk.
                let end = (i + STRIDE).min(moments.len());
                if i > 0 && i.is_multiple_of(STRIDE) && moments.widest(i) < min {
                    last = Some(moments.entry(end - 1));
                    i = end;
                    continue;
                }
                let (end, set) = moments.entry(i);
                if let Some((start, 0)) = last
                    && end - start >= min
                {
                    return Some(Span::new(start, end));
                }
                last = Some((end, set));
                i += 1;
            }
        }
        None
    }

    /// The last gap of at least `min` ns that starts before `time`.
    pub fn previous_gap(&self, time: Ns, min: Ns) -> Option<Span> {
        let until = self.spot(time);
        if self.moments.count() == 0 {
            return None;
        }
        let mut after = self.from(until).next().map(|(time, _)| time);
        for chunk in (0..=until.chunk).rev() {
            let moments = self.moments.chunk(chunk);
            let mut i = if chunk == until.chunk {
                until.row
            } else {
                moments.len()
            };
            // The gap that ends at moment `i`, which may be the next chunk's first one.
            while i > 0 {
                if let Some(first) = narrow(moments, i, min) {
                    i = first.saturating_sub(1);
                    after = Some(moments.entry(i).0);
                    continue;
                }
                let (start, set) = moments.entry(i - 1);
                if let Some(end) = after
                    && set == 0
                    && end - start >= min
                {
                    return Some(Span::new(start, end));
                }
                after = Some(start);
                i -= 1;
            }
        }
        None
    }

    /// The longest gap of at least `min` ns that lies within `window`; of equal ones the first.
    pub fn longest_gap(&self, window: Span, min: Ns) -> Option<Span> {
        longest(window, min, |time, min| self.next_gap(time, min))
    }

    /// The gap that holds `time`.
    pub fn gap_at(&self, time: Ns) -> Option<Span> {
        let last = self.last_before(time.saturating_add(1))?;
        let mut moments = self.from(last);
        let (start, set) = moments.next()?;
        let (end, _) = moments.next()?;
        (set == 0).then(|| Span::new(start, end))
    }
}

/// The first moment of the block whose last one is `i`, when no gap of `min` ns ends at a moment of it.
fn narrow(moments: &Moments, i: usize, min: Ns) -> Option<usize> {
    let is_last = (i + 1).is_multiple_of(STRIDE) || i + 1 == moments.len();
    (i < moments.len() && is_last && moments.widest(i) < min).then(|| i - i % STRIDE)
}

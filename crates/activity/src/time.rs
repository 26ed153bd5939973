//! Nanoseconds and half-open spans.

/// A point in time or a length of time, in integer nanoseconds.
pub type Ns = i64;

/// A half-open stretch of time, `[start, end)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First nanosecond inside.
    pub start: Ns,
    /// First nanosecond outside; never less than `start` in a valid span.
    pub end: Ns,
}

impl Span {
    /// A span from `start` to `end`. An `end` before `start` is taken as an empty span at `start`.
    #[inline]
    pub fn new(start: Ns, end: Ns) -> Self {
        Span {
            start,
            end: end.max(start),
        }
    }

    /// An empty span: an instant.
    pub fn at(time: Ns) -> Self {
        Span::new(time, time)
    }

    /// Its length.
    #[inline]
    pub fn len(self) -> Ns {
        self.end - self.start
    }

    /// Whether nothing lies inside.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether `time` lies inside.
    #[inline]
    pub fn contains(self, time: Ns) -> bool {
        self.start <= time && time < self.end
    }

    /// Whether the two share at least one nanosecond.
    pub fn overlaps(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// What the two share; empty when nothing.
    #[inline]
    pub fn intersect(self, other: Span) -> Span {
        Span::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// The shortest span that holds both.
    pub fn hull(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// Stretches in order and apart: those that touch are one.
    pub fn merged(mut spans: Vec<Span>) -> Vec<Span> {
        spans.sort_unstable();
        spans.dedup_by(|next, before| {
            let touches = next.start <= before.end;
            if touches {
                before.end = before.end.max(next.end);
            }
            touches
        });
        spans
    }

    /// The length of the union of spans: time in which any of them is.
    pub fn union_len(spans: Vec<Span>) -> Ns {
        Span::merged(spans).into_iter().map(Span::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_share_nothing() {
        let (a, b) = (Span::new(0, 10), Span::new(10, 20));
        assert!(!a.overlaps(b));
        assert!(a.intersect(b).is_empty());
        assert!(!a.contains(10));
        assert_eq!(a.hull(b), Span::new(0, 20));
    }

    #[test]
    fn an_end_before_its_start_is_an_instant() {
        assert_eq!(Span::new(5, 3), Span::at(5));
    }
}

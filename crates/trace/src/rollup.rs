//! Sums over an evicted span, at the points of a coarse grid.
//!
//! They are exact at each point and, for a time between two, in proportion.

use activity::Ns;

/// A sum that grows with time.
pub(super) trait Sum: Copy + Default {
    /// The value `part` of `whole` ns on the way from one to another.
    fn between(from: Self, to: Self, part: Ns, whole: Ns) -> Self;
}

impl Sum for Ns {
    fn between(from: Ns, to: Ns, part: Ns, whole: Ns) -> Ns {
        let share = i128::from(to - from) * i128::from(part) / i128::from(whole.max(1));
        from + share as Ns
    }
}

impl Sum for f64 {
    fn between(from: f64, to: f64, part: Ns, whole: Ns) -> f64 {
        from + (to - from) * part as f64 / whole.max(1) as f64
    }
}

impl<T: Sum, const N: usize> Sum for [T; N]
where
    [T; N]: Default,
{
    fn between(from: Self, to: Self, part: Ns, whole: Ns) -> Self {
        std::array::from_fn(|i| T::between(from[i], to[i], part, whole))
    }
}

/// A sum over an evicted span.
#[derive(Clone, Debug, Default)]
pub(super) struct Rollup<T> {
    /// When the span begins and ends.
    start: Ns,
    edge: Ns,
    /// The distance of two points, ns; each point is a multiple of it. 0 before anything was evicted.
    step: Ns,
    /// Which multiple the first point is.
    first: Ns,
    points: Vec<T>,
    /// The sum at the end of the span.
    at_edge: T,
}

impl<T: Sum> Rollup<T> {
    /// Extends the evicted span, which begins at `start`, up to `edge`. `until` gives the sum up to any moment of it.
    pub(super) fn extend(&mut self, start: Ns, edge: Ns, step: Ns, until: impl Fn(Ns) -> T) {
        if self.step == 0 {
            self.start = start;
            self.first = start.div_euclid(step);
            self.points.push(T::default());
        } else {
            // Steps double, so every point of the coarser grid is one of the finer.
            let ratio = (step / self.step).max(1);
            let skip = (-self.first).rem_euclid(ratio);
            let first = self.first.div_euclid(ratio);
            // The coarser grid's first point lies before the finer grid's first, unless they are the same.
            let before = (skip > 0).then(T::default);
            let kept = self
                .points
                .iter()
                .skip(skip as usize)
                .step_by(ratio as usize);
            self.points = before.into_iter().chain(kept.copied()).collect();
            self.first = first;
        }
        self.step = step;
        let mut point = (self.first + self.points.len() as Ns) * step;
        while point <= edge {
            self.points.push(until(point));
            point += step;
        }
        self.at_edge = until(edge);
        self.edge = edge;
    }

    /// Moves the span in time by `to`; `back` is its inverse. Its points are again multiples of the same step. So a sum
    /// that was exact at a point is now in proportion between two.
    pub(super) fn retime(&mut self, to: impl Fn(Ns) -> Ns, back: impl Fn(Ns) -> Ns) {
        if self.step == 0 {
            return;
        }
        let (start, edge) = (to(self.start), to(self.edge));
        let first = start.div_euclid(self.step);
        let points = (first..)
            .map(|at| at * self.step)
            .take_while(|&at| at <= edge);
        let points = points.map(|at| match at <= start {
            true => T::default(),
            false => self.until(back(at)).unwrap_or(self.at_edge),
        });
        self.points = points.collect();
        (self.start, self.edge, self.first) = (start, edge, first);
    }

    /// When the span begins; `None` before anything was evicted.
    pub(super) fn start(&self) -> Option<Ns> {
        (self.step > 0).then_some(self.start)
    }

    /// The sum up to `time`; `None` for a time outside the span.
    pub(super) fn until(&self, time: Ns) -> Option<T> {
        if self.step == 0 || time > self.edge {
            return None;
        }
        let Ok(at) = usize::try_from(time.div_euclid(self.step) - self.first) else {
            return Some(T::default());
        };
        let Some(&from) = self.points.get(at) else {
            return Some(self.at_edge);
        };
        let begin = (self.first + at as Ns) * self.step;
        let (to, end) = match self.points.get(at + 1) {
            Some(&to) => (to, begin + self.step),
            None => (self.at_edge, self.edge),
        };
        Some(T::between(from, to, time - begin, end - begin))
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(self.points.as_slice())
    }
}

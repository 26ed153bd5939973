//! The one place where time becomes columns and columns become time.
//!
//! Everything is integer arithmetic. The edges of the columns tile the window without gap or overlap, so figures of
//! single columns add up to the figure of the window.

use activity::{Ns, Span};

/// A window of time laid over a number of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeScale {
    /// The window. Never empty.
    pub window: Span,
    /// Columns, at least 1.
    pub columns: u16,
}

impl TimeScale {
    /// Lays `window` over `columns`. An empty window is taken as 1 ns long, no columns as one.
    pub fn new(window: Span, columns: u16) -> Self {
        TimeScale {
            window: Span::new(window.start, window.end.max(window.start.saturating_add(1))),
            columns: columns.max(1),
        }
    }

    /// Where column `x` begins; `x == columns` is the window's end.
    pub fn edge(&self, x: u16) -> Ns {
        self.window.start + share(self.window.len(), x, self.columns)
    }

    /// Where each column begins, and where the last one ends.
    pub fn edges(&self) -> Vec<Ns> {
        let starts = (0..self.columns).map(|x| self.edge(x));
        starts.chain([self.window.end]).collect()
    }

    /// The time that column `x` stands for. Empty when the window has fewer nanoseconds than columns.
    pub fn cell(&self, x: u16) -> Span {
        Span::new(self.edge(x), self.edge(x + 1))
    }

    /// The column that holds `time`, when it is in the window.
    pub fn column(&self, time: Ns) -> Option<u16> {
        self.window.contains(time).then(|| {
            let offset = i128::from(time - self.window.start);
            // The last column whose edge is not after `time`, see `edge`.
            let x = ((offset + 1) * i128::from(self.columns) - 1) / i128::from(self.window.len());
            x as u16
        })
    }

    /// The columns that hold a part of a span, one at least where any of it is in the window.
    pub fn columns_of(&self, span: Span) -> std::ops::Range<u16> {
        if !span.overlaps(self.window) {
            return 0..0;
        }
        let last = self.column(span.end - 1).unwrap_or(self.columns - 1);
        self.column(span.start).unwrap_or(0)..last + 1
    }

    /// The column up to which cells have ended by `time`, from 0 to `columns`.
    pub fn ended(&self, time: Ns) -> u16 {
        let window = self.window;
        let offset = i128::from(time.clamp(window.start, window.end) - window.start);
        let length = i128::from(window.len());
        let x = (offset * i128::from(self.columns) + length - 1) / length;
        // The first edge that is not before `time`: of equal ones, which cells of no length have, the first.
        let x = x as u16;
        if window.start + offset as Ns == self.edge(x) {
            x
        } else {
            x - 1
        }
    }

    /// Moments for labels: multiples (counted from `zero`) of 1, 2 or 5 times a power of ten, at least
    /// `min_columns` apart.
    pub fn ticks(&self, zero: Ns, min_columns: u16) -> Ticks {
        let apart = i128::from(self.window.len()) * i128::from(min_columns.max(1))
            / i128::from(self.columns);
        let step = nice_at_least(apart.clamp(1, 1 << 60) as Ns);
        let from = self.window.start - zero;
        let first =
            from.div_euclid(step) * step + if from.rem_euclid(step) == 0 { 0 } else { step };
        Ticks {
            step,
            next: first,
            end: self.window.end - zero,
        }
    }
}

/// `length * x / columns`. A frame asks tens of thousands of times. So 128 bits are only divided where 64 are too few,
/// for windows of more than a day.
fn share(length: Ns, x: u16, columns: u16) -> Ns {
    match length.checked_mul(Ns::from(x)) {
        Some(product) => product / Ns::from(columns),
        None => (i128::from(length) * i128::from(x) / i128::from(columns)) as Ns,
    }
}

/// The moments of an axis, relative to its zero.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// How far they are apart.
    pub step: Ns,
    next: Ns,
    end: Ns,
}

impl Iterator for Ticks {
    /// A moment relative to the axis's zero.
    type Item = Ns;

    fn next(&mut self) -> Option<Ns> {
        let tick = (self.next < self.end).then_some(self.next)?;
        self.next = self.next.saturating_add(self.step);
        Some(tick)
    }
}

/// The least of 1, 2, 5, 10, 20, 50, … that is not below `least`.
fn nice_at_least(least: Ns) -> Ns {
    let mut power: Ns = 1;
    loop {
        for digit in [1, 2, 5] {
            let step = power.saturating_mul(digit);
            if step >= least {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_tile_the_window(start in -1000i64..1000, len in 1i64..5000, columns in 1u16..300) {
            let scale = TimeScale::new(Span::new(start, start + len), columns);
            prop_assert_eq!(scale.edge(0), start);
            prop_assert_eq!(scale.edge(columns), start + len);
            for t in start..start + len {
                // By trying every column, against the formula.
                let expected = (0..columns).find(|&x| scale.cell(x).contains(t));
                prop_assert_eq!(scale.column(t), expected);
                let has_ended = |x: &u16| scale.edge(*x) < t && scale.cell(*x).end <= t;
                prop_assert_eq!(usize::from(scale.ended(t)), (0..columns).filter(has_ended).count());
            }
            prop_assert_eq!(scale.column(start - 1), None);
            prop_assert_eq!(scale.column(start + len), None);
        }
    }

    #[test]
    fn ticks_are_round_and_far_enough_apart() {
        // 3.34 ms over 100 columns, 12 apart: 0.4 ms at least, so 0.5 ms.
        let scale = TimeScale::new(Span::new(1_000, 3_341_000), 100);
        let ticks: Vec<Ns> = scale.ticks(1_000, 12).collect();
        assert_eq!(
            ticks,
            [
                0, 500_000, 1_000_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000
            ]
        );
        // A window that begins before zero.
        let scale = TimeScale::new(Span::new(-150, 250), 40);
        assert_eq!(scale.ticks(0, 10).collect::<Vec<_>>(), [-100, 0, 100, 200]);
    }

    #[test]
    fn the_greatest_times_do_not_overflow() {
        let scale = TimeScale::new(Span::new(0, Ns::MAX / 4), u16::MAX);
        assert_eq!(scale.edge(u16::MAX), Ns::MAX / 4);
        // A fifth of the columns is a fifth of the time, also where 64 bits do not hold the product.
        assert_eq!(scale.edge(13_107), 461_168_601_842_738_790);
        assert!(scale.ticks(0, 10).count() < 10_000);
    }
}

//! The table of cases: the thresholds and exceptions of answers, one row each.
//!
//! A row says what it recognises, and which inputs ask for it. An input is a trace of the repository, a bundled scenario,
//! or a small one made for the row. `tests/cases` takes each row out, and asks that an answer to each of its inputs
//! changes. So a row that nothing asks for is found, and goes.
//!
//! Code asks a row by one of three functions. [`Limit::is_reached_by`] and [`Limit::value`] are for a number, and
//! [`Exception::holds`] is for a condition. In an ordinary build a row is a constant, and a question about it costs nothing.

mod table;
pub mod thresholds;

#[cfg(feature = "testing")]
pub mod testing;

pub use table::*;

/// A row of the table, for those who list it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which rule asks it.
    pub rule: &'static str,
    pub name: &'static str,
    /// As it is written in the table; empty for an exception.
    pub number: &'static str,
    /// What it counts: "Ns", "Share", "Times", "Count"; or "Exception".
    pub unit: &'static str,
    /// What it recognises, line by line.
    pub recognises: &'static [&'static str],
    /// The inputs whose answers it changes.
    pub inputs: &'static [&'static str],
}

/// A row with a number.
#[derive(Clone, Copy, Debug)]
pub struct Limit<T> {
    row: usize,
    number: T,
    without: T,
}

/// A row without one: where its condition holds, something else follows.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    row: usize,
}

/// A time in nanoseconds.
type Ns = Limit<i64>;

/// A part of a whole, or of another time.
type Share = Limit<f64>;

/// So many times as much.
type Times = Limit<i64>;

/// So often.
type Count = Limit<usize>;

impl<T: Copy + PartialOrd> Limit<T> {
    const fn new(row: usize, number: T, without: T) -> Self {
        Limit {
            row,
            number,
            without,
        }
    }

    /// The number.
    #[inline]
    pub fn value(&self) -> T {
        self.asked(|_| true)
    }

    /// Whether a value is at least the number.
    #[inline]
    pub fn is_reached_by(&self, value: T) -> bool {
        let is_reached = |number: T| value >= number;
        is_reached(self.asked(|number| is_reached(number) != is_reached(self.without)))
    }

    /// The number, or what stands for it where the row is out.
    #[cfg(not(feature = "testing"))]
    #[inline]
    fn asked(&self, _decides: impl Fn(T) -> bool) -> T {
        let _ = (self.row, self.without);
        self.number
    }

    #[cfg(feature = "testing")]
    fn asked(&self, decides: impl Fn(T) -> bool) -> T {
        match testing::is_out(self.row, decides(self.number)) {
            true => self.without,
            false => self.number,
        }
    }
}

impl Exception {
    const fn new(row: usize) -> Self {
        Exception { row }
    }

    /// Whether the exception is made.
    #[cfg(not(feature = "testing"))]
    #[inline]
    pub fn holds(&self, condition: bool) -> bool {
        let _ = self.row;
        condition
    }

    /// Whether the exception is made: never where the row is out.
    #[cfg(feature = "testing")]
    pub fn holds(&self, condition: bool) -> bool {
        condition && !testing::is_out(self.row, condition)
    }
}

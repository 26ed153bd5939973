//! The part of a run that a scenario shows first: `first 100 us`, `last 1 ms`, `200 us .. 300 us`.

use std::str::FromStr;

use super::expr::ExprError;
use super::expr::parse::{self, Piece};
use super::expr::value::{Unit, Value};
use activity::{Ns, Span};

/// A part of a pass. Its clock starts with the pass's first operation. A pass that is shorter is shown whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// From its first operation on.
    First(Ns),
    /// Up to the end of its last operation.
    Last(Ns),
    /// From one time to a later one.
    Between(Ns, Ns),
}

impl View {
    /// The part of a pass whose operations take the span from `start` to `end`.
    pub fn clip(self, start: Ns, end: Ns) -> (Ns, Ns) {
        let (from, to) = match self {
            View::First(length) => (start, start.saturating_add(length)),
            View::Last(length) => (end.saturating_sub(length), end),
            View::Between(from, to) => (start.saturating_add(from), start.saturating_add(to)),
        };
        // A part that begins behind the end shows nothing; the whole pass tells more.
        if from >= end {
            return (start, end);
        }
        (from.max(start), to.min(end))
    }

    /// The same of a span.
    pub fn within_span(self, whole: Span) -> Span {
        let (start, end) = self.clip(whole.start, whole.end);
        Span::new(start, end)
    }
}

impl FromStr for View {
    /// What is wrong with it, and how one is written.
    type Err = String;

    fn from_str(text: &str) -> Result<View, String> {
        read(Piece::alone(text)).map_err(|error| format!("{}: {SHAPE}", error.message))
    }
}

const SHAPE: &str = "write \"first 100 us\", \"last 1 ms\" or \"200 us .. 300 us\"";

/// Reads a view.
///
/// # Errors
/// What is wrong with it and where.
pub(super) fn read(piece: Piece<'_>) -> Result<View, ExprError> {
    let text = piece.text;
    let end = text.len();
    let start = end - text.trim_start().len();
    if let Some(dots) = text.find("..") {
        let from = time(piece.slice(0, dots))?;
        let to = time(piece.slice(dots + 2, end))?;
        if from >= to {
            let message = "this view ends before it begins";
            return Err(piece.error(message));
        }
        return Ok(View::Between(from, to));
    }
    let first = View::First as fn(Ns) -> View;
    for (word, view) in [("first ", first), ("last ", View::Last)] {
        if text[start..].starts_with(word) {
            let length = piece.slice(start + word.len(), end);
            let ns = time(length)?;
            if ns == 0 {
                let message = "a view cannot be empty";
                return Err(length.error(message));
            }
            return Ok(view(ns));
        }
    }
    Err(piece.error("this is not a view").with_help(SHAPE))
}

/// A time that is not negative, without names.
fn time(piece: Piece<'_>) -> Result<Ns, ExprError> {
    let trimmed = piece.text.trim();
    let start = piece.text.len() - piece.text.trim_start().len();
    match parse::constant(piece)? {
        Value::Int(ns, Unit::Time) if ns >= 0 => Ok(ns),
        Value::Int(0, Unit::None) => Ok(0),
        value => {
            let loc = piece.loc(start, start + trimmed.len());
            let message = format!("a view is given in times, and this is {value}");
            Err(loc.error(message).with_help(SHAPE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<View, String> {
        text.parse()
    }

    #[test]
    fn views_are_read() {
        assert_eq!(parsed("first 100 us").ok(), Some(View::First(100_000)));
        assert_eq!(parsed(" last 1.5 ms ").ok(), Some(View::Last(1_500_000)));
        let between = View::Between(200_000, 300_000);
        assert_eq!(parsed("200 us .. 300 us").ok(), Some(between));
        assert_eq!(parsed("0 .. 1 ms").ok(), Some(View::Between(0, 1_000_000)));
        for wrong in [
            "",
            "first",
            "first us",
            "first 100",
            "first -1 us",
            "first 0 us",
            "middle 3 us",
            "firstly 1 us",
            "3 us .. 2 us",
            "first 1 MiB",
            "first n",
            "..",
            "first 0.1 ns",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_view_stays_in_its_pass() {
        assert_eq!(View::First(10).clip(100, 200), (100, 110));
        assert_eq!(View::Last(10).clip(100, 200), (190, 200));
        assert_eq!(View::Between(20, 30).clip(100, 200), (120, 130));
        assert_eq!(View::First(1000).clip(100, 200), (100, 200));
        assert_eq!(View::Last(1000).clip(100, 200), (100, 200));
        assert_eq!(View::Between(500, 600).clip(100, 200), (100, 200));
    }
}

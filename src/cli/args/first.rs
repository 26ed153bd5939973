//! What is shown first, on the screen and in pictures.

use clap::Args;

use crate::scenario::view::View as Part;
use crate::tui::{Opening, Select, view_named};

/// What is shown first.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is shown first")]
pub struct First {
    /// The view, by its number or the beginning of its name: timeline, operations, findings, compare …
    #[arg(long, value_name = "N|NAME", value_parser = view)]
    pub view: Option<usize>,
    /// A part of the pass or the run, counted from its first operation: "first 100 us", "last 1 ms", "200 us .. 300 us".
    #[arg(long, value_name = "PART", value_parser = part)]
    pub zoom: Option<Part>,
    /// What is selected: the longest operation, call or range whose name has this in it, a row, or longest-gap.
    #[arg(long, value_name = "NAME", value_parser = select)]
    pub select: Option<Select>,
    /// What to call it, in the header and in pictures.
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// A timeline played as if it were live.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "What is shown first")]
pub struct Replayed {
    /// Play the complete timeline as if it were live, at this speed: 0.001x takes a second for each millisecond. The
    /// space bar holds it. Of a .cast the speed; without it, one that takes 15 seconds.
    #[arg(long, value_name = "SPEED", num_args = 0..=1, default_missing_value = "1x", value_parser = speed)]
    pub replay: Option<f64>,
}

/// "0.001x" as a factor.
fn speed(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches(['x', 'X', '×']).trim_end();
    match number.parse::<f64>() {
        Ok(speed) if (1e-9..=1e6).contains(&speed) => Ok(speed),
        _ => Err("expected a speed, for example 0.001x or 1x".to_owned()),
    }
}

impl First {
    /// It for the screen, without the title, which is the timeline's.
    pub(in crate::cli) fn opening(&self) -> Opening {
        Opening {
            view: self.view,
            zoom: self.zoom,
            select: self.select.clone(),
            lanes: crate::cli::config::settings().lanes.clone(),
        }
    }

    /// The first option that was given, for commands that may have no use for it.
    pub(in crate::cli) fn given(&self) -> Option<&'static str> {
        let options = [
            (self.view.is_some(), "--view"),
            (self.zoom.is_some(), "--zoom"),
            (self.select.is_some(), "--select"),
            (self.title.is_some(), "--title"),
        ];
        let mut given = options.into_iter().filter(|(is_given, _)| *is_given);
        given.next().map(|(_, name)| name)
    }
}

fn view(text: &str) -> Result<usize, String> {
    view_named(text)
}

fn part(text: &str) -> Result<Part, String> {
    text.parse()
}

fn select(text: &str) -> Result<Select, String> {
    match text.trim() {
        "" => Err("expected a name, or longest-gap".to_owned()),
        "longest-gap" => Ok(Select::LongestGap),
        name => Ok(Select::Named(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read() {
        assert_eq!(
            (speed("0.001x"), speed("1x"), speed("2")),
            (Ok(0.001), Ok(1.0), Ok(2.0))
        );
        for wrong in ["", "x", "0x", "-1x", "nan", "inf", "1e9x", "trace.json"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }
}

//! What several commands take, and how it is read.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::source::attach::Graphs;
use crate::source::python;

/// Picture of the screen without a terminal.
#[derive(Clone, Debug, Default, Args)]
pub struct Picture {
    /// When done, save the screen to this file (.svg, .png, .txt or .ansi) instead of showing it; how it fills, as
    /// asciinema plays it (.cast).
    #[arg(long, value_name = "FILE")]
    pub screenshot: Option<PathBuf>,
    /// Size of that screen in columns and rows.
    #[arg(long, value_name = "COLSxROWS", default_value = "120x40", value_parser = size)]
    pub size: (u16, u16),
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is.
    #[default]
    On,
    /// It is not.
    Off,
}

/// How CUDA graphs are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphRecords {
    /// Every kernel, copy and memset in them: 0.15 to 0.95 µs for each, measured on an H200.
    #[default]
    Nodes,
    /// One record for each launch: 4 to 28 µs, measured on an H200, however many nodes it has.
    Whole,
}

impl From<GraphRecords> for Graphs {
    fn from(wanted: GraphRecords) -> Graphs {
        match wanted {
            GraphRecords::Nodes => Graphs::Nodes,
            GraphRecords::Whole => Graphs::Whole,
        }
    }
}

/// "n=4" as a name and a value.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, for example n=4096".to_owned()),
    }
}

/// "2 GiB" in bytes; at least 64 MiB, in which some seconds of any program fit.
pub(super) fn size_of_memory(text: &str) -> Result<u64, String> {
    match crate::scenario::value::parse_bytes(text) {
        Some(bytes) if bytes >= 64 << 20 => Ok(bytes),
        _ => Err("expected a size of at least 64 MiB, for example \"2 GiB\"".to_owned()),
    }
}

/// "30s", "500 ms" or "2min"; a number alone is of seconds.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let seconds = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let most = 1e7;
    match number.parse::<f64>().map(|number| number * seconds) {
        Ok(seconds) if (0.0..most).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a time, for example 30s, 500ms or 2min".to_owned()),
    }
}

/// "120x40" as columns and rows.
pub(super) fn size(text: &str) -> Result<(u16, u16), String> {
    let parse = || {
        let (columns, rows) = text.split_once(['x', 'X'])?;
        let (columns, rows) = (columns.parse().ok()?, rows.parse().ok()?);
        ((1..=1000).contains(&columns) && (1..=500).contains(&rows)).then_some((columns, rows))
    };
    parse().ok_or_else(|| "expected COLSxROWS, for example 120x40 (at most 1000x500)".to_owned())
}

/// How often Python stacks are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonLooks(Option<u32>);

impl Default for PythonLooks {
    fn default() -> Self {
        PythonLooks(Some(python::HZ))
    }
}

impl PythonLooks {
    /// Looks a second; `None` for none.
    pub fn looks(self) -> Option<u32> {
        self.0
    }
}

impl FromStr for PythonLooks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(PythonLooks(None));
        }
        let hz = text.parse().ok();
        hz.filter(|hz| (1..=python::MOST_HZ).contains(hz))
            .map(|hz| PythonLooks(Some(hz)))
            .ok_or_else(|| format!("expected 1 to {} looks a second, or off", python::MOST_HZ))
    }
}

impl Display for PythonLooks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(hz) => hz.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// "5%" as 0.05.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text.trim());
    match number.trim().parse::<f64>() {
        Ok(percent) if (0.0..1e6).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage, for example 5%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read() {
        assert_eq!(
            (share("5%"), share("2.5 %"), share("0")),
            (Ok(0.05), Ok(0.025), Ok(0.0))
        );
        assert!(share("-1%").is_err() && share("x").is_err() && share("nan").is_err());
    }

    #[test]
    fn times_are_read() {
        assert_eq!(time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(time("1.5 min"), Ok(Duration::from_secs(90)));
        assert_eq!(
            (time("250ms"), time("2")),
            (Ok(Duration::from_millis(250)), Ok(Duration::from_secs(2)))
        );
        for wrong in ["", "s", "-1s", "1 day", "1e9h", "nan", "99999999999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_assignments_are_read() {
        assert_eq!(size("80x24"), Ok((80, 24)));
        assert!(size("80").is_err() && size("0x5").is_err() && size("80x99999").is_err());
        assert_eq!(assignment("n = 4"), Ok(("n".to_owned(), "4".to_owned())));
        assert!(assignment("n").is_err() && assignment("=4").is_err());
    }
}

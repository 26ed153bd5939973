//! What is on the screen and in pictures, and how it is drawn.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};

use crate::report::text::Section;
use crate::tui::Opening;

/// How the screen is drawn.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Screen")]
pub struct ScreenArgs {
    /// Colours to use.
    #[arg(long, global = true, value_enum, env = "CUPTOP_COLOR", default_value_t)]
    pub color: Color,
    /// Colour theme: for a dark or a light background, or for eyes that do not tell red from green.
    #[arg(long, global = true, value_enum, env = "CUPTOP_THEME", default_value_t)]
    pub theme: PaletteName,
    /// Use ASCII instead of block and box characters.
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Also say what is worth no warning, such as which kinds of events of a trace are not shown.
    #[arg(long, short, global = true)]
    pub verbose: bool,
}

/// Those of this process's command line.
pub(crate) static SCREEN: OnceLock<ScreenArgs> = OnceLock::new();

/// The same; the defaults where nothing has set them.
pub(crate) fn screen_args() -> &'static ScreenArgs {
    SCREEN.get_or_init(ScreenArgs::default)
}

/// Which colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PaletteName {
    #[default]
    Dark,
    Light,
    ColorBlind,
    ColorBlindLight,
}

/// Colours to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// What the terminal can do; none with `NO_COLOR`.
    #[default]
    Auto,
    /// 24-bit colours.
    Truecolor,
    /// 256 colours.
    #[value(name = "256")]
    Indexed,
    /// 16 colours.
    #[value(name = "16")]
    Basic,
    /// No colour.
    Never,
}

/// Picture of the screen without a terminal.
#[derive(Clone, Debug, Default, Args)]
pub struct PictureArgs {
    /// When done, save the screen to this file (.svg, .png or .txt) instead of showing it; how it fills, as
    /// asciinema plays it (.cast).
    #[arg(long, value_name = "FILE")]
    pub screenshot: Option<PathBuf>,
    /// Size of that screen in columns and rows.
    #[arg(long, value_name = "COLSxROWS", default_value = "120x40", value_parser = size)]
    pub size: (u16, u16),
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

/// What is shown first.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is shown first")]
pub struct First {
    #[command(flatten)]
    pub opening: Opening,
    /// What to call it, in the header and in pictures.
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// A timeline played as if it were live.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "What is shown first")]
pub struct ReplayOptions {
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
    /// The first option that was given, for commands that may have no use for it.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            (self.opening.view.is_some(), "--view"),
            (self.opening.is_bare, "--bare"),
            (self.opening.select.is_some(), "--select"),
            (self.title.is_some(), "--title"),
        ];
        let mut given = options.into_iter().filter(|(is_given, _)| *is_given);
        given.next().map(|(_, name)| name)
    }
}

/// How much JSON is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Json {
    /// All that is known.
    Full,
    /// What matters most.
    Brief,
}

/// How figures are printed.
#[derive(Clone, Debug, Default, Args)]
pub struct Printed {
    /// Print JSON with all that is known; `--json=brief`: under 4 KB of it, for scripts (`cuptop help scripts`).
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "full")]
    #[arg(conflicts_with_all = ["markdown", "all", "only"], hide_possible_values = true)]
    pub json: Option<Json>,
    /// Print Markdown, for a pull request.
    #[arg(long)]
    pub markdown: bool,
    /// Print all, and not what fits one screen.
    #[arg(long, conflicts_with = "only")]
    pub all: bool,
    /// Print only these: kernels,steps.
    #[arg(long, value_enum, value_name = "PARTS", value_delimiter = ',')]
    pub only: Vec<Section>,
    /// Print so many rows of each table with --all or --only, 10 without it.
    #[arg(long, value_name = "COUNT", conflicts_with = "json")]
    pub rows: Option<NonZeroUsize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("80x24"), Ok((80, 24)));
        assert!(size("80").is_err() && size("0x5").is_err() && size("80x99999").is_err());
    }

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

//! How the screen is drawn, for every command.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How the screen is drawn.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Screen")]
pub struct ScreenArgs {
    /// Colours to use.
    #[arg(long, global = true, value_enum)]
    pub color: Option<Color>,
    /// Which colours: for a dark or a light background, for eyes that do not tell red from green.
    #[arg(long, global = true, value_enum)]
    pub theme: Option<Palette>,
    /// Use ASCII instead of block and box characters.
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Read this configuration instead of the usual one (see `cuptop config`).
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Which colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Palette {
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

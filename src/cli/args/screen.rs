//! How the screen is drawn, for every command.

use clap::{Args, ValueEnum};

/// How the screen is drawn.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Screen")]
pub struct ScreenArgs {
    /// Colours to use.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: Color,
    /// Use ASCII instead of block and box characters.
    #[arg(long, global = true)]
    pub ascii: bool,
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

//! `cuptop export`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::clock::OnClock;
use super::first::{First, Replayed};
use super::values::size;
use crate::export::FORMATS;

/// What a stack weighs in collapsed stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weigh {
    /// Microseconds of GPUs' idle time, by the stacks of the threads that launch.
    Idle,
    /// Samples of all threads.
    Samples,
    /// Microseconds of all threads, by the Python functions that the program's own profiler recorded.
    Time,
}

/// `cuptop export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Traces; several make one timeline. `-` is standard input.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// The format; without it, what the ending of the file's name asks for.
    #[arg(long, value_name = "FORMAT", required_unless_present = "output", value_parser = PossibleValuesParser::new(FORMATS.map(|format| format.name)))]
    pub to: Option<String>,
    /// The file to write, compressed where its name ends in .gz; standard output without it.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// With --to folded: what a stack weighs.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub weight: Option<Weigh>,
    /// Size of the screen for pictures.
    #[arg(long, value_name = "COLSxROWS", default_value = "120x40", value_parser = size)]
    pub size: (u16, u16),
    /// What is shown first, in pictures.
    #[command(flatten)]
    pub first: First,
    /// Whether it is played.
    #[command(flatten)]
    pub replayed: Replayed,
    /// On which clock it is shown.
    #[command(flatten)]
    pub clock: OnClock,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long)]
    pub anonymous: bool,
}

//! `cuptop open`.

use std::path::PathBuf;

use clap::Args;

use super::clock::OnClock;
use super::first::{First, Replayed};
use super::values::{Picture, size_of_memory};

/// `cuptop open`.
#[derive(Debug, Args)]
pub struct Open {
    /// Traces; several make one timeline. `-` is standard input. HOST:DIR is a recording, or a job's directory, on another machine: it is
    /// followed over ssh (CUPTOP_SSH names another program), with cuptop on that machine too.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// How much memory this program may take while it follows a job that still runs; beyond, single records of the oldest stretch
    /// are let go, and their sums stay.
    #[arg(long, value_name = "SIZE", default_value = "2 GiB", value_parser = size_of_memory)]
    pub memory: u64,
    /// On which clock it is shown.
    #[command(flatten)]
    pub clock: OnClock,
    /// Where the picture goes, if one is wanted.
    #[command(flatten)]
    pub picture: Picture,
    /// What is shown first.
    #[command(flatten)]
    pub first: First,
    /// Whether it is played.
    #[command(flatten)]
    pub replayed: Replayed,
}

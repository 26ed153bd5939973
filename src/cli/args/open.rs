//! `cuptop open`.

use std::path::PathBuf;

use clap::Args;

use super::first::{First, Replayed};
use super::values::Picture;

/// `cuptop open`.
#[derive(Debug, Args)]
pub struct Open {
    /// Traces; several make one timeline. `-` is standard input.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
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

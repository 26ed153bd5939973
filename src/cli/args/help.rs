//! What the program says of itself: `cuptop help`, `man` and `completions`, and what a shell is offered.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, SubcommandCandidates, ValueCompleter,
};

use crate::bundled::LIBRARY;

/// `cuptop help`.
#[derive(Debug, Args)]
pub struct Help {
    /// A command, or a page: scenarios, findings, json, scripts.
    pub topic: Option<String>,
}

/// `cuptop doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print it as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `cuptop man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
}

/// `cuptop completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub struct Completions {
    /// The shell.
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    pub shell: String,
}

const COMPLETIONS_HELP: &str = "\
bash  source <(cuptop completions bash)      in ~/.bashrc
zsh   source <(cuptop completions zsh)       in ~/.zshrc, after compinit
fish  cuptop completions fish | source       in ~/.config/fish/config.fish";

/// Names of bundled scenarios, and scenario files.
pub(super) fn scenarios() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let typed = current.to_string_lossy();
        let fitting = names().filter(|name| name.starts_with(&*typed));
        let mut all: Vec<CompletionCandidate> = fitting.map(CompletionCandidate::new).collect();
        let is_scenario = |path: &std::path::Path| path.extension().is_some_and(|e| e == "toml");
        all.extend(PathCompleter::file().filter(is_scenario).complete(current));
        all
    })
}

/// What may stand where a command does: names of bundled scenarios.
pub(super) fn bare_words() -> SubcommandCandidates {
    SubcommandCandidates::new(|| names().map(CompletionCandidate::new).collect())
}

fn names() -> impl Iterator<Item = &'static str> {
    LIBRARY.names()
}

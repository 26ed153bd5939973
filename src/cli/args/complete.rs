//! What a shell is offered for a word that is half typed.

use std::ffi::OsStr;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, SubcommandCandidates, ValueCompleter,
};

use crate::scenario::bundled::SCENARIOS;

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
    SCENARIOS.iter().map(|scenario| scenario.name)
}

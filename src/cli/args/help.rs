//! `cuptop help`, `man` and `completions`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `cuptop help`.
#[derive(Debug, Args)]
pub struct Help {
    /// A command, or a page: scenarios, findings, json.
    pub topic: Option<String>,
}

/// `cuptop man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The page of this command; without it, that of the program.
    #[arg(conflicts_with = "output")]
    pub command: Option<String>,
    /// Write the pages of all commands into this folder.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// `cuptop completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub struct Completions {
    /// The shell.
    pub shell: Shell,
}

const COMPLETIONS_HELP: &str = "\
bash  source <(cuptop completions bash)      in ~/.bashrc
zsh   source <(cuptop completions zsh)       in ~/.zshrc, after compinit
fish  cuptop completions fish | source       in ~/.config/fish/config.fish";

/// Shells whose command lines can be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
        }
    }
}

//! How a command ends: an exit code, and one message on standard error.

use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::activity::feed::{Failure, FailureKind};
use crate::tui::StartError;

/// Everything went well.
pub(super) const FINE: u8 = 0;
/// An expectation failed.
pub(super) const EXPECTATION: u8 = 1;
/// The input or the command line is wrong.
pub(super) const INPUT: u8 = 2;
/// The machine cannot do it.
pub(super) const MACHINE: u8 = 3;
/// The watched program failed, and its own code cannot be passed on.
pub(super) const PROGRAM: u8 = 4;

/// Why a command ends early: what to print, and the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// The exit code.
    pub(super) code: u8,
    /// What went wrong, in a sentence or two. May hold several lines (diagnostics).
    pub(super) message: String,
    /// What would help; may be empty.
    pub(super) help: String,
}

impl Ending {
    /// The input is wrong.
    pub(super) fn input(message: impl Display) -> Self {
        Ending {
            code: INPUT,
            message: message.to_string(),
            help: String::new(),
        }
    }

    /// The machine cannot do it.
    pub(super) fn machine(message: impl Display) -> Self {
        Ending {
            code: MACHINE,
            message: message.to_string(),
            help: String::new(),
        }
    }

    /// The same with a word of help.
    #[must_use]
    pub(super) fn help(mut self, help: impl Display) -> Self {
        self.help = help.to_string();
        self
    }

    /// Prints it and returns its code.
    #[must_use]
    pub(super) fn report(&self) -> ExitCode {
        let mut err = std::io::stderr().lock();
        // Nobody is left to tell when standard error is gone.
        if !self.message.is_empty() {
            let is_rendered = self.message.starts_with("error") || self.message.contains('\u{1b}');
            let lead = if is_rendered { "" } else { "cuptop: " };
            let _ = writeln!(err, "{lead}{}", self.message.trim_end());
        }
        if !self.help.is_empty() {
            let _ = writeln!(err, "  help: {}", self.help);
        }
        ExitCode::from(self.code)
    }
}

impl Ending {
    /// The same for the screen, which shows it and hands it back when the user leaves. `file` is what
    /// must change for another try.
    #[must_use]
    pub(super) fn for_screen(self, file: Option<PathBuf>) -> StartError {
        let kind = match self.code {
            MACHINE => FailureKind::Machine,
            INPUT => FailureKind::Input,
            code => FailureKind::Program {
                code: i32::from(code),
            },
        };
        StartError {
            failure: Failure {
                kind,
                message: self.message,
                help: self.help,
            },
            file,
        }
    }
}

impl From<Failure> for Ending {
    fn from(failure: Failure) -> Self {
        Ending {
            code: code_of(failure.kind),
            message: failure.message,
            help: failure.help,
        }
    }
}

/// The exit code for a failure. A program's own code is passed on where it fits.
#[must_use]
pub(super) fn code_of(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Input => INPUT,
        FailureKind::Machine => MACHINE,
        FailureKind::Program { code } => u8::try_from(code)
            .ok()
            .filter(|&c| c != 0)
            .unwrap_or(PROGRAM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_start_keeps_its_code_and_its_help_across_the_screen() {
        for ending in [
            Ending::machine("no GPU").help("--sim needs none"),
            Ending::input("no such scenario"),
        ] {
            let error = ending.clone().for_screen(None);
            assert_eq!(Ending::from(error.failure), ending);
        }
    }

    #[test]
    fn a_programs_own_code_is_passed_on() {
        assert_eq!(code_of(FailureKind::Program { code: 137 }), 137);
        assert_eq!(code_of(FailureKind::Program { code: 0 }), PROGRAM);
        assert_eq!(code_of(FailureKind::Program { code: -1 }), PROGRAM);
        assert_eq!(code_of(FailureKind::Machine), MACHINE);
    }
}

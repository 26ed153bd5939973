//! How a command ends: an exit code, and one message on standard error.

use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::tui::StartError;
use activity::feed::{Failure, FailureKind};
use activity::text::printable_lines;

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

/// Turns the signal for a file beyond the limit of its size (`ulimit -f`) into a write error, as on a full disk. The
/// signal would end the program and leave the terminal as the screen had it. It is a handler and does not ignore the
/// signal, because programs that we start would inherit that.
pub(super) fn survive_file_size_limits() {
    let nobody_asks = Arc::new(AtomicBool::new(false));
    // If registering fails, nothing changes.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, nobody_asks);
}

/// A message for standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// A sentence or two, as somebody wrote it. The program's name goes before it, and it may hold text that a terminal
    /// would obey.
    Plain(String),
    /// Diagnostics: laid out, coloured, and fit to be shown.
    Rendered(String),
}

impl Text {
    fn shown(&self) -> String {
        match self {
            Text::Plain(text) if text.is_empty() => String::new(),
            Text::Plain(text) => format!("cuptop: {}\n", printable_lines(text.trim_end())),
            Text::Rendered(text) => format!("{}\n", text.trim_end()),
        }
    }
}

/// Why a command ends early: what to print, and the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// The exit code.
    pub(super) code: u8,
    /// What went wrong.
    pub(super) message: Text,
    /// What would help; may be empty.
    pub(super) help: String,
}

impl Ending {
    /// The input is wrong.
    pub(super) fn input(message: impl Display) -> Self {
        Ending {
            code: INPUT,
            message: Text::Plain(message.to_string()),
            help: String::new(),
        }
    }

    /// The machine cannot do it.
    pub(super) fn machine(message: impl Display) -> Self {
        Ending {
            code: MACHINE,
            message: Text::Plain(message.to_string()),
            help: String::new(),
        }
    }

    /// The input is wrong, and diagnostics say where.
    pub(super) fn diagnostics(rendered: String) -> Self {
        Ending {
            code: INPUT,
            message: Text::Rendered(rendered),
            help: String::new(),
        }
    }

    /// Adds a sentence of help.
    #[must_use]
    pub(super) fn help(mut self, help: impl Display) -> Self {
        self.help = help.to_string();
        self
    }

    /// The whole printed text, every line ended.
    fn shown(&self) -> String {
        let mut shown = self.message.shown();
        if !self.help.is_empty() {
            shown.push_str(&format!("  help: {}\n", printable_lines(&self.help)));
        }
        shown
    }

    /// Prints it and returns its code.
    #[must_use]
    pub(super) fn report(&self) -> ExitCode {
        let mut err = std::io::stderr().lock();
        // Without standard error nobody is left to tell.
        let _ = err.write_all(self.shown().as_bytes());
        ExitCode::from(self.code)
    }
}

impl Ending {
    /// The same for the screen, which shows it and hands it back when the user leaves. The user must change `file` for
    /// another try.
    #[must_use]
    pub(super) fn for_screen(self, file: Option<PathBuf>) -> StartError {
        let kind = match self.code {
            MACHINE => FailureKind::Machine,
            INPUT => FailureKind::Input,
            code => FailureKind::Program {
                code: i32::from(code),
            },
        };
        let is_rendered = matches!(self.message, Text::Rendered(_));
        let (Text::Plain(message) | Text::Rendered(message)) = self.message;
        StartError {
            failure: Failure::new(kind, message, self.help),
            is_rendered,
            file,
        }
    }
}

impl From<StartError> for Ending {
    fn from(error: StartError) -> Self {
        let mut ending = Ending::from(error.failure);
        if error.is_rendered
            && let Text::Plain(text) = ending.message
        {
            ending.message = Text::Rendered(text);
        }
        ending
    }
}

impl From<Failure> for Ending {
    fn from(failure: Failure) -> Self {
        Ending {
            code: code_of(failure.kind),
            message: Text::Plain(failure.message),
            help: failure.help,
        }
    }
}

/// The exit code for a failure. A program's own code is passed on where it fits.
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
            Ending::diagnostics("error: it is wrong".to_owned()),
        ] {
            let error = ending.clone().for_screen(None);
            assert_eq!(Ending::from(error), ending);
        }
    }

    #[test]
    fn a_programs_own_code_is_passed_on() {
        assert_eq!(code_of(FailureKind::Program { code: 137 }), 137);
        assert_eq!(code_of(FailureKind::Program { code: 0 }), PROGRAM);
        assert_eq!(code_of(FailureKind::Program { code: -1 }), PROGRAM);
        assert_eq!(code_of(FailureKind::Machine), MACHINE);
    }

    #[test]
    fn only_diagnostics_stand_as_they_are() {
        let plain = Ending::input("error.toml: no such file\u{1b}[2J").help("look\u{202e}");
        assert_eq!(
            plain.shown(),
            "cuptop: error.toml: no such file\\u{1b}[2J\n  help: look\\u{202e}\n"
        );
        let rendered = Ending::diagnostics("\u{1b}[31merror\u{1b}[0m: it is wrong\n".to_owned());
        assert_eq!(rendered.shown(), "\u{1b}[31merror\u{1b}[0m: it is wrong\n");
    }
}

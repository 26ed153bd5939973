//! How a command ends: an exit code, and one message on standard error.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use activity::feed::{Failure, FailureKind, Outcome};
use activity::text::{printable_lines, wrap};

/// Everything went well.
pub(super) const FINE: u8 = 0;
/// An expectation failed.
pub(super) const EXPECTATION: u8 = 1;
/// The input or the command line is wrong.
pub(super) const INPUT: u8 = 2;
/// The machine cannot do it.
pub(super) const MACHINE: u8 = 3;

/// Turns the signal for a file beyond the limit of its size (`ulimit -f`) into a write error, as on a full disk. The
/// signal would end the program and leave the terminal as the screen had it. It is a handler and does not ignore the
/// signal, because programs that we start would inherit that.
pub(super) fn survive_file_size_limits() {
    let nobody_asks = Arc::new(AtomicBool::new(false));
    // If registering fails, nothing changes.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, nobody_asks);
}

/// How a command ends that made a timeline: with this code where that has come to its end.
pub(super) fn ended(outcome: Outcome, code: u8) -> Result<u8, Ending> {
    match outcome {
        Outcome::Complete => Ok(code),
        Outcome::Stopped => Err(Ending::input("it was stopped before its end")),
        Outcome::Failed(failure) => Err(failure.into()),
    }
}

/// Why a command ends early: what to print, and the exit code. What cannot start on the screen ends so, too.
pub(super) use crate::tui::StartError as Ending;

impl Ending {
    /// The input is wrong.
    pub(super) fn input(message: impl Display) -> Self {
        Failure::new(FailureKind::Input, message.to_string(), "").into()
    }

    /// The machine cannot do it.
    pub(super) fn machine(message: impl Display) -> Self {
        Failure::new(FailureKind::Machine, message.to_string(), "").into()
    }

    /// The input is wrong, and diagnostics say where.
    pub(super) fn diagnostics(rendered: String) -> Self {
        let is_rendered = true;
        Ending {
            is_rendered,
            ..Ending::input(rendered)
        }
    }

    pub(super) fn help(mut self, help: impl Display) -> Self {
        self.failure.help = help.to_string();
        self
    }

    /// The whole printed text, every line ended. In a terminal of so many columns no word is broken.
    fn shown_in(&self, columns: Option<usize>) -> String {
        let shown = self.shown();
        let Some(columns) = columns.filter(|_| !self.is_rendered) else {
            return shown;
        };
        let wrapped = |line: &str| -> String {
            let words = line.trim_start();
            let indent = &line[..line.len() - words.len()];
            let lines = wrap(words, columns.saturating_sub(indent.len()));
            lines.iter().map(|it| format!("{indent}{it}\n")).collect()
        };
        shown.lines().map(wrapped).collect()
    }

    /// The same in lines as long as they are.
    fn shown(&self) -> String {
        let message = self.failure.message.trim_end();
        let mut shown = match self.is_rendered {
            true => format!("{message}\n"),
            false if message.is_empty() => String::new(),
            false => format!("cuptop: {}\n", printable_lines(message)),
        };
        if !self.failure.help.is_empty() {
            shown.push_str(&format!(
                "  help: {}\n",
                printable_lines(&self.failure.help)
            ));
        }
        shown
    }

    /// Prints it and returns its code.
    pub(super) fn report(&self) -> ExitCode {
        let mut err = std::io::stderr().lock();
        // Without standard error nobody is left to tell.
        let columns = err.is_terminal().then(crossterm::terminal::size);
        let columns = columns.and_then(|it| Some(usize::from(it.ok()?.0)));
        let _ = err.write_all(self.shown_in(columns).as_bytes());
        ExitCode::from(self.failure.kind.code())
    }
}

impl From<Failure> for Ending {
    fn from(failure: Failure) -> Self {
        Ending {
            failure,
            is_rendered: false,
            file: None,
            still: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_own_code_is_passed_on() {
        assert_eq!(FailureKind::Program { code: 137 }.code(), 137);
        assert_eq!(FailureKind::Program { code: 0 }.code(), 4);
        assert_eq!(FailureKind::Program { code: -1 }.code(), 4);
        assert_eq!(FailureKind::Machine.code(), MACHINE);
    }

    #[test]
    fn only_diagnostics_stand_as_they_are() {
        let plain = Ending::input("error.toml: no such file\u{1b}[2J").help("look\u{202e}");
        assert_eq!(
            plain.shown(),
            "cuptop: error.toml: no such file\\u{1b}[2J\n  help: look\\u{202e}\n"
        );
        // By hand: 22 columns hold the first three words.
        let long = Ending::input("it is understood by nobody").help("ask");
        let lines = long.shown_in(Some(22));
        assert_eq!(lines, "cuptop: it is\nunderstood by nobody\n  help: ask\n");
        let rendered = Ending::diagnostics("\u{1b}[31merror\u{1b}[0m: it is wrong\n".to_owned());
        assert_eq!(rendered.shown(), "\u{1b}[31merror\u{1b}[0m: it is wrong\n");
    }
}

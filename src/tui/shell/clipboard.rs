//! Copying to the clipboard of the terminal that a person sits at, which may be on another machine.
//!
//! OSC 52 asks a terminal, which does not answer. Nobody knows whether it took the text, so the screen does not say. By
//! default, tmux takes it from no program. Its own command asks it, and says whether it did.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crossterm::clipboard::CopyToClipboard;
use crossterm::execute;

use activity::text::plural;

/// The most that is copied, bytes: what terminals take at the least.
const MOST: usize = 64 * 1024;

/// Who can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    Terminal,
    /// tmux, which hands it on.
    Tmux,
    /// Nobody: GNU screen passes on no clipboard.
    Nobody,
}

impl Keeper {
    /// By the environment.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Keeper {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if is_set("TMUX") {
            Keeper::Tmux
        } else if is_set("STY") {
            Keeper::Nobody
        } else {
            Keeper::Terminal
        }
    }
}

/// Copies a text, cut where it is longer than terminals take, and says what was done.
///
/// # Errors
/// Why it was not copied.
pub(super) fn copy(text: &str, terminal: &mut impl Write) -> Result<String, String> {
    let text = bounded(text);
    let words = plural(text.chars().count() as u64, "character");
    match Keeper::of(|name| std::env::var(name).ok()) {
        Keeper::Terminal => {
            execute!(terminal, CopyToClipboard::to_clipboard_from(text))
                .map_err(|error| format!("not copied: {error}"))?;
            Ok(format!(
                "copied {words}, if the terminal lets programs do so"
            ))
        }
        Keeper::Tmux => {
            // With the terminal's clipboard from tmux 3.2 on, else into tmux's buffer alone.
            if give("tmux", &["load-buffer", "-w", "-"], text).is_ok() {
                Ok(format!(
                    "copied {words} to tmux, which hands them to the terminal"
                ))
            } else {
                give("tmux", &["load-buffer", "-"], text)
                    .map_err(|error| format!("not copied: {error}"))?;
                Ok(format!("copied {words} into tmux's buffer"))
            }
        }
        Keeper::Nobody => Err("not copied: GNU screen passes on no clipboard".to_owned()),
    }
}

/// As much of a text as is copied.
fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST)]
}

fn give(program: &str, arguments: &[&str], text: &str) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Dropped when it is written: the program sees the end.
    let written = child
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let status = child.wait()?;
    written?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{program} ended with {status}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_follows_from_the_environment() {
        let of =
            |set: &[&str]| Keeper::of(|name| set.contains(&name).then(|| "something".to_owned()));
        assert_eq!(of(&[]), Keeper::Terminal);
        assert_eq!(of(&["TMUX"]), Keeper::Tmux);
        assert_eq!(of(&["STY"]), Keeper::Nobody);
        assert_eq!(of(&["TMUX", "STY"]), Keeper::Tmux);
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(bounded("gemm"), "gemm");
        let long = "é".repeat(MOST);
        assert_eq!(bounded(&long).chars().count(), MOST / 2);
    }

    #[test]
    fn a_program_that_fails_is_no_copy() {
        assert!(give("false", &[], "text").is_err());
        assert!(give("no-such-program-here", &[], "text").is_err());
        assert!(give("cat", &[], "text").is_ok());
    }
}

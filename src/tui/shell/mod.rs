//! The shell around the app: terminal, threads, clock.

mod clipboard;
mod events;
mod frame_log;
mod guard;
mod input;
mod mouse;
mod output;
mod pace;
mod signals;
mod watch;

use std::ffi::OsString;
use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::Command;

use crossbeam_channel::{Sender, bounded};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use signal_hook::consts::{SIGHUP, SIGTSTP};

pub use events::{Host, Loop};
use guard::Guard;
pub use input::Input;
use input::InputThread;
use output::Frames;
use signals::SignalThread;
pub use signals::end_at_once;

use super::{Exit, Session};

/// Inputs that may wait; a hand on the keyboard never gets there.
const INPUTS: usize = 1024;

/// Whether there is a terminal that keys can come from: standard input, or else the one that the process belongs to.
pub fn has_keyboard() -> bool {
    input::terminal().is_ok()
}

/// Takes over the terminal and runs until the user leaves, a signal comes, or the terminal is gone.
/// The terminal is as it was when this returns, also by a panic.
///
/// # Errors
/// When the terminal cannot be set up, read or written.
pub fn run(session: Session<'_>) -> io::Result<Exit> {
    let (sender, inputs) = bounded(INPUTS);
    // First who hears signals: one that comes between the two would leave the terminal as the screen has it.
    let signals = SignalThread::start(sender.clone())?;
    let guard = Guard::enter(sender.clone())?;
    let mut host = RealHost {
        input: Some(InputThread::start(sender.clone())?),
        _guard: guard,
        sender,
    };
    let is_synchronized = std::env::var_os("TMUX").is_none();
    let backend = CrosstermBackend::new(Frames::new(io::stdout(), is_synchronized));
    // Its drop would print, and panic, where the terminal is gone; the guard does all that it would.
    // The loop gives it its size.
    let viewport = Viewport::Fixed(Rect::ZERO);
    let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
    let mut terminal = ManuallyDrop::new(terminal);
    let result = Loop::new(session, &mut *terminal, &mut host, inputs).run();
    // First the thread that uses the terminal, then the terminal, which may take no bytes: who gives it up then goes last.
    drop(host.input.take());
    drop(host);
    let signal = signals.end();
    match result {
        Err(_) if signal.is_some() || input::is_gone() => Ok(Exit {
            signal: signal.or(Some(SIGHUP)),
            ..Exit::default()
        }),
        // The write noticed before the thread that waits for it.
        result => result,
    }
}

/// The terminal that a person sits at.
struct RealHost {
    input: Option<InputThread>,
    _guard: Guard,
    sender: Sender<Input>,
}

impl RealHost {
    /// Gives the terminal back while something else is done.
    fn aside(&mut self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        drop(self.input.take());
        guard::give_back();
        let result = work();
        guard::take_over()?;
        self.input = Some(InputThread::start(self.sender.clone())?);
        result
    }
}

impl Host for RealHost {
    fn suspend(&mut self) -> io::Result<()> {
        // Stops this process as the terminal's own Ctrl-Z would; goes on here after SIGCONT.
        self.aside(|| signal_hook::low_level::emulate_default_handler(SIGTSTP))
    }

    fn copy(&mut self, text: &str) -> Result<String, String> {
        clipboard::copy(text, &mut io::stdout())
    }

    fn edit(&mut self, file: &Path, line: Option<u32>) -> io::Result<()> {
        self.aside(|| edit(file, line))
    }
}

/// Runs $VISUAL or $EDITOR on a file.
fn edit(file: &Path, line: Option<u32>) -> io::Result<()> {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR"));
    edit_by(editor.as_deref().unwrap_or("vi"), file, line)
}

/// A shell reads what the editor is called, as git has it: it may have arguments, and quotes around blanks.
fn edit_by(editor: &str, file: &Path, line: Option<u32>) -> io::Result<()> {
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$@\""), editor])
        .args(place(editor, file, line))
        .status()
        .map_err(|e| io::Error::new(e.kind(), format!("cannot run {editor}: {e}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{editor} ended with {status}")))
    }
}

/// How an editor is told of a line.
fn place(editor: &str, file: &Path, line: Option<u32>) -> Vec<OsString> {
    let Some(line) = line else {
        return vec![file.into()];
    };
    let program = editor.split_whitespace().next().unwrap_or(editor);
    let mut at = file.as_os_str().to_owned();
    at.push(format!(":{line}"));
    match program.rsplit('/').next().unwrap_or(program) {
        "code" | "codium" | "cursor" => vec!["--goto".into(), at],
        "hx" | "helix" | "zed" | "subl" => vec![at],
        // As vi has it.
        _ => vec![format!("+{line}").into(), file.into()],
    }
}

#[cfg(test)]
mod tests;

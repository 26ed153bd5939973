//! The terminal's state: taken over, and given back in every case.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::Sender;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

use super::input::{self, Input};

/// Whether the terminal is ours now: the panic hook and the guard may both want to give it back.
static IS_OURS: AtomicBool = AtomicBool::new(false);

type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync + 'static>;

/// Holds the terminal: raw mode, alternate screen, mouse, no cursor. Gives it back when dropped.
pub(super) struct Guard {
    before: std::sync::Arc<std::sync::Mutex<Option<Hook>>>,
}

impl Guard {
    /// Takes the terminal over. A panic of this thread gives it back before its message is printed. A panic of any
    /// other thread leaves the screen alone and goes to `inputs` as a line of the log.
    pub(super) fn enter(inputs: Sender<Input>) -> io::Result<Guard> {
        take_over()?;
        let before = std::sync::Arc::new(std::sync::Mutex::new(Some(panic::take_hook())));
        let ours = std::sync::Arc::clone(&before);
        let ui = thread::current().id();
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == ui {
                give_back();
                if let Ok(hook) = ours.lock()
                    && let Some(hook) = hook.as_ref()
                {
                    hook(info);
                }
            } else {
                let name = thread::current().name().unwrap_or("unnamed").to_owned();
                let text = format!("the thread \"{name}\" failed: {info}").replace('\n', " ");
                // A full queue means that the screen is busy enough; the feed's end says the rest.
                let _ = inputs.try_send(Input::ThreadFailed(text));
            }
        }));
        Ok(Guard { before })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
        // The hook cannot be changed by a thread that panics; then the process is on its way out.
        if !thread::panicking()
            && let Some(hook) = self.before.lock().ok().and_then(|mut h| h.take())
        {
            panic::set_hook(hook);
        }
    }
}

pub(super) fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    IS_OURS.store(true, Ordering::SeqCst);
    // A read takes what is there. crossterm reads on as long as it has no whole key, and would not come back.
    let terminal = input::terminal()?;
    let mut modes = tcgetattr(&terminal)?;
    modes.special_codes[SpecialCodeIndex::VMIN] = 0;
    tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    let entered = execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableMouseCapture,
        cursor::Hide
    );
    if entered.is_err() {
        give_back();
    }
    entered
}

/// How long the screen may take to give the terminal back after a signal.
pub(super) const PATIENCE: Duration = Duration::from_millis(1_500);

/// Gives a terminal up that takes no bytes, without a byte to it. A write that waits for it goes nowhere from now on.
pub(super) fn give_up() {
    let out = io::stdout();
    let mut watched = [PollFd::new(&out, PollFlags::OUT)];
    let now = Timespec::default();
    if !matches!(rustix::event::poll(&mut watched, Some(&now)), Ok(0)) {
        return;
    }
    if IS_OURS.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
    }
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
        if io::stderr().is_terminal() {
            let _ = rustix::stdio::dup2_stderr(&nowhere);
        }
        // Whatever signal has a handler interrupts the write. The system begins it anew, on what standard output is now.
        let _ = kill_process(getpid(), Signal::WINCH);
    }
}

pub(super) fn give_back() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // Whatever can still be put right is; a terminal that is gone needs nothing.
    let _ = execute!(out, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

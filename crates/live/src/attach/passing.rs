//! Signals to us that are passed on to the program that we started, at once and from whichever thread they come to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A program that was asked to end takes the time that it needs, for a checkpoint. It is killed when somebody asks once more
/// after this time, or for the third time.
const AGAIN: Duration = Duration::from_secs(30);

/// The program behind the screen, for signals to that.
static SHOWN: Mutex<Shown> = Mutex::new(Shown {
    program: None,
    early: None,
});

/// The program behind a screen.
struct Shown {
    program: Option<Arc<Passing>>,
    /// The signal that asked it to end while it was being started: it may run already then.
    early: Option<i32>,
}

impl Shown {
    fn pass_on(&mut self, signal: i32) {
        if !Signal::from_named_raw(signal).is_some_and(asks) {
            return;
        }
        match &self.program {
            Some(passing) => passing.pass(signal, false),
            None => self.early = Some(signal),
        }
    }

    fn show(&mut self, passing: &Arc<Passing>) {
        self.program = Some(Arc::clone(passing));
        if let Some(signal) = self.early.take() {
            passing.pass(signal, false);
        }
    }
}

/// The way to a program. Whoever waits for it has its lock, so that no signal goes to an id that was given back.
pub(super) struct Passing(Mutex<Traced>);

struct Traced {
    pid: Option<Pid>,
    /// Whether it leads a process group of its own.
    own_group: bool,
    /// When it was asked to end first, and how often it was.
    asked: Option<(Instant, u32)>,
    /// Whether we killed it.
    was_killed: bool,
    /// Its exit code, or 128 and the signal that ended it.
    code: Option<i32>,
}

impl Passing {
    /// The way to a process that has just been started.
    pub(super) fn to(id: u32, own_group: bool) -> Arc<Passing> {
        Arc::new(Passing(Mutex::new(Traced {
            pid: i32::try_from(id).ok().and_then(Pid::from_raw),
            own_group,
            asked: None,
            was_killed: false,
            code: None,
        })))
    }

    /// From now on this is the program that [`pass_on`] speaks of.
    pub(super) fn show(self: &Arc<Self>) {
        shown().show(self);
    }

    fn state(&self) -> MutexGuard<'_, Traced> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the program ended. As long as that is not known, `wait` looks.
    pub(super) fn ended(&self, wait: impl FnOnce() -> Option<i32>) -> Option<i32> {
        let mut state = self.state();
        state.code = state.code.or_else(wait);
        state.code
    }

    /// Whether somebody has asked it to end.
    pub(super) fn was_asked(&self) -> bool {
        self.state().asked.is_some()
    }

    /// Whether it was we who killed it.
    pub(super) fn was_killed(&self) -> bool {
        self.state().was_killed
    }

    pub(super) fn send(&self, signal: Signal) {
        self.state().send(signal);
    }

    /// Passes a signal on, unless a key sent it: a terminal sends that to the program, too.
    pub(super) fn pass(&self, signal: i32, is_from_key: bool) {
        // Real-time signals have no names: what they are for is to end.
        let signal = Signal::from_named_raw(signal).unwrap_or(Signal::TERM);
        let mut state = self.state();
        if asks(signal) && state.code.is_none() {
            let now = Instant::now();
            let (first, times) = state.asked.unwrap_or((now, 0));
            state.asked = Some((first, times + 1));
            if times >= 2 || (times == 1 && now - first > AGAIN) {
                return state.send(Signal::KILL);
            }
        }
        if !is_from_key {
            state.send(signal);
        }
    }
}

impl Traced {
    fn send(&mut self, signal: Signal) {
        self.was_killed |= signal == Signal::KILL && self.code.is_none();
        // A program that was waited for has given its id back. Its group may live on.
        if let Some(pid) = self.pid.filter(|_| self.code.is_none() || self.own_group) {
            let _ = if self.own_group {
                kill_process_group(pid, signal)
            } else {
                kill_process(pid, signal)
            };
        }
    }
}

fn asks(signal: Signal) -> bool {
    matches!(
        signal,
        Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT
    )
}

fn shown() -> MutexGuard<'static, Shown> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes a signal that asks to end on to the program behind the screen. From then on it lives as long as it likes.
pub fn pass_on(signal: i32) {
    shown().pass_on(signal);
}

/// How the program behind the screen ended after it was asked to: its exit code, or 128 and the signal.
pub fn ended_when_asked() -> Option<i32> {
    let passing = shown().program.clone()?;
    let state = passing.state();
    state.asked.and(state.code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command};

    /// A shell that has come to the `echo` of its script.
    fn shell(script: &str) -> Child {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut ready = [0];
        let mut out = child.stdout.take().expect("a pipe");
        std::io::Read::read_exact(&mut out, &mut ready).expect("the trap stands");
        child
    }

    /// A program that runs before whoever started it has come back from that.
    #[test]
    fn who_asks_while_the_program_is_started_asks_the_program() {
        let mut child = shell("trap 'exit 7' TERM; echo; while :; do sleep 0.01; done");
        let (passing, mut shown) = (
            Passing::to(child.id(), false),
            Shown {
                program: None,
                early: None,
            },
        );
        shown.pass_on(libc::SIGWINCH);
        shown.pass_on(libc::SIGTERM);
        shown.show(&passing);
        assert_eq!(child.wait().expect("a child").code(), Some(7));
        assert!(passing.was_asked());
    }

    /// A program that ignores what it can: two requests do nothing, the third one kills it, and so does a second one that comes late.
    #[test]
    fn who_asks_three_times_or_again_after_half_a_minute_means_it() {
        for (is_late, asked) in [(false, 3), (true, 2)] {
            let mut child = shell("trap '' TERM INT; echo; exec sleep 60");
            let passing = Passing::to(child.id(), false);
            for nth in 1..=asked {
                assert!(child.try_wait().expect("a child").is_none(), "{nth}");
                assert!(!passing.was_killed(), "{nth}");
                passing.pass([15, 2, 15][nth - 1], false);
                if let (true, Some((first, _))) = (is_late, &mut passing.state().asked) {
                    *first = first
                        .checked_sub(AGAIN)
                        .expect("the machine runs for longer");
                }
            }
            assert_eq!(child.wait().expect("a child").signal(), Some(9));
            assert!(passing.was_killed());
        }
    }
}

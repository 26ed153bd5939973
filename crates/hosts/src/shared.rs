//! State that a link's thread and the timeline's share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::mirror::Mirror;

/// The most lines and notices that wait for the screen.
const MOST_NOTICES: usize = 200;

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is made for the first time.
    Connecting,
    Up,
    /// It will be made again after a while.
    Down,
    /// It failed the first time, and is not made again.
    Failed,
}

/// Clones share one state.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    mirror: Mirror,
    phase: Phase,
    /// Why it is down, or was last.
    why: String,
    /// When the last bytes came, or the link last owed no response.
    heard: Instant,
    /// Whether an answer is due.
    is_waiting: bool,
    is_caught_up: bool,
    /// Notices: whether each is a warning, and its text.
    notices: Vec<(bool, String)>,
    dropped: u64,
}

/// A link's state, for the timeline.
#[derive(Clone, Debug)]
pub(super) struct LinkState {
    pub(super) phase: Phase,
    pub(super) why: String,
    /// How long a request has waited for bytes.
    pub(super) silent: Duration,
    pub(super) is_caught_up: bool,
}

impl Shared {
    pub(super) fn new(mirror: Mirror) -> Shared {
        Shared(Arc::new(Mutex::new(State {
            mirror,
            phase: Phase::Connecting,
            why: String::new(),
            heard: Instant::now(),
            is_waiting: true,
            is_caught_up: false,
            notices: Vec::new(),
            dropped: 0,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // A thread that panicked left each field whole.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn mirror<T>(&self, act: impl FnOnce(&mut Mirror) -> T) -> T {
        self.with(|state| act(&mut state.mirror))
    }

    pub(super) fn is_up(&self) -> bool {
        self.with(|state| state.phase == Phase::Up)
    }

    pub(super) fn enter(&self, phase: Phase, why: &str) {
        self.with(|state| {
            state.phase = phase;
            why.clone_into(&mut state.why);
            state.is_caught_up = false;
        });
    }

    /// A response is due since `heard`.
    pub(super) fn waits(&self, heard: Instant) {
        self.with(|state| {
            if state.phase == Phase::Up {
                (state.is_waiting, state.heard) = (true, heard);
            }
        });
    }

    /// A response came to its end.
    pub(super) fn answered(&self, is_caught_up: bool, host: &str) {
        let silent = self.with(|state| {
            let now = Instant::now();
            let was_down = state.phase == Phase::Down;
            let silent = now.duration_since(state.heard);
            (state.phase, state.heard, state.is_waiting) = (Phase::Up, now, false);
            state.is_caught_up = is_caught_up;
            was_down.then_some(silent)
        });
        if let Some(silent) = silent {
            let text = format!(
                "{host}: the link is there again after {} s, and goes on where it broke",
                silent.as_secs()
            );
            self.add_notice(false, text);
        }
    }

    pub(super) fn link_state(&self, now: Instant) -> LinkState {
        self.with(|state| LinkState {
            phase: state.phase,
            why: state.why.clone(),
            silent: match state.phase == Phase::Up && !state.is_waiting {
                true => Duration::ZERO,
                false => now.duration_since(state.heard),
            },
            is_caught_up: state.is_caught_up,
        })
    }

    /// Adds a notice.
    pub(super) fn add_notice(&self, is_warning: bool, text: String) {
        self.with(|state| match state.notices.len() < MOST_NOTICES {
            true => state.notices.push((is_warning, text)),
            false => state.dropped += 1,
        });
    }

    /// Takes in a line of ssh's standard error.
    pub(super) fn receive_line(&self, host: &str, line: &str) {
        // While the link is made for the first time, ssh owns the terminal and names the machine itself.
        let is_first = self.with(|state| state.phase == Phase::Connecting);
        let text = match is_first {
            true => line.to_owned(),
            false => format!("{host}: {line}"),
        };
        self.add_notice(false, text);
    }

    /// Takes the notices out, each once.
    pub(super) fn take_notices(&self) -> Vec<(bool, String)> {
        self.with(|state| {
            let mut notices = std::mem::take(&mut state.notices);
            match std::mem::take(&mut state.dropped) {
                0 => {}
                n => notices.push((true, format!("{n} more lines of ssh are left out"))),
            }
            notices
        })
    }
}

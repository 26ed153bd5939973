//! What a link's thread and the timeline's share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::mirror::Mirror;

/// Lines and notices that wait to be told.
const MOST_SAID: usize = 200;

/// How a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is being made for the first time.
    Connecting,
    Up,
    /// It is made again, after a while.
    Down,
    /// It could not be made the first time, and is not made again.
    Failed,
}

/// Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    mirror: Mirror,
    phase: Phase,
    /// Why it is down, or was last.
    why: String,
    /// When the far side was last heard, or last owed no answer.
    heard: Instant,
    /// Whether an answer is due.
    is_waiting: bool,
    is_caught_up: bool,
    /// Whether it is a warning, and what it says.
    said: Vec<(bool, String)>,
    unsaid: u64,
}

/// How a link stands, for those who watch.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) phase: Phase,
    pub(super) why: String,
    /// For how long nothing was heard of what was asked.
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
            said: Vec::new(),
            unsaid: 0,
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

    /// An answer is due since `heard`.
    pub(super) fn waits(&self, heard: Instant) {
        self.with(|state| {
            if state.phase == Phase::Up {
                (state.is_waiting, state.heard) = (true, heard);
            }
        });
    }

    /// An answer came to its end.
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
            self.say(false, text);
        }
    }

    pub(super) fn standing(&self, now: Instant) -> Standing {
        self.with(|state| Standing {
            phase: state.phase,
            why: state.why.clone(),
            silent: match state.phase == Phase::Up && !state.is_waiting {
                true => Duration::ZERO,
                false => now.duration_since(state.heard),
            },
            is_caught_up: state.is_caught_up,
        })
    }

    /// Something to be told.
    pub(super) fn say(&self, is_warning: bool, text: String) {
        self.with(|state| match state.said.len() < MOST_SAID {
            true => state.said.push((is_warning, text)),
            false => state.unsaid += 1,
        });
    }

    /// A line of ssh's standard error.
    pub(super) fn hear_line(&self, host: &str, line: &str) {
        // While the link is made for the first time the terminal is ssh's, which says whom it speaks of.
        let is_first = self.with(|state| state.phase == Phase::Connecting);
        let text = match is_first {
            true => line.to_owned(),
            false => format!("{host}: {line}"),
        };
        self.say(false, text);
    }

    /// What is to be told, once.
    pub(super) fn take_said(&self) -> Vec<(bool, String)> {
        self.with(|state| {
            let mut said = std::mem::take(&mut state.said);
            match std::mem::take(&mut state.unsaid) {
                0 => {}
                n => said.push((true, format!("{n} more lines of ssh are left out"))),
            }
            said
        })
    }
}

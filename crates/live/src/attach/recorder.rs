//! Recording on and off while the program runs: by the clock (`--delay`, `--duration`) and by hand.
//!
//! While recording is off nobody looks from outside either. Looking alone goes off and on by a signal ([`Recorder::look`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use activity::feed::Pause;
use collector::control::ControlPage;

/// When to record.
#[derive(Clone, Debug, Default)]
pub struct When {
    /// Not before the program has run this long.
    pub delay: Option<Duration>,
    /// No longer than this: from the end of the delay, else from the first operation on a GPU that was recorded.
    pub duration: Option<Duration>,
    /// Only inside NVTX ranges of this name; a `*` at its end stands for anything.
    pub range: Option<String>,
}

/// The hand on the collectors of a run. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Mutex<RecorderState>>);

#[derive(Debug)]
struct RecorderState {
    /// Gone when the run is over.
    page: Option<ControlPage>,
    /// When to go on, and when to stop.
    on: Option<Instant>,
    off: Option<Instant>,
    /// How long it goes on then.
    duration: Option<Duration>,
    /// Whether `duration` begins with the first operation.
    from_first_use: bool,
    /// Whether the threads that look from outside are to.
    looking: Pause,
    is_looking: bool,
    /// Where a copy of the recording is to go.
    keep: Option<PathBuf>,
}

impl Recorder {
    /// Makes the control page of a recording directory. The clock begins now. Whether to look from outside is said by
    /// `looking`.
    pub(super) fn start(directory: &Path, when: &When, looking: Pause) -> io::Result<Recorder> {
        let now = Instant::now();
        let recording = when.delay.is_none();
        looking.hold(!recording);
        let state = RecorderState {
            page: Some(ControlPage::create(directory, recording)?),
            on: when.delay.map(|delay| now + delay),
            off: None,
            duration: when.duration,
            from_first_use: when.delay.is_none() && when.duration.is_some(),
            looking,
            is_looking: true,
            keep: None,
        };
        Ok(Recorder(Arc::new(Mutex::new(state))))
    }

    fn with<T>(&self, act: impl FnOnce(&mut RecorderState) -> T) -> T {
        // What a thread that panicked left behind is a page and three times, each whole.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does what the clock asks for. What happened comes back, in a sentence.
    pub(super) fn tick(&self, now: Instant) -> Option<String> {
        self.with(|state| {
            if state.on.is_some_and(|at| now >= at) {
                state.on = None;
                state.off = state.duration.map(|duration| now + duration);
                return Some(match state.ask(true) {
                    Ok(()) => "recording begins (--delay)".to_owned(),
                    Err(error) => format!("recording cannot be switched on: {error}"),
                });
            }
            if state.off.is_some_and(|at| now >= at) {
                state.off = None;
                return Some(match state.ask(false) {
                    Ok(()) => "recording has ended (--duration); the program goes on".to_owned(),
                    Err(error) => format!("recording cannot be switched off: {error}"),
                });
            }
            None
        })
    }

    /// The GPU was used for the first time that is recorded: `--duration` begins, unless a delay comes before it.
    pub(super) fn used(&self, now: Instant) {
        self.with(|state| {
            if std::mem::take(&mut state.from_first_use) {
                state.off = state.duration.map(|duration| now + duration);
            }
        });
    }

    /// Has the threads that look from outside pause, or go on while recording is on. Returns what was done, in a sentence.
    pub(super) fn toggle_sampling(&self) -> String {
        self.with(|state| {
            state.is_looking = !state.is_looking;
            let is_recording = state.page.as_ref().is_some_and(|it| it.recording);
            state.looking.hold(!(state.is_looking && is_recording));
            match state.is_looking {
                true => "looking from outside goes on (SIGUSR2)".to_owned(),
                false => "looking from outside pauses (SIGUSR2): no Python stacks, no hardware"
                    .to_owned(),
            }
        })
    }

    /// Switches recording on or off by hand; the clock has no more say. Returns what was done, in a sentence.
    ///
    /// # Errors
    /// When the run is over, or the page cannot be written; in a sentence.
    pub fn toggle(&self) -> Result<String, String> {
        self.with(|state| {
            let Some(page) = &state.page else {
                return Err("the program has ended: there is nothing to record".to_owned());
            };
            let on = !page.recording;
            (state.on, state.off) = (None, None);
            state.from_first_use = false;
            state
                .ask(on)
                .map_err(|error| format!("recording cannot be switched: {error}"))?;
            Ok(match on {
                true => "recording is on".to_owned(),
                false => "recording is off; the program goes on".to_owned(),
            })
        })
    }

    /// Asks for a copy of the recording at `to`, which the thread that follows it makes. Returns false when the run is over, and
    /// nobody follows.
    pub fn keep(&self, to: PathBuf) -> bool {
        self.with(|state| {
            let is_followed = state.page.is_some();
            if is_followed {
                state.keep = Some(to);
            }
            is_followed
        })
    }

    /// Where a copy was asked for.
    pub(super) fn take_keep(&self) -> Option<PathBuf> {
        self.with(|state| state.keep.take())
    }

    /// The run is over.
    pub(super) fn end(&self) {
        self.with(|state| state.page = None);
    }
}

impl RecorderState {
    fn ask(&mut self, recording: bool) -> io::Result<()> {
        match &mut self.page {
            Some(page) => page.ask(recording)?,
            None => return Ok(()),
        }
        self.looking.hold(!(recording && self.is_looking));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_switches_until_a_hand_does() {
        let directory = tempfile::tempdir().expect("a directory");
        let second = Duration::from_secs(1);
        let when = When {
            delay: Some(10 * second),
            duration: Some(5 * second),
            range: None,
        };
        let looking = Pause::default();
        let it = Recorder::start(directory.path(), &when, looking.clone());
        let it = it.expect("starts");
        let asked = || it.with(|state| state.page.as_ref().map(|page| page.recording));
        let begin = Instant::now();
        assert_eq!((asked(), it.tick(begin + 9 * second)), (Some(false), None));
        let began = begin + 11 * second;
        assert!(looking.is_held());
        assert!(it.tick(began).is_some() && asked() == Some(true) && !looking.is_held());
        assert_eq!(it.tick(began + 4 * second), None);
        assert!(it.tick(began + 5 * second).is_some() && asked() == Some(false));
        assert!(looking.is_held());
        assert!(it.toggle().is_ok() && asked() == Some(true));
        assert_eq!(it.tick(began + 100 * second), None);
        it.end();
        assert!(it.toggle().is_err());
    }

    #[test]
    fn a_duration_without_a_delay_begins_with_the_first_operation() {
        let directory = tempfile::tempdir().expect("a directory");
        let second = Duration::from_secs(1);
        let when = When {
            duration: Some(5 * second),
            ..When::default()
        };
        let it = Recorder::start(directory.path(), &when, Pause::default());
        let it = it.expect("starts");
        let asked = || it.with(|state| state.page.as_ref().map(|page| page.recording));
        let begin = Instant::now();
        // Importing takes a minute.
        let used = begin + 60 * second;
        assert_eq!((it.tick(used), asked()), (None, Some(true)));
        it.used(used);
        it.used(used + 3 * second);
        assert_eq!(it.tick(used + 4 * second), None);
        assert!(it.tick(used + 5 * second).is_some() && asked() == Some(false));
    }

    #[test]
    fn looking_pauses_by_itself_but_not_without_recording() {
        let directory = tempfile::tempdir().expect("a directory");
        let looking = Pause::default();
        let when = When::default();
        let it = Recorder::start(directory.path(), &when, looking.clone());
        let it = it.expect("starts");
        assert!(!looking.is_held());
        it.toggle_sampling();
        assert!(looking.is_held());
        // Recording off and on again does not undo it.
        assert!(it.toggle().is_ok() && it.toggle().is_ok() && looking.is_held());
        it.toggle_sampling();
        assert!(!looking.is_held());
        assert!(it.toggle().is_ok() && looking.is_held());
        it.toggle_sampling();
        it.toggle_sampling();
        assert!(looking.is_held());
    }
}

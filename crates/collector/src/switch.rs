//! Switching recording, and wait records, on and off while the program runs.
//!
//! The flush thread looks at what is asked for once a period: by the [control page](crate::control), by the NVTX
//! ranges inside which alone is recorded, by the clock for wait records. It tells CUPTI, and has written into the recording from
//! when on that holds. What was launched before recording went on leaves no record though it may still run, so the time
//! given is that after the last call to CUPTI; that of going off is the one before the first.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use activity::Mode;
use crossbeam_channel::Sender;
use cupti_sys::Cupti;

use crate::control::{Control, Wanted};
use crate::duty::Duty;
use crate::options::{ApiCalls, Graphs, Options, Waits};
use crate::ranges::Ranges;
use crate::recording::Clocks;
use crate::setup;
use crate::threads::Command;

/// While recording waits for a range to begin, ranges are looked for this often at least: there is next to nothing to flush.
const LOOK: Duration = Duration::from_millis(5);

/// What is on, and what asks for it.
#[derive(Debug)]
pub(crate) struct Switch {
    api: ApiCalls,
    graphs: Graphs,
    control: Option<Control>,
    wanted: Wanted,
    ranges: Option<Arc<Ranges>>,
    duty: Duty,
    /// When the GPU was first used.
    used: Option<Instant>,
    mode: Mode,
    commands: Option<Sender<Command>>,
}

impl Switch {
    /// What is wanted at the start. CUPTI is not told yet.
    pub(crate) fn new(directory: &Path, options: &Options, ranges: Option<Arc<Ranges>>) -> Switch {
        let control = Control::open(directory);
        let wanted = control.as_ref().and_then(Control::read).unwrap_or(Wanted {
            recording: true,
            waits: options.waits,
        });
        Switch {
            api: options.api,
            graphs: options.graphs,
            control,
            wanted,
            ranges,
            duty: Duty::default(),
            used: None,
            mode: Mode::default(),
            commands: None,
        }
    }

    /// Takes CUPTI over as it was set up, with everything on but wait records, and makes it what is wanted. Returns what
    /// that is, and what could not be had.
    pub(crate) fn begin(
        &mut self,
        cupti: &Cupti,
        commands: Sender<Command>,
    ) -> (Mode, Vec<String>) {
        self.commands = Some(commands);
        self.mode = Mode {
            from: Clocks::now().realtime,
            recording: true,
            waits: false,
        };
        let mut lacks = Vec::new();
        let wanted = self.next(false);
        self.apply(cupti, wanted, &mut lacks);
        (self.mode, lacks)
    }

    /// How soon it is to be looked at again, if the flushes come every `period`.
    pub(crate) fn due(&self, period: Duration) -> Duration {
        let left = self
            .used
            .and_then(|used| self.duty.left(used.elapsed()))
            .filter(|_| self.wanted.waits == Waits::Auto);
        let waits_for_range = self.ranges.is_some() && !self.mode.recording;
        let period = if waits_for_range {
            period.min(LOOK)
        } else {
            period
        };
        left.map_or(period, |left| left.clamp(Duration::from_millis(1), period))
    }

    /// Does what is asked for by now. What was complete has just been flushed; `was_used` says whether
    /// the GPU was used.
    pub(crate) fn look(&mut self, cupti: &Cupti, was_used: bool) {
        if let Some(wanted) = self.control.as_ref().and_then(Control::read) {
            self.wanted = wanted;
        }
        let mut lacks = Vec::new();
        let (recording, waits) = self.next(was_used);
        if (recording, waits) != (self.mode.recording, self.mode.waits) {
            self.apply(cupti, (recording, waits), &mut lacks);
            self.send(Command::Mode(self.mode));
        }
        for text in lacks {
            self.send(Command::Notice {
                is_warning: true,
                text,
            });
        }
    }

    /// Whether to record, and whether waits.
    fn next(&mut self, was_used: bool) -> (bool, bool) {
        let recording =
            self.wanted.recording && self.ranges.as_ref().is_none_or(|ranges| ranges.is_open());
        if recording && was_used && self.used.is_none() {
            self.used = Some(Instant::now());
        }
        let is_while = match (self.wanted.waits, self.used) {
            (Waits::Off, _) | (Waits::Auto, None) => false,
            (Waits::On, _) => true,
            (Waits::Auto, Some(used)) => self.duty.is_on(used.elapsed()),
        };
        (recording, recording && is_while)
    }

    fn apply(&mut self, cupti: &Cupti, (recording, waits): (bool, bool), lacks: &mut Vec<String>) {
        let before = Clocks::now().realtime;
        if waits && !self.mode.waits {
            setup::enable_waits(cupti, self.api, lacks);
        } else if !waits && self.mode.waits {
            setup::disable_waits(cupti);
        }
        if recording && !self.mode.recording {
            setup::enable_work(cupti, self.api, self.graphs, lacks);
        } else if !recording && self.mode.recording {
            setup::disable_work(cupti, self.api);
        }
        let goes_on = (recording && !self.mode.recording) || (waits && !self.mode.waits);
        self.mode = Mode {
            from: if goes_on {
                Clocks::now().realtime
            } else {
                before
            },
            recording,
            waits,
        };
        if let Some(ranges) = &self.ranges {
            ranges.set_recorded(recording);
        }
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // The decode thread takes them as long as this one lives.
            let _ = commands.send(command);
        }
    }
}

//! Switching recording on and off while the program runs.
//!
//! The flush thread looks once a period at what is asked for. The [control page](crate::control) asks, or the NVTX
//! ranges inside which alone is recorded. It tells CUPTI, and has written into the recording from when on that holds.
//! What was launched before recording went on leaves no record though it may still run. So the time given is that after
//! the last call to CUPTI. That of going off is the one before the first.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use activity::Mode;
use crossbeam_channel::Sender;
use cupti_sys::Cupti;

use crate::command::Command;
use crate::control::Control;
use crate::options::{ApiCalls, Graphs, Options};
use crate::ranges::Ranges;
use crate::setup;
use recording::file::Clocks;

/// While recording waits for a range to begin, ranges are looked for this often at least: there is next to nothing to flush.
const LOOK: Duration = Duration::from_millis(5);

/// What is on, and what asks for it.
#[derive(Debug)]
pub(crate) struct Switch {
    api: ApiCalls,
    graphs: Graphs,
    /// Whether waits are recorded where anything is.
    waits: bool,
    control: Option<Control>,
    /// Whether the control page asks for records.
    is_wanted: bool,
    ranges: Option<Arc<Ranges>>,
    mode: Mode,
    commands: Option<Sender<Command>>,
}

impl Switch {
    /// What is wanted at the start. CUPTI is not told yet.
    pub(crate) fn new(directory: &Path, options: &Options, ranges: Option<Arc<Ranges>>) -> Switch {
        let control = Control::open(directory);
        let wanted = control.as_ref().and_then(Control::read);
        Switch {
            api: options.api,
            graphs: options.graphs,
            waits: options.waits,
            control,
            is_wanted: wanted.unwrap_or(true),
            ranges,
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
        self.apply(cupti, self.is_asked(), &mut lacks);
        (self.mode, lacks)
    }

    /// How soon it is to be looked at again, if the flushes come every `period`.
    pub(crate) fn due(&self, period: Duration) -> Duration {
        let waits_for_range = self.ranges.is_some() && !self.mode.recording;
        if waits_for_range {
            period.min(LOOK)
        } else {
            period
        }
    }

    /// Does what is asked for by now. What was complete has just been flushed. Recording goes off only once `hold` has
    /// nothing under way, and until that is dropped.
    pub(crate) fn apply_requests<H>(&mut self, cupti: &Cupti, hold: impl FnOnce() -> H) {
        if let Some(is_wanted) = self.control.as_ref().and_then(Control::read) {
            self.is_wanted = is_wanted;
        }
        let mut lacks = Vec::new();
        let recording = self.is_asked();
        if recording != self.mode.recording {
            let _held = self.mode.recording.then(hold);
            self.apply(cupti, recording, &mut lacks);
            self.send(Command::Mode(self.mode));
        }
        for text in lacks {
            self.send(Command::Notice {
                is_warning: true,
                text,
            });
        }
    }

    /// Records nothing more, and says so; `hold` as above.
    pub(crate) fn end<H>(&mut self, cupti: &Cupti, hold: impl FnOnce() -> H) {
        if self.mode.recording {
            let _held = hold();
            self.apply(cupti, false, &mut Vec::new());
            self.send(Command::Mode(self.mode));
        }
    }

    /// Whether to record.
    fn is_asked(&self) -> bool {
        self.is_wanted && self.ranges.as_ref().is_none_or(|ranges| ranges.is_open())
    }

    fn apply(&mut self, cupti: &Cupti, recording: bool, lacks: &mut Vec<String>) {
        let before = Clocks::now().realtime;
        let waits = recording && self.waits;
        crate::nodes::pause(!recording);
        if waits && !self.mode.waits {
            setup::enable_waits(cupti, lacks);
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

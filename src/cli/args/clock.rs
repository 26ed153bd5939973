//! On which clock the times of a job's ranks are shown.

use clap::Args;

use crate::trace::Clocks;

/// On which clock.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OnClock {
    /// Show the times of a job's ranks as each process recorded them, and not on the one clock that the ends of their
    /// collectives tell.
    #[arg(long)]
    pub raw_clock: bool,
}

impl OnClock {
    /// As a timeline has it.
    #[must_use]
    pub fn clocks(self) -> Clocks {
        match self.raw_clock {
            true => Clocks::AsRecorded,
            false => Clocks::Unknown,
        }
    }
}

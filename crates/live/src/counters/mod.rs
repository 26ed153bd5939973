//! Counters over time: a process of cuptop's own samples a GPU's counters through CUPTI, whoever uses the GPU.
//!
//! The samples go to a file beside the recording, as what NVML says does. The process is told apart from the traced program by
//! nothing but its work: it launches nothing. A failure, a hang or a crash in it ends it alone, and is said.
//!
//! ```text
//! metrics  what is sampled, most wanted first, under NVIDIA's names
//! rhythm   when: in bursts, or all the time at a rate that was asked for
//! process  the process that samples one GPU
//! watched  its parent's end: starting it, hearing it, ending it
//! ```

mod metrics;
mod process;
mod rhythm;
mod watched;

use std::str::FromStr;

pub use process::{HELD, process_main};
pub use watched::tried;
pub(crate) use watched::{CounterProcess, name_of, stalls_lack};

/// The hidden subcommand that is the process: its whole work is [`process_main`].
const PROCESS_COMMAND: &str = "sample-counters";

/// The most samples a second that can be asked for: more were not kept up with.
pub const MOST_HZ: u32 = 20_000;

/// Whether a GPU's counters are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counters {
    /// Where no other user has a process on the GPU.
    Auto,
    /// Also beside other users' processes, who cannot sample it meanwhile.
    On,
    /// The same, so many times a second throughout, whatever it costs.
    At(u32),
    /// They are not.
    #[default]
    Off,
}

impl Counters {
    /// Samples a second on a simulated GPU, where they cost nothing and a few microseconds are enough for a kernel.
    pub fn simulated_hz(self) -> Option<u32> {
        (self != Counters::Off).then(|| self.hz().unwrap_or(500_000))
    }

    /// Samples a second that were asked for; `None` leaves it to the process.
    fn hz(self) -> Option<u32> {
        match self {
            Counters::At(hz) => Some(hz),
            _ => None,
        }
    }
}

impl FromStr for Counters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Counters::Auto),
            "on" => Ok(Counters::On),
            "off" => Ok(Counters::Off),
            _ => {
                let hz = text.parse().ok().filter(|hz| (10..=MOST_HZ).contains(hz));
                hz.map(Counters::At).ok_or_else(|| {
                    format!("expected 10 to {MOST_HZ} samples a second, on, off or auto")
                })
            }
        }
    }
}

//! Which counters and sensors of GPUs have rows.

use activity::Metric;
use trace::Trace;

/// How many of them are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counters {
    /// What tells most: how busy the multiprocessors and the memory are, and the clock, which shows throttling.
    #[default]
    Few,
    /// Every one, with the reason for those that are not there.
    All,
    /// None.
    None,
}

/// With more devices than this a few rows are one row less each.
const MANY_DEVICES: usize = 2;

impl Counters {
    /// The next choice, in turn.
    pub fn next(self) -> Counters {
        match self {
            Counters::Few => Counters::All,
            Counters::All => Counters::None,
            Counters::None => Counters::Few,
        }
    }

    /// What is shown, in words.
    pub fn words(self) -> &'static str {
        match self {
            Counters::Few => "hardware: a few rows",
            Counters::All => "hardware: all rows",
            Counters::None => "hardware: no rows",
        }
    }

    /// The metrics of a device that have a row.
    pub fn metrics(self, trace: &Trace, device: usize) -> Vec<Metric> {
        let Some(gpu) = trace.readings(device) else {
            return Vec::new();
        };
        match self {
            Counters::None => Vec::new(),
            Counters::All => Metric::ALL
                .into_iter()
                .filter(|&metric| gpu.has(metric) || gpu.lack(metric).is_some())
                .collect(),
            Counters::Few => {
                let busy = if gpu.has(Metric::Sm) {
                    [Metric::Sm, Metric::Dram]
                } else {
                    [Metric::Power, Metric::Memory]
                };
                let many = trace.devices().len() > MANY_DEVICES;
                let busy = busy.into_iter().take(if many { 1 } else { 2 });
                let tensor = gpu.is_sampled().then_some(Metric::Tensor);
                let busy = busy.chain(tensor);
                let all = busy.chain([Metric::Clock]);
                all.filter(|&metric| gpu.has(metric)).collect()
            }
        }
    }
}

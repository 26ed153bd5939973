//! One GPU: what NVML says of it, as readings.

use std::collections::BTreeSet;

use cupti_sys::nvml::{self, Device, Gpm, Nvml, code, metric, uuid_text};
use recording::file::Clocks;

use super::occupants::Listing;
use activity::{GpuLimits, Hardware, Metric, Ns, Reading, Span, Uuid};

/// Metrics of GPM, with their numbers there.
const COUNTERS: [(Metric, u32); 8] = [
    (Metric::Sm, metric::SM),
    (Metric::Occupancy, metric::OCCUPANCY),
    (Metric::Tensor, metric::TENSOR),
    (Metric::Dram, metric::DRAM),
    (Metric::PcieIn, metric::PCIE_RX),
    (Metric::PcieOut, metric::PCIE_TX),
    (Metric::NvlinkIn, metric::NVLINK_RX),
    (Metric::NvlinkOut, metric::NVLINK_TX),
];

const MIB: f64 = 1_048_576.0;

#[derive(Debug)]
pub(super) struct WatchedGpu {
    uuid: Uuid,
    device: Device,
    gpm: Option<Gpm>,
    /// What is still asked of GPM.
    counters: Vec<(Metric, u32)>,
    limits: GpuLimits,
    /// Whether `limits` has something that was not told.
    changed: bool,
    /// The end of the last window.
    last: Option<Ns>,
    /// The last sample of GPM.
    sampled: Option<Ns>,
    listing: Listing,
}

impl WatchedGpu {
    /// Finds a GPU and what can be asked of it.
    ///
    /// # Errors
    /// A sentence, when NVML has none of that UUID.
    pub(super) fn open(nvml: &Nvml, uuid: Uuid) -> Result<WatchedGpu, String> {
        let device = nvml.device(&uuid).map_err(|code| {
            format!(
                "no hardware rows of GPU {}: {}",
                uuid_text(&uuid),
                nvml::describe(code)
            )
        })?;
        let mut limits = GpuLimits {
            uuid,
            tells_slowdowns: device.event_reasons().is_ok(),
            ..GpuLimits::default()
        };
        let most = [
            (
                Metric::Power,
                device.power_limit().map(|mw| f64::from(mw) / 1e3),
            ),
            (Metric::Clock, device.max_clock().map(f64::from)),
            (Metric::PcieIn, device.pcie_peak().map(|it| it as f64)),
            (Metric::PcieOut, device.pcie_peak().map(|it| it as f64)),
            (Metric::Memory, device.memory().map(|it| it.total as f64)),
        ];
        for (metric, most) in most {
            limits
                .most
                .extend(most.ok().filter(|it| *it > 0.0).map(|it| (metric, it)));
        }
        let mut gpu = WatchedGpu {
            uuid,
            gpm: None,
            counters: COUNTERS.to_vec(),
            limits,
            changed: true,
            last: None,
            sampled: None,
            listing: Listing::default(),
            device,
        };
        match Gpm::new(&gpu.device) {
            Ok(gpm) => gpu.gpm = Some(gpm),
            Err(code) => gpu.counters_lack(code),
        }
        Ok(gpu)
    }

    /// Whether somebody else's process is on it, of another user. `None` before that was looked at.
    pub(super) fn is_shared(&self) -> Option<bool> {
        self.listing.has_strangers()
    }

    fn counters_lack(&mut self, code: u32) {
        self.gpm = None;
        for (metric, _) in std::mem::take(&mut self.counters) {
            self.lack(metric, code);
        }
    }

    /// Remembers that a metric is not there.
    fn lack(&mut self, metric: Metric, code: u32) {
        if self.limits.lacks.iter().all(|it| it.0 != metric) {
            let why = nvml::describe(code).to_owned();
            self.limits.lacks.push((metric, why));
            self.changed = true;
        }
    }

    /// A look.
    pub(super) fn read(&mut self, program: &BTreeSet<u32>, own: &[u32]) -> Vec<Hardware> {
        let mut said = Vec::new();
        let now = Clocks::now().realtime;
        let mut values = Vec::with_capacity(Metric::ALL.len());
        let counted = self.count(now, &mut values);
        self.sense(&mut values);
        let reasons = self.device.event_reasons().unwrap_or(0);
        // Without counters since the last look, the window is that between the looks.
        let start = counted.or(self.last);
        if let Some(start) = start
            && start < now
        {
            said.push(Hardware::Reading(Reading {
                uuid: self.uuid,
                span: Span::new(start, now),
                values,
                reasons,
            }));
        }
        self.last = Some(now);
        // The first look has no window before it, and not all that is lacking has shown.
        if start.is_some() && std::mem::take(&mut self.changed) {
            said.insert(0, Hardware::Limits(self.limits.clone()));
        }
        said.extend(
            self.listing
                .read(&self.device, self.uuid, now, program, own),
        );
        said
    }

    /// What GPM counted since its last sample, whose time comes back.
    fn count(&mut self, now: Ns, values: &mut Vec<(Metric, f64)>) -> Option<Ns> {
        let gpm = self.gpm.as_mut()?;
        if let Err(code) = gpm.sample() {
            if is_for_good(code) {
                self.counters_lack(code);
            }
            return None;
        }
        let since = self.sampled.replace(now);
        let asked: Vec<u32> = self.counters.iter().map(|it| it.1).collect();
        let answers = match gpm.read_since_last(&asked) {
            Ok(answers) => answers?,
            Err(code) => {
                if is_for_good(code) {
                    self.counters_lack(code);
                }
                return None;
            }
        };
        let answers: Vec<_> = self.counters.iter().map(|it| it.0).zip(answers).collect();
        for (metric, answer) in answers {
            match answer {
                Ok(value) if metric.unit() == activity::MetricUnit::Share => {
                    values.push((metric, value / 100.0));
                }
                Ok(value) => values.push((metric, value * MIB)),
                Err(code) if is_for_good(code) => {
                    // Each metric asked for takes time.
                    self.counters.retain(|it| it.0 != metric);
                    self.lack(metric, code);
                }
                Err(_) => {}
            }
        }
        since
    }

    /// What its sensors say now.
    fn sense(&mut self, values: &mut Vec<(Metric, f64)>) {
        let device = &self.device;
        let answers = [
            (Metric::Power, device.power().map(|mw| f64::from(mw) / 1e3)),
            (Metric::Clock, device.clock().map(f64::from)),
            (Metric::Temperature, device.temperature().map(f64::from)),
            (Metric::Memory, device.memory().map(|it| it.used as f64)),
        ];
        for (metric, answer) in answers {
            match answer {
                Ok(value) => values.push((metric, value)),
                Err(code) if is_for_good(code) => self.lack(metric, code),
                Err(_) => {}
            }
        }
    }
}

/// Whether the answer will be the same the next time.
fn is_for_good(code: u32) -> bool {
    matches!(
        code,
        code::NOT_SUPPORTED | code::NO_PERMISSION | code::FUNCTION_NOT_FOUND | 2 | 25
    )
}

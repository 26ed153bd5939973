//! One GPU: what NVML says of it, as readings.

use std::collections::BTreeSet;

use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use recording::file::Clocks;

use super::occupants::Listing;
use crate::nvml::{self, Device, Gpm, Nvml, describe, is_for_good};
use activity::{GpuLimits, Hardware, Metric, Ns, Reading, Span, Uuid, uuid_text};

/// Metrics of GPM: percent, and MiB/s of links.
const COUNTERS: [(Metric, GpmMetricId); 8] = [
    (Metric::Sm, GpmMetricId::SmUtil),
    (Metric::Occupancy, GpmMetricId::SmOccupancy),
    (Metric::Tensor, GpmMetricId::AnyTensorUtil),
    (Metric::Dram, GpmMetricId::DramBwUtil),
    (Metric::PcieIn, GpmMetricId::PcieRxPerSec),
    (Metric::PcieOut, GpmMetricId::PcieTxPerSec),
    (Metric::NvlinkIn, GpmMetricId::NvlinkTotalRxPerSec),
    (Metric::NvlinkOut, GpmMetricId::NvlinkTotalTxPerSec),
];

const MIB: f64 = 1_048_576.0;

pub(super) struct WatchedGpu {
    uuid: Uuid,
    device: Device,
    gpm: Option<Gpm>,
    /// What is still asked of GPM.
    counters: Vec<(Metric, GpmMetricId)>,
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
    pub(super) fn open(nvml: Nvml, uuid: Uuid) -> Result<WatchedGpu, String> {
        let device = nvml.device(&uuid).map_err(|error| {
            format!(
                "no hardware rows of GPU {}: {}",
                uuid_text(&uuid),
                describe(&error)
            )
        })?;
        let mut limits = GpuLimits {
            uuid,
            tells_slowdowns: nvml::event_reasons(&device).is_ok(),
            ..GpuLimits::default()
        };
        let power = device.enforced_power_limit().ok();
        let clock = device.max_clock_info(Clock::SM).ok().map(f64::from);
        let pcie = nvml::pcie_peak(&device).map(|it| it as f64);
        let memory = device.memory_info().ok().map(|it| it.total as f64);
        for (metric, most) in [
            (Metric::Power, power.map(|mw| f64::from(mw) / 1e3)),
            (Metric::Clock, clock),
            (Metric::PcieIn, pcie),
            (Metric::PcieOut, pcie),
            (Metric::Memory, memory),
        ] {
            let most = most.filter(|it| *it > 0.0);
            limits.most.extend(most.map(|it| (metric, it)));
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
        match Gpm::new(nvml, &gpu.device) {
            Ok(gpm) => gpu.gpm = Some(gpm),
            Err(error) => gpu.counters_lack(&error),
        }
        Ok(gpu)
    }

    /// Whether somebody else's process is on it, of another user. `None` before that was looked at.
    pub(super) fn is_shared(&self) -> Option<bool> {
        self.listing.has_strangers()
    }

    fn counters_lack(&mut self, error: &NvmlError) {
        self.gpm = None;
        for (metric, _) in std::mem::take(&mut self.counters) {
            self.lack(metric, error);
        }
    }

    /// Remembers that a metric is not there.
    fn lack(&mut self, metric: Metric, error: &NvmlError) {
        if self.limits.lacks.iter().all(|it| it.0 != metric) {
            self.limits.lacks.push((metric, describe(error)));
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
        let reasons = nvml::event_reasons(&self.device).unwrap_or(0);
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
        let asked: Vec<GpmMetricId> = self.counters.iter().map(|it| it.1).collect();
        let answers = match gpm.sample(&self.device, &asked) {
            Ok(answers) => answers,
            Err(error) => {
                if is_for_good(&error) {
                    self.counters_lack(&error);
                }
                return None;
            }
        };
        let since = self.sampled.replace(now);
        let answers = answers?;
        let answers: Vec<_> = self.counters.iter().map(|it| it.0).zip(answers).collect();
        for (metric, answer) in answers {
            match answer {
                Ok(value) if metric.unit() == activity::MetricUnit::Share => {
                    values.push((metric, value / 100.0));
                }
                Ok(value) => values.push((metric, value * MIB)),
                Err(error) if is_for_good(&error) => {
                    // Each metric asked for takes time.
                    self.counters.retain(|it| it.0 != metric);
                    self.lack(metric, &error);
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
            (
                Metric::Power,
                device.power_usage().map(|mw| f64::from(mw) / 1e3),
            ),
            (Metric::Clock, device.clock_info(Clock::SM).map(f64::from)),
            (
                Metric::Temperature,
                device.temperature(TemperatureSensor::Gpu).map(f64::from),
            ),
            (
                Metric::Memory,
                device.memory_info().map(|it| it.used as f64),
            ),
        ];
        for (metric, answer) in answers {
            match answer {
                Ok(value) => values.push((metric, value)),
                Err(error) if is_for_good(&error) => self.lack(metric, &error),
                Err(_) => {}
            }
        }
    }
}

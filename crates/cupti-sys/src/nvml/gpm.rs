//! GPM: what the parts of a GPU did between two samples. Hopper and newer.

use std::fmt;

use super::layouts::{Handle, Metric, MetricsGet, ROOM, Support};
use super::{Device, Nvml, checked, code};

/// Numbers of metrics (`NVML_GPM_METRIC_…`).
pub mod metric {
    /// Share of the multiprocessors that were busy, in percent.
    pub const SM: u32 = 2;
    /// Warps that were there, of those that there is room for, in percent.
    pub const OCCUPANCY: u32 = 3;
    /// Time that tensor cores of any kind were busy, in percent.
    pub const TENSOR: u32 = 5;
    /// Bandwidth of device memory that was used, in percent of its most.
    pub const DRAM: u32 = 10;
    /// PCIe traffic from the GPU, in MiB/s.
    pub const PCIE_TX: u32 = 20;
    /// PCIe traffic to the GPU, in MiB/s.
    pub const PCIE_RX: u32 = 21;
    /// NVLink traffic to the GPU, all links, in MiB/s.
    pub const NVLINK_RX: u32 = 60;
    /// NVLink traffic from the GPU, all links, in MiB/s.
    pub const NVLINK_TX: u32 = 61;
}

/// `NVML_GPM_METRICS_GET_VERSION`, `NVML_GPM_SUPPORT_VERSION`.
const VERSION: u32 = 1;

/// The counters of one GPU, from one sample to the next.
pub struct Gpm {
    nvml: Nvml,
    device: Handle,
    /// Two samples, which are taken in turn.
    samples: [Handle; 2],
    /// Which is taken next, and how many of them hold one.
    next: usize,
    taken: u8,
    question: Box<MetricsGet>,
}

impl fmt::Debug for Gpm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Gpm").finish_non_exhaustive()
    }
}

impl Gpm {
    /// The counters of a GPU.
    ///
    /// # Errors
    /// NVML's code; [`code::NOT_SUPPORTED`] on a GPU without them.
    pub fn new(device: &Device) -> Result<Gpm, u32> {
        let nvml = device.nvml.clone();
        let api = *nvml.api();
        let supported = api.gpm_support.ok_or(code::FUNCTION_NOT_FOUND)?;
        let mut support = Support {
            version: VERSION,
            is_supported: 0,
        };
        // SAFETY: a handle of this session, and a structure of the version that it says.
        checked(unsafe { supported(device.handle, &raw mut support) })?;
        if support.is_supported == 0 {
            return Err(code::NOT_SUPPORTED);
        }
        if api.gpm_sample.is_none() || api.gpm_metrics.is_none() || api.gpm_free.is_none() {
            return Err(code::FUNCTION_NOT_FOUND);
        }
        let mut gpm = Gpm {
            nvml,
            device: device.handle,
            samples: [std::ptr::null_mut(); 2],
            next: 0,
            taken: 0,
            question: Box::new(MetricsGet {
                version: VERSION,
                count: 0,
                before: std::ptr::null_mut(),
                after: std::ptr::null_mut(),
                metrics: [Metric::default(); ROOM],
            }),
        };
        let alloc = api.gpm_alloc.ok_or(code::FUNCTION_NOT_FOUND)?;
        for sample in &mut gpm.samples {
            // SAFETY: room for one handle, which `drop` gives back.
            checked(unsafe { alloc(std::ptr::from_mut(sample)) })?;
        }
        Ok(gpm)
    }

    /// Takes a sample. NVML's counters are refreshed every 100 ms: samples that are nearer to each other may tell nothing.
    ///
    /// # Errors
    /// NVML's code. The sample before stays.
    pub fn sample(&mut self) -> Result<(), u32> {
        let sample = self.nvml.api().gpm_sample.ok_or(code::FUNCTION_NOT_FOUND)?;
        // SAFETY: both are handles of this session.
        checked(unsafe { sample(self.device, self.samples[self.next]) })?;
        self.next = 1 - self.next;
        self.taken = 2.min(self.taken + 1);
        Ok(())
    }

    /// What lay between the last two samples, for each metric its value or NVML's code. `None` as long as there are not
    /// two.
    ///
    /// # Errors
    /// NVML's code, when it answers none of them.
    pub fn read_since_last(
        &mut self,
        metrics: &[u32],
    ) -> Result<Option<Vec<Result<f64, u32>>>, u32> {
        if self.taken < 2 {
            return Ok(None);
        }
        let ask = self
            .nvml
            .api()
            .gpm_metrics
            .ok_or(code::FUNCTION_NOT_FOUND)?;
        let metrics = &metrics[..metrics.len().min(ROOM)];
        for (room, &id) in self.question.metrics.iter_mut().zip(metrics) {
            room.id = id;
            room.code = code::NO_DATA;
            room.value = 0.0;
        }
        self.question.count = metrics.len() as u32;
        // The next sample goes over the older one.
        self.question.before = self.samples[self.next];
        self.question.after = self.samples[1 - self.next];
        // SAFETY: a structure of the version that it says, with as many metrics as it says, and two samples of this session
        // that were taken.
        checked(unsafe { ask(&raw mut *self.question) })?;
        let answers = self.question.metrics.iter().take(metrics.len());
        Ok(Some(
            answers
                .map(|it| match it.code {
                    // A quotient of counters that stood still.
                    code::SUCCESS if !it.value.is_finite() => Err(code::NO_DATA),
                    code::SUCCESS => Ok(it.value),
                    code => Err(code),
                })
                .collect(),
        ))
    }
}

impl Drop for Gpm {
    fn drop(&mut self) {
        if let Some(free) = self.nvml.api().gpm_free {
            for sample in self.samples.into_iter().filter(|it| !it.is_null()) {
                // SAFETY: made by this session, and given back once.
                unsafe { free(sample) };
            }
        }
    }
}

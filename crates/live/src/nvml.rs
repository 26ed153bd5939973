//! NVML, the library that `nvidia-smi` reads GPUs with, through the crate `nvml-wrapper`: what is asked of it here.
//!
//! Needs no root, and works beside CUPTI's activity records on the same GPU. Which NVML device is which CUDA device is told by
//! UUID: NVML's order is not CUDA's, and `CUDA_VISIBLE_DEVICES` changes CUDA's alone.
//!
//! `nvmlDeviceGetPcieThroughput` is left out: it waits for 20 ms. GPM has the same figures.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use nvml_wrapper::GpmSample;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::event::EventSet;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

use activity::{Uuid, uuid_of, uuid_text};

/// A GPU of the library, which stays loaded.
pub(crate) type Device = nvml_wrapper::Device<'static>;

/// What tells of a GPU's errors.
pub(crate) type XidEvents = EventSet<'static>;

/// The library's name, which the system's loader finds.
const FILE: &str = "libnvidia-ml.so.1";

/// Bytes per second and lane, one way, of each PCIe generation from 1. These are its transfers per second with what
/// the encoding takes: 8b/10b, then 128b/130b; generation 6 without its error correction.
const PCIE_LANE: [u64; 6] = [
    250_000_000,
    500_000_000,
    984_615_384,
    1_969_230_769,
    3_938_461_538,
    7_876_923_076,
];

/// A process on a GPU, as NVML lists it: its id is that of the driver's process namespace, which a container's is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GpuProcess {
    pub(crate) pid: u32,
    /// Bytes of the GPU's memory that it uses, where NVML tells.
    pub(crate) memory: Option<u64>,
}

/// NVML, loaded and initialised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nvml(&'static nvml_wrapper::Nvml);

impl Nvml {
    /// Loads the system's, once: it stays open until the process ends.
    ///
    /// # Errors
    /// Why not, in words.
    pub(crate) fn load() -> Result<Nvml, String> {
        static LOADED: OnceLock<Nvml> = OnceLock::new();
        match LOADED.get() {
            Some(nvml) => Ok(*nvml),
            None => Nvml::open(Path::new(FILE)).map(|it| *LOADED.get_or_init(|| it)),
        }
    }

    /// Loads the one at a path. It is never closed.
    fn open(path: &Path) -> Result<Nvml, String> {
        let opened = nvml_wrapper::Nvml::builder()
            .lib_path(path.as_os_str())
            .init();
        let opened = opened.map_err(|error| match error {
            NvmlError::LibloadingError(why) => {
                format!("{FILE} cannot be loaded ({})", loaders_words(&why))
            }
            error => format!("nvmlInit failed: {}", describe(&error)),
        })?;
        Ok(Nvml(Box::leak(Box::new(opened))))
    }

    /// The GPU, or the part of one (MIG), with this UUID as CUDA gives it.
    ///
    /// # Errors
    /// NVML's: this machine may have none of that UUID.
    pub(crate) fn device(self, uuid: &Uuid) -> Result<Device, NvmlError> {
        let of = |prefix| {
            self.0
                .device_by_uuid(format!("{prefix}{}", uuid_text(uuid)))
        };
        of("GPU-").or_else(|_| of("MIG-"))
    }

    /// All GPUs that this process may use, in NVML's order, which is that of the PCI bus. Those that NVML cannot open are left out.
    ///
    /// # Errors
    /// NVML's.
    pub(crate) fn devices(self) -> Result<Vec<Device>, NvmlError> {
        let all = 0..self.0.device_count()?;
        Ok(all
            .filter_map(|at| self.0.device_by_index(at).ok())
            .collect())
    }

    /// What tells of the errors (Xids) of each GPU, with its number. Those that NVML does not tell of are left out.
    ///
    /// # Errors
    /// NVML's, where it tells of none.
    pub(crate) fn xid_events(self) -> Result<Vec<(u32, XidEvents)>, NvmlError> {
        let (mut found, mut refused) = (Vec::new(), NvmlError::NotSupported);
        for at in 0..self.0.device_count()? {
            let events = self.0.create_event_set()?;
            let Ok(device) = self.0.device_by_index(at) else {
                continue;
            };
            // A set that is refused is gone: each GPU has its own.
            match device.register_events(EventTypes::CRITICAL_XID_ERROR, events) {
                Ok(events) => found.push((at, events)),
                Err(why) => refused = why.error,
            }
        }
        match found.is_empty() {
            true => Err(refused),
            false => Ok(found),
        }
    }
}

fn loaders_words(error: &dyn std::error::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// What an error means, in words for people.
pub(crate) fn describe(error: &NvmlError) -> String {
    let words = match error {
        NvmlError::NotSupported => "not on this GPU",
        NvmlError::NoPermission => "not permitted",
        NvmlError::NotFound => "no such GPU",
        NvmlError::DriverNotLoaded => "NVIDIA's kernel module is not loaded",
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => "not in this driver",
        NvmlError::LibRmVersionMismatch => {
            "the library and the kernel module have different versions"
        }
        other => return other.to_string(),
    };
    words.to_owned()
}

/// Whether the answer will be the same the next time.
pub(crate) fn is_for_good(error: &NvmlError) -> bool {
    matches!(
        error,
        NvmlError::NotSupported
            | NvmlError::NoPermission
            | NvmlError::FunctionNotFound
            | NvmlError::FailedToLoadSymbol(_)
            | NvmlError::InvalidArg
            | NvmlError::UnexpectedVariant(_)
    )
}

/// The bytes of "GPU-8f0c2a4e-…" or "MIG-…"; `None` for another form, or where NVML does not tell.
pub(crate) fn uuid(device: &Device) -> Option<Uuid> {
    uuid_of(&device.uuid().ok()?)
}

/// Percent of the last sample period, 1/6 s to 1 s, in which a kernel ran.
pub(crate) fn busy(device: &Device) -> Option<u32> {
    device.utilization_rates().ok().map(|it| it.gpu)
}

/// Why clocks are not higher: bits (`nvmlClocksEventReason…`).
///
/// # Errors
/// NVML's.
pub(crate) fn event_reasons(device: &Device) -> Result<u64, NvmlError> {
    device.current_throttle_reasons().map(|it| it.bits())
}

/// What its PCIe link could carry at most one way, in bytes per second: of the GPU and its slot, the lesser. `None` for a
/// generation that is not known here.
pub(crate) fn pcie_peak(device: &Device) -> Option<u64> {
    let generation = device.max_pcie_link_gen().ok()?;
    let lane = PCIE_LANE.get((generation as usize).checked_sub(1)?)?;
    Some(lane * u64::from(device.max_pcie_link_width().ok()?))
}

/// The processes that compute on a GPU, those behind MPS with them, each once.
///
/// # Errors
/// NVML's.
pub(crate) fn processes(device: &Device) -> Result<Vec<GpuProcess>, NvmlError> {
    let mut all: Vec<GpuProcess> = listed(device.running_compute_processes()?);
    for process in listed(device.mps_running_compute_processes().unwrap_or_default()) {
        if all.iter().all(|it| it.pid != process.pid) {
            all.push(process);
        }
    }
    Ok(all)
}

/// The processes that draw on a GPU.
pub(crate) fn graphics_processes(device: &Device) -> Vec<GpuProcess> {
    listed(device.running_graphics_processes().unwrap_or_default())
}

fn listed(found: Vec<ProcessInfo>) -> Vec<GpuProcess> {
    let all = found.into_iter().map(|it| GpuProcess {
        pid: it.pid,
        memory: match it.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        },
    });
    all.collect()
}

/// Percent of the multiprocessors' time by process, each by its newest sample after `since` (µs since 1970). Who used none is
/// left out. `None` where NVML does not tell.
pub(crate) fn process_shares(device: &Device, since: u64) -> Option<BTreeMap<u32, u32>> {
    let mut samples = match device.process_utilization_stats(since) {
        Err(NvmlError::NotFound) => Vec::new(),
        other => other.ok()?,
    };
    // Entries beyond what was written may hold anything.
    samples.retain(|it| it.pid != 0 && it.timestamp > since && it.sm_util <= 100);
    samples.sort_unstable_by_key(|it| it.timestamp);
    Some(samples.iter().map(|it| (it.pid, it.sm_util)).collect())
}

/// GPM: what the parts of a GPU did between two samples. Hopper and newer.
pub(crate) struct Gpm {
    nvml: Nvml,
    last: Option<GpmSample<'static>>,
}

impl Gpm {
    /// The counters of a GPU.
    ///
    /// # Errors
    /// NVML's: a GPU may have none.
    pub(crate) fn new(nvml: Nvml, device: &Device) -> Result<Gpm, NvmlError> {
        match device.gpm_support()? {
            true => Ok(Gpm { nvml, last: None }),
            false => Err(NvmlError::NotSupported),
        }
    }

    /// Takes a sample. For each metric its value since the sample before, or why there is none; `None` for the first sample.
    /// NVML's counters are refreshed every 100 ms: samples that are nearer to each other may tell nothing.
    ///
    /// # Errors
    /// NVML's.
    pub(crate) fn sample(
        &mut self,
        device: &Device,
        metrics: &[GpmMetricId],
    ) -> Result<Option<Vec<Result<f64, NvmlError>>>, NvmlError> {
        let now = device.gpm_sample()?;
        let answers = self.last.as_ref().map(|before| {
            let all = gpm_metrics_get(self.nvml.0, before, &now, metrics)?;
            let values = all.into_iter().map(|it| match it?.value {
                // A quotient of counters that stood still.
                value if !value.is_finite() => Err(NvmlError::NoData),
                value => Ok(value),
            });
            Ok(values.collect())
        });
        self.last = Some(now);
        answers.transpose()
    }
}

#[cfg(test)]
mod tests;

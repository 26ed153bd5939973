//! The table of functions.

use std::ffi::c_char;

use super::layouts::{
    Handle, MemoryV1, MemoryV2, MetricsGet, ProcessInfo, ProcessUse, Support, TemperatureV1,
    Utilization,
};
use crate::library::Library;

type OfDevice<T> = Option<unsafe extern "C" fn(Handle, *mut T) -> u32>;
type Text = Option<unsafe extern "C" fn(Handle, *mut c_char, u32) -> u32>;
type Processes = Option<unsafe extern "C" fn(Handle, *mut u32, *mut ProcessInfo) -> u32>;

/// NVML's functions. Their names are those of `nvml.h` without `nvml` and `DeviceGet`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Api {
    pub(super) init: unsafe extern "C" fn() -> u32,
    pub(super) shutdown: Option<unsafe extern "C" fn() -> u32>,
    pub(super) handle_by_uuid: unsafe extern "C" fn(*const c_char, *mut Handle) -> u32,
    pub(super) count: Option<unsafe extern "C" fn(*mut u32) -> u32>,
    pub(super) handle_by_index: Option<unsafe extern "C" fn(u32, *mut Handle) -> u32>,
    pub(super) uuid: Text,
    pub(super) name: Text,
    pub(super) minor_number: OfDevice<u32>,
    pub(super) power_usage: OfDevice<u32>,
    pub(super) power_limit: OfDevice<u32>,
    pub(super) clock: Option<unsafe extern "C" fn(Handle, u32, *mut u32) -> u32>,
    pub(super) max_clock: Option<unsafe extern "C" fn(Handle, u32, *mut u32) -> u32>,
    pub(super) temperature: Option<unsafe extern "C" fn(Handle, u32, *mut u32) -> u32>,
    pub(super) temperature_v: OfDevice<TemperatureV1>,
    pub(super) event_reasons: OfDevice<u64>,
    pub(super) memory: OfDevice<MemoryV1>,
    pub(super) memory_v2: OfDevice<MemoryV2>,
    pub(super) compute_processes: Processes,
    pub(super) mps_processes: Processes,
    pub(super) graphics_processes: Processes,
    pub(super) utilization: OfDevice<Utilization>,
    pub(super) process_use:
        Option<unsafe extern "C" fn(Handle, *mut ProcessUse, *mut u32, u64) -> u32>,
    pub(super) max_link_generation: OfDevice<u32>,
    pub(super) max_link_width: OfDevice<u32>,
    pub(super) gpm_support: OfDevice<Support>,
    pub(super) gpm_alloc: Option<unsafe extern "C" fn(*mut Handle) -> u32>,
    pub(super) gpm_free: Option<unsafe extern "C" fn(Handle) -> u32>,
    pub(super) gpm_sample: Option<unsafe extern "C" fn(Handle, Handle) -> u32>,
    pub(super) gpm_metrics: Option<unsafe extern "C" fn(*mut MetricsGet) -> u32>,
}

impl Api {
    /// Looks the functions up.
    ///
    /// # Safety
    /// `library` must be NVML.
    pub(super) unsafe fn resolve(library: Library) -> Result<Api, &'static str> {
        // SAFETY: of every line: the types of the fields are those that nvml.h gives the functions of these names. Handles are
        // pointers, enumerations are unsigned ints.
        unsafe {
            Ok(Api {
                init: library.function(c"nvmlInit_v2").ok_or("nvmlInit_v2")?,
                shutdown: library.function(c"nvmlShutdown"),
                handle_by_uuid: library
                    .function(c"nvmlDeviceGetHandleByUUID")
                    .ok_or("nvmlDeviceGetHandleByUUID")?,
                count: library.function(c"nvmlDeviceGetCount_v2"),
                handle_by_index: library.function(c"nvmlDeviceGetHandleByIndex_v2"),
                uuid: library.function(c"nvmlDeviceGetUUID"),
                name: library.function(c"nvmlDeviceGetName"),
                minor_number: library.function(c"nvmlDeviceGetMinorNumber"),
                power_usage: library.function(c"nvmlDeviceGetPowerUsage"),
                power_limit: library.function(c"nvmlDeviceGetEnforcedPowerLimit"),
                clock: library.function(c"nvmlDeviceGetClockInfo"),
                max_clock: library.function(c"nvmlDeviceGetMaxClockInfo"),
                temperature: library.function(c"nvmlDeviceGetTemperature"),
                temperature_v: library.function(c"nvmlDeviceGetTemperatureV"),
                // Renamed in driver 535; the same bits.
                event_reasons: library
                    .function(c"nvmlDeviceGetCurrentClocksEventReasons")
                    .or_else(|| library.function(c"nvmlDeviceGetCurrentClocksThrottleReasons")),
                memory: library.function(c"nvmlDeviceGetMemoryInfo"),
                memory_v2: library.function(c"nvmlDeviceGetMemoryInfo_v2"),
                // Version 3 (driver 510) has version 2's layout.
                compute_processes: library
                    .function(c"nvmlDeviceGetComputeRunningProcesses_v3")
                    .or_else(|| library.function(c"nvmlDeviceGetComputeRunningProcesses_v2")),
                mps_processes: library
                    .function(c"nvmlDeviceGetMPSComputeRunningProcesses_v3")
                    .or_else(|| library.function(c"nvmlDeviceGetMPSComputeRunningProcesses_v2")),
                graphics_processes: library
                    .function(c"nvmlDeviceGetGraphicsRunningProcesses_v3")
                    .or_else(|| library.function(c"nvmlDeviceGetGraphicsRunningProcesses_v2")),
                utilization: library.function(c"nvmlDeviceGetUtilizationRates"),
                process_use: library.function(c"nvmlDeviceGetProcessUtilization"),
                max_link_generation: library.function(c"nvmlDeviceGetMaxPcieLinkGeneration"),
                max_link_width: library.function(c"nvmlDeviceGetMaxPcieLinkWidth"),
                gpm_support: library.function(c"nvmlGpmQueryDeviceSupport"),
                gpm_alloc: library.function(c"nvmlGpmSampleAlloc"),
                gpm_free: library.function(c"nvmlGpmSampleFree"),
                gpm_sample: library.function(c"nvmlGpmSampleGet"),
                gpm_metrics: library.function(c"nvmlGpmMetricsGet"),
            })
        }
    }
}

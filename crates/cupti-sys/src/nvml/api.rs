//! The table of functions.

use std::ffi::c_char;

use super::layouts::{
    Handle, MemoryV1, MemoryV2, MetricsGet, ProcessInfo, ProcessUse, Support, TemperatureV1,
    Utilization,
};

// The types are those that nvml.h gives the functions of these names. Handles are pointers, enumerations are unsigned ints.
crate::functions! {
    /// NVML's functions. Their names are those of `nvml.h` without `nvml` and `DeviceGet`.
    pub(super) struct NvmlApi
    required {
        init = c"nvmlInit_v2" ();
        handle_by_uuid = c"nvmlDeviceGetHandleByUUID" (*const c_char, *mut Handle);
    }
    optional {
        shutdown = c"nvmlShutdown" ();
        count = c"nvmlDeviceGetCount_v2" (*mut u32);
        handle_by_index = c"nvmlDeviceGetHandleByIndex_v2" (u32, *mut Handle);
        uuid = c"nvmlDeviceGetUUID" (Handle, *mut c_char, u32);
        name = c"nvmlDeviceGetName" (Handle, *mut c_char, u32);
        minor_number = c"nvmlDeviceGetMinorNumber" (Handle, *mut u32);
        power_usage = c"nvmlDeviceGetPowerUsage" (Handle, *mut u32);
        power_limit = c"nvmlDeviceGetEnforcedPowerLimit" (Handle, *mut u32);
        clock = c"nvmlDeviceGetClockInfo" (Handle, u32, *mut u32);
        max_clock = c"nvmlDeviceGetMaxClockInfo" (Handle, u32, *mut u32);
        temperature = c"nvmlDeviceGetTemperature" (Handle, u32, *mut u32);
        temperature_v = c"nvmlDeviceGetTemperatureV" (Handle, *mut TemperatureV1);
        // Renamed in driver 535; the same bits.
        event_reasons = c"nvmlDeviceGetCurrentClocksEventReasons" | c"nvmlDeviceGetCurrentClocksThrottleReasons" (Handle, *mut u64);
        memory = c"nvmlDeviceGetMemoryInfo" (Handle, *mut MemoryV1);
        memory_v2 = c"nvmlDeviceGetMemoryInfo_v2" (Handle, *mut MemoryV2);
        // Version 3 (driver 510) has version 2's layout.
        compute_processes = c"nvmlDeviceGetComputeRunningProcesses_v3" | c"nvmlDeviceGetComputeRunningProcesses_v2" (Handle, *mut u32, *mut ProcessInfo);
        mps_processes = c"nvmlDeviceGetMPSComputeRunningProcesses_v3" | c"nvmlDeviceGetMPSComputeRunningProcesses_v2" (Handle, *mut u32, *mut ProcessInfo);
        graphics_processes = c"nvmlDeviceGetGraphicsRunningProcesses_v3" | c"nvmlDeviceGetGraphicsRunningProcesses_v2" (Handle, *mut u32, *mut ProcessInfo);
        utilization = c"nvmlDeviceGetUtilizationRates" (Handle, *mut Utilization);
        process_use = c"nvmlDeviceGetProcessUtilization" (Handle, *mut ProcessUse, *mut u32, u64);
        max_link_generation = c"nvmlDeviceGetMaxPcieLinkGeneration" (Handle, *mut u32);
        max_link_width = c"nvmlDeviceGetMaxPcieLinkWidth" (Handle, *mut u32);
        gpm_support = c"nvmlGpmQueryDeviceSupport" (Handle, *mut Support);
        gpm_alloc = c"nvmlGpmSampleAlloc" (*mut Handle);
        gpm_free = c"nvmlGpmSampleFree" (Handle);
        gpm_sample = c"nvmlGpmSampleGet" (Handle, Handle);
        gpm_metrics = c"nvmlGpmMetricsGet" (*mut MetricsGet);
    }
}

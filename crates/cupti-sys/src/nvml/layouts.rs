//! The structures of `nvml.h` that are read or filled in.

use std::ffi::{c_char, c_void};

/// `nvmlDevice_t`, `nvmlGpmSample_t`: pointers that only NVML looks behind.
pub(super) type Handle = *mut c_void;

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryV1 {
    pub(super) total: u64,
    pub(super) free: u64,
    pub(super) used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryV2 {
    pub(super) version: u32,
    pub(super) total: u64,
    pub(super) reserved: u64,
    pub(super) free: u64,
    pub(super) used: u64,
}

/// `nvmlProcessInfo_v2_t`, which is version 3's layout too.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessInfo {
    pub(super) pid: u32,
    pub(super) used: u64,
    pub(super) gpu_instance: u32,
    pub(super) compute_instance: u32,
}

/// `nvmlUtilization_t`, in percent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utilization {
    pub(super) gpu: u32,
    pub(super) memory: u32,
}

/// `nvmlProcessUtilizationSample_t`: its time in µs since 1970, the rest in percent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessUse {
    pub(super) pid: u32,
    pub(super) time: u64,
    pub(super) sm: u32,
    pub(super) memory: u32,
    pub(super) encoder: u32,
    pub(super) decoder: u32,
}

/// `nvmlTemperature_v1_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TemperatureV1 {
    pub(super) version: u32,
    pub(super) sensor: u32,
    pub(super) celsius: i32,
}

/// `NVML_STRUCT_VERSION`: the length, and the version above it.
pub(super) const fn version_of<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | version << 24
}

/// Room for metrics of one question. NVML fills as many as are asked for, whatever its own array's length is (98 in 12.2,
/// 333 in 13.0, more since).
pub(super) const ROOM: usize = 512;

/// `nvmlGpmSupport_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Support {
    pub(super) version: u32,
    pub(super) is_supported: u32,
}

/// `nvmlGpmMetric_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Metric {
    pub(super) id: u32,
    pub(super) code: u32,
    pub(super) value: f64,
    pub(super) short_name: *const c_char,
    pub(super) long_name: *const c_char,
    pub(super) unit: *const c_char,
}

/// `nvmlGpmMetricsGet_t`.
#[repr(C)]
pub(super) struct MetricsGet {
    pub(super) version: u32,
    pub(super) count: u32,
    pub(super) before: Handle,
    pub(super) after: Handle,
    pub(super) metrics: [Metric; ROOM],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths and offsets as `nvidia-ml-py` 13.615 has them (ctypes).
    #[test]
    fn layouts_are_nvidias() {
        assert_eq!(version_of::<MemoryV2>(2), 0x0200_0028);
        assert_eq!(version_of::<TemperatureV1>(1), 0x0100_000C);
        assert_eq!(std::mem::offset_of!(MemoryV2, used), 32);
        assert_eq!(std::mem::offset_of!(MemoryV1, used), 16);
        assert_eq!(size_of::<ProcessInfo>(), 24);
        assert_eq!(std::mem::offset_of!(ProcessInfo, used), 8);
        assert_eq!(size_of::<ProcessUse>(), 32);
        assert_eq!(std::mem::offset_of!(ProcessUse, time), 8);
        assert_eq!(std::mem::offset_of!(ProcessUse, sm), 16);
        assert_eq!(size_of::<Utilization>(), 8);
        assert_eq!(size_of::<Metric>(), 40);
        assert_eq!(std::mem::offset_of!(Metric, value), 8);
        assert_eq!(std::mem::offset_of!(MetricsGet, before), 8);
        assert_eq!(std::mem::offset_of!(MetricsGet, metrics), 24);
        assert_eq!(size_of::<Support>(), 8);
    }
}

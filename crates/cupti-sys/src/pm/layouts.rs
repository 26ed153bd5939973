//! The parameters of `cuptiProfilerHost*` and `cuptiPmSampling*`, as the headers of CUDA 12.8 to 13.0 lay them out.
//!
//! Every function takes one structure that begins with its own length, up to the end of the last field.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

/// Something that only CUPTI looks behind.
pub(super) type Object = *mut c_void;

/// The parameters of one function.
pub(super) trait Params: Sized {
    /// The length to be said: without the padding at the end.
    const LENGTH: usize;

    /// With nothing set but the length.
    fn new() -> Self;
}

macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* ; $last:ident: $last_type:ty })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Debug, Default)]
            pub struct $name {
                length: usize,
                private: *mut c_void,
                $(pub(super) $field: $type,)*
                pub(super) $last: $last_type,
            }

            impl Params for $name {
                const LENGTH: usize = offset_of!($name, $last) + size_of::<$last_type>();

                fn new() -> Self {
                    $name {
                        length: Self::LENGTH,
                        ..Default::default()
                    }
                }
            }
        )*
    };
}

params! {
    /// `CUpti_Device_GetChipName_Params`
    ChipName { device: usize; name: *const c_char }
    /// `CUpti_Profiler_Host_Initialize_Params`
    HostInitialize { profiler: u32, chip: *const c_char, availability: *const u8; host: Object }
    /// `CUpti_Profiler_Host_ConfigAddMetrics_Params`
    AddMetrics { host: Object, names: *const *const c_char; count: usize }
    /// `CUpti_Profiler_Host_GetConfigImageSize_Params`
    ConfigSize { host: Object; size: usize }
    /// `CUpti_Profiler_Host_GetConfigImage_Params`
    ConfigImage { host: Object, size: usize; image: *mut u8 }
    /// `CUpti_Profiler_Host_GetNumOfPasses_Params`
    Passes { size: usize, image: *mut u8; passes: usize }
    /// `CUpti_Profiler_Host_EvaluateToGpuValues_Params`
    Evaluate {
        host: Object, image: *const u8, size: usize, sample: usize, names: *const *const c_char, count: usize;
        values: *mut f64
    }
    /// `CUpti_PmSampling_GetCounterAvailability_Params`
    Availability { device: usize, size: usize; image: *mut u8 }
    /// `CUpti_PmSampling_Enable_Params`
    Enable { device: usize; sampling: Object }
    /// `CUpti_PmSampling_SetConfig_Params`
    SetConfig {
        sampling: Object, size: usize, config: *const u8, buffer: usize, interval: u64, trigger: u32;
        append: u32
    }
    /// `CUpti_PmSampling_GetCounterDataSize_Params`
    DataSize { sampling: Object, names: *const *const c_char, count: usize, samples: u32; size: usize }
    /// `CUpti_PmSampling_CounterDataImage_Initialize_Params`
    DataInitialize { sampling: Object, size: usize; image: *mut u8 }
    /// `CUpti_PmSampling_DecodeData_Params`
    Decode { sampling: Object, image: *mut u8, size: usize, stop_reason: u32; overflow: u8 }
    /// `CUpti_PmSampling_GetCounterDataInfo_Params`
    DataInfo { image: *const u8, size: usize, total: usize, populated: usize; completed: usize }
    /// `CUpti_PmSampling_CounterData_GetSampleInfo_Params`
    SampleInfo { sampling: Object, image: *const u8, size: usize, sample: usize, start: u64; end: u64 }
    /// `CUpti_PmSampling_Start_Params`, and of stop and disable, which are alike; and `CUpti_Profiler_Host_Deinitialize_Params`.
    Of {; object: Object }
}

/// `CUpti_Profiler_Initialize_Params`: nothing but what all begin with.
#[repr(C)]
pub struct Initialize {
    length: usize,
    private: *mut c_void,
}

impl Params for Initialize {
    const LENGTH: usize = size_of::<Initialize>();

    fn new() -> Self {
        Initialize {
            length: Self::LENGTH,
            private: std::ptr::null_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudarc::cupti::sys;

    /// Ours against what bindgen made of CUDA 13.0's headers: where each field lies, and the length to be said.
    macro_rules! same {
        ($ours:ident = $theirs:ident, $length:ident: $($mine:ident = $field:ident),*) => {
            assert_eq!($ours::LENGTH, sys::$length as usize, stringify!($ours));
            $(assert_eq!(
                offset_of!($ours, $mine),
                offset_of!(sys::$theirs, $field),
                concat!(stringify!($ours), ".", stringify!($mine))
            );)*
        };
    }

    #[test]
    fn layouts_are_the_headers() {
        same!(ChipName = CUpti_Device_GetChipName_Params, Device_GetChipName_Params_STRUCT_SIZE: device = deviceIndex, name = pChipName);
        same!(HostInitialize = CUpti_Profiler_Host_Initialize_Params, Profiler_Host_Initialize_Params_STRUCT_SIZE:
            profiler = profilerType, chip = pChipName, availability = pCounterAvailabilityImage, host = pHostObject);
        same!(AddMetrics = CUpti_Profiler_Host_ConfigAddMetrics_Params, Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE:
            host = pHostObject, names = ppMetricNames, count = numMetrics);
        same!(ConfigSize = CUpti_Profiler_Host_GetConfigImageSize_Params, Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE:
            host = pHostObject, size = configImageSize);
        same!(ConfigImage = CUpti_Profiler_Host_GetConfigImage_Params, Profiler_Host_GetConfigImage_Params_STRUCT_SIZE:
            host = pHostObject, size = configImageSize, image = pConfigImage);
        same!(Passes = CUpti_Profiler_Host_GetNumOfPasses_Params, Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE:
            size = configImageSize, image = pConfigImage, passes = numOfPasses);
        same!(Evaluate = CUpti_Profiler_Host_EvaluateToGpuValues_Params, Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE:
            host = pHostObject, image = pCounterDataImage, size = counterDataImageSize, sample = rangeIndex,
            names = ppMetricNames, count = numMetrics, values = pMetricValues);
        same!(Availability = CUpti_PmSampling_GetCounterAvailability_Params, PmSampling_GetCounterAvailability_Params_STRUCT_SIZE:
            device = deviceIndex, size = counterAvailabilityImageSize, image = pCounterAvailabilityImage);
        same!(Enable = CUpti_PmSampling_Enable_Params, PmSampling_Enable_Params_STRUCT_SIZE:
            device = deviceIndex, sampling = pPmSamplingObject);
        same!(SetConfig = CUpti_PmSampling_SetConfig_Params, PmSampling_SetConfig_Params_STRUCT_SIZE:
            sampling = pPmSamplingObject, size = configSize, config = pConfig, buffer = hardwareBufferSize,
            interval = samplingInterval, trigger = triggerMode, append = hwBufferAppendMode);
        same!(DataSize = CUpti_PmSampling_GetCounterDataSize_Params, PmSampling_GetCounterDataSize_Params_STRUCT_SIZE:
            sampling = pPmSamplingObject, names = pMetricNames, count = numMetrics, samples = maxSamples, size = counterDataSize);
        same!(DataInitialize = CUpti_PmSampling_CounterDataImage_Initialize_Params, PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE:
            sampling = pPmSamplingObject, size = counterDataSize, image = pCounterData);
        same!(Decode = CUpti_PmSampling_DecodeData_Params, PmSampling_DecodeData_Params_STRUCT_SIZE:
            sampling = pPmSamplingObject, image = pCounterDataImage, size = counterDataImageSize,
            stop_reason = decodeStopReason, overflow = overflow);
        same!(DataInfo = CUpti_PmSampling_GetCounterDataInfo_Params, PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE:
            image = pCounterDataImage, size = counterDataImageSize, total = numTotalSamples,
            populated = numPopulatedSamples, completed = numCompletedSamples);
        same!(SampleInfo = CUpti_PmSampling_CounterData_GetSampleInfo_Params, PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE:
            sampling = pPmSamplingObject, image = pCounterDataImage, size = counterDataImageSize, sample = sampleIndex,
            start = startTimestamp, end = endTimestamp);
        same!(Of = CUpti_PmSampling_Start_Params, PmSampling_Start_Params_STRUCT_SIZE: object = pPmSamplingObject);
        same!(Of = CUpti_PmSampling_Stop_Params, PmSampling_Stop_Params_STRUCT_SIZE: object = pPmSamplingObject);
        same!(Of = CUpti_PmSampling_Disable_Params, PmSampling_Disable_Params_STRUCT_SIZE: object = pPmSamplingObject);
        same!(Of = CUpti_Profiler_Host_Deinitialize_Params, Profiler_Host_Deinitialize_Params_STRUCT_SIZE: object = pHostObject);
        assert_eq!(
            Initialize::LENGTH,
            sys::Profiler_Initialize_Params_STRUCT_SIZE as usize
        );
    }
}

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
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty = $zero:expr),* ; $last:ident: $last_type:ty = $last_zero:expr })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Debug)]
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
                        private: std::ptr::null_mut(),
                        $($field: $zero,)*
                        $last: $last_zero,
                    }
                }
            }
        )*
    };
}

const NOTHING: Object = std::ptr::null_mut();
const NO_BYTES: *mut u8 = std::ptr::null_mut();
const NO_TEXT: *const c_char = std::ptr::null();
const NO_TEXTS: *const *const c_char = std::ptr::null();

params! {
    /// `CUpti_Device_GetChipName_Params`
    ChipName { device: usize = 0; name: *const c_char = NO_TEXT }
    /// `CUpti_Profiler_Host_Initialize_Params`
    HostInitialize {
        profiler: u32 = 0, chip: *const c_char = NO_TEXT, availability: *const u8 = NO_BYTES;
        host: Object = NOTHING
    }
    /// `CUpti_Profiler_Host_ConfigAddMetrics_Params`
    AddMetrics { host: Object = NOTHING, names: *const *const c_char = NO_TEXTS; count: usize = 0 }
    /// `CUpti_Profiler_Host_GetConfigImageSize_Params`
    ConfigSize { host: Object = NOTHING; size: usize = 0 }
    /// `CUpti_Profiler_Host_GetConfigImage_Params`
    ConfigImage { host: Object = NOTHING, size: usize = 0; image: *mut u8 = NO_BYTES }
    /// `CUpti_Profiler_Host_GetNumOfPasses_Params`
    Passes { size: usize = 0, image: *mut u8 = NO_BYTES; passes: usize = 0 }
    /// `CUpti_Profiler_Host_EvaluateToGpuValues_Params`
    Evaluate {
        host: Object = NOTHING, image: *const u8 = NO_BYTES, size: usize = 0, sample: usize = 0,
        names: *const *const c_char = NO_TEXTS, count: usize = 0;
        values: *mut f64 = std::ptr::null_mut()
    }
    /// `CUpti_PmSampling_GetCounterAvailability_Params`
    Availability { device: usize = 0, size: usize = 0; image: *mut u8 = NO_BYTES }
    /// `CUpti_PmSampling_Enable_Params`
    Enable { device: usize = 0; sampling: Object = NOTHING }
    /// `CUpti_PmSampling_SetConfig_Params`
    SetConfig {
        sampling: Object = NOTHING, size: usize = 0, config: *const u8 = NO_BYTES, buffer: usize = 0,
        interval: u64 = 0, trigger: u32 = 0;
        append: u32 = 0
    }
    /// `CUpti_PmSampling_GetCounterDataSize_Params`
    DataSize {
        sampling: Object = NOTHING, names: *const *const c_char = NO_TEXTS, count: usize = 0, samples: u32 = 0;
        size: usize = 0
    }
    /// `CUpti_PmSampling_CounterDataImage_Initialize_Params`
    DataInitialize { sampling: Object = NOTHING, size: usize = 0; image: *mut u8 = NO_BYTES }
    /// `CUpti_PmSampling_DecodeData_Params`
    Decode {
        sampling: Object = NOTHING, image: *mut u8 = NO_BYTES, size: usize = 0, stop_reason: u32 = 0;
        overflow: u8 = 0
    }
    /// `CUpti_PmSampling_GetCounterDataInfo_Params`
    DataInfo { image: *const u8 = NO_BYTES, size: usize = 0, total: usize = 0, populated: usize = 0; completed: usize = 0 }
    /// `CUpti_PmSampling_CounterData_GetSampleInfo_Params`
    SampleInfo {
        sampling: Object = NOTHING, image: *const u8 = NO_BYTES, size: usize = 0, sample: usize = 0, start: u64 = 0;
        end: u64 = 0
    }
    /// `CUpti_PmSampling_Start_Params`, and of stop and disable, which are alike; and `CUpti_Profiler_Host_Deinitialize_Params`.
    Of {; object: Object = NOTHING }
}

/// `CUpti_Profiler_Initialize_Params`: nothing but what all begin with.
#[repr(C)]
#[derive(Debug)]
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

//! PM sampling: counters of a whole GPU at equal distances in time, from outside the program that uses it. It needs CUDA 12.6
//! or later, and compute capability 7.5 or higher.
//!
//! [`Host`] makes of names of metrics a configuration, and says in how many passes the chip could count them; it needs no GPU.
//! [`Sampling`] counts. One pass only can be sampled, and one program at a time can sample a GPU.
//!
//! The functions are looked up apart from [`crate::Api`]: a libcupti without them records activity all the same.

mod choice;
mod host;
mod layouts;
mod sampling;

use std::path::Path;

use crate::api::{Code, SUCCESS};
use crate::library::{Library, Visibility};
use layouts::Params;

pub use choice::Choice;
pub use host::{Config, Host};
pub use sampling::{Decoded, Sample, Sampling, Trigger, chip};

/// `CUPTI_ERROR_HARDWARE_BUSY`: another program has the counters of this GPU.
pub const HARDWARE_BUSY: Code = 26;

/// `CUPTI_ERROR_OUT_OF_MEMORY`: of decoding, that the hardware's buffer was full (its header, and seen on an H100).
pub(crate) const OUT_OF_MEMORY: Code = 8;

type Call<P> = unsafe extern "C" fn(*mut P) -> Code;

crate::functions! {
    /// The functions of PM sampling.
    #[allow(missing_docs)] // the names are the header's names
    pub struct PmApi
    required {
        initialize = c"cuptiProfilerInitialize" (*mut layouts::Initialize);
        chip_name = c"cuptiDeviceGetChipName" (*mut layouts::ChipName);
        host_initialize = c"cuptiProfilerHostInitialize" (*mut layouts::HostInitialize);
        host_deinitialize = c"cuptiProfilerHostDeinitialize" (*mut layouts::Of);
        add_metrics = c"cuptiProfilerHostConfigAddMetrics" (*mut layouts::AddMetrics);
        config_size = c"cuptiProfilerHostGetConfigImageSize" (*mut layouts::ConfigSize);
        config_image = c"cuptiProfilerHostGetConfigImage" (*mut layouts::ConfigImage);
        passes = c"cuptiProfilerHostGetNumOfPasses" (*mut layouts::Passes);
        evaluate = c"cuptiProfilerHostEvaluateToGpuValues" (*mut layouts::Evaluate);
        availability = c"cuptiPmSamplingGetCounterAvailability" (*mut layouts::Availability);
        enable = c"cuptiPmSamplingEnable" (*mut layouts::Enable);
        disable = c"cuptiPmSamplingDisable" (*mut layouts::Of);
        set_config = c"cuptiPmSamplingSetConfig" (*mut layouts::SetConfig);
        start = c"cuptiPmSamplingStart" (*mut layouts::Of);
        stop = c"cuptiPmSamplingStop" (*mut layouts::Of);
        data_size = c"cuptiPmSamplingGetCounterDataSize" (*mut layouts::DataSize);
        data_initialize = c"cuptiPmSamplingCounterDataImageInitialize" (*mut layouts::DataInitialize);
        decode = c"cuptiPmSamplingDecodeData" (*mut layouts::Decode);
        data_info = c"cuptiPmSamplingGetCounterDataInfo" (*mut layouts::DataInfo);
        sample_info = c"cuptiPmSamplingCounterDataGetSampleInfo" (*mut layouts::SampleInfo);
    }
    optional {}
}

impl PmApi {
    /// Of the libcupti at a path, which is open already or must be fit to be opened.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn open(libcupti: &Path) -> Result<PmApi, String> {
        // libcupti asks the loader for these by their names alone, which finds what is open already.
        for file in ["libnvperf_host.so", "libnvperf_target.so"] {
            let beside = libcupti.with_file_name(file);
            if beside.is_file() {
                Library::open(&beside, Visibility::Global)?;
            }
        }
        let library = Library::open(libcupti, Visibility::Local)?;
        // SAFETY: what lies under the name of libcupti is taken for one.
        unsafe { PmApi::resolve(library) }.map_err(|symbol| {
            let symbol = symbol.to_string_lossy();
            format!("this libcupti has no {symbol} (CUDA 12.8 or later has)")
        })
    }

    /// Prepares the driver for profiling. It must be initialised.
    ///
    /// # Errors
    /// CUPTI's code.
    pub fn initialize(&self) -> Result<(), Code> {
        ask(self.initialize, &mut layouts::Initialize::new())
    }
}

/// Calls a function whose parameters are filled in.
fn ask<P: Params>(function: Call<P>, params: &mut P) -> Result<(), Code> {
    // SAFETY: the structure is of the function's own type and says its length. What its pointers point to outlives the call:
    // each caller has it in a variable.
    match unsafe { function(params) } {
        SUCCESS => Ok(()),
        code => Err(code),
    }
}

//! NVML, the library that `nvidia-smi` reads GPUs with: clocks, power, memory, processes, and the counters of GPM.
//!
//! Needs no root, and works beside CUPTI's activity records on the same GPU. Names, numbers, units and layouts are those of
//! NVIDIA's `nvml.h` (12.2 to 13.3, as NVIDIA/go-nvml carries it) and of `nvidia-ml-py`. What not every driver has is an
//! `Option` in the table of functions, and its absence is [`code::FUNCTION_NOT_FOUND`], as NVML itself would say it.
//!
//! Which NVML device is which CUDA device is told by UUID: NVML's order is not CUDA's, and `CUDA_VISIBLE_DEVICES` changes
//! CUDA's alone.
//!
//! `nvmlDeviceGetPcieThroughput` is left out: it waits for 20 ms. GPM has the same figures.

mod api;
mod device;
mod gpm;
mod layouts;

use std::path::Path;
use std::rc::Rc;

use crate::library::{Library, Visibility};
use api::NvmlApi;

pub use device::{Device, GpuProcess, Memory, uuid_text};
pub use gpm::{Gpm, metric};

/// The library's name, which the system's loader finds.
pub const FILE: &str = "libnvidia-ml.so.1";

/// Result codes (`nvmlReturn_t`).
pub mod code {
    /// Success.
    pub const SUCCESS: u32 = 0;
    /// This GPU cannot.
    pub const NOT_SUPPORTED: u32 = 3;
    /// This user may not.
    pub const NO_PERMISSION: u32 = 4;
    /// There is no such device.
    pub const NOT_FOUND: u32 = 6;
    /// The array given is too short; the length needed was written.
    pub const INSUFFICIENT_SIZE: u32 = 7;
    /// The library has no such function.
    pub const FUNCTION_NOT_FOUND: u32 = 13;
    /// The GPU has fallen off the bus.
    pub const GPU_IS_LOST: u32 = 15;
    /// There is nothing to tell yet.
    pub const NO_DATA: u32 = 21;
}

/// What a code means, in words for people.
pub fn describe(code: u32) -> &'static str {
    match code {
        code::SUCCESS => "success",
        1 => "NVML is not initialised",
        2 => "NVML refused the argument",
        code::NOT_SUPPORTED => "not on this GPU",
        code::NO_PERMISSION => "not permitted",
        code::NOT_FOUND => "no such GPU",
        9 => "NVIDIA's kernel module is not loaded",
        code::FUNCTION_NOT_FOUND => "not in this driver",
        code::GPU_IS_LOST => "the GPU is lost",
        18 => "the library and the kernel module have different versions",
        code::NO_DATA => "no data",
        25 => "not in this version of NVML",
        _ => "an error of NVML",
    }
}

fn checked(code: u32) -> Result<(), u32> {
    match code {
        code::SUCCESS => Ok(()),
        code => Err(code),
    }
}

/// Why NVML cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NvmlError {
    /// There is no such library.
    #[error("{FILE} cannot be loaded ({0})")]
    Missing(String),
    /// It lacks a function without which nothing goes.
    #[error("{FILE} has no {0}")]
    Incomplete(&'static str),
    /// It does not initialise.
    #[error("nvmlInit failed with code {0}, {words}", words = describe(*.0))]
    Init(u32),
}

/// NVML, loaded and initialised; shut down with the last value that uses it.
#[derive(Clone, Debug)]
pub struct Nvml(Rc<Session>);

#[derive(Debug)]
struct Session(NvmlApi);

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(shutdown) = self.0.shutdown {
            // SAFETY: it was initialised once for this value, and every handle holds the session, so none is left.
            unsafe { shutdown() };
        }
    }
}

impl Nvml {
    /// Loads the system's.
    ///
    /// # Errors
    /// When it is missing, incomplete, or does not initialise.
    pub fn load() -> Result<Nvml, NvmlError> {
        Nvml::open(Path::new(FILE))
    }

    /// Loads the one at a path.
    ///
    /// # Errors
    /// When it is missing, incomplete, or does not initialise.
    pub fn open(path: &Path) -> Result<Nvml, NvmlError> {
        let library = Library::open(path, Visibility::Local).map_err(NvmlError::Missing)?;
        // SAFETY: what is found under NVML's name is taken for it.
        let api = unsafe { NvmlApi::resolve(library) }
            .map_err(|symbol| NvmlError::Incomplete(symbol.to_str().unwrap_or_default()))?;
        // SAFETY: takes nothing, and may be called any number of times from any thread; each is matched by a shutdown.
        match unsafe { (api.init)() } {
            code::SUCCESS => Ok(Nvml(Rc::new(Session(api)))),
            code => Err(NvmlError::Init(code)),
        }
    }

    /// The GPU, or the part of one (MIG), with this UUID as CUDA gives it.
    ///
    /// # Errors
    /// NVML's code: [`code::NOT_FOUND`] when this machine has none of that UUID.
    pub fn device(&self, uuid: &[u8; 16]) -> Result<Device, u32> {
        let mut last = code::NOT_FOUND;
        for prefix in [c"GPU-", c"MIG-"] {
            match Device::find(self, prefix, uuid) {
                Ok(device) => return Ok(device),
                Err(code) => last = code,
            }
        }
        Err(last)
    }

    /// All GPUs that this process may use, in NVML's order, which is that of the PCI bus. Those that NVML cannot open are left out.
    ///
    /// # Errors
    /// NVML's code.
    pub fn devices(&self) -> Result<Vec<Device>, u32> {
        let count = self.api().count.ok_or(code::FUNCTION_NOT_FOUND)?;
        let mut number = 0;
        // SAFETY: room for one number.
        checked(unsafe { count(&raw mut number) })?;
        let all = (0..number).filter_map(|index| Device::at(self, index).ok());
        Ok(all.collect())
    }

    fn api(&self) -> &NvmlApi {
        &self.0.0
    }
}

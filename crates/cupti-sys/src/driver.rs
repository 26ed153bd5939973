//! libcuda: it has to be loaded, and outside of an injection initialised, before libcupti is touched.
//!
//! Without it libcupti 13.2 crashes at any call, and later ones answer 999 to everything.

use std::path::Path;

use crate::library::{Library, Visibility};
use crate::search::{self, DRIVER};

/// Why there is no usable driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// libcuda.so.1 cannot be loaded.
    #[error("libcuda.so.1 cannot be loaded ({0})")]
    Missing(String),
    /// It lacks a function.
    #[error("libcuda.so.1 has no {0}")]
    Incomplete(&'static str),
    /// `cuInit` failed.
    #[error("cuInit failed with code {0}{hint}", hint = init_hint(*.0))]
    Init(u32),
}

fn init_hint(code: u32) -> &'static str {
    match code {
        100 => ": no CUDA device is visible",
        3 => ": CUDA was used before this process forked",
        34 => ": this is the stub library of the toolkit, not a driver",
        803 => ": the driver's library and its kernel module have different versions",
        804 => ": a compatibility package that this GPU is not supported by",
        999 => ": unknown, often a kernel module that is not loaded",
        _ => "",
    }
}

/// Loads libcuda (never closed again), initialises it and asks which CUDA version it offers, as
/// 1000 x major + 10 x minor.
///
/// # Errors
/// When it is missing or does not initialise.
pub fn initialise() -> Result<u32, DriverError> {
    let library = open()?;
    // SAFETY: the signature is that of cuda.h.
    let init = unsafe { library.function::<unsafe extern "C" fn(u32) -> u32>(c"cuInit") }
        .ok_or(DriverError::Incomplete("cuInit"))?;
    // SAFETY: cuInit may be called any number of times, from any thread.
    match unsafe { init(0) } {
        0 => version(),
        code => Err(DriverError::Init(code)),
    }
}

/// Which CUDA version the driver offers, as 1000 x major + 10 x minor. Initialises nothing.
///
/// # Errors
/// When the driver is missing.
pub fn version() -> Result<u32, DriverError> {
    let library = open()?;
    // SAFETY: the signature is that of cuda.h.
    let version =
        unsafe { library.function::<unsafe extern "C" fn(*mut i32) -> u32>(c"cuDriverGetVersion") }
            .ok_or(DriverError::Incomplete("cuDriverGetVersion"))?;
    let mut value = 0;
    // SAFETY: writes one int.
    match unsafe { version(&raw mut value) } {
        0 => Ok(u32::try_from(value).unwrap_or(0)),
        code => Err(DriverError::Init(code)),
    }
}

/// Whether this process has initialised CUDA. Loads and initialises nothing.
pub fn is_in_use() -> bool {
    /// CUDA_ERROR_NOT_INITIALIZED
    const NOT_INITIALIZED: u32 = 3;
    let Some(library) = Library::loaded(Path::new(DRIVER)) else {
        return false;
    };
    let mut devices = 0;
    // SAFETY: the signature is that of cuda.h; it writes one int.
    let code = unsafe {
        let count = library.function::<unsafe extern "C" fn(*mut i32) -> u32>(c"cuDeviceGetCount");
        count.map(|count| count(&raw mut devices))
    };
    code.is_some_and(|code| code != NOT_INITIALIZED)
}

/// Loads libcuda without calling anything in it, as code must that runs inside `cuInit`. It stays loaded.
///
/// # Errors
/// When it is missing.
pub fn open() -> Result<Library, DriverError> {
    // Global, as a program that links libcuda has it: libcupti looks its symbols up.
    Library::open(Path::new(DRIVER), Visibility::Global).map_err(DriverError::Missing)
}

/// The major CUDA version of a driver's library, from its file name (`libcuda.so.580.159.04`): what can be known without
/// calling it. Driver branches from 580 on offer CUDA 13, from 525 on CUDA 12, from 450 on CUDA 11
/// (NVIDIA's compatibility table).
pub fn major_of_file(path: &Path) -> Option<u32> {
    match branch_of_file(path)? {
        580.. => Some(13),
        525.. => Some(12),
        450.. => Some(11),
        _ => None,
    }
}

/// The branch of the driver that is loaded here.
pub fn branch() -> Option<u32> {
    let mapped = search::mapped_files();
    mapped.iter().find_map(|it| branch_of_file(it))
}

/// The branch of a driver's library, from its file name: 580 of `libcuda.so.580.159.04`.
pub fn branch_of_file(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_prefix("libcuda.so.")?;
    name.split('.').next()?.parse().ok().filter(|it| *it > 99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_of_a_driver_tells_its_cuda() {
        let major = |name: &str| major_of_file(Path::new(name));
        assert_eq!(major("/usr/lib/libcuda.so.580.159.04"), Some(13));
        assert_eq!(major("/usr/lib/libcuda.so.535.183.01"), Some(12));
        assert_eq!(major("/usr/lib/libcuda.so.1"), None);
        assert_eq!(major("/usr/lib/libcudart.so.13"), None);
    }
}

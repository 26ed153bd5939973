//! Loading libcupti: the driver first, then the first library of [`crate::search`] that is fit for use.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::api::{Api, SUCCESS, describe};
use crate::driver::{self, DriverError};
use crate::fit::{NoneFits, first_fit};
use crate::library::Library;
use crate::search::{self, CUPTI, Candidate, Surroundings};

/// Who asks for the library, which decides what may be called on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// An ordinary program: the driver is initialised first.
    Program,
    /// Code that the driver runs inside `cuInit`: no CUDA function may be called.
    InsideInjection,
    /// Code that came into a running program, which has initialised the driver by itself.
    Attached,
}

/// A loaded libcupti.
#[derive(Clone, Debug)]
pub struct Cupti {
    /// Its functions.
    pub api: Api,
    /// Where it lies.
    pub path: PathBuf,
    /// What `cuptiGetVersion` said: 18 to 28 for 11.8 to 12.9, then 130001 and the like.
    pub version: u32,
    /// The CUDA version that the driver offers, as 1000 x major + 10 x minor, where it could be asked.
    pub driver: Option<u32>,
}

/// Why no libcupti could be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No usable driver; libcupti was not touched.
    #[error("there is no usable CUDA driver: {0}")]
    Driver(#[from] DriverError),
    /// None of those found is fit.
    #[error(transparent)]
    NoneFits(#[from] NoneFits),
}

impl LoadError {
    /// What would help, in a sentence.
    pub fn help(&self) -> &'static str {
        match self {
            LoadError::Driver(DriverError::Missing(_)) => {
                "install NVIDIA's driver; in a container, start it with --gpus all (NVIDIA_DRIVER_CAPABILITIES=compute,utility)"
            }
            LoadError::Driver(DriverError::Init(_) | DriverError::Incomplete(_)) => {
                "check that nvidia-smi works, and CUDA_VISIBLE_DEVICES"
            }
            LoadError::NoneFits(none) => none.wanted.help,
        }
    }
}

/// What is known to be wrong with a libcupti, by what `cuptiGetVersion` says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The version.
    pub version: u32,
    /// Whether it is not used at all; else it is, and this is said.
    pub is_refused: bool,
    /// What is wrong, and the version that helps.
    pub text: &'static str,
}

/// Versions with faults that change what is recorded, or end programs.
pub const FAULTS: &[Fault] = &[
    Fault {
        version: 22,
        is_refused: false,
        text: "CUPTI of CUDA 12.4 is known to leave out kernels in some programs; 12.6 or later does not",
    },
    Fault {
        version: 130_000,
        is_refused: true,
        text: "13.0 without its update 1 loses synchronisation records and can deadlock; 13.0.85 or later is needed",
    },
    Fault {
        version: 130_100,
        is_refused: false,
        text: "CUPTI 13.1 without its update 1 tells launches of graphs wrongly when it is switched on again; 13.1.115 or later does not",
    },
    Fault {
        version: 130_400,
        is_refused: false,
        text: "CUPTI 13.4 without its update 1 takes more and more time in long recordings; 13.4.1 or later does not",
    },
];

impl Cupti {
    /// Loads the best libcupti of this machine.
    ///
    /// # Errors
    /// When there is no usable driver, or no usable libcupti; says what was tried.
    pub fn load(caller: Caller) -> Result<Cupti, LoadError> {
        let (driver, major) = match caller {
            Caller::Program => {
                let version = driver::initialise()?;
                (Some(version), Some(version / 1000))
            }
            Caller::Attached => {
                let version = driver::version()?;
                (Some(version), Some(version / 1000))
            }
            Caller::InsideInjection => {
                driver::open()?;
                let mut mapped = search::mapped_files().into_iter();
                (None, mapped.find_map(|path| driver::major_of_file(&path)))
            }
        };
        let surroundings = Surroundings::of_this_process(&CUPTI);
        let mut cupti = first_fit(&CUPTI, &surroundings, major, |library, candidate| {
            open(library, candidate, major)
        })?;
        cupti.driver = driver;
        Ok(cupti)
    }

    /// The CUDA major version that this libcupti belongs to.
    pub fn major(&self) -> u32 {
        major_of_version(self.version)
    }

    /// What is known to be wrong with it.
    pub fn fault(&self) -> Option<&'static str> {
        fault(self.version).map(|it| it.text)
    }

    /// Whether a callback may decline a buffer by giving none. Before 12.9 that crashes the library.
    pub fn may_decline_buffers(&self) -> bool {
        self.version >= 27
    }

    /// "CUPTI 130001 (/usr/local/cuda/…/libcupti.so.13)" for people.
    pub fn describe(&self) -> String {
        let mut text = format!("CUPTI {} ({})", self.version, self.path.display());
        if let Some(driver) = self.driver {
            let (major, minor) = (driver / 1000, driver % 1000 / 10);
            let _ = write!(text, ", driver for CUDA {major}.{minor}");
        }
        text
    }
}

fn fault(version: u32) -> Option<&'static Fault> {
    FAULTS.iter().find(|it| it.version == version)
}

fn major_of_version(version: u32) -> u32 {
    match version {
        100_000.. => version / 10_000,
        // 11.8, 12.0 and 12.1 all say 18; their files' names tell them apart where that matters.
        18.. => 12,
        _ => 11,
    }
}

fn open(library: Library, candidate: &Candidate, driver: Option<u32>) -> Result<Cupti, String> {
    // SAFETY: what is found under the name of libcupti is taken for one.
    let api = unsafe { Api::resolve(library) }
        .map_err(|symbol| format!("it does not export {}", symbol.to_string_lossy()))?;
    let mut version = 0;
    // SAFETY: writes one u32.
    let code = unsafe { (api.get_version)(&raw mut version) };
    if code != SUCCESS {
        let what = describe(code);
        return Err(format!("cuptiGetVersion failed with code {code}, {what}"));
    }
    if let Some(fault) = fault(version).filter(|it| it.is_refused) {
        return Err(fault.text.to_owned());
    }
    let major = major_of_version(version);
    if let Some(driver) = driver
        && major > driver
    {
        return Err(format!(
            "it is for CUDA {major}, the driver offers CUDA {driver}"
        ));
    }
    let path = library.file_of(c"cuptiGetVersion");
    Ok(Cupti {
        api,
        path: path.unwrap_or_else(|| candidate.path.clone()),
        version,
        driver: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_majors() {
        assert_eq!(major_of_version(28), 12);
        assert_eq!(major_of_version(130_001), 13);
        assert_eq!(major_of_version(140_000), 14);
    }
}

//! Loading libcupti: the driver first, then the first library of [`crate::search`] that is fit for use.
//!
//! A loaded library is never closed: it holds threads and callbacks for the rest of the process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::api::{Api, SUCCESS, describe};
use crate::driver::{self, DriverError};
use crate::search::{self, Candidate, MAPPED, Surroundings};

/// Who asks for the library, which decides what may be called on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// An ordinary program: the driver is initialised first.
    Program,
    /// Code that the driver runs inside `cuInit`: no CUDA function may be called.
    InsideInjection,
}

/// A loaded libcupti.
#[derive(Clone, Debug)]
pub struct Cupti {
    /// Its functions.
    pub api: Api,
    /// Where it lies.
    pub path: PathBuf,
    /// Why this one, in words.
    pub why: &'static str,
    /// What `cuptiGetVersion` said: 18 to 28 for 11.8 to 12.9, then 130001 and the like.
    pub version: u32,
    /// The CUDA version that the driver offers, as 1000 x major + 10 x minor, where it could be asked.
    pub driver: Option<u32>,
}

/// A library that was looked at and not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Where it lies.
    pub path: PathBuf,
    /// Why not.
    pub reason: String,
}

/// Why no libcupti could be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No usable driver; libcupti was not touched.
    #[error("there is no usable CUDA driver: {0}")]
    Driver(#[from] DriverError),
    /// None of those found is fit.
    #[error("{}", describe_rejected(rejected, *searched))]
    NoneFits {
        /// What was looked at and why it was not taken.
        rejected: Vec<Rejected>,
        /// Directories that were searched.
        searched: usize,
    },
}

fn describe_rejected(rejected: &[Rejected], searched: usize) -> String {
    if rejected.is_empty() {
        return format!("no libcupti was found ({searched} directories were searched)");
    }
    let mut text = String::from("no usable libcupti:");
    for it in rejected {
        let _ = write!(text, " {}: {};", it.path.display(), it.reason);
    }
    text.pop();
    text
}

impl LoadError {
    /// What would help, in a sentence.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            LoadError::Driver(DriverError::Missing(_)) => {
                "install NVIDIA's driver; in a container, start it with --gpus all (NVIDIA_DRIVER_CAPABILITIES=compute,utility)"
            }
            LoadError::Driver(DriverError::Init(_) | DriverError::Incomplete(_)) => {
                "check that nvidia-smi works, and CUDA_VISIBLE_DEVICES"
            }
            LoadError::NoneFits { .. } => {
                "pip install nvidia-cuda-cupti (13.0.85 for a driver of CUDA 13; nvidia-cuda-cupti-cu12 for CUDA 12), or set CUPTOP_CUPTI to the path of a libcupti.so of the driver's CUDA version"
            }
        }
    }
}

/// CUDA 13.0 without its first update: no records of cudaDeviceSynchronize, a deadlock when kernel
/// records are switched off, crashes in flushes. All repaired in 130001.
pub const REFUSED: u32 = 130_000;

impl Cupti {
    /// Loads the best libcupti of this machine.
    ///
    /// # Errors
    /// When there is no usable driver, or no usable libcupti; says what was tried.
    pub fn load(caller: Caller) -> Result<Cupti, LoadError> {
        Cupti::load_from(&Surroundings::of_this_process(), caller)
    }

    /// Loads the best libcupti of these surroundings.
    ///
    /// # Errors
    /// As [`Cupti::load`].
    pub fn load_from(surroundings: &Surroundings, caller: Caller) -> Result<Cupti, LoadError> {
        let (driver, major) = match caller {
            Caller::Program => {
                let version = driver::initialise()?;
                (Some(version), Some(version / 1000))
            }
            Caller::InsideInjection => {
                driver::keep_loaded()?;
                (None, driver::mapped_major(&search::mapped_files()))
            }
        };
        let candidates = search::in_order_of_fit(surroundings.candidates(), major);
        let mut rejected = Vec::new();
        for candidate in candidates {
            match open(&candidate, major) {
                Ok(mut cupti) => {
                    cupti.driver = driver;
                    return Ok(cupti);
                }
                Err(reason) => {
                    let mapped = candidate.why == MAPPED;
                    rejected.push(Rejected {
                        path: candidate.path,
                        reason,
                    });
                    if mapped {
                        // A second copy in this process would be two state machines over one driver.
                        break;
                    }
                }
            }
        }
        if let Some(path) = surroundings.chosen.as_ref().filter(|_| rejected.is_empty()) {
            rejected.push(Rejected {
                path: path.clone(),
                reason: "CUPTOP_CUPTI names it, and it is not the absolute path of a file"
                    .to_owned(),
            });
        }
        Err(LoadError::NoneFits {
            rejected,
            searched: surroundings.directories().len(),
        })
    }

    /// Loads exactly this file, without a driver and without any check. For tests of the parts of
    /// libcupti that work without a driver (up to CUDA 13.1; 13.2 crashes at the first call).
    ///
    /// # Errors
    /// When it cannot be loaded or lacks a function.
    pub fn load_unchecked(path: &Path) -> Result<Cupti, String> {
        open_file(path, "a test names it")
    }

    /// The CUDA major version that this libcupti belongs to.
    #[must_use]
    pub fn major(&self) -> u32 {
        major_of_version(self.version)
    }

    /// Whether a callback may decline a buffer by giving none. Before 12.9 that crashes the library.
    #[must_use]
    pub fn may_decline_buffers(&self) -> bool {
        self.version >= 27
    }

    /// "CUPTI 130001 (/usr/local/cuda/…/libcupti.so.13)" for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("CUPTI {} ({})", self.version, self.path.display());
        if let Some(driver) = self.driver {
            let _ = write!(
                text,
                ", driver for CUDA {}.{}",
                driver / 1000,
                driver % 1000 / 10
            );
        }
        text
    }
}

fn major_of_version(version: u32) -> u32 {
    match version {
        100_000.. => version / 10_000,
        // 11.8, 12.0 and 12.1 all say 18; their files' names tell them apart where that matters.
        18.. => 12,
        _ => 11,
    }
}

fn open(candidate: &Candidate, driver: Option<u32>) -> Result<Cupti, String> {
    let cupti = open_file(&candidate.path, candidate.why)?;
    if cupti.version == REFUSED {
        return Err("13.0 without its update 1 loses synchronisation records and can deadlock; 13.0.85 or later is needed".to_owned());
    }
    if let Some(driver) = driver
        && cupti.major() > driver
    {
        return Err(format!(
            "it is for CUDA {}, the driver offers CUDA {driver}",
            cupti.major()
        ));
    }
    Ok(cupti)
}

fn open_file(path: &Path, why: &'static str) -> Result<Cupti, String> {
    // A mapped file is found again by its path: the same file is never mapped twice.
    // SAFETY: loading a libcupti runs its initialisers, which wait for calls.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| error.to_string())?;
    let library = libloading::Library::from(library);
    // SAFETY: the library is leaked below, so the table outlives nothing.
    let api = unsafe { Api::resolve(&library) };
    std::mem::forget(library);
    let api = api.map_err(|symbol| format!("it does not export {symbol}"))?;
    let mut version = 0;
    // SAFETY: writes one u32.
    let code = unsafe { (api.get_version)(&raw mut version) };
    if code != SUCCESS {
        return Err(format!(
            "cuptiGetVersion failed with code {code}, {}",
            describe(code)
        ));
    }
    Ok(Cupti {
        api,
        path: path.to_path_buf(),
        why,
        version,
        driver: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_what_was_tried() {
        let error = LoadError::NoneFits {
            rejected: vec![Rejected {
                path: "/x/libcupti.so.13".into(),
                reason: "too new".to_owned(),
            }],
            searched: 4,
        };
        assert_eq!(
            error.to_string(),
            "no usable libcupti: /x/libcupti.so.13: too new"
        );
    }

    #[test]
    fn versions_have_majors() {
        assert_eq!(major_of_version(28), 12);
        assert_eq!(major_of_version(130_001), 13);
        assert_eq!(major_of_version(140_000), 14);
    }
}

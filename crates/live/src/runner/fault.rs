//! Why a job could not be done, in words for the user.

use activity::feed::FailureKind;
use scenario::plan::{Site, SiteId};

use super::driver::{self, Code, CudaError, Driver, LoadError};

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What kind.
    pub(crate) kind: FailureKind,
    /// What failed and why.
    pub(crate) message: String,
    /// What would help; may be empty.
    pub(crate) help: String,
    /// The scenario's place that it came from.
    pub(crate) site: Option<SiteId>,
}

impl Fault {
    pub(crate) fn new(
        kind: FailureKind,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Fault {
        Fault {
            kind,
            message: message.into(),
            help: help.into(),
            site: None,
        }
    }

    /// The scenario is wrong.
    pub(crate) fn input(message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault::new(FailureKind::Input, message, help)
    }

    /// The machine cannot do it.
    pub(crate) fn machine(message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault::new(FailureKind::Machine, message, help)
    }

    /// A driver function failed while `doing` something ("cuMemAlloc of 16 MiB").
    pub(crate) fn cuda(doing: &str, error: &CudaError) -> Fault {
        let help = match error.code {
            driver::NO_BINARY_FOR_GPU | driver::UNSUPPORTED_PTX => {
                "the CUDA compiler library is newer than the driver: set CUPTOP_NVRTC to an older one"
            }
            driver::OUT_OF_RESOURCES => {
                "the block is too large for the registers or the shared memory that the kernel needs"
            }
            driver::LAUNCH_TIMEOUT => {
                "the GPU also drives a display, which limits how long a kernel may run"
            }
            driver::ILLEGAL_ADDRESS | driver::MISALIGNED_ADDRESS => {
                "run the kernel's own program under compute-sanitizer to find the access"
            }
            _ => "",
        };
        let message = format!("{doing}: {error}");
        Fault::new(FailureKind::Program { code: 4 }, message, help)
    }

    /// The same, at a place of the scenario.
    pub(crate) fn placed_at(mut self, site: SiteId) -> Fault {
        self.site = Some(site);
        self
    }

    /// The same at a place, unless it has one already.
    pub(crate) fn or_at(mut self, site: SiteId) -> Fault {
        self.site.get_or_insert(site);
        self
    }

    /// Puts the place in front of the message: "pipeline.toml:31:7: …".
    pub(crate) fn located(mut self, file: &str, sites: &[Site]) -> Fault {
        if let Some(site) = self.site.and_then(|site| sites.get(site as usize)) {
            self.message = format!("{file}:{}:{}: {}", site.line, site.column, self.message);
        }
        self
    }
}

impl Driver {
    /// What a call that was to do something returned, as a fault where it failed.
    pub(crate) fn must(&self, doing: &str, code: Code) -> Result<(), Fault> {
        self.check(code).map_err(|error| Fault::cuda(doing, &error))
    }
}

impl From<LoadError> for Fault {
    fn from(error: LoadError) -> Fault {
        Fault::machine(error.to_string(), error.help())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_line() {
        let sites = [Site {
            span: 10..12,
            line: 31,
            column: 7,
        }];
        let fault = Fault::input("too many arguments", "").placed_at(0);
        let text = fault.located("pipeline.toml", &sites).message;
        assert_eq!(text, "pipeline.toml:31:7: too many arguments");
        let nowhere = Fault::machine("no GPU", "").located("pipeline.toml", &sites);
        assert_eq!(nowhere.message, "no GPU");
    }
}

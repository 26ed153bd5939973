//! What a machine has: the answer to a probe.

use scenario::plan::SiteId;
use serde::{Deserialize, Serialize};

use super::device::Gpu;

/// One thing that running needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Whether it is there and usable.
    pub is_usable: bool,
    /// What was found, or why it is not usable.
    pub text: String,
    /// What would help; empty when it is usable.
    pub help: String,
}

/// A kernel that the compiler here rejects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Where the scenario defines it.
    pub site: SiteId,
    /// Which one, for which GPU, and the first error.
    pub error: String,
    /// What would help.
    pub help: String,
}

/// What this machine has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub driver: Part,
    /// The newest CUDA that the driver supports, major and minor.
    pub cuda: Option<(u32, u32)>,
    /// The GPUs that a process here sees.
    pub gpus: Vec<Gpu>,
    /// The library that records GPU activity. Without it nothing can be recorded.
    pub cupti: Part,
    /// The compiler library. Without it scenarios with kernels cannot run.
    pub nvrtc: Part,
}

impl Probe {
    /// Whether scenarios can run on a GPU here.
    pub fn can_run(&self) -> bool {
        self.driver.is_usable && !self.gpus.is_empty() && self.cupti.is_usable
    }

    /// The first thing that is missing for running on a GPU, and what would help.
    pub fn obstacle(&self) -> Option<&Part> {
        [&self.driver, &self.cupti]
            .into_iter()
            .find(|part| !part.is_usable)
    }
}

impl Part {
    /// One that is there.
    pub fn usable(text: impl Into<String>) -> Part {
        Part {
            is_usable: true,
            text: text.into(),
            help: String::new(),
        }
    }

    /// One that is not, and what would help.
    pub fn missing(text: impl Into<String>, help: impl Into<String>) -> Part {
        Part {
            is_usable: false,
            text: text.into(),
            help: help.into(),
        }
    }
}

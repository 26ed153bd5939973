//! A process of this machine, as one that may be attached to.

/// A process that may be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The GPU that it is on, by NVML's number.
    pub gpu: u32,
    pub pid: u32,
    /// When it began: a later process may have its number.
    pub began: Option<u64>,
}

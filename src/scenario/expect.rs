//! `[expect]`: what must hold of a run's figures.

use super::site::SiteId;

/// One line of `[expect]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The left side as written ("streamed.speedup_over.sequential").
    pub what: String,
    /// The variant it speaks of.
    pub variant: String,
    /// At which value of the sweep, when there is one; `None` means at every value.
    pub point: Option<i64>,
    /// Which figure.
    pub figure: Figure,
    /// How the measured figure must compare with `value`.
    pub compare: Compare,
    /// The bound, in the figure's own unit (a share, GB/s, ns, bytes, a count).
    pub value: f64,
    /// The right side as written (">= 2.0").
    pub expected: String,
    /// Where the file says so.
    pub site: SiteId,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// At least.
    AtLeast,
    /// At most.
    AtMost,
    /// More than.
    Above,
    /// Less than.
    Below,
}

/// A figure of one variant (at one value of the sweep).
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Makespan of the other variant over this one's.
    SpeedupOver(String),
    /// Wall time of the other variant over this one's.
    WallSpeedupOver(String),
    /// Share of copy time during which a kernel ran.
    Overlap,
    /// Share of the makespan during which nothing ran on any device.
    Idle,
    /// First operation's start to the last one's end, in ns.
    Makespan,
    /// The host's time around a repeat, in ns.
    Wall,
    /// GB/s of one direction: bytes over the sum of the copies' durations.
    Gbps(crate::activity::Direction),
    /// GB/s of a kernel: the `bytes` it declares over its measured time.
    KernelGbps(String),
    /// FLOP/s of a kernel: the `flops` it declares over its measured time.
    KernelFlops(String),
    /// The most device memory that was allocated at one time, in bytes.
    PeakMemory,
    /// Host time inside ranges of this name, in ns.
    Phase(String),
    /// GPU operations of a repeat.
    Ops,
    /// Kernels of a repeat.
    Kernels,
}

impl Compare {
    /// Whether `measured` satisfies it.
    #[must_use]
    pub fn holds(self, measured: f64, bound: f64) -> bool {
        match self {
            Compare::AtLeast => measured >= bound,
            Compare::AtMost => measured <= bound,
            Compare::Above => measured > bound,
            Compare::Below => measured < bound,
        }
    }
}

//! The figures of a variant: the one table of them.
//!
//! Expectations, the schema of scenario files, reports, comparisons, charts and the screen all go by [`FIGURES`]. An
//! entry holds a figure's name, its subject, its unit, what it needs of a plan, and its words. The arm for its [`Kind`]
//! in `figures::variants::measure` tells how it is measured; the compiler asks for that arm.

use super::expr::value;
use activity::Direction;
use activity::units::Unit;

/// What follows a figure's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Nothing.
    None,
    /// Another variant.
    Variant,
    /// A kernel of the scenario.
    Kernel,
    /// The name of a range.
    Range,
    /// One of [`CAUSES`].
    Cause,
}

/// What idle time is added up under. `causes::Group` has the same.
pub const CAUSES: [&str; 8] = [
    "cpu_work",
    "launching",
    "sync",
    "memory_and_set_up",
    "queues_and_copies",
    "another_process",
    "profiler",
    "unknown",
];

/// What a plan must have so that a figure can be measured at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing in particular.
    Nothing,
    /// A copy in this direction.
    Copies(Direction),
    /// A launch of the kernel that states its `bytes`.
    Bytes,
    /// A launch of the kernel that states its `flops`.
    Flops,
    /// One that states either.
    Work,
    /// A range of the name.
    Range,
}

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Which figure.
    pub kind: Kind,
    /// Its name in scenario files and in JSON.
    pub name: &'static str,
    /// What follows the name.
    pub operand: Operand,
    /// What its numbers are.
    pub unit: Unit,
    /// What it needs of a plan.
    pub needs: Needs,
    /// What it is.
    pub words: &'static str,
    /// A bound, as an example.
    pub bound: &'static str,
}

macro_rules! figures {
    ($($kind:ident $name:literal $operand:ident $unit:ident $needs:expr, $words:literal, $bound:literal;)*) => {
        /// Which figure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = $words] $kind,)*
        }

        /// Every figure, in the order in which they are shown.
        pub const FIGURES: &[Spec] = &[
            $(Spec {
                kind: Kind::$kind,
                name: $name,
                operand: Operand::$operand,
                unit: Unit::$unit,
                needs: $needs,
                words: $words,
                bound: $bound,
            },)*
        ];
    };
}

figures! {
    SpeedupOver "speedup_over" Variant Ratio Needs::Nothing,
        "the other variant's makespan over this one's", ">= 2";
    WallSpeedupOver "wall_speedup_over" Variant Ratio Needs::Nothing,
        "the other variant's wall time over this one's", ">= 2";
    Makespan "makespan" None Time Needs::Nothing,
        "first operation's start to the last one's end", "<= 3 ms";
    Step "step" None Time Needs::Nothing,
        "the median makespan of all repeats", "<= 3 ms";
    Wall "wall" None Time Needs::Nothing,
        "the host's time around a pass", "<= 3 ms";
    Idle "idle" None Share Needs::Nothing,
        "share of the makespan during which nothing ran on any device", "<= 5 %";
    IdleBy "idle_by" Cause Share Needs::Nothing,
        "share of the makespan during which a device ran nothing for this cause", "<= 5 %";
    Overlap "overlap" None Share Needs::Nothing,
        "share of the copies' time during which a kernel ran on the same device", ">= 70 %";
    H2dGbps "h2d_gbps" None Rate Needs::Copies(Direction::H2D),
        "bytes over the sum of the copies' times, host to device", ">= 50 GB/s";
    D2hGbps "d2h_gbps" None Rate Needs::Copies(Direction::D2H),
        "bytes over the sum of the copies' times, device to host", ">= 50 GB/s";
    D2dGbps "d2d_gbps" None Rate Needs::Copies(Direction::D2D),
        "bytes over the sum of the copies' times, within a device", ">= 1 TB/s";
    P2pGbps "p2p_gbps" None Rate Needs::Copies(Direction::P2P),
        "bytes over the sum of the copies' times, between devices", ">= 100 GB/s";
    H2dShare "h2d_share" None Share Needs::Copies(Direction::H2D),
        "the share that `h2d_gbps` has of what the GPU's own link gives to this direction alone", ">= 80 %";
    D2hShare "d2h_share" None Share Needs::Copies(Direction::D2H),
        "the share that `d2h_gbps` has of what the GPU's own link gives to this direction alone", ">= 80 %";
    KernelGbps "kernel_gbps" Kernel Rate Needs::Bytes,
        "the kernel's declared `bytes` over the sum of its times", ">= 2 TB/s";
    KernelFlops "kernel_flops" Kernel Flops Needs::Flops,
        "the kernel's declared `flops` over the sum of its times", ">= 10 TFLOP/s";
    PeakShare "peak_share" Kernel Share Needs::Work,
        "the share that `kernel_gbps` or `kernel_flops`, whichever is nearer, has of the GPU's own peak", ">= 70 %";
    PeakMemory "peak_memory" None Bytes Needs::Nothing,
        "the most device memory in use at one time", "<= 64 MiB";
    Phase "phase" Range Time Needs::Range,
        "the host's time inside ranges of that name", "<= 200 us";
    Ops "ops" None Count Needs::Nothing,
        "GPU operations of a pass", "<= 10";
    Kernels "kernels" None Count Needs::Nothing,
        "kernels of a pass", "<= 10";
}

impl Kind {
    /// Its entry.
    pub fn spec(self) -> &'static Spec {
        &FIGURES[self as usize]
    }
}

/// The unit that a bound on a figure is written in.
pub(super) fn bound_unit(of: Unit) -> value::Unit {
    match of {
        Unit::Ratio | Unit::Count => value::Unit::None,
        Unit::Share => value::Unit::Share,
        Unit::Time => value::Unit::Time,
        Unit::Rate => value::Unit::Rate,
        Unit::Flops => value::Unit::Flops,
        Unit::Bytes => value::Unit::Bytes,
    }
}

/// A figure of one variant (at one value of the sweep).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Figure {
    /// Which.
    pub kind: Kind,
    /// The other variant, kernel or range that it is about; empty where it is about none.
    pub operand: String,
}

impl Figure {
    /// A figure and what it is about.
    pub fn new(kind: Kind, operand: impl Into<String>) -> Self {
        Figure {
            kind,
            operand: operand.into(),
        }
    }

    /// Its entry in the table.
    pub fn spec(&self) -> &'static Spec {
        self.kind.spec()
    }

    /// Its name with what it is about, as expectations write it: "phase.upload".
    pub fn name(&self) -> String {
        match self.spec().operand {
            Operand::None => self.spec().name.to_owned(),
            _ => format!("{}.{}", self.spec().name, self.operand),
        }
    }

    /// The other variant that it compares with.
    pub fn other(&self) -> Option<&str> {
        (self.spec().operand == Operand::Variant).then_some(self.operand.as_str())
    }
}

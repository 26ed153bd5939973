//! The figures that expectations can be about: their names, and what they need of a variant.

use super::diagnostics::quoted;
use super::expect::Figure;
use super::expr::value::Unit;
use super::plan::{OpKind, VariantPlan};
use crate::activity::Direction;

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
}

/// Every figure: its name, what follows it, the unit of its bound, and what it is.
pub const FIGURES: &[(&str, Operand, Unit, &str)] = &[
    (
        "speedup_over",
        Operand::Variant,
        Unit::None,
        "the other variant's makespan over this one's",
    ),
    (
        "wall_speedup_over",
        Operand::Variant,
        Unit::None,
        "the same of the host's time",
    ),
    (
        "overlap",
        Operand::None,
        Unit::Share,
        "share of the copies' time during which a kernel ran",
    ),
    (
        "idle",
        Operand::None,
        Unit::Share,
        "share of the makespan during which nothing ran on any device",
    ),
    (
        "makespan",
        Operand::None,
        Unit::Time,
        "first operation's start to the last one's end",
    ),
    (
        "wall",
        Operand::None,
        Unit::Time,
        "the host's time around a pass",
    ),
    (
        "h2d_gbps",
        Operand::None,
        Unit::Rate,
        "bytes over the sum of the copies' times, host to device",
    ),
    (
        "d2h_gbps",
        Operand::None,
        Unit::Rate,
        "the same, device to host",
    ),
    (
        "d2d_gbps",
        Operand::None,
        Unit::Rate,
        "the same, within a device",
    ),
    (
        "p2p_gbps",
        Operand::None,
        Unit::Rate,
        "the same, between devices",
    ),
    (
        "kernel_gbps",
        Operand::Kernel,
        Unit::Rate,
        "a kernel's `bytes` over its time",
    ),
    (
        "kernel_flops",
        Operand::Kernel,
        Unit::Flops,
        "a kernel's `flops` over its time",
    ),
    (
        "peak_memory",
        Operand::None,
        Unit::Bytes,
        "the most device memory at one time",
    ),
    (
        "phase",
        Operand::Range,
        Unit::Time,
        "the host's time inside ranges of that name",
    ),
    ("ops", Operand::None, Unit::None, "GPU operations of a pass"),
    ("kernels", Operand::None, Unit::None, "kernels of a pass"),
];

/// What a variant lacks to have a figure at all.
pub(super) fn lacking(plan: &VariantPlan, figure: &Figure) -> Option<String> {
    let launches = |kernel: &str| {
        let kernel = plan.kernels.iter().position(|spec| spec.name == kernel)?;
        plan.launches.iter().find(|launch| launch.kernel == kernel)
    };
    match figure {
        Figure::Gbps(wanted) => {
            let has_copy = plan.listed().any(
                |op| matches!(op.kind, OpKind::Copy { direction, .. } if direction == *wanted),
            );
            (!has_copy).then(|| format!("has no {wanted:?} copy, so this cannot be measured"))
        }
        Figure::KernelGbps(kernel) | Figure::KernelFlops(kernel) => {
            let Some(launch) = launches(kernel) else {
                return Some(format!("never launches the kernel {}", quoted(kernel)));
            };
            let is_bytes = matches!(figure, Figure::KernelGbps(_));
            let declared = if is_bytes { launch.bytes } else { launch.flops };
            let key = if is_bytes { "bytes" } else { "flops" };
            declared.is_none().then(|| {
                format!(
                    "cannot tell: the kernel {} does not say its `{key}`",
                    quoted(kernel)
                )
            })
        }
        Figure::Phase(name) => {
            (!plan.phases.contains(name)).then(|| format!("has no range {}", quoted(name)))
        }
        _ => None,
    }
}

/// The figure of a name and what follows it.
pub(super) fn named(name: &str, operand: &str) -> Option<Figure> {
    Some(match name {
        "speedup_over" => Figure::SpeedupOver(operand.to_owned()),
        "wall_speedup_over" => Figure::WallSpeedupOver(operand.to_owned()),
        "overlap" => Figure::Overlap,
        "idle" => Figure::Idle,
        "makespan" => Figure::Makespan,
        "wall" => Figure::Wall,
        "h2d_gbps" => Figure::Gbps(Direction::H2D),
        "d2h_gbps" => Figure::Gbps(Direction::D2H),
        "d2d_gbps" => Figure::Gbps(Direction::D2D),
        "p2p_gbps" => Figure::Gbps(Direction::P2P),
        "kernel_gbps" => Figure::KernelGbps(operand.to_owned()),
        "kernel_flops" => Figure::KernelFlops(operand.to_owned()),
        "peak_memory" => Figure::PeakMemory,
        "phase" => Figure::Phase(operand.to_owned()),
        "ops" => Figure::Ops,
        "kernels" => Figure::Kernels,
        _ => return None,
    })
}

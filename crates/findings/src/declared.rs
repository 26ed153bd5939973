//! What the kernels of a pass do, as the scenario's plan declares it.

use super::{At, Scope};
use activity::{Direction, Ns, Span, What};
use figures::DeviceFigures;
use scenario::plan::{LaunchSpec, OpKind, VariantPlan};

/// A kernel that ran, with the launch that the plan has for it.
pub(super) struct Ran<'p> {
    pub at: At,
    pub span: Span,
    pub launch: &'p LaunchSpec,
    pub entry: &'p str,
}

/// The kernels of a pass on a device by stream and start: those whose entry point and shape one launch
/// of the plan has.
pub(super) fn kernels<'p>(scope: &Scope<'p>, f: &DeviceFigures) -> Vec<Ran<'p>> {
    let Some(variant) = scope.planned else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (at, activity) in scope.operations(f) {
        let What::Kernel(kernel) = activity.what else {
            continue;
        };
        let shape = scope.trace.shape(kernel.shape);
        let name = scope.trace.names().full(shape.name);
        let launch = variant.launches.iter().find(|launch| {
            let entry = variant.kernels[launch.kernel].entry.as_str();
            let is_named = name == entry
                || name
                    .split_once('(')
                    .is_some_and(|(before, _)| before.ends_with(entry));
            is_named && launch.grid == shape.grid && launch.block == shape.block
        });
        if let Some(launch) = launch {
            all.push(Ran {
                at,
                span: activity.span,
                launch,
                entry: &variant.kernels[launch.kernel].entry,
            });
        }
    }
    all
}

/// The rate of a device's memory in bytes a nanosecond (GB/s).
pub(super) fn memory_rate(scope: &Scope, f: &DeviceFigures) -> Option<f64> {
    let rate = scope.trace.devices()[f.index].info.memory_bandwidth;
    (rate > 0).then_some(rate as f64 / 1e9)
}

/// What the kernel's declared bytes take at a part of the memory's rate.
pub(super) fn time_at(bytes: u64, rate: f64) -> Ns {
    (bytes as f64 / rate) as Ns
}

/// Whether the pass copies down from a buffer what it copied up into it.
pub(super) fn has_way_back(variant: &VariantPlan) -> bool {
    let copies = |wanted: Direction| {
        variant.ops.iter().filter_map(move |op| match op.kind {
            OpKind::Copy(it) if it.direction == wanted => Some((it.from.buffer, it.to.buffer)),
            _ => None,
        })
    };
    copies(Direction::H2D).any(|(_, up)| copies(Direction::D2H).any(|(down, _)| up == down))
}

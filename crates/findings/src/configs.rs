//! The launch configurations of the kernels that a rule looks at, and what limits each.

use rustc_hash::FxHashMap;

use super::{At, Occurrence, Scope, longest_first};
use activity::{Activity, Ns, ShapeId, What};
use figures::DeviceFigures;
use figures::busy::KernelTime;
use figures::configs::Config;
use trace::GpuReadings;

/// Those of a device that together take most time first, by shape; made by the rule that asks first.
pub(super) fn of_device<'s>(scope: &'s Scope, f: &DeviceFigures) -> &'s [Config] {
    scope.configs[f.index]
        .get_or_init(|| figures::configs::find(scope.trace, f, scope.window_on(f.index)))
}

/// Those of them whose names are such.
pub(super) fn such<'s>(
    scope: &'s Scope,
    f: &DeviceFigures,
    is_such: impl Fn(&str) -> bool,
) -> Vec<&'s Config> {
    let all = of_device(scope, f).iter();
    let names = scope.trace.names();
    all.filter(|it| is_such(names.full(it.shape.name)))
        .collect()
}

/// What shares of its kernel time are of.
pub(super) fn kernel_time(scope: &Scope, f: &DeviceFigures) -> KernelTime {
    let all = of_device(scope, f).iter().map(|it| it.row.total_ns).sum();
    KernelTime::new(all, f.compute_ns)
}

/// Whether what some of them take is worth a line: much of the time, or most of what a GPU works that mostly waits. That comes next, once it
/// waits less.
pub(super) fn is_worth(scope: &Scope, f: &DeviceFigures, time: Ns) -> bool {
    let is_much = cases::LARGE_SHARE.is_reached_by(f.part(time));
    let is_some = || waits(f) && cases::WORTH_SHARE.is_reached_by(f.part(time));
    is_much || is_some() && cases::MOST_OF_KERNELS.is_reached_by(kernel_time(scope, f).share(time))
}

/// Whether the GPU waits for most of the time.
fn waits(f: &DeviceFigures) -> bool {
    2 * f.idle_ns > f.span_ns
}

/// What is said before the advice, where the GPU waits for most of the time.
pub(super) fn first(f: &DeviceFigures) -> &'static str {
    match waits(f) {
        true => "First let the GPU wait less. ",
        false => "",
    }
}

/// Whether counters tell what kernels do.
pub(super) fn is_sampled(scope: &Scope, f: &DeviceFigures) -> bool {
    let gpu = scope.trace.readings(f.index);
    gpu.is_some_and(GpuReadings::is_sampled)
}

/// The operations of some of them by stream and start, each with its time and whose it is.
pub(super) fn ran(scope: &Scope, f: &DeviceFigures, of: &[&Config]) -> Vec<(At, Ns, usize)> {
    let numbers: FxHashMap<ShapeId, usize> = of.iter().map(|it| it.id).zip(0..).collect();
    let of_one = |(place, activity): (At, Activity)| match activity.what {
        What::Kernel(kernel) => {
            let &number = numbers.get(&kernel.shape)?;
            let length = activity.span.len();
            let is_usual = of[number].is_usual(length);
            is_usual.then_some((place, length, number))
        }
        _ => None,
    };
    scope.operations(f).filter_map(of_one).collect()
}

/// The same, longest first.
pub(super) fn places(scope: &Scope, f: &DeviceFigures, of: &[&Config]) -> Vec<Occurrence> {
    let mut ran = ran(scope, f, of);
    ran.sort_by_key(|it| it.2);
    longest_first(ran.into_iter().map(|it| (it.1, it.0)).collect())
}

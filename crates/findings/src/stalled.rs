//! What the warps of a kernel wait for inside an SM, where that was sampled (`--stalls on`): one bank of shared memory, each other, code.

use rustc_hash::FxHashMap;

use super::{DeviceFigures, Finding, Rule, Scope, configs};
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{duration, percent};
use activity::{NameId, Ns};
use figures::configs::Config;
use figures::stalls::{self, StallMix};

const BANKS: [&str; 2] = [
    "shared memory and special units",
    "Where threads of a warp read one bank of shared memory, make each row of its tile one longer; else keep values in registers.",
];
const BARRIERS: [&str; 2] = [
    "other warps at barriers",
    "Give the warps of a block equal work between barriers, or launch smaller blocks, so that others run meanwhile.",
];
const FETCH: [&str; 2] = [
    "instructions to load",
    "Its code is larger than the instruction cache, or jumps: unroll less (#pragma unroll 1), or split the kernel.",
];

/// Threads of a warp that read one bank of shared memory take turns. Of kernels without shared memory the same reasons are special
/// units' (exp, sin).
pub(super) fn banks(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let is_special = |it: &Config| it.shape.static_shared.max(it.shape.dynamic_shared) == 0;
    let samples = |it: &Config, mix: &StallMix| match cases::SPECIAL_UNITS.holds(is_special(it)) {
        true => 0,
        false => mix.sm,
    };
    let found = most(scope, f, samples, (cases::BANKS_SHARE, BANKS))?;
    let instead_of = &[Rule::BelowRoof];
    Some(Finding {
        instead_of,
        ..found
    })
}

pub(super) fn barriers(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let samples = |_: &Config, mix: &StallMix| mix.barrier;
    most(scope, f, samples, (cases::BARRIERS_SHARE, BARRIERS))
}

pub(super) fn fetch(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let samples = |_: &Config, mix: &StallMix| mix.fetch;
    most(scope, f, samples, (cases::FETCH_SHARE, FETCH))
}

/// The kernel that loses most time so, where that is worth a line.
fn most(
    scope: &Scope,
    f: &DeviceFigures,
    samples: impl Fn(&Config, &StallMix) -> u64,
    (least, [what, advice]): (cases::Limit<f64>, [&str; 2]),
) -> Option<Finding> {
    let mut by_name: FxHashMap<NameId, Vec<&Config>> = FxHashMap::default();
    for it in configs::of_device(scope, f) {
        by_name.entry(it.shape.name).or_default().push(it);
    }
    let waits = by_name.into_iter().filter_map(|(name, of)| {
        let time: Ns = of.iter().map(|it| it.row.total_ns).sum();
        let count = of.iter().map(|it| it.row.count).sum();
        let stalls = stalls::of_kernel(scope.trace, name, count, time)?;
        let share = stalls.mix.share(samples(of[0], &stalls.mix));
        let is_much = least.is_reached_by(share);
        is_much.then_some(((share * time as f64) as Ns, time, share, of, stalls))
    });
    let (lost, time, share, of, stalls) = waits.max_by_key(|it| (it.0, it.3[0].first))?;
    let name = cut_middle(scope.trace.names().short(of[0].shape.name), NAME_MAX);
    cases::LARGE_SHARE
        .is_reached_by(f.part(lost))
        .then(|| Finding {
            title: format!(
                "{name} ({}, {}): its warps wait {} of their time for {what}{}",
                duration(time),
                percent(f.part(time)),
                percent(share),
                stalls.hottest(),
            ),
            advice: advice.to_owned(),
            ..scope.found(f.span_ns, lost, &configs::places(scope, f, &of))
        })
}

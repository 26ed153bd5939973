//! What the warps of a kernel wait for inside an SM, where that was sampled (`--stalls on`): one bank of shared memory, each other, code.

use rustc_hash::FxHashMap;

use super::scope::Config;
use super::{DeviceFigures, Finding, Rule, Scope, configs};
use activity::anonymous::short_file;
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{duration, percent};
use activity::{NameId, Ns};
use figures::stalls::{self, StallMix};

/// Threads of a warp that read one bank of shared memory take turns. Of kernels without shared memory the same reasons are special
/// units' (exp, sin).
pub(super) fn banks(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let is_special = |it: &Config| it.shape.static_shared.max(it.shape.dynamic_shared) == 0;
    let words = [
        "shared memory and special units",
        "Where threads of a warp read one bank of shared memory, make each row of its tile one longer; else keep values in registers.",
    ];
    let least = cases::BANKS_SHARE;
    let is_asked = |it: &Config| !cases::SPECIAL_UNITS.holds(is_special(it));
    let found = most(scope, f, is_asked, |it| it.sm, least, words)?;
    Some(Finding {
        instead_of: &[Rule::BelowRoof],
        ..found
    })
}

pub(super) fn barriers(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let words = [
        "other warps at barriers",
        "Give the warps of a block equal work between barriers, or launch smaller blocks, so that others run meanwhile.",
    ];
    let least = cases::BARRIERS_SHARE;
    most(scope, f, |_| true, |it| it.barrier, least, words)
}

pub(super) fn fetch(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let words = [
        "instructions to load",
        "Its code is larger than the instruction cache, or jumps: unroll less (#pragma unroll 1), or split the kernel.",
    ];
    let least = cases::FETCH_SHARE;
    most(scope, f, |_| true, |it| it.fetch, least, words)
}

/// The kernel that loses most time so, where that is worth a line.
fn most(
    scope: &Scope,
    f: &DeviceFigures,
    is_asked: impl Fn(&Config) -> bool,
    samples: impl Fn(&StallMix) -> u64,
    least: cases::Limit<f64>,
    [what, advice]: [&str; 2],
) -> Option<Finding> {
    let mut by_name: FxHashMap<NameId, Vec<&Config>> = FxHashMap::default();
    for it in configs::of_device(scope, f)
        .iter()
        .filter(|it| is_asked(it))
    {
        by_name.entry(it.shape.name).or_default().push(it);
    }
    let waits = by_name.into_iter().filter_map(|(name, of)| {
        let time: Ns = of.iter().map(|it| it.row.total_ns).sum();
        let count = of.iter().map(|it| it.row.count).sum();
        let stalls = stalls::of_kernel(scope.trace, name, count, time)?;
        let share = stalls.mix.share(samples(&stalls.mix));
        let lost = (share * time as f64) as Ns;
        least
            .is_reached_by(share)
            .then_some((lost, time, share, of, stalls))
    });
    let (lost, time, share, of, stalls) = waits.max_by_key(|it| (it.0, it.3[0].first))?;
    if !cases::LARGE_SHARE.is_reached_by(f.part(lost)) {
        return None;
    }
    let name = scope.trace.names().short(of[0].shape.name);
    let line = stalls.lines.first().map_or_else(String::new, |it| {
        let (share, file) = (percent(it.share), short_file(&it.file));
        format!("; {share} of all samples are at {file}:{}", it.line)
    });
    Some(Finding {
        title: format!(
            "{} ({}, {}): its warps wait {} of their time for {what}{line}",
            cut_middle(name, NAME_MAX),
            duration(time),
            percent(f.part(time)),
            percent(share),
        ),
        advice: advice.to_owned(),
        ..scope.found(f.span_ns, lost, &configs::places(scope, f, &of))
    })
}

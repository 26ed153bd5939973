//! A kernel that moves what it must at a small part of the memory's rate, and computes little with it.

use rustc_hash::FxHashMap;

use super::{DeviceFigures, Finding, Occurrence, Scope, declared};
use crate::thresholds;
use activity::Ns;
use activity::units::{percent, rate};

#[derive(Default)]
struct Sum {
    bytes: u64,
    time: Ns,
    at: Vec<Occurrence>,
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let peak = declared::memory_rate(scope, f)?;
    let mut by: FxHashMap<&str, Sum> = FxHashMap::default();
    for kernel in declared::kernels(scope, f) {
        // Of a time that its author made up nothing follows.
        if scope.trace.source.simulated && kernel.launch.time.is_some() {
            continue;
        }
        // Where arithmetic is declared, too, memory need not be what bounds it.
        if kernel.launch.flops.is_some()
            || !cases::UNDER_FILLED_MIN.is_reached_by(kernel.span.len())
        {
            continue;
        }
        let Some(bytes) = kernel.launch.bytes else {
            continue;
        };
        let sum = by.entry(kernel.entry).or_default();
        sum.bytes += bytes;
        sum.time += kernel.span.len();
        sum.at.push(Occurrence::Row(kernel.at));
    }
    let saved = |sum: &Sum| sum.time - declared::time_at(sum.bytes, peak);
    let slow = by.into_iter().filter(|(_, sum)| {
        let reached = declared::time_at(sum.bytes, peak) as f64;
        reached < sum.time as f64 * thresholds::ROOF_SHARE
    });
    let (entry, sum) = slow.max_by_key(|(entry, sum)| (saved(sum), *entry))?;
    let saving = saved(&sum);
    if !cases::LARGE_SHARE.is_reached_by(f.part(saving)) {
        return None;
    }
    let reached = sum.bytes as f64 / sum.time as f64;
    Some(Finding {
        title: format!(
            "{entry} reaches {} GB/s, {} of the memory bandwidth",
            rate(reached),
            percent(reached / peak),
        ),
        advice: "Coalesce: let neighbouring threads access neighbouring addresses, if need be through shared memory padded against bank conflicts.".to_owned(),
        ..scope.found(f.span_ns, saving, &sum.at)
    })
}

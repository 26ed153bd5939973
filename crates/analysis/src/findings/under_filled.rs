//! Kernels with fewer blocks than the GPU has SMs.

use rustc_hash::FxHashMap;

use super::{DeviceFigures, Finding, Occurrence, Scope, longest_first, thresholds};
use crate::collectives::is_collective;
use crate::figures;
use crate::verdict::NAME_MAX;
use activity::text::{counted, cut_middle};
use activity::units::{count, duration, percent};
use activity::{NameId, Ns, What, occupancy};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let multiprocessors = u64::from(scope.trace.devices()[f.index].info.multiprocessors);
    if multiprocessors == 0 {
        return None;
    }
    let mut at = Vec::new();
    let (mut all, mut time, mut wasted) = (0 as Ns, 0 as Ns, 0.0);
    let (mut least, mut greatest) = (u64::MAX, 0);
    let mut kernels: FxHashMap<NameId, Ns> = FxHashMap::default();
    let mut meant: FxHashMap<NameId, bool> = FxHashMap::default();
    // By kernel and blocks: how long in all, and how often.
    let mut sizes: FxHashMap<(NameId, u64), (Ns, Ns)> = FxHashMap::default();
    for (place, activity) in scope.operations(f) {
        let What::Kernel(kernel) = activity.what else {
            continue;
        };
        let length = activity.span.len();
        all += length;
        let shape = scope.trace.shape(kernel.shape);
        let blocks = occupancy::blocks(&shape);
        let fill = blocks as f64 / multiprocessors as f64;
        let (sum, count) = sizes.entry((shape.name, blocks)).or_default();
        (*sum, *count) = (*sum + length, *count + 1);
        let is_under_filled = blocks > 0 && fill < thresholds::UNDER_FILLED_BLOCKS;
        if !is_under_filled || length < thresholds::UNDER_FILLED_MIN {
            continue;
        }
        // Collective communication takes few SMs on purpose, to leave the others to computing.
        let is_meant = *meant
            .entry(shape.name)
            .or_insert_with(|| is_collective(scope.trace.names().full(shape.name)));
        if !is_meant {
            time += length;
            (least, greatest) = (least.min(blocks), greatest.max(blocks));
            wasted += length as f64 * (1.0 - fill);
            *kernels.entry(shape.name).or_default() += length;
            at.push((length, Occurrence::Row(place)));
        }
    }
    // Kernels beside each other fill the GPU together.
    let are_together = all as f64 > f.compute_ns as f64 * thresholds::CONCURRENT;
    if are_together || figures::share(time, all) < thresholds::UNDER_FILLED_SHARE {
        return None;
    }
    let saving = (wasted as Ns).min(f.compute_ns);
    if figures::share(saving, f.recorded_ns()) < thresholds::WORTH_SHARE {
        return None;
    }
    let at = longest_first(at);
    let (_, most) = kernels.into_iter().map(|(name, time)| (time, name)).max()?;
    let size = |(&(name, blocks), &(sum, count)): (&(NameId, u64), &(Ns, Ns))| {
        (name == most).then(|| (blocks, sum / count))
    };
    let few = sizes.iter().filter_map(size).min();
    let many = sizes.iter().filter_map(size).max();
    // Whether its own launches with twice the blocks and more are no shorter.
    let is_alike = few.zip(many).is_some_and(|(few, many)| {
        many.0 >= 2 * few.0 && many.1 as f64 >= few.1 as f64 * thresholds::AS_LONG
    });
    let few_blocks = match counted(greatest, "block", "blocks") {
        blocks if least < greatest => format!("{} to {blocks}", count(least)),
        blocks => blocks,
    };
    Some(Finding {
        title: format!(
            "{} with {few_blocks} for {multiprocessors} SMs: {} ({} of kernel time), mostly {}",
            counted(at.len() as u64, "kernel", "kernels"),
            duration(time),
            percent(figures::share(time, all)),
            cut_middle(scope.trace.names().short(most), NAME_MAX),
        ),
        advice: match is_alike {
            true => "Run such kernels on several streams at once: launches with more blocks take as long.",
            false => "Launch more blocks (split the work finer, or batch it), or run such kernels on several streams at once.",
        }
        .to_owned(),
        cure: if is_alike { "running kernels at once" } else { "" },
        ..scope.found(f.span_ns, saving, &at)
    })
}

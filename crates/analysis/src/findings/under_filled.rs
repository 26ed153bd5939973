//! Kernels with fewer blocks than the GPU has SMs, or with blocks of less than a warp.

use rustc_hash::FxHashMap;

use super::{DeviceFigures, Finding, Occurrence, Scope, Severity, longest_first};
use crate::collectives::is_collective;
use crate::thresholds;
use activity::text::{NAME_MAX, counted, cut_middle};
use activity::units::{count, duration, percent, share};
use activity::{NameId, Ns, What, occupancy};

/// Threads that an SM works for at once, at most.
const LANES: u64 = 128;

/// Those of a warp: with fewer in a block it is not full.
const WARP: f64 = 32.0;

/// Kernels shorter than this on average are no large piece of work that is split too coarsely.
const SHORT: Ns = 100_000;

/// A kernel without parameters that takes no longer has nothing to do: it is there to start the GPU.
const EMPTY_MAX: Ns = 1_000_000;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let multiprocessors = u64::from(scope.trace.devices()[f.index].info.multiprocessors);
    if multiprocessors == 0 {
        return None;
    }
    let mut at = Vec::new();
    let (mut all, mut time, mut wasted) = (0 as Ns, 0 as Ns, 0.0);
    let (mut least, mut greatest) = (u64::MAX, 0);
    let (mut fewest, mut most_threads) = (u64::MAX, 0);
    let mut kernels: FxHashMap<NameId, Ns> = FxHashMap::default();
    let mut meant: FxHashMap<NameId, bool> = FxHashMap::default();
    // By kernel and blocks: how long in all, and how often.
    let mut sizes: FxHashMap<(NameId, u64), (Ns, Ns)> = FxHashMap::default();
    let is_managed = scope.is_managed(f);
    for (place, activity) in scope.operations(f) {
        let What::Kernel(kernel) = activity.what else {
            continue;
        };
        let length = activity.span.len();
        all += length;
        let shape = scope.trace.shape(kernel.shape);
        let blocks = occupancy::blocks(&shape);
        // Where the source does not say, they fill an SM.
        let threads = match shape.block.iter().map(|&n| u64::from(n)).product() {
            0 => LANES,
            threads => threads,
        };
        let sms = blocks as f64 / multiprocessors as f64;
        let of_warp = threads as f64 / WARP;
        let fill = sms.min(sms * threads as f64 / LANES as f64).min(of_warp);
        let (sum, count) = sizes.entry((shape.name, blocks)).or_default();
        (*sum, *count) = (*sum + length, *count + 1);
        let is_under_filled = blocks > 0 && sms.min(of_warp) < thresholds::UNDER_FILLED_BLOCKS;
        if !is_under_filled || length < thresholds::UNDER_FILLED_MIN {
            continue;
        }
        let name = scope.trace.names().full(shape.name);
        // Nor is it a matter of blocks where a short one waits for pages, or reads those that stay with the CPU.
        if length < EMPTY_MAX && (name.ends_with("()") || is_managed) {
            continue;
        }
        // Collective communication takes few SMs on purpose, to leave the others to computing.
        let is_meant = *meant
            .entry(shape.name)
            .or_insert_with(|| is_collective(name));
        if !is_meant {
            time += length;
            (least, greatest) = (least.min(blocks), greatest.max(blocks));
            (fewest, most_threads) = (fewest.min(threads), most_threads.max(threads));
            wasted += length as f64 * (1.0 - fill);
            *kernels.entry(shape.name).or_default() += length;
            at.push((length, Occurrence::Row(place)));
        }
    }
    // Kernels beside each other fill the GPU together.
    let are_together = all as f64 > f.compute_ns as f64 * thresholds::CONCURRENT;
    if are_together || share(time, all) < thresholds::UNDER_FILLED_SHARE {
        return None;
    }
    let saving = (wasted as Ns).min(f.compute_ns);
    if f.part(saving) < thresholds::WORTH_SHARE {
        return None;
    }
    let at = longest_first(at);
    let (_, most) = kernels.into_iter().map(|(name, time)| (time, name)).max()?;
    let sizes = sizes.into_iter().filter(|it| it.0.0 == most);
    let sizes: Vec<_> = sizes.map(|((_, blocks), it)| (blocks, it)).collect();
    let of_kernel: Ns = sizes.iter().map(|it| it.1.0).sum();
    // Whether its own launches with twice the blocks and more are no shorter. Longer ones have more to do.
    let is_usual = |it: &&(u64, (Ns, Ns))| it.1.0 * 4 >= of_kernel;
    let mean = |(sum, count): (Ns, Ns)| sum as f64 / count as f64;
    let usual: Vec<_> = sizes.iter().filter(is_usual).collect();
    let is_alike = usual.iter().any(|few| {
        let is_more = |many: &(u64, (Ns, Ns))| {
            let ratio = mean(many.1) / mean(few.1);
            let as_long = thresholds::AS_LONG..=1.0 / thresholds::AS_LONG;
            many.0 >= 2 * few.0 && as_long.contains(&ratio)
        };
        usual.iter().any(|many| is_more(many))
    });
    let has_blocks = least >= multiprocessors;
    // Only beside each other would they fill it: no record says that they may run so.
    if is_alike && !has_blocks {
        return None;
    }
    let few_blocks = match counted(greatest, "block", "blocks") {
        blocks if least < greatest => format!("{} to {blocks}", count(least)),
        blocks => blocks,
    };
    let up_to = if fewest < most_threads { "up to " } else { "" };
    let of_threads = match counted(most_threads, "thread", "threads") {
        threads if most_threads < LANES => format!(" of {up_to}{threads}"),
        _ => String::new(),
    };
    let found = scope.found(f.span_ns, saving, &at);
    Some(Finding {
        // Many short ones may just have little to do.
        severity: if time < SHORT * at.len() as Ns { Severity::Info } else { found.severity },
        title: format!(
            "{} with {few_blocks}{of_threads} for {multiprocessors} SMs: {} ({} of kernel time), mostly {}",
            counted(at.len() as u64, "kernel", "kernels"),
            duration(time),
            percent(share(time, all)),
            cut_middle(scope.trace.names().short(most), NAME_MAX),
        ),
        advice: match has_blocks {
            true => "Launch larger blocks: with fewer than 32 threads a warp is not full.",
            _ if at.len() == 1 => "Launch more blocks: split the work finer.",
            false => "Launch more blocks (split the work finer, or batch it), or run such kernels on several streams at once.",
        }
        .to_owned(),
        cure: if has_blocks { "launching larger blocks" } else { "" },
        ..found
    })
}

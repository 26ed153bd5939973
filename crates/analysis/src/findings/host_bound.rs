//! The GPU waits for the host, which is at other work for long.

use rustc_hash::{FxHashMap, FxHashSet};

use super::words::seen_at;
use super::{DeviceFigures, Finding, Occurrence, Scope, longest_first};
use crate::causes::{Group, Piece};
use crate::first_use;
use crate::graph::OpId;
use crate::stacks::StackCounts;
use crate::thresholds;
use activity::units::{duration, percent, share};
use activity::{NameId, Ns};
use trace::describe::host_name;

/// One gap that holds this part of the idle time is nearly all of it.
pub(super) const ONE_GAP: f64 = 0.9;

/// What takes this part of the host's work is named. Without a name nobody knows whether it could be done ahead.
const MOST: f64 = 0.5;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // What waits for the host is a part of what is idle. Without a kernel there is no work yet: data is set up.
    if f.idle_share() < thresholds::HOST_SHARE || f.kernels == 0 {
        return None;
    }
    let mut at = Vec::new();
    let mut by: FxHashMap<Option<NameId>, Ns> = FxHashMap::default();
    let mut seen = StackCounts::default();
    let may_be_ahead = scope.may_be_ahead(f);
    // What only the first one of its name takes is a cold start.
    let is_first = |next: OpId, piece: &Piece| scope.causes.is_first(next, piece);
    // Nor is there a next batch of what is done once: before a kernel's first launch the CPU most likely made it.
    let graph = scope.causes.graph();
    let mut met = FxHashSet::default();
    let is_new = |op: &OpId| {
        let kernel = first_use::kernel(scope.trace, graph, *op);
        kernel.is_some_and(|kernel| met.insert(kernel))
    };
    let ops = graph.ops.of_device(f.index).iter().copied();
    let new: FxHashSet<OpId> = match scope.window {
        Some(_) => FxHashSet::default(),
        None => ops.filter(is_new).collect(),
    };
    for (gap, pieces) in scope.gaps(f) {
        if new.contains(&gap.next) {
            continue;
        }
        // Before a page that comes back the CPU reads results.
        let is_asked = may_be_ahead(gap.span.end) && !scope.causes.comes_back(gap.next);
        let mut sum: Ns = 0;
        for piece in &*pieces {
            let is_host = scope.causes.group(gap, piece) == Group::Host;
            if is_asked && is_host && !is_first(gap.next, piece) {
                sum += piece.span.len();
                scope.causes.add_samples(gap.next, piece.span, &mut seen);
                *by.entry(scope.causes.host_name(piece.culprit)).or_default() += piece.span.len();
            }
        }
        if sum > 0 {
            at.push((sum, Occurrence::Gap(f.index, gap.span)));
        }
    }
    let idle: Ns = at.iter().map(|a| a.0).sum();
    // What happens once, or nearly so, is no batch that could be prepared.
    let longest = at.iter().map(|a| a.0).max();
    let is_once = scope.window.is_none() && longest.is_some_and(|longest| 2 * longest > idle);
    if is_once || f.part(idle) < thresholds::HOST_SHARE {
        return None;
    }
    let (most, time) = by.into_iter().max_by_key(|&(name, time)| (time, name))?;
    let line = seen.telling(scope.trace);
    let part = share(time, idle);
    let name = most.filter(|_| part >= MOST);
    let name = name.map(|name| host_name(scope.trace, name));
    if name.is_none() && line.is_none() && scope.planned.is_none() {
        return None;
    }
    let doing = match (&name, part >= MOST) {
        (Some(name), _) => format!(", {} of it in {name}", percent(part)),
        (None, true) => format!(", {} of it outside CUDA calls", percent(part)),
        _ => String::new(),
    };
    let seen = seen_at(line.as_ref());
    let has_workers = most.is_some_and(|it| {
        scope
            .trace
            .names()
            .full(it)
            .contains("_MultiProcessingDataLoaderIter")
    });
    let loads = format!("{doing}{seen}").to_lowercase().contains("load") || scope.planned.is_some();
    Some(Finding {
        title: format!(
            "the GPU waits for the CPU for {} ({}){doing}{seen}",
            duration(idle),
            percent(f.part(idle)),
        ),
        advice: match loads {
            _ if has_workers => "Its workers are too slow: use more of them (num_workers), let them load further ahead (prefetch_factor), or do less in them.",
            true => "Prepare the next batch before the GPU needs it, in another thread or process.",
            false => "Look at what the CPU does there: do less of it, do it earlier, or in another thread.",
        }
        .to_owned(),
        cure: if loads { "" } else { "cutting CPU work" },
        ..scope.found(f.span_ns, idle, &longest_first(at))
    })
}

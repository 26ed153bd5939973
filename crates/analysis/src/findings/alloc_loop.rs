//! Device memory taken or given back between launches, over and over.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Finding, Occurrence, Scope, longest_first};
use crate::first_use;
use crate::graph::NONE;
use crate::thresholds;
use activity::stats::lower_median;
use activity::text::counted;
use activity::units::{duration, share};
use activity::{NameId, Ns, Span, What};

/// Names of calls that allocate or free device memory, in CUDA and in HIP. Stream-ordered ones (`…Async`) come from a
/// pool, and cost next to nothing while that keeps its memory.
fn is_allocation(name: &str) -> bool {
    let bare = ["cuda", "hip", "cuMem"].iter();
    let bare = bare.filter_map(|prefix| name.strip_prefix(prefix)).next();
    bare.is_some_and(|it| {
        let is_one = ["Malloc", "Alloc", "Free"]
            .iter()
            .any(|n| it.starts_with(n));
        is_one && !it.contains("Host")
    })
}

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    // Allocations before the first operation and after the last one are set-up and clean-up.
    let span = scope.devices.iter().map(|f| f.span).reduce(Span::hull)?;
    let mut at = Vec::new();
    let mut by_name: FxHashMap<NameId, Vec<(Ns, Ns)>> = FxHashMap::default();
    let (mut time, mut rounds, mut goes_on) = (0 as Ns, 0u64, false);
    let (graph, mut met) = (scope.causes.graph(), FxHashSet::default());
    for (id, lane, _) in scope.trace.threads() {
        let mut has_launched = false;
        for (row, call) in scope.trace.activities(id, scope.rows(id)) {
            let What::Call(what) = call.what else {
                continue;
            };
            let name = scope.trace.names().full(what.name);
            if is_allocation(name) {
                if call.span.overlaps(span) {
                    time += call.span.intersect(span).len();
                    at.push((call.span.len(), Occurrence::Row((id, row))));
                    by_name
                        .entry(what.name)
                        .or_default()
                        .push((call.span.intersect(span).len(), call.span.start));
                    rounds += u64::from(has_launched);
                    // A cache that fills is at its end before the work is.
                    goes_on |= has_launched && call.span.start >= span.end - span.len() / 4;
                    has_launched = false;
                }
            } else if name.contains("Launch") {
                // A kernel that runs for the first time is in no loop yet.
                let op = match graph.calls.find(lane.key().process, call.correlation) {
                    NONE => NONE,
                    found => graph.calls.first_op[found as usize],
                };
                let kernel = first_use::kernel(scope.trace, graph, op);
                has_launched |= kernel.is_none_or(|kernel| !met.insert(kernel));
            }
        }
    }
    // What a program's first calls take beyond the others is no matter of the loop.
    let first = &scope.causes.first_use().calls;
    let cold = first.iter().map(|it| it.0.end).max().unwrap_or(Ns::MIN);
    let (mut once, mut outliers, mut later) = (0 as Ns, 0u64, Vec::new());
    for times in by_name.values() {
        let mut lengths: Vec<Ns> = times.iter().map(|it| it.0).collect();
        let median = lower_median(&mut lengths).unwrap_or(0);
        for &(time, start) in times
            .iter()
            .filter(|it| first_use::is_outlier(it.0, median))
        {
            once += time;
            outliers += 1;
            later.extend((start >= cold).then_some(time));
        }
    }
    // What comes once a round is the loop's.
    if (later.len() as u64) < thresholds::LOOP_MIN {
        later.clear();
    }
    // Kernels and copies take what they take without these calls.
    let idle = scope.devices.iter().map(|f| f.idle_ns).max()?;
    let bound = (time - once + later.iter().sum::<Ns>()).min(idle);
    // A program that starts fills the cache of its allocator: it takes memory, and gives hardly any back. Its steady steps do not.
    let is_free = |name: &NameId| scope.trace.names().full(*name).contains("Free");
    let freed = by_name.iter().filter(|it| is_free(it.0));
    let freed: usize = freed.map(|it| it.1.len()).sum();
    let mut first = first.iter();
    let fills = 10 * freed < at.len()
        && first.any(|(call, (lane, _))| {
            let window = scope.window_of(scope.trace.lanes()[*lane].key().process);
            window.is_none_or(|it| call.end > it.start)
        });
    let is_worth = share(bound, span.len()) >= thresholds::WORTH_SHARE;
    if rounds < thresholds::LOOP_MIN || !goes_on || fills || !is_worth {
        return None;
    }
    let of_pool = |name: &NameId| scope.trace.names().full(*name).contains("Async");
    let pooled = by_name.iter().filter(|it| of_pool(it.0));
    let pooled: Ns = pooled.flat_map(|it| it.1).map(|it| it.0).sum();
    let at = longest_first(at);
    Some(Finding {
        title: format!(
            "{} between launches take {}{}",
            counted(at.len() as u64, "allocation or free", "allocations and frees"),
            duration(time),
            match outliers {
                0 => String::new(),
                many => format!(", {} of it in {} (over 10× the median)", duration(once), counted(many, "outlier", "outliers")),
            },
        ),
        advice: match 2 * pooled > time {
            true => "Let the pool keep its memory: raise its release threshold (cudaMemPoolSetAttribute). At threshold 0 the pool releases all unused memory at each sync.",
            false => "Allocate before the loop and reuse, or take memory from a pool (cudaMallocAsync). cudaFree waits for the whole GPU.",
        }
        .to_owned(),
        ..scope.found(span.len(), bound, &at)
    })
}

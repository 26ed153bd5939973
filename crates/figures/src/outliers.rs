//! Launches of a kernel that take many times as long as all others of the same size.

use activity::units::duration;
use activity::{Ns, ShapeId, What};
use causes::graph::Graph;
use rustc_hash::FxHashMap;
use trace::Trace;

use crate::communication::is_communication;

/// One that takes so many times the median stands out, where no other takes half as long as it.
const TIMES: Ns = 20;

/// So many others tell what is usual.
const OTHERS: usize = 3;

/// One launch of a kernel that stands out.
struct Outlier {
    shape: ShapeId,
    /// Whether it is the first one.
    is_first: bool,
    time: Ns,
    median: Ns,
    count: usize,
}

/// "the first launch of step takes 75.2 ms, the others 453 µs (median)", and why, where that is known. Of a device
/// where such launches take a tenth of all kernels' time.
pub fn told(trace: &Trace, graph: &Graph, device: usize) -> Option<String> {
    let mut by: FxHashMap<ShapeId, Vec<Ns>> = FxHashMap::default();
    let (mut all, mut has_pages) = (0, false);
    for &op in graph.ops.of_device(device) {
        match graph.what(trace, op) {
            What::Kernel(it) => {
                let time = graph.ops.span(op).len();
                all += time;
                by.entry(it.shape).or_default().push(time);
            }
            it => has_pages |= it.is_migration(),
        }
    }
    // Of launches without a size nobody knows that they are alike: TensorFlow 1 calls all that an op launches by its name.
    by.retain(|shape, _| trace.shape(*shape).grid != [0; 3]);
    let name = |it: &Outlier| trace.names().full(trace.shape(it.shape).name);
    let found = by
        .into_iter()
        .filter_map(|(shape, times)| outlier(shape, &times));
    let mut found: Vec<Outlier> = found.filter(|it| !is_communication(name(it))).collect();
    found.sort_unstable_by_key(|it| (-it.time, it.shape));
    let is_much = |time: Ns| cases::LARGE_SHARE.is_reached_by(time as f64 / all.max(1) as f64);
    let is_managed = has_pages || takes_managed(trace);
    let firsts = found.iter().filter(|it| it.is_first && is_managed);
    let (count, time) = firsts.fold((0, 0), |sum, it| (sum.0 + 1, sum.1 + it.time));
    let waits = "for pages of managed memory";
    if count > 1 && is_much(time) {
        let time = duration(time);
        return Some(format!(
            "the first launches of {count} kernels take {time}: they wait {waits}"
        ));
    }
    let one = found.first().filter(|it| is_much(it.time))?;
    let which = match one.is_first {
        true => "the first launch".to_owned(),
        false => format!("1 of {} launches", one.count),
    };
    let why = match one.is_first && is_managed {
        true => format!(": it waits {waits}"),
        false => String::new(),
    };
    Some(format!(
        "{which} of {} takes {}, the others {} (median){why}",
        trace.names().short(trace.shape(one.shape).name),
        duration(one.time),
        duration(one.median)
    ))
}

/// The one of some launches, in order of time, that stands out.
fn outlier(shape: ShapeId, times: &[Ns]) -> Option<Outlier> {
    let (at, &time) = times.iter().enumerate().max_by_key(|it| it.1)?;
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let others = &sorted[..sorted.len() - 1];
    let median = *others.get(others.len() / 2)?;
    let is_one = others.len() >= OTHERS
        && time >= median.saturating_mul(TIMES)
        && others.last().is_some_and(|it| 2 * it < time);
    is_one.then_some(Outlier {
        shape,
        is_first: at == 0,
        time,
        median,
        count: times.len(),
    })
}

/// Whether the program takes managed memory.
fn takes_managed(trace: &Trace) -> bool {
    let names = trace.names();
    (0..names.len() as u32).any(|id| names.full(id).contains("llocManaged"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::Scene;

    /// Five launches of a kernel, of which one takes so long; the others take 1 ms.
    fn told_of(which: usize, long: Ns, call: &str) -> Option<String> {
        const MS: Ns = 1_000_000;
        let mut scene = Scene::new();
        scene.call(call, 0, 5_000);
        let mut at = 10_000;
        for launch in 0..5 {
            let time = if launch == which { long * MS } else { MS };
            scene.call("cudaLaunchKernel", at, at + 2_000);
            scene.kernel("step", 7, at + 5_000, at + 5_000 + time);
            at += time + 10_000;
        }
        let trace = scene.trace();
        told(&trace, &Graph::new(&trace), 0)
    }

    #[test]
    fn a_launch_that_takes_many_times_as_long_is_told() {
        let first = "the first launch of step takes 75.0 ms, the others 1.00 ms (median)";
        let managed = format!("{first}: it waits for pages of managed memory");
        assert_eq!(told_of(0, 75, "cudaMallocManaged"), Some(managed));
        assert_eq!(told_of(0, 75, "cudaMalloc").as_deref(), Some(first));
        let later = "1 of 5 launches of step takes 75.0 ms, the others 1.00 ms (median)";
        assert_eq!(told_of(3, 75, "cudaMallocManaged").as_deref(), Some(later));
        // A first launch finds nothing in the caches: ten times is no wonder.
        assert_eq!(told_of(0, 10, "cudaMallocManaged"), None);
    }

    #[test]
    fn two_long_launches_are_no_outlier() {
        assert!(outlier(0, &[90, 1, 1, 1, 60]).is_none());
        assert!(outlier(0, &[90, 1, 1]).is_none());
        assert!(outlier(0, &[90, 1, 1, 1, 1]).is_some());
    }
}

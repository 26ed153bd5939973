//! Between a host call and its operation: how long the operation waited, how many waited with it.

use serde::Serialize;

use crate::DeviceFigures;
use activity::{Ns, Span, What};
use causes::first_use;
use causes::graph::{CallId, CallKind, Graph, NONE};
use trace::{CallIndex, LaneId, Trace};

/// How long operations waited from the start of their host call to their own start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaunchDelay {
    /// Operations whose host call is known.
    pub count: u64,
    /// Half of them waited no longer than this.
    pub p50_ns: Ns,
    pub p90_ns: Ns,
    /// Ninety-nine of a hundred.
    pub p99_ns: Ns,
    pub max_ns: Ns,
}

/// How many operations a device had been given and had not begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueDepth {
    pub max: u64,
    /// On average over the time from the first host call to the last operation's start.
    pub mean: f64,
}

/// Both figures for the operations of one device (index into [`Trace::devices`]) that start within
/// `window`, or for all.
pub fn of_device(
    trace: &Trace,
    calls: &CallIndex,
    device: usize,
    window: Option<Span>,
) -> (LaunchDelay, QueueDepth) {
    let waits = waits(trace, calls, device, window);
    (delay(&waits), depth(waits))
}

/// Host call's start to operation's start, for each operation whose call is known. An operation never
/// starts before its call; where the clocks say so, it did not wait.
pub fn waits(trace: &Trace, calls: &CallIndex, device: usize, window: Option<Span>) -> Vec<Span> {
    let mut waits = Vec::new();
    for (_, lane) in trace.streams_of(device) {
        let rows = lane.rows_in(window);
        waits.reserve_exact(rows.len());
        for row in rows {
            if let Some(call) = calls.span(trace, lane.key().process, lane.correlation(row)) {
                waits.push(Span::new(call.start, lane.span(row).start));
            }
        }
    }
    waits
}

/// Calls in a part that make streams and destroy them, where they do both again and again. And how long they take.
pub fn streams_anew(trace: &Trace, graph: &Graph, part: Span) -> Option<(u64, Ns)> {
    let (mut made, mut destroyed, mut time) = (0, 0, 0);
    for call in 0..graph.calls.len() as CallId {
        let span = graph.calls.span(call);
        if !part.contains(span.start) {
            continue;
        }
        let name = graph.function(trace, call);
        let counts = match () {
            () if name.contains("StreamCreate") => &mut made,
            () if name.contains("StreamDestroy") => &mut destroyed,
            () => continue,
        };
        *counts += 1;
        time += span.len();
    }
    let is_loop = cases::LOOP_MIN.is_reached_by(made.min(destroyed));
    is_loop.then_some(((made + destroyed) as u64, time))
}

/// Launches that return only when their kernel is over.
#[derive(Clone, Debug, Default)]
pub struct Blocked {
    /// The kernels, with what the call of each takes.
    pub at: Vec<(Ns, (LaneId, usize))>,
    /// What the calls take beyond a launch, in ns.
    pub waited: Ns,
}

/// About what a launch takes at least.
const LAUNCH: Ns = 2_000;

/// Those of a device, where nearly all launches of kernels that take a while are such.
pub fn blocked(
    trace: &Trace,
    graph: &Graph,
    device: usize,
    window: Option<Span>,
) -> Option<Blocked> {
    let (mut found, mut others) = (Blocked::default(), 0);
    let lanes = || trace.streams_of(device);
    let count: usize = lanes().map(|it| it.1.rows_in(window).len()).sum();
    for (id, lane) in lanes() {
        for row in lane.rows_in(window) {
            let span = lane.span(row);
            let is_kernel = matches!(trace.what(id, row), What::Kernel(_));
            if !is_kernel || !cases::BLOCKED_MIN.is_reached_by(span.len()) {
                continue;
            }
            // A library's operation, as TensorFlow writes it, lasts as long as it wants, and launches several.
            let launches = |it| graph.function(trace, it).contains("LaunchKernel");
            match graph.call_at((id, row)) {
                NONE => {}
                call if span.end > graph.calls.span(call).end => others += 1,
                call if launches(call) => {
                    let own = graph.calls.span(call).len();
                    found.at.push((own, (id, row)));
                    found.waited += (own - LAUNCH).max(0);
                }
                _ => {}
            }
            // Most programs end here, soon.
            if cases::BLOCKED_TIMES.value() * others > count as Ns {
                return None;
            }
        }
    }
    let is_so = found.at.len() as Ns >= cases::BLOCKED_TIMES.value() * others
        && cases::LOOP_MIN.is_reached_by(found.at.len());
    is_so.then_some(found)
}

fn delay(waits: &[Span]) -> LaunchDelay {
    let mut lengths: Vec<Ns> = waits.iter().map(|w| w.len()).collect();
    lengths.sort_unstable();
    LaunchDelay {
        count: lengths.len() as u64,
        p50_ns: percentile(&lengths, 50),
        p90_ns: percentile(&lengths, 90),
        p99_ns: percentile(&lengths, 99),
        max_ns: lengths.last().copied().unwrap_or(0),
    }
}

/// The smallest of `sorted` that at least `percent` per cent of them do not exceed (nearest rank).
fn percentile(sorted: &[Ns], percent: usize) -> Ns {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

fn depth(mut waits: Vec<Span>) -> QueueDepth {
    let mut leaves: Vec<Ns> = waits.iter().map(|w| w.end).collect();
    // Streams are sorted: a sort that finds such runs only merges them.
    leaves.sort();
    waits.sort_by_key(|w| w.start);
    let (Some(first), Some(last)) = (waits.first(), leaves.last()) else {
        return QueueDepth::default();
    };
    let length = last - first.start;
    let waited = waits.iter().map(|w| w.len()).fold(0, Ns::saturating_add);
    let (mut gone, mut max) = (0, 0);
    for (joined, wait) in waits.iter().enumerate() {
        // At one moment what leaves the queue leaves before what joins it; what joins and leaves at once was never in it.
        while leaves.get(gone).is_some_and(|leave| *leave <= wait.start) {
            gone += 1;
        }
        max = max.max((joined + 1).saturating_sub(gone));
    }
    QueueDepth {
        max: max as u64,
        mean: if length > 0 {
            waited as f64 / length as f64
        } else {
            0.0
        },
    }
}

/// What a call does with memory, or on the GPU, by its name.
#[derive(Clone, Copy, PartialEq)]
pub enum CallWork {
    Allocation,
    /// It pins or unpins memory of the host.
    Pins,
    Copy,
    Launch,
    Other,
}

impl CallWork {
    /// Of a call's name.
    pub fn of(name: &str) -> CallWork {
        match name {
            _ if first_use::is_allocation(name) => CallWork::Allocation,
            _ if first_use::pins(name) => CallWork::Pins,
            _ if name.contains("Memcpy") => CallWork::Copy,
            _ if name.contains("Launch") => CallWork::Launch,
            _ => CallWork::Other,
        }
    }
}

/// Whether a call asks the driver what it looks up each time, in some 5 us (H200, driver 580), though it seldom changes. Libraries ask
/// for less.
pub fn is_query(name: &str) -> bool {
    ["MemGetInfo", "GetDeviceProperties", "DeviceTotalMem"]
        .iter()
        .any(|it| name.contains(it))
}

/// What is uploaded before each round, and smaller, only sets a flag back.
const FLAG_BYTES: u64 = 16;

/// Whether each graph that is launched has input of its own, and its result comes back: as many of these as waits.
pub fn have_input(graph: &Graph, window: Span, f: &DeviceFigures, waits: usize) -> bool {
    let calls = &graph.calls;
    let all = (0..calls.len() as CallId).filter(|it| window.overlaps(calls.span(*it)));
    let kinds = all.map(|it| calls.kind[it as usize]);
    let count = |kind| kinds.clone().filter(|it| *it == kind).count() as u64;
    let graphs = count(CallKind::GraphLaunch);
    let moved = f.h2d.count.min(f.d2h.count).min(f.h2d.bytes / FLAG_BYTES);
    graphs >= waits as u64 && moved >= graphs.max(4 * count(CallKind::Launch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let sorted: Vec<Ns> = (1..=10).collect();
        assert_eq!(percentile(&sorted, 50), 5);
        assert_eq!(percentile(&sorted, 90), 9);
        assert_eq!(percentile(&sorted, 99), 10);
        assert_eq!(percentile(&[], 50), 0);
        assert_eq!(percentile(&[7], 99), 7);
    }

    #[test]
    fn a_queue_is_as_deep_as_what_waits_at_once() {
        let waits = [Span::new(0, 10), Span::new(2, 20), Span::new(10, 30)];
        let depth = depth(waits.to_vec());
        assert_eq!(depth.max, 2);
        assert!((depth.mean - 48.0 / 30.0).abs() < 1e-12);
        assert_eq!(super::depth(Vec::new()), QueueDepth::default());
    }
}

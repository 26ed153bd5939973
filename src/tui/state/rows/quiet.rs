//! What stands for rows that hardly matter: of threads that call no CUDA beside one that does, and of processes that
//! call none beside others. One line for each, with what they were doing.
//!
//! Samples are looked at in a few stretches only, so that a line costs the same whatever was recorded.

use rustc_hash::{FxHashMap, FxHashSet};

use super::make::launching;
use crate::tui::state::row::{Row, RowKind};
use activity::text::{fingerprint, plural, printable};
use activity::{Ns, RangeKind, Span, StackId, units};
use trace::samples::{loads, wants};
use trace::{LaneKey, LaneKind, Measure, Trace};

/// Stretches of the scope that are looked at, and how long each is at most.
const STRETCHES: Ns = 32;
const LONGEST: Ns = 300_000_000;

/// Names that are said, and the share of the time that makes one worth it.
const NAMES: usize = 2;
const WORTH: f64 = 0.1;

/// Of a device's busy time, what engines have to work at once, or a direction to copy, to be worth a row.
const WORTH_OVERLAP: f64 = 0.05;
const WORTH_COPIES: f64 = 0.005;
/// And a stream to be worth one beside others.
const WORTH_STREAM: f64 = 0.005;

/// What threads were seen doing: by stack and whether they ran, in how many looks.
type Seen = FxHashMap<(StackId, bool), u64>;

/// Rows that hardly matter: time of the driver and the profiler, and engines that hardly ever overlap. So are directions of few
/// copies, and streams of hardly any work, beside much else. So are Python functions of threads that call no CUDA, beside such as
/// call it. So is all that processes without CUDA do. Lines for them come with it.
pub fn minor(trace: &Trace, scope: Span, rows: &[Row]) -> (FxHashSet<RowKind>, Vec<Row>) {
    let launching = launching(trace);
    let calls = |process: usize| launching.iter().any(|it| it.0 == process);
    let share = |device: usize, measure| {
        let usage = &trace.devices()[device].usage;
        let busy = usage.time(Measure::Busy, scope).max(1);
        usage.time(measure, scope) as f64 / busy as f64
    };
    let mut quiet = FxHashSet::default();
    let mut is_minor = |kind: &RowKind| match *kind {
        RowKind::Overhead(_) => true,
        RowKind::Overlap(device) => share(device, Measure::Concurrent) < WORTH_OVERLAP,
        RowKind::Bandwidth(device, direction) => {
            share(device, Measure::Direction(direction)) < WORTH_COPIES
        }
        RowKind::Stream(id) => {
            let lane = &trace.lanes()[id];
            let LaneKind::Stream { device, .. } = lane.key().kind else {
                return false;
            };
            let busy = trace.devices()[device].usage.time(Measure::Busy, scope);
            (lane.busy(scope) as f64) < WORTH_STREAM * busy as f64
        }
        RowKind::Range(id, _) => {
            let LaneKey { process, kind } = trace.lanes()[id].key();
            let LaneKind::Range { kind, thread } = kind else {
                return false;
            };
            let is_python = matches!(kind, RangeKind::Python | RangeKind::Function);
            let is_quiet = !launching.is_empty()
                && (!calls(process) || (is_python && !launching.contains(&(process, thread))));
            if is_quiet && kind >= RangeKind::Nvtx {
                quiet.insert((process, thread));
            }
            is_quiet && kind >= RangeKind::Nvtx
        }
        _ => false,
    };
    let kinds = rows.iter().map(|row| row.kind);
    let minor = kinds.filter(|kind| is_minor(kind)).collect();
    (minor, lines(trace, scope, &quiet, calls))
}

/// Lines for the threads given, those of a process that calls CUDA apart from all others.
pub fn lines(
    trace: &Trace,
    scope: Span,
    threads: &FxHashSet<(usize, u32)>,
    calls: impl Fn(usize) -> bool,
) -> Vec<Row> {
    let mut lines: Vec<String> = Vec::new();
    // What they do before the GPU has work and behind it says nothing of what it waits for.
    let with_work = trace.operations_extent().map(|it| it.intersect(scope));
    let scope = with_work.filter(|it| !it.is_empty()).unwrap_or(scope);
    let (mut others, mut of_others) = (FxHashSet::default(), Seen::default());
    let mut sorted: Vec<_> = threads.iter().copied().collect();
    sorted.sort_unstable();
    for of_process in sorted.chunk_by(|a, b| a.0 == b.0) {
        let process = of_process[0].0;
        if !calls(process) {
            others.insert(process);
            add(trace, scope, of_process, &mut of_others);
            continue;
        }
        let mut seen = Seen::default();
        add(trace, scope, of_process, &mut seen);
        let words = words(trace, &seen);
        // Threads that only wait are not worth a line.
        if words.1 >= WORTH {
            let count = plural(of_process.len() as u64, "more thread");
            let pid = trace.processes()[process].info.pid;
            let of = match trace.processes().len() {
                1 => String::new(),
                _ => format!(" of pid {pid}"),
            };
            lines.push(format!("{count}{of}{}", words.0));
        }
    }
    if !others.is_empty() {
        let is_loader = |stack: StackId| wants(trace.stacks(), stack).is_some();
        let count = at_once(trace, &others);
        let has_loaders = of_others.keys().any(|it| is_loader(it.0));
        // Their other threads hand on what is loaded.
        of_others.retain(|it, _| !has_loaders || is_loader(it.0));
        let who = match (has_loaders, count) {
            (true, _) => plural(count, "DataLoader worker"),
            (false, 1) => "1 process without CUDA".to_owned(),
            (false, _) => format!("{count} processes without CUDA"),
        };
        lines.push(format!("{who}{}", words(trace, &of_others).0));
    }
    let row = |label: String| Row {
        kind: RowKind::Folded(fingerprint(label.as_bytes())),
        label,
    };
    lines.into_iter().map(row).collect()
}

/// How many of the processes were there at once: a training loop starts others in each epoch.
fn at_once(trace: &Trace, processes: &FxHashSet<usize>) -> u64 {
    let sampled = processes.iter().map(|&it| &trace.processes()[it].sampled);
    let changes = sampled
        .filter_map(|it| it.extent())
        .flat_map(|it| [(it.start, 1), (it.end, -1)]);
    let mut changes: Vec<(Ns, i64)> = changes.collect();
    changes.sort_unstable();
    let now = changes.iter().scan(0, |now, (_, change)| {
        *now += change;
        Some(*now)
    });
    now.max().map_or(processes.len(), |most| most as usize) as u64
}

/// Counts what threads of a process were doing, in short stretches over all of a scope.
fn add(trace: &Trace, scope: Span, threads: &[(usize, u32)], seen: &mut Seen) {
    let step = (scope.len() / STRETCHES).max(1);
    for &(process, thread) in threads {
        for from in (0..STRETCHES).map(|i| scope.start + i * step) {
            let stretch = Span::new(from, from + step.min(LONGEST));
            for sample in trace.processes()[process].sampled.within(thread, stretch) {
                *seen.entry((sample.stack, sample.is_running)).or_default() += 1;
            }
        }
    }
}

/// " · busy 98 %: __getitem__ train.py:7 64 %", and the share that was busy. Who loads data is busy unless it waits for work.
fn words(trace: &Trace, seen: &Seen) -> (String, f64) {
    let all: u64 = seen.values().sum();
    if all == 0 {
        return (String::new(), 0.0);
    }
    let share = |count: u64| count as f64 / all as f64;
    let (mut busy, mut work) = (0, FxHashMap::default());
    for (&(stack, is_running), count) in seen {
        let waits = wants(trace.stacks(), stack);
        if waits == Some(false) {
            let name = loads(trace.stacks(), stack).unwrap_or_default();
            *work.entry(name).or_default() += count;
        }
        if waits.map_or(is_running, |waits| !waits) {
            busy += count;
        }
    }
    let mut work: Vec<(String, u64)> = work.into_iter().collect();
    work.retain(|(name, count)| !name.is_empty() && share(*count) >= WORTH);
    work.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let named = work.iter().take(NAMES);
    let names: Vec<String> = named
        .map(|(name, count)| format!("{} {}", printable(name), units::percent(share(*count))))
        .collect();
    let colon = if names.is_empty() { "" } else { ": " };
    let words = format!(
        " · busy {}{colon}{}",
        units::percent(share(busy)),
        names.join(", ")
    );
    (words, share(busy))
}

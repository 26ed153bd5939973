//! Idle time by Python function, where the program's own profiler recorded every call of one: no estimate.
//!
//! At each moment of a gap the launching thread is in the innermost function that is of a file and not of PyTorch. What
//! is built in, or PyTorch's, counts as called by it. Which other files are the user's own is not known: such profilers
//! leave out where packages lie. The line of such a function is the one that it begins at.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::{Count, DeviceLines, Line, launched_gaps, step_at};
use crate::steps::Steps;
use activity::{NameId, RangeKind, Span, What};
use causes::nested::{LEVELS, NONE, Nested};
use causes::stacks::Key;
use trace::describe::function_parts;
use trace::{CallIndex, Lane, LaneId, LaneKind, Trace};

/// Where PyTorch's own files lie.
const TORCH: &str = "torch/";
/// A function, and the one that it called.
type Doing = (NameId, Option<NameId>);

/// The functions that a device waited for; `None` where no launching thread has any.
pub(super) fn of_device(
    trace: &Trace,
    calls: &CallIndex,
    steps: &[Steps],
    device: usize,
    stretch: Span,
    threads: &Threads,
) -> Option<DeviceLines> {
    if threads.is_empty() {
        return None;
    }
    let mut sums: FxHashMap<Doing, Count> = FxHashMap::default();
    let (mut idle, mut unseen) = (0, 0);
    let mut processes = BTreeSet::new();
    for (gap, process, functions) in gaps(trace, calls, device, stretch, threads) {
        processes.insert(process);
        idle += gap.len();
        unseen += gap.len();
        for (span, row) in functions.nested.within(gap) {
            if let Some(doing) = functions.doing(trace, row) {
                unseen -= span.len();
                let sum = sums.entry(doing).or_default();
                sum.time += span.len();
                sum.see(step_at(steps, process, span.start), gap);
            }
        }
    }
    if sums.is_empty() {
        return None;
    }
    let of_these = steps.iter().filter(|it| processes.contains(&it.process));
    let mut lines: BTreeMap<Key, Count> = BTreeMap::new();
    for ((function, called), of) in sums {
        let (file, line, function) =
            function_parts(trace.names().full(function)).unwrap_or_default();
        let call = called.map_or_else(String::new, |it| words(trace.names().full(it)));
        let key = Key {
            file: file.to_owned(),
            line,
            function: function.to_owned(),
            call,
        };
        let sum = lines.entry(key).or_default();
        sum.time += of.time;
        sum.see(of.steps, of.longest);
    }
    let known = (idle - unseen).max(1) as f64;
    let mut lines: Vec<Line> = lines
        .into_iter()
        .map(|(key, sum)| Line::new(key, [sum.time as f64 / known; 3], sum.time, &sum))
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.idle_ns));
    Some(DeviceLines {
        is_exact: true,
        idle_ns: idle,
        unseen_ns: unseen,
        steps: of_these.map(|it| it.spans.len() as u64).sum(),
        lines,
        ..DeviceLines::default()
    })
}

/// The gaps of a device whose launching thread has functions: each with its process, and them.
fn gaps<'a>(
    trace: &'a Trace,
    calls: &'a CallIndex,
    device: usize,
    stretch: Span,
    threads: &'a Threads,
) -> impl Iterator<Item = (Span, usize, &'a Functions)> {
    launched_gaps(trace, calls, device, stretch).filter_map(|(gap, process, thread)| {
        let main = trace.processes()[process].info.pid;
        let of_thread = threads.get(&(process, thread));
        let functions = of_thread.or_else(|| threads.get(&(process, main)))?;
        Some((gap, process, functions))
    })
}

/// The functions of each process and thread.
pub(super) type Threads = FxHashMap<(usize, u32), Functions>;

pub(super) fn functions(trace: &Trace) -> Threads {
    let lanes = trace.lanes().iter().map(Lane::key).enumerate();
    let found = lanes.filter_map(|(lane, key)| match key.kind {
        LaneKind::Range {
            kind: RangeKind::Function,
            thread,
        } => {
            let nested = Nested::of(trace, lane, |_, _| {});
            Some(((key.process, thread), Functions { lane, nested }))
        }
        _ => None,
    });
    found.collect()
}

/// The nested functions of one thread that a profiler recorded.
#[derive(Debug)]
pub(super) struct Functions {
    lane: LaneId,
    nested: Nested,
}

impl Functions {
    /// The name of a row's function.
    fn name(&self, trace: &Trace, row: u32) -> NameId {
        match trace.what(self.lane, row as usize) {
            What::Range(range) => range.name,
            _ => NameId::MAX,
        }
    }

    fn doing(&self, trace: &Trace, row: u32) -> Option<Doing> {
        let (mut row, mut called) = (row, None);
        let mut of_torch = None;
        for _ in 0..LEVELS {
            if row == NONE {
                break;
            }
            let name = self.name(trace, row);
            match function_parts(trace.names().full(name)) {
                Some((file, ..)) if file.starts_with(TORCH) => {
                    of_torch = of_torch.or(Some((name, called)));
                }
                Some(_) => return Some((name, called)),
                None => {}
            }
            called = Some(name);
            row = self.nested.parent(row);
        }
        of_torch
    }
}

/// What a function that was called is called: "torch/nn/module.py forward", "isinstance".
fn words(name: &str) -> String {
    match function_parts(name) {
        Some((file, _, function)) => format!("{file} {function}"),
        None => {
            let built_in = name.strip_prefix("<built-in ").and_then(|rest| {
                let rest = rest.split_once(' ')?.1;
                rest.split([' ', '>']).next()
            });
            built_in.unwrap_or(name).to_owned()
        }
    }
}

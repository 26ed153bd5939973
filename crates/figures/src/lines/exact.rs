//! Idle time by Python function, where the program's own profiler recorded every call of one: no estimate.
//!
//! At each moment of a gap the launching thread is in the innermost function that is of a file and not of PyTorch. What
//! is built in, or PyTorch's, counts as called by it. Which other files are the user's own is not known: such profilers
//! leave out where packages lie. The line of such a function is the one that it begins at.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::functions::Functions;
use super::{Count, DeviceLines, Line, launched_gaps, step_at, stretches};
use crate::steps::Steps;
use activity::{NameId, Ns, RangeKind, Span};
use causes::nested::{LEVELS, NONE};
use causes::stacks::Key;
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
) -> Option<DeviceLines> {
    let threads = functions(trace);
    if threads.is_empty() {
        return None;
    }
    let mut sums: FxHashMap<Doing, Count> = FxHashMap::default();
    let (mut idle, mut unseen) = (0, 0);
    let mut processes = BTreeSet::new();
    for (gap, process, functions) in gaps(trace, calls, device, stretch, &threads) {
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
        let (file, line, function) = parse(trace.names().full(function)).unwrap_or_default();
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
    threads: &'a FxHashMap<(usize, u32), Functions>,
) -> impl Iterator<Item = (Span, usize, &'a Functions)> {
    launched_gaps(trace, calls, device, stretch).filter_map(|(gap, process, thread)| {
        let main = trace.processes()[process].info.pid;
        let of_thread = threads.get(&(process, thread));
        let functions = of_thread.or_else(|| threads.get(&(process, main)))?;
        Some((gap, process, functions))
    })
}

/// Names of functions, outermost first, with the time in which the last of them was the innermost, in ns.
pub type Stacks = BTreeMap<Vec<NameId>, Ns>;

/// The stacks of recorded functions in which the launching threads were while each device was idle, in the stretch of its
/// lines. Devices without are left out.
pub fn idle_stacks(trace: &Trace, calls: &CallIndex, steps: &[Steps]) -> Vec<(usize, Stacks)> {
    let threads = functions(trace);
    if threads.is_empty() {
        return Vec::new();
    }
    let of_device = |(device, (stretch, _))| {
        let mut stacks = Stacks::new();
        for (gap, _, functions) in gaps(trace, calls, device, stretch, &threads) {
            add_paths(functions, gap, &mut stacks);
        }
        (device, stacks)
    };
    let stretches = stretches(trace, steps).into_iter().enumerate();
    let devices = stretches.map(of_device);
    devices.filter(|it| !it.1.is_empty()).collect()
}

/// Adds the stacks in which a thread was in a stretch.
fn add_paths(functions: &Functions, stretch: Span, stacks: &mut Stacks) {
    let parts = functions.nested.within(stretch);
    for (span, row) in parts.filter(|it| it.1 != NONE) {
        *stacks.entry(functions.path(row)).or_default() += span.len();
    }
}

/// Whether a program's own profiler recorded its Python functions.
pub fn has_functions(trace: &Trace) -> bool {
    lanes_of_functions(trace).any(|(id, ..)| !trace.lanes()[id].kept().is_empty())
}

/// The lanes of functions, each with its process and thread.
fn lanes_of_functions(trace: &Trace) -> impl Iterator<Item = (LaneId, (usize, u32))> {
    let lanes = trace.lanes().iter().map(Lane::key).enumerate();
    lanes.filter_map(|(id, key)| match key.kind {
        LaneKind::Range {
            kind: RangeKind::Function,
            thread,
        } => Some((id, (key.process, thread))),
        _ => None,
    })
}

fn functions(trace: &Trace) -> FxHashMap<(usize, u32), Functions> {
    let of = lanes_of_functions(trace).map(|(id, thread)| (thread, Functions::of(trace, id)));
    of.collect()
}

impl Functions {
    fn doing(&self, trace: &Trace, row: u32) -> Option<Doing> {
        let (mut row, mut called) = (row, None);
        let mut of_torch = None;
        for _ in 0..LEVELS {
            if row == NONE {
                break;
            }
            let name = self.name(row);
            match parse(trace.names().full(name)) {
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
    match parse(name) {
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

/// A function for a list of frames: "forward (torch/nn/module.py:99)", "isinstance".
pub fn frame(name: &str) -> String {
    match parse(name) {
        Some((file, line, function)) => format!("{function} ({file}:{line})"),
        None => words(name),
    }
}

/// "torch/nn/module.py(99): forward" as its parts. `None` for what is built in.
pub fn parse(name: &str) -> Option<(&str, u32, &str)> {
    let (place, function) = name.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some((file, line.parse().ok()?, function))
}

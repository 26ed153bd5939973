//! Idle time by Python function, where the program's own profiler recorded every call of one: no estimate.
//!
//! At each moment of a gap the launching thread is in the innermost function that is of a file and not of PyTorch; what is built in,
//! or PyTorch's, counts as called by it. Which other files are the user's own is not known: such profilers leave out where
//! packages lie. The line of such a function is the one that it begins at.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::{DeviceLines, Line, launcher, step_at};
use crate::activity::{NameId, Ns, RangeKind, Span, What};
use crate::analysis::CallIndex;
use crate::analysis::steps::Steps;
use crate::trace::{LaneId, LaneKind, Trace};

/// Where PyTorch's own files lie.
const TORCH: &str = "torch/";
/// No row.
const NONE: u32 = u32::MAX;

/// The nested functions of one thread: from each moment on, which is the innermost.
#[derive(Debug, Default)]
struct Functions {
    times: Vec<Ns>,
    rows: Vec<u32>,
    first: usize,
    parents: Vec<u32>,
    names: Vec<NameId>,
}

/// A function, and the one that it called.
type Doing = (NameId, Option<NameId>);

/// Time of one function.
#[derive(Debug, Default)]
struct Sum {
    time: Ns,
    steps: BTreeSet<(usize, usize)>,
    longest: Span,
}

/// The functions that a device waited for; `None` where no launching thread has any.
pub(super) fn of_device(
    trace: &Trace,
    calls: &CallIndex,
    steps: &[Steps],
    device: usize,
    window: Option<Span>,
) -> Option<DeviceLines> {
    let threads = functions(trace);
    if threads.is_empty() {
        return None;
    }
    let usage = &trace.devices()[device].usage;
    let window = window.or(usage.span())?;
    let streams: Vec<LaneId> = trace.streams_of(device).map(|(id, _)| id).collect();
    let mut sums: FxHashMap<Doing, Sum> = FxHashMap::default();
    let (mut idle, mut unseen) = (0, 0);
    let mut processes = BTreeSet::new();
    for gap in usage.gaps_within(window) {
        if trace.is_unrecorded(device, gap) {
            continue;
        }
        let Some((process, thread)) = launcher(trace, calls, &streams, gap.end) else {
            continue;
        };
        let main = trace.processes()[process].info.pid;
        let of_thread = threads.get(&(process, thread));
        let Some(functions) = of_thread.or_else(|| threads.get(&(process, main))) else {
            continue;
        };
        processes.insert(process);
        idle += gap.len();
        unseen += gap.len();
        functions.within(gap, |span, row| {
            if let Some(doing) = functions.doing(trace, row) {
                unseen -= span.len();
                let sum = sums.entry(doing).or_default();
                sum.time += span.len();
                sum.steps.extend(step_at(steps, process, span.start));
                if gap.len() > sum.longest.len() {
                    sum.longest = gap;
                }
            }
        });
    }
    if sums.is_empty() {
        return None;
    }
    let of_these = steps.iter().filter(|it| processes.contains(&it.process));
    let mut lines: BTreeMap<(String, u32, String, String), Sum> = BTreeMap::new();
    for ((function, called), of) in sums {
        let (file, line, function) = parse(trace.names().full(function)).unwrap_or_default();
        let call = called.map_or_else(String::new, |it| words(trace.names().full(it)));
        let key = (file.to_owned(), line, function.to_owned(), call);
        let sum = lines.entry(key).or_default();
        sum.time += of.time;
        sum.steps.extend(of.steps);
        if of.longest.len() > sum.longest.len() {
            sum.longest = of.longest;
        }
    }
    let known = (idle - unseen).max(1) as f64;
    let mut lines: Vec<Line> = lines
        .into_iter()
        .map(|((file, line, function, call), sum)| Line {
            file,
            line,
            function,
            call,
            samples: 0,
            share: sum.time as f64 / known,
            low: sum.time as f64 / known,
            high: sum.time as f64 / known,
            idle_ns: sum.time,
            steps: sum.steps.len() as u64,
            longest: sum.longest,
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.idle_ns));
    Some(DeviceLines {
        device,
        is_exact: true,
        idle_ns: idle,
        samples: 0,
        unseen_ns: unseen,
        hz: 0,
        steps: of_these.map(|it| it.spans.len() as u64).sum(),
        lines,
    })
}

fn functions(trace: &Trace) -> FxHashMap<(usize, u32), Functions> {
    let mut threads = FxHashMap::default();
    for (id, lane) in trace.lanes().iter().enumerate() {
        let key = lane.key();
        if let LaneKind::Range {
            kind: RangeKind::Function,
            thread,
        } = key.kind
        {
            threads.insert((key.process, thread), Functions::of(trace, id));
        }
    }
    threads
}

impl Functions {
    fn of(trace: &Trace, id: LaneId) -> Functions {
        let lane = &trace.lanes()[id];
        let mut it = Functions {
            first: lane.kept().start,
            ..Functions::default()
        };
        let mut stack: Vec<(Ns, u32)> = Vec::new();
        for row in lane.kept() {
            let span = lane.span(row);
            it.leave(&mut stack, span.start);
            it.parents.push(stack.last().map_or(NONE, |top| top.1));
            it.names.push(match trace.activity(id, row).what {
                What::Range(range) => range.name,
                _ => NameId::MAX,
            });
            if !span.is_empty() {
                it.push(span.start, row as u32);
                stack.push((span.end, row as u32));
            }
        }
        it.leave(&mut stack, Ns::MAX);
        it
    }

    fn leave(&mut self, stack: &mut Vec<(Ns, u32)>, until: Ns) {
        while let Some(&(end, _)) = stack.last().filter(|top| top.0 <= until) {
            stack.pop();
            self.push(end, stack.last().map_or(NONE, |top| top.1));
        }
    }

    fn push(&mut self, time: Ns, row: u32) {
        // Rows that overlap without nesting must not turn time back.
        let time = self.times.last().map_or(time, |&last| last.max(time));
        self.times.push(time);
        self.rows.push(row);
    }

    /// Tells of each part of `span` with one innermost row.
    fn within(&self, span: Span, mut tell: impl FnMut(Span, u32)) {
        let first = self.times.partition_point(|&time| time <= span.start);
        for at in first.saturating_sub(1)..self.times.len() {
            if self.times[at] >= span.end {
                break;
            }
            let end = self.times.get(at + 1).copied().unwrap_or(Ns::MAX);
            let part = Span {
                start: self.times[at],
                end,
            }
            .intersect(span);
            if !part.is_empty() && self.rows[at] != NONE {
                tell(part, self.rows[at]);
            }
        }
    }

    fn doing(&self, trace: &Trace, row: u32) -> Option<Doing> {
        let (mut row, mut called) = (row, None);
        let mut of_torch = None;
        while row != NONE {
            let index = row as usize - self.first;
            let name = self.names[index];
            match parse(trace.names().full(name)) {
                Some((file, ..)) if file.starts_with(TORCH) => {
                    of_torch = of_torch.or(Some((name, called)));
                }
                Some(_) => return Some((name, called)),
                None => {}
            }
            called = Some(name);
            row = self.parents[index];
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

/// "torch/nn/module.py(99): forward" as its parts. `None` for what is built in.
fn parse(name: &str) -> Option<(&str, u32, &str)> {
    let (place, function) = name.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some((file, line.parse().ok()?, function))
}

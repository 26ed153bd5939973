//! Idle time of a device by source line: what the launching thread was seen doing while nothing ran.
//!
//! The thread is the one whose call launched the operation that ends a gap. Only the samples of that thread that fell
//! into a gap tell of it. A gap without a sample has no line. A line's share is its part of all those samples. That is
//! an estimate, with the 95 % interval (Wilson's) of a part of so many samples. Samples come at regular times, so long
//! gaps are measured better than that.

mod exact;
mod own;
#[cfg(test)]
mod tests;
mod tree;

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::steps::{self, Steps};
use activity::text::{plural, printable};
use activity::units::{duration, percent};
use activity::{Ns, Span, StackId};
use causes::stacks::{Key, main_of};
pub use own::is_own;
use trace::samples::{short_file, wants};
use trace::{CallIndex, Lane, LaneId, Measure, Trace};

/// A line that a device waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// In short: "train.py:19".
    pub place: String,
    /// Its source file, as the interpreter names it; absent where no frame is of the program's own files.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The function that it is in.
    pub function: String,
    /// What it called: "torch/utils/data/dataloader.py __next__"; absent where it was at work itself.
    pub call: Option<String>,
    /// Samples of it that fell into idle time.
    pub samples: u64,
    /// Its part of the samples that did, from 0 to 1.
    pub share: f64,
    /// The 95 % interval of that part.
    pub interval: [f64; 2],
    /// That part of the device's idle time.
    pub idle_ns: Ns,
    /// Steps in whose idle time it was seen.
    pub steps: u64,
    /// The longest gap in which it was seen.
    #[serde(skip)]
    pub longest: Span,
    /// Where it has much of the samples: those of the functions below what it called, each before those that it called.
    #[serde(skip)]
    pub below: Vec<Line>,
}

impl Line {
    /// A part of some idle time: the first of `shares`, between the others.
    fn new(key: Key, shares: [f64; 3], idle_ns: Ns, count: &Count) -> Line {
        let place = match key.file.as_str() {
            "" => "no line of the program's own".to_owned(),
            file if key.line == 0 => format!("{} in {}", key.function, short_file(file)),
            file => format!("{}:{}", short_file(file), key.line),
        };
        let [share, low, high] = shares.map(|share| (share * 10_000.0).round() / 10_000.0);
        Line {
            place,
            line: Some(key.line).filter(|line| *line > 0),
            file: Some(key.file).filter(|file| !file.is_empty()),
            function: key.function,
            call: Some(key.call).filter(|call| !call.is_empty()),
            samples: count.samples,
            share,
            interval: [low, high],
            idle_ns,
            steps: count.steps.len() as u64,
            longest: count.longest,
            below: Vec::new(),
        }
    }

    /// The line, its function, and what it called.
    pub fn name(&self) -> String {
        let mut name = self.place.clone();
        let call = self.call.as_deref().unwrap_or_default();
        for (mark, part) in [(" ", self.function.as_str()), (" > ", call)] {
            if !part.is_empty() {
                name.push_str(mark);
                name.push_str(part);
            }
        }
        printable(&name)
    }
}

/// The lines that a device waited for: an estimate made of stack samples, or functions that a profiler recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceLines {
    /// The device's id.
    pub device: u32,
    /// The device: index into [`Trace::devices`].
    #[serde(skip)]
    pub index: usize,
    /// Whether the program's own profiler recorded every Python function: no estimate, but functions in place of lines.
    #[serde(rename = "exact")]
    pub is_exact: bool,
    /// Whether only the steady steps were looked at: those of a program that has some.
    #[serde(rename = "in_steps")]
    pub is_of_steps: bool,
    /// Whether another process most likely has the device for most of its idle time: the lines are no cause of that.
    #[serde(skip)]
    pub is_others: bool,
    /// Its idle time while its processes were being sampled.
    pub idle_ns: Ns,
    /// Idle time in gaps into which no sample fell.
    pub unseen_ns: Ns,
    /// Samples of launching threads that fell into it.
    pub samples: u64,
    /// Looks a second that were aimed at.
    pub hz: u32,
    /// Steps of the processes that use it.
    pub steps: u64,
    /// The lines, most samples first.
    pub lines: Vec<Line>,
}

impl DeviceLines {
    /// The lines, each with the tree of functions below it.
    pub fn with_functions(&self) -> impl Iterator<Item = &Line> {
        let lines = self.lines.iter();
        lines.flat_map(|line| std::iter::once(line).chain(&line.below))
    }

    /// What the lines rest on.
    pub fn basis(&self) -> String {
        let within = format!(
            "{} of idle time{}",
            duration(self.idle_ns),
            match self.is_of_steps {
                true => " in the steady steps",
                false => "",
            }
        );
        let others = match self.is_others {
            true => "these lines are not the cause: another process likely has the GPU; ",
            false => "",
        };
        match self.is_exact {
            true => format!(
                "{others}Python functions in {} of {within}, as the program's profiler recorded them (at the lines where they begin)",
                duration(self.idle_ns - self.unseen_ns)
            ),
            false => format!(
                "{others}estimated from {} of the launching thread, {} a second, in {within}",
                plural(self.samples, "stack sample"),
                self.hz
            ),
        }
    }
}

/// What a process was seen doing that loads data for another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worker {
    /// The operating system's id.
    pub process: u32,
    /// Samples of it while a device was idle.
    pub samples: u64,
    /// Samples in which it waited for something to do.
    pub waiting: u64,
}

/// What DataLoader workers did while a device was idle, if there are any: in how many of their samples they waited for
/// something to do.
pub fn workers_in_words(workers: &[Worker]) -> Option<String> {
    let samples: u64 = workers.iter().map(|it| it.samples).sum();
    let waiting: u64 = workers.iter().map(|it| it.waiting).sum();
    let busy = 1.0 - waiting as f64 / samples.max(1) as f64;
    let words = match busy {
        busy if busy >= 0.8 => "they are what is slow, or too few",
        busy if busy <= 0.2 => "they had nothing to do: the delay is elsewhere",
        _ => "they were partly busy",
    };
    let told = format!(
        "{}: busy in {} of their {} while the GPU was idle; {words}",
        plural(workers.len() as u64, "DataLoader worker"),
        percent(busy),
        plural(samples, "sample")
    );
    Some(told).filter(|_| !workers.is_empty())
}

/// The stretch that each device's lines and stacks are of, and whether it is that of the steady steps. The time before them is
/// the program's start-up; what lies before the first operation of the only step that is marked belongs to it.
fn stretches(trace: &Trace, steps: &[Steps]) -> Vec<(Span, bool)> {
    let steady = steps::by_device(trace, steps);
    let devices = trace.devices().iter().enumerate();
    let of_device = devices.map(|(index, device)| match steady.get(&index) {
        Some(steps) => (steps.steady_span(), true),
        None => {
            let used = device.usage.span().unwrap_or_default();
            let begins = steps::begins(trace, index).unwrap_or(used.start);
            (Span::new(begins.min(used.start), used.end), false)
        }
    });
    of_device.collect()
}

/// The lines of every device whose launching threads were sampled, or whose Python functions were recorded.
pub fn find(trace: &Trace, calls: &CallIndex, steps: &[Steps]) -> Vec<DeviceLines> {
    let is_sampled = trace.processes().iter().any(|it| !it.sampled.is_empty());
    let stretches = stretches(trace, steps).into_iter().enumerate();
    let functions = LazyCell::new(|| exact::functions(trace));
    stretches
        .filter_map(|(device, (stretch, is_of_steps))| {
            let found = match is_sampled {
                true => of_device(trace, calls, steps, device, stretch),
                false => exact::of_device(trace, calls, steps, device, stretch, &functions),
            };
            found.map(|found| DeviceLines {
                device: trace.devices()[device].info.id,
                index: device,
                is_of_steps,
                ..found
            })
        })
        .collect()
}

fn of_device(
    trace: &Trace,
    calls: &CallIndex,
    steps: &[Steps],
    device: usize,
    stretch: Span,
) -> Option<DeviceLines> {
    let mut found = DeviceLines::default();
    let mut counts: BTreeMap<Key, Count> = BTreeMap::new();
    let mut processes = BTreeSet::new();
    for it in sampled_gaps(trace, calls, device, stretch) {
        let (process, looked, gap) = (it.process, it.looked, it.span);
        let thread = it.thread;
        let sampled = &trace.processes()[process].sampled;
        processes.insert(process);
        found.idle_ns += looked;
        let mut seen = 0;
        for sample in sampled.within(thread, gap) {
            seen += 1;
            let count = counts.entry(Key::of(trace, sample.stack)).or_default();
            count.samples += 1;
            let of_stack = count.stacks.entry(sample.stack).or_default();
            of_stack.0 += 1;
            of_stack.1 = std::cmp::max_by_key(of_stack.1, gap, |it| it.len());
            count.see(step_at(steps, process, sample.time), gap);
        }
        found.samples += seen;
        if seen == 0 {
            found.unseen_ns += looked;
        }
    }
    if processes.is_empty() {
        return None;
    }
    let totals = processes
        .iter()
        .map(|&p| trace.processes()[p].sampled.totals());
    found.hz = totals.map(|it| it.hz).max().unwrap_or(0);
    let of_these = steps.iter().filter(|it| processes.contains(&it.process));
    found.steps = of_these.map(|it| it.spans.len() as u64).sum();
    let all = found.samples;
    let idle = found.idle_ns;
    found.lines = counts
        .into_iter()
        .map(|(key, count)| {
            let share = count.samples as f64 / all as f64;
            let (low, high) = wilson(count.samples, all);
            let time = (share * idle as f64).round() as Ns;
            let below = tree::below(trace, (&key, &count), (all, idle));
            let line = Line::new(key, [share, low, high], time, &count);
            Line { below, ..line }
        })
        .collect();
    found.lines.sort_by_key(|line| Reverse(line.samples));
    Some(found)
}

/// A gap of a device in which somebody looked at the thread that launched what ends it.
struct SampledGap {
    span: Span,
    process: usize,
    thread: u32,
    /// How much of it lies where somebody looked: the rest says nothing of lines.
    looked: Ns,
}

fn sampled_gaps<'a>(
    trace: &'a Trace,
    calls: &'a CallIndex,
    device: usize,
    stretch: Span,
) -> impl Iterator<Item = SampledGap> + 'a {
    launched_gaps(trace, calls, device, stretch).filter_map(|(span, process, thread)| {
        let thread = main_of(trace, process, thread);
        let looked = trace.processes()[process].sampled.coverage(span);
        (looked > 0).then_some(SampledGap {
            span,
            process,
            thread,
            looked,
        })
    })
}

/// The gaps of a device that were recorded, each with the process and the thread that launched what ends it.
fn launched_gaps<'a>(
    trace: &'a Trace,
    calls: &'a CallIndex,
    device: usize,
    stretch: Span,
) -> impl Iterator<Item = (Span, usize, u32)> + 'a {
    let streams = trace.streams_of(device);
    let firsts = streams.filter_map(|(id, lane)| upcoming(lane, id, Ns::MIN));
    let mut heads: BinaryHeap<_> = firsts.collect();
    let usage = &trace.devices()[device].usage;
    let lead = usage.span().map(|it| Span::new(stretch.start, it.start));
    let lead = lead.filter(|it| it.start < it.end);
    let gaps = lead.into_iter().chain(usage.gaps_within(stretch));
    let recorded = gaps.filter(move |gap| !trace.is_unrecorded(device, *gap));
    recorded.filter_map(move |gap| {
        let (process, thread) = launcher(trace, calls, &mut heads, gap.end)?;
        Some((gap, process, thread))
    })
}

/// A stream's next operation, soonest first: its start, the stream, its row.
type Upcoming = Reverse<(Ns, LaneId, usize)>;

/// The first operation of a stream that starts at `time` or after it.
fn upcoming(lane: &Lane, id: LaneId, time: Ns) -> Option<Upcoming> {
    let row = lane.next(time)?;
    Some(Reverse((lane.span(row).start, id, row)))
}

/// The process and the thread that launched the first operation of these streams that starts at `time` or after it. No later
/// call may ask for an earlier time: with thousands of streams, a look at each of them for each gap takes minutes.
fn launcher(
    trace: &Trace,
    calls: &CallIndex,
    heads: &mut BinaryHeap<Upcoming>,
    time: Ns,
) -> Option<(usize, u32)> {
    while let Some(mut head) = heads.peek_mut().filter(|it| it.0.0 < time) {
        let id = head.0.1;
        match upcoming(&trace.lanes()[id], id, time) {
            Some(next) => *head = next,
            None => drop(PeekMut::pop(head)),
        }
    }
    let &Reverse((_, id, row)) = heads.peek()?;
    let lane = &trace.lanes()[id];
    let process = lane.key().process;
    let call = calls.find(process, lane.correlation(row));
    let thread = match call.map(|(lane, _)| trace.lanes()[lane].key().kind) {
        Some(trace::LaneKind::Thread { thread }) => thread,
        // Nothing says who launched it: the program's main thread is where its lines are.
        _ => trace.processes()[process].info.pid,
    };
    Some((process, thread))
}

/// What is seen of one line.
#[derive(Debug, Default)]
struct Count {
    samples: u64,
    /// How many samples each stack has, and the longest gap of those.
    stacks: FxHashMap<StackId, (u64, Span)>,
    /// Where functions were recorded, in place of samples.
    time: Ns,
    steps: BTreeSet<(usize, usize)>,
    longest: Span,
}

impl Count {
    /// It was seen in these steps, and in a gap.
    fn see(&mut self, steps: impl IntoIterator<Item = (usize, usize)>, gap: Span) {
        self.steps.extend(steps);
        if gap.len() > self.longest.len() {
            self.longest = gap;
        }
    }
}

fn step_at(steps: &[Steps], process: usize, time: Ns) -> Option<(usize, usize)> {
    let of_process = steps.iter().find(|it| it.process == process)?;
    let at = of_process.spans.partition_point(|span| span.end <= time);
    let is_in = of_process.spans.get(at)?.contains(time);
    is_in.then_some((process, at))
}

/// Wilson's 95 % interval of a share of which `n` of `all` were seen.
pub fn wilson(n: u64, all: u64) -> (f64, f64) {
    /// The normal distribution's 97.5 % point.
    const Z: f64 = 1.959_963_984_540_054;
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, all) = (n as f64, all as f64);
    let share = n / all;
    let scale = 1.0 + Z * Z / all;
    let middle = (share + Z * Z / (2.0 * all)) / scale;
    let half = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt() / scale;
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The processes that load data for PyTorch, by their stacks. Each has the part of some device's idle time in which it
/// had nothing to do.
pub fn workers(trace: &Trace) -> Vec<Worker> {
    let span = trace.operations_extent();
    let mut workers = Vec::new();
    for process in trace.processes() {
        let (Some(span), Some(extent)) = (span, process.sampled.extent()) else {
            continue;
        };
        let window = span.intersect(extent);
        let pid = process.info.pid;
        let (mut samples, mut waiting) = (0, 0);
        for sample in process.sampled.within(pid, window) {
            let Some(waits) = wants(trace.stacks(), sample.stack) else {
                continue;
            };
            let is_idle = trace.devices().iter().enumerate().any(|(index, device)| {
                let at = Span::new(sample.time, sample.time + 1);
                // Looking goes on where recording is off, between the ranges of `--range`: nobody knows what ran there.
                let gap = device.usage.gap_at(sample.time).unwrap_or(at);
                device.usage.time(Measure::Busy, at) == 0 && !trace.is_unrecorded(index, gap)
            });
            if is_idle {
                samples += 1;
                waiting += u64::from(waits);
            }
        }
        if samples > 0 {
            workers.push(Worker {
                process: pid,
                samples,
                waiting,
            });
        }
    }
    workers
}

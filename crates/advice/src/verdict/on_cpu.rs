//! What the CPU does in a recording without any operation of a GPU: its own times are all there is to tell.

pub(super) mod onnx;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use activity::text::{NAME_MAX, cut_middle, printable};
use activity::units::{count, duration, percent, share};
use activity::{Ns, RangeKind, Span, What};
use causes::asleep;
use causes::first_use;
use causes::graph::CallKind;
use causes::stacks::StackCounts;
use figures::steps::without_numbers;
use trace::{LaneId, LaneKind, SourceKind, Trace};

use super::BOUND_MIN;

/// So many names are told, where each takes this part of the time.
const NAMES_MAX: usize = 4;
const NAME_SHARE: f64 = 0.02;

/// A thread that waits for this part of the time does nothing.
const ASLEEP: f64 = 0.9;

/// A range around this part of all is around all.
const AROUND: f64 = 0.95;

/// Calls of less tell nothing of what was done first.
const LONG_CALL: Ns = 1_000_000;

/// What to do about calls that come with each launch.
const WAIT_LESS: &str = "wait only where the CPU needs a result";
const TAKE_ONCE: &str = "take memory once, before the loop";

/// What takes PTX for another GPU than the program was built for.
const COMPILER: &str = "the driver's compiler of PTX: build for this GPU (nvcc -arch), so that the program brings machine code";

/// Between two samples it may have done something else for longer.
const SINCE_MAX: Ns = 20_000_000;

/// How ranges begin that are around others and do nothing themselves: steps, TensorFlow's calls and executors; and one without a name.
const WRAPPERS: &str = "ProfilerStep EagerKernelExecute EagerExecute EagerLocalExecute TFE_Py_ ExecutorState:: ExecutorDoneCallback train_function ?";

/// What goes by one name on a thread.
#[derive(Default)]
struct Named {
    name: String,
    count: u64,
    time: Ns,
    longest: Ns,
    /// Without what else lies within.
    own: Ns,
    /// Whether the longest comes before all other calls that take any time: such a call makes the context.
    is_first: bool,
}

/// What a thread does, from the first of it to the last.
struct Work {
    lane: LaneId,
    span: Span,
    by: FxHashMap<String, Named>,
}

/// Where most of the CPU's time goes, and a sentence each of what is known of it: operators, calls, ranges, samples.
pub(super) fn told(trace: &Trace) -> (Option<String>, Vec<String>) {
    let lanes = trace.lanes().iter().enumerate();
    // Operators lie among ranges. A report of nsys has calls of the system there, in which threads mostly wait.
    let own = |key: &LaneKind| match key {
        LaneKind::Thread { .. } => true,
        LaneKind::Range { kind, .. } => *kind == RangeKind::Nvtx,
        _ => false,
    };
    let lanes = lanes.filter(|it| own(&it.1.key().kind));
    let of = |kind: Option<RangeKind>| {
        let work = lanes.clone().filter_map(|it| Work::of(trace, it.0, kind));
        let are_ops = kind == Some(RangeKind::CpuOp);
        let is_told = !are_ops || trace.source.kind == SourceKind::Kineto;
        let work: Vec<Work> = work.filter(|_| is_told).collect();
        // What TensorFlow writes for threads are rows that have room for one more op.
        match are_ops && !work.iter().any(Work::has_ops) {
            true => work.into_iter().reduce(Work::with),
            false => work.into_iter().max_by_key(|it| (it.parts(), it.time())),
        }
    };
    let kinds = [None, Some(RangeKind::CpuOp), Some(RangeKind::Nvtx)];
    let [calls, operators, ranges] = kinds.map(of);
    // What is told beside a table of all calls is of all threads.
    let each = lanes.filter_map(|it| Work::of(trace, it.0, None));
    let every = each.reduce(Work::with);
    let told = [
        (&every, "CUDA calls"),
        (&operators, "CPU operators"),
        (&ranges, "ranges"),
    ];
    let told = told
        .into_iter()
        .filter_map(|it| Some((it.0.as_ref()?, it.1)));
    let told = told.filter_map(|(work, what)| work.list(what));
    let habits = every.iter().flat_map(Work::habits);
    let fallback = operators.iter().filter_map(onnx::fallback);
    let compiled = calls.as_ref().and_then(|it| it.compiling(trace));
    // Of all that was sampled it is another part.
    let sampled = match compiled {
        Some(_) => None,
        None => sampled(trace),
    };
    let told = told.chain(fallback).chain(habits);
    let told = told.chain(sampled).collect();
    let mut known = [&calls, &operators, &ranges].into_iter().flatten();
    let most = compiled.or_else(|| known.find_map(Work::most));
    // Of a thread that waits nobody is at work.
    let own = ranges
        .as_ref()
        .filter(|_| trace.source.kind != SourceKind::Kineto);
    let system = own.and_then(|it| Work::of(trace, it.lane, Some(RangeKind::CpuOp)));
    let asleep = system.and_then(|it| it.asleep());
    (asleep.or(most), told)
}

/// What samples saw its busiest thread at.
fn sampled(trace: &Trace) -> Option<String> {
    let all = super::outside::recorded(trace)?;
    let of = trace.processes().iter().enumerate();
    let threads = of.filter_map(|(process, it)| Some((process, *it.sampled.busiest(1).first()?)));
    let (process, thread) = threads.max_by_key(|&(process, thread)| {
        let sampled = &trace.processes()[process].sampled;
        sampled.within(thread, all).count()
    })?;
    let mut seen = StackCounts::default();
    seen.add_samples(trace, process, thread, all);
    Some(format!(
        "{} sampled, {}",
        duration(all.len()),
        seen.work(trace)?
    ))
}

impl Work {
    fn of(trace: &Trace, id: LaneId, kind: Option<RangeKind>) -> Option<Work> {
        let lane = &trace.lanes()[id];
        let span = lane.extent()?;
        let mut work = Work {
            lane: id,
            span,
            by: FxHashMap::default(),
        };
        let mut around: Vec<(Ns, String)> = Vec::new();
        let mut all: Vec<_> = trace.activities(id, lane.kept()).collect();
        // What begins with another lies in it where it ends before.
        all.sort_by_key(|it| (it.1.span.start, Reverse(it.1.span.end)));
        let calls = all.iter().filter(|it| matches!(it.1.what, What::Call(_)));
        let mut long = calls.map(|it| it.1.span).filter(|it| it.len() >= LONG_CALL);
        let first = long.next().filter(|it| it.len() >= first_use::CONTEXT_MIN);
        for (_, activity) in all {
            let (name, of) = match activity.what {
                What::Call(it) => (it.name, None),
                What::Range(it) => (it.name, Some(it.kind)),
                _ => continue,
            };
            if of != kind {
                continue;
            }
            let raw = trace.names().full(name);
            if WRAPPERS.split(' ').any(|it| raw.starts_with(it)) {
                continue;
            }
            let name = match kind {
                Some(RangeKind::Nvtx) => without_numbers(raw).0,
                _ => raw.to_owned(),
            };
            let span = activity.span;
            around.retain(|it| it.0 > span.start);
            if let Some(it) = around.last().and_then(|it| work.by.get_mut(&it.1)) {
                it.own -= span.len();
            }
            let it = work.by.entry(name.clone()).or_default();
            // Its numbers tell some from others.
            let is_one = it.count == 0 || it.name == raw;
            *it = Named {
                name: if is_one { raw } else { &name }.to_owned(),
                count: it.count + 1,
                time: it.time + span.len(),
                longest: it.longest.max(span.len()),
                own: it.own + span.len(),
                is_first: it.is_first || Some(span) == first && kind.is_none(),
            };
            around.push((span.end, name));
        }
        (!work.by.is_empty()).then_some(work)
    }

    /// What two threads do.
    fn with(mut self, other: Work) -> Work {
        self.span = self.span.hull(other.span);
        for (name, it) in other.by {
            let of = self.by.entry(name).or_default();
            *of = Named {
                name: it.name,
                count: of.count + it.count,
                time: of.time + it.time,
                longest: of.longest.max(it.longest),
                own: of.own + it.own,
                is_first: of.is_first || it.is_first,
            };
        }
        self
    }

    /// What it does for every other launch at least, in calls that take this part of all: "2,951 syncs for 3,402 launches take 264 ms".
    fn habits(&self) -> Vec<String> {
        let of = |is_one: fn(&str) -> bool| {
            let those = self.by.iter().filter(|it| is_one(it.0)).map(|it| it.1);
            those.fold((0, 0), |sum, it| (sum.0 + it.count, sum.1 + it.own))
        };
        let is_launch =
            |it: &str| matches!(CallKind::of(it), CallKind::Launch | CallKind::GraphLaunch);
        let launches = of(is_launch).0;
        let told = |what: &str, is_one, advice: &str| {
            let (number, time) = of(is_one);
            let is_much = cases::LARGE_SHARE.is_reached_by(share(time, self.time()));
            let is_habit = cases::LOOP_MIN.is_reached_by(launches.min(number) as usize);
            (is_much && is_habit && 2 * number >= launches).then(|| {
                let (number, launches) = (count(number), count(launches));
                let time = duration(time);
                format!("{number} {what} for {launches} launches take {time}: {advice}")
            })
        };
        let syncs = told("syncs", |it| CallKind::of(it).is_wait(), WAIT_LESS);
        let memory = told("allocations and frees", first_use::is_allocation, TAKE_ONCE);
        syncs.into_iter().chain(memory).collect()
    }

    /// Whether it has operators of PyTorch.
    fn has_ops(&self) -> bool {
        self.by.keys().any(|it| is_op(it))
    }

    fn time(&self) -> Ns {
        self.by.values().map(|it| it.own).sum()
    }

    /// How long something within it takes that has a name of its own.
    fn parts(&self) -> Ns {
        let parts = self.by.values().filter(|it| !self.is_around(it));
        parts.map(|it| it.own).sum()
    }

    /// Whether it is one range around all: that names the run, and nobody in it.
    fn is_around(&self, it: &Named) -> bool {
        it.count == 1 && share(it.time, self.span.len()) >= AROUND
    }

    /// "62 % of the CPU's 3.22 s is in `cudaMalloc`". PyTorch's operators are told with those that they are made of.
    fn most(&self) -> Option<String> {
        let has_ops = self.has_ops();
        let parts = self.by.iter().filter(|it| !self.is_around(it.1));
        let times = parts.filter_map(|it| match has_ops {
            true => is_op(it.0).then_some((it.1.time, it)),
            false => Some((it.1.own, it)),
        });
        let (time, most) = times.max_by_key(|it| (it.0, it.1.0))?;
        // Of the first one its own time is told, and not that of those behind it.
        let is_first = most.1.is_first && 2 * most.1.longest > time;
        let told = if is_first { most.1.longest } else { time };
        // Ops beside each other take longer together than from the first to the last.
        let all = self.span.len().max(self.time());
        let part = share(told, all);
        (part >= BOUND_MIN).then(|| {
            let of = match all > self.span.len() {
                true => format!("{}, all threads' together,", duration(all)),
                false => format!("the CPU's {}", duration(all)),
            };
            let (part, name) = (percent(part), quoted(&most.1.name));
            match is_first {
                true => format!("{part} of {of} is in the first {name}, likely making the context"),
                false => format!("{part} of {of} is in {name}"),
            }
        })
    }

    /// "62 % of the CPU's 608 ms is in the driver's compiler of PTX". Samples saw the thread there for longer than any call took.
    fn compiling(&self, trace: &Trace) -> Option<String> {
        let key = trace.lanes()[self.lane].key();
        let LaneKind::Thread { thread } = key.kind else {
            return None;
        };
        let sampled = &trace.processes()[key.process].sampled;
        let is_its = |stack| {
            let mut frames = trace.stacks().frames(stack);
            frames.any(|it| it.file.contains("ptxjitcompiler"))
        };
        // Two in a row stand for the time between them: clocks that change move them apart.
        let (mut before, mut was, mut time) = (self.span.start, false, 0);
        for sample in sampled.within(thread, self.span) {
            let since = sample.time - std::mem::replace(&mut before, sample.time);
            let is = is_its(sample.stack);
            let both = std::mem::replace(&mut was, is) && is;
            time += if both { since.min(SINCE_MAX) } else { 0 };
        }
        let longest = self.by.values().map(|it| it.longest).max();
        let part = share(time, self.span.len());
        (Some(time) > longest && part >= BOUND_MIN).then(|| {
            let (part, all) = (percent(part), duration(self.span.len()));
            format!("{part} of the CPU's {all} is in {COMPILER}")
        })
    }

    /// "the thread waits in `select` for 100 % of 15.0 s".
    fn asleep(&self) -> Option<String> {
        let (name, it) = self.by.iter().max_by_key(|it| (it.1.time, it.0))?;
        let part = share(it.time, self.span.len());
        let waits = asleep::is_sleep(name) || first_use::is_system_wait(name);
        (waits && part >= ASLEEP).then(|| {
            let (part, all) = (percent(part), duration(self.span.len()));
            format!("the thread waits in {} for {part} of {all}", quoted(name))
        })
    }

    /// "ranges: `decoder` 111 s (132 of 842 ms), `attention` 67.9 s (132 of 514 ms)".
    fn list(&self, what: &str) -> Option<String> {
        // Of operators that call one another the one that works counts.
        let counts = |it: &Named| {
            if what.ends_with("operators") {
                it.own
            } else {
                it.time
            }
        };
        let mut by: Vec<_> = self.by.iter().collect();
        by.retain(|it| share(counts(it.1), self.span.len()) >= NAME_SHARE && !self.is_around(it.1));
        by.sort_by_key(|it| (Reverse((counts(it.1), it.1.time)), it.0));
        let told = by.iter().take(NAMES_MAX).map(|(_, it)| {
            let each = match it.count {
                1 => String::new(),
                many if 2 * it.longest > it.time => {
                    format!(" ({}, one of {})", count(many), duration(it.longest))
                }
                many => format!(" ({} of {})", count(many), duration(it.time / many as Ns)),
            };
            format!("{} {}{each}", quoted(&it.name), duration(it.time))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("{what}: {}", told.join(", ")))
    }
}

fn is_op(name: &str) -> bool {
    name.starts_with("aten::")
}

fn quoted(name: &str) -> String {
    format!("`{}`", printable(&cut_middle(name, NAME_MAX)))
}

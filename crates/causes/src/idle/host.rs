//! What a host thread did: ranges it was in, and time that the driver or the profiler took.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::LAUNCH_GAP_MAX;
use crate::first_use::is_system_wait;
use crate::nested::{LEVELS, NONE, Nested};
use activity::{NameId, Ns, Overhead, RangeKind, Span, What};
use trace::{LaneId, LaneKind, Trace};

/// Who took the time of an overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taker {
    /// The driver, loading or compiling code.
    Load,
    /// The driver, waiting for room in a queue.
    Queue,
    /// The profiler; also whatever says no better.
    Profiler,
}

/// Who took the time, by the words of the record. Only what is named so counts as loading, and the libraries of CUDA that
/// the program opens. What Nsight Systems calls "Unknown", and Kineto "Unrecognized", lies in first launches and calls
/// that load, which say more.
pub(super) fn taker(name: &str) -> Option<Taker> {
    let is_context = name.starts_with(Overhead::CONTEXT);
    let name = name.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["command buffer full"]) {
        Some(Taker::Queue)
    } else if has(&["dlopen(libcupti"]) {
        Some(Taker::Profiler)
    } else if is_context || has(&["dlopen(libcuda.so"]) {
        // The driver itself, before any call of CUDA.
        None
    } else if has(&["load", "compil", "jit", "dlopen(libcu", "dlopen(libnv"]) {
        Some(Taker::Load)
    } else {
        (name != "unknown" && name != "unrecognized").then_some(Taker::Profiler)
    }
}

/// A stretch that an overhead took; stretches of one thread do not overlap.
#[derive(Clone, Copy, Debug)]
pub(super) struct OverheadSpan {
    pub span: Span,
    pub taker: Taker,
    pub at: (LaneId, usize),
}

/// Nested ranges of one thread.
#[derive(Clone, Debug)]
struct Ranges {
    lane: LaneId,
    nested: Nested,
    /// By row, the outermost range around it that says something; itself where it is that.
    tops: Vec<u32>,
    /// Names of outermost ranges that take nearly all of the time.
    covering: FxHashSet<NameId>,
    /// The lanes of all streams.
    streams: Arc<[LaneId]>,
}

/// A range that covers three quarters of a stretch names it.
const MOST: (Ns, Ns) = (3, 4);

/// What the threads of TensorFlow that bring a batch are called, and the rows of its timelines that have the ops of a device.
/// The threads of ONNX Runtime have its nodes.
fn is_input(name: &str) -> bool {
    let words = ["tf_data_", "TensorFlow ", "ONNX Runtime"];
    words.iter().any(|it| name.starts_with(it))
}

/// This part of a call is nearly all of it.
const NEARLY_ALL: f64 = 0.95;

/// A range that lasts so many times as long as a stretch says little of it.
const LONG: Ns = 8;

/// Ranges of one name that take this part of all that ran say little of what they are in.
const COVERS: f64 = 0.9;

/// In such a range this part of a stretch tells what it is in, if it is not short.
const PART: Ns = 4;

/// What is known of the host's threads, by process and thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    ranges: FxHashMap<(usize, u32), Vec<Ranges>>,
    /// By process: the threads of TensorFlow that bring the next batch to whoever launches.
    inputs: FxHashMap<usize, Vec<u32>>,
    /// When operators asked those for a batch, in order; `None` where no record says so.
    asked: Option<Vec<Span>>,
    taken: FxHashMap<(usize, u32), Vec<OverheadSpan>>,
    /// By process: what the profiler took of all of its threads.
    profiler: FxHashMap<usize, Vec<OverheadSpan>>,
}

impl Host {
    pub(super) fn of(trace: &Trace) -> Host {
        let mut host = Host {
            asked: asked(trace),
            ..Host::default()
        };
        // Found once: a program may have thousands of threads, each with a lane of its own.
        let streams: Arc<[LaneId]> = trace.streams().map(|it| it.0).collect();
        let mut overheads: FxHashMap<(usize, u32), Vec<OverheadSpan>> = FxHashMap::default();
        let mut takers: FxHashMap<u32, Option<Taker>> = FxHashMap::default();
        for (id, lane) in trace.lanes().iter().enumerate() {
            let process = lane.key().process;
            match lane.key().kind {
                LaneKind::Range {
                    kind: RangeKind::Nvtx | RangeKind::Phase | RangeKind::Function,
                    thread,
                } => {
                    let ranges = Ranges::of(trace, id, &streams);
                    let name = trace.processes().get(process);
                    let name = name.and_then(|it| it.threads.get(&thread));
                    if name.is_some_and(|it| is_input(it)) {
                        host.inputs.entry(process).or_default().push(thread);
                    }
                    host.ranges
                        .entry((process, thread))
                        .or_default()
                        .push(ranges);
                }
                LaneKind::Overhead => {
                    for row in lane.kept() {
                        let activity = trace.activity(id, row);
                        let What::Overhead(what) = activity.what else {
                            continue;
                        };
                        let taker = *takers
                            .entry(what.name)
                            .or_insert_with(|| taker(trace.names().full(what.name)));
                        let Some(taker) = taker else {
                            continue;
                        };
                        let taken = OverheadSpan {
                            span: activity.span,
                            taker,
                            at: (id, row),
                        };
                        let of = overheads.entry((process, what.thread)).or_default();
                        of.push(taken);
                        if taker == Taker::Profiler {
                            host.profiler.entry(process).or_default().push(taken);
                        }
                    }
                }
                _ => {}
            }
        }
        for (thread, list) in overheads {
            host.taken.insert(thread, apart(list));
        }
        for list in host.profiler.values_mut() {
            *list = apart(std::mem::take(list));
        }
        for lists in host.ranges.values_mut() {
            lists.sort_by_key(|r| trace.lanes()[r.lane].key());
        }
        host
    }

    /// The overheads of a thread, and those charged to none, that touch `span`.
    pub(super) fn taken(
        &self,
        process: usize,
        thread: u32,
        span: Span,
    ) -> impl Iterator<Item = OverheadSpan> + '_ {
        let of = move |thread: u32| {
            let list = self
                .taken
                .get(&(process, thread))
                .map_or(&[][..], Vec::as_slice);
            let from = list.partition_point(|t| t.span.end <= span.start);
            let to = list.partition_point(|t| t.span.start < span.end);
            list[from..to.max(from)].iter().copied()
        };
        let own = (thread != 0).then(|| of(thread)).into_iter().flatten();
        own.chain(of(0))
    }

    /// The profiler's work, on whatever thread, that nearly all of a call lies in: it held the call up.
    pub(super) fn held_by_profiler(&self, process: usize, call: Span) -> Option<(LaneId, usize)> {
        let list = self.profiler.get(&process)?;
        let from = list.partition_point(|t| t.span.end <= call.start);
        let near = list[from..].iter().take_while(|t| t.span.start < call.end);
        let taken: Ns = near.map(|t| t.span.intersect(call).len()).sum();
        (taken as f64 >= NEARLY_ALL * call.len() as f64).then(|| list[from].at)
    }

    /// A stretch of no thread that is known, by those that bring TensorFlow's work to it.
    pub(super) fn brought(
        &self,
        trace: &Trace,
        process: usize,
        span: Span,
    ) -> Vec<(Span, Option<(LaneId, usize)>)> {
        match self.inputs.contains_key(&process) {
            true => self.ranges(trace, process, u32::MAX, span),
            false => Vec::new(),
        }
    }

    /// Whether an operator waits for a batch for half of a stretch, or nobody knows.
    fn asks_within(&self, span: Span) -> bool {
        self.asked.as_ref().is_none_or(|all| {
            let from = all.partition_point(|it| it.end <= span.start);
            let its = all[from..].iter().take_while(|it| it.start < span.end);
            2 * its.map(|it| it.intersect(span).len()).sum::<Ns>() >= span.len()
        })
    }

    /// A stretch of a thread cut where outermost ranges begin and end, last part first. Each part has the innermost
    /// range that covers most of it, if the thread was in one.
    pub(super) fn ranges(
        &self,
        trace: &Trace,
        process: usize,
        thread: u32,
        span: Span,
    ) -> Vec<(Span, Option<(LaneId, usize)>)> {
        let mut parts = vec![(span, None)];
        let own = self.ranges.get(&(process, thread)).into_iter().flatten();
        // Where it is in nothing, it waits for those.
        let inputs = self.inputs.get(&process).into_iter().flatten();
        let is_asked = self.asks_within(span);
        let inputs = inputs.filter(|_| is_asked);
        let inputs = inputs.filter_map(|it| self.ranges.get(&(process, *it)));
        for ranges in own.chain(inputs.flatten()) {
            // Later lists (Python functions) name what the ones before (phases, NVTX ranges, CPU ops) do not.
            parts = parts
                .into_iter()
                .flat_map(|(span, row)| match row {
                    Some(row) => vec![(span, Some(ranges.closer(trace, span, row)))],
                    None => ranges.parts(trace, span),
                })
                .collect();
        }
        parts
    }
}

/// See [`Host::asked`].
fn asked(trace: &Trace) -> Option<Vec<Span>> {
    let asks = |name: NameId| trace.names().full(name).starts_with("IteratorGetNext");
    (0..trace.names().len() as NameId).any(asks).then_some(())?;
    let lanes = trace.lanes().iter().enumerate();
    let lanes = lanes.filter(|it| matches!(it.1.key().kind, LaneKind::Range { .. }));
    let rows = lanes.flat_map(|(id, lane)| trace.activities(id, lane.kept()));
    let its = rows.filter(|it| matches!(it.1.what, What::Range(of) if asks(of.name)));
    Some(Span::merged(its.map(|it| it.1.span).collect()))
}

/// Cuts overlapping overheads so that each moment has one: that which began first.
fn apart(mut list: Vec<OverheadSpan>) -> Vec<OverheadSpan> {
    list.sort_by_key(|t| (t.span.start, std::cmp::Reverse(t.span.end), t.at));
    let mut out: Vec<OverheadSpan> = Vec::with_capacity(list.len());
    let mut end = Ns::MIN;
    for mut taken in list {
        taken.span.start = taken.span.start.max(end);
        if taken.span.start < taken.span.end {
            end = taken.span.end;
            out.push(taken);
        }
    }
    out
}

/// Ranges that a profiler puts around everything, and functions through which PyTorch calls another: they name nothing.
fn says_nothing(name: &str) -> bool {
    // What torch.compile calls its code is a hash.
    let begins = [
        "ProfilerStep",
        "PyTorch Profiler",
        "[param|",
        "## Call CompiledFxGraph",
    ];
    let ends = ["handle_torch_function", "_call_impl", "_wrapped_call_impl"];
    begins.iter().any(|it| name.starts_with(it)) || ends.iter().any(|it| name.ends_with(it))
}

fn is_named(trace: &Trace, streams: &[LaneId], lane: LaneId, row: usize) -> bool {
    match trace.what(lane, row) {
        What::Range(range) => {
            let is_all = || cases::AROUND_ALL.holds(is_around_all(trace, streams, lane, row));
            !says_nothing(trace.names().full(range.name)) && !is_all()
        }
        _ => false,
    }
}

/// Whether a range holds nearly all that ran, in a timeline of many operations: it names the run, and nobody in it.
fn is_around_all(trace: &Trace, streams: &[LaneId], lane: LaneId, row: usize) -> bool {
    let Some(all) = trace.operations_extent() else {
        return false;
    };
    let span = trace.lanes()[lane].span(row);
    let is_long = span.intersect(all).len() as f64 >= NEARLY_ALL * all.len() as f64;
    let of_each = || {
        let lanes = streams.iter().map(|it| &trace.lanes()[*it]);
        lanes.map(|lane| (lane.starting(span).len(), lane.kept().len()))
    };
    is_long && {
        let (within, of) = of_each().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        within as f64 >= NEARLY_ALL * of as f64
    }
}

impl Ranges {
    fn of(trace: &Trace, id: LaneId, streams: &Arc<[LaneId]>) -> Ranges {
        let rows = trace.lanes()[id].kept();
        let first = rows.start;
        let all = trace.operations_extent().unwrap_or_default();
        let mut taken: FxHashMap<NameId, Ns> = FxHashMap::default();
        let mut tops: Vec<u32> = Vec::with_capacity(rows.len());
        let nested = Nested::of(trace, id, |row, around| {
            let top = around
                .last()
                .map_or(NONE, |top| tops[top.1 as usize - first]);
            tops.push(match top {
                NONE if is_named(trace, streams, id, row) => {
                    if let Some(name) = trace.what(id, row).name() {
                        let within = trace.lanes()[id].span(row).intersect(all);
                        *taken.entry(name).or_default() += within.len().max(0);
                    }
                    row as u32
                }
                top => top,
            });
        });
        taken.retain(|_, it| *it as f64 >= COVERS * all.len().max(1) as f64);
        Ranges {
            lane: id,
            nested,
            tops,
            covering: taken.into_keys().collect(),
            streams: streams.clone(),
        }
    }

    /// Of a range that lasts much longer than what it is to name, a shorter one of these that covers the same.
    fn closer(&self, trace: &Trace, span: Span, row: (LaneId, usize)) -> (LaneId, usize) {
        let long = trace.lanes()[row.0].span(row.1).len();
        if long < LONG * span.len() {
            return row;
        }
        match self.parts(trace, span).as_slice() {
            [(_, Some(own))] if 2 * trace.lanes()[own.0].span(own.1).len() < long => *own,
            _ => row,
        }
    }

    /// The program's own range that a call of the system takes nearly all of, where that waits for others: it says for what.
    fn waited_in(&self, trace: &Trace, row: u32) -> Option<usize> {
        let lane = &trace.lanes()[self.lane];
        let name = trace.what(self.lane, row as usize).name()?;
        let own = self.nested.parent(row);
        if own == NONE || !is_system_wait(trace.names().full(name)) {
            return None;
        }
        let (wait, around) = (lane.span(row as usize), lane.span(own as usize));
        let is_most = wait.len() * MOST.1 >= around.len() * MOST.0;
        let is_own = is_most && is_named(trace, &self.streams, self.lane, own as usize);
        is_own.then_some(own as usize)
    }

    /// See [`Host::ranges`].
    fn parts(&self, trace: &Trace, span: Span) -> Vec<(Span, Option<(LaneId, usize)>)> {
        // Parts, and the outermost range of each.
        let mut parts: Vec<(Span, u32)> = Vec::new();
        let mut time = span.start;
        for (segment, row) in self.nested.within(span) {
            let top = match row {
                NONE => NONE,
                row => self.tops[self.nested.place(row)],
            };
            if segment.start > time {
                // Only before the first range of all.
                parts.push((Span::new(time, segment.start), NONE));
            }
            match parts.last_mut() {
                Some(part) if part.1 == top => part.0.end = segment.end,
                _ => parts.push((segment, top)),
            }
            time = segment.end;
        }
        if time < span.end {
            parts.push((Span::new(time, span.end), NONE));
        }
        let named = |(span, top): (Span, u32)| {
            let most = (top != NONE).then(|| self.most(trace, span, top));
            let most = most.flatten();
            let around = most.filter(|it| self.covers_all(trace, *it, top));
            let inner = around.map(|it| self.inner(trace, span, it));
            let parts = inner.unwrap_or_else(|| vec![(span, most)]);
            let at =
                move |(span, row): (Span, Option<usize>)| (span, row.map(|it| (self.lane, it)));
            parts.into_iter().rev().map(at)
        };
        parts.into_iter().rev().flat_map(named).collect()
    }

    /// Whether a range says no more than that the program runs. It is nearly all of an outermost one, and those of that name take
    /// nearly all of the time.
    fn covers_all(&self, trace: &Trace, row: usize, top: u32) -> bool {
        let lane = &trace.lanes()[self.lane];
        let name = trace.what(self.lane, top as usize).name();
        let is_most = || {
            let (own, of) = (lane.span(row).len(), lane.span(top as usize).len());
            own as f64 >= COVERS * of as f64
        };
        name.is_some_and(|it| self.covering.contains(&it)) && is_most()
    }

    /// A long part that lies in a range which says little, cut where what takes much of it begins and ends, in order of time.
    fn inner(&self, trace: &Trace, part: Span, around: usize) -> Vec<(Span, Option<usize>)> {
        let lane = &trace.lanes()[self.lane];
        let tells = |row: u32| {
            let within = lane.span(row as usize).intersect(part).len();
            within > LAUNCH_GAP_MAX && PART * within >= part.len()
        };
        let of = |row: u32| {
            let up = |it: &u32| Some(self.nested.parent(*it)).filter(|it| *it != NONE);
            let outer = std::iter::successors(Some(row).filter(|it| *it != NONE), up);
            let outer = outer.take(LEVELS).take_while(|it| *it as usize != around);
            let telling = outer.filter(|it| tells(*it));
            let is_named = |it: &u32| is_named(trace, &self.streams, self.lane, *it as usize);
            telling.filter(is_named).last()
        };
        let mut parts: Vec<(Span, Option<usize>)> = Vec::new();
        if part.len() > LAUNCH_GAP_MAX {
            for (segment, row) in self.nested.within(part) {
                let row = of(row).map_or(around, |it| it as usize);
                match parts.last_mut() {
                    Some(last) if last.1 == Some(row) => last.0.end = segment.end,
                    _ => parts.push((segment, Some(row))),
                }
            }
        }
        for (span, row) in &mut parts {
            *row = row.and_then(|it| self.most(trace, *span, it as u32));
        }
        if parts.is_empty() {
            parts.push((part, Some(around)));
        }
        parts
    }

    /// The innermost range inside `top` that covers most of a part. It covers the middle of it, so only ranges around
    /// that count. Where too many lie inside each other, the outermost stands for the rest.
    fn most(&self, trace: &Trace, part: Span, top: u32) -> Option<usize> {
        let lane = &trace.lanes()[self.lane];
        let covers = |row: u32| {
            let covered = lane.span(row as usize).intersect(part).len();
            covered * MOST.1 >= part.len() * MOST.0
        };
        let middle = part.start + part.len() / 2;
        let mut row = self.nested.at(middle)?;
        for _ in 0..LEVELS {
            if row == NONE || row == top {
                break;
            }
            if covers(row) && is_named(trace, &self.streams, self.lane, row as usize) {
                return Some(self.waited_in(trace, row).unwrap_or(row as usize));
            }
            row = self.nested.parent(row);
        }
        covers(top).then_some(top as usize)
    }
}

//! What a host thread did: ranges it was in, and time that the driver or the profiler took.

use rustc_hash::FxHashMap;

use crate::activity::{Ns, RangeKind, Span, What};
use crate::trace::{LaneId, LaneKind, Trace};

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

/// Who took the time, by the words of the record. Only what is named so counts as loading.
#[must_use]
pub(super) fn taker(name: &str) -> Taker {
    let name = name.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["command buffer full"]) {
        Taker::Queue
    } else if has(&["load", "compil", "jit"]) {
        Taker::Load
    } else {
        Taker::Profiler
    }
}

/// A stretch that an overhead took; stretches of one thread do not overlap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub span: Span,
    pub taker: Taker,
    pub at: (LaneId, usize),
}

/// Nested ranges of one thread: from each moment on, which is the innermost.
#[derive(Clone, Debug, Default)]
struct Ranges {
    lane: LaneId,
    times: Vec<Ns>,
    rows: Vec<u32>,
    /// By row, the range around it.
    parents: Vec<u32>,
}

const NO_ROW: u32 = u32::MAX;

/// What is known of the host's threads, by process and thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    ranges: FxHashMap<(usize, u32), Vec<Ranges>>,
    taken: FxHashMap<(usize, u32), Vec<Taken>>,
}

impl Host {
    pub(super) fn of(trace: &Trace) -> Host {
        let mut host = Host::default();
        let mut overheads: FxHashMap<(usize, u32), Vec<Taken>> = FxHashMap::default();
        let mut takers: FxHashMap<u32, Taker> = FxHashMap::default();
        for (id, lane) in trace.lanes().iter().enumerate() {
            let process = lane.key().process;
            match lane.key().kind {
                LaneKind::Range {
                    kind: RangeKind::Nvtx | RangeKind::Phase,
                    thread,
                } => {
                    let ranges = Ranges::of(trace, id);
                    host.ranges
                        .entry((process, thread))
                        .or_default()
                        .push(ranges);
                }
                LaneKind::Overhead => {
                    for row in 0..lane.len() {
                        let activity = trace.activity(id, row);
                        let What::Overhead(what) = activity.what else {
                            continue;
                        };
                        let taker = *takers
                            .entry(what.name)
                            .or_insert_with(|| taker(trace.names().full(what.name)));
                        overheads
                            .entry((process, what.thread))
                            .or_default()
                            .push(Taken {
                                span: activity.span,
                                taker,
                                at: (id, row),
                            });
                    }
                }
                _ => {}
            }
        }
        for (thread, list) in overheads {
            host.taken.insert(thread, apart(list));
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
    ) -> impl Iterator<Item = Taken> + '_ {
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

    /// The innermost range that a thread was in for half of `span` or more.
    pub(super) fn range(
        &self,
        trace: &Trace,
        process: usize,
        thread: u32,
        span: Span,
    ) -> Option<(LaneId, usize)> {
        let lists = self.ranges.get(&(process, thread))?;
        lists
            .iter()
            .find_map(|ranges| Some((ranges.lane, ranges.under(trace, span)?)))
    }
}

/// Cuts overlapping overheads so that each moment has one: that which began first.
fn apart(mut list: Vec<Taken>) -> Vec<Taken> {
    list.sort_by_key(|t| (t.span.start, std::cmp::Reverse(t.span.end), t.at));
    let mut out: Vec<Taken> = Vec::with_capacity(list.len());
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

/// Ranges that a profiler puts around everything: they name nothing.
fn says_nothing(name: &str) -> bool {
    name.starts_with("ProfilerStep") || name.starts_with("PyTorch Profiler")
}

impl Ranges {
    fn of(trace: &Trace, id: LaneId) -> Ranges {
        let lane = &trace.lanes()[id];
        let mut ranges = Ranges {
            lane: id,
            ..Ranges::default()
        };
        let mut stack: Vec<(Ns, u32)> = Vec::new();
        for row in 0..lane.len() {
            let span = lane.span(row);
            ranges.leave(&mut stack, span.start);
            ranges.parents.push(stack.last().map_or(NO_ROW, |s| s.1));
            if !span.is_empty() {
                ranges.push(span.start, row as u32);
                stack.push((span.end, row as u32));
            }
        }
        ranges.leave(&mut stack, Ns::MAX);
        ranges
    }

    fn leave(&mut self, stack: &mut Vec<(Ns, u32)>, until: Ns) {
        while let Some(&(end, _)) = stack.last().filter(|top| top.0 <= until) {
            stack.pop();
            self.push(end, stack.last().map_or(NO_ROW, |s| s.1));
        }
    }

    fn push(&mut self, time: Ns, row: u32) {
        // Ranges that overlap without nesting must not turn time back.
        let time = self.times.last().map_or(time, |&last| last.max(time));
        self.times.push(time);
        self.rows.push(row);
    }

    fn under(&self, trace: &Trace, span: Span) -> Option<usize> {
        let first = self.times.partition_point(|&t| t <= span.start);
        let mut sums: FxHashMap<u32, Ns> = FxHashMap::default();
        for at in first.saturating_sub(1)..self.times.len() {
            let from = self.times[at];
            if from >= span.end {
                break;
            }
            let to = self.times.get(at + 1).copied().unwrap_or(Ns::MAX);
            let part = Span {
                start: from,
                end: to,
            }
            .intersect(span)
            .len();
            let mut row = self.rows[at];
            while row != NO_ROW && part > 0 {
                *sums.entry(row).or_default() += part;
                row = self.parents[row as usize];
            }
        }
        let lane = &trace.lanes()[self.lane];
        let name = |row: u32| match trace.activity(self.lane, row as usize).what {
            What::Range(range) => Some(range.name),
            _ => None,
        };
        let is_named = |row: u32| name(row).is_some_and(|n| !says_nothing(trace.names().full(n)));
        sums.retain(|&row, _| is_named(row));
        let most = sums
            .iter()
            .filter(|&(_, &sum)| sum * 2 >= span.len())
            .map(|(&row, _)| row as usize)
            .min_by_key(|&row| (lane.span(row).len(), std::cmp::Reverse(row)));
        if most.is_some() {
            return most;
        }
        // One after the other: the name of most of the time, where half of it has one.
        let mut names: FxHashMap<u32, (Ns, u32)> = FxHashMap::default();
        let mut all = 0;
        for (&row, &sum) in &sums {
            if !sums.contains_key(&self.parents[row as usize]) {
                let of = names.entry(name(row)?).or_insert((0, row));
                *of = (of.0 + sum, of.1.min(row));
                all += sum;
            }
        }
        let (_, row) = names
            .into_values()
            .max_by_key(|&(sum, row)| (sum, std::cmp::Reverse(row)))?;
        (all * 2 >= span.len()).then_some(row as usize)
    }
}

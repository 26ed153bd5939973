//! Records that the profiler lost: launches that left none, and threads whose records end.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::steps::without_numbers;
use activity::units::{count, share};
use activity::{NameId, Ns, RangeKind, Span, What};
use causes::graph::{CallId, CallKind, Graph, NONE};
use causes::{LeftOut, launched};
use trace::{Lane, LaneKind, SourceKind, Trace};

const GRAPHS: &str = "graph launches";
const KERNELS: &str = "launched kernels";
const CALLS: &str = "CUDA calls";
/// Functions of libraries that launch each time, as libraries mark them: TensorRT, cuDNN, cuBLAS.
const LAUNCHING: [&str; 3] = [
    "ExecutionContext::enqueue",
    "cudnnBackendExecute",
    "cublasLtMatmul",
];

/// Launches that left no operation, though they returned no error.
pub struct Lost {
    calls: Vec<CallId>,
    lost: usize,
    of: usize,
    /// What they are called.
    what: &'static str,
    /// The processes whose launches they are.
    processes: FxHashSet<usize>,
}

impl Lost {
    /// The launches, in order of time.
    pub fn calls(&self) -> &[CallId] {
        &self.calls
    }

    /// When the first of them begins.
    pub fn from(&self, graph: &Graph) -> Ns {
        let first = self.calls.first();
        first.map_or(Ns::MAX, |it| graph.calls.start[*it as usize])
    }

    /// Whether they are of graphs.
    pub fn are_graphs(&self) -> bool {
        self.what == GRAPHS
    }

    /// Those of graphs, else those of kernels, that began in a part, or all. `None` where they are few.
    pub fn of(trace: &Trace, graph: &Graph, part: Option<Span>) -> Option<Lost> {
        if let Some(it) = left_out(trace, graph).or_else(|| uncalled(trace, part)) {
            return Some(it);
        }
        // Where nothing has a record, all are missing.
        if !has_bare(graph) || trace.operations_extent().is_none() {
            return None;
        }
        // Nodes whose launch is unknown may be those of any.
        let is_nobodys = |op: u32| graph.ops.is_graph(op) && graph.ops.call[op as usize] == NONE;
        let is_known = |_: &Lost| !(0..graph.ops.len() as u32).any(is_nobodys);
        let mut all = launched(trace, graph);
        all.retain(|it| part.is_none_or(|of| of.contains(graph.calls.start[*it as usize])));
        let graphs = launches_of(graph, &all, CallKind::GraphLaunch);
        let graphs = Lost::among(trace, graph, (graphs, GRAPHS)).filter(is_known);
        graphs.or_else(|| {
            // Before the first launch that left a record and behind the last one, of whatever process, nothing was recorded.
            let all = launches_of(graph, &all, CallKind::Launch);
            let all = all[recorded(graph, &all)?].to_vec();
            let lost = Lost::among(trace, graph, (all, KERNELS));
            lost.filter(|it| cases::LOOP_MIN.is_reached_by(it.calls.len()))
        })
    }

    /// More than one of some launches, where they are a tenth of those of their process.
    fn among(
        trace: &Trace,
        graph: &Graph,
        (mut all, what): (Vec<CallId>, &'static str),
    ) -> Option<Lost> {
        let is_lost = |call: &CallId| graph.calls.first_op[*call as usize] == NONE;
        let mut by: FxHashMap<usize, [i64; 2]> = FxHashMap::default();
        for call in &all {
            let [of, lost] = by.entry(graph.process(trace, *call)).or_default();
            *of += 1;
            *lost += i64::from(is_lost(call));
        }
        by.retain(|_, [of, lost]| cases::LOST_SHARE.is_reached_by(share(*lost, *of)));
        let of = all.len();
        all.retain(|call| is_lost(call) && by.contains_key(&graph.process(trace, *call)));
        (all.len() > 1).then(|| Lost {
            lost: all.len(),
            calls: all,
            of,
            what,
            processes: by.into_keys().collect(),
        })
    }

    /// Whether launches behind all of them left records: of a program that goes on the last ones have none yet.
    pub fn are_over(&self, graph: &Graph) -> bool {
        let last = self.calls.last().map_or(0, |it| *it as usize + 1);
        graph.calls.first_op[last..].iter().any(|op| *op != NONE)
    }

    /// Whether a device has operations of a process that lost some.
    pub fn is_on(&self, trace: &Trace, device: usize) -> bool {
        let mut streams = trace.streams_of(device);
        streams.any(|it| self.processes.contains(&it.1.key().process))
    }

    /// Whether they are calls of any kind that were left out of the file.
    pub fn are_left_out(&self) -> bool {
        self.what == CALLS
    }

    /// "30 of 40 graph launches have no GPU records".
    pub fn text(&self) -> String {
        let (lost, of) = (count(self.lost as u64), count(self.of as u64));
        match LAUNCHING.contains(&self.what) {
            true => format!(
                "{lost} of {of} `{}` have no records of CUDA calls",
                self.what
            ),
            // CUPTI gives its ids to more than calls.
            false if self.are_left_out() => format!(
                "the file has {} of up to {of} CUDA calls, by their ids",
                count((self.of - self.lost) as u64)
            ),
            false => format!("{lost} of {of} {} have no GPU records", self.what),
        }
    }
}

/// The calls that next to all were left out of the file, of the processes of which they were.
fn left_out(trace: &Trace, graph: &Graph) -> Option<Lost> {
    let all = LeftOut::find(trace, graph);
    let sum = |part: fn(&LeftOut) -> u64| all.iter().map(part).sum::<u64>() as usize;
    (!all.is_empty()).then(|| Lost {
        calls: Vec::new(),
        lost: sum(|it| it.of - it.calls),
        of: sum(|it| it.of),
        what: CALLS,
        processes: all.iter().map(|it| it.process).collect(),
    })
}

/// Most calls of a library's function that launches, where no call of CUDA is on record.
fn uncalled(trace: &Trace, part: Option<Span>) -> Option<Lost> {
    let names = trace.names();
    let is_there = |it: &&'static str| {
        let mut all = (0..names.len() as u32).map(|id| names.full(id));
        all.any(|name| name.starts_with(it))
    };
    let is_nsys = trace.source.kind == SourceKind::Nsys;
    let known: Vec<_> = LAUNCHING.into_iter().filter(is_there).collect();
    if !is_nsys || known.is_empty() {
        return None;
    }
    let mut by = ranges(trace).into_iter();
    by.find_map(|((process, name), mut spans)| {
        // A function of TensorRT has its version behind the name.
        let name = name.trim_end_matches(['V', '#']);
        let what = known.iter().find(|it| **it == name)?;
        spans.retain(|it| part.is_none_or(|of| of.contains(it.start)));
        let calls = || trace.threads_in(process).map(|it| it.1);
        let is_bare = |it: &&Span| calls().all(|lane| lane.starting(**it).is_empty());
        let (lost, of) = (spans.iter().filter(is_bare).count(), spans.len());
        let is_lost = calls().next().is_some() && cases::LOOP_MIN.is_reached_by(lost);
        (is_lost && 2 * lost > of).then(|| Lost {
            calls: Vec::new(),
            lost,
            of,
            what,
            processes: [process].into_iter().collect(),
        })
    })
}

/// "recording ended before 923 of 1,556 launched kernels ran": of a file, in which they are all there is.
pub fn cut_off(trace: &Trace, graph: &Graph) -> Option<String> {
    let is_file = matches!(trace.source.kind, SourceKind::Kineto | SourceKind::Nsys);
    let is_file = is_file && has_bare(graph);
    let all = is_file.then(|| launches_of(graph, &launched(trace, graph), CallKind::Launch))?;
    let (recorded, of) = (recorded(graph, &all)?, all.len());
    let text = |words: &str, number: usize| {
        let is_much = cases::LOST_SHARE.is_reached_by(share(number as i64, of as i64));
        let (number_of, of) = (count(number as u64), count(of as u64));
        // Cut by stamps that are wrong, they are no end of it.
        let text = || match graph.clocks_apart() {
            Some(_) => format!("{number_of} of {of} launched kernels have no record"),
            None => format!("recording {words} {number_of} of {of} launched kernels ran"),
        };
        (is_much && cases::LOOP_MIN.is_reached_by(number)).then(text)
    };
    let ends = [
        text("began after", recorded.start),
        text("ended before", of - recorded.end),
    ];
    let ends: Vec<String> = ends.into_iter().flatten().collect();
    (!ends.is_empty()).then(|| ends.join(", "))
}

/// A thread whose records end while ranges go on that held some of them: what it does from then on is on no record.
pub struct Silent {
    /// Its number.
    pub thread: u32,
    /// What is recorded whole.
    pub before: Span,
    /// How long the rest is.
    pub rest: Ns,
    /// The ranges.
    pub name: String,
}

/// A thread with fewer calls may have ended, and so may one with less time behind its last one than this part.
const CALLS_MIN: usize = 64;
const REST_SHARE: f64 = 0.05;

impl Silent {
    /// The first of a timeline.
    pub fn of(trace: &Trace) -> Option<Silent> {
        let all = trace.extent()?;
        let is_over = |it: &Lane| {
            let end = it.extent().map_or(all.end, |it| it.end);
            it.len() >= CALLS_MIN && share(all.end - end, all.len()) >= REST_SHARE
        };
        let threads: Vec<_> = trace.threads().filter(|it| is_over(it.1)).collect();
        // What a graph was made of is launched with it, by whatever thread.
        let names = trace.names();
        let has_graphs =
            || (0..names.len() as u32).any(|it| names.full(it).contains("GraphLaunch"));
        if threads.is_empty() || has_graphs() {
            return None;
        }
        let by = ranges(trace);
        let silent = threads.into_iter().flat_map(|(_, lane, thread)| {
            let own = by.iter().filter(|it| it.0.0 == lane.key().process);
            own.filter_map(move |((_, name), spans)| {
                let end = lane.extent()?.end;
                cases::ENDS_WITHIN
                    .holds(ends_within(lane, spans))
                    .then(|| Silent {
                        thread,
                        before: Span::new(all.start, end),
                        rest: all.end - end,
                        name: name.clone(),
                    })
            })
        });
        silent.min_by_key(|it| it.before.end)
    }
}

/// By process and name, whatever its numbers, the ranges of NVTX.
fn ranges(trace: &Trace) -> BTreeMap<(usize, String), Vec<Span>> {
    let mut by: FxHashMap<(usize, NameId), Vec<Span>> = FxHashMap::default();
    for (id, lane) in trace.lanes().iter().enumerate() {
        let key = lane.key();
        if !matches!(key.kind, LaneKind::Range { kind, .. } if kind == RangeKind::Nvtx) {
            continue;
        }
        for (_, it) in trace.activities(id, lane.kept()) {
            match it.what {
                What::Range(of) if of.kind == RangeKind::Nvtx => {
                    by.entry((key.process, of.name)).or_default().push(it.span);
                }
                _ => {}
            }
        }
    }
    let mut all: BTreeMap<(usize, String), Vec<Span>> = BTreeMap::new();
    for ((process, name), spans) in by {
        let name = without_numbers(trace.names().full(name)).0;
        all.entry((process, name)).or_default().extend(spans);
    }
    all.values_mut()
        .for_each(|it| it.sort_unstable_by_key(|it| it.start));
    all
}

/// Whether calls of a thread lie in all ranges of a name up to one that has fewer than any before, and in none behind.
fn ends_within(lane: &Lane, ranges: &[Span]) -> bool {
    let counts: Vec<usize> = ranges.iter().map(|it| lane.starting(*it).len()).collect();
    let (Some(first), Some(last)) = (
        counts.iter().position(|it| *it > 0),
        counts.iter().rposition(|it| *it > 0),
    ) else {
        return false;
    };
    let least = counts[first..last].iter().min();
    let is_cut = least.is_some_and(|it| counts[last] < *it);
    let [held, behind] = [last - first, counts.len() - last - 1];
    is_cut && cases::LOOP_MIN.is_reached_by(held.min(behind))
}

/// Whether any launch left no operation: of most traces none did, and nothing else is asked.
pub fn has_bare(graph: &Graph) -> bool {
    let of = graph.calls.kind.iter().zip(&graph.calls.first_op);
    let is_launch = |kind| matches!(kind, CallKind::Launch | CallKind::GraphLaunch);
    of.into_iter()
        .any(|(kind, op)| *op == NONE && is_launch(*kind))
}

/// The launches from the first that left a record to the last one.
fn recorded(graph: &Graph, all: &[CallId]) -> Option<Range<usize>> {
    let has_record = |call: &CallId| graph.calls.first_op[*call as usize] != NONE;
    let last = all.iter().rposition(has_record)?;
    Some(all.iter().position(has_record)?..last + 1)
}

/// Some launches of one kind.
pub fn launches_of(graph: &Graph, all: &[CallId], kind: CallKind) -> Vec<CallId> {
    let is_of = |call: &CallId| graph.calls.kind[*call as usize] == kind;
    all.iter().copied().filter(is_of).collect()
}

//! The steps of a program: the iterations that it is made of, found by themselves.
//!
//! Steps come from ranges that mark them (`ranges`), or else from the operations themselves, which repeat
//! (`period`). Such ranges are the repeats of a scenario, `ProfilerStep#N`, another range with a counter, and
//! a range of one name again and again. Where neither shows steps there are none: nothing is guessed.
//!
//! A step reaches from its first operation on a GPU to the first one of the next step. So the steps of a
//! loop leave nothing out. What lies before the first steady step is the start-up, what lies behind the last
//! one the tail. Leading steps that are slower than the steady ones are warm-up and belong to the start-up.
//! Such steps exceed the median of the later half of all steps by over 10 % and by over four of its
//! deviations (see [`StepKind::deviation_ns`]). They are at most half of all.
//! Fewer than five steps tell too little for that. Of those only the first may be warm-up, where it takes one
//! and a half times the median of the others.
//!
//! Steady steps are of one kind or of several, and some of a kind may be odd (`kinds`). What is found is only told of where
//! it speaks for the program. What repeats may also be a part of a step, such as the layers of a network.
//!
//! The cost is that of sorting the operations looked at, so that a live caller asks about the last of
//! them only ([`recent`]).

mod batches;
mod driven;
mod kinds;
mod marks;
mod operations;
mod period;
mod ranges;
mod search;
mod slow;
mod tokens;

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use activity::{Ns, Span, What};
use causes::graph::Graph;
use trace::{Lane, LaneKind, Trace};

use activity::stats;
pub use batches::{Batch, Phase};
pub use kinds::StepKind;
use operations::ProcessOperations;
pub use ranges::without_numbers;
use search::{by_period, finish};
pub use slow::{Slow, main_device};
pub use tokens::{Op, list_ops};
use trace::parallel;

/// What showed the steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The repeats of a scenario's variant, by its name.
    Repeats(String),
    /// Ranges `ProfilerStep#N`, as PyTorch's profiler writes them.
    ProfilerStep,
    /// Ranges of this name, its numbers written as `#`.
    Ranges(String),
    /// A server of a language model copies tokens back after each.
    Tokens,
    /// The operations repeat.
    Period {
        /// Operations on the busiest stream that make up a step.
        operations: usize,
    },
    /// One operation is done again and again, and the CPU waits after as many as these each time.
    Waits {
        /// See `Period`.
        operations: usize,
    },
}

impl Origin {
    /// In a few words: "ProfilerStep ranges", "ranges `iter`", "period of 60 operations".
    pub fn text(&self) -> String {
        match self {
            Origin::Repeats(name) => format!("repeats of `{name}`"),
            Origin::ProfilerStep => "ProfilerStep ranges".to_owned(),
            Origin::Ranges(name) => format!("ranges `{name}`"),
            Origin::Tokens => "copies of tokens".to_owned(),
            Origin::Period { operations: 1 } => "one operation again and again".to_owned(),
            Origin::Period { operations } => format!("period of {operations} operations"),
            Origin::Waits { operations } => format!("{operations} operations between waits"),
        }
    }
}

/// The steps of one process. There is always at least one steady step.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// The process: index into [`Trace::processes`].
    pub process: usize,
    /// What showed them.
    pub from: Origin,
    /// All steps, in order. They touch, but where something else was done between two of them.
    pub spans: Vec<Span>,
    /// Which of `spans` are steady: not warm-up, and seen to their end.
    pub steady: Range<usize>,
    /// From the process's first operation to its first steady step.
    pub start_up: Span,
    /// From the last steady step to the end of the process's last operation.
    pub tail: Span,
    /// The kinds of steady steps, the main one first: the one that takes most time. There is always one.
    pub kinds: Vec<StepKind>,
    /// Of a server of a language model what each was for, in order; else none.
    pub batches: Vec<Batch>,
    /// Which part of the time of kernels lies in steps: of few in all, of many in those that are no warm-up.
    work_share: f64,
    /// Whether one marked range holds all that launched them, or an op of PyTorch is seen but once. They may be parts of one pass,
    /// such as the layers of a model.
    is_in_one: bool,
    /// Whether they copy from or to the CPU, as a loop does that is fed or that looks at results.
    has_copies: bool,
    /// Whether the CPU waits or works before each, or launches a graph.
    is_driven: bool,
    /// Whether most of the time of kernels lies before the first of them: that is no start.
    is_behind_work: bool,
}

/// How often a second cameras and displays have a frame.
const FRAMES: [Ns; 10] = [24, 25, 30, 48, 50, 60, 72, 90, 120, 144];

impl Steps {
    /// Whether so many slower steps lead that they are no warm-up: that they did anything else is on no record.
    pub fn begins_slowly(&self) -> bool {
        let leading = self.steady.start;
        cases::MANY_STEPS.is_reached_by(leading) && 2 * leading >= self.steady.len()
    }

    /// Whether each step before the steady ones launches a kernel in a size that no step before it has, and steady ones launch none such.
    pub fn bring_sizes(&self, trace: &Trace, graph: &Graph, device: usize) -> bool {
        let mut seen = FxHashSet::default();
        let mut new = vec![false; self.spans.len()];
        for &op in graph.ops.of_device(device) {
            let start = graph.ops.start[op as usize];
            let step = self.spans.partition_point(|it| it.end <= start);
            if let What::Kernel(it) = graph.what(trace, op)
                && seen.insert(it.shape)
                && let Some(is_new) = new.get_mut(step)
            {
                *is_new |= self.spans[step].contains(start);
            }
        }
        let [slower, steady] = [0..self.steady.start, self.steady.clone()];
        new[slower].iter().all(|it| *it) && !new[steady].contains(&true)
    }

    /// How many a second there are, where they are even and as many as frames: something beside the program most likely
    /// starts them.
    pub fn pace(&self) -> Option<Ns> {
        let kind = self.main();
        let is_even = cases::PACED_MIN.is_reached_by(kind.steps.len())
            && 10 * kind.deviation_ns <= kind.median_ns;
        let second = 1_000_000_000;
        let is_off =
            |rate: &Ns| (rate.saturating_mul(kind.median_ns) - second).abs() > second / 100;
        FRAMES.into_iter().find(|rate| is_even && !is_off(rate))
    }

    /// What showed them, and how few there are: "period of 491 operations, 4 repeats", "ProfilerStep ranges, 1 of 3 steps".
    pub fn origin_text(&self) -> String {
        let (from, all) = (self.from.text(), self.spans.len());
        match self.from {
            _ if self.steady.len() == 1 => format!("{from}, 1 of {all} steps"),
            Origin::Period { .. } | Origin::Waits { .. } if all < cases::FEW_STEPS.value() => {
                format!("{from}, {all} repeats")
            }
            _ => from,
        }
    }

    /// The steady steps.
    pub fn steady(&self) -> &[Span] {
        &self.spans[self.steady.clone()]
    }

    /// First steady step's start to the last one's end.
    pub fn steady_span(&self) -> Span {
        self.steady()
            .iter()
            .copied()
            .reduce(Span::hull)
            .unwrap_or_default()
    }

    /// The same with these of its steady steps alone.
    pub fn only(&self, steady: Range<usize>) -> Steps {
        Steps {
            steady,
            ..self.clone()
        }
    }

    /// The kind of steps that takes most time: what "each step" is said of.
    pub fn main(&self) -> &StepKind {
        &self.kinds[0]
    }

    /// The kind of a steady step.
    pub fn kind_of(&self, step: usize) -> Option<&StepKind> {
        let is_in = |kind: &&StepKind| kind.steps.binary_search(&step).is_ok();
        self.kinds.iter().find(is_in)
    }

    /// What a step was for, of a server.
    pub fn batch(&self, step: usize) -> Option<&Batch> {
        batches::find(&self.batches, self.spans[step].start)
    }

    /// Tokens that a server made in steady steps, where something says how many: the fewest and the most. Beside them those a second.
    pub fn tokens(&self) -> Option<((u64, u64), (f64, f64))> {
        let tokens = self
            .steady
            .clone()
            .filter_map(|step| self.batch(step)?.tokens);
        let all = tokens.reduce(|a, b| (a.0 + b.0, a.1 + b.1))?;
        let rate = |count: u64| count as f64 * 1e9 / self.steady_span().len().max(1) as f64;
        Some((all, (rate(all.0), rate(all.1))))
    }

    /// Steps in order as stretches: those that touch are one.
    pub fn stretches(&self, steps: impl Iterator<Item = usize>) -> Vec<Span> {
        let mut all: Vec<Span> = Vec::new();
        for step in steps {
            let span = self.spans[step];
            match all.last_mut() {
                Some(last) if last.end == span.start => last.end = span.end,
                _ => all.push(span),
            }
        }
        all
    }

    /// Whether the steady steps speak for the program: marked ones do. Those that only the operations show are a part of it where
    /// rows of the table say so.
    fn are_telling(&self) -> bool {
        let longer =
            |a: &Span, b: &Span| a.len() as f64 > cases::ODD_TIMES.value() * b.len() as f64;
        let is_little = match self.steady() {
            [one] => 2 * one.len() < self.spans.iter().map(|it| it.len()).sum(),
            [a, b] => longer(a, b) || longer(b, a),
            _ => false,
        };
        match self.from {
            Origin::Repeats(_) => true,
            _ if cases::FEW_STEADY.holds(is_little) => false,
            Origin::Period { operations } => {
                let is_undriven = operations == 1 && !self.is_driven;
                !cases::ONE_OPERATION.holds(is_undriven) && self.fill_the_time()
            }
            Origin::Waits { .. } => self.fill_the_time(),
            // Ranges of one name but for its numbers may be different parts of a program.
            Origin::Ranges(_) if self.batches.is_empty() => {
                let spread = self.deviation();
                let is_uneven = spread.is_some_and(|(median, deviation)| deviation > median);
                !cases::UNEVEN_RANGES.holds(is_uneven)
            }
            _ => true,
        }
    }

    /// Whether they take half of the time behind the start-up, and are no parts of one pass. Few of them hold most of the work;
    /// behind a long start-up nearly all of it.
    fn fill_the_time(&self) -> bool {
        let (steady, tail) = (self.steady_span().len(), self.tail.len());
        let is_long_start = self.start_up.len() + tail > steady;
        let is_fed = cases::IS_FED.holds(self.has_copies && !is_long_start);
        let is_pass = cases::ONE_PASS.holds(self.is_in_one && !is_fed);
        let is_the_work = cases::WORK_SHARE.is_reached_by(self.work_share);
        let holds = match is_long_start {
            _ if cases::MANY_STEPS.is_reached_by(self.steady.len()) => {
                !cases::BEHIND_WORK.holds(self.is_behind_work)
            }
            true => is_the_work && cases::STEPS_TIME.is_reached_by(steady),
            false => cases::PART_SHARE.is_reached_by(self.work_share),
        };
        !is_pass && holds && (steady >= tail || is_the_work)
    }

    /// Median of all steady steps, and how far they lie from it.
    fn deviation(&self) -> Option<(f64, f64)> {
        let times = times(self.steady());
        Some((
            stats::median(&times)?,
            1.4826 * stats::median_deviation(&times)?,
        ))
    }
}

/// The steps of every process that has some, in the order of [`Trace::processes`]. With a window, only
/// operations and ranges that start in it are looked at.
pub fn find(trace: &Trace, window: Option<Span>) -> Vec<Steps> {
    trace::made("steps");
    let processes: Vec<usize> = (0..trace.processes().len()).collect();
    let records = trace.lanes().iter().map(Lane::len).sum();
    let of_each = parallel::map(records, &processes, |&process| {
        of_process(trace, process, window)
    });
    of_each.into_iter().flatten().collect()
}

/// Of the steps of several processes those whose steady ones take longest: what predictions are made of.
pub fn main(all: &[Steps]) -> Option<&Steps> {
    all.iter().max_by_key(|steps| steps.steady_span().len())
}

/// By device (index into [`Trace::devices`]) the steps of the first program which has some and operations on it.
pub fn by_device<'s>(trace: &Trace, steps: &'s [Steps]) -> FxHashMap<usize, &'s Steps> {
    let places = steps.iter().enumerate();
    let places: FxHashMap<usize, usize> = places.map(|(at, s)| (s.process, at)).collect();
    let mut first: FxHashMap<usize, usize> = FxHashMap::default();
    for lane in trace.lanes().iter().filter(|lane| !lane.is_empty()) {
        let key = lane.key();
        if let LaneKind::Stream { device, .. } = key.kind
            && let Some(&at) = places.get(&key.process)
        {
            let first = first.entry(device).or_insert(at);
            *first = at.min(*first);
        }
    }
    first
        .into_iter()
        .map(|(device, at)| (device, &steps[at]))
        .collect()
}

/// Where the step begins that all of a device's operations lie in, by the mark of a profiler. What the CPU does in it
/// before its first operation belongs to it, too. Where that was launched before the recording, others may have run ahead of it
/// that left no record.
pub fn begins(trace: &Trace, device: usize) -> Option<Ns> {
    let streams = || trace.streams_of(device);
    let lanes = || streams().filter(|it| !it.1.kept().is_empty());
    let (_, first) = lanes().min_by_key(|(_, it)| it.span(it.kept().start).start)?;
    let is_called = |it: &Lane, row| trace.call(it.key().process, it.correlation(row)).is_some();
    let is_behind = || {
        let is_one = !is_called(first, first.kept().start);
        is_one && lanes().any(|(_, it)| is_called(it, it.kept().end - 1))
    };
    ranges::begins(trace, first.key().process).filter(|_| !is_behind())
}

/// The steps of one process; `None` where none are shown, or what repeats does not speak for the program.
pub fn of_process(trace: &Trace, process: usize, window: Option<Span>) -> Option<Steps> {
    let steps = repeats(trace, process, window).filter(Steps::are_telling)?;
    Some(with_kinds(trace, steps))
}

fn with_kinds(trace: &Trace, mut steps: Steps) -> Steps {
    steps.kinds = kinds::find(trace, &steps);
    steps
}

/// What repeats in a process, whatever it is.
fn repeats(trace: &Trace, process: usize, window: Option<Span>) -> Option<Steps> {
    let marked = ranges::find(trace, process, window);
    let is_free = match &marked {
        ranges::Answer::Steps(found) => matches!(found.from, Origin::Ranges(_)),
        ranges::Answer::None => false,
        ranges::Answer::Unmarked => true,
    };
    let served = marks::find(trace, process, window).or_else(|| {
        let tokens = || tokens::find(trace, process, window);
        is_free.then(tokens).flatten()
    });
    let found = served.or_else(|| match marked {
        // What marks the period by a part of it does not say where a step begins: the operations may.
        ranges::Answer::Steps(found) if cases::PART_OF_STEP.holds(found.is_part) => {
            by_period(trace, process, window)
                .filter(|it| it.spans.len().abs_diff(found.spans.len()) <= 1)
                .or(Some(found))
        }
        ranges::Answer::Steps(found) => Some(found),
        ranges::Answer::None => None,
        ranges::Answer::Unmarked => by_period(trace, process, window).filter(|_| {
            !cases::PASS_OVER_LAYERS.holds(ranges::is_one_pass(trace, process, window))
        }),
    })?;
    finish(trace, process, window, found)
}

/// A window that holds about the last `operations` operations of a timeline, for [`find`] while it grows; `None`
/// when there are not more than that.
pub fn recent(trace: &Trace, operations: usize) -> Option<Span> {
    let extent = trace.operations_extent()?;
    let streams = || trace.streams().map(|(_, lane)| lane);
    let since = |time: Ns| -> usize {
        let window = Span::new(time, Ns::MAX);
        streams().map(|lane| lane.starting(window).len()).sum()
    };
    if since(extent.start) <= operations {
        return None;
    }
    let (mut low, mut high) = (extent.start, extent.end);
    while low < high {
        let middle = low.midpoint(high);
        if since(middle) <= operations {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(Span::new(low, Ns::MAX))
}

/// Fewer operations tell nothing of a warm program.
const WARM_MIN: usize = 16;

/// The part of a program behind its warm-up.
#[derive(Debug)]
pub struct BehindWarmUp {
    /// Index into [`Trace::processes`].
    pub process: usize,
    pub span: Span,
    /// Behind what: "the warm-up".
    pub which: String,
}

/// What a program does behind its warm-up, where marks show one and too few steps.
pub fn behind_warm_up(trace: &Trace) -> Option<BehindWarmUp> {
    let processes = 0..trace.processes().len();
    let mut own = processes.filter(|&it| trace.streams_in(it).next().is_some());
    let process = own.next().filter(|_| own.next().is_none())?;
    let (span, which) = ranges::behind_warm_up(trace, process)?;
    let all = operations::extent(trace, process, None)?;
    let part = span.len() as f64 / all.len().max(1) as f64;
    let is_much = operations::count(trace, process, Some(span)) >= WARM_MIN;
    let is_part = is_much && (0.05..0.9).contains(&part);
    is_part.then_some(BehindWarmUp {
        process,
        span,
        which,
    })
}

/// Steps as a search found them.
struct Found {
    from: Origin,
    spans: Vec<Span>,
    /// Whether the end of the last one was seen, too.
    is_closed: bool,
    /// Whether what marks them holds only a part of each.
    is_part: bool,
    /// Whether their operations are so many, and so equal, that nothing else has them.
    is_sure: bool,
    /// What each was for, where that is known.
    batches: Vec<Batch>,
}

/// Before a prompt the GPU rests for so many times the usual pause: then nobody asked for anything.
const ASLEEP_TIMES: Ns = 10;

impl Found {
    /// Of a server, whose last step is not seen to its end. A step ends where nobody asks for more.
    fn of_server(
        (trace, process): (&Trace, usize),
        from: Origin,
        mut spans: Vec<Span>,
        batches: Vec<Batch>,
    ) -> Found {
        let operations = ProcessOperations::new(trace, process, spans.len());
        let end = |span: &Span| Some(operations.extent(*span)?.end);
        let ends = spans.iter().map(|it| end(it).unwrap_or(it.end).min(it.end));
        let ends: Vec<Ns> = ends.collect();
        let pauses = spans.iter().zip(&ends).map(|(span, end)| span.end - end);
        let pauses: Vec<Ns> = pauses.collect();
        let usual = stats::median_time(&pauses).unwrap_or_default().max(1);
        for at in 1..spans.len() {
            let next = batches::find(&batches, spans[at].start);
            let is_prompt = next.is_some_and(|it| it.phase != Phase::Decode);
            if is_prompt && pauses[at - 1] > ASLEEP_TIMES * usual {
                spans[at - 1].end = ends[at - 1];
            }
        }
        Found {
            from,
            spans,
            is_closed: false,
            is_part: false,
            is_sure: false,
            batches,
        }
    }
}

fn times(spans: &[Span]) -> Vec<f64> {
    spans.iter().map(|span| span.len() as f64).collect()
}

#[cfg(test)]
mod tests;

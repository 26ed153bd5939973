//! Steps that ranges of the host mark.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::operations::{self, ByCall, Caused, ProcessOperations, is_ascending};
use super::{Found, Origin};
use activity::stats;
use activity::text::{NAME_MAX, cut_middle};
use activity::{NameId, Ns, Range, RangeKind, Span, What};
use trace::{LaneKind, SourceKind, Trace};

/// Of the groups of ranges that could be steps this many are tried, those of most time first.
const TRIED_MAX: usize = 8;

/// How the marks of PyTorch's profiler begin, and its ranges of modules.
const STEP: &str = "ProfilerStep";
const MODULE: &str = "nn.Module";

/// What the ranges say.
pub(super) enum Answer {
    Steps(Found),
    /// They say that there are too few steps, or steps of several things.
    None,
    /// They say nothing of steps.
    Unmarked,
}

/// Ranges of one name, numbers in it left out.
struct Group {
    thread: u32,
    /// The name with `#` for each number in it.
    name: String,
    /// Whether the numbers count up from one range to the next.
    is_counted: bool,
    /// The source's own number of the last range.
    index: u32,
    /// Whether the source's own numbers begin again.
    restarts: bool,
    spans: Vec<Span>,
}

impl Group {
    fn total(&self) -> Ns {
        self.spans.iter().map(|s| s.len()).sum()
    }

    fn is_profiler_step(&self) -> bool {
        self.name.starts_with("ProfilerStep#")
    }

    /// Whether it is called a step, or by another word for that, and nothing behind it ("batch_norm").
    fn is_iteration(&self) -> bool {
        let mut words = self.name.split(|it: char| !it.is_alphabetic());
        let last = words.rfind(|it| !it.is_empty()).unwrap_or_default();
        ITERATIONS
            .split(' ')
            .any(|it| it.eq_ignore_ascii_case(last))
    }

    /// So many are steps.
    fn fewest(&self) -> usize {
        let two = cases::TWO_MARKED.holds(self.is_profiler_step());
        match two || cases::TWO_ITERATIONS.holds(self.is_iteration()) {
            true => 2,
            false => cases::STEPS_MIN.value(),
        }
    }

    /// Whether so many may be steps, by their names and times.
    fn may_be_steps(&self, fewest: usize) -> bool {
        self.spans.len() >= fewest
            && !cases::LIBRARYS_RANGE.holds(!self.is_counted && is_librarys(&self.name))
            && !counts_layers(&self.name)
            && !cases::OVERLAPPING_RANGES.holds(!are_apart(&self.spans))
    }

    /// Whether it is named like a warm-up.
    fn warms(&self) -> bool {
        let name = self.name.to_lowercase().replace(['-', '_', ' '], "");
        name.contains("warmup")
    }
}

/// Whether a library's code is in a range of this name: an op of PyTorch, or a call that a library of NVIDIA's marks.
fn is_librarys(name: &str) -> bool {
    let is_call = |of: &str| {
        let rest = name.strip_prefix(of);
        rest.is_some_and(|it| it.starts_with(|it: char| it.is_ascii_uppercase()))
    };
    name.contains("::") || LIBRARIES.split(' ').any(is_call)
}

/// How calls of libraries begin that mark them, before a word with a capital.
const LIBRARIES: &str = "cudnn cublas cublasLt cublasXt cusparse cusolver cusolverDn cufft curand cutensor nccl nvshmem";

pub(super) fn find(trace: &Trace, process: usize, window: Option<Span>) -> Answer {
    let repeats = groups(trace, process, window, (RangeKind::Repeat, ""));
    if !repeats.is_empty() {
        return match repeats.as_slice() {
            // One that begins again is a variant at several points of a sweep.
            [one] if !cases::SWEEP.holds(one.restarts) => of_repeats(trace, process, window, one),
            _ => Answer::None,
        };
    }
    let mut groups = groups(trace, process, window, (RangeKind::Nvtx, ""));
    // A profiler that marks its steps has said how many there are. Where these are too few, other ranges may be
    // steps, but not what repeats within one of them.
    let marked = groups.iter().position(Group::is_profiler_step);
    let mut otherwise = Answer::Unmarked;
    if let Some(marked) = marked {
        let group = groups.swap_remove(marked);
        let calls = ByCall::new(trace, process, window);
        if let Some(found) = of_group(trace, process, window, (&calls, 0), group) {
            return Answer::Steps(found);
        }
        otherwise = Answer::None;
    }
    groups.retain(|g| g.may_be_steps(g.fewest()));
    let (warm, mut groups): (Vec<Group>, Vec<Group>) = groups
        .into_iter()
        .partition(|g| cases::WARM_UP_NAME.holds(g.warms()));
    let warm = Span::merged(warm.into_iter().flat_map(|g| g.spans).collect());
    for group in &mut groups {
        group.spans.retain(|span| {
            let at = warm.partition_point(|it| it.end <= span.start);
            warm.get(at).is_none_or(|it| span.start < it.start)
        });
    }
    if groups.is_empty() {
        return otherwise;
    }
    let calls = ByCall::new(trace, process, window);
    of_launching(trace, process, &calls, &mut groups);
    // Counted ones first; of those the ones that hold the others.
    groups.sort_by_key(|g| std::cmp::Reverse((g.is_counted, g.total())));
    groups.truncate(TRIED_MAX);
    let warm = warm.iter();
    let warm = warm.map(|it| Caused::by(trace, process, &calls, *it).count);
    let warm = warm.sum();
    groups
        .into_iter()
        .find_map(|group| of_group(trace, process, window, (&calls, warm), group))
        .map_or(otherwise, Answer::Steps)
}

/// Leaves out ranges of threads that launch little beside another one that has some: they tell nothing of what the GPU does. The
/// backward pass of PyTorch has a thread of its own.
fn of_launching(trace: &Trace, process: usize, calls: &ByCall, groups: &mut Vec<Group>) {
    let is_launch = |name: NameId| trace.names().full(name).contains("Launch");
    // Calls are many, names few.
    let mut names: FxHashMap<NameId, bool> = FxHashMap::default();
    let mut launched = |thread: u32| -> usize {
        let mut lanes = trace.threads_in(process);
        let lane = lanes.find(|it| it.2 == thread);
        lane.map_or(0, |(id, lane, _)| {
            let all = lane.kept().filter(|&row| {
                let name = trace.what(id, row).name();
                name.is_some_and(|it| *names.entry(it).or_insert_with(|| is_launch(it)))
            });
            all.map(|row| calls.of_call(lane.correlation(row)).len())
                .sum()
        })
    };
    let threads: BTreeSet<u32> = groups.iter().map(|g| g.thread).collect();
    if threads.len() > 1 {
        let launched: FxHashMap<u32, usize> =
            threads.into_iter().map(|it| (it, launched(it))).collect();
        let most = launched.values().copied().max().unwrap_or(0);
        groups.retain(|g| !cases::OTHER_THREAD.holds(4 * launched[&g.thread] < most));
    }
}

/// What lies behind a warm-up, of a process whose ranges are too few for steps. Ranges have that name, or the first of some takes
/// longer than the others. Beside it which that is.
pub(super) fn behind_warm_up(trace: &Trace, process: usize) -> Option<(Span, String)> {
    let groups = groups(trace, process, None, (RangeKind::Nvtx, ""));
    let warm = groups
        .iter()
        .filter(|g| cases::WARM_UP_NAME.holds(g.warms()));
    let warm = warm.flat_map(|g| g.spans.iter().map(|it| it.end)).max();
    let few = groups
        .iter()
        .filter(|g| g.may_be_steps(2) && !cases::FEW_STEPS.is_reached_by(g.spans.len()));
    let few = few.max_by_key(|g| (g.is_counted, g.total()));
    if warm.is_none() && few.is_none() {
        return None;
    }
    let calls = ByCall::new(trace, process, None);
    if let Some(end) = warm {
        let behind = Caused::by(trace, process, &calls, Span::new(end, Ns::MAX));
        return Some((behind.span?, "the warm-up".to_owned()));
    }
    let group = few?;
    let steps = caused_by(trace, process, None, &calls, &group.spans);
    let (spans, _) = from_start_to_start(trace, process, &steps);
    let (first, others) = spans.split_first()?;
    let times: Vec<f64> = others.iter().map(|it| it.len() as f64).collect();
    let is_slow = first.len() as f64 >= cases::WARM_UP_OF_FEW.value() * stats::median(&times)?;
    let work = operations::count(trace, process, None);
    let behind = others.iter().copied().reduce(Span::hull);
    behind
        .filter(|_| is_slow && are_steps(&steps, work, 2))
        .map(|it| {
            (
                it,
                format!(
                    "the first of {} ranges `{}`",
                    spans.len(),
                    cut_middle(&group.name, NAME_MAX)
                ),
            )
        })
}

/// Whether the work is one pass over the parts of a network: each is marked once, one after the other. All that repeats in
/// it is no step.
pub(super) fn is_one_pass(trace: &Trace, process: usize, window: Option<Span>) -> bool {
    let marks = [(RangeKind::Nvtx, ""), (RangeKind::Function, MODULE)].into_iter();
    let mut layers = marks.flat_map(|of| groups(trace, process, window, of));
    let calls = OnceCell::new();
    layers.any(|g| {
        let hull = g.spans.iter().copied().reduce(Span::hull);
        let is_counted =
            g.is_counted && cases::STEPS_MIN.is_reached_by(g.spans.len()) && counts_layers(&g.name);
        hull.filter(|_| is_counted).is_some_and(|hull| {
            let calls = calls.get_or_init(|| ByCall::new(trace, process, window));
            let caused = Caused::by(trace, process, calls, hull).count as f64;
            caused >= cases::RANGES_SHARE.value() * operations::count(trace, process, window) as f64
        })
    })
}

/// Where the only step begins that a profiler marks, of a timeline without further operations.
pub(super) fn begins(trace: &Trace, process: usize) -> Option<Ns> {
    let mut marked = groups(trace, process, None, (RangeKind::Nvtx, STEP)).into_iter();
    match marked.find(Group::is_profiler_step)?.spans[..] {
        [one] => Some(one.start),
        _ => None,
    }
}

/// Whether the calls within a single range caused all operations that start in a stretch.
pub(super) fn is_in_one(
    trace: &Trace,
    process: usize,
    window: Option<Span>,
    stretch: Span,
) -> bool {
    let groups = groups(trace, process, window, (RangeKind::Nvtx, ""));
    let mut spans: Vec<Span> = groups.into_iter().flat_map(|group| group.spans).collect();
    spans.retain(|span| span.start < stretch.end);
    spans.sort_unstable_by_key(|span| std::cmp::Reverse(span.len()));
    spans.truncate(TRIED_MAX);
    if spans.is_empty() {
        return false;
    }
    let operations = ProcessOperations::new(trace, process, 1);
    let count = Caused::within(&operations, window, stretch).count;
    let calls = ByCall::new(trace, process, window);
    spans.into_iter().any(|range| {
        let caused = Caused::by(trace, process, &calls, range);
        let holds = |span: Span| span.start <= stretch.start && stretch.end <= span.end;
        caused.count >= count && caused.span.is_some_and(holds)
    })
}

/// Whether some op of PyTorch was seen a single time. Beside what repeats it is the begin or the end of one pass.
pub(super) fn is_once(trace: &Trace, process: usize, window: Option<Span>) -> bool {
    let ops = groups(trace, process, window, (RangeKind::Nvtx, "aten::"));
    ops.iter().any(|of| of.spans.len() == 1)
}

/// The ranges of a kind whose names begin so, by name and thread. Ranges are many, names few: where none begins so, no
/// range is looked at.
fn groups(
    trace: &Trace,
    process: usize,
    window: Option<Span>,
    (wanted, begins): (RangeKind, &str),
) -> Vec<Group> {
    let is_one = |id: NameId| trace.names().full(id).starts_with(begins);
    if !(0..trace.names().len() as NameId).any(is_one) {
        return Vec::new();
    }
    let mut groups = Groups::default();
    for (id, lane) in trace.others_in(process) {
        let LaneKind::Range { kind, thread } = lane.key().kind else {
            continue;
        };
        if kind != wanted {
            continue;
        }
        for (_, activity) in trace.activities(id, lane.rows_in(window)) {
            let What::Range(range) = activity.what else {
                continue;
            };
            let is_os = range.kind == RangeKind::CpuOp && trace.source.kind == SourceKind::Nsys;
            if cases::SYSTEM_POLLS.holds(is_os) || !(begins.is_empty() || is_one(range.name)) {
                continue;
            }
            let group = groups.of_name(trace, thread, range);
            group.restarts |= !group.spans.is_empty() && range.index <= group.index;
            group.index = range.index;
            group.spans.push(activity.span);
        }
    }
    groups.all.into_iter().map(|(group, _)| group).collect()
}

/// Groups while ranges are put to them.
#[derive(Default)]
struct Groups {
    /// Each with the numbers in the last new name.
    all: Vec<(Group, Option<Vec<u64>>)>,
    /// By thread and name without numbers, and by thread and name.
    ids: FxHashMap<(u32, String), usize>,
    by_name: FxHashMap<(u32, NameId), usize>,
}

impl Groups {
    /// The group of a range.
    fn of_name(&mut self, trace: &Trace, thread: u32, range: Range) -> &mut Group {
        let place = (thread, range.name);
        if let Some(&known) = self.by_name.get(&place) {
            let group = &mut self.all[known].0;
            // The same name again: its numbers count nothing.
            group.is_counted = false;
            return group;
        }
        let (name, numbers) = without_numbers(trace.names().full(range.name));
        let next = self.all.len();
        let at = *self.ids.entry((thread, name.clone())).or_insert(next);
        if at == next {
            let group = Group {
                thread,
                name,
                is_counted: true,
                index: range.index,
                restarts: false,
                spans: Vec::new(),
            };
            self.all.push((group, None));
        }
        self.by_name.insert(place, at);
        let (group, last) = &mut self.all[at];
        let ascends = last.as_ref().is_none_or(|last| *last < numbers);
        group.is_counted &= ascends && !numbers.is_empty();
        *last = Some(numbers);
        group
    }
}

/// "step 12 of epoch 3" as "step # of epoch #", and its numbers. Numbers too large to count are 0.
pub fn without_numbers(name: &str) -> (String, Vec<u64>) {
    let mut out = String::with_capacity(name.len());
    let mut numbers = Vec::new();
    let mut rest = name;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        out.push('#');
        let digits = &rest[at..];
        let end = digits.find(|c: char| !c.is_ascii_digit());
        let (number, behind) = digits.split_at(end.unwrap_or(digits.len()));
        numbers.push(number.parse().unwrap_or(0));
        rest = behind;
    }
    out.push_str(rest);
    (out, numbers)
}

/// Whether what a name counts are the parts of a network: PyTorch's modules ("nn.Module: Block_3"), a path to one
/// ("blocks.9.norm"), or layers by that word.
fn counts_layers(name: &str) -> bool {
    let is_path = |(at, _): (usize, &str)| {
        let before = name[..at].to_lowercase();
        let is_word = before.ends_with(char::is_alphabetic);
        is_word
            && !cases::STEP_IN_PATH.holds(ITERATIONS.split(' ').any(|word| before.ends_with(word)))
    };
    let others = name.replace("player", "").replace("Player", "");
    let has_player = cases::PLAYERS.holds(others.len() < name.len());
    let others = if has_player { &others } else { name };
    cases::MODULES.holds(name.starts_with(MODULE))
        || cases::MODULE_PATH.holds(name.match_indices(".#").any(is_path))
        || cases::LAYERS.holds(others.to_lowercase().contains("layer"))
}

/// Words for what a program does over and over: "epoch1.step.7" is no part of a network.
const ITERATIONS: &str = "step epoch iter iteration batch frame round";

/// Whether no two share time.
fn are_apart(spans: &[Span]) -> bool {
    spans.is_sorted_by(|a, b| a.end <= b.start)
}

/// A pass of a variant is a step by itself: the host does other things between two of them.
fn of_repeats(trace: &Trace, process: usize, window: Option<Span>, group: &Group) -> Answer {
    let operations = ProcessOperations::new(trace, process, group.spans.len());
    let spans: Vec<Span> = group
        .spans
        .iter()
        .filter_map(|&range| Caused::within(&operations, window, range).span)
        .collect();
    if !cases::STEPS_MIN.is_reached_by(spans.len()) {
        return Answer::None;
    }
    Answer::Steps(Found {
        from: Origin::Repeats(group.name.clone()),
        spans,
        is_closed: true,
        is_part: false,
        is_sure: false,
        batches: Vec::new(),
    })
}

fn of_group(
    trace: &Trace,
    process: usize,
    window: Option<Span>,
    (calls, warm): (&ByCall, usize),
    group: Group,
) -> Option<Found> {
    let mut steps = caused_by(trace, process, window, calls, &group.spans);
    // Warm-up is no work that they could hold.
    let work = operations::count(trace, process, window).saturating_sub(warm);
    let fewest = group.fewest();
    if !are_steps(&steps, work, fewest) {
        return None;
    }
    // The program may count each of two kinds.
    let has_pairs = !group.is_counted && are_by_turns(trace, process, &steps);
    if cases::BY_TURNS.holds(has_pairs) {
        let mut is_first = false;
        steps.retain(|_| {
            is_first = !is_first;
            is_first
        });
    }
    let (spans, is_part) = from_start_to_start(trace, process, &steps);
    // A range that all steps lose their end by marks no steps.
    if spans.len() < fewest {
        return None;
    }
    let last = steps.last()?;
    let seen = Span::new(steps[0].caused.start, last.caused.start);
    let caused = steps.iter().map(|it| it.time).sum::<Ns>() - last.time;
    let is_later = 2 * operations::time(trace, process, seen) < caused;
    if cases::WORK_IS_LATER.holds(is_later) {
        return None;
    }
    let from = if group.is_profiler_step() {
        Origin::ProfilerStep
    } else {
        Origin::Ranges(group.name)
    };
    Some(Found {
        spans,
        // The next step is not seen to begin.
        is_closed: false,
        is_part: is_part && from != Origin::ProfilerStep,
        is_sure: false,
        batches: Vec::new(),
        from,
    })
}

/// Whether so many, in order, hold enough of so many operations.
pub(super) fn are_steps(steps: &[Marked], work: usize, fewest: usize) -> bool {
    let covered: usize = steps.iter().map(|it| it.count).sum();
    let starts: Vec<Ns> = steps.iter().map(|step| step.caused.start).collect();
    let is_enough = covered as f64 >= cases::RANGES_SHARE.value() * work as f64;
    is_enough && steps.len() >= fewest && is_ascending(&starts)
}

/// What ranges of the host caused on the GPU; a range that caused nothing is no step there.
pub(super) fn caused_by(
    trace: &Trace,
    process: usize,
    window: Option<Span>,
    calls: &ByCall,
    ranges: &[Span],
) -> Vec<Marked> {
    let has_calls = calls.len() > 0 && trace.threads_in(process).next().is_some();
    let operations = OnceCell::new();
    let operations =
        || operations.get_or_init(|| ProcessOperations::new(trace, process, ranges.len()));
    let marked = |&range: &Span| {
        let caused = match has_calls {
            true => Caused::by(trace, process, calls, range),
            false => Caused::within(operations(), window, range),
        };
        Some(Marked {
            range,
            caused: caused.span?,
            count: caused.count,
            time: caused.time,
        })
    };
    ranges.iter().filter_map(marked).collect()
}

/// Whether as many operations lie from one range to the next as two ranges later, and others than one range later.
fn are_by_turns(trace: &Trace, process: usize, steps: &[Marked]) -> bool {
    let operations = ProcessOperations::new(trace, process, steps.len());
    let between = steps
        .windows(2)
        .map(|it| operations.count(Span::new(it[0].caused.start, it[1].caused.start)));
    let counts: Vec<usize> = between.collect();
    let is_like = |a: usize, b: usize| 5 * a.min(b) >= 4 * a.max(b);
    let like = |apart: usize| {
        let pairs = counts.iter().zip(counts.iter().skip(apart));
        (
            pairs.clone().filter(|it| is_like(*it.0, *it.1)).count(),
            pairs.count(),
        )
    };
    let ((next, nexts), (second, seconds)) = (like(1), like(2));
    seconds > 0 && 4 * second >= 3 * seconds && 4 * next <= nexts
}

/// Steps from the first operation of each range to the first of the next. Ranges mark where steps begin. What lies between two
/// of them is of the step, also where the range holds a part of it, such as the optimizer's. A step behind which something else
/// was done (an evaluation) is longer, and odd. Beside them whether the ranges hold only a part.
pub(super) fn from_start_to_start(
    trace: &Trace,
    process: usize,
    steps: &[Marked],
) -> (Vec<Span>, bool) {
    let pairs = steps.windows(2);
    let mut spans: Vec<Span> = pairs
        .map(|it| Span::new(it[0].caused.start, it[1].caused.start))
        .collect();
    let operations = ProcessOperations::new(trace, process, spans.len());
    let count = |span: &Span| operations.count(*span) as f64;
    let counts: Vec<f64> = spans.iter().map(count).collect();
    let usual = stats::median(&counts).unwrap_or_default();
    let end = |step: &Marked| step.caused.end.max(step.range.end);
    let last = steps.last().map(|it| Span::new(it.caused.start, end(it)));
    spans.extend(last);
    let held: Vec<f64> = steps.iter().map(|step| step.count as f64).collect();
    let is_part = stats::median(&held).unwrap_or_default() < cases::WHOLE_SHARE.value() * usual;
    (spans, is_part)
}

/// A range that marks a step.
pub(super) struct Marked {
    pub(super) range: Span,
    /// From the first operation that its calls caused to the end of the last.
    pub(super) caused: Span,
    /// How many these are, and what they take together.
    count: usize,
    time: Ns,
}

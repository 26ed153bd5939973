//! The odd steps of a kind: what they have more of than the others, and what that costs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{Bound, scope};
use activity::stats;
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{count as group, duration, percent, share};
use activity::{Ns, Span};
use causes::asleep;
use causes::graph::CallKind;
use causes::stacks::LineShare;
use causes::{Cause, Causes, IdleCause, first_use, is_mpi};
use figures::steps::{StepKind, Steps};
use figures::tables;
use findings::no_cure::UNTRACED;
use findings::{Finding, HOST_FUNCTION, KEEP_WORKERS, Occurrence, OfSteps, Rule, Scope};
use trace::describe::host_label;
use trace::{Trace, short};

/// So many odd steps, and as many of the others, say what the odd ones have more of.
const LOOKED_AT: usize = 16;

/// What takes this part of their longer time is told as all of it.
const WHOLE: f64 = 0.9;

/// What holds odd steps up: the bound, its name, the line that samples tell, and the part of the longer time that it takes.
type Held = (Bound, String, Option<LineShare>, f64);

/// Odd steps of one kind, together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OddSteps {
    /// "every 20th step", "2 steps", "2 of 12 decode steps".
    pub which: String,
    pub count: usize,
    /// How many steps lie from one to the next, where that is always the same.
    pub every: Option<usize>,
    /// How much longer than the median one of them takes, at the mean.
    pub more_ns: Ns,
    /// And all of them together.
    pub total_ns: Ns,
    /// Its part of the time of all steady steps.
    pub share: f64,
    /// What most of that goes to: "save_checkpoint at train.py:31"; null where nothing takes half.
    pub why: Option<String>,
    /// What holds them up, also where they do more.
    #[serde(skip)]
    held: String,
    /// What it is bound by.
    pub bound_by: Bound,
    /// The line that is to blame, where samples tell.
    #[serde(skip)]
    pub line: Option<LineShare>,
    /// What part of that longer time it takes.
    #[serde(skip)]
    part: f64,
    /// How many operations more one of them has than a typical step, where that is more than half of it.
    #[serde(skip)]
    operations: usize,
    /// What steps of another kind take, where these are such; else empty.
    #[serde(skip)]
    other_kind: String,
    /// Median time of the others, and the spans of the odd ones, the longest first.
    #[serde(skip)]
    pub median: Ns,
    #[serde(skip)]
    pub spans: Vec<Span>,
}

/// Whether steps before the steady ones took about as long as the odd ones: then a GPU came to other clocks, and did nothing else.
fn as_before(steps: &Steps, kind: &StepKind) -> bool {
    let before = steps.spans[..steps.steady.start].iter().map(|it| it.len());
    let usual = stats::median_time(&before.collect::<Vec<_>>());
    let mut odd = kind.costly.iter().map(|it| steps.spans[*it].len());
    usual.is_some_and(|usual| odd.all(|it| 10 * (it - usual).abs() <= usual))
}

impl OddSteps {
    /// Those of a kind; `None` where it has none.
    pub fn of(trace: &Trace, causes: &Causes<'_>, steps: &Steps, kind: &StepKind) -> Option<Self> {
        let more = |step: &usize| steps.spans[*step].len() - kind.median_ns;
        let total_ns: Ns = kind.costly.iter().map(more).sum();
        let count = kind.costly.len();
        let looked = OddAmong::at(steps, kind)?;
        let most = looked.idle(causes).or_else(|| looked.work(trace));
        let (bound_by, mut named, line, part) =
            most.unwrap_or((Bound::Unknown, String::new(), None, 1.0));
        if line.as_ref().is_some_and(LineShare::starts_workers) {
            named = named.replacen(LOADER, "starting the DataLoader's workers", 1);
        }
        // A sleep once is a pause between two parts of the program: nothing of a step holds it up.
        let is_asleep = named.split(" at ").next().is_some_and(asleep::is_sleep);
        // What left no records may be as many steps like the others.
        let is_missing = named == Cause::Missing.label();
        let is_slower = bound_by == Bound::Compute && as_before(steps, kind);
        if count == 1 && is_asleep || is_missing || is_slower {
            return None;
        }
        let holds = |step: usize| {
            let own = trace.streams_in(steps.process);
            own.map(|it| it.1.starting(steps.spans[step]).len())
                .sum::<usize>()
        };
        let usual = holds(kind.typical);
        let mean = kind.costly.iter().map(|it| holds(*it)).sum::<usize>() / count;
        let operations = if 2 * mean > 3 * usual {
            mean - usual
        } else {
            0
        };
        // A call of CUDA takes its time whatever else a step does.
        let is_call = named.starts_with("cu") && bound_by == Bound::Host;
        let operations = if is_call { 0 } else { operations };
        let why = match operations {
            _ if compiles(&named) => {
                let again = if compiled_twice(trace) { " again" } else { "" };
                Some(format!("torch.compile, which compiles{again}"))
            }
            _ if first_use::pins(&named) => Some(format!("{named}, which pins host memory")),
            0 => Some(named.clone()).filter(|it| !it.is_empty()),
            more => {
                let more = format!("{} operations more", group(more as u64));
                // More kernels need no other name.
                Some(match named.as_str() {
                    "" | EACH | UNTRACED => more,
                    _ if bound_by == Bound::Compute => more,
                    held => format!("{more}, mostly in {held}"),
                })
            }
        };
        let which = match (steps.kinds.len(), kind.costly.as_slice()) {
            // As a list of all steps numbers them: those of the start are no part of what is told of.
            (1, [step]) if steps.steady.start > 0 => {
                format!(
                    "step {} of {}",
                    group(*step as u64 + 1),
                    group(steps.spans.len() as u64)
                )
            }
            (1, [_]) if kind.every.is_none() => "1 step".to_owned(),
            _ => kind.odd_text(&kind.steps.len().to_string()),
        };
        let mut spans: Vec<Span> = kind.costly.iter().map(|&it| steps.spans[it]).collect();
        spans.sort_by_key(|it| Reverse(it.len()));
        Some(OddSteps {
            which,
            count,
            every: kind.every,
            more_ns: total_ns / count as Ns,
            total_ns,
            share: share(total_ns, steps.steady().iter().map(|it| it.len()).sum()),
            why,
            held: named,
            part,
            operations,
            other_kind: String::new(),
            bound_by,
            line,
            median: kind.median_ns,
            spans,
        })
    }

    /// Steps of another kind, where they take most of the time and one of them many times as long as one of the main kind.
    pub(super) fn of_kind(
        trace: &Trace,
        causes: &Causes<'_>,
        steps: &Steps,
        kind: &StepKind,
    ) -> Option<Self> {
        let (main, count) = (steps.main(), kind.steps.len().max(1) as f64);
        let times = kind.total_ns as f64 / count / main.median_ns.max(1) as f64;
        let all: Ns = steps.steady().iter().map(|it| it.len()).sum();
        if 2 * kind.total_ns <= all || !cases::ELSEWHERE_TIMES.is_reached_by(times) {
            return None;
        }
        let both = |of: &[usize]| {
            let mut both = [of, &kind.steps].concat();
            both.sort_unstable();
            both
        };
        let as_odd = StepKind {
            steps: both(&main.steps),
            odd: both(&main.odd),
            costly: kind.steps.clone(),
            ..main.clone()
        };
        let part = share(kind.total_ns, all);
        Some(OddSteps {
            other_kind: scope::other_kind(kind, part),
            share: part,
            ..OddSteps::of(trace, causes, steps, &as_odd)?
        })
    }

    /// Whether they are no odd steps, but all of another kind.
    pub fn are_of_other_kind(&self) -> bool {
        !self.other_kind.is_empty()
    }

    /// What to do about steps that read prompts.
    pub(super) fn chunks(&self) -> Option<&'static str> {
        let is_prefill = self.other_kind.contains("prefill");
        is_prefill.then_some("prefill in smaller chunks")
    }

    /// What to change, for the headline, where that is known by a name.
    pub(super) fn cure(&self) -> Option<&'static str> {
        compiles(&self.held).then_some("try dynamic=True, or fewer shapes")
    }

    /// "every 20th step takes 727 ms more in torch.save at train.py:31: 12 % of the time".
    pub fn sentence(&self) -> String {
        let OddSteps { which, why, .. } = self;
        if self.are_of_other_kind() {
            let mostly = match self.held.as_str() {
                "" | EACH | UNTRACED => String::new(),
                held => format!(", mostly in {held}"),
            };
            return self.other_kind.clone() + &mostly;
        }
        let (takes, each) = match self.count > 1 && self.every.is_none() {
            true => ("take", " each"),
            false => ("takes", ""),
        };
        let (more, part) = (duration(self.more_ns), percent(self.share));
        let by = match self.operations {
            0 if self.part >= WHOLE => " in",
            0 => &format!(", {} of it in", percent(self.part)),
            _ => ", with",
        };
        let why = why
            .as_ref()
            .map_or(String::new(), |it| format!("{by} {it}"));
        format!("{which} {takes} {more} more{each}{why}: {part} of the time")
    }

    /// What is had back where they take no longer than the others.
    pub fn gain(&self) -> String {
        let mean = self.mean();
        let saved = duration((mean as f64 * self.share) as Ns);
        format!("ending that saves at most {saved} a step (mean)")
    }

    /// The time of all steady steps, which `share` is a part of.
    pub fn of_ns(&self) -> Ns {
        (self.total_ns as f64 / self.share) as Ns
    }

    /// What a step takes at the mean.
    fn mean(&self) -> Ns {
        (self.median as f64 / (1.0 - self.share).max(f64::EPSILON)) as Ns
    }

    /// As a finding: rules look at the other steps alone.
    pub(crate) fn finding(&self, scope: &Scope<'_>) -> Finding {
        let at: Vec<_> = self
            .spans
            .iter()
            .map(|it| Occurrence::Gap(0, *it))
            .collect();
        let rarely = "Do it less often, in parts, or beside the GPU's work in another thread.";
        let (advice, cure) = match self.held.as_str() {
            _ if self.chunks().is_some() => (
                "Prefill in smaller chunks (chunked prefill): decode steps run between them, and wait for none as long.",
                "",
            ),
            _ if self.are_of_other_kind() => (
                "Look at one of these first: most of the time is theirs.",
                "",
            ),
            _ if self.is_recording() => (
                "Recording does that: without it these steps take as long as the others.",
                "",
            ),
            _ if self.line.as_ref().is_some_and(LineShare::starts_workers) => {
                (KEEP_WORKERS, "keep-workers")
            }
            it if it.contains(LOADER) => (
                "Some batches take longer to load than steps take: more workers, or loading further ahead, let them come in time.",
                "workers",
            ),
            it if compiles(it) => (
                "Most often another shape came. Use dynamic=True, torch._dynamo.mark_dynamic or padding; or run each shape once before you measure. TORCH_LOGS=recompiles says why.",
                "",
            ),
            it if it.contains("LaunchHostFunc") => (rarely, HOST_FUNCTION),
            it if first_use::pins(it) => {
                ("Pin that memory once, before the loop, and keep it.", "")
            }
            it if CallKind::of(it) == CallKind::Memory => {
                ("Take that memory before the loop, and reuse it.", "")
            }
            _ if self.is_seam() => (
                "It comes once and nothing names why, as where one part of a program ends: it may be no part of a step.",
                "",
            ),
            EACH if self.operations == 0 => (
                "No cause holds most of them: look at each on the timeline.",
                "",
            ),
            _ => (rarely, ""),
        };
        let all = self.of_ns();
        Finding {
            rule: Rule::OddSteps,
            title: self.sentence(),
            advice: advice.to_owned(),
            change: scope.change(cure, self.line.as_ref()),
            step: Some(OfSteps {
                one: self.mean(),
                all,
                count: self.spans.len(),
                of: self.spans.len(),
                ..OfSteps::default()
            }),
            ..scope.found(
                all,
                if self.saves_nothing() {
                    0
                } else {
                    self.total_ns
                },
                &at,
            )
        }
    }

    /// Whether the profiler makes them longer.
    pub fn is_recording(&self) -> bool {
        self.bound_by == Bound::Nothing
    }

    /// Whether it is one alone, for no cause that is known or for more work: where one loop ends and another begins.
    pub fn is_seam(&self) -> bool {
        let is_more = self.operations > 0 && matches!(self.held.as_str(), "" | EACH | UNTRACED);
        self.count == 1 && (is_more || self.bound_by == Bound::Unknown)
    }

    /// Whether nobody knows what is had back.
    fn saves_nothing(&self) -> bool {
        self.is_seam() || self.are_of_other_kind()
    }

    /// Whether a next run has them, too: what comes twice in one place is in a loop.
    pub fn is_habit(&self) -> bool {
        let is_named = !matches!(self.held.as_str(), "" | EACH | UNTRACED);
        self.recur() || self.count > 1 && is_named
    }

    /// Whether they come again and again, and not once.
    pub fn recur(&self) -> bool {
        self.every.is_some() || self.count >= cases::LOOP_MIN.value()
    }
}

/// Whether a range is one in which torch.compile compiles.
fn compiles(name: &str) -> bool {
    name.contains("dynamo_timed") || name.contains("_compile.compile_inner")
}

/// Whether torch.compile made several versions of one piece of code: "Torch-Compiled Region: 0/1" is the second of the first.
fn compiled_twice(trace: &Trace) -> bool {
    let names = trace.names();
    let version = |id: u32| names.full(id).strip_prefix("Torch-Compiled Region: ");
    let is_second = |it: &str| it.split_once('/').is_some_and(|it| !it.1.starts_with('0'));
    (0..names.len() as u32).filter_map(version).any(is_second)
}

/// PyTorch's loader, as samples name it.
const LOADER: &str = "DataLoader";

/// Where odd steps take longer for different causes.
const EACH: &str = "different places";

/// Where they do for calls of MPI.
const MPI_CALLS: &str = "MPI calls";

/// Some odd steps, and some others.
struct OddAmong<'s> {
    steps: &'s Steps,
    odd: Vec<usize>,
    others: Vec<usize>,
    /// What one of the others takes at the mean, and how much more time the odd ones take than as many of them.
    usual: Ns,
    more: Ns,
}

impl<'s> OddAmong<'s> {
    fn at(steps: &'s Steps, kind: &StepKind) -> Option<Self> {
        let some = |all: Vec<usize>| -> Vec<usize> {
            let stride = all.len().div_ceil(LOOKED_AT).max(1);
            all.into_iter().step_by(stride).collect()
        };
        let (odd, others) = (some(kind.costly.clone()), some(kind.regular().collect()));
        let time = |of: &[usize]| of.iter().map(|&it| steps.spans[it].len()).sum::<Ns>();
        let usual = time(&others) / others.len().max(1) as Ns;
        let more = time(&odd) - usual * odd.len() as Ns;
        let is_told = !odd.is_empty() && !others.is_empty();
        is_told.then_some(OddAmong {
            steps,
            odd,
            others,
            usual,
            more,
        })
    }

    /// A time of the odd steps beyond that of as many others.
    fn beyond(&self, odd: Ns, others: Ns) -> Ns {
        odd - (others as f64 * self.odd.len() as f64 / self.others.len() as f64) as Ns
    }

    /// The cause of idle time that takes half of what they take more.
    fn idle(&self, causes: &Causes<'_>) -> Option<Held> {
        let idle = |of: &[usize]| {
            let spans = self.steps.stretches(of.iter().copied());
            causes.idle_of_process(self.steps.process, &spans)
        };
        let (odd, others) = (idle(&self.odd), idle(&self.others));
        let time = |of: &[IdleCause], row: &IdleCause| {
            let same = of.iter().find(|it| {
                (it.cause, it.group, &it.culprit, &it.root)
                    == (row.cause, row.group, &row.culprit, &row.root)
            });
            same.map_or(0, |it| it.total_ns)
        };
        let beyond = |row: &IdleCause| self.beyond(row.total_ns, time(&others, row));
        let most = odd.iter().max_by_key(|row| beyond(row))?;
        // One calls MPI by this name, another one by that.
        let is_exchange = |it: &&IdleCause| it.culprit.as_deref().is_some_and(is_mpi);
        let exchanged: Ns = odd.iter().filter(is_exchange).map(&beyond).sum();
        let exchanges = 2 * exchanged >= self.more;
        let part = |time| share(time, self.more);
        let exchanges =
            exchanges.then(|| (Bound::Host, MPI_CALLS.to_owned(), None, part(exchanged)));
        let place = |row: &IdleCause| row.line.as_ref().map(|it| it.place.clone());
        let is_own = !others.iter().any(|it| place(it) == place(most));
        if 2 * beyond(most) >= self.more {
            // What the longest one has alone says nothing of the others.
            let length = |step: usize| self.steps.spans[step].len();
            let longest = self.odd.iter().copied().max_by_key(|it| length(*it))?;
            let usual = time(&others, most) / self.others.len() as Ns;
            let here = beyond(most) - (time(&idle(&[longest]), most) - usual);
            let more = self.more - (length(longest) - self.usual);
            if self.odd.len() > 1 && 2 * here < more {
                let all = exchanges.or(Some((Bound::Unknown, EACH.to_owned(), None, 1.0)));
                return all;
            }
            // By one name it may hold up what waits for a sync and what does not.
            let same = |it: &&IdleCause| (&it.culprit, place(it)) == (&most.culprit, place(most));
            let held = part(odd.iter().filter(same).map(&beyond).sum());
            return Some((
                bound(most.cause),
                culprit(most, is_own),
                most.line.clone(),
                held,
            ));
        }
        // What goes by many names may all be of one line.
        let at = |line: &LineShare| -> Ns {
            let here = odd
                .iter()
                .filter(|it| place(it).as_ref() == Some(&line.place));
            here.map(&beyond).sum()
        };
        let lines = odd.iter().filter_map(|it| it.line.as_ref());
        let line = lines
            .max_by_key(|it| at(it))
            .filter(|it| 2 * at(it) >= self.more);
        let by_line = line.map(|it| (Bound::Host, it.culprit(), Some(it.clone()), part(at(it))));
        by_line.or(exchanges)
    }

    /// The kernel that takes half of what they take more, else kernels together.
    fn work(&self, trace: &Trace) -> Option<Held> {
        let of = |steps: &[usize]| {
            let mut by: BTreeMap<String, Ns> = BTreeMap::new();
            let spans = steps.iter().map(|&it| self.steps.spans[it]);
            for row in spans.flat_map(|span: Span| tables::kernels(trace, Some(span))) {
                *by.entry(row.name).or_default() += row.total_ns;
            }
            by
        };
        let (odd, others) = (of(&self.odd), of(&self.others));
        let beyond = odd.into_iter().map(|(name, time)| {
            let usual = others.get(&name).copied().unwrap_or(0);
            (self.beyond(time, usual), name)
        });
        let (most, name) = beyond.max()?;
        let name = cut_middle(&short::short(&name), NAME_MAX);
        let part = share(most, self.more);
        (2 * most >= self.more).then_some((Bound::Compute, name, None, part))
    }
}

fn bound(cause: Cause) -> Bound {
    match cause {
        Cause::LateStart | Cause::Unknown => Bound::Unknown,
        Cause::Profiler => Bound::Nothing,
        cause if cause.is_sync() => Bound::Sync,
        _ => Bound::Host,
    }
}

/// Who is to blame for idle time: "save_checkpoint at train.py:31". A line of theirs alone is told by what it calls.
pub(super) fn culprit(row: &IdleCause, is_own: bool) -> String {
    let line = row.line.as_ref();
    let name = match (&row.culprit, line) {
        (Some(name), _) if row.cause == Cause::Profiler => {
            format!("recording itself ({})", host_label(name))
        }
        (Some(name), _) => host_label(name),
        (None, Some(line)) => {
            let called = line.called().filter(|_| is_own);
            return called.unwrap_or_else(|| line.culprit());
        }
        (None, None) if row.cause == Cause::Host => UNTRACED.to_owned(),
        (None, None) => row.words(),
    };
    line.map_or(name.clone(), |it| format!("{name} at {}", it.place))
}

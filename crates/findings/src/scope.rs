//! What rules look at, and how they put down what they find.

use std::any::TypeId;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use super::program::{Program, words_of};
use super::{Finding, Severity};
use ::program::{Change, Framework, Sources};
use activity::units::share;
use activity::{Activity, Copy, Direction, Ns, Span, What};
use causes::asleep::Slept;
use causes::evidence::{EVIDENCE_MAX, Evidence};
use causes::graph::CallId;
use causes::stacks::LineShare;
use causes::{Causes, Gap, Group, Piece, Pieces};
use figures::communication::has_any;
use figures::configs::Config;
use figures::lost::Lost;
use figures::stream_order::event_waits;
use figures::turns::Turns;
use figures::watching::WatchingCost;
use figures::{DeviceFigures, Peaks};
use jobs::JobAnalysis;
use rustc_hash::FxHashSet;
use scenario::plan::VariantPlan;
use trace::{LaneId, Trace};

/// What a rule looks at.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    pub trace: &'a Trace,
    /// Operations and calls that start within it; all without one. With `ranks` it is on the clock of all of them, and each process is
    /// looked at in that stretch of its own ([`Scope::window_of`]).
    pub window: Option<Span>,
    /// Steps in it, where it holds nothing else.
    pub steps: usize,
    /// The figures of the same operations.
    pub devices: &'a [DeviceFigures],
    /// What the devices can do, where a profile says.
    pub peaks: Peaks,
    pub causes: &'a Causes<'a>,
    /// What a scenario planned to run in `window`.
    pub planned: Option<&'a VariantPlan>,
    /// The ranks of a job, where it is one that is looked at as a whole.
    pub ranks: Option<&'a JobAnalysis>,
    /// What recording may have cost, where that is to be told of what is looked at.
    pub watching: Option<&'a WatchingCost>,
    /// The copies of each device, once a rule asked for them.
    copies: Arc<[OnceLock<Vec<Copied>>]>,
    /// The launch configurations of its kernels, likewise.
    pub(super) configs: Arc<[OnceLock<Vec<Config>>]>,
    /// What the CPU does while they wait for it, likewise.
    pub(super) slept: Arc<[OnceLock<Slept>]>,
    /// By process, its threads that take turns, likewise.
    pub(super) turns: Arc<[OnceLock<Option<Turns>>]>,
    /// What its names and files tell, likewise.
    pub(super) program: Arc<Program>,
}

impl<'a> Scope<'a> {
    /// Looks at the operations that start within `window`, or at all of them. `devices` are their figures.
    pub fn new(
        trace: &'a Trace,
        causes: &'a Causes<'a>,
        window: Option<Span>,
        devices: &'a [DeviceFigures],
        peaks: Peaks,
    ) -> Self {
        Scope {
            trace,
            window,
            steps: 0,
            devices,
            peaks,
            causes,
            planned: None,
            ranks: None,
            watching: None,
            copies: none_yet(trace.devices()),
            configs: none_yet(trace.devices()),
            slept: none_yet(trace.devices()),
            turns: none_yet(trace.processes()),
            program: Arc::default(),
        }
    }

    /// What is looked at of a process, in its own time.
    pub(super) fn window_of(&self, process: usize) -> Option<Span> {
        let window = self.window?;
        Some(match self.ranks {
            Some(ranks) => ranks.on_own(process, window),
            None => window,
        })
    }

    /// What is looked at of a device, in the time of the first process that has operations on it.
    pub fn window_on(&self, device: usize) -> Option<Span> {
        let window = self.window?;
        match self.trace.streams_of(device).next() {
            Some((_, lane)) if self.ranks.is_some() => self.window_of(lane.key().process),
            _ => Some(window),
        }
    }

    /// A process's stretch on the clock of all, where that is known.
    pub(super) fn on_all(&self, process: usize, span: Span) -> Span {
        match self.ranks {
            Some(ranks) => ranks.on_all(process, span),
            None => span,
        }
    }

    /// Looks at another stretch of the same timeline.
    pub fn within(&self, window: Option<Span>, devices: &'a [DeviceFigures]) -> Self {
        Scope {
            window,
            steps: 0,
            devices,
            copies: none_yet(self.trace.devices()),
            configs: none_yet(self.trace.devices()),
            slept: none_yet(self.trace.devices()),
            turns: none_yet(self.trace.processes()),
            ..self.clone()
        }
    }

    /// The first operation's start on any device looked at, to the last one's end.
    pub(super) fn span(&self) -> Span {
        let spans = self.devices.iter().map(|f| {
            let process = self.processes(f).first().copied();
            process.map_or(f.span, |process| self.on_all(process, f.span))
        });
        spans.reduce(Span::hull).unwrap_or_default()
    }

    /// Idle time of a device in pieces that are wanted.
    pub(super) fn idle_that(
        &self,
        f: &DeviceFigures,
        is_wanted: impl Fn(&Gap, &Piece) -> bool,
    ) -> Ns {
        let wanted = |(gap, pieces): (Gap, Pieces)| -> Ns {
            let wanted = pieces.iter().filter(|piece| is_wanted(&gap, piece));
            wanted.map(|piece| piece.span.len()).sum()
        };
        self.gaps(f).map(wanted).sum()
    }

    /// The gaps of one device with their pieces, in order of time.
    pub(super) fn gaps(&self, device: &DeviceFigures) -> impl Iterator<Item = (Gap, Pieces)> {
        self.causes
            .gaps_over(device.index, self.window_on(device.index), device.span)
    }

    /// What the last operation before a gap brings back, if it does: some runtimes wait for it in calls of the system.
    pub(super) fn comes_before(&self, f: &DeviceFigures, gap: &Gap) -> Option<Copy> {
        let is_back = |it: Copy| it.direction == Direction::D2H && !What::Copy(it).is_migration();
        let graph = self.causes.graph();
        match graph.last_before(self.trace, f.index, gap.span.start)? {
            What::Copy(it) if is_back(it) => Some(it),
            _ => None,
        }
    }

    /// What lies beside so much idle time of these gaps: their rest, and copies and pauses up to the kernels around.
    /// What prepares, reads back or launches less leaves those out with it, where they take at most so long. What takes memory or
    /// loads code stays. Gaps come in order of time.
    pub(super) fn beside(
        &self,
        f: &DeviceFigures,
        gaps: impl Iterator<Item = Span>,
        idle: Ns,
        longest: Ns,
    ) -> Ns {
        let stays = self.idle_that(f, |gap, it| self.causes.group(*gap, it) == Group::SetUp);
        let most = f.recorded_ns() - f.work_ns() - stays;
        let ops = &self.causes.graph().ops;
        (ops.without_kernels(f.index, f.span, gaps, longest)
            .min(most)
            - idle)
            .max(0)
    }

    /// Idle time of launches, but for gaps that are told of. It goes, too, where the launching thread gains so much time: launches then run
    /// ahead. Where it is more than half of that, launching is a cause of its own.
    pub(super) fn ahead(
        &self,
        f: &DeviceFigures,
        gained: Ns,
        is_told: impl Fn(&Gap) -> bool,
    ) -> Ns {
        // What lies behind a copy goes with that.
        let graph = self.causes.graph();
        let is_behind = |gap: &Gap| {
            let last = graph.last_before(self.trace, f.index, gap.span.start);
            matches!(last, Some(What::Kernel(_)))
        };
        let is_its = |gap: &Gap, it: &Piece| {
            self.causes.group(*gap, it) == Group::Launch && !is_told(gap) && is_behind(gap)
        };
        let idle = self.idle_that(f, is_its);
        if 2 * idle <= gained { idle } else { 0 }
    }

    /// The processes that have operations on a device.
    pub(super) fn processes(&self, device: &DeviceFigures) -> Vec<usize> {
        let streams = self.trace.streams_of(device.index);
        let mut all: Vec<usize> = streams.map(|(_, lane)| lane.key().process).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The rows of a lane that are looked at.
    pub fn rows(&self, lane: LaneId) -> std::ops::Range<usize> {
        let lane = &self.trace.lanes()[lane];
        let window = self.window_of(lane.key().process);
        lane.rows_in(window)
    }

    /// The operations of one device that are looked at, by stream and start.
    pub fn operations(&self, device: &DeviceFigures) -> impl Iterator<Item = (At, Activity)> + '_ {
        self.trace
            .streams_of(device.index)
            .flat_map(move |(lane, _)| {
                let rows = self.trace.activities(lane, self.rows(lane));
                rows.map(move |(row, activity)| ((lane, row), activity))
            })
    }

    /// The copies among them, which many rules ask for: they are few.
    pub(super) fn copies(&self, device: &DeviceFigures) -> &[Copied] {
        let copy = |(at, activity): (At, Activity)| match activity.what {
            What::Copy(copy) => Some((at, activity.span, copy)),
            _ => None,
        };
        self.copies[device.index].get_or_init(|| self.operations(device).filter_map(copy).collect())
    }

    /// Whether the program has managed memory, by a page that moved or by calls: a library takes some beside the program's own, too.
    /// Kernels wait for its pages, and the CPU may read it after any sync.
    pub(super) fn is_managed(&self, device: &DeviceFigures) -> bool {
        let mut copies = self.copies(device).iter();
        copies.any(|it| What::Copy(it.2).is_migration())
            || self.has_name(|it| it.contains("MemPrefetch"))
            || self.has_name(|it| it.contains("llocManaged")) && self.takes_managed()
    }

    /// Whether the program has managed memory, and half of this idle time lies beside pages that move. Where none was recorded nothing tells.
    pub(super) fn is_managed_at(
        &self,
        f: &DeviceFigures,
        at: impl Iterator<Item = (Ns, Span)>,
    ) -> bool {
        let copies = self.copies(f).iter();
        let pages = copies.filter(|it| What::Copy(it.2).is_migration());
        let ends = pages.flat_map(|it| [it.1.start, it.1.end]);
        let ends: FxHashSet<Ns> = ends.collect();
        let (mut all, mut beside) = (0, 0);
        for (time, gap) in at {
            let is_beside = ends.contains(&gap.start) || ends.contains(&gap.end);
            all += time;
            beside += if is_beside { time } else { 0 };
        }
        let is_elsewhere = !ends.is_empty() && 2 * beside < all;
        self.is_managed(f) && !cases::PAGES_ELSEWHERE.holds(is_elsewhere)
    }

    /// Whether at least half of the calls that take memory of a device take managed memory.
    fn takes_managed(&self) -> bool {
        (self.program.takes_managed)
            .get_or_init(|| self.causes.graph().takes_managed(self.trace))
            .to_owned()
    }

    /// From when on records were lost, where they were.
    pub(super) fn lost(&self) -> Option<Ns> {
        let graph = self.causes.graph();
        let lost = || Some(Lost::of(self.trace, graph, None)?.from(graph));
        *self.program.lost.get_or_init(lost)
    }

    /// Whether anything in the timeline has such a name. It is looked for once, however many devices there are.
    pub(super) fn has_name<F: Fn(&str) -> bool + 'static>(&self, is_such: F) -> bool {
        // Its type says what it looks for.
        const { assert!(size_of::<F>() == 0) };
        let names = self.trace.names();
        let has = || (0..names.len() as u32).any(|id| is_such(names.full(id)));
        self.program.has(TypeId::of::<F>(), has)
    }

    /// What a finding is made of; its rule puts its name and the cures to it.
    pub fn found(&self, whole: Ns, bound_ns: Ns, at: &[Occurrence]) -> Finding {
        let bound_ns = bound_ns.min(whole);
        let part = share(bound_ns, whole);
        let shown = at.iter().take(EVIDENCE_MAX).map(|place| match *place {
            Occurrence::Row((lane, row)) => Evidence::row(self.trace, lane, row),
            Occurrence::Gap(device, span) => Evidence::device(self.trace, device, span),
        });
        Finding {
            severity: Severity::warn_where(cases::WARNING_SHARE.is_reached_by(part)),
            evidence: shown.collect(),
            count: at.len() as u64,
            bound_ns,
            ..Finding::default()
        }
    }
}

impl Scope<'_> {
    /// What to change of a program that was seen at a line, as far as it is not done there.
    pub fn change(&self, cure: &str, seen: Option<&LineShare>) -> Vec<Change> {
        // Some rules have the words themselves.
        let told = match cure.contains(": ") {
            true => Some(cure),
            false => words_of(cure, |it| self.is_written_in(it)),
        };
        debug_assert!(cure.is_empty() || told.is_some(), "no words for {cure}");
        told.map_or_else(Vec::new, |told| self.changes(told, seen))
    }

    /// The same in words as `changes.txt` has them.
    pub(super) fn changes(&self, told: &str, seen: Option<&LineShare>) -> Vec<Change> {
        self.sources(seen).changes(told)
    }

    /// Whether words for such programs are for this one: vLLM without graphs, code that torch.compile made, a framework, or any.
    fn is_written_in(&self, name: &str) -> bool {
        match name {
            "*" => true,
            "transformers" => self.trace.stacks().may_have("transformers/"),
            "vllm" => self.has_name(|it| it.contains("vllm::")) && !self.has_name(is_graph),
            "compiled" => self.has_name(|it| has_any(it, COMPILED)),
            _ => format!("{:?}", self.framework()).eq_ignore_ascii_case(name),
        }
    }

    /// The source files of the program that can be read here, that of the line that was seen first.
    pub(super) fn sources<'l>(&self, seen: Option<&'l LineShare>) -> Sources<'l> {
        Sources::of(self.trace, &self.program.files, seen)
    }

    /// The calls that make a stream wait for an event, in order.
    pub(super) fn event_waits(&self) -> &[CallId] {
        let find = || event_waits(self.trace, self.causes.graph());
        self.program.event_waits.get_or_init(find)
    }

    /// What the program calls CUDA through.
    pub(super) fn framework(&self) -> Framework {
        let framework = &self.program.framework;
        *framework.get_or_init(|| Framework::of(self.trace))
    }
}

/// What code is called that torch.compile made, and the kernels in it.
const COMPILED: &str =
    "Torch-Compiled CompiledFxGraph triton_poi_fused triton_red_fused triton_per_fused";

fn is_graph(name: &str) -> bool {
    name.contains("GraphLaunch")
}

/// A row of a lane.
pub(super) type At = (LaneId, usize);

/// A copy: where it stands, when it ran.
pub(super) type Copied = (At, Span, Copy);

fn none_yet<A, T>(of: &[A]) -> Arc<[OnceLock<T>]> {
    of.iter().map(|_| OnceLock::new()).collect()
}

/// Places by how long each took.
pub(super) fn longest_first(mut at: Vec<(Ns, impl Into<Occurrence>)>) -> Vec<Occurrence> {
    at.sort_by_key(|it| Reverse(it.0));
    at.into_iter().map(|it| it.1.into()).collect()
}

impl From<At> for Occurrence {
    fn from(at: At) -> Occurrence {
        Occurrence::Row(at)
    }
}

/// Where something was seen.
#[derive(Clone, Copy, Debug)]
pub enum Occurrence {
    Row(At),
    /// A stretch of a device (index into [`Trace::devices`]).
    Gap(usize, Span),
}

//! A verdict in a line: the class, how much, and where.

mod idle;

pub(super) use idle::ALONE;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::{Answered, Bound, STALL_SHARE, on_cpu::onnx, scope::StepScope, split::Split};
use activity::text::{NAME_MAX, counted, cut_middle, cut_name, printable};
use activity::units::{bytes, duration, percent, share};
use activity::{Direction, NameId, Ns, occupancy};
use causes::stacks::LineShare;
use causes::{Group, IdleCause};
use figures::busy::{self, KernelTime, mostly};
use figures::communication::is_communication;
use figures::failed;
use jobs::{JobAnalysis, Stretch};
use trace::{SourceKind, Trace, short};

/// What is said in the place of a verdict of a timeline without an operation. A process that was only looked at
/// from outside may well have kept its GPU busy.
pub fn nothing_ran(trace: &Trace) -> &'static str {
    let was_looked_at = || {
        let stacks = trace
            .processes()
            .iter()
            .any(|it| it.sampled.totals().looks > 0);
        stacks || trace.hardware().was_read()
    };
    match trace.source.kind {
        SourceKind::Attached => {
            "cuptop watches this program from outside, so it cannot record kernels and copies"
        }
        SourceKind::Recording if trace.health().received == 0 && was_looked_at() => {
            "cuptop watched this program from outside, so it recorded no kernels or copies"
        }
        _ if trace.operations_extent().is_none() && failed::has_launched(trace) => {
            match trace.health().no_timestamp {
                0 => "the GPU's records are missing: kernels were launched, but none was recorded",
                _ => "kernels were launched, but their records have no times: record again",
            }
        }
        _ => match trace.processes().iter().find_map(|it| it.info.has_tensors) {
            Some(true) => {
                "tensors are on a GPU, but its operations were not recorded: profile with ProfilerActivity.CUDA"
            }
            Some(false) => "the GPU had no work: all tensors are on the CPU",
            None if let Some(told) = onnx::instead(trace) => told,
            None if convolves_on_cpu(trace) => {
                "no GPU operation was recorded: convolutions ran on the CPU"
            }
            None if trace.source.kind == SourceKind::Kineto && trace.lanes().is_empty() => {
                "nothing in it is of a GPU, nor of PyTorch, TensorFlow or JAX"
            }
            None => "no GPU operation was recorded",
        },
    }
}

/// Whether PyTorch did convolutions on the CPU: no GPU has its operator.
fn convolves_on_cpu(trace: &Trace) -> bool {
    let names = trace.names();
    (0..names.len() as u32).any(|id| names.full(id) == "aten::mkldnn_convolution")
}

/// What takes this part of a class is named for the whole of it.
const MOST: f64 = 0.5;

/// Columns of a headline, without what the best cure brings.
pub const HEADLINE_MAX: usize = 100;

/// A kernel that takes so much of its kind is named alone.
const ONE_OF_KIND: f64 = 0.8;

/// So many columns of a name are told at least: all of "cudaDeviceSynchronize", and of what is no name but words.
const NAME_MIN: usize = 28;
/// A headline may be so much longer for the sake of a name.
const MORE: usize = 12;

/// Copies that kernels hide for less than this part of their time have nothing beside them.
const HIDDEN_MIN: f64 = 0.05;

/// What copies take of the time beside copying is told from this part on.
const REST_MIN: f64 = 0.05;

/// What a headline of next to nothing begins with.
pub(super) const TOO_LITTLE: &str = "too little to judge";

/// And one of copies alone: what they are for was not recorded.
pub(super) const NO_KERNEL: &str = "no kernel was recorded";

/// How to see what is in graphs that were recorded as a whole.
const BY_NODE: &str =
    "recorded by node, graphs show what is in them (nsys --cuda-graph-trace=node)";

/// What is told of.
pub(super) struct Told<'a> {
    pub trace: &'a Trace,
    pub split: &'a Split,
    pub bound: Bound,
    /// The part of the time that it takes.
    pub part: f64,
    pub line: Option<&'a LineShare>,
    /// The steps that it is of; `None` without steps.
    pub step: Option<&'a StepScope>,
    /// What it is of without them.
    pub of: Answered,
    /// Devices.
    pub devices: usize,
}

impl Told<'_> {
    pub(super) fn say(&self) -> String {
        let text = match self.bound {
            Bound::Host | Bound::Launch | Bound::Sync if self.split.is_cold() => {
                self.idle("cold start", self.part, &self.first_calls())
            }
            Bound::Host => {
                let (time, [mut doing, name]) = self.cpu_work();
                let is_said = doing.starts_with("likely ");
                if !is_said && 2 * self.split.likely > self.split.time_of(Bound::Host) {
                    doing.insert_str(0, "likely ");
                }
                self.idle("CPU-bound", share(time, self.split.whole()), &[doing, name])
            }
            Bound::Launch => self.idle("launch-bound", self.part, &self.launches()),
            Bound::Sync => self.idle("sync-bound", self.part, &self.syncs()),
            Bound::Copy => self.copies(),
            Bound::Compute | Bound::Memory => self.compute(),
            Bound::Peer if self.split.waits_for_ranks() => {
                let (part, of, several) = (percent(self.part), self.whole(), self.several());
                format!(
                    "peer-bound{several}: {part} of {of} goes to waiting for other ranks in collectives"
                )
            }
            Bound::Peer => self.peer(),
            Bound::Unknown => self.unknown(),
            Bound::Nothing => self.nothing(),
        };
        printable(&text)
    }

    fn steps(&self) -> u64 {
        self.step.map_or(1, |step| step.steps.max(1) as u64)
    }

    /// " on 2 GPUs".
    fn several(&self) -> String {
        match self.devices {
            0 | 1 => String::new(),
            many => format!(" on {many} GPUs"),
        }
    }

    /// What shares are of: "each 37.2 ms step", "1.47 ms". The profiler's own time is named where it is much: it
    /// decides nothing, and yet keeps the GPU idle.
    fn whole(&self) -> String {
        let of = match self.step {
            Some(step) => format!("each {}", step.words),
            None if self.of == Answered::Marked => {
                format!("the {} step", duration(self.split.span.len()))
            }
            None if self.split.not_recorded > 0 => {
                let each = self.split.whole() / self.devices.max(1) as Ns;
                format!("the {} recorded", duration(each))
            }
            // Each has a time of its own, where one works after another.
            None => match self.split.sum / self.devices.max(1) as Ns {
                each if each < self.split.span.len() / 10 * 9 => {
                    format!("the {} that each is used", duration(each))
                }
                _ => duration(self.split.span.len()),
            },
        };
        let profilers = self.split.groups[Group::Profiler as usize];
        let profilers = share(profilers, self.split.whole());
        match self.bound {
            Bound::Host | Bound::Launch | Bound::Sync | Bound::Unknown => of,
            _ if profilers >= STALL_SHARE => {
                format!("{of} (profiler overhead {})", percent(profilers))
            }
            _ => of,
        }
    }

    /// Whether copies are all that was recorded.
    fn has_no_kernel(&self) -> bool {
        let [kernels, copies, _] = self.split.counts;
        kernels == 0 && copies > 0 && self.split.graphs == 0 && self.of == Answered::Run
    }

    /// What is told behind a headline of kernels: why the GPU is idle meanwhile, and how to see what is in graphs.
    pub(super) fn beside(&self) -> Vec<String> {
        let split = self.split;
        if self.has_no_kernel() && !matches!(self.bound, Bound::Launch | Bound::Sync) {
            // Where calls are recorded, a launch would be.
            let told = match failed::launches_nothing(self.trace) {
                true => failed::NO_LAUNCH,
                false => NO_KERNEL,
            };
            return vec![told.to_owned()];
        }
        if !matches!(self.bound, Bound::Compute | Bound::Peer) {
            let of_run = (self.of == Answered::Run && self.step.is_none()).then_some(self.trace);
            return of_run
                .and_then(|it| split.of_graphs(it))
                .into_iter()
                .collect();
        }
        let idle = self.idle_beside();
        let mut idle = idle.iter().map(|it| it.2.as_str());
        let first = idle.next().and_then(|it| it.split_once(": "));
        let [frame, _] = self.frames();
        let others = idle.filter_map(|it| it.split_once(&frame));
        let others: String = others.map(|it| it.1).collect();
        let idle = first.map(|it| it.1.to_owned() + &others);
        let graphs = split.are_graphs().then(|| BY_NODE.to_owned());
        let all = idle.into_iter().chain(self.copies_alone());
        all.chain(graphs).collect()
    }

    /// What stands between the class and the cause, of a GPU that is idle and of one that is busy.
    pub(super) fn frames(&self) -> [String; 2] {
        let (split, of, several) = (self.split, self.whole(), self.several());
        let part = |time| percent(share(time, split.whole()));
        [
            format!("{several}: GPU idle {} of {of}", part(split.idle())),
            format!("{several}: kernels run {} of {of}", part(split.computing)),
        ]
    }

    fn copies(&self) -> String {
        let split = self.split;
        let by = split.directions.iter().copied().zip(Direction::NAMED);
        let mut by: Vec<(Ns, Direction)> = by.filter(|d| d.0 > 0).collect();
        by.sort_by_key(|d| std::cmp::Reverse(d.0));
        let names: Vec<String> = by
            .iter()
            .filter(|d| share(d.0, by[0].0) >= 0.1)
            .map(|d| match self.devices {
                0 | 1 => format!("{} {}", d.1.label(), percent(share(d.0, split.whole()))),
                // A share of the time of all together would be a riddle.
                _ => d.1.label().to_owned(),
            })
            .collect();
        let rest = share(split.before_copies(), split.whole());
        // What runs for a part of that only is not said to run.
        let run = if split.copies_run() { "run" } else { "take" };
        let rest = (rest >= REST_MIN).then(|| {
            format!(
                "GPU idle {} in staging and gaps before copies",
                percent(rest)
            )
        });
        let names: Vec<String> = names.into_iter().chain(rest).collect();
        let hidden = share(split.both, split.copying);
        let beside = match hidden < HIDDEN_MIN {
            // Of what is mostly idle that goes without saying.
            true if run == "take" => String::new(),
            // Nor is it said where there are next to no kernels to overlap with.
            true if share(split.computing, split.copying) < HIDDEN_MIN => String::new(),
            true => ", not overlapped by kernels".to_owned(),
            false => format!(", overlapped by kernels for {} of it", percent(hidden)),
        };
        let part = percent(self.part);
        // Other copies, or what belongs to copying, may add to it without being named.
        let is_all = |d: &(Ns, Direction)| percent(share(d.0, split.whole())) == part;
        let (one, names) = match (names.as_slice(), by.first().filter(|d| is_all(d))) {
            ([], _) => (String::new(), String::new()),
            ([_], Some(d)) => (format!("{} ", d.1.label()), String::new()),
            (names, _) => (String::new(), format!(" ({})", names.join(", "))),
        };
        let (of, several) = (self.whole(), self.several());
        format!("copy-bound{several}: {one}copies {run} {part} of {of}{names}{beside}")
    }

    fn peer(&self) -> String {
        let (split, part, of) = (self.split, percent(self.part), self.whole());
        let several = self.several();
        if 2 * split.collective < split.time_of(Bound::Peer) {
            return format!(
                "peer-bound{several}: copies between GPUs, and waiting for them, take {part} of {of}"
            );
        }
        let is_communication = |name: &NameId| is_communication(self.trace.names().full(*name));
        let collectives = split
            .kernels
            .iter()
            .filter(|(name, _)| is_communication(name));
        let all: Ns = collectives.clone().map(|it| it.1).sum();
        let most = collectives.max_by_key(|&(name, time)| (*time, *name));
        let text =
            format!("communication-bound{several}: collectives run without overlap {part} of {of}");
        match most {
            None => text,
            Some((&name, &time)) => {
                let text = format!("{text}, {}", mostly(time, all));
                let name = short::short(self.trace.names().full(name));
                format!("{text} {}", cut_to(&name, &text))
            }
        }
    }

    fn compute(&self) -> String {
        let (split, of, several) = (self.split, self.whole(), self.several());
        if split.is_shared() {
            let part = percent(share(split.turns, split.whole()));
            return format!(
                "shared GPU{several}: for {part} of {of} kernels likely wait while another process has it"
            );
        }
        if split.are_graphs() {
            let part = percent(share(split.graphs.min(split.computing), split.whole()));
            return format!(
                "GPU-bound{several}: CUDA graphs, recorded only as a whole, run {part} of {of}"
            );
        }
        let exchanges = |name: &NameId| is_communication(self.trace.names().full(*name));
        // What computing is bound by is no communication beside it.
        let mut own = split.kernels.clone();
        own.retain(|name, _| !exchanges(name));
        let told = if own.is_empty() { &split.kernels } else { &own };
        let most = self
            .by_short_name(told)
            .filter(|_| split.memsets().is_none());
        let Some((name, time)) = most else {
            let part = percent(self.part);
            let moved = bytes(split.memset_bytes);
            return format!(
                "GPU-bound{several}: memsets of {moved}, bound by memory, run {part} of {of}"
            );
        };
        let is_told = !own.is_empty()
            && cases::WARNING_SHARE.is_reached_by(share(split.collective, split.whole()));
        let exposed = if is_told { split.collective } else { 0 };
        let all = told.values().sum::<Ns>() + split.graphs;
        let all = KernelTime::new(all, split.computing - exposed);
        let of_kernel = all.of_it(time);
        let [computing, alone] = [split.computing - exposed, exposed];
        let [computing, alone] = [computing, alone].map(|it| percent(share(it, split.whole())));
        let alone = match is_told {
            true => format!(", communication alone {alone} of the time"),
            false => String::new(),
        };
        let text = format!("GPU-bound{several}: kernels run {computing} of {of},");
        let words = busy::words(self.trace, Some(split.span), told, all);
        let words = words.or_else(|| self.optimizer(all));
        if let Some(words) = words.or_else(|| self.in_kind(told, (name, time), all, &text)) {
            return format!("{text} {words}{alone}");
        }
        // What exchanges data takes few SMs on purpose.
        let is_meant = exchanges(&name);
        let sms = match is_meant || all.is_beside() {
            true => String::new(),
            false => self.sms(name),
        };
        let name = short::short(self.trace.names().full(name));
        let text = format!("{text} {of_kernel} in");
        let name = cut_to(&name, &(text.clone() + &sms + &alone));
        format!("{text} {name}{sms}{alone}")
    }

    /// "75 % of their time in matrix products, mostly gemm": what a library's kernels do of which one takes most, for behind a text.
    fn in_kind(
        &self,
        kernels: &FxHashMap<NameId, Ns>,
        (name, time): (NameId, Ns),
        all: KernelTime,
        text: &str,
    ) -> Option<String> {
        let (kind, of_all) = self.kind_of_work(kernels, name, time)?;
        let kind = format!("{} in {kind}", all.of_it(of_all));
        let name = short::short(self.trace.names().full(name));
        let whole = format!("{kind}, {} {name}", mostly(time, of_all));
        // A name cut in its middle says less than none.
        let length = text.chars().count() + 1 + whole.chars().count();
        Some(match length <= HEADLINE_MAX + MORE {
            true => whole,
            false => kind,
        })
    }

    /// Kernels that are called alike, in whatever types, are told as one: the one that takes most of them, and what all take.
    fn by_short_name(&self, kernels: &FxHashMap<NameId, Ns>) -> Option<(NameId, Ns)> {
        let mut by: FxHashMap<String, (Ns, (Ns, NameId))> = FxHashMap::default();
        for (&name, &time) in kernels {
            let of = by.entry(short::short(self.trace.names().full(name)));
            let of = of.or_default();
            *of = (of.0 + time, of.1.max((time, name)));
        }
        let most = by.into_values().max();
        most.map(|(all, (_, name))| (name, all))
    }

    /// What a library's kernels do of which one takes most, and how long all of that kind take, where that says more than the one.
    fn kind_of_work(
        &self,
        kernels: &FxHashMap<NameId, Ns>,
        name: NameId,
        time: Ns,
    ) -> Option<(&'static str, Ns)> {
        let kind = |name: NameId| busy::kind_of_work(self.trace.names().full(name));
        let of = kind(name)?;
        let alike = kernels.iter().filter(|it| kind(*it.0) == Some(of));
        let all: Ns = alike.map(|it| it.1).sum();
        (share(time, all) < ONE_OF_KIND).then_some((of, all))
    }

    /// What PyTorch's optimizers take that update several parameters with one kernel, where it is most: they have many kinds of it.
    fn optimizer(&self, all: KernelTime) -> Option<String> {
        let full = |name: NameId| self.trace.names().full(name);
        let own = self.split.kernels.iter();
        let own = own.filter(|it| full(*it.0).contains("multi_tensor_apply"));
        let time: Ns = own.map(|it| it.1).sum();
        let of_it = all.of_it(time);
        (all.share(time) > 0.5)
            .then(|| format!("{of_it} in multi_tensor_apply, as an optimizer's step"))
    }

    /// " on 1 of 108 SMs", where no launch of a kernel has blocks for half of them; " on 1 thread", where it has no more; " in one-thread
    /// blocks".
    fn sms(&self, name: NameId) -> String {
        let devices = self.trace.devices().iter();
        let mut sms: Vec<_> = devices.map(|it| it.info.multiprocessors).collect();
        sms.dedup();
        let shapes = self.split.shapes.iter().map(|&id| self.trace.shape(id));
        let shapes = shapes.filter(|it| it.name == name);
        if shapes
            .clone()
            .all(|it| it.block == [1; 3] && it.grid == [1; 3])
        {
            return " on 1 thread".to_owned();
        }
        let has_shapes = shapes.clone().next().is_some();
        if has_shapes && shapes.clone().all(|it| it.block == [1; 3]) {
            return " in one-thread blocks".to_owned();
        }
        let blocks = shapes.map(|it| occupancy::blocks(&it));
        match (&sms[..], blocks.clone().min(), blocks.max()) {
            (&[sms], Some(few), Some(many)) if few > 0 && many < u64::from(sms).div_ceil(2) => {
                let most = if few == many { "" } else { "at most " };
                format!(" on {most}{many} of {sms} SMs")
            }
            _ => String::new(),
        }
    }

    fn nothing(&self) -> String {
        let (split, of) = (self.split, self.whole());
        let percent_of = |time: Ns| percent(share(time, split.whole()));
        if split.is_single() {
            let all = match split.operations {
                0 | 1 => "one operation".to_owned(),
                many => format!("{many} operations"),
            };
            return format!("{TOO_LITTLE}: only {all} in {of}");
        }
        let copies = split.time_of(Bound::Copy) + split.time_of(Bound::Peer);
        format!(
            "no single limit{}: kernels {}, copies {}, idle {} of {of}",
            self.several(),
            percent_of(split.time_of(Bound::Compute)),
            percent_of(copies),
            percent_of(split.idle()),
        )
    }
}

/// What is said in the place of a verdict of a timeline in which graphs are captured.
pub(super) fn of_capture([captured, all]: [Ns; 2]) -> String {
    let (captured, all) = (duration(captured), duration(all));
    format!("capturing CUDA graphs takes {captured} of {all}: set-up, done once before launches")
}

/// A name for what a headline of this beginning has room for. Of "DataLoader at train.py:19" the place stays.
fn cut_to(name: &str, before: &str) -> String {
    let room = HEADLINE_MAX.saturating_sub(before.chars().count() + 1);
    let room = room.clamp(NAME_MIN, NAME_MAX);
    match name.rsplit_once(" at ") {
        Some((of, place)) if name.chars().count() > room => {
            let left = room.saturating_sub(place.chars().count() + 4).max(NAME_MIN);
            format!("{} at {place}", cut_name(of, left))
        }
        _ => cut_name(name, room),
    }
}

/// The rank that holds up a job, what its lateness takes of all, and the headline. `None` where nobody does for long, or
/// the profiler does.
pub(super) fn straggler(ranks: &JobAnalysis, span: Ns) -> Option<(f64, String)> {
    let late = ranks.late.first().filter(|late| !late.is_profilers())?;
    let saving = late.saving?;
    // Its collectives may lie in a small part of what is looked at.
    let cost = match late.unit {
        Stretch::Step => share(saving.now_ns - saving.without_ns, saving.now_ns),
        Stretch::Collective => share(saving.all_ns, span),
    };
    if !cases::WARNING_SHARE.is_reached_by(cost) {
        return None;
    }
    let text = cut_middle(&ranks.headline(late), HEADLINE_MAX);
    Some((cost, printable(&text)))
}

/// What a headline begins with.
pub(super) fn class(bound: Bound) -> &'static str {
    match bound {
        Bound::Host => "CPU-bound",
        Bound::Launch => "launch-bound",
        Bound::Sync => "sync-bound",
        Bound::Copy => "copy-bound",
        Bound::Compute | Bound::Memory => "GPU-bound",
        Bound::Peer => "peer-bound",
        Bound::Nothing => "no single limit",
        Bound::Unknown => "unknown",
    }
}

/// What bounds ranks that wait for each other: for most of that time, what those did that were waited for. "4 ranks, launch-bound: launching
/// 584 kernels takes 66.0 ms, the GPUs work 7 %".
pub(super) fn rooted(
    (idle, worked): &(Vec<IdleCause>, Ns),
    (split, step, launched): (&Split, Option<&StepScope>, u64),
    ranks: usize,
) -> Option<(Bound, String)> {
    let bound_of = |it: &IdleCause| it.group.bound().unwrap_or(Bound::Compute);
    let time_of = |bound| {
        let idle = idle.iter().filter(|it| bound_of(it) == bound);
        let worked = if bound == Bound::Compute { *worked } else { 0 };
        idle.map(|it| it.total_ns).sum::<Ns>() + worked
    };
    let all = worked + idle.iter().map(|it| it.total_ns).sum::<Ns>();
    let classes = [Bound::Host, Bound::Launch, Bound::Sync, Bound::Compute];
    let mut classes = classes.into_iter();
    let bound = classes.find(|it| share(time_of(*it), all) > MOST)?;
    let works = percent(share(split.computing, split.whole()));
    let why = match bound {
        Bound::Launch => {
            let kernels = counted(launched, "kernel", "kernels");
            let time = duration(step.map_or(split.span.len(), |it| it.median));
            format!("launching {kernels} takes {time}, the GPUs work {works}")
        }
        Bound::Compute => {
            let waits = percent(share(split.waiting, split.whole()));
            format!("by turns one works while others wait, {waits} of the time")
        }
        _ => {
            let of_class = idle.iter().filter(|it| bound_of(it) == bound);
            let most = of_class.max_by_key(|it| it.total_ns)?;
            let line = most.line.as_ref().map(|it| &it.place);
            let at = line.or(most.culprit.as_ref()).map(String::as_str);
            let at = at.unwrap_or("code that was not traced");
            format!("the GPUs work {works} and wait for {at}")
        }
    };
    let text = format!("{ranks} ranks, {}: {why}", class(bound));
    Some((bound, printable(&cut_middle(&text, HEADLINE_MAX))))
}

fn most<K: Copy + Eq + Hash + Ord>(by: &FxHashMap<K, Ns>) -> Option<(K, Ns)> {
    by.iter()
        .map(|(&key, &time)| (key, time))
        .max_by_key(|&(key, time)| (time, key))
}

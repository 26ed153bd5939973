//! A verdict in a line.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::split::{CpuWork, Split};
use super::{Bound, Verdict};
use crate::collectives::is_collective;
use crate::figures::share;
use crate::lines::LineShare;
use crate::ranks::JobAnalysis;
use activity::text::{cut_middle, printable};
use activity::units::{duration, factor, percent};
use activity::{Direction, NameId, Ns};
use trace::{SourceKind, Trace, short};

/// What is said in the place of a verdict of a timeline without an operation. A process that was only looked at
/// from outside may well have kept its GPU busy.
#[must_use]
pub fn nothing_ran(trace: &Trace) -> &'static str {
    let was_looked_at = || {
        let stacks = trace
            .processes()
            .iter()
            .any(|it| it.sampled.totals().looks > 0);
        stacks || trace.hardware().was_read()
    };
    match trace.source.kind {
        SourceKind::Attached => "looked at from outside: kernels and copies are not recorded",
        SourceKind::Recording if trace.health().received == 0 && was_looked_at() => {
            "looked at from outside: no kernels or copies were recorded"
        }
        _ => "nothing ran on a GPU",
    }
}

/// What takes this part of a class is named for the whole of it.
const MOST: f64 = 0.5;

/// A promise of less is none.
const FASTER_MIN: f64 = 1.05;

/// One of more is none either: what the GPU takes by itself is told instead.
const FASTER_MAX: f64 = 100.0;

/// Columns that a name takes in a sentence at most: tuned libraries name a kernel's whole configuration, in 400 characters.
pub(crate) const NAME_MAX: usize = 48;

/// What else takes this part of the time is worth a word.
const ELSE_MIN: f64 = 0.10;

/// Copies that kernels hide for less than this part of their time have nothing beside them.
const HIDDEN_MIN: f64 = 0.05;

pub(super) fn say(
    trace: &Trace,
    split: &Split,
    bound: Bound,
    part: f64,
    line: Option<&LineShare>,
    is_in_steps: bool,
    (ranks, is_whole): (Option<&JobAnalysis>, bool),
) -> String {
    let whole = if is_in_steps { "a step" } else { "the time" };
    let part = percent(part);
    let text = match bound {
        Bound::Host => format!(
            "host-bound: for {part} of {whole} the GPU waits for the host{}",
            doing(trace, split, line.is_some())
        ),
        Bound::Launch => {
            let between = match share(split.between, split.time_of(Bound::Launch)) >= MOST {
                true => format!(
                    " ({} for host work between them)",
                    percent(share(split.between, split.counted()))
                ),
                false => String::new(),
            };
            format!(
                "launch-bound: for {part} of {whole} the GPU is idle because launches do not keep up{between}"
            )
        }
        Bound::Sync => format!(
            "sync-bound: for {part} of {whole} the GPU is idle around {}",
            waits(trace, split)
        ),
        Bound::Copy => copies(split, whole, &part),
        Bound::Compute | Bound::Memory => compute(trace, split, whole, &part),
        Bound::Peer if let Some(ranks) = ranks.filter(|_| split.waits_for_ranks()) => {
            waiting(split, ranks, whole, is_whole)
        }
        Bound::Peer => peer(trace, split, whole, &part),
        Bound::Unknown => {
            format!("unknown: for {part} of {whole} the GPU is idle, and no record says why")
        }
        Bound::Nothing => nothing(split, whole),
    };
    let line = line.map_or_else(String::new, |it| format!(", then at {}", it.words()));
    let is_said = bound == Bound::Peer && split.waits_for_ranks();
    printable(&format!(
        "{text}{line}{}{}{}",
        beside(split, bound),
        at_best(split, bound),
        ranks
            .filter(|_| is_whole && !is_said)
            .map_or_else(String::new, late)
    ))
}

/// What a late rank costs all, where it is worth a word. No share of idle time has the waiting beside kernels.
fn late(ranks: &JobAnalysis) -> String {
    let costs = ranks.late.iter().filter_map(|late| {
        let saving = late.saving?;
        Some((saving.now_ns - saving.without_ns, saving.now_ns, late))
    });
    match costs.max_by_key(|it| it.0) {
        Some((time, of, late)) if share(time, of) >= ELSE_MIN => format!(
            "; {} comes late: without that {} (predicted)",
            ranks.ranks[late.rank].name,
            late.without().unwrap_or_default()
        ),
        _ => String::new(),
    }
}

/// For whom it waits in collectives, why that one is late, and what a step would take without.
fn waiting(split: &Split, ranks: &JobAnalysis, whole: &str, is_whole: bool) -> String {
    let mut text = format!(
        "peer-bound: for {} of {whole} the GPU waits in collectives for other ranks",
        percent(share(split.waiting, split.counted()))
    );
    let Some((rank, time)) = most(&split.waited_for) else {
        return text;
    };
    if share(time, split.waiting) < MOST {
        text.push_str(", for none of them most of it");
        return text;
    }
    let (name, part) = (&ranks.ranks[rank].name, percent(share(time, split.waiting)));
    text.push_str(&format!(", {part} of it for {name}"));
    // Why is said once, of all devices together.
    let late = ranks.late.iter().find(|late| late.rank == rank);
    let Some(late) = late.filter(|_| is_whole) else {
        return text;
    };
    match ranks.reason(late) {
        Some(reason) => text.push_str(&format!(" ({reason})")),
        None => text.push_str(" (why is unknown)"),
    }
    if let Some(without) = late.without() {
        text.push_str(&format!("; without its lateness {without} (predicted)"));
    }
    text
}

/// What else keeps the GPU idle for a good part of the time.
fn beside(split: &Split, bound: Bound) -> String {
    let others = [
        (Bound::Host, "host work"),
        (Bound::Launch, "launches"),
        (Bound::Sync, "waits"),
    ];
    let is_stall = bound == Bound::Unknown || others.iter().any(|o| o.0 == bound);
    let most = others
        .into_iter()
        .filter(|o| o.0 != bound)
        .map(|o| (split.time_of(o.0), o.1))
        .max();
    match most {
        Some((time, name)) if is_stall && share(time, split.counted()) >= ELSE_MIN => {
            let part = percent(share(time, split.counted()));
            format!(", for another {part} because of {name}")
        }
        _ => String::new(),
    }
}

/// How much faster the busiest engine would allow it to be.
fn at_best(split: &Split, bound: Bound) -> String {
    let faster = split.span.len() as f64 / split.ideal.max(1) as f64;
    let is_telling = matches!(
        bound,
        Bound::Host | Bound::Launch | Bound::Sync | Bound::Peer | Bound::Copy | Bound::Nothing
    );
    // The least that it could take has the waiting in it, inside the collectives' kernels.
    let is_telling = is_telling && !(bound == Bound::Peer && split.waits_for_ranks());
    if is_telling && split.ideal > 0 && faster >= FASTER_MAX {
        let (ideal, span) = (duration(split.ideal), duration(split.span.len()));
        format!("; the GPU by itself needs {ideal} of {span}")
    } else if is_telling && split.ideal > 0 && faster >= FASTER_MIN {
        format!("; at best {} faster", factor(faster))
    } else {
        String::new()
    }
}

/// What the host was in, as tables call it, too: a call, an operator, a range. These have no parameters to be left out
/// (`enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__`).
pub(crate) fn of_host(trace: &Trace, name: NameId) -> String {
    cut_middle(trace.names().full(name), NAME_MAX)
}

/// What the host did. Where no line is known either, that what it did outside CUDA is in no record is said.
fn doing(trace: &Trace, split: &Split, has_line: bool) -> String {
    let Some((what, time)) = most(&split.host_by) else {
        return String::new();
    };
    if share(time, split.time_of(Bound::Host)) < MOST {
        return String::new();
    }
    let (name, load) = match what {
        CpuWork::Name(name) => (of_host(trace, name), false),
        CpuWork::Load => ("loading GPU code".to_owned(), true),
        CpuWork::Untraced if has_line => ("outside CUDA".to_owned(), true),
        CpuWork::Untraced => ("outside CUDA, in code that was not traced".to_owned(), true),
    };
    let inside = if load { "" } else { "in " };
    format!(
        ", {} of it {inside}{name}",
        percent(share(time, split.time_of(Bound::Host)))
    )
}

fn waits(trace: &Trace, split: &Split) -> String {
    let name = most(&split.sync_by).map(|(name, _)| trace.names().short(name).to_owned());
    let number = activity::text::counted(split.syncs, "wait of the host", "waits of the host");
    match name {
        Some(name) => format!("{number}, {name} most"),
        None => number,
    }
}

fn copies(split: &Split, whole: &str, part: &str) -> String {
    let mut by: Vec<(Ns, Direction)> = split
        .directions
        .iter()
        .copied()
        .zip(Direction::NAMED)
        .filter(|d| d.0 > 0)
        .collect();
    by.sort_by_key(|d| std::cmp::Reverse(d.0));
    // What staging adds has no direction of its own.
    let names: Vec<String> = by
        .iter()
        .filter(|d| share(d.0, by[0].0) >= 0.1)
        .map(|d| format!("{} {}", d.1.label(), percent(share(d.0, split.counted()))))
        .collect();
    let hidden = share(split.both, split.copying);
    let beside = if hidden < HIDDEN_MIN {
        ", nothing beside it".to_owned()
    } else {
        format!(", kernels beside {} of it", percent(hidden))
    };
    match names.as_slice() {
        [] => format!("copy-bound: {part} of {whole} goes to copies"),
        names => format!("copy-bound: {}{beside}", names.join(", ")),
    }
}

fn peer(trace: &Trace, split: &Split, whole: &str, part: &str) -> String {
    if 2 * split.collective < split.time_of(Bound::Peer) {
        return format!(
            "peer-bound: {part} of {whole} goes to copies between GPUs and waits for them"
        );
    }
    let is_collective = |name: &NameId| is_collective(trace.names().full(*name));
    let collectives = split.kernels.iter().filter(|(name, _)| is_collective(name));
    let most = collectives.max_by_key(|&(name, time)| (*time, *name));
    let name = most.map_or_else(String::new, |(&name, _)| {
        let name = short::short(trace.names().full(name));
        format!(", {} most", cut_middle(&name, NAME_MAX))
    });
    format!(
        "communication-bound: for {part} of {whole} GPUs exchange data, or wait for each other to, with nothing beside it{name}"
    )
}

fn compute(trace: &Trace, split: &Split, whole: &str, part: &str) -> String {
    let all: Ns = split.kernels.values().sum();
    match most(&split.kernels) {
        Some((name, time)) => {
            let name = cut_middle(&short::short(trace.names().full(name)), NAME_MAX);
            // Kernels beside each other: the part of all kernel time is what can be said of one.
            let of_kernel = share(time, all) * share(split.computing, split.counted());
            let computing = percent(share(split.computing, split.counted()));
            let of_kernel = percent(of_kernel);
            if computing == of_kernel {
                format!("GPU-bound: {of_kernel} of {whole} in {name}")
            } else {
                format!("GPU-bound: kernels run for {computing} of {whole}, {of_kernel} in {name}")
            }
        }
        None => format!("GPU-bound: {part} of {whole} goes to memsets"),
    }
}

fn nothing(split: &Split, whole: &str) -> String {
    let idle = split.sum
        - split.time_of(Bound::Compute)
        - split.time_of(Bound::Copy)
        - split.time_of(Bound::Peer);
    format!(
        "bound by nothing in particular: of {whole} {} compute, {} copies, {} idle",
        percent(share(split.time_of(Bound::Compute), split.sum)),
        percent(share(
            split.time_of(Bound::Copy) + split.time_of(Bound::Peer),
            split.sum
        )),
        percent(share(idle, split.sum)),
    )
}

fn most<K: Copy + Eq + Hash + Ord>(by: &FxHashMap<K, Ns>) -> Option<(K, Ns)> {
    by.iter()
        .map(|(&key, &time)| (key, time))
        .max_by_key(|&(key, time)| (time, key))
}

impl Verdict {
    /// The device that it is about and the line, for a list.
    #[must_use]
    pub fn line(&self) -> String {
        match self.device {
            Some(device) => format!("GPU {device}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

//! Launches, copies and syncs that returned an error: what they were to do is missing.

use super::DeviceFigures;
use activity::text::counted;
use activity::{Ns, What};
use causes::graph::{CallId, CallKind, Graph};
use rustc_hash::FxHashMap;
use trace::Trace;

/// Nothing failed, or a driver that is let go at the end of the program (4, 709), or work that is not done yet (600).
const NO_FAULTS: [i32; 4] = [0, 4, 600, 709];

const CRASHED: &str = "calls after a crash";

const ALLOCATIONS: &str = "allocations";

/// What is said where no kernel was launched.
pub const NO_LAUNCH: &str = "no kernel was launched: see what the program printed";

/// Whether the launch of a kernel or a graph returned no error.
pub fn has_launched(trace: &Trace) -> bool {
    let launches = |name: &str| match CallKind::of(name) {
        CallKind::Launch => !name.contains("HostFunc"),
        kind => kind == CallKind::GraphLaunch,
    };
    let is_one = |what: What| matches!(what, What::Call(of) if of.code == 0 && launches(trace.names().full(of.name)));
    trace
        .threads()
        .any(|(id, lane, _)| lane.kept().any(|row| is_one(trace.what(id, row))))
}

/// Whether a program's calls were recorded, and none launched anything.
pub fn launches_nothing(trace: &Trace) -> bool {
    trace.threads().next().is_some() && !has_launched(trace)
}

/// How many copies a program made, where these few are all that it did, and it launched nothing. Most likely it failed behind them:
/// their speed is not what matters.
pub fn ended_early(trace: &Trace, devices: &[DeviceFigures]) -> Option<u64> {
    let copies: u64 = devices.iter().map(|f| f.h2d.count + f.d2h.count).sum();
    let are_few = devices.iter().all(|f| f.kernels == 0) && (1..=FEW).contains(&copies);
    // Who copies for long does that for its own sake.
    let are_short = devices.iter().all(|f| f.copy_ns <= SHORT_NS);
    (are_few && are_short && launches_nothing(trace)).then_some(copies)
}

/// All copies of such a program take no longer: 100 MB at 10 GB/s.
const SHORT_NS: Ns = 10_000_000;

/// A program that copies so often at most does nothing again and again.
const FEW: u64 = 4;

/// Calls of one kind of which some failed.
pub struct Failed {
    pub calls: Vec<CallId>,
    of: usize,
    /// What the first one returned.
    code: i32,
    kind: &'static str,
    /// Whether their process launched and copied nothing behind them.
    is_last: bool,
    /// Whether nothing was launched at all.
    is_alone: bool,
    /// Allocations before them for which no memory was left: what came of them is missing, too.
    starved: usize,
}

impl Failed {
    /// Calls behind a kernel that crashed; else launches, copies, memsets or syncs; else allocations that ended the program.
    pub fn of(trace: &Trace, graph: &Graph) -> Option<Failed> {
        if !graph.calls.has_failed {
            return None;
        }
        let returned = |call: CallId| {
            let (lane, row) = graph.calls.at(call);
            match trace.what(lane, row) {
                What::Call(it) => (it.code, it.name),
                _ => (0, 0),
            }
        };
        let returned = |call: CallId| match graph.calls.failed_within.get(&call) {
            Some(&code) => (code, returned(call).1),
            None => returned(call),
        };
        let last = last_work(trace, graph, |call| returned(call).0 == 0);
        let is_last = |call: CallId| {
            let last = last.get(&graph.process(trace, call));
            last.is_none_or(|&last| last < call)
        };
        let kind = |call: CallId| {
            let (code, name) = returned(call);
            match graph.calls.kind[call as usize] {
                // Behind a crash each call returns this, whatever it was to do.
                _ if matches!(code, 700 | 702 | 710 | 714..=719) => CRASHED,
                CallKind::Launch | CallKind::GraphLaunch => "launches",
                // A prefetch that is refused costs time, and no result.
                CallKind::Copy if trace.names().full(name).contains("Prefetch") => "",
                CallKind::Copy if trace.names().full(name).contains("emset") => "memsets",
                CallKind::Copy => "copies",
                // Who finds none may do with less, or give some back.
                CallKind::Memory if code == 2 && is_last(call) => ALLOCATIONS,
                CallKind::Memory if code == 0 && !trace.names().full(name).contains("Free") => {
                    ALLOCATIONS
                }
                // At the end of a program a library may wait without a context.
                kind if kind.is_wait() && code != 201 => "syncs",
                _ => "",
            }
        };
        let all = 0..graph.calls.len() as CallId;
        let is_failed = |&call: &CallId| !NO_FAULTS.contains(&returned(call).0);
        let failed: Vec<CallId> = all.clone().filter(is_failed).collect();
        let kinds = [
            CRASHED,
            "launches",
            "copies",
            "memsets",
            "syncs",
            ALLOCATIONS,
        ];
        kinds.into_iter().find_map(|of_kind| {
            let is_it = |call: &CallId| kind(*call) == of_kind;
            let calls: Vec<CallId> = failed.iter().copied().filter(is_it).collect();
            let first = *calls.first()?;
            let code = returned(first).0;
            let before = failed.iter().take_while(|call| **call < first);
            let is_starved = |call: &&CallId| {
                graph.calls.kind[**call as usize] == CallKind::Memory && returned(**call).0 == 2
            };
            Some(Failed {
                is_last: calls.iter().all(|&it| is_last(it)),
                is_alone: !has_launched(trace),
                starved: match of_kind {
                    ALLOCATIONS => 0,
                    _ => before.filter(is_starved).count(),
                },
                calls,
                of: all.clone().filter(is_it).count(),
                code,
                kind: of_kind,
            })
        })
    }

    /// Whether what ran is not what the program is: a kernel crashed, some were never launched, or it ended there.
    pub fn is_fatal(&self) -> bool {
        let is_end = self.is_last && (self.kind == ALLOCATIONS || self.calls.len() == self.of);
        matches!(self.kind, CRASHED | "launches") || is_end
    }

    /// Whether no kernel can have run.
    pub fn is_all(&self) -> bool {
        let is_all = self.kind == "launches" && self.calls.len() == self.of;
        is_all || self.kind == ALLOCATIONS && self.is_alone
    }

    /// "21 of 21 launches failed (error 222: PTX too new for the driver)".
    pub fn text(&self) -> String {
        let Failed { of, code, kind, .. } = self;
        let why = match code {
            1 => ": an argument is not valid",
            2 => ": out of memory",
            209 => ": built for other GPUs",
            222 => ": PTX too new for the driver",
            700 => ": illegal memory access",
            710 => ": an assertion failed",
            _ => "",
        };
        let failed = self.calls.len();
        let first = match self.starved {
            0 => String::new(),
            many => {
                let starved = counted(many as u64, "allocation", "allocations");
                format!("{starved} found no memory (error 2), then ")
            }
        };
        match *kind {
            CRASHED => format!("{first}a kernel crashed (error {code}{why})"),
            _ => format!("{first}{failed} of {of} {kind} failed (error {code}{why})"),
        }
    }
}

/// By process, its last call that launched, copied or took memory without an error.
fn last_work(
    trace: &Trace,
    graph: &Graph,
    went_well: impl Fn(CallId) -> bool,
) -> FxHashMap<usize, CallId> {
    let works = |call: &CallId| {
        let kind = graph.calls.kind[*call as usize];
        let frees = || graph.function(trace, *call).contains("Free");
        kind.is_launch() || kind == CallKind::Copy || kind == CallKind::Memory && !frees()
    };
    let all = (0..graph.calls.len() as CallId).filter(|it| works(it) && went_well(*it));
    all.map(|it| (graph.process(trace, it), it)).collect()
}

//! Launches, copies and syncs that returned an error: what they were to do is missing.

use super::{Finding, Occurrence, Scope, Severity};
use crate::graph::{CallId, CallKind, Graph};
use activity::What;
use trace::Trace;

/// Nothing failed, or a driver or context is let go at the end of the program (4, 201, 709), or work is not done (600).
const NO_FAULTS: [i32; 5] = [0, 4, 201, 600, 709];

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let failed = Failed::of(scope.trace, scope.causes.graph())?;
    let (text, calls) = (failed.text(), failed.calls.iter());
    let at = calls.map(|&call| Occurrence::Row(scope.causes.graph().calls.at(call)));
    Some(Finding {
        severity: Severity::Warning,
        title: format!("{text}: results are missing or wrong"),
        advice:
            "Check what every call returns; cudaGetErrorString says what the first error means."
                .to_owned(),
        // Where nothing else ran it is the headline.
        gain: (!failed.is_all()).then_some(text),
        ..scope.found(0, 0, &at.collect::<Vec<_>>())
    })
}

/// Calls of one kind of which some failed.
pub(crate) struct Failed {
    calls: Vec<CallId>,
    of: usize,
    /// What the first one returned.
    code: i32,
    kind: &'static str,
}

impl Failed {
    /// Launches, else copies, else syncs.
    pub(crate) fn of(trace: &Trace, graph: &Graph) -> Option<Failed> {
        let code = |call: &CallId| {
            let (lane, row) = graph.calls.at(*call);
            match trace.activity(lane, row).what {
                What::Call(it) if !NO_FAULTS.contains(&it.code) => Some(it.code),
                _ => None,
            }
        };
        let name = |call: CallId| match graph.calls.kind[call as usize] {
            CallKind::Launch | CallKind::GraphLaunch => "launches",
            CallKind::Copy => "copies",
            kind if kind.is_wait() => "syncs",
            _ => "",
        };
        ["launches", "copies", "syncs"]
            .into_iter()
            .find_map(|kind| {
                let all = 0..graph.calls.len() as CallId;
                let all = all.filter(|&call| name(call) == kind);
                let calls: Vec<CallId> = all.clone().filter(|call| code(call).is_some()).collect();
                let code = code(calls.first()?)?;
                let of = all.count();
                Some(Failed {
                    calls,
                    of,
                    code,
                    kind,
                })
            })
    }

    /// Whether no kernel can have run.
    pub(crate) fn is_all(&self) -> bool {
        self.kind == "launches" && self.calls.len() == self.of
    }

    /// "21 of 21 launches failed (error 222: PTX too new for the driver)".
    pub(crate) fn text(&self) -> String {
        let Failed { of, code, kind, .. } = self;
        let why = match code {
            2 => ": out of memory",
            209 => ": built for other GPUs",
            222 => ": PTX too new for the driver",
            700 => ": illegal memory access",
            _ => "",
        };
        let failed = self.calls.len();
        format!("{failed} of {of} {kind} failed (error {code}{why})")
    }
}

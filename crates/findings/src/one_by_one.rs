//! Small kernels that a loop over many tensors launches, for one tensor after the other.

use rustc_hash::FxHashMap;

use super::limits::{full, launched_at};
use super::{Change, DeviceFigures, Finding, Scope, configs};
use ::program::Framework;
use activity::units::percent;
use activity::{LaunchShape, Ns};
use figures::rows::is_elementwise;
use figures::rows_of_tensors;

/// A loop that launches much.
pub(super) struct Loop {
    /// Its part of the kernels.
    part: f64,
    /// What these take.
    time: Ns,
    told: String,
    change: Vec<Change>,
}

impl Loop {
    /// Whether most launches go with it: no graph is needed for that.
    pub(super) fn is_most(&self) -> bool {
        2.0 * self.part > 1.0
    }

    /// Adds what to do about it to what launches leave idle for so long.
    pub(super) fn add_to(self, of: Finding, idle: Ns) -> Finding {
        if !self.is_most() {
            let change = of.change.into_iter().chain(self.change).collect();
            let advice = of.advice + &self.told;
            return Finding {
                advice,
                change,
                ..of
            };
        }
        Finding {
            advice: format!(
                "Launch once for all tensors, and then in a CUDA graph.{}",
                self.told
            ),
            change: self.change,
            // One kernel for all of them takes less, too.
            bound_ns: (self.part * idle as f64) as Ns + self.time,
            beside_ns: 0,
            cure: "one call for all tensors",
            ..of
        }
    }
}

/// `None` where no such loop launches much.
pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Loop> {
    if scope.framework() != Framework::PyTorch {
        return None;
    }
    let of = configs::of_device(scope, f).iter();
    let of = of.filter(|it| {
        let name = full(scope, it);
        is_elementwise(name) || name.contains(rows_of_tensors::NORM)
    });
    let known: FxHashMap<_, LaunchShape> = of.map(|it| (it.id, it.shape)).collect();
    let (all, joined) =
        rows_of_tensors::find(scope.trace, f.index, scope.window_on(f.index), &known);
    let part = all.len() as f64 / f.kernels.max(1) as f64;
    if !cases::OPTIMIZER_SHARE.is_reached_by(part) {
        return None;
    }
    let line = launched_at(scope, &all).telling(scope.trace);
    let at = line.as_ref();
    let at = at.map_or_else(String::new, |it| format!(", launched at {}", it.place));
    let (what, cure, change) = match 2 * joined > all.len() {
        true => (
            "one piece",
            ". Joined they are one tensor all the same: do it once for all of it (indices, torch.vmap), without the Python loop.",
            "try torch.vmap: over all pieces at once",
        ),
        false => (
            "one tensor",
            ": torch._foreach_ functions take a list of all.",
            "try torch._foreach_ functions: a list of all tensors",
        ),
    };
    let whose = percent(part);
    let time = all.iter().map(|it| scope.trace.lanes()[it.0].span(it.1));
    Some(Loop {
        part,
        time: time.map(|it| it.len()).sum(),
        told: format!(" {whose} of the kernels do the same to {what} after the other{at}{cure}"),
        change: scope.changes(change, line.as_ref()),
    })
}

//! Small kernels that a loop over many tensors launches, for one tensor after the other.

use rustc_hash::FxHashMap;

use super::limits::{full, is_elementwise, launched_at};
use super::{Change, DeviceFigures, Scope, configs};
use ::program::Framework;
use activity::LaunchShape;
use activity::units::percent;
use figures::rows_of_tensors;

/// A loop that launches much.
pub(super) struct Loop {
    /// Its part of the kernels.
    pub part: f64,
    /// What to do, behind other advice.
    pub told: String,
    pub change: Vec<Change>,
}

/// `None` where no such loop launches much.
pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Loop> {
    if scope.framework() != Framework::PyTorch {
        return None;
    }
    let of = configs::of_device(scope, f).iter();
    let of = of.filter(|it| {
        let name = full(scope, it);
        is_elementwise(name) || name.contains("reduce_kernel")
    });
    let known: FxHashMap<_, LaunchShape> = of.map(|it| (it.id, it.shape)).collect();
    let all = rows_of_tensors::find(scope.trace, f.index, scope.window_on(f.index), &known);
    let part = all.len() as f64 / f.kernels.max(1) as f64;
    if !cases::OPTIMIZER_SHARE.is_reached_by(part) {
        return None;
    }
    let line = launched_at(scope, &all).telling(scope.trace);
    let at = line.as_ref();
    let at = at.map_or_else(String::new, |it| format!(", launched at {}", it.place));
    let change = "try torch._foreach_ functions: a list of all tensors";
    Some(Loop {
        part,
        told: format!(
            " {} of the kernels do the same to one tensor after the other{at}: torch._foreach_ functions take a list of all.",
            percent(part)
        ),
        change: scope.changes(change, line.as_ref()),
    })
}

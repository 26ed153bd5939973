//! Elementwise kernels that a loop over many tensors launches, for one tensor after the other.

use rustc_hash::{FxHashMap, FxHashSet};

use super::limits::{full, is_elementwise, launched_at};
use super::scope::At;
use super::{Change, DeviceFigures, Scope, configs};
use ::program::Framework;
use activity::units::percent;
use activity::{LaunchShape, What};

/// A loop does the same few things to each tensor: so many kernels, of other forms for some sizes.
const NAMES_MAX: usize = 4;
/// And what lies around it is next to nothing of the row.
const SAME: f64 = 0.9;
/// Tensors of so many sizes are different ones.
const SIZES_MIN: usize = 3;

/// What to do beside launching less often, and the change; `None` where no such loop launches much.
pub(super) fn told(scope: &Scope, f: &DeviceFigures) -> Option<(String, Vec<Change>)> {
    if scope.framework() != Framework::PyTorch {
        return None;
    }
    let all = in_loops(scope, f);
    let part = all.len() as f64 / f.kernels.max(1) as f64;
    if !cases::OPTIMIZER_SHARE.is_reached_by(part) {
        return None;
    }
    let line = launched_at(scope, &all).telling(scope.trace);
    let at = line.as_ref();
    let at = at.map_or_else(String::new, |it| format!(", launched at {}", it.place));
    let told = format!(
        " {} of the kernels do the same to one tensor after the other{at}: torch._foreach_ functions take a list of all.",
        percent(part)
    );
    let change = "try torch._foreach_ functions: a list of all tensors";
    Some((told, scope.changes(change, line.as_ref())))
}

/// Kernels in long rows of few names and several sizes, on one stream.
fn in_loops(scope: &Scope, f: &DeviceFigures) -> Vec<At> {
    let of = configs::of_device(scope, f).iter();
    let of = of.filter(|it| is_elementwise(full(scope, it)));
    let known: FxHashMap<_, LaunchShape> = of.map(|it| (it.id, it.shape)).collect();
    let mut all = Vec::new();
    for (lane, _) in scope.trace.streams_of(f.index) {
        let mut row = Vec::new();
        for (at, activity) in scope.trace.activities(lane, scope.rows(lane)) {
            let shape = match activity.what {
                What::Kernel(it) => known.get(&it.shape),
                _ => None,
            };
            match shape {
                Some(shape) => row.push(((lane, at), *shape)),
                None => end(&mut row, &mut all),
            }
        }
        end(&mut row, &mut all);
    }
    all
}

/// Takes the kernels of a row where a loop over tensors made it.
fn end(row: &mut Vec<(At, LaunchShape)>, all: &mut Vec<At>) {
    if cases::MANY_LAUNCHES.is_reached_by(row.len()) {
        let mut names: FxHashMap<_, usize> = FxHashMap::default();
        row.iter()
            .for_each(|it| *names.entry(it.1.name).or_default() += 1);
        let mut counts: Vec<usize> = names.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let most: usize = counts.iter().take(NAMES_MAX).sum();
        let sizes: FxHashSet<[u32; 3]> = row.iter().map(|it| it.1.grid).collect();
        let is_one = cases::ONE_SIZE.holds(sizes.len() < SIZES_MIN);
        if most as f64 >= SAME * row.len() as f64 && !is_one {
            all.extend(row.iter().map(|it| it.0));
        }
    }
    row.clear();
}

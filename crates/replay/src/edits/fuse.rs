//! `fuse`: neighbouring kernels of a stream become one.

use super::{Bound, Editing, names};
use crate::program::NONE;
use activity::{Ns, What, occupancy};
use causes::graph::Engine;

/// Kernels behind one another with no wait of the host between them. Every kernel keeps what its bytes take; with
/// `once` those of one size take the longest one's time. What the thread did between the launches goes with them. It is
/// not known how much of it the one launch still needs. Within the range that the edit is limited to, the same is true
/// of the work around it.
pub(super) fn fuse(on: &mut Editing<'_, '_>, once: bool) -> Result<(), String> {
    let fixed = fixed(on);
    let mut differ = false;
    let calls = on.applied.count;
    for list in on.streams() {
        let mut run: Vec<u32> = Vec::new();
        for &op in &list {
            let is_kernel = on.program.ops[op as usize].engine == Engine::Compute
                && matches!(on.what(op), What::Kernel(_))
                && on.has_op(op);
            let follows = run
                .last()
                .is_some_and(|&before| is_kernel && may_follow(on, before, op));
            let is_alike = !once
                || run
                    .last()
                    .is_none_or(|&before| threads(on, before) == threads(on, op));
            differ |= follows && !is_alike;
            if !(follows && is_alike) {
                one_of(on, &run, fixed, once);
                run.clear();
            }
            if is_kernel {
                run.push(op);
            }
        }
        one_of(on, &run, fixed, once);
    }
    if on.applied.count > calls {
        if on.scene.bound == Bound::Least {
            names::without_work(on);
        }
        on.applied
            .unknown("CPU work between the fused launches: assumed to disappear, may stay");
    }
    if once && on.applied.count == 0 && differ {
        return Err(
            "neighbouring kernels differ in size, so the data that they share is unknown; use `fuse` instead of `fuse:once`"
                .to_owned(),
        );
    }
    if once {
        on.applied
            .note("assumes that fused kernels share their data: together they take as long as the longest one");
    }
    Ok(())
}

/// What an empty kernel takes: as known of the GPU, else no more than the shortest one seen.
fn fixed(on: &Editing<'_, '_>) -> Ns {
    let ops = on.program.ops.iter();
    let kernels = ops.filter(|op| op.engine == Engine::Compute);
    let least = kernels.map(|op| op.time).min().unwrap_or(0);
    let fixed = on.program.known.kernel_fixed;
    fixed.map_or(0, |known| known.min(least))
}

fn threads(on: &Editing<'_, '_>, op: u32) -> u64 {
    match on.what(op) {
        What::Kernel(kernel) => {
            let shape = on.scene.trace.shape(kernel.shape);
            occupancy::product(shape.grid).saturating_mul(occupancy::product(shape.block))
        }
        _ => 0,
    }
}

fn may_follow(on: &Editing<'_, '_>, before: u32, op: u32) -> bool {
    let (from, to) = (
        on.program.ops[before as usize].call,
        on.program.ops[op as usize].call,
    );
    if from == NONE || to == NONE || to < from {
        return false;
    }
    let lane = on.program.lane(to);
    let waits = |c: u32| {
        let call = &on.program.calls[c as usize];
        on.program.lane(c) == lane && !call.waits.is_empty() && !call.is_gone
    };
    on.program.lane(from) == lane
        && !on.is_step_between(on.program.issued(before), on.program.issued(op))
        && !(from..to).any(waits)
}

fn one_of(on: &mut Editing<'_, '_>, run: &[u32], fixed: Ns, once: bool) {
    let [first, rest @ ..] = run else { return };
    if rest.is_empty() {
        return;
    }
    let times = run.iter().map(|&op| on.program.ops[op as usize].time);
    let time = if once {
        times.max().unwrap_or(0)
    } else {
        times.sum::<Ns>() - fixed * rest.len() as Ns
    };
    on.program.ops[*first as usize].time = time.max(0);
    for &op in rest {
        on.program.ops[op as usize].is_gone = true;
    }
    on.join_calls(run, on.scene.bound == Bound::Most);
}

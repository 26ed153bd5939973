//! Arrays that go down behind each kernel and up again at once, before the CPU can have changed them. Gradients that go down to tensors
//! which might be on the GPU.

use super::pageable::Staged;
use super::{DeviceFigures, Finding, Rule, Scope, longest_first};
use ::program::is_of_region;
use activity::text::counted;
use activity::units::{bytes, duration, percent};
use causes::{Gap, Piece};
use figures::trips::{self, Kept};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let all = [arrays, gradients, parked];
    all.into_iter().find_map(|it| it(scope, f))
}

/// Arrays that are kept in the CPU's memory and come up again as they were, though nobody there goes through them.
fn parked(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let kept = Kept::of(scope.copies(f).iter());
    let exposed = f.busy_ns - f.compute_ns;
    if !kept.grows()
        || !cases::LARGE_SHARE.is_reached_by(f.part(exposed))
        || trips::may_go_through(scope.causes.graph(), f.span, kept.moved)
    {
        return None;
    }
    let found = scope.found(f.span_ns, exposed, &longest_first(kept.at));
    Some(Finding {
        title: format!(
            "offloading: {} go to the CPU's memory and come back as they were, in {}; both ways take {} ({}) with nothing beside them",
            bytes(kept.moved),
            counted(found.count, "copy up", "copies up"),
            duration(exposed),
            percent(f.part(exposed)),
        ),
        advice: "Where the GPU's memory has room, keep them there: leave the offloading out."
            .to_owned(),
        cure: "keeping arrays on the GPU",
        change: scope.change("parked", None),
        instead_of: &[Rule::NoOverlap, Rule::PageableCopy],
        ..found
    })
}

/// Gradients that go back each time to tensors on the CPU, which adds them while the GPU waits.
fn gradients(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let copies = Staged::of(scope, f, None, true);
    if copies.at.is_empty() {
        return None;
    }
    let is_behind = |gap: &Gap, piece: &Piece| {
        copies.ends.contains(&gap.span.start) && piece.cause.is_of_host()
    };
    let adding = scope.idle_that(f, is_behind);
    let bound = copies.time + copies.idle(scope, f) + adding;
    if !cases::WORTH_SHARE.is_reached_by(f.part(bound)) {
        return None;
    }
    let found = scope.found(f.span_ns, bound, &longest_first(copies.at));
    Some(Finding {
        title: format!(
            "{} back to tensors on the CPU: {} in {}, and the GPU is idle for {} behind them",
            counted(found.count, "gradient goes", "gradients go"),
            bytes(copies.moved),
            duration(copies.time),
            duration(adding),
        ),
        advice: "The tensors that autograd makes gradients of lie on the CPU: make them on the GPU. Pinning does not reach what autograd allocates."
            .to_owned(),
        cure: "making the tensors on the GPU",
        change: scope.change("leaf", None),
        instead_of: &[Rule::NoOverlap],
        ..found
    })
}

fn arrays(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !scope.has_name(is_of_region) {
        return None;
    }
    let it = trips::of_regions(
        scope.trace,
        scope.causes.graph(),
        (f.index, f.span),
        is_of_region,
    );
    let is_loop = cases::FEW_WAITS_MIN.is_reached_by(it.at.len()) && 2 * it.moved >= it.all;
    let time = it.time;
    if !is_loop || !cases::LARGE_SHARE.is_reached_by(f.part(time)) {
        return None;
    }
    let found = scope.found(f.span_ns, time, &longest_first(it.at));
    Some(Finding {
        title: format!(
            "{} that came down go up again at once, in {} copies: both ways take {} ({})",
            bytes(it.moved),
            found.count,
            duration(time),
            percent(f.part(time)),
        ),
        advice:
            "The compiler copies arrays around each region: keep them on the GPU for all rounds."
                .to_owned(),
        change: scope.change("data-region", None),
        // What stays on the GPU need not be pinned.
        instead_of: match 2 * time >= f.copy_ns {
            true => &[Rule::PageableCopy],
            false => &[],
        },
        ..found
    })
}

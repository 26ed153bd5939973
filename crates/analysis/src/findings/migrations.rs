//! Managed memory that the driver moves when it is touched.

use super::{DeviceFigures, Finding, Occurrence, Scope, longest_first, thresholds};
use crate::tables;
use activity::units::{bytes, count, duration};
use activity::{Direction, Place as On, What};

/// Whether an operation is the driver's own, which no call asked for.
pub(super) fn is_migration(what: &What) -> bool {
    what.place()
        .is_some_and(|place| place.stream == On::NO_STREAM)
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let copies = scope.copies(f).iter();
    let copies = || {
        copies
            .clone()
            .filter(|it| it.2.place.stream == On::NO_STREAM)
    };
    let at: Vec<_> = copies()
        .map(|it| (it.1.len(), Occurrence::Row(it.0)))
        .collect();
    let moved: u64 = copies().map(|it| it.2.bytes).sum();
    let time = tables::union(copies().map(|it| it.1).collect());
    let of = |way| copies().filter(|it| it.2.direction == way).count() as u64;
    let is_worth = f.part(time) >= thresholds::WORTH_SHARE;
    if (at.len() as u64) < thresholds::LOOP_MIN || !is_worth {
        return None;
    }
    Some(Finding {
        title: format!(
            "managed memory moved {} times to the GPU and {} times back: {} in {}",
            count(of(Direction::H2D)),
            count(of(Direction::D2H)),
            bytes(moved),
            duration(time),
        ),
        advice: "Prefetch it in large pieces (cudaMemPrefetchAsync, cudaMemAdvise), or use device memory and explicit copies."
            .to_owned(),
        ..scope.found(f.span_ns, time, &longest_first(at))
    })
}

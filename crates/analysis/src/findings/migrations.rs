//! Managed memory that the driver moves when it is touched.

use super::{DeviceFigures, Finding, Occurrence, Scope, longest_first, thresholds};
use crate::{figures, tables};
use activity::units::{bytes, count, duration};
use activity::{Direction, Ns, Place as On, Span, What};

/// Whether an operation is the driver's own, which no call asked for.
pub(super) fn is_migration(what: &What) -> bool {
    what.place()
        .is_some_and(|place| place.stream == On::NO_STREAM)
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let mut at: Vec<(Ns, Occurrence)> = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    let (mut moved, mut up, mut down) = (0u64, 0u64, 0u64);
    for &(place, span, copy) in scope.copies(f) {
        if copy.place.stream == On::NO_STREAM {
            moved += copy.bytes;
            match copy.direction {
                Direction::H2D => up += 1,
                Direction::D2H => down += 1,
                _ => {}
            }
            spans.push(span);
            at.push((span.len(), Occurrence::Row(place)));
        }
    }
    let time = tables::union(spans);
    let is_worth = figures::share(time, f.recorded_ns()) >= thresholds::WORTH_SHARE;
    if (at.len() as u64) < thresholds::LOOP_MIN || !is_worth {
        return None;
    }
    Some(Finding {
        title: format!(
            "managed memory moved {} times to the GPU and {} times back: {} in {}",
            count(up),
            count(down),
            bytes(moved),
            duration(time),
        ),
        advice: "Prefetch it in large pieces (cudaMemPrefetchAsync, cudaMemAdvise), or use device memory and explicit copies."
            .to_owned(),
        ..scope.found(f.span_ns, time, &longest_first(at))
    })
}

//! The GPU copies most of the time, and hardly computes at all.

use super::{Finding, Occurrence, Scope, thresholds};
use crate::{figures, tables};
use activity::units::{duration, percent};
use activity::{Direction, MemoryKind, What};

pub(super) fn check(scope: &Scope, device: usize) -> Option<Finding> {
    let f = &scope.devices[device];
    let alone = f.copy_ns - f.overlap_ns;
    // Without kernels copying is the work. Where kernels take their part, what is missing is overlap.
    let is_bound = figures::share(alone, f.recorded_ns()) >= thresholds::COPY_SHARE;
    let computes = figures::share(f.compute_ns, f.recorded_ns()) >= thresholds::ENGINE_SHARE;
    // Copies of pageable memory have a cure of their own.
    let pageable = scope.operations(f).filter_map(|(_, a)| match a.what {
        What::Copy(c) if [c.from, c.to].contains(&MemoryKind::Pageable) => Some(a.span),
        _ => None,
    });
    let is_pageable = tables::union(pageable.collect()) * 2 >= alone;
    if f.kernels == 0 || computes || !is_bound || is_pageable {
        return None;
    }
    let busiest = |d: &Direction| f.direction(*d).map_or(0, |d| d.busy_ns);
    let direction = Direction::NAMED.into_iter().max_by_key(busiest)?;
    let mut at: Vec<_> = scope
        .operations(f)
        .filter(|(_, a)| matches!(a.what, What::Copy(c) if c.direction == direction))
        .map(|(place, a)| (a.span.len(), place))
        .collect();
    at.sort_by_key(|&(length, place)| (std::cmp::Reverse(length), place));
    let at: Vec<Occurrence> = at
        .into_iter()
        .map(|(_, place)| Occurrence::Row(place))
        .collect();
    Some(Finding {
        title: format!(
            "copies run without kernels for {} ({}); {} copies are busy {} of the time",
            duration(alone),
            percent(figures::share(alone, f.recorded_ns())),
            direction.label(),
            percent(figures::share(busiest(&direction), f.recorded_ns())),
        ),
        advice: "Copy less: keep data on the GPU, copy reused data once, use a smaller data type."
            .to_owned(),
        ..scope.found(f.span_ns, alone, &at)
    })
}

//! Large copies that stay under what the link was calibrated to carry.

use super::{DeviceFigures, Finding, Occurrence, Scope, thresholds};
use crate::{figures, tables};
use activity::units::{percent, rate};
use activity::{Direction, MemoryKind, Ns, Span};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let directions = [Direction::H2D, Direction::D2H, Direction::P2P];
    let found = directions.into_iter().filter_map(|d| slow(scope, f, d));
    found.max_by_key(|f| f.bound_ns)
}

fn slow(scope: &Scope, f: &DeviceFigures, direction: Direction) -> Option<Finding> {
    let peak = scope.peaks.rate(direction)?;
    let mut at = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    let mut moved = 0u64;
    for &(place, span, copy) in scope.copies(f) {
        // Pageable copies have a rule of their own.
        let is_pageable = [copy.from, copy.to].contains(&MemoryKind::Pageable);
        if copy.direction == direction && copy.bytes >= thresholds::LARGE_BYTES && !is_pageable {
            moved += copy.bytes;
            spans.push(span);
            at.push(Occurrence::Row(place));
        }
    }
    // Two copies at once share the link, so what counts is the time in which any ran.
    let time = tables::union(spans);
    let saving = time - (moved as f64 / peak) as Ns;
    let gbps = moved as f64 / time.max(1) as f64;
    let is_worth = figures::share(saving, f.recorded_ns()) >= thresholds::WORTH_SHARE;
    if at.is_empty() || gbps >= peak * thresholds::PEAK_SHARE || !is_worth {
        return None;
    }
    Some(Finding {
        title: format!(
            "large {} copies run at {} GB/s, {} of the calibrated {} GB/s",
            direction.label(),
            rate(gbps),
            percent(gbps / peak),
            rate(peak),
        ),
        advice: "Check for other traffic on the link, a slower PCIe slot, memory on the other socket (numactl), power saving.".to_owned(),
        ..scope.found(f.span_ns, saving, &at)
    })
}

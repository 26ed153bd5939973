//! Large copies that stay under what the link was calibrated to carry.

use super::{Copied, DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::{percent, rate};
use activity::{Direction, Ns, Span};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let directions = [Direction::H2D, Direction::D2H, Direction::P2P];
    let found = directions.into_iter().filter_map(|d| slow(scope, f, d));
    found.max_by_key(|f| f.bound_ns)
}

fn slow(scope: &Scope, f: &DeviceFigures, direction: Direction) -> Option<Finding> {
    let peak = scope.peaks.rate(direction)?;
    // Pageable copies have a rule of their own.
    let is_wanted = |(.., copy): &&Copied| {
        let is_large = copy.bytes >= thresholds::LARGE_BYTES;
        copy.direction == direction && is_large && !copy.is_pageable()
    };
    let copies = || scope.copies(f).iter().filter(is_wanted);
    let at: Vec<_> = copies().map(|it| Occurrence::Row(it.0)).collect();
    let moved: u64 = copies().map(|it| it.2.bytes).sum();
    // Two copies at once share the link, so what counts is the time in which any ran.
    let time = Span::union_len(copies().map(|it| it.1).collect());
    let saving = time - (moved as f64 / peak) as Ns;
    let gbps = moved as f64 / time.max(1) as f64;
    let is_worth = cases::WORTH_SHARE.is_reached_by(f.part(saving));
    if at.is_empty() || gbps >= peak * thresholds::PEAK_SHARE || !is_worth {
        return None;
    }
    Some(Finding {
        title: format!(
            "large {} copies run at {} GB/s, {} of the {} GB/s measured by calibration",
            direction.label(),
            rate(gbps),
            percent(gbps / peak),
            rate(peak),
        ),
        advice: "Check for other traffic on the link, a slower PCIe slot, memory on the other socket (numactl), power saving.".to_owned(),
        ..scope.found(f.span_ns, saving, &at)
    })
}

//! Large copies that stay under what the link was calibrated to carry, or reach half of what such a card's link gives.

use super::{Copied, DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::{percent, rate};
use activity::{Direction, MemoryKind, Ns, Span};
use figures::attention::is_of_hopper;
use figures::uploads;

/// Half of the lanes, or a slot of the generation before, give no more than this part.
const HALF: f64 = 0.55;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let directions = [Direction::H2D, Direction::D2H, Direction::P2P];
    let found = directions.into_iter().filter_map(|d| slow(scope, f, d));
    found.max_by_key(|f| f.bound_ns)
}

fn slow(scope: &Scope, f: &DeviceFigures, direction: Direction) -> Option<Finding> {
    let measured = scope.peaks.rate(direction);
    let (peak, enough, of) = match measured {
        Some(peak) => (peak, thresholds::PEAK_SHARE, "measured by calibration"),
        None => (
            link(scope, f, direction)?,
            HALF,
            "that the link of such a card gives at best",
        ),
    };
    // Pageable copies have a rule of their own.
    let is_wanted = |(.., copy): &&Copied| {
        let is_large = copy.bytes >= thresholds::LARGE_BYTES;
        let is_pinned = [copy.from, copy.to].contains(&MemoryKind::Pinned);
        let is_its = copy.direction == direction && !copy.is_pageable();
        is_its && is_large && (is_pinned || measured.is_some())
    };
    let copies = || scope.copies(f).iter().filter(is_wanted);
    let at: Vec<_> = copies().map(|it| Occurrence::Row(it.0)).collect();
    let moved: u64 = copies().map(|it| it.2.bytes).sum();
    // Two copies at once share the link, so what counts is the time in which any ran.
    let time = Span::union_len(copies().map(|it| it.1).collect());
    let saving = time - (moved as f64 / peak) as Ns;
    let gbps = moved as f64 / time.max(1) as f64;
    let is_worth = cases::WORTH_SHARE.is_reached_by(f.part(saving));
    if at.is_empty() || gbps >= peak * enough || !is_worth {
        return None;
    }
    let found = scope.found(f.span_ns, saving, &at);
    Some(Finding {
        severity: found.severity.keep_where(measured.is_some()),
        title: format!(
            "large {} copies run at {} GB/s, {} of the {} GB/s {of}",
            direction.label(),
            rate(gbps),
            percent(gbps / peak),
            rate(peak),
        ),
        advice: "Check for other traffic on the link, a slower PCIe slot, memory on the other socket (numactl), power saving.".to_owned(),
        ..found
    })
}

/// What pinned copies reach at best over the link of such a card, where the card is known.
fn link(scope: &Scope, f: &DeviceFigures, direction: Direction) -> Option<f64> {
    let info = &scope.trace.devices()[f.index].info;
    let is_known = info.capability.0 > 0 || scope.has_name(is_of_hopper);
    uploads::link_of(info).filter(|_| is_known && direction != Direction::P2P)
}

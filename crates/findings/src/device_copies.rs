//! Copies from one place of a GPU's memory to another: they take what the memory can move from the kernels around them.

use super::limits::launched_at;
use super::words::seen_at;
use super::{DeviceFigures, Finding, Occurrence, Scope, longest_first};
use crate::thresholds;
use ::program::Framework;
use activity::text::counted;
use activity::units::{bytes, duration, percent, rate};
use activity::{Direction, Span, What};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let is_its =
        |it: &super::Copied| it.2.direction == Direction::D2D && !What::Copy(it.2).is_migration();
    let copies: Vec<_> = scope.copies(f).iter().filter(|it| is_its(it)).collect();
    let time = Span::union_len(copies.iter().map(|it| it.1).collect());
    if !cases::LARGE_SHARE.is_reached_by(f.part(time)) {
        return None;
    }
    let moved = copies.iter().map(|it| it.2.bytes).sum::<u64>();
    let at = copies
        .iter()
        .map(|it| (it.1.len(), Occurrence::Row(it.0)))
        .collect();
    let places: Vec<_> = copies.iter().map(|it| it.0).collect();
    let line = launched_at(scope, &places).telling(scope.trace);
    let found = scope.found(f.span_ns, time, &longest_first(at));
    // A program may need both, as they were and as they are.
    let is_most = f.part(time) >= thresholds::COMPUTE_SHARE;
    Some(Finding {
        severity: found.severity.keep_where(is_most),
        title: format!(
            "{} within the GPU move {} at {} GB/s: {} ({}){}",
            counted(copies.len() as u64, "copy", "copies"),
            bytes(moved),
            rate(moved as f64 / time as f64),
            duration(time),
            percent(f.part(time)),
            seen_at(line.as_ref()),
        ),
        advice: "Where both are not needed, swap their pointers, or let a kernel write where the next one reads.".to_owned(),
        change: scope.change("swap", line.as_ref()),
        cure: match scope.framework() {
            Framework::Jax => "donating buffers",
            _ => "",
        },
        ..found
    })
}

//! Copies from one place of a GPU's memory to another: they take what the memory can move from the kernels around them.

use super::{DeviceFigures, Finding, Occurrence, Scope, Severity, longest_first};
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
    Some(Finding {
        // A program may need both, as they were and as they are.
        severity: Severity::Info,
        title: format!(
            "{} within the GPU move {} at {} GB/s: {} ({})",
            counted(copies.len() as u64, "copy", "copies"),
            bytes(moved),
            rate(moved as f64 / time as f64),
            duration(time),
            percent(f.part(time)),
        ),
        advice: "Where both are not needed, swap their pointers, or let a kernel write where the next one reads.".to_owned(),
        change: scope.change("swap", None),
        ..scope.found(f.span_ns, time, &longest_first(at))
    })
}

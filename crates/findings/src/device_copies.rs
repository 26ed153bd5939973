//! Copies from one place of a GPU's memory to another: they take what the memory can move from the kernels around them.

use super::limits::launched_at;
use super::words::seen_at;
use super::{DeviceFigures, Finding, Rule, Scope, longest_first};
use crate::thresholds;
use ::program::Framework;
use activity::text::counted;
use activity::units::{bytes, duration, percent, rate};
use activity::{Direction, Span, What};
use causes::{Gap, Group, Piece};

/// Copies of no more bytes each cost what their calls take, and no bandwidth.
const TINY_BYTES: u64 = 4 << 10;

/// What is said behind the time, what to do, its words of a change, and its name. Of many small copies, and of others.
const OF_TINY: [&str; 4] = [
    " with the pauses before them",
    "Let one kernel move what they do, or copy rows with one cudaMemcpy2D: each copy has a call of its own.",
    "",
    "copying in one go",
];
const OF_LARGE: [&str; 4] = [
    "",
    "Where both are not needed, swap their pointers, or let a kernel write where the next one reads.",
    "swap",
    "",
];

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let is_one = |it: &What| matches!(it, What::Copy(of) if of.direction == Direction::D2D && !it.is_migration());
    let copies = scope.copies(f).iter();
    let copies: Vec<_> = copies.filter(|it| is_one(&What::Copy(it.2))).collect();
    let own = Span::union_len(copies.iter().map(|it| it.1).collect());
    let (number, moved) = (
        copies.len() as u64,
        copies.iter().map(|it| it.2.bytes).sum(),
    );
    let are_tiny = number >= thresholds::TINY_MIN && moved <= number * TINY_BYTES;
    let graph = scope.causes.graph();
    let is_its = |gap: &Gap, it: &Piece| {
        let before = graph.what(scope.trace, gap.next);
        are_tiny && is_one(&before) && scope.causes.group(*gap, it) != Group::Host
    };
    let time = own
        + if are_tiny {
            scope.idle_that(f, is_its)
        } else {
            0
        };
    if !cases::LARGE_SHARE.is_reached_by(f.part(time)) {
        return None;
    }
    let at = copies.iter().map(|it| (it.1.len(), it.0)).collect();
    let places: Vec<_> = copies.iter().map(|it| it.0).collect();
    let line = launched_at(scope, &places).telling(scope.trace);
    let found = scope.found(f.span_ns, time, &longest_first(at));
    // A program may need both, as they were and as they are.
    let is_most = f.part(time) >= thresholds::COMPUTE_SHARE;
    let [with, advice, change, cure] = if are_tiny { OF_TINY } else { OF_LARGE };
    Some(Finding {
        instead_of: if are_tiny { &[Rule::CopyBound] } else { &[] },
        severity: found.severity.keep_where(is_most || are_tiny),
        title: format!(
            "{} within the GPU move {} at {} GB/s: {} ({}){with}{}",
            counted(number, "copy", "copies"),
            bytes(moved),
            rate(moved as f64 / own as f64),
            duration(time),
            percent(f.part(time)),
            seen_at(line.as_ref()),
        ),
        advice: advice.to_owned(),
        change: scope.change(change, line.as_ref()),
        cure: match scope.framework() {
            Framework::Jax => "donating buffers",
            _ => cure,
        },
        ..found
    })
}

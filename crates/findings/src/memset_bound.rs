//! The GPU sets memory most of the time, or again and again: nothing is computed meanwhile.

use super::{DeviceFigures, Finding, Scope, longest_first};
use crate::thresholds;
use ::program::Framework;
use activity::text::counted;
use activity::units::{bytes, duration, percent};
use activity::{Span, What};
use causes::{Gap, Group, Piece};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if f.memsets == 0 {
        return None;
    }
    let (mut at, mut spans, mut set) = (Vec::new(), Vec::new(), 0);
    for (place, it) in scope.operations(f) {
        if let What::Memset(of) = it.what {
            at.push((it.span.len(), place));
            spans.push(it.span);
            set += of.bytes;
        }
    }
    let time = Span::union_len(spans);
    let is_most = f.part(time) >= thresholds::COMPUTE_SHARE;
    // What a library sets nobody asked for.
    let is_own = scope.planned.is_none() && scope.framework() == Framework::Cuda;
    let is_loop = is_own && cases::LOOP_MIN.is_reached_by(at.len());
    // A pause comes before each.
    let graph = scope.causes.graph();
    let is_before = |gap: &Gap, it: &Piece| {
        let is_one = matches!(graph.what(scope.trace, gap.next), What::Memset(_));
        is_one && scope.causes.group(*gap, it) == Group::Launch
    };
    let is_part = is_loop && !is_most;
    let paused = if is_part {
        scope.idle_that(f, is_before)
    } else {
        0
    };
    let is_told = is_most || is_loop && cases::WORTH_SHARE.is_reached_by(f.part(time + paused));
    is_told.then(|| Finding {
        title: format!(
            "{} of {} take {} ({})",
            counted(at.len() as u64, "memset", "memsets"),
            bytes(set),
            duration(time),
            percent(f.part(time)),
        ),
        advice: "Set only what is read later, and once; or let the kernel that writes next write the first value itself.".to_owned(),
        ..scope.found(f.span_ns, time + paused, &longest_first(at))
    })
}

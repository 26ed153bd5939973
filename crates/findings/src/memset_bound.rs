//! The GPU sets memory most of the time: nothing is computed meanwhile.

use super::{DeviceFigures, Finding, Occurrence, Scope, longest_first};
use crate::thresholds;
use activity::text::counted;
use activity::units::{bytes, duration, percent};
use activity::{Span, What};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if f.memsets == 0 {
        return None;
    }
    let (mut at, mut spans, mut set) = (Vec::new(), Vec::new(), 0);
    for (place, it) in scope.operations(f) {
        if let What::Memset(of) = it.what {
            at.push((it.span.len(), Occurrence::Row(place)));
            spans.push(it.span);
            set += of.bytes;
        }
    }
    let time = Span::union_len(spans);
    (f.part(time) >= thresholds::COMPUTE_SHARE).then(|| Finding {
        title: format!(
            "{} of {} take {} ({})",
            counted(at.len() as u64, "memset", "memsets"),
            bytes(set),
            duration(time),
            percent(f.part(time)),
        ),
        advice: "Set only what is read later, and once; or let the kernel that writes next write the first value itself.".to_owned(),
        ..scope.found(f.span_ns, time, &longest_first(at))
    })
}

//! Attention whose scores go through memory.

use super::{DeviceFigures, Finding, Says, Scope, configs, longest_first};
use activity::text::counted;
use activity::units::{duration, percent};
use figures::attention::{Scores, is_softmax};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !scope.has_name(is_softmax) {
        return None;
    }
    let Scores { all, inside, at } = Scores::of(scope.trace, f, scope.window_on(f.index));
    if !cases::LARGE_SHARE.is_reached_by(f.part(inside)) {
        return None;
    }
    let of_it = configs::kernel_time(scope, f).of_it(all);
    // One kernel does both products, too. Measured on an H200: it takes a quarter of these two, which write the scores and read them.
    let saved = inside + (all - inside) / 4 * 3;
    let found = scope.found(f.span_ns, saved, &longest_first(at));
    Some(Finding {
        title: format!(
            "attention writes its scores to memory, {}: it takes {}, {} of it between two products of matrices ({} of the time)",
            counted(found.count, "time", "times"),
            duration(all),
            duration(inside),
            percent(f.part(inside)),
        ),
        advice: "One kernel does both products and the softmax, and keeps the scores on the SM."
            .to_owned(),
        change: scope.change("attention", None),
        says: Some(Says::of_kernels(
            f,
            format!("{of_it} in attention that is not fused"),
        )),
        ..found
    })
}

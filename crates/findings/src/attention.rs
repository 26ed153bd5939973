//! Attention whose scores go through memory, and that of kernels for older GPUs.

use super::limits::time;
use super::{DeviceFigures, Finding, Says, Scope, Severity, configs, longest_first};
use activity::text::counted;
use activity::units::{duration, percent};
use figures::attention::{Scores, is_of_ampere, is_of_hopper, is_softmax};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    unfused(scope, f).or_else(|| of_ampere(scope, f))
}

/// Kernels of FlashAttention-2 on a GPU that has newer ones. Short ones have too little to do to gain by these.
fn of_ampere(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let mut all = configs::such(scope, f, is_of_ampere);
    all.retain(|it| cases::LITTLE_TO_DO.is_reached_by(it.usual));
    let (took, part) = (time(&all), configs::kernel_time(scope, f));
    let has_newer = match scope.trace.devices()[f.index].info.capability.0 {
        0 => scope.has_name(is_of_hopper),
        major => matches!(major, 9 | 10),
    };
    // Its authors measured on an H100 that FlashAttention-3 is 1.5 to 2 times as fast as FlashAttention-2 (arXiv 2407.08608).
    let saved = took / 2;
    (has_newer && cases::LARGE_SHARE.is_reached_by(f.part(saved))).then(|| Finding {
        severity: Severity::Info,
        title: format!(
            "attention runs in kernels of FlashAttention-2, which are made for older GPUs than this: {}",
            part.words(took),
        ),
        advice: "cuDNN's attention is likely faster here, and so is FlashAttention-3 on an H100 or H200. Try both with your sizes.".to_owned(),
        change: scope.change("newer-attention", None),
        cure: "newer attention kernels",
        ..scope.found(f.span_ns, saved, &configs::places(scope, f, &all))
    })
}

fn unfused(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
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

//! Attention whose scores go through memory: a product, a softmax and the next product are kernels of their own.

use super::{DeviceFigures, Finding, Occurrence, Says, Scope, configs, longest_first};
use activity::text::counted;
use activity::units::{duration, percent};
use activity::{Ns, Span, What};
use figures::communication::has_any;

/// So many elementwise kernels (a scale, a mask, a cast, a dropout) lie between at most.
const BETWEEN: usize = 4;

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Product,
    Softmax,
    EachElement,
    Other,
}

impl Does {
    /// By a kernel's name, as PyTorch and its libraries call them. A logarithm of the softmax is a loss's.
    fn of(name: &str) -> Does {
        let low = name.to_ascii_lowercase();
        if has_any(&low, "softmaxforward softmax_warp_forward") && !low.contains("logsoftmax") {
            Does::Softmax
        } else if has_any(&low, "gemm nvjet") {
            Does::Product
        } else if has_any(&low, "elementwise dropout") {
            Does::EachElement
        } else {
            Does::Other
        }
    }
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !scope.has_name(|it| Does::of(it) == Does::Softmax) {
        return None;
    }
    let mut ran: Vec<(Does, Span, Occurrence)> = Vec::new();
    for (place, activity) in scope.operations(f) {
        if let What::Kernel(it) = activity.what {
            let name = scope.trace.names().full(scope.trace.shape(it.shape).name);
            ran.push((Does::of(name), activity.span, Occurrence::Row(place)));
        }
    }
    let sum = |of: &[(Does, Span, Occurrence)]| of.iter().map(|it| it.1.len()).sum::<Ns>();
    let (mut all, mut inside, mut at) = (0, 0, Vec::new());
    for softmax in (0..ran.len()).filter(|it| ran[*it].0 == Does::Softmax) {
        let product = |it: &usize| ran[*it].0 != Does::EachElement;
        let is_product = |it: &usize| ran[*it].0 == Does::Product;
        let before = (softmax.saturating_sub(BETWEEN)..softmax)
            .rev()
            .find(product);
        let behind = (softmax + 1..ran.len().min(softmax + 1 + BETWEEN)).find(product);
        if let (Some(first), Some(last)) = (before.filter(is_product), behind.filter(is_product)) {
            all += sum(&ran[first..=last]);
            inside += sum(&ran[first + 1..last]);
            at.push((ran[softmax].1.len(), ran[softmax].2));
        }
    }
    if !cases::LARGE_SHARE.is_reached_by(f.part(inside)) {
        return None;
    }
    let of_it = configs::kernel_time(scope, f).of_it(all);
    // One kernel does both products, too: it saves what lies between them.
    let found = scope.found(f.span_ns, inside, &longest_first(at));
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

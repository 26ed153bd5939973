//! Layers that work as in training where nothing trains: outputs then depend on the batch, or on chance.

use super::limits::time;
use super::{Finding, Scope, Severity, configs};
use ::program::Framework;
use activity::text::plural;
use figures::DeviceFigures;
use figures::communication::has_any;
use figures::remarks::{DROPOUT, TRAINING_NORM, is_backward};

/// Fewer kernels are no network's.
const KERNELS_MIN: u64 = 4;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let trains = |it: &str| has_any(it, "multi_tensor_apply AccumulateGrad") || is_backward(it);
    if scope.framework() != Framework::PyTorch || scope.has_name(trains) {
        return None;
    }
    let of = |word: &str| configs::such(scope, f, |it| it.contains(word));
    let (norms, dropouts) = (of(TRAINING_NORM), of(DROPOUT));
    let what = match (norms.is_empty(), dropouts.is_empty()) {
        (true, true) => return None,
        (false, true) => "batch norms work",
        (true, false) => "dropout works",
        (false, false) => "batch norms and dropout work",
    };
    let both = [norms, dropouts].concat();
    let found = scope.found(f.span_ns, 0, &configs::places(scope, f, &both));
    (found.count >= KERNELS_MIN).then(|| Finding {
        severity: Severity::Info,
        title: format!(
            "{what} as in training, and no backward pass was recorded: {}, {}",
            plural(found.count, "kernel"),
            configs::kernel_time(scope, f).words(time(&both)),
        ),
        advice:
            "For inference call model.eval(): otherwise outputs depend on the batch, or on chance."
                .to_owned(),
        change: scope.changes("model.eval: before the loop", None),
        ..found
    })
}

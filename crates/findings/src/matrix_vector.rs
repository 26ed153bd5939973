//! Products of a matrix and a single vector, as one token at a time of a language model needs: each reads all weights once.

use super::limits::time;
use super::{DeviceFigures, Finding, Says, Scope, Severity, configs};
use crate::thresholds;
use activity::text::counted;

/// What is in the names of kernels that multiply a matrix by a vector, of cuBLAS and of others.
const NAME: &str = "gemv";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let all = configs::such(scope, f, |it| it.to_ascii_lowercase().contains(NAME));
    let time = time(&all);
    if f.part(time) < thresholds::COMPUTE_SHARE {
        return None;
    }
    let part = configs::kernel_time(scope, f);
    let found = scope.found(f.span_ns, time, &configs::places(scope, f, &all));
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "{} of a matrix and one vector take {}: each reads its whole matrix",
            counted(found.count, "product", "products"),
            part.words(time),
        ),
        advice: "Batch several vectors (requests, tokens), so that one read serves all. Or keep the weights in fewer bits (int8, int4, fp8).".to_owned(),
        says: Some(Says::of_kernels(
            f,
            format!("{} in products of a matrix and one vector, likely bound by memory", part.of_it(time)),
        )),
        ..found
    })
}

//! Launches, copies and syncs that returned an error.

use super::{Finding, Occurrence, Scope, Severity};
use figures::failed::Failed;

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let failed = Failed::of(scope.trace, scope.causes.graph())?;
    let (text, calls) = (failed.text(), failed.calls.iter());
    let at = calls.map(|&call| Occurrence::Row(scope.causes.graph().calls.at(call)));
    Some(Finding {
        severity: Severity::Warning,
        title: format!("{text}: results are missing or wrong"),
        advice:
            "Check what every call returns; cudaGetErrorString says what the first error means."
                .to_owned(),
        // Where nothing else ran it is the headline.
        gain: (!failed.is_all()).then_some(text),
        ..scope.found(0, 0, &at.collect::<Vec<_>>())
    })
}

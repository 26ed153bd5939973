//! Two operations of a scenario that touch the same memory, and nothing orders them.

use super::{Finding, Occurrence, Scope, Severity};
use activity::text::counted;
use scenario::hazards;

/// Work that the search may take, in about tens of nanoseconds: some tens of milliseconds.
const BUDGET: u64 = 5_000_000;

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let variant = scope.planned?;
    let mut budget = BUDGET;
    let found = hazards::find(variant, &mut budget);
    let first = found.hazards.first()?;
    let buffer = variant.buffers.get(first.buffer)?;
    let (f, number) = (scope.devices.first()?, found.hazards.len() as u64);
    Some(Finding {
        severity: Severity::Warning,
        title: format!(
            "race: nothing orders {} that use the buffer `{}`, so results may be wrong",
            counted(number, "pair of operations", "pairs of operations"),
            buffer.name,
        ),
        advice:
            "Order them (one stream, or an event with cudaStreamWaitEvent), or add a second buffer."
                .to_owned(),
        ..scope.found(f.span_ns, 0, &[Occurrence::Gap(f.index, f.span)])
    })
}

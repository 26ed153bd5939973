//! What describes the machine and the recording, and saves nothing: all of it in one line.

use super::{Check, Finding, Scope, fold, shared_gpu, throttled, watched};

/// What is looked at, in the order in which it is told.
const CHECKS: [Check; 6] = [
    Check::Device(shared_gpu::check),
    Check::Device(throttled::check),
    Check::Timeline(watched::clocks),
    Check::Timeline(watched::nodes),
    Check::Timeline(watched::launches),
    Check::Timeline(watched::stacks),
];

/// What of the machine and the recording is worth knowing.
pub fn check(scope: &Scope) -> Option<Finding> {
    fold::together(CHECKS.iter().map(|check| check.findings(scope)))
}

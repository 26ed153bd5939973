//! What tests ask of a whole timeline.

use crate::memory::MemoryUse;
use crate::passes::Passes;
use crate::variants::of_passes;
use crate::{DeviceFigures, VariantFigures, count};
use scenario::plan::Plan;
use trace::{CallIndex, Trace};

/// The figures of every device that has an operation.
pub fn whole(trace: &Trace) -> Vec<DeviceFigures> {
    count(trace, Some(&CallIndex::new(trace)), None)
}

/// The figures of every variant that has a measured pass.
pub fn variants(trace: &Trace, plan: Option<&Plan>) -> Vec<VariantFigures> {
    let passes = Passes::of_trace(trace, plan);
    let memory = MemoryUse::of(trace, None);
    let calls = CallIndex::new(trace);
    of_passes(trace, &passes, plan, (Some(&calls), None), &memory)
}

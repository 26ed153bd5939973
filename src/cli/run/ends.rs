//! The same plan on the simulator at both ends of what the calibration measured.

use std::sync::Arc;

use crate::activity::feed::Outcome;
use crate::analysis::passes::Passes;
use crate::cli::drain::drain;
use crate::cli::exit::Ending;
use crate::scenario::plan::Plan;
use crate::source::sim::profile::End;
use crate::source::sim::{self, Pace, Profile};
use crate::trace::{SourceInfo, Trace};

/// The passes of a plan with every figure of the profile at its quickest, and at its slowest; none where it does not tell.
///
/// # Errors
/// When the operating system gives no thread.
pub(super) fn of(
    plan: &Arc<Plan>,
    profile: &Profile,
    info: &SourceInfo,
) -> Result<Vec<Passes>, Ending> {
    if !profile.has_spread() {
        return Ok(Vec::new());
    }
    let mut ends = Vec::new();
    for end in [End::Quick, End::Slow] {
        // A profile that was read has no names in its spread that are not its own.
        let profile = profile.at(end).map_err(Ending::input)?;
        let feed = sim::run(Arc::clone(plan), &profile, Pace::AsFastAsPossible)
            .map_err(|error| Ending::machine(format!("cannot start the simulator: {error}")))?;
        let mut trace = Trace::new(info.clone());
        if drain(&feed, &mut trace) == Outcome::Complete {
            ends.push(Passes::of_trace(&trace, Some(plan)));
        }
    }
    Ok(ends)
}

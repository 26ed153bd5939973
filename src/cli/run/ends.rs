//! The same plan on the simulator at both ends of what the calibration measured.

use std::io;
use std::sync::Arc;

use crate::activity::feed::{Message, Outcome, Stop};
use crate::analysis::passes::Passes;
use crate::scenario::plan::Plan;
use crate::source::sim::profile::End;
use crate::source::sim::{self, Pace, Profile};
use crate::trace::{SourceInfo, Trace};
use crate::tui::Ends;

/// Finds the passes of a plan with every figure of the profile at its quickest, and at its slowest.
pub(super) fn of(plan: &Arc<Plan>, profile: &Profile, info: &SourceInfo) -> Ends {
    let (plan, info) = (Arc::clone(plan), info.clone());
    // A profile that was read has no names in its spread that are not its own.
    let profiles = [End::Quick, End::Slow].map(|end| profile.at(end).ok());
    Ends::new(move |stop| {
        let each = profiles.iter().flatten();
        let ends = each.map(|profile| run(&plan, profile, &info, stop));
        // One of them alone tells nothing.
        ends.map(|end| end.ok().flatten())
            .collect::<Option<Vec<Passes>>>()
            .unwrap_or_default()
    })
}

/// The passes of a plan on the simulator; none when it was stopped.
fn run(
    plan: &Arc<Plan>,
    profile: &Profile,
    info: &SourceInfo,
    stop: &Stop,
) -> io::Result<Option<Passes>> {
    let feed = sim::run(Arc::clone(plan), profile, Pace::AsFastAsPossible)?;
    let mut trace = Trace::new(info.clone());
    for message in feed.receiver() {
        match message {
            _ if stop.is_stopped() => break,
            Message::Batch(batch) => trace.apply(batch),
            Message::Finished(Outcome::Complete) => {
                return Ok(Some(Passes::of_trace(&trace, Some(plan))));
            }
            // What it says of itself, the run in the middle has said.
            _ => {}
        }
    }
    Ok(None)
}

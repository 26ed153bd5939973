//! What a finding is worth, in words.

use super::{Finding, Per, Predicted};
use crate::activity::Ns;
use crate::activity::units::{duration, percent};
use crate::analysis::lines::Told;

/// The line at which the host was seen meanwhile, to be put after a title; empty without one.
pub(super) fn seen_at(line: Option<&Told>) -> String {
    line.map_or_else(String::new, |it| format!("; then at {}", it.words()))
}

impl Finding {
    /// What it is worth, in words: what its edit is predicted to save, else the bound and why nothing is predicted.
    /// Empty for what is no matter of time.
    #[must_use]
    pub fn worth(&self) -> String {
        match (self.saving_ns, &self.predicted) {
            (Some(saving), Some(predicted)) => {
                let of = match (predicted.is_estimate, predicted.samples) {
                    (true, samples) => format!(", estimated from the last {samples} steps"),
                    _ => String::new(),
                };
                let sure = format!("replay {} off{of}", percent(predicted.replay_error));
                format!("; {} ({sure})", predicted.saves(saving))
            }
            _ if self.is_no_matter_of_time() => String::new(),
            _ => format!("; at most {} to save", duration(self.bound_ns)),
        }
    }

    /// Why nothing is predicted, as a sentence; empty where something is, or where no edit describes the cure.
    #[must_use]
    pub fn refusal(&self) -> String {
        match (&self.refused, &self.edit) {
            (Some(reason), Some(edit)) => format!("No prediction of `{edit}`: {reason}."),
            _ => String::new(),
        }
    }
}

impl Predicted {
    /// "saves 4.4 ms of 8.3 ms a repeat", "saves 1.9 ms of 8.3 ms a step on top of those above, 3.2 ms alone".
    fn saves(&self, on_top: Ns) -> String {
        let per = match self.per {
            Per::Repeat => " a repeat",
            Per::Step => " a step",
            Per::Run => "",
        };
        let of = format!("of {}{per}", duration(self.measured_ns));
        let alone = duration(self.measured_ns - self.predicted_ns);
        let above = match self.above {
            1 => "the one above",
            _ => "those above",
        };
        if on_top == 0 {
            // Nothing but the others, or nothing at all.
            return if self.above == 0 {
                format!("its cure is predicted to save nothing {of}")
            } else {
                format!("saves nothing on top of {above}, {alone} {of} alone")
            };
        }
        let saves = format!("saves {} {of}", duration(self.on_top));
        if self.above == 0 {
            saves
        } else {
            format!("{saves} on top of {above}, {alone} alone")
        }
    }
}

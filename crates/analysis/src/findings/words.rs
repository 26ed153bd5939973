//! What a finding is worth, in words.

use std::cmp::Reverse;

use super::{Finding, Per, Predicted, Severity};
use crate::figures::share;
use crate::lines::LineShare;
use activity::Ns;
use activity::units::{duration, percent};

/// The line at which the host was seen meanwhile, to be put after a title; empty without one.
pub(super) fn seen_at(line: Option<&LineShare>) -> String {
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
            _ if self.is_no_matter_of_time() || self.rule == "no-cure" => String::new(),
            _ => format!("; at most {} to save", duration(self.bound_ns)),
        }
    }

    /// What its cure brings, for the end of a headline: "pinning saves 7.6 ms". With steps, of which one takes so long and
    /// all that were looked at so long, what it saves in one. `None` for what is no matter of time, and for remarks.
    #[must_use]
    pub fn gain(&self, steps: Option<(Ns, Ns)>) -> Option<String> {
        if self.severity < Severity::Warning || self.cure.is_empty() {
            return self.gain.clone();
        }
        let each = |time: Ns| match steps {
            Some((step, all)) => (share(time, all) * step as f64) as Ns,
            None => time,
        };
        let (saves, time) = match self.saving_ns {
            Some(saving) => ("saves", each(saving)),
            None => ("saves at most", each(self.weight())),
        };
        (time > 0).then(|| format!("{} {saves} {}", self.cure, duration(time)))
    }

    /// What stands first: warnings, of a job the late rank, and what could save most.
    pub(super) fn order(&self) -> Reverse<(Severity, bool, Ns)> {
        Reverse((self.severity, self.gain.is_some(), self.weight()))
    }

    /// Its bound, or what of that lies in the time looked at.
    fn weight(&self) -> Ns {
        self.inside_ns.unwrap_or(self.bound_ns)
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
        let saved = |predicted: Ns| duration((self.measured_ns - predicted).max(0));
        let alone = match self.predicted_ns {
            Some(predicted) => saved(predicted),
            None => format!("{} to {}", saved(self.high_ns), saved(self.low_ns)),
        };
        let above = match self.above {
            1 => "the one above",
            _ => "those above",
        };
        if on_top == 0 {
            // Nothing but the others, or nothing at all.
            return if self.above == 0 {
                format!("predicted to save nothing {of}")
            } else {
                format!("saves nothing on top of {above}, {alone} {of} alone")
            };
        }
        if self.predicted_ns.is_none() {
            // How much of so much uncertainty is on top of others nobody could tell.
            return match self.above {
                0 => format!("saves {alone} {of}"),
                _ => format!("saves {alone} {of} alone, less on top of {above}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_wide_interval_only_the_ends_are_told() {
        let predicted = |predicted_ns, above| Predicted {
            per: Per::Repeat,
            samples: 3,
            measured_ns: 10_000_000,
            predicted_ns,
            likely_ns: 4_000_000,
            low_ns: 2_000_000,
            high_ns: 8_000_000,
            replay_error: 0.0,
            notes: Vec::new(),
            is_estimate: false,
            on_top: 6_000_000,
            above,
        };
        let told = |predicted: Predicted| predicted.saves(6_000_000);
        let closed = "saves 6.00 ms of 10.0 ms a repeat";
        assert_eq!(told(predicted(Some(4_000_000), 0)), closed);
        let open = "saves 2.00 ms to 8.00 ms of 10.0 ms a repeat";
        assert_eq!(told(predicted(None, 0)), open);
        let open = format!("{open} alone, less on top of the one above");
        assert_eq!(told(predicted(None, 1)), open);
    }
}

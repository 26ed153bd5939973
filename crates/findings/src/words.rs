//! What a finding is worth, in words.

use std::cmp::Reverse;

use super::{Finding, Per, Predicted, Rule, Severity};
use activity::Ns;
use activity::units::{self, duration, percent, share};
use causes::stacks::LineShare;

/// Above this part of the time a saving is nearly all of it: two figures that look alike read as an error.
const NEARLY_ALL: f64 = 0.95;

/// A saving whose ends lie this part of it apart is no figure, but a range.
const WIDE: f64 = 0.25;

/// "every 2 kernels".
pub(super) fn every_kernels(number: u64) -> String {
    match number {
        1 => "every kernel".to_owned(),
        many => format!("every {many} kernels"),
    }
}

/// The line at which the host was seen meanwhile, to be put after a title; empty without one.
pub(super) fn seen_at(line: Option<&LineShare>) -> String {
    line.map_or_else(String::new, |it| format!("; {}", it.seen("")))
}

/// The cure of what a first run takes.
const WARMING_UP: &str = "warming up";

/// The cure of copies that are staged.
const PINNING: &str = "pinning";

/// The end of a cure's name, where larger batches bring more than it.
const OR_BATCHES: &str = " or larger batches";
/// And how that is told: for as much work they may save more than a step is idle for.
const BATCHES: &str = ", more with larger batches";

impl Finding {
    /// What it is worth, in words: what its edit is predicted to save, else the bound and why nothing is predicted.
    /// Empty for what is no matter of time.
    pub fn worth(&self) -> String {
        match (self.saving_ns, &self.predicted) {
            (Some(saving), Some(predicted)) => {
                let estimate = match (predicted.is_estimate, predicted.samples) {
                    (true, samples) => format!(", estimated from the last {samples} steps"),
                    _ => String::new(),
                };
                format!("; {}{estimate}", predicted.saves(saving))
            }
            _ if self.estimated.is_some() => {
                let of = if self.step.is_some() { " a step" } else { "" };
                let between = self.between().unwrap_or_default();
                let more = self.throughout();
                format!("; could save {between}{of}{more}, estimated by the card's peak rates")
            }
            _ if self.tried.is_some() => {
                let tried = self.tried.as_deref().unwrap_or_default();
                format!("; the variant {tried}")
            }
            // That no copy takes no time is no bound worth a word.
            _ if self.is_no_matter_of_time()
                || matches!(self.rule, Rule::NoCure | Rule::Asleep | Rule::CopyBound)
                // Nor that products take none.
                || matches!(self.rule, Rule::IdleTensorCores | Rule::MatrixVector | Rule::DoublePrecision) =>
            {
                String::new()
            }
            _ if self.is_moved() => self.waits(),
            // Two figures that look alike read as an error.
            _ if (self.inside_ns)
                .is_some_and(|inside| share(inside, self.bound_ns) < NEARLY_ALL) =>
            {
                let [inside, all] = [self.most(), self.bound_ns].map(duration);
                match self.inside_ns {
                    Some(0) => {
                        format!(
                            "; could save at most {all} of the program's time, none while the GPU works"
                        )
                    }
                    _ => format!(
                        "; could save at most {inside} while the GPU works, {all} of the program's time"
                    ),
                }
            }
            // One step is told as it is.
            _ if self.rule == Rule::OddSteps && self.count == 1 => {
                format!("; could save at most {}", duration(self.bound_ns))
            }
            _ => {
                let of = match self.step {
                    Some(it) if it.is_mean => format!(" of {} a step (mean)", duration(it.one)),
                    Some(_) => " a step".to_owned(),
                    None => String::new(),
                };
                let [least, most] = [self.most(), self.at_most()];
                let is_all = self.is_all && least == most;
                let all = if is_all { "all of it, " } else { "" };
                // The headline has this figure, too, so what comes on top is told as that: two limits of one thing are a riddle.
                let more = |by: &str| format!(", {} more where {by}, too", duration(most - least));
                let (told, beside) = match self.rule {
                    _ if least == most => (least, String::new()),
                    Rule::LaunchBound if self.has_batches() => (least, BATCHES.to_owned()),
                    Rule::LaunchBound => (least, more("copies and pauses between them go")),
                    Rule::PageableCopy if self.cure == PINNING => {
                        (least, more("they run beside other work"))
                    }
                    _ => {
                        let least = duration(least);
                        (most, format!(", {least} of it without other changes"))
                    }
                };
                format!("; could save at most {all}{}{of}{beside}", duration(told))
            }
        }
    }

    /// How long the GPU waits for what a first run takes. Without its records nobody knows.
    fn waits(&self) -> String {
        match self.inside_ns {
            None => String::new(),
            Some(0) => "; the GPU waits for none of it".to_owned(),
            Some(it) if share(it, self.bound_ns) >= NEARLY_ALL => {
                "; the GPU waits for it".to_owned()
            }
            // Short parts of it are not named before.
            Some(_) => format!(
                "; slow first calls keep the GPU idle for {}",
                duration(self.most())
            ),
        }
    }

    /// What its cure is called by itself.
    pub fn cure_alone(&self) -> &'static str {
        self.cure.strip_suffix(OR_BATCHES).unwrap_or(self.cure)
    }

    /// Whether its cure only moves what it tells of out of what is measured: a program that warms up takes as long.
    pub fn is_moved(&self) -> bool {
        self.rule == Rule::ColdStart && self.cure == WARMING_UP
    }

    /// Whether larger batches bring more: their fewer kernels take less time than all of these, for as much work.
    fn has_batches(&self) -> bool {
        self.cure.ends_with(OR_BATCHES) && self.most() < self.at_most()
    }

    /// What its cure brings, for the end of a headline: "pinning brings 7.6 ms". It is the saving that [`Finding::worth`] has, and of
    /// a bound it says so. What saves more than the GPU is idle, this part of the time, is told as what is left. `None` for what is
    /// no matter of time, and for remarks.
    pub fn gain(&self, idle: f64) -> Option<String> {
        if let Some(between) = self.between() {
            let of = if self.step.is_some() { " a step" } else { "" };
            return Some(match self.estimated {
                Some([0, _]) => format!("{between}{of} from {}, estimated", self.cure),
                _ => format!("{} saves an estimated {between}{of}", self.cure),
            });
        }
        if self.gain.is_some() || self.severity < Severity::Warning || self.cure.is_empty() {
            return self.gain.clone();
        }
        if self.rule == Rule::CopyBound {
            return None;
        }
        let cure = self.cure;
        match (self.saving_ns, &self.predicted) {
            _ if self.is_moved() && self.most() > 0 => Some(format!(
                "{cure} keeps {} out of a measurement",
                duration(self.most())
            )),
            (Some(_), Some(it)) if it.on_top == 0 => None,
            (Some(_), Some(it)) if idle > 0.0 && share(it.on_top, it.measured_ns) > idle => {
                let left = it.range().map(|saved| it.measured_ns - saved);
                let left = units::range((left[1], left[0]));
                Some(format!("{cure}: {} → {left}", duration(it.measured_ns)))
            }
            (Some(_), Some(it)) => Some(format!("{cure} saves {}", it.in_words())),
            _ if self.is_all => Some(format!("try {cure}")),
            _ if self.most() == 0 => None,
            _ => {
                // Of uneven steps the headline has no one length.
                let cure = self.cure_alone();
                let most = duration(self.bound());
                let batches = if self.has_batches() { BATCHES } else { "" };
                Some(match self.step.filter(|it| it.is_mean) {
                    Some(it) => {
                        let mean = duration(it.one);
                        format!("{cure}: up to {most} of {mean} a step (mean){batches}")
                    }
                    None => format!("up to {most} from {cure}{batches}"),
                })
            }
        }
    }

    /// "13.4 to 18.1 ms", "up to 18.1 ms": what is estimated, in one step, where steps were looked at.
    pub fn between(&self) -> Option<String> {
        // By themselves those kernels save no more than they take.
        let most = self.tried_first.unwrap_or(Ns::MAX).min(self.bound_ns);
        let of_step = |time: Ns| self.of_step(time.min(most));
        self.estimated.map(|it| match it.map(of_step) {
            [0, most] => format!("up to {}", duration(most)),
            both => units::range(both.into()),
        })
    }

    /// " (up to 32.0 ms with bf16 throughout)": other kernels move half of the bytes then.
    fn throughout(&self) -> String {
        let most = self.estimated.map_or(0, |it| it[1]);
        match most > self.tried_first.unwrap_or(Ns::MAX).min(self.bound_ns) {
            true => format!(
                " (up to {} with bf16 throughout)",
                duration(self.of_step(most))
            ),
            false => String::new(),
        }
    }

    /// The part of a step that its cure was said to save at least, most likely, and at most. Without steps it is of the `whole` run.
    pub fn promise(&self, whole: Ns) -> [f64; 3] {
        let all = self.step.map_or(whole, |it| it.all);
        match (&self.predicted, self.estimated) {
            (Some(it), _) => it.ends().map(|saved| share(saved, it.measured_ns)),
            (None, Some([least, most])) => {
                [least, (least + most) / 2, most].map(|time| share(time, all))
            }
            (None, None) => {
                [0, self.weight(), self.weight() + self.beside_ns].map(|time| share(time, all))
            }
        }
    }

    /// Whether a bound of its saving is worth showing.
    pub fn has_bound(&self) -> bool {
        self.severity >= Severity::Warning
            && !self.cure.is_empty()
            && self.most() > 0
            && !self.is_moved()
    }

    /// What it could save at most while the GPU works, in ns: in one step, where steps were looked at.
    pub fn most(&self) -> Ns {
        self.of_step(self.weight())
    }

    /// The same with what lies beside, where that is worth a word.
    pub fn at_most(&self) -> Ns {
        let all = self.weight() + self.beside_ns;
        let is_worth = share(self.weight(), all) < NEARLY_ALL;
        self.of_step(if is_worth { all } else { self.weight() })
    }

    /// The bound that a headline has, in ns: in one step, where steps were looked at.
    pub fn bound(&self) -> Ns {
        match self.rule {
            // A graph has the same kernels: it ends idle time alone.
            Rule::LaunchBound => self.most(),
            // Pinned copies are copies still.
            Rule::PageableCopy if self.cure == PINNING => self.most(),
            _ => self.at_most(),
        }
    }

    fn of_step(&self, time: Ns) -> Ns {
        // Ranges that only launch are shorter than what they launch.
        self.step.map_or(time, |of| {
            let part = (share(time, of.all).min(1.0) * of.one as f64) as Ns;
            // It is told in all, too: no step has more of it than that brings.
            part.min(time / of.count.max(1) as Ns)
        })
    }

    /// What stands first: warnings, of a job the late rank, and what could save most.
    pub fn order(&self) -> Reverse<((bool, Severity), bool, Ns)> {
        Reverse((self.rank(), self.gain.is_some(), self.weight()))
    }

    /// Warnings stand first, and what is of the machine, not of the program, last.
    pub(super) fn rank(&self) -> (bool, Severity) {
        (self.rule != Rule::Machine, self.severity)
    }

    /// What it is predicted to save, else its bound, or what of that lies in the time looked at.
    pub fn weight(&self) -> Ns {
        let bound = self.inside_ns.unwrap_or(self.bound_ns);
        self.saving_ns.unwrap_or(bound)
    }

    /// Why nothing is predicted, as a sentence; empty where something is, or where no edit describes the cure.
    pub fn refusal(&self) -> String {
        match (&self.refused, &self.edit) {
            (Some(reason), Some(edit)) => format!("Cannot predict `{edit}`: {reason}."),
            _ => String::new(),
        }
    }
}

impl Predicted {
    /// What it saves on top: at least, most likely, and at most.
    fn ends(&self) -> [Ns; 3] {
        let alone = self.measured_ns - self.predicted_ns;
        let part = share(self.on_top, alone).clamp(0.0, 1.0);
        [self.high_ns, self.predicted_ns, self.low_ns]
            .map(|left| ((self.measured_ns - left).max(0) as f64 * part) as Ns)
    }

    /// The least and the most; twice the same where these lie near each other.
    fn range(&self) -> [Ns; 2] {
        let [least, _, most] = self.ends();
        match ((most - least) as f64) < WIDE * self.on_top as f64 {
            true => [self.on_top; 2],
            false => [least, most],
        }
    }

    /// "4.4 ms", "3.8 to 5.0 ms", "at most 1.1 ms".
    fn in_words(&self) -> String {
        match self.range() {
            [0, most] => format!("at most {}", duration(most)),
            ends => units::range(ends.into()),
        }
    }

    /// What it saves, as the headline has it: beside what findings above it save, or by itself where nothing is left beside those.
    pub fn told(&self) -> String {
        match self.on_top {
            ..=0 => {
                let alone = (self.measured_ns - self.predicted_ns).max(0);
                format!("{} by itself", duration(alone))
            }
            _ => self.in_words(),
        }
    }

    /// How far it can be trusted, as a sentence.
    pub fn certainty(&self) -> String {
        let off = percent(self.replay_error);
        format!("Savings are predicted by a replay ({off} off without a change).")
    }

    /// "predicted to save 4.4 ms of 8.3 ms a repeat". Below other findings, what it saves beside them.
    fn saves(&self, on_top: Ns) -> String {
        let per = match self.per {
            Per::Repeat => " a repeat",
            Per::Step => " a step",
            Per::Run => "",
        };
        let of_all = format!("of {}{per}", duration(self.measured_ns));
        let alone = duration((self.measured_ns - self.predicted_ns).max(0));
        let saves = match share(self.on_top, self.measured_ns) > NEARLY_ALL {
            true => format!("predicted to save nearly all {of_all}"),
            false => format!("predicted to save {} {of_all}", self.in_words()),
        };
        match (on_top, self.above) {
            (_, 0) if on_top > 0 => saves,
            // Nothing but the others, or nothing at all.
            (0, 0) => format!("predicted to save nothing {of_all}"),
            (0, _) => {
                format!("predicted to save {alone} {of_all}, but nothing after the cures above")
            }
            _ => format!("{saves} beyond the findings above"),
        }
    }
}

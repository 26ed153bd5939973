//! A headline whole, and in the words of the first finding, where that knows the cause by its name.

use super::words::class;
use super::{Bound, Verdict};
use activity::Ns;
use activity::text::printable;
use findings::no_cure::PACED;
use findings::{Finding, Rule, Says};

impl Verdict {
    /// Takes the words of a finding, where that tells of the same time or of more.
    pub(super) fn retell(&mut self, says: &Says) {
        let is_stall = |it| matches!(it, Bound::Host | Bound::Launch | Bound::Sync);
        let is_same =
            says.bound == self.bound_by || is_stall(says.bound) && is_stall(self.bound_by);
        // What holds little of the idle time is not why.
        let is_little = is_stall(says.bound) && 4.0 * says.part < self.idle;
        if self.frames[0].is_empty() || is_little || !is_same && says.part <= self.share {
            return;
        }
        let is_idle = is_stall(says.bound) || says.bound == Bound::Unknown;
        let frame = &self.frames[usize::from(!is_idle)];
        // Rules say it in few words, whose names are cut already: a word cut in its middle is a riddle.
        let class = match says.why.starts_with("asleep or waiting") {
            // Nobody is at work.
            true => "no work to do",
            false => class(says.bound),
        };
        self.text = printable(&format!("{class}{frame}, {}", says.why));
        (self.bound_by, self.share) = (says.bound, says.part);
        let part = |time: Ns| (says.part * time as f64) as Ns;
        self.cost_a_step_ns = self.scope.step_ns.map(part);
        self.cost_ns = part(self.span_ns);
    }

    /// Takes what to do from what is found first, where nothing says what that brings.
    pub(super) fn next_of(&mut self, first: Option<&Finding>, findings: &[Finding]) {
        // The cure of what the headline names.
        let named = first.filter(|it| it.says.is_some() && !it.cure.is_empty());
        let is_work = self.text.starts_with(class(Bound::Host));
        let uncured = findings.iter().find(|it| it.rule == Rule::NoCure);
        let is_told = |it: &&Finding| is_work || it.next == PACED;
        let uncured = uncured.filter(is_told).map(|it| it.next);
        match (named, uncured) {
            (Some(it), _) => self.next = format!("try {}", it.cure),
            (None, Some(next)) => next.clone_into(&mut self.next),
            (None, None) => {}
        }
    }

    /// All in one sentence: what bounds it, and what the best cure brings or what to do next.
    pub fn headline(&self) -> String {
        match (&self.gain, self.next.as_str()) {
            (Some(gain), _) => format!("{} · {gain}", self.text),
            (None, "") => self.text.clone(),
            (None, next) => format!("{} · {next}", self.text),
        }
    }

    /// The device that it is about and the headline, for a list.
    pub fn line(&self) -> String {
        match self.device {
            Some(device) => format!("GPU {device}: {}", self.headline()),
            None => self.headline(),
        }
    }

    /// What does not fit the headline: samples, and what the run is made of beside.
    pub fn details(&self) -> Vec<String> {
        let seen = self.line.as_ref();
        let mut details: Vec<String> = seen.map(|it| it.seen("") + ".").into_iter().collect();
        details.extend((!self.beside.is_empty()).then(|| format!("{}.", self.beside.join(" · "))));
        details
    }
}

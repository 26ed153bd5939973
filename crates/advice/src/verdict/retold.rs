//! A headline whole, and in the words of the first finding, where that knows the cause by its name.

use super::words::{ALONE, class};
use super::{Bound, Verdict};
use activity::Ns;
use activity::text::printable;
use findings::no_cure::PACED;
use findings::{Finding, Rule, Says};

impl Verdict {
    /// Takes the words of a finding, where that tells of the same time or of more.
    pub(super) fn retell(&mut self, says: &Says) {
        // A rank that is idle itself for longer than it waits for others looks there first.
        let own = self
            .but_for_late
            .take_if(|it| says.bound == Bound::Peer && it.0.is_stall() && self.idle > says.part);
        if let Some((bound, share, text)) = own {
            let said = text.split_once(": ").map_or(&*text, |it| it.1);
            let rest = self.beside.iter().position(|it| it.starts_with(said));
            let rest = rest.map(|at| self.beside.remove(at).split_off(said.len()));
            let rest = rest.iter().map(|it| it.trim_start_matches(", "));
            let rest = rest
                .filter(|it| !it.is_empty())
                .map(|it| format!("GPU idle {it}"));
            self.beside.splice(0..0, rest);
            self.beside.insert(0, says.why.clone());
            return self.turn(bound, share, text);
        }
        let is_same =
            says.bound == self.bound_by || says.bound.is_stall() && self.bound_by.is_stall();
        // What holds little of the idle time is not why.
        let is_little = says.bound.is_stall() && 4.0 * says.part < self.idle;
        if self.frames[0].is_empty() || is_little || !is_same && says.part <= self.share {
            return;
        }
        // Nothing is said twice.
        let is_of_copies = says.why.contains("copies");
        self.beside
            .retain(|it| !is_of_copies || !it.starts_with(ALONE));
        let is_idle = says.bound.is_stall() || says.bound == Bound::Unknown;
        let frame = &self.frames[usize::from(!is_idle)];
        // Rules say it in few words, whose names are cut already: a word cut in its middle is a riddle.
        let class = match says.why.starts_with("asleep or waiting") {
            // Nobody is at work.
            true => "no work to do",
            false => class(says.bound),
        };
        let text = printable(&format!("{class}{frame}, {}", says.why));
        self.turn(says.bound, says.part, text);
    }

    fn turn(&mut self, bound: Bound, share: f64, text: String) {
        (self.bound_by, self.share, self.text) = (bound, share, text);
        let part = |time: Ns| (share * time as f64) as Ns;
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

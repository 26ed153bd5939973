//! What the first finding's cure brings, behind the headline.

use super::{Answered, Bound, Verdict, words};
use activity::Ns;
use activity::units::{duration, share};
use findings::no_cure::UNTRACED;
use findings::{COMPILING, Finding, Rule};

impl Verdict {
    /// Of a job with a late rank in which a cure of what all compute brings more, that leads; else it is told beside.
    fn lead_with_gain(&mut self) {
        let computes = |it: &(Bound, f64, String)| matches!(it.0, Bound::Compute | Bound::Memory);
        match self.but_for_late.take().filter(computes) {
            Some((bound, share, text)) => {
                (self.bound_by, self.share) = (bound, share);
                let late = std::mem::replace(&mut self.text, text);
                self.beside.insert(0, late);
                // Whom the others wait for is worth a line on the smallest screen, too.
                self.is_mostly_beside = true;
            }
            None => self.gain = self.gain.take().map(|it| format!("beside that, {it}")),
        }
    }
}

/// Puts what the first finding's cure brings behind the headline of all. The least that it could take is not above what the cures
/// are predicted to reach.
pub fn promise(verdicts: &mut [Verdict], findings: &[Finding]) {
    // Where nobody asks, nothing else is worth a change.
    let asleep = findings.iter().find(|it| it.rule == Rule::Asleep);
    let first = verdicts.first().and_then(|it| of_class(it, findings));
    // What is saved for sure by tensor cores is told before what saves less at most.
    let least = |it: &&Finding| it.estimated.map_or(0, |it| it[0]);
    let faster = findings.iter().max_by_key(least);
    let faster = faster.filter(|it| first.is_some_and(|first| least(it) > first.weight()));
    // What it saves is beside what else holds the GPU up.
    let is_beside = asleep.is_none() && faster.is_some();
    let first = asleep.or(faster).or(first);
    let predicted = findings.iter().filter_map(|it| it.predicted.as_ref());
    let alone = predicted
        .clone()
        .map(|it| share(it.predicted_ns, it.measured_ns));
    let saved = predicted.map(|it| share(it.on_top, it.measured_ns));
    let least = alone.fold(1.0 - saved.sum::<f64>(), f64::min).max(0.0);
    // Of one device the whole says the same.
    let same = if verdicts.len() == 2 { 2 } else { 1 };
    for verdict in verdicts.iter_mut().take(same) {
        let reached = (verdict.span_ns as f64 * least) as Ns;
        verdict.ideal_ns = verdict.ideal_ns.min(reached);
        if verdict.scope.of != Answered::OddSteps {
            let idle = if verdict.bound_by.is_stall() {
                verdict.idle
            } else {
                0.0
            };
            let is_cold =
                |it: &&Finding| it.rule == Rule::ColdStart && it.bound_ns > verdict.span_ns;
            let start_up = |it: &Finding| format!("start-up takes {}", duration(it.bound_ns));
            verdict.gain = match verdict.text.starts_with(words::TOO_LITTLE) {
                true => findings.iter().find(is_cold).map(start_up),
                false => first.and_then(|it| it.gain(idle)),
            };
            if is_beside && verdict.bound_by == Bound::Peer {
                verdict.lead_with_gain();
            }
            verdict.next_of(first, findings);
            if let Some(says) = first.and_then(|it| it.says.as_ref()) {
                verdict.retell(says);
            }
            // What is compiled up to the end has no start that is over.
            let is_again = |it: &Finding| it.rule == Rule::ColdStart && it.cure == COMPILING;
            if let Some(rest) = verdict.text.strip_prefix("cold start")
                && findings.iter().any(is_again)
            {
                verdict.text = format!("CPU-bound{rest}");
            }
            let place = findings.iter().find(|it| !it.ends_with.is_empty());
            if let Some(it) = place.filter(|_| verdict.text.ends_with(UNTRACED)) {
                verdict.text += &format!(", mostly{}", it.ends_with);
            }
        }
    }
}

/// Whether a rule finds what takes other time than a headline of this class is of. What the CPU does takes as long, however
/// fast kernels and copies are.
pub fn is_beside(bound: Bound, rule: Rule) -> bool {
    let moves = [Rule::Offloading, Rule::PageMigration, Rule::RoundTrips];
    match bound {
        Bound::Host => {
            let speeds = rule.speeds_kernels() || rule.saves_copies();
            is_of_ranks(rule) || speeds && !moves.contains(&rule)
        }
        Bound::Launch | Bound::Sync => is_of_ranks(rule) || rule.speeds_kernels(),
        _ => false,
    }
}

/// Whether a rule's cure lies with what ranks hand to one another.
fn is_of_ranks(rule: Rule) -> bool {
    rule == Rule::ExposedCommunication
}

/// The finding that a headline of what bounds the whole ends with: the first one, or one that cures just that and
/// brings more.
fn of_class<'f>(whole: &Verdict, findings: &'f [Finding]) -> Option<&'f Finding> {
    let (first, bound) = (findings.first()?, whole.bound_by);
    if bound == Bound::Host {
        let mut own = findings.iter();
        return own.find(|it| it.bound_ns > 0 && !is_beside(bound, it.rule));
    }
    let is_of = |it: &&Finding| match bound {
        Bound::Compute | Bound::Memory => it.rule.speeds_kernels(),
        Bound::Copy => it.rule.saves_copies(),
        Bound::Peer => is_of_ranks(it.rule) || it.rule == Rule::ThroughHost,
        Bound::Launch | Bound::Sync => !is_beside(bound, it.rule),
        _ => !it.rule.speeds_kernels(),
    };
    let own = findings.iter().filter(is_of).max_by_key(|it| it.weight());
    let own = own.filter(|it| {
        let is_alike = it.severity >= first.severity || it.says.is_some();
        // A warm program gains nothing by warming up.
        let is_cold = first.rule == Rule::ColdStart && it.severity >= first.severity;
        // Nor does one by what nobody knows a cure of.
        let times = if is_cold || first.rule == Rule::NoCure {
            4
        } else {
            1
        };
        is_alike && times * it.weight() >= first.weight()
    });
    let told = own.filter(|_| !is_of(&first)).unwrap_or(first);
    // What mends a small part of another kind's time stands below.
    let computes = matches!(bound, Bound::Compute | Bound::Memory);
    let is_little = SMALL_PART * told.weight() < whole.cost_ns;
    let is_other = computes && !is_of(&told) && told.says.is_none() && is_little;
    // Nor is what makes kernels faster the cure of copies that take longer than it saves.
    let speeds = told.rule.speeds_kernels() || told.rule == Rule::OwnKernels;
    let is_beside = bound == Bound::Copy && speeds;
    let is_other = is_other || is_beside && told.weight() < whole.cost_ns;
    // Nor do late ranks make this one idle.
    let is_stall = matches!(bound, Bound::Launch | Bound::Sync);
    let is_other = is_other || is_stall && is_of_ranks(told.rule);
    (!is_other).then_some(told)
}

/// So many times a cure's saving is no part of a headline.
const SMALL_PART: Ns = 5;

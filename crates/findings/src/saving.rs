//! What findings are worth: the edits that cure them, replayed alone and on top of one another.
//!
//! Every finding with an edit is predicted alone. Then they are stacked. The one that saves most comes first, on top of
//! it the one that saves most of what is left, and so on. What each saves on top is its `saving_ns`, so the sum of them
//! is what the replay of all of them together saves. Savings hardly grow with what is made before, so the one that
//! promised most the last time is tried first. It is taken when it still beats what the others promised.
//! `docs/FINDINGS.md` says what becomes of the others.

use std::cmp::Reverse;

use super::{EVIDENCE_MAX, Finding, Rule, Severity};
use crate::thresholds;
use activity::Ns;
use activity::feed::Stop;
use activity::units::share;
use replay::edits::NOTHING_TO_CAPTURE;
use replay::whatif::{Outcome, Scope, WhatIf};
use scenario::edit::EditSet;

/// What the times of a prediction are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    Repeat,
    Step,
    Run,
}

/// A finding's edit alone, for one repeat or step.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Predicted {
    /// What the times are of.
    pub per: Per,
    /// How many repeats or steps were measured and predicted.
    pub samples: usize,
    /// Their median time as recorded.
    pub measured_ns: Ns,
    /// And with the edit.
    pub predicted_ns: Ns,
    /// The same as it most likely comes out, be the interval as wide as it may: what stacked savings are made of.
    pub likely_ns: Ns,
    /// The interval around that.
    pub low_ns: Ns,
    pub high_ns: Ns,
    /// How far the unchanged replay is off, as a share.
    pub replay_error: f64,
    /// What the edit takes for granted.
    pub notes: Vec<String>,
    /// Whether the last steps stand for all of them.
    #[serde(skip)]
    pub is_estimate: bool,
    /// What the median falls by on top of the findings above it.
    #[serde(skip)]
    pub on_top: Ns,
    /// How many findings it is on top of.
    #[serde(skip)]
    pub above: usize,
}

/// A finding, its edit, and what that saves alone.
struct Candidate {
    finding: Finding,
    edit: EditSet,
    alone: Outcome,
    /// The bound that its rule reckoned.
    seen: Ns,
    /// What it saved on top of those that were made before at the last look, and how many those were.
    last: Ns,
    looked: usize,
    /// All of them and this one together; `None` where that finds nothing to change any more.
    with: Option<(EditSet, Outcome)>,
}

/// Says what findings save, and puts them in order: by severity, what saves most first.
///
/// `whatif` is the same stretch of the same timeline, or why there is nothing to replay. Between two replays it is
/// given up once it is told to stop; what is not predicted by then stays without.
pub(crate) fn predict(findings: &mut Vec<Finding>, whatif: Result<&WhatIf<'_>, &str>, stop: &Stop) {
    let (mut candidates, mut rest) = (Vec::new(), Vec::new());
    for mut finding in std::mem::take(findings) {
        match alone(&finding, whatif, stop) {
            None => rest.push(finding),
            Some(Err(reason)) => {
                // A step of one launch has nothing that a graph could hold.
                if finding.rule == Rule::LaunchBound && reason == NOTHING_TO_CAPTURE {
                    (finding.cure, finding.change) = ("larger batches", Vec::new());
                    "Launch less often: fused kernels, larger batches, several steps in one CUDA graph."
                        .clone_into(&mut finding.advice);
                }
                finding.refused = Some(reason);
                // What a replay does not give back as it was it holds no bound to either.
                let whatif = whatif
                    .ok()
                    .filter(|it| it.replay_error() <= thresholds::SAVING_SHARE);
                let at_most = finding.at_most.as_ref().zip(whatif);
                if let Some(Ok(most)) = at_most.map(|(edit, whatif)| whatif.likely(edit)) {
                    finding.bound_ns = finding.bound_ns.min(most.whole_saving.max(0));
                    let part = share(finding.bound_ns, at_most.map_or(0, |it| it.1.whole()));
                    if !cases::WORTH_SHARE.is_reached_by(part) {
                        continue;
                    }
                }
                rest.push(finding);
            }
            Some(Ok((edit, alone))) => candidates.push(Candidate::new(finding, edit, alone)),
        }
    }
    if let Ok(whatif) = whatif {
        let (stacked, others) = stack(whatif, candidates, stop);
        *findings = stacked;
        rest.extend(others);
    }
    rest.sort_by_key(Finding::order);
    findings.append(&mut rest);
    // Of equal severity those that are stacked come first, in their order.
    // Of a job the late rank does: it is the headline. So does a cold start that takes more than any of them saves.
    // What is known by its name does that could save twice as much, and so does work of the CPU.
    let most = findings.iter().filter_map(|f| f.saving_ns).max();
    let is_named = |f: &Finding| f.rule == Rule::HostBound || f.says.is_some();
    let is_first = |f: &Finding| {
        let is_far =
            is_named(f) && f.saving_ns.is_none() && most.is_some_and(|most| f.bound_ns > 2 * most);
        f.gain.is_some() || is_far || most.is_some() && f.inside_ns > most
    };
    findings.sort_by_key(|f| Reverse((f.rank(), is_first(f))));
}

/// What is lost in what the replay cannot explain, and in what two runs differ by.
fn noise(whatif: &WhatIf<'_>) -> Ns {
    let share = whatif.replay_error().max(thresholds::SAVING_SHARE);
    ((whatif.whole() as f64 * share) as Ns).max(thresholds::SAVING_NS)
}

/// The edit that cures a finding and what it saves alone, or why nothing is predicted; `None` where no edit describes
/// the cure. Of several edits it is the one that takes least for granted of those that save about as
/// much as any.
fn alone(
    finding: &Finding,
    whatif: Result<&WhatIf<'_>, &str>,
    stop: &Stop,
) -> Option<Result<(EditSet, Outcome), String>> {
    if finding.cures.is_empty() || stop.is_stopped() {
        return None;
    }
    let whatif = match (whatif, &finding.refused) {
        (Ok(whatif), None) => whatif,
        (_, Some(reason)) => return Some(Err(reason.clone())),
        (Err(reason), None) => return Some(Err(reason.to_owned())),
    };
    if let Some(premise) = &finding.premise
        && whatif.likely(premise).is_err()
    {
        let reason = format!(
            "it only helps together with `{premise}`, and both together cannot be predicted"
        );
        return Some(Err(reason));
    }
    let mut refused = None;
    let mut made: Vec<(EditSet, Outcome)> = Vec::new();
    for edit in &finding.cures {
        match whatif.predict(edit).outcome {
            Ok(outcome) => made.push((edit.clone(), outcome)),
            Err(reason) => {
                refused.get_or_insert(reason);
            }
        }
    }
    let best = made.iter().map(|(_, o)| o.whole_saving).max();
    let is_as_good =
        |saving: Ns| best.is_some_and(|best| saving as f64 >= best as f64 * thresholds::CURE_SHARE);
    let chosen = made.into_iter().find(|(_, o)| is_as_good(o.whole_saving));
    chosen.map(Ok).or(refused.map(Err))
}

/// Puts candidates on top of one another. Returns those that save something so, and the others that are
/// worth a line.
fn stack(
    whatif: &WhatIf<'_>,
    mut left: Vec<Candidate>,
    stop: &Stop,
) -> (Vec<Finding>, Vec<Finding>) {
    let noise = noise(whatif);
    let (mut stacked, mut others): (Vec<Finding>, Vec<Finding>) = (Vec::new(), Vec::new());
    let mut below: Option<(EditSet, Outcome)> = None;
    // How many were put on it, also as a part of another.
    let mut made = 0;
    // By what each saved at the last look, the greatest last.
    left.sort_by_key(Candidate::key);
    while let Some(mut candidate) = left.pop() {
        if candidate.looked < made {
            if stop.is_stopped() {
                others.push(candidate.finding);
                continue;
            }
            candidate.replay(whatif, below.as_ref(), made);
            let at = left.partition_point(|c| c.key() <= candidate.key());
            left.insert(at, candidate);
            continue;
        }
        let saves = candidate.last;
        let (true, Some(with)) = (saves > noise, candidate.with.take()) else {
            others.extend(beside(whatif, candidate, stacked.len()));
            continue;
        };
        made += 1;
        // What those above make of it and it could not be by itself, they save only together.
        if saves > candidate.finding.bound_ns
            && let Some(at) = partner(whatif, &stacked, &candidate, saves)
        {
            join(whatif, &mut stacked[at], candidate, saves);
            below = Some(with);
            continue;
        }
        let before = below.map_or(whatif.measured(), |b| b.1.predicted);
        let mut finding = candidate.into_finding(whatif);
        let bounded = saves.min(finding.bound_ns);
        finding.saving_ns = Some(bounded);
        finding.severity = severity(bounded, whatif);
        if let Some(predicted) = &mut finding.predicted {
            let on_top = before - with.1.predicted;
            predicted.on_top = (on_top as f64 * share(bounded, saves)) as Ns;
            // The median of a step may fall by more than all of them do at the mean.
            if predicted.per == Per::Step {
                let steps = predicted.samples.max(1) as f64 * whatif.times;
                let mean = (bounded as f64 / steps) as Ns;
                predicted.on_top = predicted.on_top.min(mean.max(0));
            }
            predicted.above = stacked.len();
        }
        stacked.push(finding);
        below = Some(with);
    }
    // What the one above it makes possible cannot matter more than that one.
    let mut most = Severity::Info;
    for finding in stacked.iter_mut().rev() {
        most = most.max(finding.severity);
        finding.severity = most;
    }
    (stacked, others)
}

/// Of the findings above a candidate the one with which it saves most, of those that with it stay within their bounds.
fn partner(
    whatif: &WhatIf<'_>,
    stacked: &[Finding],
    candidate: &Candidate,
    saves: Ns,
) -> Option<usize> {
    let together = |finding: &Finding| -> Option<(bool, Ns)> {
        let edit = finding.edit.as_ref()?.join(&candidate.edit);
        let outcome = whatif.likely(&edit).ok()?;
        let bound = finding.bound_ns + candidate.finding.bound_ns;
        let is_within = finding.saving_ns? + saves <= bound;
        Some((is_within, outcome.whole_saving - finding.alone_ns?))
    };
    let found = stacked.iter().map(together).enumerate();
    let known = found.filter_map(|(at, of)| Some((of?, at)));
    known.max().map(|(_, at)| at)
}

/// Makes one finding of two whose edits save something only together; `saves` is what the second adds to all.
fn join(whatif: &WhatIf<'_>, finding: &mut Finding, candidate: Candidate, saves: Ns) {
    let other = candidate.finding;
    let edit = match &finding.edit {
        Some(edit) => edit.join(&candidate.edit),
        None => candidate.edit,
    };
    if let (Ok(outcome), Some(predicted)) = (whatif.predict(&edit).outcome, &mut finding.predicted)
    {
        predicted.on_top += predicted.likely_ns - outcome.predicted;
        predicted.likely_ns = outcome.predicted;
        predicted.predicted_ns = outcome.predicted;
        (predicted.low_ns, predicted.high_ns) = (outcome.low, outcome.high);
        predicted.notes = notes(whatif, &outcome);
        finding.alone_ns = Some(outcome.whole_saving);
    }
    finding.edit = Some(edit);
    let bound = finding.bound_ns + other.bound_ns;
    finding.bound_ns = bound.max(finding.alone_ns.unwrap_or(0)).min(whatif.whole());
    let saves = finding.saving_ns.unwrap_or(0) + saves;
    let bounded = saves.min(finding.bound_ns);
    finding.saving_ns = Some(bounded);
    if let Some(predicted) = &mut finding.predicted {
        predicted.on_top = (predicted.on_top as f64 * share(bounded, saves)) as Ns;
    }
    finding.title = format!("{}; and {}", finding.title, other.title);
    finding.advice = format!("{} {}", finding.advice, other.advice);
    finding.count += other.count;
    finding.evidence.extend(other.evidence);
    finding.evidence.truncate(EVIDENCE_MAX);
    finding.with.push(other.rule);
}

/// What a prediction takes for granted, and what it does not know.
fn notes(whatif: &WhatIf<'_>, outcome: &Outcome) -> Vec<String> {
    let mut notes = outcome.notes.clone();
    let unknowns = outcome.unknowns.iter();
    notes.extend(unknowns.map(|unknown| format!("uncertain: {unknown}")));
    if whatif.times > 1.0 {
        let samples = whatif.samples.len();
        notes.push(format!("estimated from the last {samples} steady steps"));
    }
    notes
}

fn severity(saves: Ns, whatif: &WhatIf<'_>) -> Severity {
    Severity::warn_where(cases::WARNING_SHARE.is_reached_by(share(saves, whatif.whole())))
}

/// What saves nothing on top of the others. It is a remark where it would save alone, or where its bound is so large
/// that readers would miss it; else it is nothing.
fn beside(whatif: &WhatIf<'_>, candidate: Candidate, above: usize) -> Option<Finding> {
    let is_large = candidate.finding.severity == Severity::Warning;
    if candidate.alone.whole_saving <= noise(whatif) && !is_large {
        return None;
    }
    let mut finding = candidate.into_finding(whatif);
    finding.saving_ns = Some(0);
    finding.severity = Severity::Info;
    if let Some(predicted) = &mut finding.predicted {
        predicted.above = above;
    }
    Some(finding)
}

impl Candidate {
    fn new(mut finding: Finding, edit: EditSet, alone: Outcome) -> Self {
        let seen = finding.bound_ns;
        // The CPU also gets on with what lies behind, which only a replay can tell: what-if says the same.
        let cap = finding.cap_ns.unwrap_or(Ns::MAX);
        finding.bound_ns = seen.max(alone.whole_saving.min(cap));
        Candidate {
            finding,
            seen,
            last: alone.whole_saving,
            looked: 0,
            with: Some((edit.clone(), alone.clone())),
            edit,
            alone,
        }
    }

    /// What it saves of what its rule saw. Of two that save the same the one whose first cure the edit is is told first.
    fn key(&self) -> (Ns, bool) {
        (
            self.last.min(self.seen),
            self.finding.cures.first() == Some(&self.edit),
        )
    }

    /// What it saves on top of `below`, which are so many.
    fn replay(&mut self, whatif: &WhatIf<'_>, below: Option<&(EditSet, Outcome)>, number: usize) {
        let edit = below.map_or_else(|| self.edit.clone(), |b| b.0.join(&self.edit));
        let outcome = whatif.likely(&edit).ok();
        let before = below.map_or(0, |b| b.1.whole_saving);
        self.last = outcome.as_ref().map_or(0, |o| o.whole_saving - before);
        self.with = outcome.map(|outcome| (edit, outcome));
        self.looked = number;
    }

    fn into_finding(self, whatif: &WhatIf<'_>) -> Finding {
        let per = match &whatif.scope {
            Scope::Repeats(_) => Per::Repeat,
            Scope::Steps(_) => Per::Step,
            Scope::Run => Per::Run,
        };
        let beside = share(self.finding.beside_ns, whatif.whole()) * whatif.measured() as f64;
        let mut with = (self.alone.predicted - beside as Ns).max(0);
        if self.finding.rule == Rule::TinyCopies {
            // What the CPU does from one copy to the next goes with them, and stays in a replay.
            let left = 1.0 - share(self.seen, whatif.whole());
            with = with.min((left * whatif.measured() as f64) as Ns);
        }
        // Of two cures together it may be more.
        let is_alone = self.edit.edits.len() == 1 || self.finding.cures.first() == Some(&self.edit);
        let cap = self.finding.cap_ns.filter(|_| is_alone);
        let cap = cap.map(|cap| share(cap.max(self.seen), whatif.whole()).min(1.0));
        let least = cap.map_or(0.0, |cap| (1.0 - cap) * whatif.measured() as f64) as Ns;
        let [predicted, low, high] = [
            self.alone.predicted,
            self.alone.low.min(with),
            self.alone.high,
        ]
        .map(|it| it.max(least));
        // However wide the interval is, no launches but those of the optimizer's step can go.
        let rest = 1.0 - share(self.finding.bound_ns, whatif.whole()).min(1.0);
        let rest = (rest * whatif.measured() as f64) as Ns;
        let low = match self.finding.rule {
            Rule::OptimizerLaunches => low.max(rest.min(predicted)),
            _ => low,
        };
        Finding {
            edit: Some(self.edit),
            alone_ns: Some(self.alone.whole_saving),
            predicted: Some(Predicted {
                per,
                samples: whatif.samples.len(),
                measured_ns: whatif.measured(),
                predicted_ns: predicted,
                likely_ns: predicted,
                low_ns: low,
                high_ns: high,
                replay_error: whatif.replay_error(),
                notes: notes(whatif, &self.alone),
                is_estimate: whatif.times > 1.0,
                on_top: 0,
                above: 0,
            }),
            ..self.finding
        }
    }
}

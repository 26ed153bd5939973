//! What could be better: one rule a file, registered in [`RULES`].
//!
//! A rule looks at a timeline, or at one pass of it, and either finds nothing or says in one
//! [`Finding`] what it saw, where, how much time that could cost at most, and what to do about it.
//! Thresholds stand in [`thresholds`], each beside the measurement or the reasoning behind it;
//! `docs/FINDINGS.md` has the same table for readers.

mod alloc_loop;
mod below_roof;
mod cold_start;
mod copy_bound;
mod declared;
mod evidence;
mod exposed_collectives;
mod first_use;
pub mod fold;
mod host_bound;
mod idle_gpu;
mod late_rank;
mod launch_bound;
mod low_bandwidth;
mod migrations;
mod no_core;
mod no_overlap;
mod one_engine;
mod pageable;
mod race;
mod saving;
mod scope;
mod shared_gpu;
mod sync_copies;
mod sync_loop;
#[cfg(test)]
mod tests;
pub mod thresholds;
mod throttled;
mod through_host;
mod tiny_copies;
mod under_filled;
mod unfused;
mod unwaited;
mod watched;
mod words;

use std::cmp::Reverse;

use serde::Serialize;

pub use evidence::{EVIDENCE_MAX, Evidence};
pub use saving::{Per, Predicted};
use scope::{At, Place, is_behind};
pub use scope::{Planned, Scope};

use super::whatif::WhatIf;
use super::{crew, figures};
use crate::activity::Ns;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth a change.
    Warning,
}

/// Something that could be better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule that found it ("pageable-copy").
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen, in a line.
    pub title: String,
    /// Where, most telling first; at most [`EVIDENCE_MAX`].
    pub evidence: Vec<Evidence>,
    /// How many places there are in all.
    pub count: u64,
    /// The change that would cure it, as `cuptop whatif --edit` takes it; `None` where no edit describes it.
    pub edit: Option<String>,
    /// What the edit is predicted to save of all the time looked at, on top of those of the findings above it;
    /// 0 where they leave nothing to save; `None` where nothing was predicted.
    pub saving_ns: Option<Ns>,
    /// What the edit alone is predicted to save.
    pub alone_ns: Option<Ns>,
    /// The prediction of the edit alone.
    pub predicted: Option<Predicted>,
    /// Why nothing was predicted, where an edit describes the cure.
    pub refused: Option<String>,
    /// An upper bound of the time that could be saved, at most the span looked at (a cold start apart); 0 for
    /// what is no matter of time.
    pub bound_ns: Ns,
    /// What to do about it, in a sentence.
    pub advice: String,
    /// Where it was seen, where there is more than one place it could be: devices, points of a sweep. The
    /// title is that of the one with the greatest bound.
    pub places: Vec<String>,
    /// An edit that the advice takes for granted: where that is refused, so is the prediction.
    #[serde(skip)]
    pub premise: Option<&'static str>,
    /// Rules whose findings are part of this one, because the edits save something only together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<&'static str>,
}

impl Finding {
    /// Whether it says that something is wrong rather than slow, or that something is without effect.
    #[must_use]
    pub fn is_no_matter_of_time(&self) -> bool {
        self.bound_ns == 0
    }

    /// The title with where it was seen.
    #[must_use]
    pub fn headline(&self) -> String {
        match self.places.as_slice() {
            [] => self.title.clone(),
            [one] => format!("{one}: {}", self.title),
            [first, between @ .., last] => {
                // "GPU 0 to GPU 1" would be the way of a copy.
                let is_device = first.starts_with("GPU ");
                let first = match is_device {
                    true => first.replacen("GPU ", "GPUs ", 1),
                    false => first.clone(),
                };
                let last = ["at ", "GPU "]
                    .iter()
                    .find_map(|word| last.strip_prefix(word))
                    .unwrap_or(last);
                let and = if between.is_empty() { "and" } else { "to" };
                format!("{first} {and} {last}, the worst of them: {}", self.title)
            }
        }
    }
}

/// The edits that cure what a rule finds, the one that takes least for granted first.
fn cures(rule: &str) -> &'static [&'static str] {
    let cures: [(&str, &[&str]); 8] = [
        (pageable::RULE, &["pin"]),
        (tiny_copies::RULE, &["merge-copies"]),
        (sync_copies::RULE, &["async", "async+own-stream"]),
        (sync_loop::RULE, &["no-sync"]),
        (alloc_loop::RULE, &["reuse"]),
        (launch_bound::RULE, &["graph"]),
        // A host that waits for every batch launches the next one too late, whatever its stream.
        (
            no_overlap::RULE,
            &["own-stream", "no-sync", "no-sync+own-stream"],
        ),
        (unfused::RULE, &["fuse:once"]),
    ];
    let of_rule = cures.into_iter().find(|cure| cure.0 == rule);
    of_rule.map_or(&[], |cure| cure.1)
}

/// A rule: what looks, at one device or at the whole timeline.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// At each device that has an operation, with its place in [`Scope::devices`].
    Device(fn(&Scope, usize) -> Option<Finding>),
    /// Once.
    Timeline(fn(&Scope) -> Option<Finding>),
}

/// All rules by name, in the order in which findings of equal weight are shown.
pub const RULES: &[(&str, Look)] = &[
    (pageable::RULE, Look::Device(pageable::look)),
    (tiny_copies::RULE, Look::Device(tiny_copies::look)),
    (sync_copies::RULE, Look::Device(sync_copies::look)),
    (sync_loop::RULE, Look::Device(sync_loop::look)),
    (alloc_loop::RULE, Look::Timeline(alloc_loop::look)),
    (launch_bound::RULE, Look::Device(launch_bound::look)),
    (no_overlap::RULE, Look::Device(no_overlap::look)),
    (cold_start::RULE, Look::Timeline(cold_start::look)),
    (under_filled::RULE, Look::Device(under_filled::look)),
    (low_bandwidth::RULE, Look::Device(low_bandwidth::look)),
    (race::RULE, Look::Timeline(race::look)),
    (host_bound::RULE, Look::Device(host_bound::look)),
    (copy_bound::RULE, Look::Device(copy_bound::look)),
    (
        exposed_collectives::RULE,
        Look::Device(exposed_collectives::look),
    ),
    (migrations::RULE, Look::Device(migrations::look)),
    (one_engine::RULE, Look::Device(one_engine::look)),
    (through_host::RULE, Look::Timeline(through_host::look)),
    (idle_gpu::RULE, Look::Timeline(idle_gpu::look)),
    (unfused::RULE, Look::Device(unfused::look)),
    (below_roof::RULE, Look::Device(below_roof::look)),
    (unwaited::RULE, Look::Timeline(unwaited::look)),
    (no_core::WAITS, Look::Device(no_core::waits)),
    (no_core::LIMIT, Look::Timeline(no_core::limit)),
    (throttled::RULE, Look::Device(throttled::look)),
    (shared_gpu::RULE, Look::Device(shared_gpu::look)),
    (watched::NODES, Look::Timeline(watched::nodes)),
    (watched::LAUNCHES, Look::Timeline(watched::launches)),
    (late_rank::RULE, Look::Timeline(late_rank::look)),
];

/// Everything that the rules find with what it saves, in order: warnings first, then what saves most. `whatif`
/// makes the same stretch ready to be replayed, and is asked for where a finding has an edit. It is given up, between
/// two rules or two replays, once `is_stopped` says so.
pub fn weighed<'a>(
    scope: &Scope,
    whatif: impl FnOnce() -> Result<WhatIf<'a>, String>,
    is_stopped: &dyn Fn() -> bool,
) -> Vec<Finding> {
    let mut findings = of_unless(scope, is_stopped);
    if !is_stopped() && findings.iter().any(|f| f.edit.is_some()) {
        let is_whole = scope.devices.iter().all(|f| f.not_recorded_ns == 0);
        let whatif = if is_whole {
            whatif()
        } else {
            Err("recording was off for a part of the time".to_owned())
        };
        saving::predict(
            &mut findings,
            whatif.as_ref().map_err(String::as_str),
            is_stopped,
        );
    }
    findings
}

/// What belongs to the start of a program, which its steps do not show: a cold start.
#[must_use]
pub fn of_start_up(scope: &Scope) -> Vec<Finding> {
    cold_start::look(scope).into_iter().collect()
}

/// Everything that the rules find, warnings first, then the greatest possible saving.
#[must_use]
pub fn of(scope: &Scope) -> Vec<Finding> {
    of_unless(scope, &|| false)
}

/// The same, given up between two rules once `is_stopped` says so: what was found until then.
#[must_use]
pub fn of_unless(scope: &Scope, is_stopped: &dyn Fn() -> bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let records = scope.causes.graph().ops.len();
    for (_, look) in RULES {
        if is_stopped() {
            break;
        }
        match look {
            Look::Device(look) => {
                let devices: Vec<usize> = (0..scope.devices.len()).collect();
                let of_each = crew::each(records, &devices, |&i| {
                    let mut finding = look(scope, i)?;
                    if devices.len() > 1 {
                        finding.places = vec![format!("GPU {}", scope.devices[i].device)];
                    }
                    Some(finding)
                });
                findings.extend(of_each.into_iter().flatten());
            }
            Look::Timeline(look) => findings.extend(look(scope)),
        }
    }
    findings.retain(|f| f.bound_ns >= thresholds::WORTH_NS || f.is_no_matter_of_time());
    let mut findings = fold::devices(findings);
    findings.sort_by_key(|f| Reverse((f.severity, f.bound_ns)));
    findings
}

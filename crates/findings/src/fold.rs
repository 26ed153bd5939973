//! The same finding of several devices, variants and points of a sweep in one line.

use super::{EVIDENCE_MAX, Finding};

/// Findings of one rule become one: the words of the one with the greatest bound, the places of all.
pub fn devices(findings: Vec<Finding>) -> Vec<Finding> {
    let mut folded: Vec<Finding> = Vec::new();
    for finding in findings {
        match folded.iter_mut().find(|f| f.rule == finding.rule) {
            // Devices run beside each other: what they save is not added up.
            Some(before) => into(before, finding),
            None => folded.push(finding),
        }
    }
    folded
}

/// What several checks of one rule found, in one line: each under the places where it was seen.
pub(super) fn together(found: impl Iterator<Item = Vec<Finding>>) -> Option<Finding> {
    let found = found.filter_map(|found| devices(found).pop());
    found.reduce(|mut before, after| {
        before.title = format!("{} · {}", before.headline(), after.headline());
        before.advice = format!("{} {}", before.advice, after.advice);
        before.places.clear();
        before.severity = before.severity.max(after.severity);
        before.count += after.count;
        before.bound_ns = before.bound_ns.max(after.bound_ns);
        before.evidence.extend(after.evidence);
        before.evidence.truncate(EVIDENCE_MAX);
        before
    })
}

/// The findings of variants (at points of a sweep) under their labels, one of each rule for each name: `of` are
/// name, label and findings in the order they ran.
pub fn variants<'f>(
    of: impl IntoIterator<Item = (&'f str, String, &'f [Finding])>,
) -> Vec<(String, Vec<Finding>)> {
    let mut all: Vec<(String, Vec<Finding>)> = Vec::new();
    for (name, label, findings) in of {
        if findings.is_empty() {
            continue;
        }
        let at = all.iter().position(|(known, _)| known == name);
        let at = at.unwrap_or_else(|| {
            all.push((name.to_owned(), Vec::new()));
            all.len() - 1
        });
        for finding in findings {
            let mut finding = finding.clone();
            if label != name {
                let value = label.strip_prefix(name).unwrap_or(&label).trim();
                let at = if value.starts_with('#') { "" } else { "at " };
                finding.places = vec![format!("{at}{value}")];
            }
            match all[at].1.iter_mut().find(|f| f.rule == finding.rule) {
                Some(before) => into(before, finding),
                None => all[at].1.push(finding),
            }
        }
    }
    // Of a sweep each stands where the figures of its worst point put it.
    for (_, findings) in &mut all {
        let is_swept = |f: &Finding| f.places.len() > 1 && !f.places[0].starts_with("GPU ");
        if findings.iter().any(is_swept) {
            findings.sort_by_key(Finding::order);
        }
    }
    all
}

fn into(before: &mut Finding, finding: Finding) {
    let mut places = std::mem::take(&mut before.places);
    let count = before.count + finding.count;
    let severity = before.severity.max(finding.severity);
    places.extend(finding.places.iter().cloned());
    let mut evidence;
    if finding.bound_ns > before.bound_ns {
        evidence = finding.evidence.clone();
        evidence.append(&mut before.evidence);
        *before = finding;
    } else {
        evidence = std::mem::take(&mut before.evidence);
        evidence.extend(finding.evidence);
    }
    evidence.truncate(EVIDENCE_MAX);
    before.evidence = evidence;
    before.places = places;
    before.count = count;
    before.severity = severity;
}

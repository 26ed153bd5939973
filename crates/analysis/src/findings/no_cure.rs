//! What keeps a GPU idle for long and no rule has a cure for: it is said, so that nobody looks for one.

use std::cmp::Reverse;

use super::host_bound::ONE_GAP;
use super::{Finding, Occurrence, Scope, Severity, thresholds};
use crate::causes::{Group, Shares};
use crate::figures::{self, DeviceFigures};
use activity::Span;
use activity::units::{duration, percent};

/// The rules that tell of a group's idle time.
fn rules(group: Group) -> &'static [&'static str] {
    match group {
        Group::Host | Group::SetUp => &[
            "host-bound",
            "managed-reads",
            "cold-start",
            "alloc-in-loop",
            "sync-in-loop",
        ],
        Group::Launch => &["launch-bound", "tiny-copies", "alloc-in-loop", "cold-start"],
        Group::Sync => &[
            "sync-in-loop",
            "synchronous-copy",
            "tiny-copies",
            "pageable-copy",
            "no-overlap",
        ],
        Group::Queue | Group::Profiler | Group::Unknown => &[],
    }
}

fn advice(group: Group) -> &'static str {
    match group {
        Group::Host => "Sample the Python lines (--python) to see what the CPU works on.",
        Group::SetUp => "Look at what is allocated or loaded, and do that before the loop.",
        Group::Launch => "Look at the CPU work between launches: what can be done earlier?",
        Group::Sync => "Look at what the CPU needs the result for: can the GPU do that part?",
        Group::Queue | Group::Profiler | Group::Unknown => {
            "No record says why: record again with --waits and with CPU ops."
        }
    }
}

/// The greatest group of a device that no finding tells of, where that is much.
pub(super) fn check(scope: &Scope, f: &DeviceFigures, found: &[Finding]) -> Option<Finding> {
    if f.idle_share() < thresholds::NO_CURE_SHARE {
        return None;
    }
    let mut sums = Shares::default();
    let mut at: Vec<(Shares, Span)> = Vec::new();
    for (gap, pieces) in scope.gaps(f) {
        let before = sums;
        for piece in &*pieces {
            sums[scope.causes.group(gap, piece) as usize] += piece.span.len();
        }
        let mut here = sums;
        here.iter_mut()
            .zip(before)
            .for_each(|(it, before)| *it -= before);
        at.push((here, gap.span));
    }
    // The device's own pauses are no matter of the program, nor is what the profiler takes.
    (sums[Group::Queue as usize], sums[Group::Profiler as usize]) = (0, 0);
    let (group, time) = *Group::most(sums, 0).first()?;
    // A cold start that lies before the work tells of nothing in it.
    let tells = |it: &Finding| it.inside_ns.is_none_or(|inside| 2 * inside >= time);
    let mut told = found.iter().filter(|it| rules(group).contains(&it.rule));
    let is_told = told.any(tells);
    let is_long = f.part(time) >= thresholds::NO_CURE_SHARE;
    if is_told || !is_long || time < thresholds::WORTH_NS {
        return None;
    }
    at.retain(|it| it.0[group as usize] > 0);
    at.sort_by_key(|it| Reverse((it.0[group as usize], it.1)));
    let may_be_ahead = scope.may_be_ahead(f);
    let is_alone = group == Group::Host && !at.iter().any(|it| may_be_ahead(it.1.end));
    // Without a gap that holds nearly all of it the rest may look otherwise.
    let longest = at.first().map_or(0, |it| it.0[group as usize]);
    let once = match figures::share(longest, time) >= ONE_GAP {
        true => {
            let rest = percent(figures::share(f.busy_ns, f.recorded_ns() - longest));
            format!(", nearly all in one gap (busy for {rest} of the rest)")
        }
        false => String::new(),
    };
    let at: Vec<Occurrence> = at.iter().map(|it| Occurrence::Gap(f.index, it.1)).collect();
    Some(Finding {
        rule: "no-cure",
        severity: Severity::Info,
        title: format!(
            "{} keeps the GPU idle for {} ({}){once}: no cure is known",
            match group {
                Group::Unknown => "an unknown cause",
                known => known.label(),
            },
            duration(time),
            percent(f.part(time)),
        ),
        advice: match is_alone {
            true => "No other GPU work could run meanwhile: only faster CPU code helps.",
            _ if group == Group::Host && !once.is_empty() => {
                "It happens once. Where it is set-up or a check of results, leave it out of what you measure."
            }
            false => advice(group),
        }
        .to_owned(),
        ..scope.found(f.span_ns, time, &at)
    })
}

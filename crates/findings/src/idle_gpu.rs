//! A GPU that the program leaves idle while another works.

use super::{Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::{self, duration, percent, share};
use activity::{Copy, Direction, Ns, Span};
use trace::Trace;

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    elsewhere(scope).or_else(|| one_after_another(scope))
}

const TOGETHER: &str =
    "Where they need nothing of each other, start them together, from a thread for each GPU.";

/// GPUs of one process that begin when the one before has ended, and bring nothing back that the next one could need.
fn one_after_another(scope: &Scope) -> Option<Finding> {
    let mut all: Vec<_> = scope.devices.iter().collect();
    all.sort_by_key(|f| f.span.start);
    let (first, last) = (*all.first()?, *all.last()?);
    let process = scope.processes(first);
    let is_after = all.windows(2).all(|it| it[0].span.end <= it[1].span.start);
    let is_one = process.len() == 1 && all.iter().all(|f| scope.processes(f) == process);
    let hands_on = all[..all.len() - 1].iter().any(|f| {
        let hands = |it: &Copy| match it.direction {
            Direction::D2H => it.bytes > Copy::TINY_BYTES,
            way => way != Direction::H2D && way != Direction::D2D,
        };
        scope.copies(f).iter().any(|it| hands(&it.2))
    });
    let times: Vec<Ns> = all.iter().map(|f| f.span_ns).collect();
    let (least, most) = (*times.iter().min()?, *times.iter().max()?);
    let whole = Span::new(first.span.start, last.span.end).len();
    let is_worth = cases::LARGE_SHARE.is_reached_by(share(least, whole));
    let at = all.iter().map(|f| Occurrence::Gap(f.index, f.span));
    let at: Vec<_> = at.collect();
    (all.len() > 1 && is_after && is_one && !hands_on && is_worth).then(|| Finding {
        title: format!(
            "{} GPUs work one after another: each for {} of {}",
            all.len(),
            match [least, most].map(duration) {
                [a, b] if a == b => a,
                _ => units::range((least, most)),
            },
            duration(whole)
        ),
        advice: TOGETHER.to_owned(),
        cure: "starting the GPUs together",
        ..scope.found(whole, whole - most, &at)
    })
}

/// One that a pass of a scenario has no work for.
fn elsewhere(scope: &Scope) -> Option<Finding> {
    // Only a pass is known to be all of its program: a rank's timeline may well leave GPUs to other ranks.
    scope.planned?;
    let f = scope.devices.iter().max_by_key(|f| f.compute_ns)?;
    let is_used = |trace: &Trace, index: usize| {
        let mut lanes = trace.streams_of(index);
        lanes.any(|(_, lane)| !lane.is_empty())
    };
    let idle = (0..scope.trace.devices().len()).find(|&index| {
        is_used(scope.trace, index) && scope.devices.iter().all(|f| f.index != index)
    })?;
    if f.part(f.compute_ns) < thresholds::COMPUTE_SHARE || f.kernels < 2 {
        return None;
    }
    let at = [Occurrence::Gap(idle, f.span)];
    let id = scope.trace.devices()[idle].info.id;
    Some(Finding {
        title: format!(
            "GPU {id} is idle all the time, while GPU {} computes {} of the time",
            f.device,
            percent(f.part(f.compute_ns)),
        ),
        advice: "Give independent parts of the work to the other GPU.".to_owned(),
        ..scope.found(f.span_ns, f.compute_ns / 2, &at)
    })
}

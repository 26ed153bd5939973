//! Steps that took longer than the others, and what of them was longer.

use super::operations::count;
use crate::breakdown::Breakdown;
use activity::stats;
use activity::units::duration;
use activity::{Ns, Span};
use trace::Trace;

/// A step that took longer than the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Which: index into [`super::Steps::spans`].
    pub step: usize,
    /// How much longer it took than the median.
    pub over_ns: Ns,
    /// What it has more of than the median of the others, by part; less is below 0. The last are the process's operations
    /// that started in it, on all devices.
    pub more: [i64; PARTS.len() + 1],
}

/// What the time of a step goes to, on the process's device with most operations. A copy counts where no kernel ran, and a
/// memset where nothing else did.
const PARTS: [&str; 4] = ["idle", "compute", "copy", "memset"];

impl Slow {
    /// So many slow steps are told apart.
    pub const SHOWN: usize = 16;

    /// The parts that explain it, largest first: "idle 4.10 ms, 3 operations more".
    pub fn text(&self) -> String {
        let [times @ .., operations] = self.more;
        let mut parts: Vec<(&str, Ns)> = PARTS.into_iter().zip(times).collect();
        parts.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
        // What is a tenth of the difference or less explains nothing.
        let mut text: Vec<String> = parts
            .iter()
            .filter(|(_, ns)| *ns * 10 > self.over_ns)
            .map(|(name, ns)| format!("{name} +{}", duration(*ns)))
            .collect();
        if operations != 0 {
            text.push(format!("{operations:+} operations"));
        }
        text.join(", ")
    }
}

/// How many of the other steps the medians are taken of.
const TYPICAL_MAX: usize = 256;

/// The slow ones among the steps of a kind, whose median and deviation are these: how many, and the slowest of them.
pub(super) fn find(
    trace: &Trace,
    process: usize,
    (spans, steps): (&[Span], &[usize]),
    (median, deviation): (Ns, Ns),
) -> Option<(usize, Vec<Slow>)> {
    let limit = median + (median / 20).max(4 * deviation);
    let is_slow = |step: &usize| spans[*step].len() > limit;
    let (mut slow, typical): (Vec<usize>, Vec<usize>) = steps.iter().partition(|it| is_slow(it));
    if slow.is_empty() || typical.is_empty() {
        return None;
    }
    let device = main_device(trace, process)?;
    let parts = |step: usize| {
        let span = spans[step];
        let it = Breakdown::of_device(trace, device, span);
        let operations = count(trace, process, Some(span));
        let copy = it.copy - it.overlap;
        [it.idle(), it.compute, copy, it.memset(), operations as i64]
    };
    let stride = typical.len().div_ceil(TYPICAL_MAX);
    let others: Vec<_> = typical.iter().step_by(stride).map(|&s| parts(s)).collect();
    let usual = |part: usize| -> i64 {
        let all: Vec<f64> = others.iter().map(|it| it[part] as f64).collect();
        stats::median(&all).unwrap_or(0.0) as i64
    };
    let count = slow.len();
    slow.sort_by_key(|&step| std::cmp::Reverse(spans[step].len()));
    slow.truncate(Slow::SHOWN);
    let told = slow
        .into_iter()
        .map(|step| {
            let found = parts(step);
            Slow {
                step,
                over_ns: spans[step].len() - median,
                more: std::array::from_fn(|part| found[part] - usual(part)),
            }
        })
        .collect();
    Some((count, told))
}

/// The device (index into [`Trace::devices`]) on which a process has most operations.
pub fn main_device(trace: &Trace, process: usize) -> Option<usize> {
    let mut counts = vec![0; trace.devices().len()];
    for (_, lane) in trace.streams_in(process) {
        if let Some(device) = lane.key().kind.device() {
            *counts.get_mut(device)? += lane.len();
        }
    }
    let of_equals_the_first = counts.iter().enumerate().rev();
    of_equals_the_first.max_by_key(|(_, n)| **n).map(|(i, _)| i)
}

//! Kernels one after the other over the same memory, each as fast as memory lets it be.

use super::declared::{self, Ran};
use super::{DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::{duration, percent};
use activity::{Ns, Span};
use scenario::plan::Arg;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let rate = declared::memory_rate(scope, f)?;
    let ran = declared::kernels(scope, f);
    let (mut at, mut saving, mut all, mut moved) = (Vec::new(), 0 as Ns, 0 as Ns, 0u64);
    for group in ran.chunk_by(follows) {
        let bytes: u64 = group.iter().filter_map(|k| k.launch.bytes).sum();
        let time: Ns = group.iter().map(|k| k.span.len()).sum();
        let is_at_memory =
            declared::time_at(bytes, rate) as f64 >= time as f64 * thresholds::MEMORY_SHARE;
        if group.len() < 2 || !is_at_memory {
            continue;
        }
        // Fused they take what the longest of them takes, with no time between them.
        let mut spans = group.iter().map(|k| k.span);
        let Some(first) = spans.next() else { continue };
        let longest = group.iter().map(|k| k.span.len()).max().unwrap_or(0);
        saving += spans.fold(first, Span::hull).len() - longest;
        all += time;
        moved += bytes;
        at.extend(group.iter().map(|k| Occurrence::Row(k.at)));
    }
    if !cases::LARGE_SHARE.is_reached_by(f.part(saving)) {
        return None;
    }
    let reached = declared::time_at(moved, rate) as f64 / all as f64;
    Some(Finding {
        title: format!(
            "{} kernels in a row over the same memory take {}, at {} of the memory bandwidth",
            at.len(),
            duration(all),
            percent(reached),
        ),
        advice: "Fuse them: one kernel that reads and writes the memory once.".to_owned(),
        ..scope.found(f.span_ns, saving, &at)
    })
}

/// Whether `b` follows `a` on its stream, uses the same memory, and moves as many bytes.
fn follows(a: &Ran<'_>, b: &Ran<'_>) -> bool {
    let memory = |k: &Ran<'_>| -> Vec<Arg> {
        let is_memory = |arg: &&Arg| matches!(arg, Arg::Device(_));
        k.launch.args.iter().filter(is_memory).copied().collect()
    };
    a.at.0 == b.at.0
        && a.at.1 + 1 == b.at.1
        && a.launch.bytes.is_some()
        && a.launch.bytes == b.launch.bytes
        && memory(a).iter().any(|arg| memory(b).contains(arg))
}

//! Somebody else is on the GPU.

use super::{DeviceFigures, Finding, Occurrence, Scope, Severity};
use activity::Ns;
use activity::units::{bytes, count, duration};
use causes::{Cause, Culprit};
use figures::hardware::{self, OtherProcess};

/// Processes that are named.
const NAMED: usize = 3;

const ADVICE: &str =
    "Their work takes turns with this program and leaves no record. Measure on a GPU of your own.";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    named(scope, f).or_else(|| by_turns(scope, f))
}

/// By what it did to the records: operations start late and kernels take longer, by one and the same time.
fn by_turns(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let gaps = scope.gaps(f).filter_map(|(gap, pieces)| {
        let mut turns = pieces.iter();
        let it = turns.find(|it| it.cause == Cause::Process && it.culprit == Culprit::Nobody)?;
        Some((it.span.len(), Occurrence::Gap(f.index, gap.span)))
    });
    let (mut times, at): (Vec<Ns>, Vec<_>) = gaps.unzip();
    let others = scope.causes.turns(f.index).filter(|_| !at.is_empty())?;
    times.extend(others.in_kernels(f.span));
    Some(Finding {
        severity: Severity::Warning,
        title: format!(
            "another process likely takes turns: about {} at a time, {} times, {} in all",
            duration(others.turn?),
            count(times.len() as u64),
            duration(times.iter().sum()),
        ),
        advice: ADVICE.to_owned(),
        ..scope.found(0, 0, &at)
    })
}

/// By NVML.
fn named(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let gpu = scope.trace.readings(f.index)?;
    let others = hardware::of_gpu(gpu, f.device, f.span).others;
    if others.is_empty() {
        return None;
    }
    let names: Vec<String> = others.iter().take(NAMED).map(OtherProcess::words).collect();
    let rest = match others.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let memory: u64 = others.iter().filter_map(|it| it.memory).sum();
    let memory = match memory {
        0 => String::new(),
        memory => format!(", with {}", bytes(memory)),
    };
    Some(Finding {
        severity: Severity::Warning,
        title: format!(
            "{} on this GPU{memory}: {}{rest}",
            match others.len() {
                1 => "another process is also".to_owned(),
                many => format!("{many} other processes are also"),
            },
            names.join(", "),
        ),
        advice: "It may only wait. What it runs takes turns with this program and leaves no record: measure on a GPU of your own.".to_owned(),
        ..scope.found(0, 0, &[Occurrence::Gap(f.index, f.span)])
    })
}

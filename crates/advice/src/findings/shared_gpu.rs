//! Somebody else is on the GPU.

use super::{DeviceFigures, Finding, Occurrence, Scope, Severity};
use activity::units::bytes;
use figures::hardware::{self, OtherProcess};

/// Processes that are named.
const NAMED: usize = 3;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
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
        memory => format!(", {}", bytes(memory)),
    };
    Some(Finding {
        severity: Severity::Warning,
        title: format!(
            "{} this GPU{memory}: {}{rest}",
            match others.len() {
                1 => "another process also uses".to_owned(),
                many => format!("{many} other processes also use"),
            },
            names.join(", "),
        ),
        advice: "Their work takes turns with this program and leaves no record. Measure on a GPU of your own.".to_owned(),
        ..scope.found(0, 0, &[Occurrence::Gap(f.index, f.span)])
    })
}

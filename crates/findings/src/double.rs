//! Kernels in double precision on a card that has hardly any units for it.

use super::limits::{full, is_elementwise, name, time};
use super::scope::Config;
use super::{DeviceFigures, Finding, Says, Scope, Severity, configs};
use crate::thresholds;
use activity::units::duration;
use figures::busy::mostly;
use figures::communication::has_any;

/// By compute capability, how many times as fast a card adds in fp32: the programming guide's table of throughputs. Others
/// have half as many units for double, as those for computing do, or nobody knows.
const TIMES: [((u32, u32), u32); 7] = [
    ((5, 2), 32),
    ((6, 1), 32),
    ((7, 5), 32),
    ((8, 6), 64),
    ((8, 7), 64),
    ((8, 9), 64),
    ((12, 0), 64),
];

/// What is in the names of kernels over arrays in double, and of products of such matrices.
const NAMES: [&str; 6] = [
    "double*",
    "double *",
    "double const*",
    "<double",
    "dgemm",
    "f64gemm",
];

/// What moves or sorts elements, or does one thing to each, waits for memory.
const MOVES: &str = "copy Copy sort Sort cub:: thrust:: transpose gather scatter";

fn is_double(name: &str) -> bool {
    let has = NAMES.iter().any(|it| name.contains(it));
    has && !is_elementwise(name) && !has_any(name, MOVES)
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let capability = scope.trace.devices()[f.index].info.capability;
    let times = TIMES.iter().find(|it| it.0 == capability)?.1;
    let mut all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
    all.retain(|it| is_double(full(scope, it)));
    let (took, most) = (time(&all), *all.first()?);
    if f.part(took) < thresholds::COMPUTE_SHARE {
        return None;
    }
    let part = configs::kernel_time(scope, f);
    let of_it = part.of_it(took);
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "kernels in double precision take {} ({}), {} {}: this card computes in fp32 {times} times as fast",
            duration(took),
            part.words(took),
            match most.row.total_ns == took {
                true => "all of it",
                false => mostly(most.row.total_ns, took),
            },
            name(scope, most),
        ),
        advice: "Use float where it is precise enough, also for literals (0.5f). Cards for computing, such as A100 and H100, have units for double.".to_owned(),
        says: Some(Says::of_kernels(f, format!("{of_it} in double precision, which this card has little of"))),
        ..scope.found(f.span_ns, took, &configs::places(scope, f, &all))
    })
}

//! Kernels in double precision on a card that has hardly any units for it; on others, arrays that are so.

use super::limits::{is_elementwise, name, time};
use super::{DeviceFigures, Finding, Says, Scope, Severity, configs, wide_data};
use crate::thresholds;
use activity::occupancy::blocks;
use activity::stats::lower_median;
use activity::units::duration;
use activity::{NameId, Ns};
use figures::busy::mostly;
use figures::communication::has_any;
use figures::configs::Config;
use rustc_hash::FxHashMap;

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

/// So many times the blocks are other work.
const TIMES_THE_BLOCKS: u64 = 4;

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

/// How long those take that take as long with several times the blocks, although an SM then works on several of them. They wait for one
/// step after the other, and for no unit.
fn flat(scope: &Scope, f: &DeviceFigures, all: &[&Config]) -> Ns {
    let sms = u64::from(scope.trace.devices()[f.index].info.multiprocessors).max(1);
    let mut by_name: FxHashMap<NameId, Vec<&Config>> = FxHashMap::default();
    for it in all {
        by_name.entry(it.shape.name).or_default().push(it);
    }
    let of_one = |of: Vec<&Config>| {
        let mut usual: Vec<Ns> = of.iter().map(|it| it.usual).collect();
        let median = lower_median(&mut usual).unwrap_or(0);
        let alike = of
            .iter()
            .filter(|it| 10 * (it.usual - median).abs() <= median);
        let sizes = alike.clone().map(|it| blocks(&it.shape));
        let (least, most) = (sizes.clone().min()?, sizes.max()?);
        let is_flat = most >= TIMES_THE_BLOCKS * least && most.div_ceil(sms) > least.div_ceil(sms);
        is_flat.then(|| alike.map(|it| it.row.total_ns).sum::<Ns>())
    };
    by_name.into_values().filter_map(of_one).sum()
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    few_units(scope, f).or_else(|| wide_data::check(scope, f))
}

fn few_units(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let capability = scope.trace.devices()[f.index].info.capability;
    let times = TIMES.iter().find(|it| it.0 == capability)?.1;
    let all = configs::such(scope, f, is_double);
    let (took, most) = (time(&all), *all.first()?);
    let is_chain = || cases::CHAIN_OF_WORK.holds(2 * flat(scope, f, &all) >= took);
    if f.part(took) < thresholds::COMPUTE_SHARE || is_chain() {
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

//! Kernels in double precision on a card that has hardly any units for it; on others, arrays that are so.

use super::limits::{name, time};
use super::{DeviceFigures, Finding, Says, Scope, Severity, configs, wide_data};
use crate::thresholds;
use figures::busy::mostly;
use figures::double;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    few_units(scope, f).or_else(|| wide_data::check(scope, f))
}

fn few_units(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let info = &scope.trace.devices()[f.index].info;
    let (capability, sms) = (info.capability, info.multiprocessors);
    let times = double::times(capability)?;
    let all = configs::such(scope, f, double::is_double);
    let (took, most) = (time(&all), *all.first()?);
    let is_chain = || cases::CHAIN_OF_WORK.holds(2 * double::flat(sms, &all) >= took);
    if f.part(took) < thresholds::COMPUTE_SHARE || is_chain() {
        return None;
    }
    let part = configs::kernel_time(scope, f);
    let of_it = part.of_it(took);
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "kernels in double precision take {}, {} {}: this card computes in fp32 {times} times as fast",
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

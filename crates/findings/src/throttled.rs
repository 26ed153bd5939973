//! The GPU's clocks are held down: by heat, by the power limit, by the board.

use super::{DeviceFigures, Finding, Occurrence, Scope, Severity};
use crate::thresholds;
use activity::units::percent;
use activity::{Metric, SLOWED};
use figures::hardware;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let gpu = scope.trace.readings(f.index)?;
    let figures = hardware::of_gpu(gpu, f.device, f.span);
    let share = figures.throttled_share?;
    if share < thresholds::THROTTLED_SHARE {
        return None;
    }
    let reasons: Vec<&str> = figures.throttled_by.iter().map(|it| it.reason).collect();
    let clock = gpu.level(Metric::Clock, f.span);
    let most = gpu.most(Metric::Clock);
    // A power cap that costs next to nothing of the clock is how a GPU at full load is meant to be.
    let is_slow = clock
        .zip(most)
        .is_none_or(|(clock, most)| clock.mean < most * thresholds::THROTTLED_CLOCK);
    let at_clock = match (clock, most) {
        (Some(clock), Some(most)) => {
            format!("; {:.0} MHz on average, {most:.0} MHz at most", clock.mean)
        }
        (Some(clock), None) => format!("; {:.0} MHz on average", clock.mean),
        _ => String::new(),
    };
    let at: Vec<Occurrence> = gpu
        .windows()
        .filter(|it| it.reasons & SLOWED != 0 && it.span.overlaps(f.span))
        .map(|it| Occurrence::Gap(f.index, it.span))
        .collect();
    Some(Finding {
        severity: Severity::warn_where(is_slow && cases::LARGE_SHARE.is_reached_by(share)),
        title: format!(
            "clocks were held down in {} of the readings: {}{at_clock}",
            percent(share),
            reasons.join(", "),
        ),
        advice: "Compare this run only with runs at the same clocks. For heat check the cooling, for a power cap run nvidia-smi -q -d POWER.".to_owned(),
        // How much faster it would be at full clocks is not known: no matter of time.
        ..scope.found(0, 0, &at)
    })
}

//! What GPUs at their power cap take back of a saving: who waits less draws more, and clocks go down for it.

use super::input::Input;
use activity::{Ns, Span};

/// The bit of NVML's reasons for low clocks that says power cap.
const CAP: u64 = 0x04;
/// A GPU that waits in a collective draws this part of its cap. Measured on H200s: some 250 of 700 W.
const WAITING: f64 = 0.36;
/// Work takes longer by the root of this degree of the power that it is short of. Fitted to three pairs of jobs on four H200s.
const DEGREE: f64 = 1.5;

/// What is left of time that is saved in a stretch. Their power cap held the ranks' GPUs down for a part of it.
pub(super) fn left(known: &Input<'_>, stretch: Span, saved: Ns) -> Ns {
    let readings = known.units.iter().map(|it| known.trace.readings(it.device));
    let slowed = readings.flatten().map(|it| it.slowed(CAP, stretch));
    let (capped, looked) = slowed.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    let held = capped as f64 / looked.max(1) as f64;
    let part = saved as f64 / stretch.len().max(1) as f64;
    saved - (held * taken_back(part) * stretch.len() as f64) as Ns
}

/// The part of the time that comes back of a part that is saved, at the cap. What is saved was spent at `WAITING` of it, so that work
/// drew more than the cap.
fn taken_back(saved: f64) -> f64 {
    let work = (1.0 - saved).max(0.1);
    let drew = (1.0 - saved * WAITING) / work;
    work * (drew.powf(1.0 / DEGREE) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of late twins and by how much more they took than healthy ones, beside what a replay without the lateness saves: four H200s
    /// at their cap of 700 W, data parallel, in ms.
    #[test]
    fn what_is_left_at_the_power_cap_is_what_was_measured() {
        for (step, replayed, measured) in [
            (19.07, 2.07, 0.90),
            (22.93, 7.77, 4.76),
            (19.23, 2.04, 1.07),
        ] {
            let part: f64 = replayed / step;
            let left = step * (part - taken_back(part));
            assert!((left - measured).abs() < 0.35, "{left} of {measured}");
        }
        assert!(taken_back(0.0).abs() < 1e-9);
    }
}

//! What a busy GPU is busy with: the class of most kernel time, for its verdict.

use activity::text::counted;
use activity::units::{duration, percent, share};
use activity::{NameId, Ns, Span};
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace::{LaneId, Trace};

use crate::class::{Class, NEAR};
use crate::communication::has_any;
use crate::device::DeviceFigures;
use crate::shapes::{self, ShapeRow};
use crate::tables;

/// A class of less of the kernel time is not worth a word.
const MUCH: f64 = 0.25;

/// From so many times the time in which any ran, the sum of kernels' durations is said to be one.
const SUMMED: f64 = 1.05;

/// Before the name of what takes most of some time: of less than half it is not "mostly" that.
pub fn mostly(time: Ns, all: Ns) -> &'static str {
    if 2 * time >= all {
        "mostly"
    } else {
        "above all"
    }
}

/// What the stream with most work does, one operation after the other: rows of some lanes.
pub fn longest(trace: &Trace, lanes: impl Iterator<Item = (LaneId, Range<usize>)>) -> Ns {
    let work = |(lane, rows): (LaneId, Range<usize>)| {
        let all = trace.activities(lane, rows);
        all.map(|it| it.1.span.len()).sum()
    };
    lanes.map(work).max().unwrap_or(0)
}

/// What shares of kernel time are of: the sum of all kernels' durations. Of several streams it is more than the time in which any ran.
#[derive(Clone, Copy, Debug)]
pub struct KernelTime {
    all: Ns,
    ran: Ns,
}

impl KernelTime {
    /// Of the sum, and the time in which any ran.
    pub fn new(all: Ns, ran: Ns) -> KernelTime {
        let all = all.max(ran);
        KernelTime { all, ran }
    }

    fn is_over(self, times: f64) -> bool {
        self.all as f64 > self.ran as f64 * times
    }

    /// Whether kernels run beside each other for much of it.
    pub fn is_beside(self) -> bool {
        self.is_over(cases::BESIDE_EACH_OTHER.value())
    }

    /// The part that some kernels take of it.
    pub fn share(self, time: Ns) -> f64 {
        share(time, self.all)
    }

    /// "kernel time", and what that is where it is no time on the clock.
    pub fn name(self) -> &'static str {
        match self.is_over(SUMMED) {
            true => "kernel time, summed over streams",
            false => "kernel time",
        }
    }

    /// "1.20 ms (73 % of kernel time)"
    pub fn words(self, time: Ns) -> String {
        let (part, all) = (percent(self.share(time)), self.name());
        format!("{} ({part} of {all})", duration(time))
    }

    /// "73 % of their time", behind the time in which any ran. A part of a sum is no part of that.
    pub fn of_it(self, time: Ns) -> String {
        match percent(self.share(time)).as_str() {
            "100 %" => "all".to_owned(),
            _ if self.is_over(SUMMED) => mostly(time, self.all).to_owned(),
            part => format!("{part} of their time"),
        }
    }
}

/// Of kernel time "61 % of their time memory-bound at 88 % of DRAM's peak"; `None` where nobody sampled, or no class has much. `told` has the time of
/// each kernel that is told. The window may have other steps beside these, so that classes give shares of it alone.
pub fn words(
    trace: &Trace,
    window: Option<Span>,
    told: &FxHashMap<NameId, Ns>,
    of: KernelTime,
) -> Option<String> {
    if !trace.is_sampled() {
        return None;
    }
    let mut rows = tables::kernels(trace, window);
    rows.retain(|it| told.contains_key(&it.id));
    let those = |class| {
        let shapes = rows.iter().flat_map(|it| &it.shapes);
        shapes.filter(move |it: &&ShapeRow| it.class == class)
    };
    let time = |class: &Class| those(*class).map(|it| it.total_ns).sum::<Ns>();
    let classes = [Class::Memory, Class::Compute, Class::Latency, Class::Launch];
    let class = classes.into_iter().max_by_key(time)?;
    let what = match class {
        Class::Memory => {
            let dram = shapes::mean(those(class), |it| it.dram)?;
            format!("memory-bound at {} of DRAM's peak", percent(dram))
        }
        Class::Compute => match shapes::mean(those(class), |it| it.tensor) {
            Some(it) if it >= NEAR => {
                format!("compute-bound at {} of the tensor peak", percent(it))
            }
            _ => "compute-bound".to_owned(),
        },
        Class::Latency => "near no peak".to_owned(),
        _ => "in kernels shorter than their launches".to_owned(),
    };
    let in_window: Ns = rows.iter().map(|it| it.total_ns).sum();
    let part = share(time(&class), in_window);
    let time = (part * told.values().sum::<Ns>() as f64) as Ns;
    (of.share(time) >= MUCH).then(|| format!("{} {what}", of.of_it(time)))
}

/// What a library's kernels do, by what is in their names: one operation of a program runs several of them, each for other sizes.
pub fn kind_of_work(kernel: &str) -> Option<&'static str> {
    let low = kernel.to_ascii_lowercase();
    let kinds = [
        ("a mixture of experts", "fused_moe moe_"),
        ("attention", "fmha flash attention"),
        (
            "convolutions",
            "fprop dgrad wgrad convolve winograd conv2d conv1d",
        ),
        ("matrix products", "gemm nvjet"),
    ];
    let of = kinds.into_iter().find(|it| has_any(&low, it.1));
    of.map(|it| it.0)
}

/// How busy the GPU is in the time without a gap, and without others that are a tenth of that time each.
pub fn beside_gap(f: &DeviceFigures, longest: Span, gaps: impl Iterator<Item = Span>) -> String {
    let remaining = f.recorded_ns() - longest.len();
    let long = gaps.filter(|it| *it != longest && FEW * it.len() >= remaining);
    let long: Vec<Ns> = long.map(|it| it.len()).collect();
    let time: Ns = long.iter().sum();
    let busy = percent(share(f.busy_ns, remaining - time));
    match long.len() {
        0 => format!("the GPU is busy for {busy} of the remaining time"),
        number => format!(
            "of what remains {} {} {}, and the GPU is busy for {busy} of the rest",
            counted(number as u64, "gap", "gaps"),
            if number == 1 { "takes" } else { "take" },
            duration(time),
        ),
    }
}

/// Gaps of a part like this are few.
const FEW: Ns = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_sum_over_streams_is_no_part_of_the_time_on_the_clock() {
        // One after the other 196 of 268 ms; beside each other the same sum in 212 ms, of which 196 are 92 %.
        let one = KernelTime::new(268, 268);
        assert_eq!(one.words(196), "196 ns (73 % of kernel time)");
        assert_eq!(one.of_it(196), "73 % of their time");
        let beside = KernelTime::new(268, 212);
        assert_eq!(
            beside.words(196),
            "196 ns (73 % of kernel time, summed over streams)"
        );
        assert_eq!(
            [196, 60, 268].map(|it| beside.of_it(it)),
            ["mostly", "above all", "all"]
        );
        assert!(!beside.is_beside() && KernelTime::new(400, 212).is_beside());
    }
}

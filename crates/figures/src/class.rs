//! What limits a kernel: one rule, told on one page (`docs/HARDWARE.md`).

use activity::Ns;
use activity::units::{duration, percent};
use serde::Serialize;

use crate::counted::Counted;
use crate::fill::Fill;

/// Shares of a peak from here on are near it. Nsight Compute's "speed of light" draws the line there, too: below it in both
/// memory and compute, what a kernel waits for is latency.
pub const NEAR: f64 = 0.6;
/// From here on the last wave, or SMs without a block, are what is told of a kernel that is near no peak.
const WASTED: f64 = 0.2;
/// Below this occupancy too few warps are there to hide latency.
const FEW_WARPS: f64 = 0.25;

/// What is told of a kernel whose launch does not say why it waits.
pub const NO_PEAK: &str = "near no peak";

/// What limits a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The bandwidth of device memory.
    Memory,
    /// The tensor cores, or instructions.
    Compute,
    /// Neither: it waits.
    Latency,
    /// It is shorter than the GPU's wait for its launch.
    Launch,
    /// Nobody can tell.
    #[default]
    Unknown,
}

impl Class {
    /// What a table calls it; nothing where unknown.
    pub fn label(self) -> &'static str {
        match self {
            Class::Memory => "memory",
            Class::Compute => "compute",
            Class::Latency => "latency",
            Class::Launch => "launch",
            Class::Unknown => "",
        }
    }
}

/// What is known of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownKernel<'a> {
    /// How long it takes, in the mean.
    pub(crate) mean: Ns,
    /// How long the GPU is idle right before it, since the call that launches it began, where it has one of its own.
    pub(crate) launch: Option<Ns>,
    pub(crate) fill: &'a Fill,
    /// SMs of the GPU.
    pub(crate) sms: u32,
    pub(crate) counted: Option<&'a Counted>,
    /// Whether it is communication, which waits for others on purpose.
    pub(crate) is_communication: bool,
}

/// The class, and in a few words what it rests on.
pub(crate) fn find(known: &KnownKernel<'_>) -> (Class, String) {
    if known.is_communication {
        return (Class::Unknown, "communication".to_owned());
    }
    if let Some(launch) = known.launch.filter(|it| known.mean < *it) {
        let (mean, launch) = (duration(known.mean), duration(launch));
        return (
            Class::Launch,
            format!("{mean}, for which the GPU waited {launch}"),
        );
    }
    let told = known.counted.and_then(|it| Some((it, it.dram?)));
    let Some((counted, dram)) = told else {
        return (Class::Unknown, String::new());
    };
    let compute = [
        (counted.tensor, "tensor cores"),
        (counted.issue, "instruction issue"),
    ];
    let compute = compute
        .into_iter()
        .filter_map(|(it, name)| Some((it?, name)));
    let most = compute.max_by(|a, b| a.0.value.total_cmp(&b.0.value));
    let told = |share: f64, name: &str| format!("{name} at {} of the peak", percent(share));
    match most {
        Some((it, name)) if it.value >= NEAR && it.value >= dram.value => {
            (Class::Compute, told(it.value, name))
        }
        _ if dram.value >= NEAR => (Class::Memory, told(dram.value, "DRAM")),
        // Without the tensor cores' share nobody knows that they are idle.
        Some(_) if counted.tensor.is_some() => (Class::Latency, why_waiting(known)),
        _ => (Class::Unknown, String::new()),
    }
}

/// What of the launch makes a kernel wait.
fn why_waiting(known: &KnownKernel<'_>) -> String {
    if let Some(waste) = waste(known.fill, known.sms) {
        return waste;
    }
    match (known.fill.occupancy, known.fill.occupancy_limit) {
        (Some(share), Some(limit)) if share < FEW_WARPS => {
            format!("occupancy {}, limited by {}", percent(share), limit.words())
        }
        _ => NO_PEAK.to_owned(),
    }
}

/// What a launch leaves empty of a GPU of so many SMs, whatever the kernel does; `None` where that is not much.
pub fn waste(fill: &Fill, sms: u32) -> Option<String> {
    let is_much = |idle: &u32| f64::from(*idle) >= WASTED * f64::from(sms.max(1));
    if let Some(idle) = fill.idle_sms.filter(is_much) {
        return Some(format!("{idle} SMs without a block"));
    }
    let tail = fill.tail_share.filter(|it| *it >= WASTED)?;
    Some(format!("the last wave costs up to {}", percent(tail)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted::Estimate;
    use activity::occupancy::Limit;

    fn counted(dram: f64, tensor: f64, issue: f64) -> Counted {
        let share = |value| Some(Estimate { value, half: 0.01 });
        Counted {
            dram: share(dram),
            tensor: share(tensor),
            issue: share(issue),
            samples: 99,
            ..Counted::default()
        }
    }

    /// The measured phases of docs/HARDWARE.md, and one of each other kind.
    #[test]
    fn each_class_has_its_kernel() {
        let (gemm, add) = (counted(0.28, 0.93, 0.3), counted(0.90, 0.0, 0.2));
        let (slow, fp32) = (counted(0.2, 0.0, 0.1), counted(0.1, 0.0, 0.8));
        let full = Fill {
            waves: Some(20.0),
            tail_share: Some(0.0),
            idle_sms: Some(0),
            occupancy: Some(1.0),
            occupancy_limit: Some(Limit::Warps),
        };
        let small = Fill {
            idle_sms: Some(68),
            ..full
        };
        // Four of 132 SMs are not much: what the last wave costs is told.
        let tail = Fill {
            idle_sms: Some(4),
            tail_share: Some(0.45),
            ..full
        };
        let few = Fill {
            occupancy: Some(0.125),
            occupancy_limit: Some(Limit::Shared),
            ..full
        };
        let cases = [
            (
                &gemm,
                &full,
                Class::Compute,
                "tensor cores at 93 % of the peak",
            ),
            (&add, &full, Class::Memory, "DRAM at 90 % of the peak"),
            (
                &fp32,
                &full,
                Class::Compute,
                "instruction issue at 80 % of the peak",
            ),
            (&slow, &small, Class::Latency, "68 SMs without a block"),
            (
                &slow,
                &tail,
                Class::Latency,
                "the last wave costs up to 45 %",
            ),
            (
                &slow,
                &few,
                Class::Latency,
                "occupancy 12 %, limited by shared memory",
            ),
            (&slow, &full, Class::Latency, "near no peak"),
        ];
        for (counted, fill, class, words) in cases {
            let known = KnownKernel {
                mean: 500_000,
                launch: Some(4_000),
                fill,
                sms: 132,
                counted: Some(counted),
                is_communication: false,
            };
            assert_eq!(find(&known), (class, words.to_owned()));
            let short = KnownKernel {
                mean: 1_500,
                ..known
            };
            assert_eq!(
                find(&short),
                (
                    Class::Launch,
                    "1.50 µs, for which the GPU waited 4.00 µs".to_owned()
                )
            );
            assert_eq!(
                find(&KnownKernel {
                    counted: None,
                    ..known
                })
                .0,
                Class::Unknown
            );
            assert_eq!(
                find(&KnownKernel {
                    is_communication: true,
                    ..known
                })
                .0,
                Class::Unknown
            );
        }
    }
}

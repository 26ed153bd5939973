//! What GPUs' counters and sensors came to between the first operation of a device and its last. A program without
//! recorded operations (`cuptop attach`) counts while it was watched.
//!
//! Every figure is of windows of about a tenth of a second. It has the mean over the time in which it was read, and the
//! greatest window. Throttling is told of windows whose end was slowed down. None of it is a cause of idle time.

use serde::Serialize;

use crate::device::DeviceFigures;
use activity::{Metric, MetricUnit, Ns, Owner, SLOWDOWNS, SLOWED, Span};
use trace::{GpuReadings, HardwareReadings, Measure, Trace};

/// All of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HardwareFigures {
    /// The devices that were read.
    pub devices: Vec<GpuFigures>,
    /// Why something is not there.
    pub notes: Vec<String>,
    /// What the finding `machine` says of the whole; absent where it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    pub watching: Watching,
}

/// What watching took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Watching {
    /// Rounds of looks at GPUs and threads.
    pub rounds: u64,
    /// Processor time of the thread that looks.
    pub cpu_ns: u64,
    /// The same as a share of one core; `None` when it never began.
    pub core_share: Option<f64>,
    /// Windows that could not be written.
    pub lost: u64,
}

/// Of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GpuFigures {
    /// The device's id.
    pub device: u32,
    /// Time between its first operation and its last that windows cover.
    pub looked_ns: Ns,
    /// Every metric, those that are not there with the reason.
    pub metrics: Vec<MetricFigures>,
    /// How long clocks were held down; `None` where that cannot be told.
    pub throttled_ns: Option<Ns>,
    /// The same as a share of `looked_ns`.
    pub throttled_share: Option<f64>,
    /// Why, most time first. Several may hold at once.
    pub throttled_by: Vec<Slowdown>,
    /// Processes of others on this GPU, at any time.
    pub others: Vec<OtherProcess>,
    /// Processes on it of which nobody knows whose they are: their ids are of another process namespace.
    pub unknown_processes: u64,
}

/// One metric of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricFigures {
    /// Which.
    pub metric: &'static str,
    /// Of what its numbers are.
    pub unit: &'static str,
    /// Its mean over the time in which it was read; `None` where it is not there.
    pub mean: Option<f64>,
    /// The greatest value of a window.
    pub max: Option<f64>,
    /// The most that it could reach, where that is known.
    pub limit: Option<f64>,
    /// Why it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
    #[serde(skip)]
    pub kind: Metric,
}

/// A reason for low clocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slowdown {
    /// In words.
    pub reason: &'static str,
    /// How long it held.
    pub total_ns: Ns,
}

/// A process of somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherProcess {
    pub pid: u32,
    /// Its name; empty where unknown.
    pub name: String,
    /// The most memory of the GPU that it was seen with, in bytes, where NVML tells.
    pub memory: Option<u64>,
}

impl OtherProcess {
    /// "python (1234)", or "process 1234".
    pub fn words(&self) -> String {
        match self.name.as_str() {
            "" => format!("process {}", self.pid),
            name => format!("{name} ({})", self.pid),
        }
    }
}

/// What the hardware came to; `None` when nobody asked it.
pub fn measure(trace: &Trace, devices: &[DeviceFigures]) -> Option<HardwareFigures> {
    let hardware = trace.hardware();
    let of_device = |f: &DeviceFigures| Some(of_gpu(trace.readings(f.index)?, f.device, f.span));
    let of_looked = |index: usize| {
        let gpu = trace.readings(index)?;
        Some(of_gpu(gpu, trace.devices()[index].info.id, gpu.span()?))
    };
    (!hardware.is_empty()).then(|| HardwareFigures {
        devices: match trace.operations_extent() {
            Some(_) => devices.iter().filter_map(of_device).collect(),
            None => (0..trace.devices().len()).filter_map(of_looked).collect(),
        },
        notes: hardware
            .notes
            .iter()
            .cloned()
            .chain(devices.iter().filter_map(|f| silent(trace, f)))
            .chain(lost_stalls(hardware))
            .collect(),
        machine: None,
        watching: watching(hardware),
    })
}

/// How many samples of what kernels wait for did not come, in a sentence.
fn lost_stalls(hardware: &HardwareReadings) -> Option<String> {
    let lost = activity::units::count(hardware.stalls_lost);
    let is_some = hardware.stalls_lost > 0;
    is_some.then(|| format!("{lost} or more samples of what kernels wait for (--stalls) were lost"))
}

/// SMs busy for this part of a sample are no chance of an edge.
const BUSY: f64 = 0.2;
/// A GPU that was busy for less than this, with no record of an operation, is not worth a line.
const SILENT: Ns = 500_000_000;

/// Samples with a longer pause between them tell nothing of it.
const PAUSE: Ns = 1_000_000_000;

/// That a device's counters saw it busy while nothing of it was recorded, in a sentence: sampling must not silence records.
fn silent(trace: &Trace, f: &DeviceFigures) -> Option<String> {
    let gpu = trace.readings(f.index)?;
    let usage = &trace.devices()[f.index].usage;
    let samples = gpu.samples_within(Span::new(f.span.start, Ns::MAX));
    let is_silent =
        |span: Span| usage.time(Measure::Busy, span) == 0 && !trace.is_unrecorded(f.index, span);
    let mut busy = samples
        .filter(|it| it.value(Metric::Sm) >= Some(BUSY))
        .peekable();
    let mut time = 0;
    while let Some(it) = busy.next() {
        // Samples come in bursts: what is busy before and after a pause is taken for busy in it.
        let until = busy.peek().map_or(it.span.end, |next| next.span.start);
        let until = if until - it.span.end < PAUSE {
            until
        } else {
            it.span.end
        };
        let span = Span::new(it.span.start, until.max(it.span.end));
        time += if is_silent(span) { span.len() } else { 0 };
    }
    (time >= SILENT).then(|| {
        format!(
            "GPU {} was busy for {} in which none of its operations is recorded: another process used it, or its records stopped",
            f.device,
            activity::units::duration(time)
        )
    })
}

fn watching(hardware: &HardwareReadings) -> Watching {
    let cost = hardware.cost;
    Watching {
        rounds: cost.rounds,
        cpu_ns: cost.cpu_ns,
        core_share: (cost.wall_ns > 0).then(|| cost.cpu_ns as f64 / cost.wall_ns as f64),
        lost: cost.lost,
    }
}

/// What one GPU came to within `scope`.
pub fn of_gpu(gpu: &GpuReadings, device: u32, scope: Span) -> GpuFigures {
    let metrics = Metric::ALL.into_iter().filter_map(|metric| {
        let level = gpu.level(metric, scope);
        // Nobody asked for what is not there.
        if metric.is_counted() && level.is_none() {
            return None;
        }
        Some(MetricFigures {
            metric: metric.key(),
            unit: metric.unit().label(),
            mean: level.map(|it| it.mean),
            max: level.map(|it| it.max),
            limit: gpu.most(metric),
            lack: level.is_none().then(|| match gpu.lack(metric) {
                Some(why) => why.to_owned(),
                None => "no look fell into the run".to_owned(),
            }),
            kind: metric,
        })
    });
    let (throttled, looked) = gpu.slowed(SLOWED, scope);
    let tells = gpu.limits.tells_slowdowns && looked > 0;
    let mut by: Vec<Slowdown> = SLOWDOWNS
        .iter()
        .map(|&(bit, reason)| Slowdown {
            reason,
            total_ns: gpu.slowed(bit, scope).0,
        })
        .filter(|it| it.total_ns > 0)
        .collect();
    by.sort_by_key(|it| std::cmp::Reverse(it.total_ns));
    GpuFigures {
        device,
        looked_ns: looked,
        metrics: metrics.collect(),
        throttled_ns: tells.then_some(throttled),
        throttled_share: tells.then(|| throttled as f64 / looked as f64),
        throttled_by: by,
        others: gpu
            .others()
            .map(|it| OtherProcess {
                pid: it.pid,
                name: it.name.clone(),
                memory: it.memory,
            })
            .collect(),
        unknown_processes: gpu
            .occupants
            .iter()
            .filter(|it| it.owner == Owner::Unknown)
            .count() as u64,
    }
}

/// "31 %", "1.10 GB/s", "412 W": a value of a metric for people.
pub fn show(metric: Metric, value: f64) -> String {
    use activity::units::{bytes, percent, rate};
    match metric.unit() {
        MetricUnit::Share => percent(value),
        MetricUnit::BytesPerSecond => format!("{} GB/s", rate(value / 1e9)),
        MetricUnit::Watts => format!("{value:.0} W"),
        MetricUnit::Megahertz => format!("{value:.0} MHz"),
        MetricUnit::Celsius => format!("{value:.0} °C"),
        MetricUnit::Bytes => bytes(value.max(0.0) as u64),
    }
}

/// The reason of a set of bits, the gravest, in words; `None` when nothing slows down.
pub fn reason(bits: u64) -> Option<&'static str> {
    let mut known = SLOWDOWNS.iter();
    known.find(|it| bits & it.0 != 0).map(|it| it.1)
}

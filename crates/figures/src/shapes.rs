//! The launch configurations of each kernel: how they fill the GPU, what they do with it, and what limits them.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::class::{self, Class, KnownKernel};
use crate::communication::is_communication;
use crate::counted::{self, Counted, Estimate, LEAST};
use crate::fill::Fill;
use activity::stats::median_time;
use activity::text::plural;
use activity::units::percent;
use activity::{DeviceInfo, LaunchShape, NameId, Ns, ShapeId, Span};
use trace::Trace;

/// One launch configuration of a kernel, on one model of GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShapeRow {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Registers of a thread; 0 where unknown.
    pub registers: u32,
    /// Shared memory of a block in bytes.
    pub shared: u64,
    /// How many ran.
    pub count: u64,
    /// Sum of their durations.
    pub total_ns: Ns,
    #[serde(flatten)]
    pub fill: Fill,
    /// What limits it.
    pub class: Class,
    /// What that rests on, in words; empty where unknown.
    pub limit: String,
    /// What its samples tell; `None` without some.
    #[serde(flatten)]
    pub counted: Counted,
}

impl ShapeRow {
    /// What limits it and how sure that is, in a sentence, where its GPU was sampled.
    pub fn sentence(&self) -> String {
        let Counted { samples, .. } = self.counted;
        let by = match self.class {
            Class::Memory => "limited by memory",
            Class::Compute => "limited by compute",
            Class::Latency => "limited by neither memory nor compute",
            Class::Launch => return format!("shorter than its launch: {}", self.limit),
            Class::Unknown if !self.limit.is_empty() => {
                return format!("what limits it is not asked: {}", self.limit);
            }
            Class::Unknown => {
                let why = match samples {
                    0 => "no sample holds it".to_owned(),
                    1..LEAST => format!("{} of {LEAST}", plural(samples as u64, "sample")),
                    _ => format!("its {samples} samples leave it open"),
                };
                return format!("what limits it is unknown: {why}");
            }
        };
        let of = [self.counted.dram, self.counted.tensor, self.counted.issue];
        let half = of.iter().flatten().map(|it| it.half).fold(0.0, f64::max);
        let from = if self.counted.is_own { "own" } else { "mixed" };
        format!(
            "{by}: {} (± {}, {samples} {from} samples)",
            self.limit,
            percent(half)
        )
    }
}

/// What samples tell of a kernel's configurations together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// What limits it for most of its time.
    pub class: Class,
    /// Means over the time for which they are known.
    pub dram: Option<f64>,
    pub tensor: Option<f64>,
    pub issue: Option<f64>,
}

impl Use {
    /// `None` where nobody sampled them.
    pub fn of(shapes: &[ShapeRow]) -> Option<Use> {
        let sampled = || shapes.iter().filter(|it| it.counted.samples > 0);
        let time = |class| -> Ns {
            let alike = sampled().filter(|it| it.class == class);
            alike.map(|it| it.total_ns).sum()
        };
        let most = sampled().max_by_key(|it| time(it.class))?;
        Some(Use {
            class: most.class,
            dram: mean(sampled(), |it| it.dram),
            tensor: mean(sampled(), |it| it.tensor),
            issue: mean(sampled(), |it| it.issue),
        })
    }
}

/// The mean of a share over the time for which it is known.
pub(crate) fn mean<'a>(
    shapes: impl Iterator<Item = &'a ShapeRow>,
    share: impl Fn(&Counted) -> Option<Estimate>,
) -> Option<f64> {
    let known = shapes.filter_map(|it| Some((share(&it.counted)?.value, it.total_ns as f64)));
    let (sum, time) = known.fold((0.0, 0.0), |all, it| (all.0 + it.0 * it.1, all.1 + it.1));
    (time > 0.0).then(|| sum / time)
}

/// What ran of one configuration on one device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ran {
    pub(crate) count: u64,
    pub(crate) time: Ns,
    /// Some of the calls that launched one of them alone: process and correlation id, and when that one began.
    calls: Vec<(usize, u32, Ns)>,
    /// How often every second one of these calls was left out.
    halved: u32,
}

/// Twice as many calls are looked at for how long launching takes, at most.
const CALLS: usize = 32;

impl Ran {
    /// One more ran. The calls that are kept are spread over all of them, as the first ones may have waited for memory or code.
    pub(crate) fn add(&mut self, span: Span, call: Option<(usize, u32)>) {
        if let Some((process, correlation)) = call
            && self.count.is_multiple_of(1 << self.halved)
        {
            self.calls.push((process, correlation, span.start));
        }
        if self.calls.len() == 2 * CALLS {
            let mut is_kept = false;
            self.calls.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.halved += 1;
        }
        self.count += 1;
        self.time += span.len();
    }
}

/// The configurations of each kernel, most time first, from what ran of each on each device, and samples from `window`.
pub(crate) fn rows(
    trace: &Trace,
    window: Option<Span>,
    all: &FxHashMap<(ShapeId, u32), Ran>,
) -> FxHashMap<NameId, Vec<ShapeRow>> {
    let mut rows: FxHashMap<NameId, Vec<ShapeRow>> = FxHashMap::default();
    let mut places: FxHashMap<(LaunchShape, [u64; 4]), usize> = FxHashMap::default();
    let counted = counted::find(trace, window);
    for (&(id, device), ran) in all {
        let counted = counted.get(&(id, device));
        let launched = trace.shape(id);
        let unknown = DeviceInfo::default();
        let waited = launch(trace, device as usize, ran);
        let device = trace.devices().get(device as usize);
        let fill = Fill::of(&launched, device.map_or(&unknown, |it| &it.info));
        let of_name = rows.entry(launched.name);
        // Most kernels have one.
        let of_name = of_name.or_insert_with(|| Vec::with_capacity(1));
        let alike = LaunchShape {
            local: 0,
            cluster: [0; 3],
            collective: 0,
            ..launched
        };
        let at = *places.entry((alike, bits(&fill))).or_insert_with(|| {
            of_name.push(ShapeRow {
                grid: launched.grid,
                block: launched.block,
                registers: launched.registers,
                shared: u64::from(launched.static_shared) + u64::from(launched.dynamic_shared),
                fill,
                ..ShapeRow::default()
            });
            of_name.len() - 1
        });
        let row = &mut of_name[at];
        row.count += ran.count;
        row.total_ns += ran.time;
        let mean = ran.time / ran.count.max(1) as Ns;
        let (class, limit) = class::find(&KnownKernel {
            mean,
            launch: waited,
            fill: &row.fill,
            sms: device.map_or(0, |it| it.info.multiprocessors),
            counted,
            is_communication: is_communication(trace.names().full(launched.name)),
        });
        let counted = counted.copied().unwrap_or_default();
        // Of several devices, the one that was sampled most.
        if row.limit.is_empty() || counted.samples > row.counted.samples {
            (row.class, row.limit, row.counted) = (class, limit, counted);
        }
    }
    for of_name in rows.values_mut() {
        let rest = |it: &ShapeRow| (it.grid, it.block, it.registers, it.shared, bits(&it.fill));
        of_name.sort_by_key(|it| (std::cmp::Reverse(it.total_ns), rest(it)));
    }
    rows
}

/// How long the GPU is idle right before a kernel since the call that launches it began, in the median: the first one loads code. `None`
/// where no call is known. Behind a full queue it is busy until then; what lies between those before it are others' gaps.
fn launch(trace: &Trace, device: usize, ran: &Ran) -> Option<Ns> {
    let usage = &trace.devices().get(device)?.usage;
    let idle = |&(process, correlation, start): &(usize, u32, Ns)| {
        let (lane, row) = trace.call(process, correlation)?;
        let call = trace.lanes()[lane].span(row);
        let gap = usage.gap_at(start - 1);
        Some(gap.map_or(0, |gap| start - gap.start.max(call.start).min(start)))
    };
    median_time(&ran.calls.iter().filter_map(idle).collect::<Vec<_>>())
}

/// What tells two apart: the same launch on GPUs of two models has two.
fn bits(fill: &Fill) -> [u64; 4] {
    let share = |it: Option<f64>| it.map_or(u64::MAX, f64::to_bits);
    let limit = fill.occupancy_limit.map_or(u64::MAX, |it| it as u64);
    let idle = fill.idle_sms.map_or(u64::MAX, u64::from);
    [share(fill.waves), share(fill.occupancy), limit, idle]
}

//! The launch configurations of each kernel: how they fill the GPU, what they do with it, and what limits them.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::class::{self, Class, Known, is_collective};
use crate::counted::{self, Counted};
use crate::fill::Fill;
use activity::{DeviceInfo, LaunchShape, NameId, Ns, ShapeId, Span};
use trace::{Measure, Trace};

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

/// What ran of one configuration on one device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ran {
    pub(crate) count: u64,
    pub(crate) time: Ns,
    /// Some of the calls that launched one of them alone: process and correlation id, and when that one began.
    pub(crate) calls: Vec<(usize, u32, Ns)>,
}

/// Calls that are looked at for how long launching takes.
pub(crate) const CALLS: usize = 32;

/// The configurations of each kernel, most time first, from what ran of each on each device.
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
        let of_name = rows.entry(launched.name).or_default();
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
        let (class, limit) = class::find(&Known {
            mean,
            launch: waited,
            fill: &row.fill,
            counted,
            is_collective: is_collective(trace.names().full(launched.name)),
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

/// The GPU waited where it was idle for more than this part of the time from a call to its kernel: it is busy where a queue is full, and the
/// call as long as that.
const WAITED: f64 = 0.1;

/// How long the calls take that launch it, in the mean; `None` where the GPU did not wait for them.
fn launch(trace: &Trace, device: usize, ran: &Ran) -> Option<Ns> {
    let usage = &trace.devices().get(device)?.usage;
    let (mut count, mut length, mut until, mut busy) = (0, 0, 0, 0);
    for &(process, correlation, start) in &ran.calls {
        let Some((lane, row)) = trace.call(process, correlation) else {
            continue;
        };
        let call = trace.lanes()[lane].span(row);
        let span = Span::new(call.start, start.max(call.start));
        (count, length) = (count + 1, length + call.len());
        (until, busy) = (until + span.len(), busy + usage.time(Measure::Busy, span));
    }
    let has_waited = (until - busy) as f64 > WAITED * until as f64;
    (count > 0 && has_waited).then(|| length / count)
}

/// What tells two apart: the same launch on GPUs of two models has two.
fn bits(fill: &Fill) -> [u64; 4] {
    let share = |it: Option<f64>| it.map_or(u64::MAX, f64::to_bits);
    let limit = fill.occupancy_limit.map_or(u64::MAX, |it| it as u64);
    let idle = fill.idle_sms.map_or(u64::MAX, u64::from);
    [share(fill.waves), share(fill.occupancy), limit, idle]
}

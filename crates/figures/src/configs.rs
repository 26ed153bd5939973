//! The launch configurations of a device's kernels, and what limits each.

use rustc_hash::FxHashMap;

use crate::class::Class;
use crate::counted::Estimate;
use crate::device::DeviceFigures;
use crate::fill::Fill;
use crate::shapes::ShapeRow;
use crate::tables;
use activity::stats::lower_median;
use activity::{LaunchShape, NameId, Ns, ShapeId, Span, What, occupancy};
use cases::thresholds;
use causes::first_use;
use trace::{GpuReadings, LaneId, Trace};

/// What ran of one configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its number.
    pub id: ShapeId,
    /// How it is launched.
    pub shape: LaunchShape,
    /// What is told of it; of launch and time alone where nobody sampled.
    pub row: ShapeRow,
    /// The first one, by stream and start.
    pub first: (LaneId, usize),
    /// The median time of one: what takes far longer, as a first launch may, tells nothing of the kernel.
    pub usual: Ns,
}

impl Config {
    /// Whether a launch takes about what others do.
    pub fn is_usual(&self, time: Ns) -> bool {
        !cases::FAR_TOO_LONG.holds(first_use::is_outlier(time, self.usual))
    }
}

/// Threads that an SM works for at once, at most, and those of a warp.
pub const LANES: u64 = 128;
pub const WARP_THREADS: u64 = 32;

/// So many times the places for blocks are many blocks.
const MANY_WAVES: f64 = 4.0;

impl Config {
    /// Threads of a grid.
    pub fn threads(&self) -> f64 {
        occupancy::blocks(&self.shape) as f64 * threads_of(&self.shape) as f64
    }

    /// Whether it is near no peak by counters, while its blocks, which are very many, take next to no time each.
    pub fn has_tiny_blocks(&self) -> bool {
        let are_many = self.row.fill.waves > Some(thresholds::MANY_WAVES);
        // One that moves many bytes is held up by memory.
        let dram = self.row.counted.dram.map_or(1.0, |it| it.value);
        let is_slow = self.row.class == Class::Latency && dram < thresholds::LITTLE_DRAM;
        are_many && is_slow && self.block_ns() < thresholds::AT_ONCE[1]
    }

    /// Whether it has far more threads than there are numbers, and most of them end at once.
    pub fn exceeds(&self, numbers: f64) -> bool {
        let is_beyond = numbers > 0.0 && self.threads() >= thresholds::THREADS_EACH * numbers;
        is_beyond && self.block_ns() < thresholds::AT_ONCE[0]
    }

    /// What a grid takes at the least that has such blocks, or exceeds so many numbers. To begin and end blocks is no roof. If all took
    /// the same, those with data would take their part.
    pub fn in_fewer_blocks(&self, numbers: f64) -> Ns {
        match self.has_tiny_blocks() {
            true => self.at_roof([self.row.counted.dram, self.row.counted.tensor, None]),
            false => (numbers / self.threads() * self.row.total_ns as f64) as Ns,
        }
    }

    /// What one of its blocks takes, in ns, where they are many.
    fn block_ns(&self) -> f64 {
        let waves = self.row.fill.waves.filter(|it| *it >= MANY_WAVES);
        waves.map_or(f64::INFINITY, |it| self.usual as f64 / it)
    }

    /// The part of an SM's warps that are there: a grid that does not fill all places brings fewer than fit.
    pub fn resident(&self) -> f64 {
        self.row.fill.occupancy.unwrap_or(1.0) * self.row.fill.waves.unwrap_or(1.0).min(1.0)
    }

    /// What it takes at its roof, where the busiest of these is busy all the time.
    pub fn at_roof(&self, busy: [Option<Estimate>; 3]) -> Ns {
        let busy = busy.into_iter().flatten().map(|it| it.value);
        (busy.fold(0.0, f64::max).min(1.0) * self.row.total_ns as f64) as Ns
    }

    /// The part of the lanes that it fills: of a warp's, and of those of SMs, whose four schedulers need a warp each.
    pub fn lanes(&self, multiprocessors: u64) -> f64 {
        let of_warp = threads_of(&self.shape) as f64 / WARP_THREADS as f64;
        of_warp.min(self.threads() / (multiprocessors * LANES) as f64)
    }
}

/// So many times as long a launch of the same kernel takes for its grid, and not for what the kernel does.
const FAR_SLOWER: Ns = 100;

impl Config {
    /// Whether it leaves SMs empty, and one of these of the same kernel that fills them takes far less.
    pub fn is_slow_by_its_grid(&self, sms: u32, all: &[&Config]) -> bool {
        let few = cases::UNDER_FILLED_BLOCKS.value() * f64::from(sms);
        let is_few = |it: &Config| (occupancy::blocks(&it.shape) as f64) < few;
        let is_other = |it: &&&Config| it.shape.name == self.shape.name && !is_few(it);
        let mut others = all.iter().filter(is_other);
        is_few(self) && others.any(|it| FAR_SLOWER * it.usual <= self.usual)
    }
}

/// Whether a kernel's launches with twice the blocks and more are no shorter: by number of blocks, what all take and how many they
/// are. Longer ones have more to do.
pub fn take_as_long_with_twice(sizes: &[(u64, (Ns, Ns))]) -> bool {
    let all: Ns = sizes.iter().map(|it| it.1.0).sum();
    let mean = |(sum, count): (Ns, Ns)| sum as f64 / count as f64;
    let usual: Vec<_> = sizes.iter().filter(|it| it.1.0 * 4 >= all).collect();
    let are_alike = |few: &(u64, (Ns, Ns)), many: &(u64, (Ns, Ns))| {
        let ratio = mean(many.1) / mean(few.1);
        many.0 >= 2 * few.0 && (0.9..=1.0 / 0.9).contains(&ratio)
    };
    usual
        .iter()
        .any(|few| usual.iter().any(|many| are_alike(few, many)))
}

/// Threads of a block. Where the source does not say, they fill an SM.
pub fn threads_of(shape: &LaunchShape) -> u64 {
    match occupancy::product(shape.block) {
        0 => LANES,
        threads => threads,
    }
}

/// Those of the kernels of a device that start within `window`, or of all: those that together take most time first.
pub fn find(trace: &Trace, f: &DeviceFigures, window: Option<Span>) -> Vec<Config> {
    // Names may be by the thousand.
    let mut all: FxHashMap<ShapeId, ((LaneId, usize), Vec<Ns>)> = FxHashMap::default();
    let device = &trace.devices()[f.index].info;
    for (id, lane) in trace.streams_of(f.index) {
        let rows = lane.rows_in(window);
        for (row, activity) in trace.activities(id, rows) {
            if let What::Kernel(kernel) = activity.what {
                let known = all.entry(kernel.shape);
                let known = known.or_insert_with(|| ((id, row), Vec::new()));
                known.1.push(activity.span.len());
            }
        }
    }
    let of_one = |(id, (first, mut times)): (ShapeId, ((LaneId, usize), Vec<Ns>))| {
        let shape = trace.shape(id);
        let row = ShapeRow {
            grid: shape.grid,
            block: shape.block,
            fill: Fill::of(&shape, device),
            ..ShapeRow::default()
        };
        let mut config = Config {
            id,
            shape,
            row,
            first,
            usual: 0,
        };
        config.usual = lower_median(&mut times).unwrap_or(0);
        // What several do is the kernel's own.
        if times.iter().filter(|it| !config.is_usual(**it)).count() > 1 {
            config.usual = times.iter().copied().max().unwrap_or(0);
        }
        times.retain(|&it| config.is_usual(it));
        (config.row.count, config.row.total_ns) = (times.len() as u64, times.iter().sum());
        config
    };
    let mut all: Vec<Config> = all.into_iter().map(of_one).collect();
    all.sort_by_key(|it| (std::cmp::Reverse(it.row.total_ns), it.first));
    let gpu = trace.readings(f.index);
    if gpu.is_some_and(GpuReadings::is_sampled) {
        name_limits(trace, window, &mut all);
    }
    all
}

/// Adds what samples tell of each.
fn name_limits(trace: &Trace, window: Option<Span>, all: &mut [Config]) {
    let rows = tables::kernels(trace, window);
    let key = |name: NameId, it: &ShapeRow| (name, it.grid, it.block, it.registers, it.shared);
    let known = rows
        .iter()
        .flat_map(|of| of.shapes.iter().map(|it| (key(of.id, it), it)));
    let known: FxHashMap<_, &ShapeRow> = known.collect();
    for it in all {
        let of = &it.shape;
        let shared = u64::from(of.static_shared) + u64::from(of.dynamic_shared);
        if let Some(row) = known.get(&(of.name, of.grid, of.block, of.registers, shared)) {
            (it.row.class, it.row.limit, it.row.counted) =
                (row.class, row.limit.clone(), row.counted);
        }
    }
}

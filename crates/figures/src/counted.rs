//! What each kernel does with the hardware, from samples of a GPU's counters.
//!
//! A sample that lies in one kernel is that kernel's own. A sample of several is a mean of theirs, each in proportion
//! to its time. So samples over many different mixtures tell the parts (least squares), each with its interval. Kernels
//! that ran at once, or beside a copy, share what was counted in a way that nobody knows: such samples are left out.
//! What cannot be told is not told.

mod squares;

use rustc_hash::FxHashMap;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use activity::{Metric, Ns, ShapeId, Span, What};
use squares::Squares;
use trace::{GpuReadings, GpuWindow, Trace};

/// Samples below which nothing is told.
pub const LEAST: usize = 8;
/// The widest interval, on either side of a share, that is still told.
pub const WIDEST: f64 = 0.1;
/// The widest interval, on either side of a rate, as a part of it.
const WIDEST_RATE: f64 = 0.25;
/// Kernels of a device that are told apart: those that take most time. What the others did is one unknown more.
const MOST: usize = 64;
/// Part of a sample that operations may overlap by, as clocks are read.
const AT_ONCE: f64 = 0.01;
/// Part of a sample that launches of one kernel fill, with the gaps between them, for it to be that kernel's own.
const WHOLE: f64 = 0.99;

/// What is solved for.
const METRICS: [&[Metric]; 5] = [
    &[Metric::Dram],
    &[Metric::Tensor],
    &[Metric::Sm],
    &[Metric::Issue],
    &[Metric::DramRead, Metric::DramWrite],
];

/// A value and how far it may be off, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub half: f64,
}

/// What one launch configuration of a kernel does with the hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Shares of the peaks of memory bandwidth and tensor cores, of time with work on the SMs, and of cycles that
    /// issued an instruction.
    pub dram: Option<Estimate>,
    pub tensor: Option<Estimate>,
    pub sm: Option<Estimate>,
    pub issue: Option<Estimate>,
    /// Bytes per second to and from device memory.
    pub rate: Option<Estimate>,
    /// Samples that it rests on.
    pub samples: usize,
    /// Whether these lie in it alone; else they are mixtures with others.
    pub is_own: bool,
}

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |it: Option<Estimate>| it.map(|it| it.value);
        let half = |it: Option<Estimate>| it.map(|it| it.half);
        let mut map = serializer.serialize_map(None)?;
        for (name, number) in [
            ("dram_share", value(self.dram)),
            ("dram_error", half(self.dram)),
            ("tensor_share", value(self.tensor)),
            ("tensor_error", half(self.tensor)),
            ("sm_share", value(self.sm)),
            ("issue_share", value(self.issue)),
            ("dram_gbps", value(self.rate).map(|it| it / 1e9)),
        ] {
            map.serialize_entry(name, &number)?;
        }
        map.serialize_entry("samples", &self.samples)?;
        map.serialize_entry("own_samples", &self.is_own)?;
        map.end()
    }
}

/// Which kernel a sample is of: its shape and the device's index, as a place among those told apart.
type Key = (ShapeId, u32);

/// What samples tell of the kernels that start within `window`, or of all, by shape and device.
pub fn find(trace: &Trace, window: Option<Span>) -> FxHashMap<Key, Counted> {
    let mut found = FxHashMap::default();
    for index in 0..trace.devices().len() {
        let Some(gpu) = trace.readings(index).filter(|it| it.is_sampled()) else {
            continue;
        };
        let operations = Operations::of(trace, index, window);
        let solved = operations.solve(gpu, window);
        let keys = operations.keys.iter().zip(solved);
        found.extend(keys.map(|(&shape, counted)| ((shape, index as u32), counted)));
    }
    found
}

/// The operations of a device in order of their starts.
#[derive(Default)]
struct Operations {
    /// Each with the place of its shape among the keys; `None` for what is no kernel.
    all: Vec<(Span, Option<usize>)>,
    keys: Vec<ShapeId>,
}

impl Operations {
    fn of(trace: &Trace, device: usize, window: Option<Span>) -> Operations {
        let mut all = Vec::new();
        let mut times: FxHashMap<ShapeId, Ns> = FxHashMap::default();
        for (id, lane) in trace.streams_of(device) {
            let rows = lane.rows_in(window);
            for (_, activity) in trace.activities(id, rows) {
                let shape = match activity.what {
                    What::Kernel(kernel) => Some(kernel.shape),
                    _ => None,
                };
                if let Some(shape) = shape {
                    *times.entry(shape).or_default() += activity.span.len();
                }
                all.push((activity.span, shape));
            }
        }
        let mut keys: Vec<(Ns, ShapeId)> = times.into_iter().map(|(id, time)| (time, id)).collect();
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.truncate(MOST);
        let keys: Vec<ShapeId> = keys.into_iter().map(|it| it.1).collect();
        let places: FxHashMap<ShapeId, usize> =
            keys.iter().enumerate().map(|(n, id)| (*id, n)).collect();
        let place = |id| places.get(&id).copied().unwrap_or(keys.len());
        let mut all: Vec<_> = all
            .into_iter()
            .map(|(span, id)| (span, id.map(place)))
            .collect();
        all.sort_unstable_by_key(|it| (it.0.start, it.0.end));
        Operations { all, keys }
    }

    /// What each of the keys does.
    fn solve(&self, gpu: &GpuReadings, window: Option<Span>) -> Vec<Counted> {
        let unknowns = self.keys.len() + 1;
        let mut mixed = vec![Squares::new(unknowns); METRICS.len()];
        let mut own = vec![vec![Own::default(); self.keys.len()]; METRICS.len()];
        let mut touched = vec![0; unknowns];
        // Those that have begun and not ended: one that runs all the time must not make every sample walk over all before it.
        let (mut running, mut next): (Vec<(Span, Option<usize>)>, _) = (Vec::new(), 0);
        let scope = window.unwrap_or(Span::new(Ns::MIN, Ns::MAX));
        for sample in gpu.samples_within(scope) {
            running.retain(|it| it.0.end > sample.span.start);
            let begun = self.all[next..].iter();
            let begun = begun.take_while(|it| it.0.start < sample.span.end);
            let known = running.len();
            running.extend(begun);
            next += running.len() - known;
            let Some(parts) = parts(&running, sample.span) else {
                continue;
            };
            let whole = match parts[..] {
                [(key, part)] if part >= WHOLE && key < self.keys.len() => Some((key, part)),
                _ => None,
            };
            for &(key, _) in &parts {
                touched[key] += 1;
            }
            for (nth, metrics) in METRICS.iter().enumerate() {
                let Some(value) = value(sample, metrics) else {
                    continue;
                };
                mixed[nth].add(&parts, value);
                if let Some((key, part)) = whole {
                    own[nth][key].add(value / part);
                }
            }
        }
        let solved: Vec<Vec<Option<Estimate>>> = mixed.iter().map(Squares::solve).collect();
        let counted = |key: usize| {
            let samples = own.iter().map(|it| it[key].count).max().unwrap_or(0);
            let is_own = samples >= LEAST;
            let told = |nth: usize| {
                let estimate = if is_own {
                    own[nth][key].estimate()
                } else {
                    solved[nth][key].filter(|_| touched[key] >= LEAST)
                }?;
                let is_share = METRICS[nth].len() == 1;
                let most = if is_share {
                    WIDEST
                } else {
                    WIDEST_RATE * estimate.value
                };
                // A share is no more than the whole, however clocks were read.
                let value = estimate.value.min(if is_share { 1.0 } else { f64::MAX });
                (estimate.half <= most).then_some(Estimate { value, ..estimate })
            };
            Counted {
                dram: told(0),
                tensor: told(1),
                sm: told(2),
                issue: told(3),
                rate: told(4),
                samples: if is_own { samples } else { touched[key] },
                is_own,
            }
        };
        (0..self.keys.len()).map(counted).collect()
    }
}

/// What a sample holds of operations in order of their starts. They are parts of its time, by kernel; those that are
/// not told apart have one more number. `None` for nothing, or for what nobody can tell apart. A memset of a microsecond,
/// which comes before each matrix product of some libraries, is nothing beside a sample of a hundred.
fn parts(running: &[(Span, Option<usize>)], span: Span) -> Option<Vec<(usize, f64)>> {
    let mut of: Vec<(usize, f64)> = Vec::new();
    let (mut end, mut at_once, mut last) = (span.start, 0, None);
    for &(operation, key) in running {
        let inside = operation.intersect(span);
        if inside.is_empty() {
            continue;
        }
        let Some(key) = key else {
            at_once += inside.len();
            continue;
        };
        let shared = (end.min(inside.end) - inside.start).max(0);
        // A launch that begins while the one before it ends is of the same kernel: nothing is to be told apart.
        let is_alike = last == Some(key);
        at_once += if is_alike { 0 } else { shared };
        let new = inside.len() - if is_alike { shared } else { 0 };
        if inside.end >= end {
            (end, last) = (inside.end, Some(key));
        }
        let part = new as f64 / span.len() as f64;
        match of.iter_mut().find(|it| it.0 == key) {
            Some(known) => known.1 += part,
            None => of.push((key, part)),
        }
    }
    let is_apart = at_once as f64 <= AT_ONCE * span.len() as f64;
    (!of.is_empty() && is_apart).then_some(of)
}

/// The sum of some metrics of a sample; `None` where one of them was not counted.
fn value(sample: &GpuWindow, metrics: &[Metric]) -> Option<f64> {
    metrics.iter().map(|&it| sample.value(it)).sum()
}

/// A kernel's own samples.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Own {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn estimate(&self) -> Option<Estimate> {
        let count = self.count as f64;
        let value = self.sum / count;
        let variance = (self.squares / count - value * value).max(0.0) * count / (count - 1.0);
        (self.count >= LEAST).then(|| Estimate {
            value,
            half: squares::NORMAL_95 * (variance / count).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests;

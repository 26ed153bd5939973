//! Records as calibration needs them: the passes of each variant, and the times of what lies in them.

use std::collections::HashMap;
use std::ops::Range;

use activity::stats::median_time;
use activity::{
    Activity, Correlation, DeviceInfo, Direction, LaunchShape, NameId, Ns, Place, RangeKind, Span,
    What,
};
use trace::Trace;

/// A run, and all its records in order of their start.
#[derive(Debug)]
pub(crate) struct Observed {
    trace: Trace,
    items: Vec<Activity>,
}

/// Operations and calls of one stretch of time, in order of their start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch<'a> {
    observed: &'a Observed,
    items: &'a [Activity],
}

/// Stretches that tell of the same.
pub(crate) struct Passes<'a>(pub(crate) Vec<Stretch<'a>>);

impl<'a> Passes<'a> {
    pub(crate) fn median(&self, values: impl Fn(Stretch<'a>) -> Vec<Ns>) -> Option<Ns> {
        median_time(&self.all(values))
    }

    pub(crate) fn mean(&self, values: impl Fn(Stretch<'a>) -> Vec<Ns>) -> Option<Ns> {
        mean(self.all(values))
    }

    fn all(&self, values: impl Fn(Stretch<'a>) -> Vec<Ns>) -> Vec<Ns> {
        self.0.iter().copied().flat_map(values).collect()
    }
}

impl Observed {
    pub(crate) fn new(trace: Trace) -> Observed {
        let lanes = trace.lanes().iter().enumerate();
        let all = lanes.flat_map(|(id, lane)| trace.activities(id, lane.kept()));
        let mut items: Vec<Activity> = all.map(|(_, item)| item).collect();
        items.sort_by_key(|item| (item.span.start, item.span.end));
        Observed { trace, items }
    }

    /// The device that took part.
    pub(crate) fn device(&self) -> Option<&DeviceInfo> {
        self.trace.devices().first().map(|device| &device.info)
    }

    /// Driver, CUPTI and CUDA, in words.
    pub(crate) fn versions(&self) -> String {
        let all = self.trace.processes().iter();
        let mut told = all.map(|process| &process.info.versions);
        told.rfind(|it| !it.is_empty())
            .map_or_else(String::new, |it| it.replace('\n', " "))
    }

    /// The measured passes of a variant.
    pub(crate) fn passes(&self, variant: &str) -> Passes<'_> {
        let is_pass = |it: &&Activity| self.is_range(it.what, RangeKind::Repeat, variant);
        let passes = self.items.iter().filter(is_pass);
        Passes(passes.map(|item| self.stretch(item.span)).collect())
    }

    /// What starts inside a span.
    fn stretch(&self, span: Span) -> Stretch<'_> {
        let from = self.items.partition_point(|i| i.span.start < span.start);
        let to = self.items.partition_point(|i| i.span.start < span.end);
        self.among(from..to)
    }

    fn among(&self, rows: Range<usize>) -> Stretch<'_> {
        Stretch {
            observed: self,
            items: &self.items[rows],
        }
    }

    /// The configuration that a kernel was first launched with.
    pub(crate) fn shape(&self, entry: &str) -> Option<LaunchShape> {
        let mut shapes = self
            .items
            .iter()
            .filter_map(|item| self.shape_of(item.what));
        shapes.find(|shape| self.name(shape.name) == entry)
    }

    fn shape_of(&self, what: What) -> Option<LaunchShape> {
        match what {
            What::Kernel(kernel) => Some(self.trace.shape(kernel.shape)),
            _ => None,
        }
    }

    fn is_range(&self, what: What, kind: RangeKind, name: &str) -> bool {
        matches!(what, What::Range(it) if it.kind == kind && self.name(it.name) == name)
    }

    fn name(&self, id: NameId) -> &str {
        self.trace.names().full(id)
    }
}

impl<'a> Stretch<'a> {
    /// Times of the copies of one size in one direction.
    pub(crate) fn copies(self, direction: Direction, bytes: u64) -> Vec<Ns> {
        self.times(|what| is_copy(what, direction, bytes))
    }

    /// Times of a kernel.
    pub(crate) fn kernels(self, entry: &str) -> Vec<Ns> {
        let observed = self.observed;
        let is_it = |shape: LaunchShape| observed.name(shape.name) == entry;
        self.times(|what| observed.shape_of(what).is_some_and(is_it))
    }

    /// Times of the memsets of one size.
    pub(crate) fn memsets(self, bytes: u64) -> Vec<Ns> {
        self.times(|what| matches!(what, What::Memset(memset) if memset.bytes == bytes))
    }

    /// Times of the calls of a function.
    pub(crate) fn calls(self, function: &str) -> Vec<Ns> {
        self.call_spans(function).map(Span::len).collect()
    }

    /// From the end of the call that started an operation to the operation's start, for those that
    /// `wanted` picks.
    pub(crate) fn delays(self, wanted: impl Fn(What) -> bool) -> Vec<Ns> {
        let calls = self.calls_by_correlation();
        self.operations()
            .filter(|(_, item)| wanted(item.what))
            .filter_map(|(_, item)| Some(item.span.start - calls.get(&item.correlation)?.end))
            .collect()
    }

    /// From the end of an operation to the start of the next on its stream, where that one was queued
    /// by then. That is the device's time, not the host's.
    pub(crate) fn gaps(self, wanted: impl Fn(What, What) -> bool) -> Vec<Ns> {
        let calls = self.calls_by_correlation();
        let is_queued = |before: &Activity, item: &Activity| {
            before.correlation == item.correlation
                || (calls.get(&item.correlation)).is_some_and(|call| call.end <= before.span.end)
        };
        let mut last: HashMap<u32, &Activity> = HashMap::new();
        let mut gaps = Vec::new();
        for (place, item) in self.operations() {
            if let Some(before) = last.insert(place.stream, item)
                && wanted(before.what, item.what)
                && is_queued(before, item)
            {
                gaps.push(item.span.start - before.span.end);
            }
        }
        gaps
    }

    /// From the end of an operation on one stream to the start of the next one, where that is on another.
    pub(crate) fn hand_overs(self) -> Vec<Ns> {
        let all: Vec<(Place, &Activity)> = self.operations().collect();
        all.windows(2)
            .filter(|w| w[0].0.stream != w[1].0.stream)
            .map(|w| w[1].1.span.start - w[0].1.span.end)
            .collect()
    }

    /// From the end of an operation that the host waited for to the end of that wait.
    pub(crate) fn wakes(self, function: &str) -> Vec<Ns> {
        let ends: Vec<Ns> = self.operations().map(|(_, item)| item.span.end).collect();
        let within = |call: Span| ends.iter().copied().filter(move |&end| call.contains(end));
        self.call_spans(function)
            .filter_map(|call| Some(call.end - within(call).max()?))
            .collect()
    }

    /// Times of waits that had nothing to wait for: no operation ran in them.
    pub(crate) fn empty_waits(self, function: &str) -> Vec<Ns> {
        let last = self.operations().map(|(_, item)| item.span.end).max();
        self.call_spans(function)
            .filter(|call| last.is_none_or(|last| call.start > last))
            .map(Span::len)
            .collect()
    }

    fn operations(self) -> impl Iterator<Item = (Place, &'a Activity)> {
        self.items
            .iter()
            .filter_map(|item| Some((item.place()?, item)))
    }

    fn times(self, wanted: impl Fn(What) -> bool) -> Vec<Ns> {
        let wanted = self.items.iter().filter(|item| wanted(item.what));
        wanted.map(|item| item.span.len()).collect()
    }

    /// All calls by name.
    fn all_calls(self) -> impl Iterator<Item = (&'a str, &'a Activity)> {
        self.items.iter().filter_map(move |item| match item.what {
            What::Call(call) => Some((plain(self.observed.name(call.name)), item)),
            _ => None,
        })
    }

    fn call_spans(self, function: &str) -> impl Iterator<Item = Span> {
        self.all_calls()
            .filter(move |(name, _)| *name == function)
            .map(|(_, call)| call.span)
    }

    fn calls_by_correlation(self) -> HashMap<Correlation, Span> {
        self.items
            .iter()
            .filter(|item| matches!(item.what, What::Call(_)) && item.correlation != 0)
            .map(|item| (item.correlation, item.span))
            .collect()
    }
}

fn is_copy(what: What, direction: Direction, bytes: u64) -> bool {
    matches!(what, What::Copy(it) if it.direction == direction && it.bytes == bytes)
}

/// A function's name without the suffixes of its versions ("cuMemAlloc_v2", "cuLaunchKernel_ptsz").
fn plain(name: &str) -> &str {
    name.split_once('_').map_or(name, |(name, _)| name)
}

/// The mean, of what the host takes again and again: such times add up, and their longer ones with them. Values of more than ten
/// times the median are left out: something else had the processor.
pub(crate) fn mean(values: Vec<Ns>) -> Option<Ns> {
    let most = median_time(&values)?.saturating_mul(10);
    let usual: Vec<Ns> = values.into_iter().filter(|&ns| ns <= most).collect();
    let sum: Ns = usual.iter().sum();
    Some(sum / usual.len().max(1) as Ns)
}

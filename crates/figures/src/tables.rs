//! What is counted by name: kernels, host calls, named phases; and the time the host spent waiting.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::remarks;
use crate::shapes::{self, Ran, ShapeRow};
use crate::stalls::{self, KernelStalls};
use activity::units::share;
use activity::{Activity, LaunchShape, NameId, Ns, RangeKind, ShapeId, Span, What};
use trace::describe::is_host_wait;
use trace::{Device, LaneKind, Trace};

/// Durations of things with one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NameRow {
    /// The whole name, demangled.
    pub name: String,
    /// The name's id in the timeline.
    #[serde(skip)]
    pub id: NameId,
    /// How many.
    pub count: u64,
    /// Sum of their durations.
    pub total_ns: Ns,
    /// Mean duration.
    pub mean_ns: Ns,
    /// Shortest.
    pub min_ns: Ns,
    /// Longest.
    pub max_ns: Ns,
    /// This name's part of the sum of all durations in the table, 0 to 1.
    pub share: f64,
    /// Of a kernel: its launch configurations, most time first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<ShapeRow>,
    /// Of a kernel: what its warps waited for, where that was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalls: Option<KernelStalls>,
    /// Of a kernel that takes some of the time: what stands out of its launches and its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Durations of one launch configuration of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeTime {
    /// The configuration; its name is the timeline's own id.
    pub shape: LaunchShape,
    /// How many ran.
    pub count: u64,
    /// Sum of their durations.
    pub total_ns: Ns,
}

/// Kernels with this part of the time say what stands out of them.
const REMARKED: f64 = 0.05;

/// So do those of one block or one thread with this part.
const ONE_REMARKED: f64 = 0.01;

/// Kernels by name, most time first. Those that start within `window`, or all.
pub fn kernels(trace: &Trace, window: Option<Span>) -> Vec<NameRow> {
    kernels_sampled(trace, window, window)
}

/// The same, with the samples of another stretch, in which the same kernels ran more often.
pub fn kernels_sampled(trace: &Trace, window: Option<Span>, sampled: Option<Span>) -> Vec<NameRow> {
    let mut sums = Sums::default();
    let mut ran: FxHashMap<(ShapeId, u32), Ran> = FxHashMap::default();
    for (id, lane) in trace.streams() {
        let rows = lane.rows_in(window);
        for (_, activity) in trace.activities(id, rows) {
            let What::Kernel(kernel) = activity.what else {
                continue;
            };
            sums.add(trace.shape(kernel.shape).name, activity.span.len());
            let key = (kernel.shape, kernel.place.device);
            // In a graph it has no call of its own.
            let call = (lane.key().process, activity.correlation);
            let call = (kernel.graph == 0).then_some(call);
            ran.entry(key).or_default().add(activity.span, call);
        }
    }
    let mut rows = sums.rows(trace);
    let mut shapes = shapes::rows(trace, sampled, &ran);
    // Of GPUs of several models nobody knows which ran what of one.
    let first = trace.devices().first();
    let is_first = |it: &&Device| Some(&it.info.name) == first.map(|it| &it.info.name);
    let device = first.filter(|_| trace.devices().iter().all(|it| is_first(&it)));
    for row in &mut rows {
        row.stalls = stalls::of_kernel(trace, row.id, row.count, row.total_ns);
        row.shapes = shapes.remove(&row.id).unwrap_or_default();
        if let Some(device) = device.filter(|_| row.share >= ONE_REMARKED) {
            row.remarks = remarks::find(&row.name, &row.shapes, &device.info);
            row.remarks
                .retain(|it| row.share >= REMARKED || remarks::is_of_one(it));
        }
    }
    for at in 0..rows.len() {
        let is_padded = rows[at].remarks.iter().any(|it| it == remarks::PAD);
        let mut names = rows.iter().map(|it| it.name.as_str());
        if is_padded && remarks::has_aligned_twin(&rows[at].name, &mut names) {
            rows[at].remarks.retain(|it| it != remarks::PAD);
        }
    }
    rows
}

/// Host calls by name, most time first. Those that start within `window`, or all.
pub fn calls(trace: &Trace, window: Option<Span>) -> Vec<NameRow> {
    let mut sums = Sums::default();
    let is_thread = |kind| matches!(kind, LaneKind::Thread { .. });
    for_each(trace, window, is_thread, |_, span, what| {
        if let What::Call(call) = what {
            sums.add(call.name, span.len());
        }
    });
    sums.rows(trace)
}

/// Ranges of one kind by name, most time first. Those that start within `window`, or all.
pub fn ranges(trace: &Trace, wanted: RangeKind, window: Option<Span>) -> Vec<NameRow> {
    let mut sums = Sums::default();
    let is_wanted = |kind| matches!(kind, LaneKind::Range { kind, .. } if kind == wanted);
    for_each(trace, window, is_wanted, |_, span, what| {
        if let What::Range(range) = what {
            sums.add(range.name, span.len());
        }
    });
    sums.rows(trace)
}

/// Kernels by launch configuration, in no order. Those that start within `window`, or all.
pub fn shapes(trace: &Trace, window: Option<Span>) -> Vec<ShapeTime> {
    let mut times: FxHashMap<ShapeId, (u64, Ns)> = FxHashMap::default();
    for_each(trace, window, is_stream, |_, span, what| {
        if let What::Kernel(kernel) = what {
            let time = times.entry(kernel.shape).or_default();
            *time = (time.0 + 1, time.1 + span.len());
        }
    });
    let row = |(id, (count, total_ns))| ShapeTime {
        shape: trace.shape(id),
        count,
        total_ns,
    };
    times.into_iter().map(row).collect()
}

/// Time for which at least one host thread of a process was inside a synchronizing wait, summed over
/// processes. Synchronization records count, and calls named `…Synchronize` where there are none.
pub fn sync_time(trace: &Trace, window: Option<Span>) -> Ns {
    let mut waits: Vec<Vec<Span>> = vec![Vec::new(); trace.processes().len()];
    let may_wait = |kind| matches!(kind, LaneKind::Sync | LaneKind::Thread { .. });
    for_each(trace, window, may_wait, |process, span, what| {
        if is_host_wait(trace, what) {
            waits[process].push(span);
        }
    });
    waits.into_iter().map(Span::union_len).sum()
}

fn is_stream(kind: LaneKind) -> bool {
    matches!(kind, LaneKind::Stream { .. })
}

fn for_each(
    trace: &Trace,
    window: Option<Span>,
    is_wanted: impl Fn(LaneKind) -> bool,
    mut f: impl FnMut(usize, Span, &What),
) {
    for (id, lane) in trace.lanes().iter().enumerate() {
        if !is_wanted(lane.key().kind) {
            continue;
        }
        let rows = lane.rows_in(window);
        for (_, activity) in trace.activities(id, rows) {
            f(lane.key().process, activity.span, &activity.what);
        }
    }
}

/// Operations by the text that stands for what `of` finds of each; those of which it finds nothing are left out.
pub(crate) fn by_text<K: Copy + Eq + Hash>(
    trace: &Trace,
    of: impl Fn(usize, &Activity) -> Option<K>,
    text: impl Fn(K) -> Option<String>,
) -> Vec<NameRow> {
    let (mut sums, mut ids) = (Sums::default(), FxHashMap::<K, NameId>::default());
    let mut texts: Vec<String> = Vec::new();
    for (id, lane) in trace.streams() {
        for (_, activity) in trace.activities(id, lane.kept()) {
            let Some(key) = of(lane.key().process, &activity) else {
                continue;
            };
            let name = *ids.entry(key).or_insert_with(|| {
                let text = text(key).unwrap_or_else(|| "no line known".to_owned());
                let known = texts.iter().position(|it| *it == text);
                known.unwrap_or_else(|| {
                    texts.push(text);
                    texts.len() - 1
                }) as NameId
            });
            sums.add(name, activity.span.len());
        }
    }
    sums.named(|name| texts[name as usize].clone())
}

/// Rows under way.
#[derive(Default)]
struct Sums(FxHashMap<NameId, NameRow>);

impl Sums {
    fn add(&mut self, name: NameId, length: Ns) {
        let row = self.0.entry(name).or_insert(NameRow {
            id: name,
            min_ns: length,
            ..NameRow::default()
        });
        row.min_ns = row.min_ns.min(length);
        row.max_ns = row.max_ns.max(length);
        row.count += 1;
        row.total_ns += length;
    }

    fn rows(self, trace: &Trace) -> Vec<NameRow> {
        self.named(|name| trace.names().full(name).to_owned())
    }

    fn named(self, name: impl Fn(NameId) -> String) -> Vec<NameRow> {
        let all: Ns = self.0.values().map(|row| row.total_ns).sum();
        let named = |row: NameRow| NameRow {
            name: name(row.id),
            mean_ns: row.total_ns / row.count.max(1) as Ns,
            share: share(row.total_ns, all),
            ..row
        };
        let mut rows: Vec<NameRow> = self.0.into_values().map(named).collect();
        rows.sort_by(|a, b| (b.total_ns, &a.name).cmp(&(a.total_ns, &b.name)));
        rows
    }
}

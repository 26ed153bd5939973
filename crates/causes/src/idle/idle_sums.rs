//! Idle time by cause of a whole timeline that grows.
//!
//! What lies before a *seal* is summed and not visited again. Each call of [`IdleSums::grow`] walks only the gaps that
//! end behind the last seal. The sums are those that [`Causes::idle`] has of the same records, whatever parts they came
//! in. Something before the seal may turn out different: a late record, an operation that ran without one, or what
//! launches take while few are known. Then everything is summed again. Where old records were evicted, or the graph has
//! become too large, a new one begins shortly before the seal. From then on what lies before it stays as it was summed.

use rustc_hash::FxHashSet;

use super::sum::{Sums, by_cause};
use super::{Causes, Gap, IdleCause, limits};
use crate::graph::{CallId, CallKind, Graph, HANDOVER_MIN, NONE, OpId};
use activity::feed::Stop;
use activity::units::{duration, percent, share};
use activity::{Ns, Span};
use trace::{Evicted, Trace};

/// Causes that a line has.
const CAUSES_SHOWN: usize = 4;

/// Gaps between two looks at whether to stop.
const BETWEEN_LOOKS: u64 = 4_096;

/// What was launched so long ago and left no operation is not awaited.
const AWAITED: Ns = 1_000_000_000;

/// A graph that takes more bytes is begun anew: some two million operations.
const GRAPH_MAX: usize = 256 << 20;

/// It begins so long before the seal: what the first gaps waited for may lie there.
const BEFORE: Ns = 50_000_000;

/// The sums of one device.
#[derive(Clone, Debug, Default)]
struct Device {
    sums: Sums,
    idle: Ns,
    /// When its first operation began.
    start: Ns,
    /// When the last of the operations before the seal ended.
    end: Option<Ns>,
}

/// The sums up to a moment.
#[derive(Clone, Debug)]
struct Sealed {
    until: Ns,
    devices: Vec<Device>,
}

impl Default for Sealed {
    fn default() -> Self {
        Sealed {
            until: Ns::MIN,
            devices: Vec::new(),
        }
    }
}

/// Idle time by cause, since the beginning. See the module.
#[derive(Debug)]
pub struct IdleSums {
    graph: Graph,
    sealed: Sealed,
    /// What is not summed again: the graph begins behind it.
    base: Sealed,
    forgotten: Option<Evicted>,
    limits: limits::Limits,
    /// Operations before the seal before which others ran that left no record.
    missing: Vec<(OpId, CallId)>,
    sample: usize,
    graph_max: usize,
    #[cfg(test)]
    walked: u64,
}

impl Default for IdleSums {
    fn default() -> Self {
        IdleSums::with_sample(limits::SAMPLE)
    }
}

/// The idle time of one device between its first operation and the seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleSoFar {
    /// Index into [`Trace::devices`].
    pub device: usize,
    pub idle_ns: Ns,
    /// From its first operation's start to the end of the last one before the seal.
    pub span_ns: Ns,
    /// By cause, most time first; without source lines.
    pub causes: Vec<IdleCause>,
}

impl IdleSums {
    fn with_sample(sample: usize) -> IdleSums {
        IdleSums {
            graph: Graph::default(),
            sealed: Sealed::default(),
            base: Sealed::default(),
            forgotten: None,
            limits: limits::Limits::default(),
            missing: Vec::new(),
            sample,
            graph_max: GRAPH_MAX,
            #[cfg(test)]
            walked: 0,
        }
    }

    /// Sums what `trace` has up to `until`, as far as nothing of it is still awaited. `until` should lie before what is
    /// still to come. `None` when it was told to stop: then everything is summed again the next time.
    pub fn grow(&mut self, trace: &Trace, until: Ns, stop: &Stop) -> Option<Vec<IdleSoFar>> {
        let is_new = trace.evicted() != self.forgotten || self.graph.memory() > self.graph_max;
        if is_new {
            self.forgotten = trace.evicted();
            self.base = self.sealed.clone();
            self.graph = Graph::beginning(trace, self.base.until.saturating_sub(BEFORE));
        }
        let changed = self.graph.extend(trace);
        let causes = Causes::with_sample(trace, &self.graph, self.sample);
        let seal = self.sealed.until;
        let is_late = !is_new && changed.is_some_and(|from| from < seal);
        let holds = !is_late
            && causes.ready.limits == self.limits
            && missing(&causes, seal) == self.missing
            && !trace.has_unrecorded();
        if !holds {
            self.sealed = self.base.clone();
        }
        let settled = settled(&self.graph, until);
        let walked = sum(&causes, &mut self.sealed, settled, stop);
        let Some(_walked) = walked else {
            *self = IdleSums::with_sample(self.sample);
            return None;
        };
        #[cfg(test)]
        {
            self.walked += _walked;
        }
        self.limits = causes.ready.limits;
        self.missing = missing(&causes, self.sealed.until);
        let devices = self.sealed.devices.iter().enumerate();
        let rows = devices.filter(|(_, of)| of.end.is_some());
        let rows = rows.map(|(device, of)| IdleSoFar {
            device,
            idle_ns: of.idle,
            span_ns: of.end.map_or(0, |end| end - of.start),
            causes: of.sums.clone().rows(&causes),
        });
        Some(rows.collect())
    }
}

impl IdleSoFar {
    /// In a line, the largest causes first.
    pub fn line(&self, trace: &Trace) -> String {
        let part = |ns: Ns| percent(share(ns, self.span_ns));
        let shown = by_cause(&self.causes).into_iter().take(CAUSES_SHOWN);
        let causes: Vec<String> = shown
            .map(|(cause, ns)| format!("{} {}", cause.label(), part(ns)))
            .collect();
        let device = trace.devices()[self.device].info.id;
        let idle = part(self.idle_ns);
        let span = duration(self.span_ns);
        let mut line = format!("GPU {device}, since the beginning: idle for {idle} of {span}");
        if !causes.is_empty() {
            line.push_str(": ");
            line.push_str(&causes.join(", "));
        }
        line
    }
}

/// Up to where no operation is awaited of a launch or a copy of the last second. One that comes may change the causes
/// of the time before.
fn settled(graph: &Graph, until: Ns) -> Ns {
    let calls = &graph.calls;
    let from = calls
        .start
        .partition_point(|&start| start < until.saturating_sub(AWAITED));
    let to = calls.start.partition_point(|&start| start < until);
    let mut settled = until;
    // Those before a call whose operation has come are awaited no more: they may have left none.
    let mut has_come: FxHashSet<u32> = FxHashSet::default();
    for call in (from..to.max(from)).rev() {
        let launches = matches!(
            calls.kind[call],
            CallKind::Launch | CallKind::GraphLaunch | CallKind::Copy
        );
        if calls.first_op[call] != NONE {
            has_come.insert(calls.lane[call]);
        } else if launches && !has_come.contains(&calls.lane[call]) {
            settled = calls.start[call];
        }
    }
    // More nodes may come of the last graph of a stream.
    for op in graph.ops.last_of_lanes() {
        let call = graph.ops.call[op as usize];
        if graph.ops.is_graph(op)
            && call != NONE
            && calls.start[call as usize] >= until.saturating_sub(AWAITED)
        {
            settled = settled.min(calls.start[call as usize]);
        }
    }
    settled.saturating_sub(HANDOVER_MIN)
}

/// Operations that start before `until` and before which others ran that left no record.
fn missing(causes: &Causes<'_>, until: Ns) -> Vec<(OpId, CallId)> {
    let starts = &causes.graph.ops.start;
    let all = causes.ready.missing.iter().map(|(&op, &call)| (op, call));
    let mut list: Vec<(OpId, CallId)> = all.filter(|of| starts[of.0 as usize] < until).collect();
    list.sort_unstable();
    list
}

/// Adds the gaps that end between the seal and `until`, which becomes the seal. How many there were; `None` when stopped.
fn sum(causes: &Causes<'_>, sealed: &mut Sealed, until: Ns, stop: &Stop) -> Option<u64> {
    let count = causes.trace.devices().len();
    sealed.devices.resize_with(count, Device::default);
    let starts = &causes.graph.ops.start;
    let (mut pieces, mut walked) = (Vec::new(), 0u64);
    for (index, of) in sealed.devices.iter_mut().enumerate() {
        let ops = causes.graph.ops.of_device(index);
        let before = |time: Ns| ops.partition_point(|&op| starts[op as usize] < time);
        let from = before(sealed.until);
        for &next in &ops[from..before(until).max(from)] {
            let span = causes.graph.ops.span(next);
            if of.end.is_none() {
                of.start = span.start;
            }
            let before = of
                .end
                .replace(of.end.map_or(span.end, |end| end.max(span.end)));
            let Some(before) = before.filter(|&before| before < span.start) else {
                continue;
            };
            let gap = Gap {
                span: Span::new(before, span.start),
                next,
            };
            if causes.trace.is_unrecorded(index, gap.span) {
                continue;
            }
            walked += 1;
            if walked.is_multiple_of(BETWEEN_LOOKS) && stop.is_stopped() {
                return None;
            }
            pieces.clear();
            causes.walk(gap, &mut pieces);
            for piece in &pieces {
                of.sums.add_unseen(causes, piece);
            }
            of.idle += gap.span.len();
        }
    }
    sealed.until = sealed.until.max(until);
    Some(walked)
}

#[cfg(test)]
mod tests;

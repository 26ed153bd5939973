//! In which order streams run beside the legacy default stream, and streams that wait for each other by events.

use rustc_hash::{FxHashMap, FxHashSet};

use activity::{Activity, Ns, Span, What, occupancy};
use causes::Causes;
use causes::graph::{CallId, CallKind, Graph, NONE, OpId};
use causes::stacks::StackCounts;
use trace::{LaneId, Trace};

/// What waited for an operation follows it no later than this.
const JUST_BEHIND: Ns = 10_000;

/// Clocks of the same GPU are no finer: what overlaps for less does not run beside it.
const CLOCK: Ns = 1_000;

/// A stream beside the default stream.
#[derive(Default)]
pub struct Beside {
    /// When its last operation so far ended, and how long all of them run.
    end: Ns,
    busy: Ns,
    /// Operations of the default stream that its work waited for.
    pub waits: Vec<OpId>,
    /// Whether something of it ran beside the default stream.
    is_free: bool,
}

/// What a device's streams ran, in the order in which it was launched.
pub struct StreamOrder {
    default: LaneId,
    pub streams: FxHashMap<LaneId, Beside>,
    /// What the CPU was seen at when it launched onto the default stream.
    pub seen: StackCounts,
}

impl StreamOrder {
    /// Of what starts on a device within `window`. `events` are the calls that make a stream wait for an event, in order.
    pub fn of(
        trace: &Trace,
        causes: &Causes<'_>,
        device: usize,
        window: Span,
        default: LaneId,
        events: &[CallId],
    ) -> Self {
        let (graph, lanes) = (causes.graph(), trace.lanes());
        let (ops, calls) = (&graph.ops, &graph.calls);
        let key = lanes[default].key();
        let is_its = |lane: LaneId| lanes[lane].key().process == key.process;
        let is_looked_at = |op: OpId| {
            let starts =
                window.start <= ops.start[op as usize] && ops.start[op as usize] <= window.end;
            let is_single = ops.call[op as usize] != NONE && !ops.is_graph(op);
            starts && is_single && is_its(ops.place(op).0)
        };
        let all = ops.of_device(device).iter().filter(|&&op| is_looked_at(op));
        let mut issued: Vec<(CallId, OpId)> = all.map(|&op| (ops.call[op as usize], op)).collect();
        issued.sort_unstable();
        let mut streams: FxHashMap<LaneId, Beside> = FxHashMap::default();
        let mut seen = StackCounts::default();
        let mut behind: Option<(CallId, OpId)> = None;
        for (call, op) in issued {
            let span = ops.span(op);
            let lane = ops.place(op).0;
            if lane == default {
                for stream in streams.values_mut() {
                    stream.is_free |= stream.end > span.start + CLOCK;
                }
                behind = Some((call, op));
                causes.add_launch(op, &mut seen);
                continue;
            }
            let stream = streams.entry(lane).or_default();
            if let Some((before, source)) = behind {
                let end = ops.end[source as usize];
                stream.is_free |= span.start + CLOCK < end;
                let is_ready = calls.end[call as usize] < end
                    && stream.end <= ops.start[source as usize] + CLOCK;
                let is_told = is_told(events, before, call);
                let waits = is_ready && span.start - end <= JUST_BEHIND;
                if waits && !cases::EVENT_ORDERS.holds(is_told) {
                    stream.waits.push(source);
                }
            }
            stream.busy += span.len();
            stream.end = stream.end.max(span.end);
        }
        streams
            .retain(|_, it| !cases::RUNS_BESIDE_DEFAULT.holds(it.is_free) && !it.waits.is_empty());
        StreamOrder {
            default,
            streams,
            seen,
        }
    }

    /// What ran there and on the default stream, and what that takes at the least where no stream waits for another.
    pub fn together(
        &self,
        trace: &Trace,
        operations: impl Iterator<Item = ((LaneId, usize), Activity)>,
        device: usize,
    ) -> (Vec<Span>, Ns) {
        let info = &trace.devices()[device].info;
        let sms = f64::from(info.multiprocessors);
        let (mut spans, mut packed, mut own) = (Vec::new(), 0.0, 0);
        for ((lane, _), activity) in operations {
            let length = activity.span.len();
            if lane == self.default {
                own += length;
            } else if !self.streams.contains_key(&lane) {
                continue;
            }
            spans.push(activity.span);
            // Blocks fill what SMs have room for; where nobody knows that, each has one of its own.
            if let (What::Kernel(it), true) = (activity.what, sms > 0.0) {
                let shape = trace.shape(it.shape);
                let waves = occupancy::theoretical(&shape, info).map(|it| it.waves);
                let waves = waves.unwrap_or(occupancy::blocks(&shape) as f64 / sms);
                packed += length as f64 * waves.min(1.0);
            }
        }
        let longest = self.streams.values().map(|it| it.busy).max();
        (spans, longest.unwrap_or(0).max(own).max(packed as Ns))
    }
}

/// The calls that make a stream wait for an event, in order.
pub fn event_waits(trace: &Trace, graph: &Graph) -> Vec<CallId> {
    let is_one = |&call: &CallId| {
        graph.calls.kind[call as usize] == CallKind::Other
            && graph.function(trace, call).contains("StreamWaitEvent")
    };
    (0..graph.calls.len() as CallId).filter(is_one).collect()
}

/// Whether a stream was told to wait for an event between two calls.
fn is_told(events: &[CallId], before: CallId, call: CallId) -> bool {
    events.partition_point(|&it| it <= before) < events.partition_point(|&it| it < call)
}

/// How many streams run kernels alike (lanes and rows of them) one after another. Each is launched behind a wait for an event, and
/// begins when the one launched before, on another stream, has just ended.
pub fn chained(
    trace: &Trace,
    graph: &Graph,
    events: &[CallId],
    kernels: impl Iterator<Item = (LaneId, usize)>,
) -> Option<usize> {
    let ops = &graph.ops;
    let name = |op: OpId| match graph.what(trace, op) {
        What::Kernel(it) => Some(trace.shape(it.shape).name),
        _ => None,
    };
    let issued = |(lane, row)| graph.op_at(lane, row).map(|op| (ops.call[op as usize], op));
    let mut issued: Vec<(CallId, OpId)> = kernels.filter_map(issued).collect();
    issued.sort_unstable();
    let lane = |op: OpId| ops.lane[op as usize];
    let waits = issued.windows(2).filter(|two| {
        let [(call, before), (next, op)] = [two[0], two[1]];
        let behind = ops.start[op as usize] - ops.end[before as usize];
        lane(before) != lane(op)
            && name(before) == name(op)
            && (-CLOCK..=JUST_BEHIND).contains(&behind)
            && is_told(events, call, next)
    });
    let waiting = waits.count() as f64 / issued.len().max(1) as f64;
    let lanes: FxHashSet<u32> = issued.iter().map(|it| lane(it.1)).collect();
    let is_chain = cases::CHAINED_STREAMS.is_reached_by(lanes.len())
        && cases::CHAINED_SHARE.is_reached_by(waiting);
    is_chain.then_some(lanes.len())
}

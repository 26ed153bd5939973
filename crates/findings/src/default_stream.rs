//! Streams that never run together, because work on the legacy default stream stands between them.
//!
//! What is launched there waits for all streams that were made in the ordinary way, and they wait for it. The order of
//! what ran shows that. Nothing of such a stream runs beside the default stream's work, however early it was launched.

use rustc_hash::FxHashMap;

use super::words::seen_at;
use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{count, duration, percent};
use activity::{Ns, Span, What, occupancy};
use causes::graph::{CallId, CallKind, NONE, OpId};
use causes::stacks::StackCounts;
use causes::{Bound, Cause};
use trace::{LaneId, describe};

/// What waited for an operation follows it no later than this.
const JUST_BEHIND: Ns = 10_000;

/// Clocks of the same GPU are no finer: what overlaps for less does not run beside it.
const CLOCK: Ns = 1_000;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let default = describe::default_stream(scope.trace, f.index)?;
    let order = Order::of(scope, f, default);
    let waits: usize = order.streams.values().map(|it| it.waits.len()).sum();
    let streams = order.streams.len();
    let is_often = cases::LOOP_MIN.is_reached_by(waits);
    if streams < 2 || !is_often && !cases::STREAMS_WAIT.is_reached_by(streams) {
        return None;
    }
    let (spans, least) = order.together(scope, f, default);
    let took = Span::union_len(spans);
    // Nor do they pause between each other.
    let ops = &scope.causes.graph().ops;
    let between = scope.idle_that(f, |gap, piece| {
        let lane = ops.place(gap.next).0;
        matches!(piece.cause, Cause::Stream | Cause::Engine)
            && (lane == default || order.streams.contains_key(&lane))
    });
    let saving = took - least + between;
    if !cases::LARGE_SHARE.is_reached_by(f.part(saving)) {
        return None;
    }
    let line = order.seen.telling(scope.trace);
    let graph = scope.causes.graph();
    let at = order.streams.values().flat_map(|it| &it.waits);
    let at: Vec<_> = at.map(|&op| graph.ops.place(op)).collect();
    let (lane, row) = *at.first()?;
    let what = scope.trace.what(lane, row);
    let call = graph.call_at((lane, row));
    // A copy or memset is found in the source by its call.
    let first = match what {
        What::Copy(_) | What::Memset(_) if call != NONE => {
            graph.function(scope.trace, call).to_owned()
        }
        _ => describe::activity(scope.trace, &what),
    };
    let first = cut_middle(&first, NAME_MAX);
    let at: Vec<_> = at.into_iter().map(Occurrence::Row).collect();
    Some(Finding {
        title: format!(
            "{streams} streams run one after another for {} ({}): {} times their work waits for {first} on the legacy default stream{}",
            duration(took),
            percent(f.part(took)),
            count(waits as u64),
            seen_at(line.as_ref())
        ),
        advice: "Where they need nothing of it, keep that stream out of it.".to_owned(),
        change: scope.change("non-blocking", line.as_ref()),
        says: Some(Says {
            bound: Bound::Compute,
            part: f.part(took),
            why: format!("{streams} streams one after another, by the legacy default stream"),
        }),
        instead_of: &[Rule::UnderFilledGpu],
        ..scope.found(f.span_ns, saving, &at)
    })
}

/// A stream beside the default stream.
#[derive(Default)]
struct Beside {
    /// When its last operation so far ended, and how long all of them run.
    end: Ns,
    busy: Ns,
    /// Operations of the default stream that its work waited for.
    waits: Vec<OpId>,
    /// Whether something of it ran beside the default stream.
    is_free: bool,
}

/// What a device's streams ran, in the order in which it was launched.
struct Order {
    streams: FxHashMap<LaneId, Beside>,
    /// What the CPU was seen at when it launched onto the default stream.
    seen: StackCounts,
}

impl Order {
    fn of(scope: &Scope, f: &DeviceFigures, default: LaneId) -> Order {
        let (graph, lanes) = (scope.causes.graph(), scope.trace.lanes());
        let (ops, calls) = (&graph.ops, &graph.calls);
        let window = scope.window_on(f.index).unwrap_or(f.span);
        let key = lanes[default].key();
        let is_its = |lane: LaneId| lanes[lane].key().process == key.process;
        let is_looked_at = |op: OpId| {
            let starts =
                window.start <= ops.start[op as usize] && ops.start[op as usize] <= window.end;
            let is_single = ops.call[op as usize] != NONE && !ops.is_graph(op);
            starts && is_single && is_its(ops.place(op).0)
        };
        let all = ops
            .of_device(f.index)
            .iter()
            .filter(|&&op| is_looked_at(op));
        let mut issued: Vec<(CallId, OpId)> = all.map(|&op| (ops.call[op as usize], op)).collect();
        issued.sort_unstable();
        let events = scope.program.event_waits.get_or_init(|| event_waits(scope));
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
                scope.causes.add_launch(op, &mut seen);
                continue;
            }
            let stream = streams.entry(lane).or_default();
            if let Some((before, source)) = behind {
                let end = ops.end[source as usize];
                stream.is_free |= span.start + CLOCK < end;
                let is_ready = calls.end[call as usize] < end
                    && stream.end <= ops.start[source as usize] + CLOCK;
                let is_told = events.partition_point(|&it| it <= before)
                    < events.partition_point(|&it| it < call);
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
        Order { streams, seen }
    }

    /// What ran there and on the default stream, and what that takes at the least where no stream waits for another.
    fn together(&self, scope: &Scope, f: &DeviceFigures, default: LaneId) -> (Vec<Span>, Ns) {
        let info = &scope.trace.devices()[f.index].info;
        let sms = f64::from(info.multiprocessors);
        let (mut spans, mut packed, mut own) = (Vec::new(), 0.0, 0);
        for ((lane, _), activity) in scope.operations(f) {
            let length = activity.span.len();
            if lane == default {
                own += length;
            } else if !self.streams.contains_key(&lane) {
                continue;
            }
            spans.push(activity.span);
            // Blocks fill what SMs have room for; where nobody knows that, each has one of its own.
            if let (What::Kernel(it), true) = (activity.what, sms > 0.0) {
                let shape = scope.trace.shape(it.shape);
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
fn event_waits(scope: &Scope) -> Vec<CallId> {
    let graph = scope.causes.graph();
    let is_one = |&call: &CallId| {
        graph.calls.kind[call as usize] == CallKind::Other
            && (graph.function(scope.trace, call)).contains("StreamWaitEvent")
    };
    (0..graph.calls.len() as CallId).filter(is_one).collect()
}

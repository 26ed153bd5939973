//! Races: one stream writes memory that another stream, or the host, uses, and nothing orders the two.
//!
//! The check walks one pass of a variant in program order. It keeps a vector clock for the host and for each stream
//! (`clock`). Each piece of memory remembers who wrote it last and who has read it since (`ranges`). An access that is
//! not after those races with them.
//!
//! CUDA's rules, as the runner uses CUDA, give the order:
//! - operations of one stream run in their order;
//! - an operation runs after whatever the host had waited for when it issued it, and after the host's own earlier work;
//! - a stream's wait for an event ends after what came before the event's last record;
//! - the host goes on after a sync, and after a synchronous copy. But a copy within the device does not hold it back.
//!   Nor does a pageable copy's device side: its call returns when the data has left the host's buffer;
//! - launches of one graph never overlap;
//! - a plain free runs after everything on its device.
//!
//! Streams are created non-blocking, so the default stream orders nothing but itself. Kernels read what they get as
//! pointer to const. They read and write all of every other buffer they get.

mod clock;
mod ranges;
mod report;

use std::collections::{HashMap, HashSet};

pub use super::plan::Side;
use super::plan::{
    BufferId, EventId, GraphId, HostMemory, Op, OpKind, SiteId, StreamId, SyncTarget, Touch,
    VariantPlan,
};
use super::signature::{self, ParamKind};
use activity::Direction;
use clock::{Agent, Clock, Clocks};
use ranges::Ranges;

pub(super) use report::report;

/// Races reported of one variant.
const MAX_HAZARDS: usize = 20;

/// Who touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The host thread.
    Host,
    /// A stream (in a graph, the one that was captured).
    Stream(StreamId),
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Index into [`VariantPlan::ops`]; for an operation of a graph, the graph's launch.
    pub op: usize,
    /// The step that does it.
    pub site: SiteId,
    /// Who does it.
    pub who: Who,
    /// Whether it writes.
    pub writes: bool,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hazard {
    pub buffer: BufferId,
    /// Which side of it.
    pub side: Side,
    /// The one that comes first in the program.
    pub first: Access,
    /// The other.
    pub second: Access,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The races, one for each pair of steps, in program order of the second.
    pub hazards: Vec<Hazard>,
    /// False when the variant is so large that the search was given up.
    pub is_complete: bool,
}

/// Looks for races in one pass of a variant. `budget` is how much work may be done, in about
/// tens of nanoseconds; it is taken from.
pub fn find(variant: &VariantPlan, budget: &mut u64) -> Findings {
    let mut walk = Walk::new(variant, budget);
    for (at, op) in variant.ops.iter().enumerate() {
        walk.op(at, op);
        if walk.clocks.work > *walk.budget || walk.hazards.len() >= MAX_HAZARDS {
            break;
        }
    }
    let is_complete = walk.clocks.work <= *walk.budget;
    let (hazards, work) = (walk.hazards, walk.clocks.work);
    *budget = budget.saturating_sub(work);
    Findings {
        hazards,
        is_complete,
    }
}

/// A graph as far as it was walked.
#[derive(Default)]
struct GraphState {
    /// The stream it was captured on, which stands for the one it is launched on.
    origin: Option<StreamId>,
    /// The end of its last launch.
    last: Option<Clock>,
}

struct Walk<'a> {
    variant: &'a VariantPlan,
    budget: &'a mut u64,
    clocks: Clocks,
    events: Vec<Option<Clock>>,
    graphs: Vec<GraphState>,
    /// The agents of streams inside graphs other than the origin's.
    inner: HashMap<(GraphId, StreamId), Agent>,
    memory: HashMap<(BufferId, Side), Ranges>,
    /// Which pointer arguments of each kernel are only read through.
    const_args: Vec<Vec<bool>>,
    hazards: Vec<Hazard>,
    known: HashSet<(SiteId, SiteId)>,
}

/// Where an operation stands: its place in the program and who does it.
#[derive(Clone, Copy)]
struct At {
    op: usize,
    site: SiteId,
    agent: Agent,
    who: Who,
}

impl<'a> Walk<'a> {
    fn new(variant: &'a VariantPlan, budget: &'a mut u64) -> Self {
        let const_args = variant.kernels.iter().map(|kernel| {
            let params = signature::params(&kernel.source, &kernel.entry).unwrap_or_default();
            params
                .iter()
                .map(|param| param.kind == ParamKind::Pointer { is_const: true })
                .collect()
        });
        Self {
            budget,
            clocks: Clocks::new(variant.streams.len()),
            events: vec![None; variant.events.len()],
            graphs: variant
                .graphs
                .iter()
                .map(|_| GraphState::default())
                .collect(),
            inner: HashMap::new(),
            memory: HashMap::new(),
            const_args: const_args.collect(),
            hazards: Vec::new(),
            known: HashSet::new(),
            variant,
        }
    }

    fn op(&mut self, at: usize, op: &Op) {
        let host = At {
            op: at,
            site: op.site,
            agent: Agent::HOST,
            who: Who::Host,
        };
        match op.kind {
            OpKind::Sync(SyncTarget::Stream(stream)) => {
                self.clocks.host_joins(Agent::stream(stream));
            }
            OpKind::Sync(SyncTarget::Event(event)) => {
                if let Some(clock) = &self.events[event] {
                    self.clocks.host_joins_clock(clock);
                }
            }
            OpKind::Sync(SyncTarget::Device(device)) => self.device_sync(device),
            OpKind::Free {
                buffer,
                stream: None,
            } => {
                self.device_sync(self.variant.buffers[buffer].device.unwrap_or(0));
                self.touches(op, host);
            }
            OpKind::Capture { graph, stream } => self.graphs[graph].origin = Some(stream),
            OpKind::GraphLaunch { graph, stream } => self.graph_launch(graph, stream, at),
            OpKind::Record { event, stream } => {
                self.clocks.issue(stream);
                self.events[event] = Some(self.clocks.snapshot(Agent::stream(stream)));
            }
            OpKind::Wait { event, stream } => {
                self.clocks.issue(stream);
                if let Some(clock) = &self.events[event] {
                    self.clocks.joins_clock(Agent::stream(stream), clock);
                }
            }
            // What orders nothing but itself is known by its stream and by what it touches.
            kind => match kind.stream() {
                Some(stream) => {
                    self.clocks.issue(stream);
                    let agent = Agent::stream(stream);
                    let who = Who::Stream(stream);
                    self.stream_op(op, At { agent, who, ..host });
                }
                None => self.touches(op, host),
            },
        }
    }

    fn device_sync(&mut self, device: u32) {
        for (stream, spec) in self.variant.streams.iter().enumerate() {
            if spec.device == device {
                self.clocks.host_joins(Agent::stream(stream));
            }
        }
    }

    /// What an operation on a stream touches.
    fn stream_op(&mut self, op: &Op, at: At) {
        self.touches(op, at);
        if op.kind.waits_for_itself(self.variant) {
            self.clocks.host_joins(at.agent);
        }
    }

    fn touches(&mut self, op: &Op, at: At) {
        let variant = self.variant;
        op.kind.touches(variant, |touch| self.access(op, touch, at));
    }

    fn access(&mut self, op: &Op, touch: Touch, at: At) {
        let mut writes = touch.writes;
        let mut at = at;
        match op.kind {
            OpKind::Launch { launch, .. } => {
                let of_kernel = &self.const_args[self.variant.launches[launch].kernel];
                let is_const = touch.arg.and_then(|arg| of_kernel.get(arg)) == Some(&true);
                writes &= !is_const;
            }
            // The call returns when the driver has taken the data, so the host's side is the host's own.
            OpKind::Copy(it)
                if (it.direction, it.is_async) == (Direction::H2D, false)
                    && !writes
                    && self.variant.buffers[it.from.buffer].host == HostMemory::Pageable =>
            {
                at.agent = Agent::HOST;
                at.who = Who::Host;
            }
            _ => {}
        }
        self.note(Touch { writes, ..touch }, at);
    }

    fn graph_launch(&mut self, graph: GraphId, stream: StreamId, op: usize) {
        self.clocks.issue(stream);
        let launch = Agent::stream(stream);
        if let Some(last) = self.graphs[graph].last.take() {
            self.clocks.joins_clock(launch, &last);
        }
        let origin = self.graphs[graph].origin;
        let mut events: HashMap<EventId, Clock> = HashMap::new();
        let variant = self.variant;
        for inner in &variant.graphs[graph].ops {
            let Some(on) = inner.kind.stream() else {
                continue;
            };
            let agent = if Some(on) == origin {
                launch
            } else {
                let clocks = &mut self.clocks;
                *self
                    .inner
                    .entry((graph, on))
                    .or_insert_with(|| clocks.add())
            };
            match inner.kind {
                OpKind::Record { event, .. } => {
                    events.insert(event, self.clocks.snapshot(agent));
                }
                OpKind::Wait { event, .. } => {
                    if let Some(clock) = events.get(&event) {
                        self.clocks.joins_clock(agent, clock);
                    }
                }
                _ => {
                    let at = At {
                        op,
                        site: inner.site,
                        agent,
                        who: Who::Stream(on),
                    };
                    self.stream_op(inner, at);
                }
            }
            if self.clocks.work > *self.budget {
                return;
            }
        }
        self.graphs[graph].last = Some(self.clocks.snapshot(launch));
    }

    fn note(&mut self, touch: Touch, at: At) {
        let Touch {
            at: from,
            bytes,
            side,
            writes,
            ..
        } = touch;
        let epoch = self.clocks.tick(at.agent);
        let access = Access {
            op: at.op,
            site: at.site,
            who: at.who,
            writes,
        };
        let ranges = self.memory.entry((from.buffer, side)).or_default();
        let clocks = &mut self.clocks;
        let (hazards, known) = (&mut self.hazards, &mut self.known);
        let span = from.offset..from.offset.saturating_add(bytes);
        clocks.work += ranges.touch(
            span,
            ranges::LastTouch {
                agent: at.agent,
                epoch,
                access,
            },
            |earlier| {
                if clocks.is_before(earlier.agent, earlier.epoch, at.agent) {
                    return true;
                }
                if (earlier.access.writes || writes)
                    && known.insert((earlier.access.site, access.site))
                {
                    hazards.push(Hazard {
                        buffer: from.buffer,
                        side,
                        first: earlier.access,
                        second: access,
                    });
                }
                false
            },
        );
    }
}

//! Races: one stream writes memory that another stream, or the host, uses, and nothing orders the two.
//!
//! The check walks one pass of a variant in program order, with a vector clock for the host and for each stream. Each
//! piece of memory remembers who wrote it last and who has read it since. An access that is not after those races with
//! them.
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
//! pointer to const. They read and write all of every other buffer they get. What a graph holds counts as work of the
//! stream that it is launched on: races within one graph are not looked for.

mod report;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

pub use super::plan::Side;
use super::plan::{BufferId, HostMemory, Op, OpKind, SiteId, StreamId, SyncTarget, VariantPlan};
use super::signature::{self, ParamKind};
use activity::Direction;

pub(super) use report::report;

/// Races reported of one variant.
const MAX_HAZARDS: usize = 20;

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The step that does it.
    pub site: SiteId,
    /// The stream that does it; `None` for the host.
    pub stream: Option<StreamId>,
    /// Whether it writes.
    pub writes: bool,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hazard {
    pub buffer: BufferId,
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
    let mut walk = Walk::new(variant);
    for op in &variant.ops {
        walk.op(op);
        if walk.work > *budget || walk.hazards.len() >= MAX_HAZARDS {
            break;
        }
    }
    let is_complete = walk.work <= *budget;
    *budget = budget.saturating_sub(walk.work);
    Findings {
        hazards: walk.hazards,
        is_complete,
    }
}

/// For each agent, up to which of its accesses something is known to come after. Agent 0 is the host, 1 the first stream.
type Clock = Vec<u32>;

/// An access to some bytes, and when it was, by its agent's clock.
struct LastTouch {
    bytes: Range<u64>,
    epoch: u32,
    access: Access,
}

struct Walk<'a> {
    variant: &'a VariantPlan,
    clocks: Vec<Clock>,
    events: Vec<Option<Clock>>,
    /// The end of each graph's last launch.
    graphs: Vec<Option<Clock>>,
    /// The last writes of each piece of memory, and the reads since.
    memory: HashMap<(BufferId, Side), Vec<LastTouch>>,
    /// Which pointer arguments of each kernel are only read through.
    const_args: Vec<Vec<bool>>,
    hazards: Vec<Hazard>,
    known: HashSet<(SiteId, SiteId)>,
    work: u64,
}

fn agent(stream: Option<StreamId>) -> usize {
    stream.map_or(0, |stream| stream + 1)
}

impl<'a> Walk<'a> {
    fn new(variant: &'a VariantPlan) -> Self {
        let const_args = variant.kernels.iter().map(|kernel| {
            let params = signature::params(&kernel.source, &kernel.entry).unwrap_or_default();
            let is_const = params.iter().map(|param| &param.kind);
            is_const
                .map(|kind| *kind == ParamKind::Pointer { is_const: true })
                .collect()
        });
        let agents = variant.streams.len() + 1;
        Self {
            clocks: vec![vec![0; agents]; agents],
            events: vec![None; variant.events.len()],
            graphs: vec![None; variant.graphs.len()],
            memory: HashMap::new(),
            const_args: const_args.collect(),
            hazards: Vec::new(),
            known: HashSet::new(),
            work: 0,
            variant,
        }
    }

    fn op(&mut self, op: &Op) {
        let on = op.kind.stream();
        if on.is_some() {
            // The host issues it: it comes after all that the host knows of.
            self.follow(agent(on), 0);
        }
        match op.kind {
            OpKind::Sync(SyncTarget::Stream(stream)) => self.follow(0, agent(Some(stream))),
            OpKind::Sync(SyncTarget::Event(event)) => {
                self.join(0, self.events[event].clone().as_ref());
            }
            OpKind::Sync(SyncTarget::Device(device)) => self.device_sync(device),
            OpKind::Record { event, stream } => {
                self.events[event] = Some(self.clocks[agent(Some(stream))].clone());
            }
            OpKind::Wait { event, .. } => self.join(agent(on), self.events[event].clone().as_ref()),
            OpKind::GraphLaunch { graph, .. } => {
                let last = self.graphs[graph].take();
                self.join(agent(on), last.as_ref());
                for inner in &self.variant.graphs[graph].ops {
                    self.touches(inner, on);
                }
                self.graphs[graph] = Some(self.clocks[agent(on)].clone());
            }
            OpKind::Capture { .. } => {}
            kind => {
                if let OpKind::Free {
                    buffer,
                    stream: None,
                } = kind
                {
                    self.device_sync(self.variant.buffers[buffer].device.unwrap_or(0));
                }
                self.touches(op, on);
                if let Some(stream) = on.filter(|_| kind.waits_for_itself(self.variant)) {
                    self.follow(0, agent(Some(stream)));
                }
            }
        }
    }

    /// What `agent` does next comes after this.
    fn join(&mut self, agent: usize, clock: Option<&Clock>) {
        let clock = clock.map_or(&[][..], |clock| clock);
        self.work += 1 + clock.len() as u64 / 16;
        for (own, other) in self.clocks[agent].iter_mut().zip(clock) {
            *own = (*own).max(*other);
        }
    }

    /// What `agent` does next comes after all that another one has done.
    fn follow(&mut self, agent: usize, other: usize) {
        let clock = std::mem::take(&mut self.clocks[other]);
        self.join(agent, Some(&clock));
        self.clocks[other] = clock;
    }

    fn device_sync(&mut self, device: u32) {
        for (stream, spec) in self.variant.streams.iter().enumerate() {
            if spec.device == device {
                self.follow(0, agent(Some(stream)));
            }
        }
    }

    /// What an operation touches, as work of a stream, or of the host.
    fn touches(&mut self, op: &Op, on: Option<StreamId>) {
        let variant = self.variant;
        op.kind.touches(variant, |touch| {
            let (mut writes, mut stream) = (touch.writes, on);
            match op.kind {
                OpKind::Launch { launch, .. } => {
                    let of_kernel = &self.const_args[variant.launches[launch].kernel];
                    writes &= touch.arg.and_then(|arg| of_kernel.get(arg)) != Some(&true);
                }
                // The call returns when the driver has taken the data, so the host's side is the host's own.
                OpKind::Copy(it)
                    if (it.direction, it.is_async) == (Direction::H2D, false)
                        && !writes
                        && variant.buffers[it.from.buffer].host == HostMemory::Pageable =>
                {
                    stream = None;
                }
                _ => {}
            }
            let bytes = touch.at.offset..touch.at.offset.saturating_add(touch.bytes);
            let site = op.site;
            let access = Access {
                site,
                stream,
                writes,
            };
            if !bytes.is_empty() {
                self.access((touch.at.buffer, touch.side), bytes, access);
            }
        });
    }

    /// Compares an access with what touched the same bytes before. A write forgets what it covers: what races with that
    /// later also races with the write, or the write raced itself and is reported already.
    fn access(&mut self, memory: (BufferId, Side), bytes: Range<u64>, access: Access) {
        let now = agent(access.stream);
        let epoch = self.clocks[now][now] + 1;
        self.clocks[now][now] = epoch;
        let touches = self.memory.entry(memory).or_default();
        self.work += 2 + touches.len() as u64;
        touches.retain(|earlier| {
            if earlier.bytes.end <= bytes.start || bytes.end <= earlier.bytes.start {
                return true;
            }
            let other = agent(earlier.access.stream);
            let is_before = other == now || self.clocks[now][other] >= earlier.epoch;
            let pair = (earlier.access.site, access.site);
            if !is_before && (earlier.access.writes || access.writes) {
                if self.known.insert(pair) {
                    self.hazards.push(Hazard {
                        buffer: memory.0,
                        first: earlier.access,
                        second: access,
                    });
                }
                // What its cure orders as well is the same mistake: what came before it, too.
                if self.clocks[other][other] == earlier.epoch {
                    let before = self.clocks[other].clone();
                    let both = self.clocks[now].iter_mut().zip(before);
                    both.for_each(|(own, it)| *own = (*own).max(it));
                }
                self.clocks[now][other] = self.clocks[now][other].max(earlier.epoch);
            }
            // Nor does a read say anything more once its agent reads the same again.
            let is_covered = bytes.start <= earlier.bytes.start && earlier.bytes.end <= bytes.end;
            let says_more = !access.writes && (earlier.access.writes || other != now);
            says_more || !is_covered
        });
        touches.push(LastTouch {
            bytes,
            epoch,
            access,
        });
    }
}

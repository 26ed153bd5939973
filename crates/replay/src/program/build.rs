//! A program from a stretch of the graph.

mod settle;
mod waits;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Call, Class, Delays, Dep, GpuRates, List, Lists, NONE, Op, Program};
use activity::occupancy;
use activity::{Ns, Place, Span, What};
use causes::graph::{EdgeKind, Engine, Graph, OpId};
use trace::{LaneId, LaneKind, Trace};

/// Copies of pageable memory up to this size go with the command: CUDA's documentation, "up to 64 KiB".
pub(crate) const INLINE: u64 = 64 << 10;

impl<'g> Program<'g> {
    /// What begins within `window`, or everything.
    pub fn new(trace: &Trace, graph: &'g Graph, window: Option<Span>, known: &GpuRates) -> Self {
        let window = window.unwrap_or(Span {
            start: Ns::MIN,
            end: Ns::MAX,
        });
        let range = |starts: &[Ns]| {
            let from = starts.partition_point(|&s| s < window.start);
            from..starts.partition_point(|&s| s < window.end).max(from)
        };
        let (calls, ops) = (range(&graph.calls.start), range(&graph.ops.start));
        let devices = 0..trace.devices().len();
        let slots = devices.map(|device| graph.ops.before_on_engines(device, ops.start as u32));
        let mut build = Build {
            trace,
            graph,
            program: Program {
                graph,
                first_call: calls.start as u32,
                first_op: ops.start as u32,
                known: known.clone(),
                link_share: known.link_share.unwrap_or(1.0),
                calls: Vec::with_capacity(calls.len()),
                ops: Vec::with_capacity(ops.len()),
                lists: Lists::with_capacity(ops.len()),
                hand_over: FxHashMap::default(),
                not_before: FxHashMap::default(),
                delays: Delays::default(),
                together: FxHashSet::default(),
                order: Arc::default(),
                recorded: Arc::default(),
                room: Vec::new(),
            },
            binding: Vec::with_capacity(ops.len()),
            slots: slots.collect(),
            shares: FxHashMap::default(),
        };
        calls.for_each(|_| build.call());
        for id in ops {
            build.op(id as u32);
        }
        build.waits();
        build.settle();
        build.together();
        build.program
    }
}

struct Build<'a, 'g> {
    trace: &'a Trace,
    graph: &'g Graph,
    program: Program<'g>,
    /// By operation: whether its launch or which of its dependencies bound it.
    binding: Vec<Option<usize>>,
    /// By device and engine, how many of the operations there were before the one that is looked at.
    slots: Vec<[usize; Engine::COUNT]>,
    /// By device and launch shape, the share of the SMs.
    shares: FxHashMap<(usize, u32), f32>,
}

impl Build<'_, '_> {
    fn call(&mut self) {
        let program = &mut self.program;
        let call = program.calls.len() as u32;
        let span = program.call_span(call);
        let after = |call: u32| match call {
            NONE => 0,
            call => span.start - program.call_span(call).end,
        };
        let think = match program.handed(call) {
            NONE => after(program.previous(call)),
            // A thread that was handed to did nothing before.
            handed => {
                let hand_over = after(handed);
                program.hand_over.insert(call, hand_over);
                0
            }
        };
        program.calls.push(Call {
            think,
            own: span.len(),
            waits: List::default(),
            is_gone: false,
        });
    }

    fn op(&mut self, id: OpId) {
        let (graph, ops) = (self.graph, &self.graph.ops);
        let i = id as usize;
        let span = ops.span(id);
        let lane = ops.lane[i] as LaneId;
        let LaneKind::Stream { device, stream, .. } = self.trace.lanes()[lane].key().kind else {
            return;
        };
        let engine = ops.engine[i];
        let (lists, first_op) = (&mut self.program.lists, self.program.first_op);
        let mut deps = List::default();
        let mut depend = |kind: EdgeKind, on: OpId| {
            let Some(op) = on.checked_sub(first_op).filter(|_| on != NONE) else {
                return;
            };
            let delay = span.start - ops.end[on as usize];
            if delay < 0 || on >= id || lists.get(deps).iter().any(|d| d.op == op) {
                return;
            }
            let class = Class::between(kind, ops.engine[on as usize], engine);
            lists.push(&mut deps, Dep::on_end(op, delay, class));
        };
        let before = |list: &[OpId]| graph.last_ended(list, span.start).unwrap_or(NONE);
        if ops.edge[i] != EdgeKind::Launch {
            depend(ops.edge[i], ops.bind[i]);
        }
        depend(EdgeKind::Stream, before(ops.before_on_lane(id)));
        let slot = &mut self.slots[device][engine as usize];
        if engine.is_serial() {
            let list = &ops.of_engine(device, engine)[..*slot];
            depend(EdgeKind::Engine, before(list));
        }
        *slot += 1;
        if stream == Place::NO_STREAM {
            // The CPU touches a page some time after what ran before.
            let mut before = ops.ended(device, span.start);
            depend(EdgeKind::OtherLikely, before.next().unwrap_or(NONE));
        }
        for on in graph.awaited(self.trace, id) {
            depend(EdgeKind::Event, on);
        }
        let call = self.program.call_of(ops.call[i]);
        let call = if call != NONE && self.program.call_span(call).start <= span.start {
            call
        } else {
            NONE
        };
        let launch = match call {
            NONE => 0,
            call => span.start - self.program.call_span(call).start,
        };
        let bound = match ops.edge[i] {
            EdgeKind::Launch | EdgeKind::None => None,
            _ => {
                let mut deps = self.program.lists.get(deps).iter();
                deps.position(|d| d.op + first_op == ops.bind[i])
            }
        };
        self.binding.push(bound);
        let what = self.trace.what(lane, ops.row[i] as usize);
        let shape = match what {
            What::Kernel(kernel) => kernel.shape,
            _ => NONE,
        };
        let share = self.share(device, &what);
        self.program.ops.push(Op {
            stream: lane as u32,
            device: device as u32,
            engine,
            time: span.len(),
            share,
            shape,
            call,
            launch,
            is_staged: ops.is_staged(id),
            deps,
            is_gone: false,
        });
    }

    /// Kernels of one shape need one share.
    fn share(&mut self, device: usize, what: &What) -> f32 {
        match what {
            What::Kernel(kernel) => {
                let place = self.shares.entry((device, kernel.shape));
                *place.or_insert_with(|| share(self.trace, device, what))
            }
            _ => share(self.trace, device, what),
        }
    }

    /// Which kernels ran at the same time for half of the shorter one: the SMs had room for both, whatever their blocks say.
    fn together(&mut self) {
        let program = &mut self.program;
        // By stream, its last kernel.
        let mut last: Vec<(u32, u32)> = Vec::new();
        let kernels = program.ops.iter().zip(0..);
        for (op, i) in kernels.filter(|(op, _)| op.shape != NONE) {
            let span = program.graph.ops.span(program.first_op + i);
            for &(stream, at) in &last {
                let other = &program.ops[at as usize];
                let end = program.graph.ops.end[(program.first_op + at) as usize];
                let shared = end.min(span.end) - span.start;
                if stream != op.stream
                    && other.device == op.device
                    && 2 * shared > other.time.min(op.time)
                {
                    let pair = (other.shape.min(op.shape), other.shape.max(op.shape));
                    program.together.insert(pair);
                }
            }
            match last.iter().position(|(stream, _)| *stream == op.stream) {
                Some(known) => last[known].1 = i,
                None if last.len() < STREAMS_MAX => last.push((op.stream, i)),
                None => {}
            }
        }
    }
}

/// In so many streams of a process kernels are looked at that run at the same time, and waited for.
const STREAMS_MAX: usize = 64;

/// The share of the SMs that a kernel needs: its blocks over those that fit at once. It is all of them where the source
/// does not say enough.
pub fn share(trace: &Trace, device: usize, what: &What) -> f32 {
    let What::Kernel(kernel) = what else {
        return if matches!(what, What::Memset(_)) {
            0.0
        } else {
            1.0
        };
    };
    let shape = trace.shape(kernel.shape);
    let info = &trace.devices()[device].info;
    // Without the number of SMs there are no waves.
    let waves = occupancy::theoretical(&shape, info).map_or(0.0, |it| it.waves);
    if waves > 0.0 {
        waves.min(1.0) as f32
    } else {
        1.0
    }
}

impl Program<'_> {
    /// Whether an engine's copies carry data to where `to` could use it. These must stay in order when nothing but a
    /// sync of the CPU kept it.
    pub fn carries(from: Engine, to: Engine) -> bool {
        match (from, to) {
            (Engine::D2H, _) | (_, Engine::H2D) => false,
            (Engine::H2D, Engine::D2H) => false,
            (from, to) => !(from.is_copy() && to.is_copy()) || from != to,
        }
    }
}

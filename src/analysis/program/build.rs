//! A program from a stretch of the graph.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Call, Class, Dep, Known, NONE, Op, Program};
use crate::activity::{Ns, Span, What};
use crate::analysis::graph::{CallKind, EdgeKind, Engine, Graph, LATENCY_MAX, OpId};
use crate::occupancy;
use crate::trace::{LaneId, LaneKind, Trace};

/// How far back one that had ended is looked for among operations of a stream or an engine.
const BACK: usize = 8;

/// Copies of pageable memory up to this size go with the command: CUDA's documentation, "up to 64 KiB".
pub(crate) const INLINE: u64 = 64 << 10;

impl Program {
    /// What begins within `window`, or everything.
    #[must_use]
    pub fn new(trace: &Trace, graph: &Graph, window: Option<Span>, known: &Known) -> Program {
        let window = window.unwrap_or(Span {
            start: Ns::MIN,
            end: Ns::MAX,
        });
        let range = |starts: &[Ns]| {
            let from = starts.partition_point(|&s| s < window.start);
            from..starts.partition_point(|&s| s < window.end).max(from)
        };
        let (calls, ops) = (range(&graph.calls.start), range(&graph.ops.start));
        let mut build = Build {
            trace,
            graph,
            first_call: calls.start as u32,
            first_op: ops.start as u32,
            end_op: ops.end as u32,
            program: Program {
                known: known.clone(),
                link_share: known.link_share.unwrap_or(1.0),
                ..Program::default()
            },
            binding: Vec::new(),
            shares: FxHashMap::default(),
        };
        for id in calls {
            build.call(id as u32);
        }
        for id in ops {
            build.op(id as u32);
        }
        build.waits();
        build.settle();
        build.program
    }
}

struct Build<'a> {
    trace: &'a Trace,
    graph: &'a Graph,
    first_call: u32,
    first_op: u32,
    end_op: u32,
    program: Program,
    /// By operation: whether its launch or which of its dependencies bound it.
    binding: Vec<Option<usize>>,
    /// By device and launch shape, the share of the SMs.
    shares: FxHashMap<(usize, u32), f32>,
}

impl Build<'_> {
    fn call_at(&self, id: u32) -> u32 {
        if id == NONE {
            NONE
        } else {
            id.checked_sub(self.first_call).unwrap_or(NONE)
        }
    }

    fn op_at(&self, id: OpId) -> Option<u32> {
        // A wait may last until after what lies within the window.
        (self.first_op..self.end_op)
            .contains(&id)
            .then(|| id - self.first_op)
    }

    fn call(&mut self, id: u32) {
        let calls = &self.graph.calls;
        let i = id as usize;
        let span = calls.span(id);
        let previous = self.call_at(calls.previous[i]);
        let handed = self.call_at(calls.handed[i]);
        let after = |call: u32| match call {
            NONE => 0,
            call => span.start - self.program.calls[call as usize].span.end,
        };
        self.program.calls.push(Call {
            id,
            lane: calls.lane[i],
            span,
            kind: calls.kind[i],
            previous,
            // A thread that was handed to did nothing before.
            think: if handed == NONE { after(previous) } else { 0 },
            handed: (handed, after(handed)),
            not_before: (NONE, 0),
            own: span.len(),
            waits: Vec::new(),
            is_gone: false,
        });
    }

    fn op(&mut self, id: OpId) {
        let (graph, ops) = (self.graph, &self.graph.ops);
        let i = id as usize;
        let span = ops.span(id);
        let lane = ops.lane[i] as LaneId;
        let LaneKind::Stream { device, .. } = self.trace.lanes()[lane].key().kind else {
            return;
        };
        let engine = ops.engine[i];
        let mut deps: SmallVec<[Dep; 2]> = SmallVec::new();
        let mut depend = |kind: EdgeKind, on: OpId| {
            let Some(op) = (on != NONE)
                .then(|| on.checked_sub(self.first_op))
                .flatten()
            else {
                return;
            };
            let delay = span.start - ops.end[on as usize];
            if delay < 0 || on >= id || deps.iter().any(|d| d.op == op) {
                return;
            }
            let class = Class::between(kind, ops.engine[on as usize], engine);
            deps.push(Dep {
                op,
                is_start: false,
                delay,
                class,
            });
        };
        depend(
            ops.edge[i],
            if ops.edge[i] == EdgeKind::Launch {
                NONE
            } else {
                ops.bind[i]
            },
        );
        depend(EdgeKind::Stream, before(graph, ops.of_lane(lane), id));
        if engine.is_serial() {
            depend(
                EdgeKind::Engine,
                before(graph, ops.of_engine(device, engine), id),
            );
        }
        for on in graph.awaited(self.trace, id) {
            depend(EdgeKind::Event, on);
        }
        let is_launch = ops.edge[i] == EdgeKind::Launch;
        let call = self.call_at(ops.call[i]);
        let call = if call != NONE && self.program.calls[call as usize].span.start <= span.start {
            call
        } else {
            NONE
        };
        let launch = match call {
            NONE => 0,
            call => span.start - self.program.calls[call as usize].span.start,
        };
        let class = Class::Launch {
            to: engine,
            is_staged: ops.is_staged(id),
        };
        let bound = match (is_launch, ops.edge[i]) {
            (true, _) => None,
            (_, EdgeKind::None) => None,
            _ => deps
                .iter()
                .position(|d| d.op + self.first_op == ops.bind[i]),
        };
        self.binding.push(bound);
        let activity = self.trace.activity(lane, ops.row[i] as usize);
        let share = self.share(device, &activity.what);
        self.program.ops.push(Op {
            id,
            stream: lane as u32,
            device: device as u32,
            engine,
            span,
            time: span.len(),
            share,
            call,
            launch: (launch, class),
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

    /// What calls wait for.
    fn waits(&mut self) {
        let bases = self.bases();
        // By process and lane of a stream, the operations in order of issue.
        for c in 0..self.program.calls.len() {
            let (id, kind, span, lane) = {
                let call = &self.program.calls[c];
                (call.id, call.kind, call.span, call.lane as LaneId)
            };
            let waited = self.op_at(self.graph.calls.waited[id as usize]);
            let mut waits = Vec::new();
            if let Some(op) = waited {
                let end = self.program.ops[op as usize].span.end;
                let delay = span.end - end;
                let class = Class::Wake(kind);
                self.program.delays.see(class, delay);
                waits.push(Dep {
                    op,
                    is_start: false,
                    delay,
                    class,
                });
                let call = &mut self.program.calls[c];
                call.own = match kind {
                    // What is left to do after the wait is the call's own.
                    CallKind::Memory => delay,
                    _ => bases.get(&kind).copied().unwrap_or(0),
                }
                .min(span.len());
            } else if kind == CallKind::Copy {
                self.staged(c, &bases, &mut waits);
            }
            if kind.is_wait() {
                for op in self.covered(kind, c, lane) {
                    let delay = span.end - self.program.ops[op as usize].span.end;
                    if delay >= 0 && waits.iter().all(|w| w.op != op) {
                        waits.push(Dep {
                            op,
                            is_start: false,
                            delay,
                            class: Class::Wake(kind),
                        });
                    }
                }
            }
            self.program.calls[c].waits = waits;
        }
    }

    /// A copy of pageable memory that ended after its call: the call returned when most was staged.
    fn staged(&mut self, c: usize, bases: &FxHashMap<CallKind, Ns>, waits: &mut Vec<Dep>) {
        let call = &self.program.calls[c];
        let first = self.graph.calls.first_op[call.id as usize];
        let Some(op) = self
            .op_at(first)
            .filter(|_| self.graph.ops.is_staged(first))
        else {
            return;
        };
        let start = self.program.ops[op as usize].span.start;
        let (lane, row) = self.graph.ops.place(first);
        let bytes = match self.trace.activity(lane, row).what {
            What::Copy(copy) => copy.bytes,
            _ => 0,
        };
        if bytes <= INLINE || start >= call.span.end {
            return;
        }
        let (delay, class) = (
            call.span.end - start,
            Class::Staged(self.program.ops[op as usize].engine),
        );
        let own = bases.get(&CallKind::Copy).copied().unwrap_or(0);
        waits.push(Dep {
            op,
            is_start: true,
            delay,
            class,
        });
        let call = &mut self.program.calls[c];
        call.own = own.min(call.span.len());
    }

    /// What a call that waits would have waited for, had it not ended before.
    fn covered(&self, kind: CallKind, c: usize, lane: LaneId) -> Vec<u32> {
        let call = &self.program.calls[c];
        let process = self.trace.lanes()[lane].key().process;
        let last = |stream: LaneId| {
            let list = self.graph.ops.of_lane(stream);
            let to = list.partition_point(|&op| self.graph.ops.start[op as usize] <= call.span.end);
            let issued = |op: OpId| self.graph.issued(op) < call.span.start.max(1);
            list[..to]
                .iter()
                .rev()
                .take(BACK)
                .copied()
                .find(|&op| issued(op))
        };
        match kind {
            CallKind::WaitDevice => {
                let lanes = self.trace.lanes().iter().enumerate();
                let mine = lanes.filter(|(_, l)| {
                    l.key().process == process && matches!(l.key().kind, LaneKind::Stream { .. })
                });
                mine.filter_map(|(id, _)| last(id))
                    .filter_map(|op| self.op_at(op))
                    .collect()
            }
            CallKind::WaitStream => {
                let mut before = call.previous;
                for _ in 0..64 {
                    if before == NONE {
                        break;
                    }
                    let first =
                        self.graph.calls.first_op[self.program.calls[before as usize].id as usize];
                    if first != NONE {
                        let stream = self.graph.ops.lane[first as usize] as LaneId;
                        return last(stream)
                            .and_then(|op| self.op_at(op))
                            .into_iter()
                            .collect();
                    }
                    before = self.program.calls[before as usize].previous;
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// What calls of a kind take that wait for nothing: the median, else what is known, else the least.
    fn bases(&self) -> FxHashMap<CallKind, Ns> {
        let mut lists: FxHashMap<CallKind, Vec<Ns>> = FxHashMap::default();
        let mut least: FxHashMap<CallKind, Ns> = FxHashMap::default();
        for call in &self.program.calls {
            let entry = least.entry(call.kind).or_insert(Ns::MAX);
            *entry = (*entry).min(call.span.len());
            let first = self.graph.calls.first_op[call.id as usize];
            let is_staged = first != NONE && self.graph.ops.is_staged(first);
            if self.graph.calls.waited[call.id as usize] == NONE && !is_staged {
                lists.entry(call.kind).or_default().push(call.span.len());
            }
        }
        let known = &self.program.known;
        for (kind, base) in &mut least {
            let of_known = match kind {
                CallKind::Copy => known.copy_call,
                CallKind::Launch => known.launch_call,
                kind if kind.is_wait() => known.sync_call,
                _ => None,
            };
            if let Some(list) = lists.get_mut(kind) {
                let middle = (list.len() - 1) / 2;
                *base = *list.select_nth_unstable(middle).1;
            } else if let Some(known) = of_known {
                *base = known.min(*base);
            }
        }
        least
    }

    /// What did not bind gets the typical delay, as far as what was seen leaves room for it.
    fn settle(&mut self) {
        let program = &mut self.program;
        for (op, bound) in program.ops.iter().zip(&self.binding) {
            // The staging lies between a copy's call and its start, whatever else had to end before.
            if (bound.is_none() || is_staged(op)) && op.call != NONE {
                program.delays.see(op.launch.1, op.launch.0);
            }
        }
        program.delays.settle();
        for (op, bound) in program.ops.iter().zip(&self.binding) {
            let Some(dep) = bound.map(|at| op.deps[at]) else {
                continue;
            };
            // Launched so late that the launch may have held it as well, it says nothing of the other.
            let typical = program.delays.typical(op.launch.1, &program.known);
            if !is_staged(op) && (op.call == NONE || op.launch.0 - dep.delay >= typical) {
                program.delays.see(dep.class, dep.delay);
            }
        }
        program.delays.settle();
        for op in &mut program.ops {
            let typical = |class| program.delays.typical(class, &program.known);
            // What would have held it longest with typical delays did.
            let after = op.deps.iter().map(|dep| typical(dep.class) - dep.delay);
            let last = after.enumerate().max_by_key(|&(at, time)| (time, at));
            let launched = (op.call != NONE).then(|| typical(op.launch.1) - op.launch.0);
            let bound = match (last, launched) {
                (Some((_, time)), Some(launched)) if launched >= time => None,
                (Some((at, _)), _) => Some(at),
                (None, _) => None,
            };
            let unexplained = match bound {
                None => unexplained(op, &program.calls),
                Some(_) => 0,
            };
            for (at, dep) in op.deps.iter_mut().enumerate() {
                if bound != Some(at) {
                    dep.delay = dep.delay.min(typical(dep.class) + unexplained);
                }
            }
            if bound.is_some() {
                op.launch.0 = op.launch.0.min(typical(op.launch.1));
            }
        }
        for call in &mut program.calls {
            let waited = self.graph.calls.waited[call.id as usize];
            for wait in &mut call.waits {
                if wait.op + self.first_op != waited && !wait.is_start {
                    wait.delay = wait
                        .delay
                        .min(program.delays.typical(wait.class, &program.known));
                }
            }
            // A call that turned out not to wait takes its own time.
            if waited == NONE && call.waits.iter().all(|w| !w.is_start) {
                call.own = call.span.len();
            }
        }
        program.order();
    }
}

/// How long an operation did not begin though its call had returned and nothing else is seen to have held it, beyond
/// what launches take. What it waited for nobody knows, so that nothing says that it would not wait behind another
/// operation as well.
fn unexplained(op: &Op, calls: &[Call]) -> Ns {
    if op.call == NONE || is_staged(op) {
        return 0;
    }
    let call = &calls[op.call as usize];
    let held = op.deps.iter().map(|dep| op.span.start - dep.delay);
    let since = held.fold(call.span.end, Ns::max);
    (op.span.start - since - LATENCY_MAX).max(0)
}

fn is_staged(op: &Op) -> bool {
    matches!(
        op.launch.1,
        Class::Launch {
            is_staged: true,
            ..
        }
    )
}

/// Of the last few operations of a list before `id`, the one that ended latest but before it began.
fn before(graph: &Graph, list: &[OpId], id: OpId) -> OpId {
    let start = graph.ops.start[id as usize];
    let to = list.partition_point(|&op| op < id);
    let ended = |op: &OpId| graph.ops.end[*op as usize] <= start;
    let near = list[..to].iter().rev().take(BACK).copied();
    near.filter(ended)
        .max_by_key(|&op| graph.ops.end[op as usize])
        .unwrap_or(NONE)
}

/// The share of the SMs that a kernel needs: its blocks over those that fit at once; all of them where
/// the source does not say enough.
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
    occupancy::theoretical(&shape, info).map_or(1.0, |o| o.waves.min(1.0) as f32)
}

impl Program {
    /// Whether an engine's copies carry data to where `to` could use it: what must stay in order when
    /// nothing but a wait of the host kept it.
    #[must_use]
    pub fn carries(from: Engine, to: Engine) -> bool {
        use super::Engines;
        match (from, to) {
            (Engine::D2H, _) | (_, Engine::H2D) => false,
            (Engine::H2D, Engine::D2H) => false,
            (from, to) => !(Engines::is_copy(from) && Engines::is_copy(to)) || from != to,
        }
    }
}

//! Working out the times of a program.

use super::{NONE, Node, Op, Program};
use activity::Ns;
use causes::graph::Engine;

/// When everything happens in a replay. Of what was edited away, start and end are one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// By call: when it begins.
    pub call_start: Vec<Ns>,
    /// By call: when it returns.
    pub call_end: Vec<Ns>,
    /// By operation: when it begins.
    pub op_start: Vec<Ns>,
    /// By operation: when it ends.
    pub op_end: Vec<Ns>,
}

/// How many copies back others may share the link, and in how many streams kernels may share the SMs.
const BESIDE: usize = 64;

/// How many kernels back on its stream one is looked for that another does not fit beside.
const BACK: usize = 8;

impl Times {
    /// Makes them those that were recorded, which an unchanged program's [`Program::replay`] gives back.
    pub fn record(&mut self, program: &Program<'_>) {
        let calls = (0..program.calls.len() as u32).map(|call| program.call_span(call));
        let ops = (0..program.ops.len() as u32).map(|op| program.op_span(op));
        (self.call_start, self.call_end) = calls.map(|span| (span.start, span.end)).unzip();
        (self.op_start, self.op_end) = ops.map(|span| (span.start, span.end)).unzip();
    }
}

/// Operations whose times are known, the latest last.
#[derive(Default)]
struct Latest {
    copies: Vec<u32>,
    /// Streams, that which ran last first.
    streams: Vec<LatestOfStream>,
    /// The greatest share of the SMs that one of them needs.
    share: f32,
}

struct LatestOfStream {
    stream: u32,
    /// Its last kernels, the latest first.
    kernels: [u32; BACK],
    /// None of them ends later.
    end: Ns,
}

impl Latest {
    /// Adds an operation that ends at `end` or before.
    fn add(&mut self, i: u32, op: &Op, end: Ns) {
        if op.engine.is_copy() {
            return self.copies.push(i);
        }
        let at = self.streams.iter().position(|of| of.stream == op.stream);
        let at = at.unwrap_or_else(|| {
            if self.streams.len() == BESIDE {
                self.streams.pop();
            }
            self.streams.push(LatestOfStream {
                stream: op.stream,
                kernels: [NONE; BACK],
                end,
            });
            self.streams.len() - 1
        });
        self.share = self.share.max(op.share);
        let of = &mut self.streams[at];
        of.kernels.copy_within(..BACK - 1, 1);
        of.kernels[0] = i;
        of.end = of.end.max(end);
        self.streams[..=at].rotate_right(1);
    }
}

impl Program<'_> {
    /// The times, with the delays that each dependency had.
    pub fn replay(&self) -> Times {
        self.replay_in(Times::default())
    }

    /// The same in the memory of other times.
    pub fn replay_in(&self, times: Times) -> Times {
        self.times(times, |delay, _| delay, |_, _| false)
    }

    /// The times, with every delay replaced by its class's median: what the graph explains without
    /// knowing the answer. Time that threads take between calls stays.
    pub fn replay_typical_in(&self, times: Times) -> Times {
        let typical = |_, class| self.delays.typical(class, &self.known);
        self.times(times, typical, |_, _| false)
    }

    /// Each time is worked out once, before anything asks for it. `joined` is told of each operation, and may set when it ends;
    /// it says whether it may set that later, too.
    pub(super) fn times(
        &self,
        mut times: Times,
        delay: impl Fn(Ns, super::Class) -> Ns,
        mut joined: impl FnMut(u32, &mut Times) -> bool,
    ) -> Times {
        for of_calls in [&mut times.call_start, &mut times.call_end] {
            of_calls.resize(self.calls.len(), 0);
        }
        for of_ops in [&mut times.op_start, &mut times.op_end] {
            of_ops.resize(self.ops.len(), 0);
        }
        let mut latest = Latest::default();
        for &at in &*self.order {
            match self.node(at) {
                Node::Begin(i) => {
                    let call = &self.calls[i as usize];
                    let mut start = Ns::MIN;
                    let (previous, handed) = (self.previous(i), self.handed(i));
                    if previous != NONE {
                        start = times.call_end[previous as usize] + call.think;
                    }
                    if handed != NONE {
                        let hand_over = self.hand_over.get(&i).copied().unwrap_or(0);
                        start = start.max(times.call_end[handed as usize] + hand_over);
                    }
                    if start == Ns::MIN {
                        start = self.call_span(i).start;
                    }
                    if let Some(&(other, after)) = self.not_before.get(&i) {
                        start = start.max(times.call_start[other as usize] + after);
                    }
                    times.call_start[i as usize] = start;
                }
                Node::Return(i) => {
                    let call = &self.calls[i as usize];
                    let mut end = times.call_start[i as usize];
                    if !call.is_gone {
                        end += call.own;
                        for wait in self.lists.get(call.waits) {
                            let op = wait.op as usize;
                            let gone = self.ops[op].is_gone;
                            let after = match (gone, wait.is_start) {
                                (true, _) => times.op_end[op],
                                (_, true) => times.op_start[op] + delay(wait.delay, wait.class),
                                (_, false) => times.op_end[op] + delay(wait.delay, wait.class),
                            };
                            end = end.max(after);
                        }
                        if self.room[i as usize] != NONE {
                            end = end.max(times.op_start[self.room[i as usize] as usize]);
                        }
                    }
                    times.call_end[i as usize] = end;
                }
                Node::Op(i) => {
                    let (start, time) = self.op(i, &times, &latest, &delay);
                    times.op_start[i as usize] = start;
                    times.op_end[i as usize] = start + time;
                    let is_open = joined(i, &mut times);
                    let op = &self.ops[i as usize];
                    if !op.is_gone {
                        let end = if is_open { Ns::MAX } else { start + time };
                        latest.add(i, op, end);
                    }
                }
            }
        }
        times
    }

    fn op(
        &self,
        i: u32,
        times: &Times,
        latest: &Latest,
        delay: &impl Fn(Ns, super::Class) -> Ns,
    ) -> (Ns, Ns) {
        let op = &self.ops[i as usize];
        let mut start = Ns::MIN;
        for dep in self.lists.get(op.deps) {
            let end = times.op_end[dep.op as usize];
            let after = if op.is_gone || self.ops[dep.op as usize].is_gone {
                0
            } else {
                delay(dep.delay, dep.class)
            };
            start = start.max(end + after);
        }
        if op.is_gone && start != Ns::MIN {
            return (start, 0);
        }
        if op.call != NONE {
            let after = if op.is_gone {
                0
            } else {
                delay(op.launch, op.launch_class())
            };
            start = start.max(times.call_start[op.call as usize] + after);
        }
        if start == Ns::MIN {
            start = self.op_span(i).start;
        }
        if op.is_gone {
            return (start, 0);
        }
        if !op.engine.is_copy() {
            return (self.room(i, start, times, latest), op.time);
        }
        (start, self.beside(i, start, times, latest))
    }

    /// When the SMs have room for a kernel. Others that it does not fit beside must have ended, unless such kernels were
    /// seen to run at the same time.
    fn room(&self, i: u32, mut start: Ns, times: &Times, latest: &Latest) -> Ns {
        let (op, span) = (&self.ops[i as usize], self.op_span(i));
        if latest.share + op.share <= 1.0 {
            return start;
        }
        let is_rival = |j: &u32| {
            let (other, before) = (&self.ops[*j as usize], self.op_span(*j));
            other.share + op.share > 1.0
                && other.device == op.device
                && (before.end <= span.start || span.end <= before.start)
                && !self
                    .together
                    .contains(&(other.shape.min(op.shape), other.shape.max(op.shape)))
        };
        for of in &latest.streams {
            if of.end <= start || of.stream == op.stream {
                continue;
            }
            // In the order in which they were recorded, so that nothing shorter makes anything later. Those before it on
            // its stream have ended before.
            let mut kernels = of.kernels.iter().take_while(|&&j| j != NONE);
            if let Some(&j) = kernels.find(|j| is_rival(j)) {
                start = start.max(times.op_end[j as usize]);
            }
        }
        start
    }

    /// How long a copy takes beside copies of the other direction, if it was recorded without them: the link is shared.
    /// The whole of the loss is laid on the later of the two.
    fn beside(&self, i: u32, start: Ns, times: &Times, latest: &Latest) -> Ns {
        let op = &self.ops[i as usize];
        let opposite = match op.engine {
            Engine::H2D => Engine::D2H,
            Engine::D2H => Engine::H2D,
            _ => return op.time,
        };
        if self.link_share >= 1.0 {
            return op.time;
        }
        let mut shared = 0;
        for &j in latest.copies.iter().rev().take(BESIDE) {
            let other = &self.ops[j as usize];
            if other.engine != opposite || other.device != op.device {
                continue;
            }
            let now = times.op_end[j as usize].min(start + op.time)
                - times.op_start[j as usize].max(start);
            let (before, span) = (self.op_span(j), self.op_span(i));
            let then = before.end.min(span.end) - before.start.max(span.start);
            shared += now.max(0) - then.max(0);
        }
        op.time + (2.0 * shared.max(0) as f64 * (1.0 / self.link_share - 1.0)).round() as Ns
    }
}

//! Working out the times of a program.

use super::{Engines, Node, Program};
use crate::activity::Ns;
use crate::analysis::graph::Engine;

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

/// How many operations back those are looked for that run at the same time on the same SMs.
const BESIDE: usize = 64;

impl Program {
    /// The times, with the delays that each dependency had.
    #[must_use]
    pub fn replay(&self) -> Times {
        self.times(|delay, _| delay)
    }

    /// The times, with every delay replaced by its class's median: what the graph explains without
    /// knowing the answer. Time that threads take between calls stays.
    #[must_use]
    pub fn replay_typical(&self) -> Times {
        self.times(|_, class| self.delays.typical(class, &self.known))
    }

    fn times(&self, delay: impl Fn(Ns, super::Class) -> Ns) -> Times {
        let mut times = Times {
            call_start: self.calls.iter().map(|c| c.span.start).collect(),
            call_end: self.calls.iter().map(|c| c.span.end).collect(),
            op_start: self.ops.iter().map(|o| o.span.start).collect(),
            op_end: self.ops.iter().map(|o| o.span.end).collect(),
        };
        let mut latest: Vec<u32> = Vec::with_capacity(self.ops.len());
        for &node in &self.order {
            match node {
                Node::Begin(i) => {
                    let call = &self.calls[i as usize];
                    let mut start = Ns::MIN;
                    if call.previous != super::NONE {
                        start = times.call_end[call.previous as usize] + call.think;
                    }
                    if call.handed.0 != super::NONE {
                        start = start.max(times.call_end[call.handed.0 as usize] + call.handed.1);
                    }
                    if start == Ns::MIN {
                        start = call.span.start;
                    }
                    if call.not_before.0 != super::NONE {
                        let other = times.call_start[call.not_before.0 as usize];
                        start = start.max(other + call.not_before.1);
                    }
                    times.call_start[i as usize] = start;
                }
                Node::Return(i) => {
                    let call = &self.calls[i as usize];
                    let mut end = times.call_start[i as usize];
                    if !call.is_gone {
                        end += call.own;
                        for wait in &call.waits {
                            let op = wait.op as usize;
                            let gone = self.ops[op].is_gone;
                            let after = match (gone, wait.is_start) {
                                (true, _) => times.op_end[op],
                                (_, true) => times.op_start[op] + delay(wait.delay, wait.class),
                                (_, false) => times.op_end[op] + delay(wait.delay, wait.class),
                            };
                            end = end.max(after);
                        }
                        if self.room[i as usize] != super::NONE {
                            end = end.max(times.op_start[self.room[i as usize] as usize]);
                        }
                    }
                    times.call_end[i as usize] = end;
                }
                Node::Op(i) => {
                    let (start, time) = self.op(i, &times, &latest, &delay);
                    times.op_start[i as usize] = start;
                    times.op_end[i as usize] = start + time;
                    latest.push(i);
                }
            }
        }
        times
    }

    fn op(
        &self,
        i: u32,
        times: &Times,
        latest: &[u32],
        delay: &impl Fn(Ns, super::Class) -> Ns,
    ) -> (Ns, Ns) {
        let op = &self.ops[i as usize];
        let mut start = Ns::MIN;
        for dep in &op.deps {
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
        if op.call != super::NONE {
            let after = if op.is_gone {
                0
            } else {
                delay(op.launch.0, op.launch.1)
            };
            start = start.max(times.call_start[op.call as usize] + after);
        }
        if start == Ns::MIN {
            start = op.span.start;
        }
        if op.is_gone {
            return (start, 0);
        }
        let is_copy = Engines::is_copy(op.engine);
        if !is_copy {
            return (self.room(i, start, times, latest), op.time);
        }
        (start, self.beside(i, start, times, latest))
    }

    /// When the SMs have room for a kernel: others that it does not fit beside must have ended, unless
    /// they were seen to run at the same time.
    fn room(&self, i: u32, mut start: Ns, times: &Times, latest: &[u32]) -> Ns {
        let op = &self.ops[i as usize];
        for &j in latest.iter().rev().take(BESIDE) {
            let other = &self.ops[j as usize];
            let is_rival = !other.is_gone
                && other.device == op.device
                && !Engines::is_copy(other.engine)
                && other.stream != op.stream
                && other.share + op.share > 1.0
                && (other.span.end <= op.span.start || op.span.end <= other.span.start);
            // In the order in which they were recorded, so that nothing shorter makes anything later.
            if is_rival {
                start = start.max(times.op_end[j as usize]);
            }
        }
        start
    }

    /// How long a copy takes when copies of the other direction run at the same time, which they did not
    /// when it was recorded: the link is shared. The whole of the loss is laid on the later of the two.
    fn beside(&self, i: u32, start: Ns, times: &Times, latest: &[u32]) -> Ns {
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
        for &j in latest.iter().rev().take(BESIDE) {
            let other = &self.ops[j as usize];
            if other.is_gone || other.engine != opposite || other.device != op.device {
                continue;
            }
            let now = times.op_end[j as usize].min(start + op.time)
                - times.op_start[j as usize].max(start);
            let then = other.span.end.min(op.span.end) - other.span.start.max(op.span.start);
            shared += now.max(0) - then.max(0);
        }
        op.time + (2.0 * shared.max(0) as f64 * (1.0 / self.link_share - 1.0)).round() as Ns
    }
}

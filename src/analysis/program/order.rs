//! The order in which a replay works out times: that of the recorded ones, as far as what depends on what allows it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{NONE, Node, Program};
use crate::activity::Ns;

impl Program {
    /// Puts everything in order, after what depends on what has changed.
    pub(crate) fn order(&mut self) {
        let (calls, ops) = (self.calls.len(), self.ops.len());
        // Begins, then returns, then operations.
        let node = |at: usize| match at {
            at if at < calls => Node::Begin(at as u32),
            at if at < 2 * calls => Node::Return((at - calls) as u32),
            at => Node::Op((at - 2 * calls) as u32),
        };
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(3 * calls + 3 * ops);
        let mut edge = |from: usize, to: usize| edges.push((from as u32, to as u32));
        for (i, call) in self.calls.iter().enumerate() {
            edge(i, calls + i);
            for before in [call.previous, call.handed.0] {
                if before != NONE {
                    edge(calls + before as usize, i);
                }
            }
            for wait in &call.waits {
                edge(2 * calls + wait.op as usize, calls + i);
            }
        }
        for (i, op) in self.ops.iter().enumerate() {
            if op.call != NONE {
                edge(op.call as usize, 2 * calls + i);
            }
            for dep in &op.deps {
                edge(2 * calls + dep.op as usize, 2 * calls + i);
            }
        }
        edges.sort_unstable();
        let count = 2 * calls + ops;
        let mut missing = vec![0u32; count];
        for &(_, to) in &edges {
            missing[to as usize] += 1;
        }
        let key = |at: usize| -> (Ns, u8, usize) {
            match node(at) {
                Node::Return(i) => {
                    let span = self.calls[i as usize].span;
                    // A call that takes no time returns after it began.
                    (span.end, if span.is_empty() { 3 } else { 0 }, at)
                }
                Node::Begin(i) => (self.calls[i as usize].span.start, 1, at),
                Node::Op(i) => (self.ops[i as usize].span.start, 2, at),
            }
        };
        let ready = (0..count).filter(|&at| missing[at] == 0);
        let mut heap: BinaryHeap<Reverse<(Ns, u8, usize)>> =
            ready.map(|at| Reverse(key(at))).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse((_, _, at))) = heap.pop() {
            order.push(node(at));
            let from = edges.partition_point(|edge| (edge.0 as usize) < at);
            for &(_, to) in edges[from..]
                .iter()
                .take_while(|edge| edge.0 as usize == at)
            {
                missing[to as usize] -= 1;
                if missing[to as usize] == 0 {
                    heap.push(Reverse(key(to as usize)));
                }
            }
        }
        debug_assert_eq!(order.len(), count, "nothing waits for itself");
        self.order = order;
    }
}

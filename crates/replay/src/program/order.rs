//! The order in which a replay works out times: that of the recorded ones, as far as what depends on what allows it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::{At, NONE, Node, Program};
use activity::Ns;

/// What comes first in the recording; what is equal in it is in the order of its numbers.
type Key = (Ns, u8, At);

impl Program<'_> {
    /// Puts everything in order, after what depends on what has changed.
    pub fn order(&mut self) {
        self.room = self.rooms();
        // No edit changes a recorded time.
        if self.recorded.is_empty() {
            self.recorded = self.recorded().into();
        }
        self.order = if self.is_possible() {
            Arc::clone(&self.recorded)
        } else {
            self.possible().into()
        };
    }

    pub(super) fn node(&self, at: At) -> Node {
        let calls = self.calls.len() as u32;
        match at {
            at if at < calls => Node::Begin(at),
            at if at < 2 * calls => Node::Return(at - calls),
            at => Node::Op(at - 2 * calls),
        }
    }

    fn key(&self, at: At) -> Key {
        match self.node(at) {
            Node::Return(i) => {
                let span = self.call_span(i);
                // A call that takes no time returns after it began.
                (span.end, if span.is_empty() { 3 } else { 0 }, at)
            }
            Node::Begin(i) => (self.call_span(i).start, 1, at),
            Node::Op(i) => (self.op_span(i).start, 2, at),
        }
    }

    /// Everything in the order of the recording: calls and operations are in it already, returns nearly.
    fn recorded(&self) -> Vec<At> {
        let mut order = Vec::from_iter(0..(2 * self.calls.len() + self.ops.len()) as At);
        order.sort_by_key(|&at| self.key(at));
        order
    }

    /// Whether everything comes after what it depends on in the order of the recording.
    fn is_possible(&self) -> bool {
        let mut places = vec![0; self.recorded.len()];
        for (&at, place) in self.recorded.iter().zip(0u32..) {
            places[at as usize] = place;
        }
        let mut is_possible = true;
        self.edges(|from, to| is_possible &= places[from as usize] < places[to as usize]);
        is_possible
    }

    /// What comes before what.
    fn edges(&self, mut edge: impl FnMut(At, At)) {
        let calls = self.calls.len() as u32;
        for (call, i) in self.calls.iter().zip(0..) {
            edge(i, calls + i);
            for before in [self.previous(i), self.handed(i)] {
                if before != NONE {
                    edge(calls + before, i);
                }
            }
            if let Some(other) = self.not_before.get(&i) {
                edge(other.0, i);
            }
            for wait in self.lists.get(call.waits) {
                edge(2 * calls + wait.op, calls + i);
            }
            if self.room[i as usize] != NONE {
                edge(2 * calls + self.room[i as usize], calls + i);
            }
        }
        for (op, i) in self.ops.iter().zip(2 * calls..) {
            if op.call != NONE {
                edge(op.call, i);
            }
            for dep in self.lists.get(op.deps) {
                edge(2 * calls + dep.op, i);
            }
        }
    }

    /// The order nearest to the recording in which everything comes after what it depends on.
    fn possible(&self) -> Vec<At> {
        let count = 2 * self.calls.len() + self.ops.len();
        let mut missing = vec![0u32; count];
        // Where the list of each one's followers begins.
        let mut begins = vec![0u32; count + 1];
        self.edges(|from, to| {
            missing[to as usize] += 1;
            begins[from as usize + 1] += 1;
        });
        for at in 0..count {
            begins[at + 1] += begins[at];
        }
        let mut followers = vec![0; begins[count] as usize];
        let mut next = begins.clone();
        self.edges(|from, to| {
            followers[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        });
        let ready = (0..count as u32).filter(|&at| missing[at as usize] == 0);
        let mut heap: BinaryHeap<Reverse<Key>> = ready.map(|at| Reverse(self.key(at))).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse((_, _, at))) = heap.pop() {
            order.push(at);
            let list = begins[at as usize] as usize..begins[at as usize + 1] as usize;
            for &to in &followers[list] {
                missing[to as usize] -= 1;
                if missing[to as usize] == 0 {
                    heap.push(Reverse(self.key(to)));
                }
            }
        }
        debug_assert_eq!(order.len(), count, "nothing waits for itself");
        order
    }
}

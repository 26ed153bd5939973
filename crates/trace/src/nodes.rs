//! The nodes of a process's CUDA graphs: which ran, and which source lines asked for them, and for its launches.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Trace;
use super::pool::Pool;
use activity::{StackId, What};

/// Launches of several threads come in an order that is off by no more than this.
const DISORDER: usize = 1 << 12;

/// What is known of them. Snapshots share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Graphs {
    /// An entry of [`Trace`]'s table of distinct things for each node that ran.
    seen: Arc<BTreeMap<u64, u32>>,
    /// An id of [`Trace::stacks`] for each that was captured under our eyes.
    named: Arc<FxHashMap<u64, StackId>>,
    /// The same for launches by correlation id, in order.
    launches: Pool<(u32, StackId)>,
}

impl Graphs {
    pub(super) fn see(&mut self, what: &What, detail: u32) {
        let node = what.node();
        if node != 0 && !self.seen.contains_key(&node) {
            Arc::make_mut(&mut self.seen).insert(node, detail);
        }
    }
}

impl Graphs {
    /// Takes in who asked for nodes and launches.
    pub(super) fn name(&mut self, all: impl Iterator<Item = (u64, StackId)>) {
        let (mut nodes, mut launches) = (Vec::new(), Vec::new());
        for (id, stack) in all {
            match u32::try_from(id) {
                Ok(correlation) => launches.push((correlation, stack)),
                Err(_) => nodes.push((id, stack)),
            }
        }
        if !nodes.is_empty() {
            Arc::make_mut(&mut self.named).extend(nodes);
        }
        launches.sort_unstable();
        for it in launches {
            let end = self.launches.push(it);
            let first = end.saturating_sub(DISORDER).max(self.launches.first());
            // What comes later than that stays where nobody finds it.
            (first..end)
                .rev()
                .take_while(|&at| self.launches.swap_if(at, |a, b| a > b))
                .for_each(drop);
        }
    }

    /// Evicts launches before the one with this id, whole chunks of them.
    pub(super) fn evict_before(&mut self, correlation: u32) {
        let at = self.launches.partition(|it| it.0 < correlation);
        self.launches.evict_before(at);
    }

    /// Bytes that launches take.
    pub(super) fn memory(&self) -> usize {
        self.launches.memory()
    }
}

impl Trace {
    /// The nodes of a process's graphs that ran, each with one of its runs. The upper half of a node's id is its graph; in the lower one
    /// CUPTI numbers nodes in the order in which they were made.
    pub fn nodes(&self, process: usize) -> impl Iterator<Item = (u64, What)> + '_ {
        let seen = self.processes.get(process).map(|it| &*it.graphs.seen);
        let all = seen.into_iter().flatten();
        all.filter_map(|(&node, &at)| Some((node, *self.details.entries.get(at as usize)?)))
    }

    /// The stack from which the call with this correlation id launched, where that was read at this very launch.
    pub fn launch_stack(&self, process: usize, correlation: u32) -> Option<StackId> {
        let launches = &self.processes.get(process)?.graphs.launches;
        let at = launches.partition(|it| it.0 < correlation);
        let found = launches.get(at).filter(|it| it.0 == correlation);
        found.map(|it| it.1).filter(|stack| *stack != 0)
    }

    /// Launches by their process and correlation id, each with its stack.
    pub fn launches(&self) -> impl Iterator<Item = (usize, u32, StackId)> + '_ {
        let all = self.processes.iter().enumerate();
        all.flat_map(|(process, it)| {
            let pool = &it.graphs.launches;
            let kept = (pool.first()..pool.len()).filter_map(|at| pool.get(at));
            kept.map(move |it| (process, it.0, it.1))
        })
    }

    /// Whether launches have stacks.
    pub fn has_launch_stacks(&self) -> bool {
        let has = |it: &super::Process| it.graphs.launches.len() > 0;
        self.processes.iter().any(has)
    }

    /// The stack that asked for a node, where that is known.
    pub fn node_stack(&self, process: usize, node: u64) -> Option<StackId> {
        let stack = self.processes.get(process)?.graphs.named.get(&node);
        stack.copied().filter(|stack| *stack != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_several_threads_are_found_in_whatever_order_they_come() {
        let mut graphs = Graphs::default();
        // Two threads whose looks overlap, as far as one is behind the other.
        for first in [0_u64, 1] {
            let all = (0..3_000).map(|it| (2 * it + first + 1, it as u32 + 1));
            graphs.name(all);
        }
        graphs.name([(7 << 32, 9)].into_iter());
        assert_eq!(*graphs.named, FxHashMap::from_iter([(7 << 32, 9)]));
        let mut trace = Trace::default();
        trace.processes.push(crate::Process {
            graphs,
            ..Default::default()
        });
        let stack = |trace: &Trace, id| trace.launch_stack(0, id);
        assert_eq!(stack(&trace, 0), None);
        for id in 1..=6_000 {
            assert_eq!(stack(&trace, id), Some(id.div_ceil(2)), "{id}");
        }
        trace.processes[0].graphs.evict_before(3_000);
        assert_eq!(
            (stack(&trace, 1), stack(&trace, 3_000)),
            (None, Some(1_500))
        );
    }
}

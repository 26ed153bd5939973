//! The nodes of a process's CUDA graphs: which ran, and which source lines asked for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Trace;
use activity::{StackId, What};

/// What is known of them. Snapshots share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Graphs {
    /// An entry of [`Trace`]'s table of distinct things for each node that ran.
    seen: Arc<BTreeMap<u64, u32>>,
    /// An id of [`Trace::stacks`] for each that was captured under our eyes.
    pub(super) named: Arc<FxHashMap<u64, StackId>>,
}

impl Graphs {
    pub(super) fn see(&mut self, what: &What, detail: u32) {
        let node = what.node();
        if node != 0 && !self.seen.contains_key(&node) {
            Arc::make_mut(&mut self.seen).insert(node, detail);
        }
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

    /// The stack that asked for a node, where that is known.
    pub fn node_stack(&self, process: usize, node: u64) -> Option<StackId> {
        let stack = self.processes.get(process)?.graphs.named.get(&node);
        stack.copied().filter(|stack| *stack != 0)
    }
}

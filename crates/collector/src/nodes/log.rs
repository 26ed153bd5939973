//! The names of nodes and launches on their way into a recording.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use activity::{SampleDef, StackId};
use cupti_sys::kinds::resource;

use super::{CHANGED, Found, NODES};
use recording::file::{Entry, StackLog, Writer};

/// Nodes that are remembered in each of two generations, some 26 bytes each: those of a program's newest graphs.
const GENERATION: usize = 1 << 18;
/// Names that one entry has room for.
const ENTRY: usize = 4096;

/// Writes the names of nodes into a recording.
#[derive(Debug, Default)]
pub(crate) struct NodeLog {
    /// Whether CUPTI tells which nodes change.
    pub(crate) tells_changes: bool,
    /// Those of the chains.
    stacks: Vec<StackId>,
    /// Who asked for each node; 0 where unknown.
    known: HashMap<u64, StackId>,
    older: HashMap<u64, StackId>,
    log: StackLog,
    /// The executable node that was just updated.
    updated: u64,
}

impl NodeLog {
    /// Writes what has been found since the last time.
    pub(crate) fn write(&mut self, writer: &mut Writer) {
        let (found, launches) = match NODES.lock() {
            Ok(mut nodes) => nodes.as_mut().map_or_else(Default::default, |it| {
                let all = (&mut it.found, &mut it.launches);
                (std::mem::take(all.0), std::mem::take(all.1))
            }),
            Err(_) => Default::default(),
        };
        let mut named = Vec::new();
        for it in found {
            named.extend(self.take(it, writer));
        }
        if !self.tells_changes && CHANGED.load(Ordering::Relaxed) {
            let all = self.older.drain().chain(self.known.drain());
            named.extend(all.map(|(node, _)| (node, 0)));
        }
        let stack = |(id, chain)| (id, self.stack(chain));
        let mut launches: Vec<_> = launches.into_iter().map(stack).collect();
        launches.sort_unstable();
        for nodes in named.chunks(ENTRY).chain(launches.chunks(ENTRY)) {
            writer.add(&Entry::SampleDef(SampleDef::Nodes(nodes.to_vec())));
        }
    }

    /// Takes it in. Returns a node of an executable graph that is to be named.
    fn take(&mut self, found: Found, writer: &mut Writer) -> Option<(u64, StackId)> {
        let ((what, [node, other]), chain) = match found {
            Found::Node(event, chain) => (event, chain),
            Found::Chain(frames) => {
                let deeper = |stack, frame| self.log.deeper(writer, stack, frame);
                self.stacks.push(frames.iter().rev().fold(0, deeper));
                return None;
            }
            Found::Lack(text) => {
                writer.notice(true, &text);
                return None;
            }
        };
        match what {
            resource::NODE_CREATED => {
                self.remember(node, self.stack(chain));
                None
            }
            resource::NODE_CLONED => {
                let stack = self.known(other);
                self.remember(node, stack);
                (stack != 0).then_some((node, stack))
            }
            // The other one is that of the executable graph, which does from now on what the first one says.
            resource::NODE_UPDATED => {
                self.updated = other;
                self.change(other, self.known(node))
            }
            // Each update sets parameters, too.
            _ if std::mem::take(&mut self.updated) == node => None,
            _ => self.change(node, 0),
        }
    }

    /// A node does what was asked for there from now on. Where that is somewhere else, nobody knows which of its records came before.
    fn change(&mut self, node: u64, to: StackId) -> Option<(u64, StackId)> {
        let known = self.known(node);
        (known != 0 && known != to).then(|| {
            self.remember(node, 0);
            (node, 0)
        })
    }

    fn stack(&self, chain: u32) -> StackId {
        let stack = self.stacks.get((chain as usize).wrapping_sub(1));
        stack.copied().unwrap_or(0)
    }

    fn known(&self, node: u64) -> StackId {
        let known = self.known.get(&node).or_else(|| self.older.get(&node));
        known.copied().unwrap_or(0)
    }

    fn remember(&mut self, node: u64, stack: StackId) {
        if self.known.len() >= GENERATION {
            self.older = std::mem::take(&mut self.known);
        }
        self.known.insert(node, stack);
    }
}

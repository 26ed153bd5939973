//! What nodes of CUDA graphs are called: the source line that asked for each, and which of several like it.
//!
//! Where a sequence of nodes comes again and again, as a model's layers do, each time is a round. Of graphs that nobody saw being
//! captured the order of their nodes alone tells rounds, which is likely and not sure.

use rustc_hash::FxHashMap;

use crate::tables::{self, NameRow};
use activity::text::printable;
use activity::{Activity, Frame, StackId, What};
use causes::stacks::{LaunchLine, asked_line};
use trace::samples::short_file;
use trace::{CallIndex, Trace, describe};

/// A sequence that comes so often is one of rounds, where all of them hold half of the graph's nodes.
const ROUNDS: usize = 3;
/// Comparisons that looking for rounds takes at most in a graph.
const EFFORT: usize = 1 << 22;

/// Which one it is of how many, from 1.
pub type Nth = (usize, usize);

/// What a node is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeName<'t> {
    /// The line that asked for it: the innermost one of the program or of a package that does its work; `None` where unknown.
    pub line: Option<&'t Frame>,
    /// Of code that PyTorch compiled, the operations that became this: "aten.addmm, aten.relu [linear_1, relu]".
    pub compiled: Option<&'t str>,
    /// "kernel", "copy" or "memset".
    pub kind: &'static str,
    /// Which of its kind it is on that line, in its round.
    pub nth: Nth,
    /// Which of the rounds it is in.
    pub round: Option<Nth>,
}

impl NodeName<'_> {
    /// "model.py:12 forward", or of compiled code "aten.addmm · model.py:12", where that is known.
    pub fn place(&self) -> Option<String> {
        self.told_by(|compiled| compiled.split(" [").next().unwrap_or(compiled))
    }

    fn told_by(&self, told: impl Fn(&str) -> &str) -> Option<String> {
        let it = self.line?;
        let at = format!("{}:{}", short_file(&it.file), it.line);
        Some(printable(&match self.compiled {
            Some(compiled) => format!("{} · {at}", told(compiled)),
            None => format!("{at} {}", it.function),
        }))
    }

    /// "model.py:12 forward · kernel 2 of 3 · round 5 of 32"; `None` where nothing is known.
    pub fn text(&self) -> Option<String> {
        self.line.map(|_| ()).or(self.round.map(|_| ()))?;
        let told = |what, (number, of): Nth| format!("{what} {number} of {of}");
        let mut parts = Vec::from_iter(self.told_by(|compiled| compiled));
        parts.extend((self.nth.1 > 1).then(|| told(self.kind, self.nth)));
        parts.extend(self.round.map(|it| told("round", it)));
        let sure = self.line.map_or(" (likely)", |_| "");
        Some(parts.join(" · ") + sure)
    }
}

/// The names of all nodes of a process that ran, graph by graph in the order in which they were made.
pub fn of_process(trace: &Trace, process: usize) -> Vec<(u64, NodeName<'_>)> {
    let nodes: Vec<(u64, What)> = trace.nodes(process).collect();
    let graphs = nodes.chunk_by(|a, b| a.0 >> 32 == b.0 >> 32);
    graphs
        .flat_map(|nodes| of_graph(trace, process, nodes))
        .collect()
}

fn of_graph<'t>(
    trace: &'t Trace,
    process: usize,
    nodes: &[(u64, What)],
) -> Vec<(u64, NodeName<'t>)> {
    let stack = |it: &(u64, What)| trace.node_stack(process, it.0).unwrap_or(0);
    let stacks: Vec<StackId> = nodes.iter().map(stack).collect();
    let alike = nodes.iter().zip(&stacks).map(|(node, &stack)| {
        let name = describe::operation_name(trace, &node.1);
        (stack, name.filter(|_| stack == 0))
    });
    let mut rounds = Rounds::find(&alike.collect::<Vec<_>>());
    // A node that nobody knows may be of a round, too: then they cannot be counted.
    if stacks.iter().any(|it| *it != 0) && rounds.with_next(&stacks).contains(&0) {
        rounds = Rounds::default();
    }
    let mut lines = FxHashMap::default();
    let mut groups = FxHashMap::<_, Vec<usize>>::default();
    let mut names = Vec::with_capacity(nodes.len());
    for (at, ((node, what), stack)) in nodes.iter().zip(&stacks).enumerate() {
        let known = || (asked_line(trace, *stack), compiled_of(trace, *stack));
        let (line, compiled) = *lines.entry(stack).or_insert_with(known);
        let kind = describe::operation_kind(what).unwrap_or("node");
        let round = rounds.nth(at);
        let group = (round, line.map(|it| (&it.file, it.line)), compiled, kind);
        groups.entry(group).or_default().push(at);
        let nth = (0, 0);
        #[rustfmt::skip]
        names.push((*node, NodeName { line, compiled, kind, nth, round }));
    }
    for group in groups.into_values() {
        for (number, &at) in (1..).zip(&group) {
            names[at].1.nth = (number, group.len());
        }
    }
    names
}

/// What an operation is called that was a node of a graph.
pub fn of_operation(trace: &Trace, process: usize, what: &What) -> Option<String> {
    let mut all = of_process(trace, process).into_iter();
    all.find(|it| it.0 == what.node())?.1.text()
}

/// The names of all nodes that ran, by process and id.
pub fn all(trace: &Trace) -> FxHashMap<(usize, u64), NodeName<'_>> {
    let names = (0..trace.processes().len()).flat_map(|process| {
        let names = of_process(trace, process).into_iter();
        names.map(move |(node, name)| ((process, node), name))
    });
    names.collect()
}

/// What CUDA graphs did by source line, most time first; nothing where no line is known.
pub fn by_line(trace: &Trace) -> Vec<NameRow> {
    let names = all(trace);
    if names.values().all(|it| it.line.is_none()) {
        return Vec::new();
    }
    let place = |node| names.get(&node)?.place();
    let node = |process, it: &Activity| Some((process, it.what.node())).filter(|it| it.1 != 0);
    tables::by_text(trace, node, place)
}

/// What tells the line that asked for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Asked<'t> {
    Node(usize, u64),
    Stack(StackId),
    Waits(LaunchLine<'t>),
    Nobody,
}

/// What the GPUs did by the source line that launched it, or asked for it in a CUDA graph, most time first. Nothing where no launch's
/// line was read.
pub fn by_launch(trace: &Trace, calls: &CallIndex) -> Vec<NameRow> {
    if !trace.has_launch_stacks() {
        return Vec::new();
    }
    let names = all(trace);
    let asked = |process, it: &Activity| {
        let node = (process, it.what.node());
        if names.get(&node).is_some_and(|it| it.line.is_some()) {
            return Some(Asked::Node(process, node.1));
        }
        if let Some(stack) = trace.launch_stack(process, it.correlation) {
            return Some(Asked::Stack(stack));
        }
        let call = calls.find(process, it.correlation)?;
        let waits = LaunchLine::waiting(trace, process, call);
        Some(waits.map_or(Asked::Nobody, Asked::Waits))
    };
    tables::by_text(trace, asked, |asked| match asked {
        Asked::Node(process, node) => names.get(&(process, node))?.place(),
        Asked::Stack(stack) => Some(LaunchLine::own(trace, stack)?.text()),
        Asked::Waits(line) => Some(line.text()),
        Asked::Nobody => None,
    })
}

/// What is told of code that PyTorch compiled. No function of Python has such a name.
fn compiled_of(trace: &Trace, stack: StackId) -> Option<&str> {
    let mut names = trace.stacks().frames(stack).map(|it| &*it.function);
    names.find(|it| it.starts_with("aten.") || it.starts_with("prims."))
}

/// A sequence that comes again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rounds {
    first: usize,
    length: usize,
    count: usize,
}

impl Rounds {
    /// The shortest one that holds half of all; none where there is no such.
    fn find<T: PartialEq>(all: &[T]) -> Rounds {
        let longest = (all.len() / ROUNDS).min(EFFORT / all.len().max(1));
        let of_length = |length: usize| {
            let (mut run, mut best) = (0, Rounds::default());
            for at in length..all.len() {
                run = (run + 1) * usize::from(all[at] == all[at - length]);
                let count = (run + length) / length;
                if count > best.count {
                    let first = at + 1 - run - length;
                    best = Rounds {
                        first,
                        length,
                        count,
                    };
                }
            }
            best
        };
        let is_enough = |it: &Rounds| it.count >= ROUNDS && 2 * it.count * it.length >= all.len();
        (1..=longest)
            .map(of_length)
            .find(is_enough)
            .unwrap_or_default()
    }

    /// Those of all rounds, with as many before and after as one round has.
    fn with_next<T>(self, all: &[T]) -> &[T] {
        let end = self.first + (self.count + 1) * self.length;
        &all[self.first.saturating_sub(self.length)..end.min(all.len())]
    }

    /// Which round it is in, if any.
    fn nth(self, at: usize) -> Option<Nth> {
        let round = at.checked_sub(self.first)?.checked_div(self.length)?;
        (round < self.count).then_some((round + 1, self.count))
    }
}

#[cfg(test)]
mod tests;

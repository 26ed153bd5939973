//! Which round of its graph each node is in: sequences of nodes that come again and again, as a model's layers do.

use std::time::Duration;

use rustc_hash::FxHashMap;

use super::analyst::{Analyst, Question};
use super::run::Run;
use activity::What;
use figures::nodes::{self, Nth};
use trace::Trace;

/// While a program runs, answers are at least this far apart.
const PACE: Duration = Duration::from_secs(2);

/// The rounds of nodes, by process and id; nodes outside of any are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRounds(FxHashMap<(usize, u64), Nth>);

impl NodeRounds {
    pub fn of(trace: &Trace) -> NodeRounds {
        let names = nodes::all(trace).into_iter();
        NodeRounds(
            names
                .filter_map(|(node, it)| Some((node, it.round?)))
                .collect(),
        )
    }

    /// Which one an operation is in.
    pub fn get(&self, process: usize, what: &What) -> Option<Nth> {
        self.0.get(&(process, what.node())).copied()
    }
}

/// The question, and its last answer.
#[derive(Debug, Default)]
pub struct Rounds {
    pub(in crate::tui) question: Question<(), NodeRounds>,
}

impl Rounds {
    /// Takes the answer that has come, and asks anew; nothing where no node of a graph was recorded.
    pub fn prepare(&mut self, analyst: &Analyst, run: &Run) {
        let mut processes = 0..run.trace.processes().len();
        if processes.any(|it| run.trace.nodes(it).next().is_some()) {
            let question = self.question.paced(|_, (), ()| PACE);
            question.ask(analyst, run, (), |trace, _| NodeRounds::of(trace));
        }
    }

    pub fn known(&self, run: &Run) -> Option<&NodeRounds> {
        self.question.last(run)
    }
}

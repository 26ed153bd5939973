//! What several questions about a run that has ended rest on: made by the one that is asked first, and handed to the others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use activity::feed::Stop;
use analysis::CallIndex;
use analysis::causes::Causes;
use analysis::graph::Graph;
use analysis::ranks::{Aligned, Matched, Ranks};
use analysis::steps::{self, Steps};
use trace::Trace;

/// A graph that takes more bytes is not kept between two questions.
const KEPT_MAX: usize = 512 << 20;

/// A dependency graph and an index of calls.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) graph: Graph,
    pub(super) calls: CallIndex,
}

/// What is known of a state of a run. `Some(None)` is known, too: it is no job.
#[derive(Debug, Default)]
struct Kept {
    run: u64,
    revision: u64,
    base: Option<Arc<Base>>,
    steps: Option<Arc<Vec<Steps>>>,
    /// Until it is judged: its collectives take as much as a part of the timeline.
    matched: Option<Option<Arc<Matched>>>,
    ranks: Option<Option<Arc<Ranks>>>,
}

/// What questions share. Whoever makes something holds the lock meanwhile, so that nothing is made twice.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    kept: Arc<Mutex<Kept>>,
}

impl Ground {
    /// What is known of a timeline as it is now, of the run with this number.
    pub(super) fn of<'a>(&'a self, run: u64, trace: &'a Trace) -> Grounds<'a> {
        Grounds {
            kept: &self.kept,
            trace,
            run,
        }
    }
}

/// What is known of one state of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grounds<'a> {
    kept: &'a Mutex<Kept>,
    trace: &'a Trace,
    run: u64,
}

impl Grounds<'_> {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic of another holder was said by its hook; what it left is whole.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = self.trace.revision();
        if (kept.run, kept.revision) != (self.run, revision) {
            *kept = Kept {
                run: self.run,
                revision,
                ..Kept::default()
            };
        }
        kept
    }

    /// The graph and the calls of all of it; `None` when told to stop.
    pub(super) fn base(&self, stop: &Stop) -> Option<Arc<Base>> {
        let mut kept = self.kept();
        if kept.base.is_none() {
            let calls = CallIndex::new(self.trace);
            if stop.is_stopped() {
                return None;
            }
            let graph = Graph::new(self.trace);
            kept.base = Some(Arc::new(Base { graph, calls }));
        }
        let base = kept.base.clone();
        if base.as_ref().is_some_and(|it| it.graph.memory() > KEPT_MAX) {
            kept.base = None;
        }
        base.filter(|_| !stop.is_stopped())
    }

    /// The steps of all of it.
    pub(super) fn steps(&self) -> Arc<Vec<Steps>> {
        let mut kept = self.kept();
        let make = || Arc::new(steps::of(self.trace, None));
        Arc::clone(kept.steps.get_or_insert_with(make))
    }

    /// Its collectives.
    fn matched(&self, kept: &mut Kept) -> Option<Arc<Matched>> {
        let make = || Matched::of(self.trace).map(Arc::new);
        kept.matched.get_or_insert_with(make).clone()
    }

    /// What its collectives tell of a job; `None` for what is none.
    pub(super) fn aligned(&self) -> Option<Arc<Aligned>> {
        let mut kept = self.kept();
        match &kept.ranks {
            Some(ranks) => ranks.as_ref().map(|it| Arc::clone(it.by_collectives())),
            None => self.matched(&mut kept).map(|it| Arc::clone(it.aligned())),
        }
    }

    /// With who is late. `None` for what is no job, or when told to stop.
    pub(super) fn ranks(&self, stop: &Stop) -> Option<Arc<Ranks>> {
        self.aligned()?;
        if let Some(ranks) = &self.kept().ranks {
            return ranks.clone();
        }
        let (base, steps) = (self.base(stop)?, self.steps());
        self.judged(&Causes::new(self.trace, &base.graph), &steps)
    }

    /// The same for who has causes and steps of all of it.
    pub(super) fn judged(&self, causes: &Causes<'_>, steps: &[Steps]) -> Option<Arc<Ranks>> {
        let mut kept = self.kept();
        if kept.ranks.is_none() {
            let matched = self.matched(&mut kept);
            kept.matched = None;
            let judged = matched.map(|it| it.judged(self.trace, Some(causes), steps));
            kept.ranks = Some(judged.map(Arc::new));
        }
        kept.ranks.clone().flatten()
    }
}

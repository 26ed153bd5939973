//! How long after what it depended on something began: by kind of dependency.

use rustc_hash::FxHashMap;

use super::GpuRates;
use activity::Ns;
use activity::stats::lower_median;
use causes::graph::{CallKind, EdgeKind, Engine, LATENCY_MIN};

/// Kinds of delays: those of one class are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// From the start of a call to that of its operation; whether the call may stage it.
    Launch {
        /// What the operation needs.
        to: Engine,
        /// Whether the driver may stage it.
        is_staged: bool,
    },
    /// From an operation's end to the start of another.
    Between {
        /// Why the other waits.
        kind: EdgeKind,
        /// What the first needs.
        from: Engine,
        /// What the second needs.
        to: Engine,
    },
    /// From an operation's end to the return of a call of this kind that waited for it.
    Wake(CallKind),
    /// From an operation's start to the return of the call that staged it.
    Staged(Engine),
}

impl Class {
    /// Of a dependency between two operations.
    pub fn between(kind: EdgeKind, from: Engine, to: Engine) -> Class {
        // Which kind of inference found it makes no difference to how long it takes.
        let kind = if kind.is_inferred() {
            EdgeKind::Event
        } else {
            kind
        };
        Class::Between { kind, from, to }
    }
}

/// Medians by class, of the dependencies that bound something.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    samples: FxHashMap<Class, Vec<Ns>>,
    medians: FxHashMap<Class, Ns>,
}

impl Delays {
    pub(super) fn see(&mut self, class: Class, delay: Ns) {
        self.samples.entry(class).or_default().push(delay);
    }

    pub(super) fn settle(&mut self) {
        for (class, mut list) in self.samples.drain() {
            self.medians
                .extend(lower_median(&mut list).map(|it| (class, it)));
        }
    }

    /// The median of a class; else what is known of the GPU, else the least that was seen anywhere.
    pub fn typical(&self, class: Class, known: &GpuRates) -> Ns {
        if let Some(&median) = self.medians.get(&class) {
            return median;
        }
        let of_known = match class {
            Class::Launch { to, .. } => known.latency(to).or(Some(LATENCY_MIN)),
            Class::Between { kind, from, to } => match kind {
                EdgeKind::Event => known.event,
                EdgeKind::GraphNode => known.graph_node,
                _ => known.between(from, to),
            },
            Class::Wake(_) => known.wake,
            Class::Staged(_) => Some(0),
        };
        of_known.unwrap_or_else(|| self.near(class))
    }

    /// The median of a class like this one: the same kind of dependency between other engines.
    fn near(&self, class: Class) -> Ns {
        let is_alike = |other: &Class| match (class, other) {
            (Class::Between { kind: a, .. }, Class::Between { kind: b, .. }) => a == *b,
            (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(b),
        };
        let alike = self.medians.iter().filter(|it| is_alike(it.0));
        alike.map(|it| *it.1).min().unwrap_or(0)
    }
}

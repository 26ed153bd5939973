//! The Python functions of one thread that a profiler recorded: which one is innermost when, and which others it is in.

use activity::{NameId, What};
use causes::nested::{NONE, Nested};
use trace::{LaneId, Trace};

/// So many functions inside each other are told of; what lies deeper counts as the last of them.
const DEEPEST: usize = 256;

/// The nested functions of one thread.
#[derive(Debug)]
pub(super) struct Functions {
    pub(super) nested: Nested,
    names: Vec<NameId>,
    /// The row that stands for each: itself, or the last that is told of.
    told: Vec<u32>,
}

impl Functions {
    pub(super) fn of(trace: &Trace, id: LaneId) -> Functions {
        let (mut names, mut told) = (Vec::new(), Vec::new());
        let nested = Nested::of(trace, id, |row, around| {
            let last = around.get(DEEPEST - 1);
            told.push(last.map_or(row as u32, |last| last.1));
            names.push(match trace.what(id, row) {
                What::Range(range) => range.name,
                _ => NameId::MAX,
            });
        });
        Functions {
            nested,
            names,
            told,
        }
    }

    /// The name of a row's function.
    pub(super) fn name(&self, row: u32) -> NameId {
        self.names[self.nested.place(row)]
    }

    /// The names of the functions that a row is in, outermost first, and its own: [`DEEPEST`] of them, so that what is written of
    /// a thread that recurses does not grow with the square of what was read.
    pub(super) fn path(&self, row: u32) -> Vec<NameId> {
        let (mut path, mut at) = (Vec::new(), self.told[self.nested.place(row)]);
        while at != NONE {
            path.push(self.name(at));
            at = self.nested.parent(at);
        }
        path.reverse();
        path
    }
}

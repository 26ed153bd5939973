//! The Python functions of one thread that a profiler recorded: which one is innermost when, and which others it is in.

use activity::{NameId, Ns, Span, What};
use trace::{LaneId, Trace};

/// No row.
pub(super) const NONE: u32 = u32::MAX;

/// What a function is in is looked for so many levels out: more than functions of Python can be inside each other by default.
pub(super) const LEVELS: usize = 1024;

/// So many functions inside each other are told of; what lies deeper counts as the last of them.
const DEEPEST: usize = 256;

/// The nested functions of one thread: from each moment on, which is the innermost.
#[derive(Debug, Default)]
pub(super) struct Functions {
    times: Vec<Ns>,
    rows: Vec<u32>,
    pub(super) first: usize,
    pub(super) parents: Vec<u32>,
    pub(super) names: Vec<NameId>,
    /// The row that stands for each: itself, or the last that is told of.
    told: Vec<u32>,
}

impl Functions {
    pub(super) fn of(trace: &Trace, id: LaneId) -> Functions {
        let lane = &trace.lanes()[id];
        let mut it = Functions {
            first: lane.kept().start,
            ..Functions::default()
        };
        let mut stack: Vec<(Ns, u32)> = Vec::new();
        for row in lane.kept() {
            let span = lane.span(row);
            it.leave(&mut stack, span.start);
            it.parents.push(stack.last().map_or(NONE, |top| top.1));
            let last = stack.get(DEEPEST - 1);
            it.told.push(last.map_or(row as u32, |last| last.1));
            it.names.push(match trace.activity(id, row).what {
                What::Range(range) => range.name,
                _ => NameId::MAX,
            });
            if !span.is_empty() {
                it.push(span.start, row as u32);
                stack.push((span.end, row as u32));
            }
        }
        it.leave(&mut stack, Ns::MAX);
        it
    }

    fn leave(&mut self, stack: &mut Vec<(Ns, u32)>, until: Ns) {
        while let Some(&(end, _)) = stack.last().filter(|top| top.0 <= until) {
            stack.pop();
            self.push(end, stack.last().map_or(NONE, |top| top.1));
        }
    }

    fn push(&mut self, time: Ns, row: u32) {
        // Rows that overlap without nesting must not turn time back.
        let time = self.times.last().map_or(time, |&last| last.max(time));
        self.times.push(time);
        self.rows.push(row);
    }

    /// Tells of each part of `span` with one innermost row.
    pub(super) fn within(&self, span: Span, mut tell: impl FnMut(Span, u32)) {
        let first = self.times.partition_point(|&time| time <= span.start);
        for at in first.saturating_sub(1)..self.times.len() {
            if self.times[at] >= span.end {
                break;
            }
            let end = self.times.get(at + 1).copied().unwrap_or(Ns::MAX);
            let part = Span {
                start: self.times[at],
                end,
            }
            .intersect(span);
            if !part.is_empty() && self.rows[at] != NONE {
                tell(part, self.rows[at]);
            }
        }
    }

    /// The names of the functions that a row is in, outermost first, and its own: [`DEEPEST`] of them, so that what is written of
    /// a thread that recurses does not grow with the square of what was read.
    pub(super) fn path(&self, row: u32) -> Vec<NameId> {
        let (mut path, mut at) = (Vec::new(), self.told[row as usize - self.first]);
        while at != NONE {
            let index = at as usize - self.first;
            path.push(self.names[index]);
            at = self.parents[index];
        }
        path.reverse();
        path
    }
}

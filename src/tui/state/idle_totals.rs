//! Why the devices were idle since a run began, while it goes on: sums that grow as records come.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::analyst::{Analyst, Question};
use super::run::Run;
use activity::feed::Stop;
use activity::{Ns, Span};
use causes::IdleSums;
use trace::{LaneKind, Trace};

/// Answers are at least this far apart.
const PACE: Duration = Duration::from_secs(1);

/// Records up to which sums are made where there is no thread for it: a blink.
const UNASKED: usize = 100_000;

/// The sums, and what was last said of them.
#[derive(Debug, Default)]
pub(super) struct IdleTotals {
    question: Question<(), Vec<String>>,
    /// Those of a run, by its number.
    growing: Arc<Mutex<(u64, IdleSums)>>,
}

impl IdleTotals {
    /// Takes the answer that has come, and asks when it is time to.
    pub(super) fn prepare(&mut self, analyst: &Analyst, run: &Run) {
        self.question.paced(|_, (), ()| PACE).poll();
        let is_asked = run.is_running() && run.progress.is_none();
        if !is_asked || !(analyst.has_threads() || run.records() <= UNASKED) {
            return;
        }
        let (growing, number) = (Arc::clone(&self.growing), run.number);
        self.question.ask(analyst, run, (), move |trace, stop| {
            grow(trace, number, &growing, stop)
        });
    }

    /// A line a device, while the run goes on.
    pub(super) fn lines(&self, run: &Run) -> &[String] {
        let lines = self.question.last(run).filter(|_| run.is_running());
        lines.map_or(&[], |lines| lines)
    }
}

fn grow(trace: &Trace, number: u64, growing: &Mutex<(u64, IdleSums)>, stop: &Stop) -> Vec<String> {
    let Some(arrived) = arrived(trace) else {
        return Vec::new();
    };
    // A panic of another holder was said by its hook; what it left is begun anew.
    let mut kept = growing.lock().unwrap_or_else(|poisoned| {
        let mut kept = poisoned.into_inner();
        kept.1 = IdleSums::default();
        kept
    });
    if kept.0 != number {
        *kept = (number, IdleSums::default());
    }
    let grown = kept.1.grow(trace, arrived.end, stop);
    let grown = grown.unwrap_or_default();
    grown.iter().map(|device| device.line(trace)).collect()
}

/// From the first record to the moment up to which operations and calls have both come. Their records arrive in buffers
/// of their own. `None` before the first operation.
pub(super) fn arrived(trace: &Trace) -> Option<Span> {
    let mut last = vec![(None::<Ns>, None::<Ns>); trace.processes().len()];
    for lane in trace.lanes() {
        let Some(row) = lane.len().checked_sub(1) else {
            continue;
        };
        let (operation, call) = last.get_mut(lane.key().process)?;
        let of = match lane.key().kind {
            LaneKind::Stream { .. } => operation,
            LaneKind::Thread { .. } => call,
            _ => continue,
        };
        *of = (*of).max(Some(lane.span(row).start));
    }
    let until = last
        .iter()
        .filter_map(|&(operation, call)| {
            let operation = operation?;
            Some(call.map_or(operation, |call| call.min(operation)))
        })
        .max()?;
    let start = trace.extent()?.start;
    Some(Span::new(start, until.max(start).saturating_add(1)))
}

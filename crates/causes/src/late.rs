//! Idle time of a device because launches do not come fast enough.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::evidence::EVIDENCE_MAX;
use crate::graph::CallId;
use crate::stacks::StackCounts;
use crate::{Causes, Gap, Group, LAUNCH_GAP_MAX, Pieces};
use activity::{NameId, Ns, Span};
use trace::Trace;

/// Idle time of a device before launches that came late.
#[derive(Debug, Default)]
pub struct Late {
    /// In ns, as all times here.
    pub idle: Ns,
    /// What of it lies before launches of graphs.
    pub of_graphs: Ns,
    /// The gaps it lies in.
    pub gaps: Vec<Span>,
    /// The longest of them, of equal ones the first.
    longest: BinaryHeap<(Reverse<Ns>, Span)>,
    /// What the CPU does for longer than a launch takes.
    pub host: Ns,
    /// What of the idle time is work of the CPU between the few launches beside graphs.
    pub work: Ns,
    /// What only a first run takes.
    pub cold: Ns,
    /// Gaps in which the host waited.
    pub waits: u64,
    /// Gaps in which it waited for what came back, and the first such wait.
    pub reads: usize,
    /// See `reads`.
    pub held: Option<(CallId, Gap)>,
    /// What of the idle time lies behind something that came back to the CPU.
    pub read: Ns,
    /// What the launching thread was seen at in the others.
    pub seen: StackCounts,
}

impl Late {
    /// Whether most of it lies behind values that came back.
    pub fn are_read(&self) -> bool {
        2 * self.read > self.idle
    }

    /// The longest of its gaps, longest first.
    pub fn longest(&self) -> Vec<Span> {
        let longest = self.longest.clone().into_sorted_vec();
        longest.into_iter().map(|it| it.1).collect()
    }

    /// Of gaps of a device; `is_read` says whether something came back to the CPU right before one.
    pub fn of(
        trace: &Trace,
        causes: &Causes<'_>,
        gaps: impl Iterator<Item = (Gap, Pieces)>,
        is_read: impl Fn(&Gap) -> bool,
    ) -> Late {
        let mut late = Late::default();
        let names = trace.names();
        let mut loaders: FxHashMap<NameId, bool> = FxHashMap::default();
        let mut loads = |id| {
            let is_one = || cases::LOADER.holds(names.full(id).to_lowercase().contains("loader"));
            *loaders.entry(id).or_insert_with(is_one)
        };
        for (gap, pieces) in gaps {
            // Where the host waited, the wait is to blame, and no graph reaches across it.
            let wait = pieces.iter().find_map(|it| causes.wait_of(it));
            let is_wait = wait.is_some();
            late.waits += u64::from(is_wait);
            if let Some(wait) = wait.filter(|_| is_read(&gap)) {
                late.reads += 1;
                late.held.get_or_insert((wait, gap));
            }
            let is_short = !is_wait && gap.span.len() <= LAUNCH_GAP_MAX;
            let mut sum = 0;
            for piece in &pieces {
                if causes.is_first(gap.next, piece) {
                    late.cold += piece.span.len();
                } else if !is_wait && !causes.host_name(piece.culprit).is_some_and(&mut loads) {
                    match causes.group(gap, piece) {
                        Group::Launch if is_short => sum += piece.span.len(),
                        _ if is_short && causes.is_beside_graphs(gap, piece) => {
                            sum += piece.span.len();
                            late.work += piece.span.len();
                        }
                        Group::Launch | Group::Host => late.host += piece.span.len(),
                        _ => {}
                    }
                }
            }
            if sum > 0 {
                let is_graph = causes.graph().ops.is_graph(gap.next);
                late.of_graphs += if is_graph { sum } else { 0 };
                late.idle += sum;
                late.gaps.push(gap.span);
                late.read += if is_read(&gap) { sum } else { 0 };
                causes.add_samples(gap.next, gap.span, &mut late.seen);
                late.longest.push((Reverse(sum), gap.span));
                if late.longest.len() > EVIDENCE_MAX {
                    late.longest.pop();
                }
            }
        }
        late
    }
}

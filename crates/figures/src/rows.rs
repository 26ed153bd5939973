//! Kernels in a row, of which each may read what the one before wrote.

use activity::Ns;
use causes::LAUNCH_GAP_MAX;
use trace::{LaneId, Trace};

use crate::communication::has_any;
use crate::configs::Config;

/// A kernel that ran: where, for how long, and the number of its configuration.
type OfRow = ((LaneId, usize), Ns, usize);

/// So many rounds are a loop; longer rounds are not looked for.
const ROUNDS_MIN: usize = 8;
const ROUND_MAX: usize = 500;

/// Kernels of batch norm, by cuDNN's names and PyTorch's.
pub const NORMS: &str = "bn_fw bn_bw batch_norm";

/// Whether a kernel does something to each element, by PyTorch's names and CuPy's. A batch norm does, with what cuDNN calls it.
pub fn is_elementwise(name: &str) -> bool {
    let of_cupy = name.strip_prefix("cupy_");
    name.contains("elementwise")
        || has_any(name, NORMS)
        || of_cupy.is_some_and(|it| !has_any(it, "sum prod max min mean arg"))
}

/// What goes where kernels in a row become one, what they take, and where they are. With counters a row is of one size.
pub fn in_rows(
    trace: &Trace,
    all: &[&Config],
    ran: &[OfRow],
    is_sampled: bool,
) -> (Ns, Ns, Vec<(LaneId, usize)>) {
    let size = |number: usize| {
        let of = &all[number].shape;
        is_sampled.then_some((of.grid, of.block))
    };
    let (mut saved, mut time, mut at) = (0, 0, Vec::new());
    let span = |(lane, row): (LaneId, usize)| trace.lanes()[lane].span(row);
    // What the CPU does for long between two of them may need the first one's result, and ends the row.
    let is_near = |a, b| span(b).start - span(a).end <= LAUNCH_GAP_MAX;
    for group in ran.chunk_by(|a, b| {
        (a.0.0, a.0.1 + 1, size(a.2)) == (b.0.0, b.0.1, size(b.2)) && is_near(a.0, b.0)
    }) {
        let group = outside_loops(group);
        for round in group.chunks(round(&group)).filter(|it| it.len() > 1) {
            let lengths = round.iter().map(|it| it.1);
            let (sum, longest) = (lengths.clone().sum::<Ns>(), lengths.max().unwrap_or(0));
            (saved, time) = (saved + sum - longest, time + sum);
            at.extend(round.iter().map(|it| it.0));
        }
    }
    (saved, time, at)
}

/// After how many the same come again and again: each round may do it anew. A row without rounds is one.
fn round(ran: &[OfRow]) -> usize {
    let again = |it: &usize| ran.iter().zip(&ran[*it..]).all(|(a, b)| a.2 == b.2);
    let most = (ran.len() / ROUNDS_MIN).min(ROUND_MAX);
    (2..=most).find(again).unwrap_or(ran.len().max(1))
}

/// Those without one kernel in one size again and again: that is a loop, of which each may do the same anew.
fn outside_loops(ran: &[OfRow]) -> Vec<OfRow> {
    let runs = ran.chunk_by(|a, b| a.2 == b.2);
    let runs = runs.filter(|it| !cases::LOOP_MIN.is_reached_by(it.len()));
    runs.flatten().copied().collect()
}

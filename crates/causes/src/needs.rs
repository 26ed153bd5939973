//! Whether the CPU needs what it waited for, as far as times show.

use crate::graph::{CallId, Graph, NONE};
use activity::{Copy, Direction, Ns, What};
use trace::Trace;

/// Bytes a nanosecond at which one core reads memory at best.
const READ_RATE: f64 = 20.0;

/// Bytes that what was waited for brings to the CPU.
pub fn fetched(trace: &Trace, graph: &Graph, wait: CallId) -> Option<u64> {
    let waited = graph.calls.waited[wait as usize];
    match (waited != NONE).then(|| graph.what(trace, waited))? {
        What::Copy(copy) if copy.direction == Direction::D2H => Some(copy.bytes),
        _ => None,
    }
}

/// Whether the CPU works on what it waits for: a large copy to its memory. After it the CPU is at work for as long as it
/// takes to read that. It cannot go on without.
pub fn is_needed(trace: &Trace, graph: &Graph, wait: CallId) -> bool {
    let Some(bytes) = fetched(trace, graph, wait) else {
        return false;
    };
    let calls = &graph.calls;
    let read = (bytes as f64 / READ_RATE) as Ns;
    let mut after = std::iter::successors(Some(wait), |call| calls.next(*call)).skip(1);
    let next = after.find(|&call| !calls.kind[call as usize].is_wait());
    let next = next.map_or(Ns::MAX, |next| calls.start[next as usize]);
    bytes > Copy::TINY_BYTES && next.saturating_sub(calls.end[wait as usize]) >= read
}

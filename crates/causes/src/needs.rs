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
    let read = (bytes as f64 / READ_RATE) as Ns;
    let works = work_behind(graph, wait).map_or(Ns::MAX, |it| it.1);
    bytes > Copy::TINY_BYTES && works >= read
}

/// The first call of the thread behind a wait that is none itself, and how long the CPU works up to it. Waits between are no work.
pub fn work_behind(graph: &Graph, wait: CallId) -> Option<(CallId, Ns)> {
    let calls = &graph.calls;
    let (mut from, mut works) = (wait, 0);
    loop {
        let next = calls.next(from)?;
        works += (calls.start[next as usize] - calls.end[from as usize]).max(0);
        if !calls.kind[next as usize].is_wait() {
            return Some((next, works));
        }
        from = next;
    }
}

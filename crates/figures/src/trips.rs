//! What goes down to the CPU's memory and up again as it was.

use activity::{Copy, Direction, Ns, Span, What};
use causes::graph::{CallId, Graph};
use rustc_hash::{FxHashMap, FxHashSet};
use trace::{LaneId, Trace};

use crate::uploads::CPU_RATE;

/// Large copies up behind a kernel of a region that each follow a copy down of as many bytes at once.
#[derive(Default)]
pub struct Trips {
    /// How long each is, and where it stands.
    pub at: Vec<(Ns, (LaneId, usize))>,
    /// Bytes that they move, and that all copies up do.
    pub moved: u64,
    pub all: u64,
    /// How long both ways take.
    pub time: Ns,
}

/// What of them lies in the time looked at. The other half of one may lie before it, or behind.
pub fn of_regions(
    trace: &Trace,
    graph: &Graph,
    (device, part): (usize, Span),
    is_of_region: impl Fn(&str) -> bool,
) -> Trips {
    let mut trips = Trips::default();
    let (mut down, mut since, mut is_region) = (Vec::new(), Ns::MIN, false);
    let names = trace.names();
    for &op in graph.ops.of_device(device) {
        let span = graph.ops.span(op);
        let is_in = |it: Span| part.contains(it.start);
        let in_part = |it: Span| if is_in(it) { it.len() } else { 0 };
        match graph.what(trace, op) {
            What::Copy(it) if it.bytes <= Copy::TINY_BYTES => {}
            What::Copy(it) if it.direction == Direction::D2H => {
                down.push((it.bytes, span));
                since = span.end;
            }
            What::Copy(it) if it.direction == Direction::H2D => {
                trips.all += if is_in(span) { it.bytes } else { 0 };
                let is_at_once = span.start.saturating_sub(since) < (it.bytes / CPU_RATE) as Ns;
                let same = down.iter().position(|of| of.0 == it.bytes);
                if let Some(same) = same.filter(|_| is_at_once && is_region) {
                    trips.time += in_part(down.swap_remove(same).1) + in_part(span);
                    if is_in(span) {
                        trips.moved += it.bytes;
                        let place = graph.ops.place(op);
                        trips.at.push((span.len(), place));
                    }
                    since = span.end;
                }
            }
            What::Kernel(it) => {
                down.clear();
                is_region = is_of_region(names.full(trace.shape(it.shape).name));
            }
            _ => {}
        }
    }
    trips
}

/// What is kept of a sequence that grows comes in so many sizes.
const SIZES: usize = 8;

/// Large copies up that each bring as many bytes as a copy down did before.
#[derive(Default)]
pub struct Kept {
    /// How long each is, and where it stands.
    pub at: Vec<(Ns, (LaneId, usize))>,
    /// Bytes that they move, and that all large copies up do.
    pub moved: u64,
    pub all: u64,
    /// Of how many sizes they are.
    pub sizes: usize,
}

impl Kept {
    /// Of copies in order of time: where each stands, when it ran, and what it moved.
    pub fn of<'c>(copies: impl Iterator<Item = &'c ((LaneId, usize), Span, Copy)>) -> Kept {
        let mut kept = Kept::default();
        let mut down: FxHashMap<u64, usize> = FxHashMap::default();
        let mut sizes = FxHashSet::default();
        for (place, span, copy) in copies.filter(|it| it.2.bytes > Copy::TINY_BYTES) {
            let known = down.entry(copy.bytes).or_default();
            match copy.direction {
                Direction::D2H => *known += 1,
                Direction::H2D => {
                    kept.all += copy.bytes;
                    if *known > 0 {
                        *known -= 1;
                        kept.moved += copy.bytes;
                        sizes.insert(copy.bytes);
                        kept.at.push((span.len(), *place));
                    }
                }
                _ => {}
            }
        }
        kept.sizes = sizes.len();
        kept
    }

    /// Whether nearly all that comes up is kept of a sequence that grows: batches and their results are of one size, or of few.
    pub fn grows(&self) -> bool {
        self.sizes >= SIZES && 5 * self.moved >= 4 * self.all
    }
}

/// Whether the CPU had the time to change so many bytes in a part: what its threads spent outside CUDA's calls.
pub fn may_go_through(graph: &Graph, part: Span, moved: u64) -> bool {
    let calls = (0..graph.calls.len() as CallId).map(|it| graph.calls.span(it));
    let calls = calls
        .map(|it| it.intersect(part))
        .filter(|it| !it.is_empty());
    part.len() - Span::union_len(calls.collect()) >= (moved / CPU_RATE) as Ns
}

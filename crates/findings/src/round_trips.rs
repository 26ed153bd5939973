//! Arrays that go down behind each kernel and up again at once, before the CPU can have changed them. Gradients that go down to tensors
//! which might be on the GPU.

use super::pageable::Staged;
use super::{Copied, DeviceFigures, Finding, Occurrence, Rule, Scope, longest_first};
use ::program::is_of_region;
use activity::text::counted;
use activity::units::{bytes, duration, percent};
use activity::{Copy, Direction, Ns, Span, What};
use causes::graph::CallId;
use causes::{Gap, Piece};
use figures::uploads::CPU_RATE;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is kept of a sequence that grows comes in so many sizes.
const SIZES: usize = 8;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let all = [arrays, gradients, parked];
    all.into_iter().find_map(|it| it(scope, f))
}

/// Arrays that are kept in the CPU's memory and come up again as they were, though nobody there goes through them.
fn parked(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let up = |it: &&Copied| it.2.direction == Direction::H2D;
    let mut down: FxHashMap<u64, usize> = FxHashMap::default();
    let (mut at, mut moved, mut all, mut sizes) = (Vec::new(), 0, 0, FxHashSet::default());
    for it in scope
        .copies(f)
        .iter()
        .filter(|it| it.2.bytes > Copy::TINY_BYTES)
    {
        let bytes = it.2.bytes;
        let known = down.entry(bytes).or_default();
        match it.2.direction {
            Direction::D2H => *known += 1,
            Direction::H2D if *known > 0 => {
                *known -= 1;
                moved += bytes;
                sizes.insert(bytes);
                at.push((it.1.len(), Occurrence::Row(it.0)));
            }
            _ => {}
        }
        all += if up(&it) { bytes } else { 0 };
    }
    // Batches and their results are of one size, or of few. What is kept of a sequence grows.
    let is_kept = sizes.len() >= SIZES && 5 * moved >= 4 * all;
    let exposed = f.busy_ns - f.compute_ns;
    if !is_kept
        || !cases::LARGE_SHARE.is_reached_by(f.part(exposed))
        || may_go_through(scope, f, moved)
    {
        return None;
    }
    let found = scope.found(f.span_ns, exposed, &longest_first(at));
    Some(Finding {
        title: format!(
            "offloading: {} go to the CPU's memory and come back as they were, in {}; both ways take {} ({}) with nothing beside them",
            bytes(moved),
            counted(found.count, "copy up", "copies up"),
            duration(exposed),
            percent(f.part(exposed)),
        ),
        advice: "Where the GPU's memory has room, keep them there: leave the offloading out."
            .to_owned(),
        cure: "keeping arrays on the GPU",
        change: scope.change("parked", None),
        instead_of: &[Rule::NoOverlap, Rule::PageableCopy],
        ..found
    })
}

/// Whether the CPU had the time to change so many bytes: what the launching threads spent outside CUDA.
fn may_go_through(scope: &Scope, f: &DeviceFigures, moved: u64) -> bool {
    let graph = scope.causes.graph();
    let calls = (0..graph.calls.len() as CallId).map(|it| graph.calls.span(it));
    let calls = calls
        .map(|it| it.intersect(f.span))
        .filter(|it| !it.is_empty());
    f.span_ns - Span::union_len(calls.collect()) >= (moved / CPU_RATE) as Ns
}

/// Gradients that go back each time to tensors on the CPU, which adds them while the GPU waits.
fn gradients(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let copies = Staged::of(scope, f, None, true);
    if copies.at.is_empty() {
        return None;
    }
    let is_behind = |gap: &Gap, piece: &Piece| {
        copies.ends.contains(&gap.span.start) && piece.cause.is_of_host()
    };
    let adding = scope.idle_that(f, is_behind);
    let bound = copies.time + copies.idle(scope, f) + adding;
    if !cases::WORTH_SHARE.is_reached_by(f.part(bound)) {
        return None;
    }
    let found = scope.found(f.span_ns, bound, &longest_first(copies.at));
    Some(Finding {
        title: format!(
            "{} back to tensors on the CPU: {} in {}, and the GPU is idle for {} behind them",
            counted(found.count, "gradient goes", "gradients go"),
            bytes(copies.moved),
            duration(copies.time),
            duration(adding),
        ),
        advice: "The tensors that autograd makes gradients of lie on the CPU: make them on the GPU. Pinning does not reach what autograd allocates."
            .to_owned(),
        cure: "making the tensors on the GPU",
        change: scope.change("leaf", None),
        instead_of: &[Rule::NoOverlap],
        ..found
    })
}

fn arrays(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !scope.has_name(is_of_region) {
        return None;
    }
    let Trips {
        at,
        moved,
        all,
        time,
    } = trips(scope, f);
    let is_loop = cases::FEW_WAITS_MIN.is_reached_by(at.len()) && 2 * moved >= all;
    if !is_loop || !cases::LARGE_SHARE.is_reached_by(f.part(time)) {
        return None;
    }
    let found = scope.found(f.span_ns, time, &longest_first(at));
    Some(Finding {
        title: format!(
            "{} that came down go up again at once, in {} copies: both ways take {} ({})",
            bytes(moved),
            found.count,
            duration(time),
            percent(f.part(time)),
        ),
        advice:
            "The compiler copies arrays around each region: keep them on the GPU for all rounds."
                .to_owned(),
        change: scope.change("data-region", None),
        // What stays on the GPU need not be pinned.
        instead_of: match 2 * time >= f.copy_ns {
            true => &[Rule::PageableCopy],
            false => &[],
        },
        ..found
    })
}

/// Large copies up behind a kernel of a region that each follow a copy down of as many bytes at once.
#[derive(Default)]
struct Trips {
    at: Vec<(Ns, Occurrence)>,
    /// Bytes that they move, and that all copies up do.
    moved: u64,
    all: u64,
    /// How long both ways take.
    time: Ns,
}

/// What of them lies in the time looked at. The other half of one may lie before it, or behind.
fn trips(scope: &Scope, f: &DeviceFigures) -> Trips {
    let graph = scope.causes.graph();
    let mut trips = Trips::default();
    let (mut down, mut since, mut is_region) = (Vec::new(), Ns::MIN, false);
    let names = scope.trace.names();
    for &op in graph.ops.of_device(f.index) {
        let span = graph.ops.span(op);
        let is_in = |it: Span| f.span.contains(it.start);
        let in_part = |it: Span| if is_in(it) { it.len() } else { 0 };
        match graph.what(scope.trace, op) {
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
                        trips.at.push((span.len(), Occurrence::Row(place)));
                    }
                    since = span.end;
                }
            }
            What::Kernel(it) => {
                down.clear();
                is_region = is_of_region(names.full(scope.trace.shape(it.shape).name));
            }
            _ => {}
        }
    }
    trips
}

//! Arrays that go down behind each kernel and up again at once, before the CPU can have changed them. Gradients that go down to tensors
//! which might be on the GPU.

use super::pageable::Staged;
use super::{DeviceFigures, Finding, Occurrence, Rule, Scope, longest_first};
use ::program::is_of_region;
use activity::text::counted;
use activity::units::{bytes, duration, percent};
use activity::{Copy, Direction, Ns, What};
use causes::{Gap, Piece};

/// The CPU goes through memory no faster, in GB/s. Measured: a core of a server reads and writes 10 to 20.
const CPU_RATE: u64 = 50;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    arrays(scope, f).or_else(|| gradients(scope, f))
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
    let (at, moved, all) = trips(scope, f);
    // What comes down took about as long.
    let time = f.copy_ns.min(2 * at.iter().map(|it| it.0).sum::<Ns>());
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

/// Large copies up behind a kernel of a region that each follow a copy down of as many bytes at once. Beside them what they move, and
/// what all copies up do.
fn trips(scope: &Scope, f: &DeviceFigures) -> (Vec<(Ns, Occurrence)>, u64, u64) {
    let graph = scope.causes.graph();
    let (mut at, mut moved, mut all) = (Vec::new(), 0, 0);
    let (mut down, mut since, mut is_region) = (Vec::new(), Ns::MIN, false);
    let names = scope.trace.names();
    let ops = graph.ops.of_device(f.index).iter();
    for &op in ops.filter(|op| f.span.contains(graph.ops.start[**op as usize])) {
        let span = graph.ops.span(op);
        match graph.what(scope.trace, op) {
            What::Copy(it) if it.bytes <= Copy::TINY_BYTES => {}
            What::Copy(it) if it.direction == Direction::D2H => {
                down.push(it.bytes);
                since = span.end;
            }
            What::Copy(it) if it.direction == Direction::H2D => {
                all += it.bytes;
                let is_at_once = span.start.saturating_sub(since) < (it.bytes / CPU_RATE) as Ns;
                let same = down.iter().position(|bytes| *bytes == it.bytes);
                if let Some(same) = same.filter(|_| is_at_once && is_region) {
                    down.swap_remove(same);
                    moved += it.bytes;
                    at.push((span.len(), Occurrence::Row(graph.ops.place(op))));
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
    (at, moved, all)
}

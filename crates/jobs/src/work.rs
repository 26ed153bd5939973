//! A late rank whose kernels are not those of the others: whether it has more to do.
//!
//! Where two ranks run the same kernels, `delay_origin` finds where the one falls behind. Batches of another size, or layers
//! shared out unevenly, make others of them; then only sums can be compared. While the others wait for the late one and
//! have no other work, it works longer, or idles longer, or waits itself. When its kernels take longer by most of that,
//! they are the reason.

use super::rank_pair::{RankPairs, Units};
use activity::{Ns, Span};

/// A part of what a rank is late by that is the reason of it.
pub(super) const MOST: f64 = 0.5;
/// Kernels that take this much longer than another rank's are slow, or more.
pub(super) const SLOW: f64 = 1.05;

/// By how much a rank has more to do than one that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More {
    /// For how long kernels of its own ran in a step, ns on average.
    pub mine: Ns,
    /// The same of the rank that has most to do of those that wait for it.
    pub theirs: Ns,
    /// That rank, an index into the ranks.
    pub other: usize,
}

/// Of a rank that is late, and of these that wait for it; `None` where its kernels do not take longer by most of what each waits.
pub(super) fn more(
    sides: &RankPairs<'_>,
    rank: usize,
    others: &[usize],
    units: &Units<'_>,
) -> Option<More> {
    let late = sides.side(rank)?;
    let whole = units.spans.iter().copied().reduce(Span::hull)?;
    let mine = late.own.busy(whole);
    let mut nearest: Option<(Ns, usize)> = None;
    for &other in others {
        let Some(side) = sides.side(other) else {
            continue;
        };
        let on_its = |time| side.clock.invert(late.clock.apply(time));
        let span = Span::new(on_its(whole.start), on_its(whole.end));
        let of_late = side.waits.iter().filter(|wait| wait.for_rank == rank);
        let waited = of_late
            .filter(|wait| span.start <= wait.span.start && wait.span.start < span.end)
            .map(|wait| wait.exposed)
            .sum::<Ns>();
        if waited == 0 {
            continue;
        }
        let theirs = side.own.busy(span);
        let is_more = (mine - theirs) as f64 >= MOST * waited as f64;
        if !is_more || (mine as f64) < SLOW * theirs as f64 {
            return None;
        }
        nearest = nearest.max(Some((theirs, other)));
    }
    let (theirs, other) = nearest?;
    let count = (units.spans.len() as Ns).max(1);
    Some(More {
        mine: mine / count,
        theirs: theirs / count,
        other,
    })
}

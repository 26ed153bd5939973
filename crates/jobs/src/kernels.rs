//! Kernels of a rank's own beside those of another rank: whether they are slower, or more.

use rustc_hash::FxHashMap;

use super::collect::{self, Unit};
use super::input::Input;
use super::split;
use activity::{Ns, ShapeId, Span, What};
use trace::Trace;

/// Kernels that take this much longer than another rank's are slow, or more.
const SLOW: f64 = 1.05;
/// The part of a rank's kernels that must be of shapes that the other has, too, for them to be slow and not others.
const SAME: f64 = 0.5;

/// By how much a rank has more to do than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More {
    /// For how long kernels of its own ran in a stretch, ns on average.
    pub mine: Ns,
    /// The same of the other.
    pub theirs: Ns,
    /// That rank, an index into the ranks.
    pub other: usize,
}

/// Time of kernels but collectives, by shape: how often, and how long in all.
#[derive(Clone, Debug, Default)]
pub(super) struct Own(FxHashMap<ShapeId, (u64, Ns)>);

/// A rank's kernels and those of another in the same stretches.
pub(super) struct Compared {
    pub(super) more: More,
    /// How many times as long kernels of the same shapes take; `None` where most are of other shapes.
    pub(super) ratio: Option<f64>,
    /// How much longer all of them take in these stretches.
    pub(super) longer: Ns,
}

impl Own {
    /// Those that began in some stretches, which are in order.
    fn within(trace: &Trace, unit: Unit, spans: &[Span]) -> Own {
        let mut collectives: FxHashMap<ShapeId, bool> = FxHashMap::default();
        let mut sums: FxHashMap<ShapeId, (u64, Ns)> = FxHashMap::default();
        for (id, lane) in split::streams(trace, unit) {
            for row in lane.kept() {
                let span = lane.span(row);
                let next = spans.partition_point(|it| it.end <= span.start);
                let is_within = spans.get(next).is_some_and(|it| it.start <= span.start);
                let What::Kernel(kernel) = trace.what(id, row) else {
                    continue;
                };
                let is_collective = collectives.entry(kernel.shape);
                if is_within
                    && !*is_collective.or_insert_with(|| collect::is_one(trace, kernel.shape))
                {
                    let sum = sums.entry(kernel.shape).or_default();
                    *sum = (sum.0 + 1, sum.1 + span.len());
                }
            }
        }
        Own(sums)
    }

    fn time(&self) -> Ns {
        self.0.values().map(|it| it.1).sum()
    }

    /// A rank's kernels in these stretches, and those of the rank that has most to do meanwhile, of those that share a communicator with it.
    /// `None` where the rank's do not take longer.
    pub(super) fn compare(known: &Input<'_>, rank: usize, spans: &[Span]) -> Option<Compared> {
        let mine = Own::within(known.trace, known.units[rank], spans);
        let groups = known.groups.iter().filter(|it| it.ranks.contains(&rank));
        let mut others: Vec<usize> = groups.flat_map(|it| it.ranks.iter().copied()).collect();
        others.sort_unstable();
        others.dedup();
        let on_its = |other: usize| -> Vec<Span> {
            let at = |time: Ns| known.clocks[other].first(known.clocks[rank].apply(time));
            spans
                .iter()
                .map(|it| Span::new(at(it.start), at(it.end).max(at(it.start))))
                .collect()
        };
        let all = others
            .into_iter()
            .filter(|it| *it != rank)
            .map(|it| (Own::within(known.trace, known.units[it], &on_its(it)), it));
        let (theirs, other) = all.max_by_key(|it| it.0.time())?;
        let shared = mine
            .0
            .iter()
            .filter_map(|(shape, mine)| Some((mine, theirs.0.get(shape)?)));
        let (mut same, mut expected) = (0, 0.0);
        for (mine, theirs) in shared {
            same += mine.1;
            expected += theirs.1 as f64 / theirs.0 as f64 * mine.0 as f64;
        }
        let is_same = same as f64 >= SAME * mine.time() as f64;
        let ratio = is_same.then(|| same as f64 / expected.max(1.0));
        let longer = match ratio {
            Some(_) => same - expected as Ns,
            None => mine.time() - theirs.time(),
        };
        let count = (spans.len() as Ns).max(1);
        let is_longer = ratio.map_or(mine.time() as f64 >= SLOW * theirs.time() as f64, |it| {
            it >= SLOW
        });
        is_longer.then(|| Compared {
            more: More {
                mine: mine.time() / count,
                theirs: theirs.time() / count,
                other,
            },
            ratio,
            longer,
        })
    }
}

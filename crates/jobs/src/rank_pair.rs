//! Two ranks as they are held against each other: their kernels, their collectives, and the stretches that lateness is told by.

use std::sync::OnceLock;

use super::collect::Unit;
use super::delay_origin::{Own, Side};
use super::group::Group;
use super::line::Line;
use super::split::Split;
use activity::stats;
use activity::{Ns, Span};
use causes::Causes;
use figures::steps::Steps;
use trace::Trace;

/// Stretches between collectives that tell how a rank is late, where no steps do.
const STRETCHES_MIN: usize = 8;

/// What lateness is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// The program's steps.
    Step,
    /// Where none are known, stretches from one collective to the next of the communicator in which the rank has most.
    Collective,
}

/// What is known beside the collectives.
pub(super) struct Input<'a> {
    pub(super) trace: &'a Trace,
    pub(super) units: &'a [Unit],
    pub(super) groups: &'a [Group],
    pub(super) clocks: &'a [Line],
    pub(super) causes: Option<&'a Causes<'a>>,
    pub(super) steps: &'a [Steps],
    /// First to last collective, ns.
    pub(super) span: Ns,
    pub(super) noise: Ns,
}

impl Input<'_> {
    /// Parts of collectives that were matched: by them it is told whether threads help.
    pub(super) fn records(&self) -> usize {
        let rows = self.groups.iter().map(|it| it.rows() * it.ranks.len());
        rows.sum()
    }
}

/// What lateness of a rank is told by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Units<'a> {
    pub(super) unit: Stretch,
    /// In the rank's own time.
    pub(super) spans: &'a [Span],
    /// Their median length, ns.
    pub(super) median: Ns,
}

/// What is held against each other, by rank, made when first asked for.
pub(super) struct RankPairs<'a> {
    pub(super) known: &'a Input<'a>,
    split: &'a Split,
    made: Vec<MadeOnce>,
}

/// Of one rank.
#[derive(Default)]
struct MadeOnce {
    kernels: OnceLock<Own>,
    collectives: OnceLock<Vec<Span>>,
    /// From one collective to the next.
    stretches: OnceLock<(Vec<Span>, Ns)>,
}

impl<'a> RankPairs<'a> {
    pub(super) fn new(known: &'a Input<'a>, split: &'a Split) -> RankPairs<'a> {
        let made = known.units.iter().map(|_| MadeOnce::default());
        RankPairs {
            known,
            split,
            made: made.collect(),
        }
    }

    /// A rank's steps, else its stretches between collectives where there are enough of them.
    pub(super) fn units(&self, rank: usize) -> Option<Units<'_>> {
        let process = self.known.units[rank].process;
        let mut all = self.known.steps.iter();
        if let Some(steps) = all.find(|steps| steps.process == process) {
            return Some(Units {
                unit: Stretch::Step,
                spans: steps.steady(),
                median: steps.main().median_ns,
            });
        }
        let (spans, median) = self.made[rank]
            .stretches
            .get_or_init(|| self.stretches(rank));
        (spans.len() >= STRETCHES_MIN).then_some(Units {
            unit: Stretch::Collective,
            spans,
            median: *median,
        })
    }

    fn stretches(&self, rank: usize) -> (Vec<Span>, Ns) {
        let groups = self.known.groups.iter();
        let of_groups = groups.filter_map(|group| {
            let slot = group.slot(rank)?;
            let rows = 0..group.rows();
            let starts = rows.filter_map(|row| Some(group.part(row, slot)?.span.start));
            Some(starts.collect::<Vec<Ns>>())
        });
        let mut starts = of_groups.max_by_key(Vec::len).unwrap_or_default();
        starts.sort_unstable();
        let two = starts.windows(2).map(|two| Span::new(two[0], two[1]));
        let spans: Vec<Span> = two.filter(|span| !span.is_empty()).collect();
        let lengths: Vec<f64> = spans.iter().map(|span| span.len() as f64).collect();
        let median = stats::median(&lengths).unwrap_or(0.0) as Ns;
        (spans, median)
    }

    /// When the collectives of two ranks began, on each: those of the communicator in which they share most.
    pub(super) fn begun(&self, rank: usize, other: usize) -> [Vec<Ns>; 2] {
        let groups = self.known.groups.iter();
        let shared = groups.filter_map(|group| {
            let (a, b) = (group.slot(rank)?, group.slot(other)?);
            let rows = (0..group.rows()).filter_map(|row| {
                let (a, b) = (group.part(row, a)?, group.part(row, b)?);
                Some((a.span.start, b.span.start))
            });
            Some(rows.unzip())
        });
        let most = shared.max_by_key(|(starts, _): &(Vec<Ns>, Vec<Ns>)| starts.len());
        most.map_or_else(Default::default, |(a, b)| [a, b])
    }

    pub(super) fn side(&self, rank: usize) -> Option<Side<'_>> {
        let units = self.units(rank)?;
        let unit = self.known.units[rank];
        let own = self.made[rank]
            .kernels
            .get_or_init(|| Own::of(self.known.trace, unit));
        let collectives = self.made[rank].collectives.get_or_init(|| {
            let groups = self.known.groups.iter();
            let mine = groups.flat_map(|group| {
                let slot = group.slot(rank);
                slot.into_iter().flat_map(|slot| group.spans(slot))
            });
            Span::merged(mine.collect())
        });
        Some(Side {
            own,
            clock: &self.known.clocks[rank],
            steps: units.spans,
            waits: &self.split.waits[rank],
            collectives,
        })
    }
}

//! Waiting and lateness by rank and step: what a map of a job is drawn from.

use super::JobAnalysis;
use super::late::step_of;
use activity::{Ns, Span};
use figures::steps::Steps;

/// Stretches that are told apart; more steps are taken together.
const MOST: usize = 256;
/// Slices of a job without steps.
const SLICES: Ns = 64;

/// What a rank did in a stretch, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// It waited in collectives for others, and nothing else ran on its device.
    pub waited: Ns,
    /// By how much it came later than the last but one, added up.
    pub late: Ns,
}

/// A job as rows of ranks and columns of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    /// On the clock of all, in order. They are the steady steps of the first rank that has some, joined until there are
    /// no more than 256, or slices of the time.
    pub stretches: Vec<Span>,
    /// How many steps they are; `None` for slices of the time.
    pub steps: Option<usize>,
    /// By rank and stretch.
    pub spots: Vec<Vec<Spot>>,
}

impl Heat {
    /// The map of a job.
    pub fn of(ranks: &JobAnalysis, steps: &[Steps]) -> Heat {
        let (stretches, steps) = stretches(ranks, steps);
        let place = |time: Ns| step_of(&stretches, time);
        let mut spots = vec![vec![Spot::default(); stretches.len()]; ranks.ranks.len()];
        for (rank, waits) in ranks.split.waits.iter().enumerate() {
            for wait in waits {
                if let Some(at) = place(ranks.aligned(rank, wait.span.start)) {
                    spots[rank][at].waited += wait.exposed;
                }
            }
        }
        for late in &ranks.split.late {
            if let Some(at) = place(ranks.aligned(late.rank, late.start)) {
                spots[late.rank][at].late += late.by;
            }
        }
        Heat {
            stretches,
            steps,
            spots,
        }
    }

    /// A rank's row in no more than so many columns, each the mean of the stretches in it.
    pub fn row(&self, rank: usize, columns: usize) -> Vec<Spot> {
        let count = self.stretches.len();
        let columns = columns.min(count);
        let Some(spots) = self.spots.get(rank) else {
            return Vec::new();
        };
        (0..columns)
            .map(|x| {
                let here = &spots[x * count / columns..(x + 1) * count / columns];
                let mean = |what: fn(&Spot) -> Ns| {
                    here.iter().map(what).sum::<Ns>() / here.len().max(1) as Ns
                };
                Spot {
                    waited: mean(|it| it.waited),
                    late: mean(|it| it.late),
                }
            })
            .collect()
    }
}

fn stretches(ranks: &JobAnalysis, steps: &[Steps]) -> (Vec<Span>, Option<usize>) {
    let of_rank = ranks.ranks.iter().enumerate().find_map(|(i, rank)| {
        let mut all = steps.iter();
        Some((i, all.find(|steps| steps.process == rank.process)?))
    });
    let aligned = |rank: usize, span: Span| {
        let start = ranks.aligned(rank, span.start);
        Span::new(start, ranks.aligned(rank, span.end).max(start))
    };
    if let Some((rank, steps)) = of_rank {
        let steady = steps.steady();
        let together = steady.chunks(steady.len().div_ceil(MOST).max(1));
        let spans = together.filter_map(|all| {
            let all = all.iter().copied().reduce(Span::hull)?;
            Some(aligned(rank, all))
        });
        return (spans.collect(), Some(steady.len()));
    }
    let all = ranks.ranks.iter().enumerate();
    let hull = all
        .map(|(i, rank)| aligned(i, rank.span))
        .reduce(Span::hull);
    let hull = hull.unwrap_or_default();
    let edge =
        |i: Ns| hull.start + (i128::from(hull.len()) * i128::from(i) / i128::from(SLICES)) as Ns;
    let slices = (0..SLICES).map(|i| Span::new(edge(i), edge(i + 1)));
    (slices.collect(), None)
}

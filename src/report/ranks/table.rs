//! The table of ranks: what each did with its time, and why its GPU was idle.

use super::{IdleShare, RankReport};
use crate::report::table::Column;
use activity::Ns;
use activity::text::{printable, width};
use activity::units::{duration, percent, share};

/// A cause of idle time of which a line tells has this part of the time.
const IDLE_TOLD: f64 = 0.005;

pub struct Means<'a> {
    pub name: String,
    pub ranks: Vec<&'a RankReport>,
}

/// What a table tells of ranks.
#[rustfmt::skip]
pub fn columns<'a>() -> Vec<Column<Means<'a>>> {
    let column = Column::<Means<'a>>::new;
    vec![
        column("rank", 21, |it| printable(&it.name)),
        column("working", 7, |it| it.part(|rank| rank.busy_ns - rank.exposed_wait_ns)),
        column("waiting", 7, |it| it.part(|rank| rank.exposed_wait_ns)),
        column("idle", 5, |it| it.part(|rank| rank.span.len() - rank.busy_ns)).dim(),
        column("transfer", 0, |it| it.mean(|rank| rank.transfer_ns)),
        column("last", 5, Means::last),
        column("late max", 8, |it| duration(it.ranks.iter().map(|rank| rank.latest_ns).max().unwrap_or(0))),
        column("clock", 9, |it| it.clock(|rank| duration(rank.offset_ns), "wall")).dim().spare(1),
        column("drift", 0, |it| it.clock(|rank| format!("{:+.1} ppm", rank.drift_ppm), "")),
        // As many as there is room for: see `because`.
        Column::rest("idle because", 17, |_| String::new()).dim(),
    ]
}

impl<'a> Means<'a> {
    /// Of one rank.
    pub fn one(rank: &'a RankReport) -> Self {
        let (name, ranks) = (rank.called(), vec![rank]);
        Means { name, ranks }
    }

    fn sum(&self, what: fn(&RankReport) -> Ns) -> Ns {
        let all = self.ranks.iter().map(|rank| what(rank));
        all.fold(0, Ns::saturating_add)
    }

    fn mean(&self, what: fn(&RankReport) -> Ns) -> String {
        duration(self.sum(what) / self.ranks.len().max(1) as Ns)
    }

    /// A part of the time from first to last operation.
    fn part(&self, what: fn(&RankReport) -> Ns) -> String {
        percent(share(self.sum(what), self.sum(|rank| rank.span.len())))
    }

    /// The collectives at which they were last.
    fn last(&self) -> String {
        let last: u64 = self.ranks.iter().map(|rank| rank.last_arrivals).sum();
        let judged: u64 = self.ranks.iter().map(|rank| rank.collectives).sum();
        percent(last as f64 / judged.max(1) as f64)
    }

    /// Of the clock of one rank, where it was aligned.
    fn clock(&self, told: fn(&RankReport) -> String, otherwise: &str) -> String {
        match self.ranks[..] {
            [rank] if rank.residual_ns.is_none() => otherwise.to_owned(),
            [rank] => told(rank),
            _ => String::new(),
        }
    }

    /// Why GPUs were idle: the main causes where there is room for them and their parts of the time, else the first.
    pub fn because(&self, room: usize) -> String {
        let all = self.sum(|rank| rank.span.len());
        let causes = IdleShare::of_all(&self.ranks);
        let shares = causes.iter().map(|it| (it, share(it.total_ns, all)));
        let told: Vec<_> = shares.filter(|(_, share)| *share >= IDLE_TOLD).collect();
        let mut text = String::new();
        for (cause, share) in &told {
            let between = if text.is_empty() { "" } else { ", " };
            let more = format!("{text}{between}{} {}", cause.words(), percent(*share));
            if width(&more) > room {
                break;
            }
            text = more;
        }
        match told.first() {
            Some((first, _)) if text.is_empty() => first.words(),
            _ => text,
        }
    }
}

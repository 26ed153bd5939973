//! How the clocks of a job's ranks lie to each other, for exports. It says on which clock the times are, and how that
//! one lies to those on which they were recorded.

use serde::Serialize;

use activity::Ns;
use jobs::Alignment;
use trace::Trace;

/// The clocks of a job.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RankClocks {
    /// "collectives", or "wall clock" where no collective tells.
    pub(super) clocks: &'static str,
    /// "aligned": times are on the clock of all; "recorded": each process's are on its own.
    pub(super) times: &'static str,
    /// Median distance of a collective's ends from each other after that, ns.
    pub(super) residual_ns: Option<Ns>,
    /// Collectives that it rests on.
    pub(super) collectives: usize,
    pub(super) ranks: Vec<RankClock>,
}

/// One rank's: on the clock of all a time `t` of it as it was recorded is `t + offset_ns + drift_ppm / 1e6 * (t - at_ns)`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RankClock {
    pub(super) rank: Option<u32>,
    pub(super) name: String,
    pub(super) host: String,
    /// The operating system's id of its process.
    pub(super) process: u32,
    /// Its device's id.
    pub(super) device: u32,
    pub(super) at_ns: Ns,
    pub(super) offset_ns: Ns,
    pub(super) drift_ppm: f64,
    /// Null where no collective tells.
    pub(super) residual_ns: Option<Ns>,
}

/// `None` for what is no job of several ranks.
pub(super) fn find(trace: &Trace) -> Option<RankClocks> {
    let job = Alignment::find(trace)?;
    let clocks = &job.clocks;
    let ranks = job.ranks.iter().enumerate().map(|(i, rank)| {
        let line = job.line_of_recorded(trace, i);
        RankClock {
            rank: rank.number,
            name: rank.name.clone(),
            host: rank.host.clone(),
            process: trace.processes()[rank.process].info.pid,
            device: trace.devices()[rank.device].info.id,
            at_ns: line.at,
            offset_ns: line.offset,
            drift_ppm: line.drift * 1e6,
            residual_ns: clocks.residuals[i].map(|it| it.median_ns as Ns),
        }
    });
    Some(RankClocks {
        clocks: match clocks.residual {
            Some(_) => "collectives",
            None => "wall clock",
        },
        times: match trace.is_on_one_clock() {
            true => "aligned",
            false => "recorded",
        },
        residual_ns: clocks.residual.map(|it| it.median_ns as Ns),
        collectives: clocks.residual.map_or(0, |it| it.count),
        ranks: ranks.collect(),
    })
}

//! How the clocks of a job's ranks lie to each other, for exports. It says on which clock the times are, and how that
//! one lies to those on which they were recorded.

use serde_json::{Value, json};

use activity::Ns;
use jobs::Alignment;
use trace::Trace;

/// The clocks of a job; `None` for what is no job of several ranks. `clocks` is "wall clock" where no collective tells, and `times`
/// "recorded" where each process's are on its own. On the clock of all a time `t` of a rank as it was recorded is
/// `t + offset_ns + drift_ppm / 1e6 * (t - at_ns)`.
pub(super) fn find(trace: &Trace) -> Option<Value> {
    let job = Alignment::find(trace)?;
    let clocks = &job.clocks;
    let ranks = job.ranks.iter().enumerate().map(|(i, rank)| {
        let line = job.line_of_recorded(trace, i);
        json!({
            "rank": rank.number,
            "name": rank.name,
            "host": rank.host,
            "process": trace.processes()[rank.process].info.pid,
            "device": trace.devices()[rank.device].info.id,
            "at_ns": line.at,
            "offset_ns": line.offset,
            "drift_ppm": line.drift * 1e6,
            "residual_ns": clocks.residuals[i].map(|it| it.median_ns as Ns),
        })
    });
    Some(json!({
        "clocks": if clocks.residual.is_some() { "collectives" } else { "wall clock" },
        "times": if trace.is_on_one_clock() { "aligned" } else { "recorded" },
        "residual_ns": clocks.residual.map(|it| it.median_ns as Ns),
        "collectives": clocks.residual.map_or(0, |it| it.count),
        "ranks": ranks.collect::<Vec<_>>(),
    }))
}

//! What is said of records that were let go to stay within a budget of memory: their sums.

use serde::Serialize;

use activity::Ns;
use activity::units::{count, duration, percent, share};
use trace::{Measure, Trace};

/// The records that were let go. Figures of the report are of those that came after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EvictedRecords {
    /// Single records of which only sums are left.
    pub records: u64,
    /// From the timeline's first record to where single records begin.
    pub until_ns: Ns,
    /// The whole run, what was let go included.
    pub devices: Vec<Sums>,
}

/// One device over the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Its id.
    pub device: u32,
    /// First operation's start to the last one's end.
    pub span_ns: Ns,
    /// Anything ran.
    pub busy_ns: Ns,
    /// A kernel ran.
    pub compute_ns: Ns,
    /// A copy ran.
    pub copy_ns: Ns,
}

/// What was let go; `None` when nothing was.
pub(super) fn find(trace: &Trace) -> Option<EvictedRecords> {
    let forgotten = trace.evicted()?;
    let devices = trace.devices().iter().filter_map(|device| {
        let total = |measure| device.usage.total(measure);
        Some(Sums {
            device: device.info.id,
            span_ns: device.usage.span()?.len(),
            busy_ns: total(Measure::Busy),
            compute_ns: total(Measure::Compute),
            copy_ns: total(Measure::Copy),
        })
    });
    Some(EvictedRecords {
        records: forgotten.rows,
        until_ns: forgotten.before - trace.extent()?.start,
        devices: devices.collect(),
    })
}

impl EvictedRecords {
    /// In sentences.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "LET GO: the single records of the first {} ({}), to stay within --memory; figures are of what came after",
            duration(self.until_ns),
            count(self.records),
        )];
        lines.extend(self.devices.iter().map(|d| {
            format!(
                "GPU {} over the whole run of {}: busy {}, computing {}, copying {}",
                d.device,
                duration(d.span_ns),
                percent(share(d.busy_ns, d.span_ns)),
                percent(share(d.compute_ns, d.span_ns)),
                percent(share(d.copy_ns, d.span_ns)),
            )
        }));
        lines
    }
}

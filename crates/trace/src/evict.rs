//! Evicts single records of an old span to save memory, and keeps their sums.

use super::{Device, Lane, LaneId, Trace};
use activity::Ns;

/// Records between two checks of how much memory they take.
const CHECK_EVERY: usize = 1 << 16;
/// Eviction must free at least this part of the rows: less is not worth what it hides.
const WORTH: usize = 8;

/// What a timeline has evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Records before this time may be summarised, ns.
    pub before: Ns,
    /// Rows that are summarised.
    pub rows: u64,
}

impl Trace {
    /// Evicts whole chunks of single records that start before `time`. It keeps the rest of a chunk, and the last chunk
    /// of each lane. Their sums stay: busy time of lanes, every figure of devices, bytes moved. A sum is exact where
    /// the window's edges lie outside the evicted span, and in proportion within it. Stack samples and windows of hardware
    /// from before it go without a sum.
    ///
    /// Rows keep their indices. Nobody may ask for an evicted row: a lane's rows begin at [`Lane::first_row`].
    pub fn evict_before(&mut self, time: Ns) {
        let Some(extent) = self.extent else {
            return;
        };
        let before = time.clamp(extent.start, extent.end);
        let before = before.max(self.evicted.map_or(Ns::MIN, |it| it.before));
        for lane in &mut self.lanes {
            lane.evict_before(before);
        }
        for device in &mut self.devices {
            device.evict_before(before);
        }
        for process in &mut self.processes {
            process.sampled.evict_before(before);
            process.off_cpu.evict_before(before);
        }
        for process in 0..self.processes.len() {
            let threads = self.threads_in(process).map(|it| it.1);
            let lanes = self.streams_in(process).map(|it| it.1).chain(threads);
            let kept = lanes.filter(|it| it.kept().start > 0 && !it.kept().is_empty());
            let first = kept.map(|it| it.correlation(it.kept().start)).min();
            self.processes[process]
                .graphs
                .evict_before(first.unwrap_or(0));
        }
        let lanes = &self.lanes;
        let is_kept = |call: u32, lane: LaneId| lanes[lane].find_correlation(call).is_some();
        self.far_calls.retain(|key, lane| is_kept(key.1, *lane));
        self.hardware.evict_before(before);
        let rows = |lane: &Lane| lane.kept().start as u64;
        self.evicted = Some(Evicted {
            before,
            rows: self.lanes.iter().map(rows).sum(),
        });
        self.revision += 1;
    }

    /// Makes it evict the oldest records whenever it takes more than this many bytes; `None` for no limit.
    pub fn set_limit(&mut self, bytes: Option<usize>) {
        self.limit = bytes;
    }

    /// Evicts the older third of the records where the timeline takes more than its limit and eviction frees memory. It
    /// checks the memory after every [`CHECK_EVERY`] records.
    pub(super) fn keep_within_limit(&mut self) {
        let Some(limit) = self.limit else {
            return;
        };
        if self.unchecked < CHECK_EVERY {
            return;
        }
        self.unchecked = 0;
        let (Some(extent), true) = (self.extent, self.memory() > limit) else {
            return;
        };
        // Only whole chunks are freed, and chunks of similar lanes end at about the same time. Merely hiding rows gains nothing.
        let stay = |time: Ns| -> usize { self.lanes.iter().map(|it| it.rows_left(time)).sum() };
        let (all, least) = (stay(extent.start), stay(extent.end));
        let most = match all / 3 * 2 {
            most if most >= least => most,
            _ if all - least >= all / WORTH => least + (all - least) / 2,
            _ => return,
        };
        let (mut low, mut high) = (extent.start, extent.end);
        while low < high {
            let middle = low.midpoint(high);
            if stay(middle) <= most {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.evict_before(low);
    }

    /// What was evicted; `None` if nothing was.
    pub fn evicted(&self) -> Option<Evicted> {
        self.evicted
    }
}

impl Device {
    fn evict_before(&mut self, time: Ns) {
        self.usage.evict_before(time);
        for bytes in &mut self.copied_bytes {
            bytes.evict_before(time);
        }
    }
}

//! Forgets single records of an old stretch, and keeps what they add up to.

use super::{Device, Lane, Trace};
use crate::activity::{Ns, Span};

/// ns between two points at which sums of a forgotten stretch are exact, at least.
const STEP_MIN: Ns = 1 << 20;
/// Records between two looks at how much memory they take.
const LOOK: usize = 1 << 16;
/// Points of a forgotten stretch at most.
const POINTS_MAX: Ns = 4096;

/// What of a timeline was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Records before this time may be summarised, ns.
    pub before: Ns,
    /// Sums of windows whose edges are multiples of this are exact there, ns; of others, in proportion.
    pub resolution: Ns,
    /// Rows that are summarised.
    pub rows: u64,
}

impl Trace {
    /// Forgets single records that start before `time`, whole chunks of them: the rest of a chunk stays, and of each
    /// lane the last chunk. Their sums stay: busy time of lanes, every figure of devices, bytes moved, exact for windows
    /// whose edges are multiples of the resolution or lie behind the stretch. The resolution grows with its length, so that
    /// memory does not. Stack samples and windows of hardware from before it go without a sum.
    ///
    /// Rows keep their indices. One that was forgotten must not be asked for: a lane's rows begin
    /// at [`Lane::first_row`].
    pub fn forget_before(&mut self, time: Ns) {
        let Some(extent) = self.extent else {
            return;
        };
        let before = time.clamp(extent.start, extent.end);
        let before = before.max(self.forgotten.before);
        let mut step = self.forgotten.resolution.max(STEP_MIN);
        while (i128::from(before) - i128::from(extent.start)) / i128::from(step)
            > i128::from(POINTS_MAX)
        {
            step *= 2;
        }
        for lane in &mut self.lanes {
            lane.forget_before(before, step);
        }
        for device in &mut self.devices {
            device.forget_before(before, step);
        }
        for process in &mut self.processes {
            process.sampled.forget_before(before);
            process.off_cpu.forget_before(before);
        }
        self.hardware.forget_before(before);
        let rows = |lane: &Lane| lane.kept().start as u64;
        self.forgotten = Forgotten {
            before,
            resolution: step,
            rows: self.lanes.iter().map(rows).sum(),
        };
        self.revision += 1;
    }

    /// Has it forget what is oldest whenever it takes more than this many bytes; `None` for no limit.
    pub fn set_limit(&mut self, bytes: Option<usize>) {
        self.limit = bytes;
    }

    /// Forgets the older third of the records where the timeline takes more than its limit. Memory is looked at after every
    /// [`LOOK`] records.
    pub(super) fn keep_within_limit(&mut self, taken: usize) {
        let Some(limit) = self.limit else {
            return;
        };
        self.unlooked += taken;
        if self.unlooked < LOOK {
            return;
        }
        self.unlooked = 0;
        let (Some(extent), true) = (self.extent, self.memory() > limit) else {
            return;
        };
        let since = |time: Ns| -> usize {
            let window = Span::new(time, Ns::MAX);
            let lanes = self.lanes.iter();
            lanes.map(|lane| lane.starting(window).len()).sum()
        };
        let most = since(extent.start) / 3 * 2;
        let (mut low, mut high) = (extent.start, extent.end);
        while low < high {
            let middle = low.midpoint(high);
            if since(middle) <= most {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.forget_before(low);
    }

    /// What was forgotten; `None` if nothing was.
    #[must_use]
    pub fn forgotten(&self) -> Option<Forgotten> {
        (self.forgotten.resolution > 0).then_some(self.forgotten)
    }
}

impl Device {
    fn forget_before(&mut self, time: Ns, step: Ns) {
        self.usage.forget_before(time, step);
        for moved in &mut self.moved {
            moved.forget_before(time, step);
        }
    }
}

//! Forgets single records of an old stretch, and keeps what they add up to.

use super::{Device, Lane, Trace, usage};
use activity::Ns;

/// ns between two points at which sums of a forgotten stretch are exact, at least.
const STEP_MIN: Ns = 1 << 20;
/// Records between two looks at how much memory they take.
const LOOK: usize = 1 << 16;
/// Points of a forgotten stretch at most, and at least where the sums of many lanes would take more than …
const POINTS: [usize; 2] = [4096, 64];
/// … this part of a limit.
const SUMS: usize = 8;
/// Letting go that would not free this part of the rows is not worth what it hides.
const WORTH: usize = 8;
/// Bytes that a device has at each point: its times, and the bytes moved in each direction.
const DEVICE_POINT: usize = usage::POINT + size_of::<[f64; 4]>();

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
        let points = self.points_most() as i128;
        while (i128::from(before) - i128::from(extent.start)) / i128::from(step) > points {
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

    /// Forgets the older third of the records where the timeline takes more than its limit, and that frees memory. Memory is looked at after
    /// every [`LOOK`] records.
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
        // Rows go by whole chunks, which of many lanes that are alike end all at about one time: what would only be hidden is no gain.
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
        self.forget_before(low);
    }

    /// Points of a forgotten stretch, so that the sums of all lanes and devices leave room for records.
    fn points_most(&self) -> usize {
        let [most, least] = POINTS;
        let point = self.lanes.len() * size_of::<Ns>() + self.devices.len() * DEVICE_POINT;
        let room = self.limit.map_or(usize::MAX, |limit| limit / SUMS);
        (room / point.max(1)).clamp(least, most)
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

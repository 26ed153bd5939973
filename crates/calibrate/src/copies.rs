//! Which record of the calibration gives which figure about copies.

use activity::{Direction, Ns};
use profile::RAMP_BYTES;

use crate::figures::{KIB, LARGE, MIB, ProfileBuilder, put, rate};
use crate::observe::Passes;

impl<'a> ProfileBuilder<'a> {
    pub(crate) fn copies(&mut self) {
        let pinned = self.passes("pinned");
        let both = self.passes("both_ways");
        let within = self.passes("within");
        let time =
            |passes: &Passes<'a>, direction, bytes| passes.median(|s| s.copies(direction, bytes));
        let (h2d, d2h, d2d) = (Direction::H2D, Direction::D2H, Direction::D2D);
        put!(self, copy.h2d_fixed_ns, time(&pinned, h2d, 4));
        put!(self, copy.d2h_fixed_ns, time(&pinned, d2h, 4));
        let (fixed_up, fixed_down) = (
            self.profile.copy.h2d_fixed_ns,
            self.profile.copy.d2h_fixed_ns,
        );
        let up = rate(LARGE, time(&pinned, h2d, LARGE), fixed_up);
        let down = rate(LARGE, time(&pinned, d2h, LARGE), fixed_down);
        put!(self, copy.h2d_gbps, up);
        put!(self, copy.d2h_gbps, down);
        let up = rate(64 * MIB, time(&both, h2d, 64 * MIB), fixed_up);
        let down = rate(64 * MIB, time(&both, d2h, 64 * MIB), fixed_down);
        put!(self, copy.h2d_shared_gbps, up);
        put!(self, copy.d2h_shared_gbps, down);
        put!(self, copy.d2d_fixed_ns, time(&within, d2d, 4 * KIB));
        let fixed = self.profile.copy.d2d_fixed_ns;
        let within = rate(LARGE, time(&within, d2d, LARGE), fixed);
        put!(self, copy.d2d_gbps, within);
        let usual = (RAMP_BYTES as f64 / self.profile.copy.h2d_gbps) as Ns;
        let ramp = time(&pinned, h2d, RAMP_BYTES).map(|ns| ns - fixed_up - usual);
        put!(self, copy.h2d_ramp_ns, ramp.map(|ns| ns.max(0)));
    }
}

//! Which record of the calibration gives which figure about copies.

use activity::{Direction, Ns};
use profile::{Pageable, RAMP_BYTES};

use crate::figures::{KIB, LARGE, MIB, ProfileBuilder, put, rate};
use crate::observe::{Passes, later};

/// Sizes of pageable copies that are measured.
const STAGED: [u64; 8] = [
    64 * KIB,
    256 * KIB,
    MIB,
    2 * MIB,
    4 * MIB,
    16 * MIB,
    64 * MIB,
    LARGE,
];

impl<'a> ProfileBuilder<'a> {
    pub(crate) fn copies(&mut self) {
        let pinned = self.passes("pinned");
        let both = self.passes("both_ways");
        let inline = self.passes("inline");
        let within = self.passes("within");
        let time =
            |passes: &Passes<'a>, direction, bytes| passes.median(|s| s.copies(direction, bytes));
        let copy_call = self.profile.api.copy_ns;
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
        let call = inline.mean(|s| s.calls("cuMemcpyHtoDAsync"));
        put!(self, copy.inline_gbps, rate(32 * KIB, call, copy_call));
        let usual = (RAMP_BYTES as f64 / self.profile.copy.h2d_gbps) as Ns;
        let ramp = time(&pinned, h2d, RAMP_BYTES).map(|ns| ns - fixed_up - usual);
        put!(self, copy.h2d_ramp_ns, ramp.map(|ns| ns.max(0)));
        // One GPU cannot measure those between two; the driver decides and documents the others.
        self.missing.extend([
            "copy.inline_bytes",
            "copy.stage_bytes",
            "copy.p2p_gbps",
            "copy.p2p_fixed_ns",
        ]);
    }

    /// How fast the host stages pageable copies. The calls tell, because the record of such a copy does
    /// not cover what the host does before it or after it.
    pub(crate) fn staging(&mut self) {
        let [fresh, again, down] = ["fresh", "again", "down"].map(|kind| {
            let parts = ["small", "middle", "large"].map(|part| format!("{kind}_{part}"));
            Passes(parts.iter().flat_map(|v| self.passes(v).0).collect())
        });
        let (l, copy_call) = (&self.profile.latency, self.profile.api.copy_ns);
        let c = &self.profile.copy;
        let (up, out_of) = (Direction::H2D, Direction::D2H);
        let call = |passes: &Passes<'a>, name: &str, direction, bytes| {
            // A cache that has not seen the memory for long takes several copies to keep it. The middle one: what now and then
            // takes twice as long has met somebody else's traffic.
            passes.median(|s| later(s.copy_calls(name, direction, bytes)))
        };
        let table: Option<Vec<Pageable>> = STAGED
            .iter()
            .map(|&bytes| {
                // What a download has written is not in the cache; what was uploaded before, is.
                let fresh = call(&fresh, "cuMemcpyHtoD", up, bytes);
                let again = call(&again, "cuMemcpyHtoD", up, bytes);
                // In a row: after an upload a download waits for the end of that.
                let out = call(&down, "cuMemcpyDtoH", out_of, bytes);
                let piece = bytes.min(c.stage_bytes) as f64 / c.d2h_gbps;
                let around = copy_call + l.copy_ns + c.d2h_fixed_ns + piece as Ns + l.wake_ns;
                Some(Pageable {
                    bytes,
                    h2d_gbps: rate(bytes, fresh, copy_call)?,
                    h2d_again_gbps: rate(bytes, again, copy_call),
                    d2h_gbps: rate(bytes, out, around)?,
                })
            })
            .collect();
        put!(self, copy.pageable, table);
    }
}

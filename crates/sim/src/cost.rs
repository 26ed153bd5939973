//! How long things take by a profile: copies by size and kind of memory, kernels by what they do.

use super::program::{Engine, Load, Returns};
use activity::occupancy;
use activity::{Direction, LaunchShape, MemoryKind, Ns};
use profile::{Entry, Pageable, Profile, RAMP_BYTES};
use scenario::plan::LaunchSpec;

/// How a copy runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CopyCost {
    pub engine: Engine,
    /// Time on it.
    pub ns: Ns,
    /// Host time of the call beside waiting.
    pub call_ns: Ns,
    /// When even the asynchronous call returns.
    pub returns: Returns,
}

/// Nanoseconds that `bytes` take at `gbps` (10^9 bytes a second, which is bytes per nanosecond).
pub(super) fn transfer_ns(bytes: u64, gbps: f64) -> Ns {
    (bytes as f64 / gbps).round() as Ns
}

/// The cost of a copy of `bytes`. `again` is how many bytes the host has read since it last read these, these
/// included, where its cache can have kept them.
pub(super) fn copy(
    profile: &Profile,
    direction: Direction,
    from: MemoryKind,
    to: MemoryKind,
    bytes: u64,
    again: Option<u64>,
) -> CopyCost {
    let c = &profile.copy;
    let at_once = |engine, ns| CopyCost {
        engine,
        ns,
        call_ns: profile.api.copy_ns,
        returns: Returns::AtOnce,
    };
    match direction {
        Direction::H2D if from == MemoryKind::Pageable => staged_in(profile, bytes, again),
        Direction::H2D => at_once(Engine::H2D, pinned_h2d_ns(profile, bytes)),
        Direction::D2H if to == MemoryKind::Pageable => staged_out(profile, bytes),
        Direction::D2H => at_once(Engine::D2H, pinned_d2h_ns(profile, bytes)),
        Direction::P2P => at_once(
            Engine::Peer,
            c.p2p_fixed_ns + transfer_ns(bytes, c.p2p_gbps),
        ),
        Direction::D2D | Direction::Other => {
            at_once(Engine::D2D, c.d2d_fixed_ns + transfer_ns(bytes, c.d2d_gbps))
        }
    }
}

fn pinned_h2d_ns(profile: &Profile, bytes: u64) -> Ns {
    let c = &profile.copy;
    let ramp = bytes.min(RAMP_BYTES) as f64 / RAMP_BYTES as f64 * c.h2d_ramp_ns as f64;
    c.h2d_fixed_ns + ramp.round() as Ns + transfer_ns(bytes, c.h2d_gbps)
}

fn pinned_d2h_ns(profile: &Profile, bytes: u64) -> Ns {
    let c = &profile.copy;
    c.d2h_fixed_ns + transfer_ns(bytes, c.d2h_gbps)
}

/// A pageable copy to the device. The host puts the bytes into the command or, in pieces, into a pinned buffer. The
/// engine starts when the first piece is there. It is done a piece after the host, which does not wait for that.
fn staged_in(profile: &Profile, bytes: u64, again: Option<u64>) -> CopyCost {
    let c = &profile.copy;
    let gbps = match again {
        _ if bytes <= c.inline_bytes => c.inline_gbps,
        Some(since) => interpolated(profile, since, |p| p.h2d_again_gbps.unwrap_or(p.h2d_gbps)),
        None => interpolated(profile, bytes, |p| p.h2d_gbps),
    };
    let piece = bytes.min(c.stage_bytes);
    CopyCost {
        engine: Engine::H2D,
        ns: transfer_ns(bytes - piece, gbps) + pinned_h2d_ns(profile, piece),
        call_ns: profile.api.copy_ns + transfer_ns(piece, gbps),
        returns: if bytes > piece {
            Returns::Staged(transfer_ns(bytes - piece, gbps))
        } else {
            Returns::AtOnce
        },
    }
}

/// A pageable copy to the host: the reverse. The host moves the last piece when the engine is done.
fn staged_out(profile: &Profile, bytes: u64) -> CopyCost {
    let c = &profile.copy;
    let gbps = interpolated(profile, bytes, |p| p.d2h_gbps);
    let piece = bytes.min(c.stage_bytes);
    CopyCost {
        engine: Engine::D2H,
        ns: transfer_ns(bytes - piece, gbps) + pinned_d2h_ns(profile, piece),
        call_ns: profile.api.copy_ns,
        returns: Returns::After(transfer_ns(piece, gbps)),
    }
}

/// How fast the host stages a copy, between the profile's sizes by the logarithm of the size.
fn interpolated(profile: &Profile, bytes: u64, gbps: impl Fn(&Pageable) -> f64) -> f64 {
    let table = &profile.copy.pageable;
    let gbps = |i: usize| gbps(&table[i]);
    let above = table.partition_point(|p| p.bytes < bytes);
    if above == 0 {
        return gbps(0);
    }
    if above == table.len() {
        return gbps(above - 1);
    }
    let log = |b: u64| (b.max(1) as f64).ln();
    let (low, high) = (log(table[above - 1].bytes), log(table[above].bytes));
    let part = (log(bytes) - low) / (high - low);
    gbps(above - 1) + part * (gbps(above) - gbps(above - 1))
}

/// Memsets up to this size go with the command; a kernel carries out larger ones. (The size is an estimate: of 4
/// bytes and of 8 MiB it is known.)
const INLINE_MEMSET: u64 = 64 << 10;

/// Host time of a call that sets memory.
pub(super) fn memset_call_ns(profile: &Profile, bytes: u64) -> Ns {
    if bytes <= INLINE_MEMSET {
        profile.api.memset_ns
    } else {
        profile.api.launch_ns
    }
}

/// The cost of a memset: a kernel that only writes.
pub(super) fn memset(profile: &Profile, bytes: u64) -> (Engine, Ns) {
    let gbps = profile.kernel.memset_gbps * l2_gain(profile, bytes);
    let ns = profile.kernel.fixed_ns + transfer_ns(bytes, gbps);
    // A block writes a few KiB at least; with a megabyte the memory is the limit, not the SMs.
    let share = (bytes as f64 / f64::from(1 << 20)).clamp(0.01, 1.0);
    let memory = (profile.kernel.memset_gbps / profile.device.memory_gbps).min(1.0);
    (
        Engine::Compute {
            share,
            memory: memory * share,
            load: Load {
                sm: share,
                issue: 0.0,
                dram: dram_share(profile, bytes, ns),
            },
        },
        ns,
    )
}

/// The cost of a kernel. It is its latency, and the time for its arithmetic and its memory traffic at the rates that so
/// many blocks reach. A time that the scenario states replaces these.
pub(super) fn kernel(profile: &Profile, entry: &str, work: &LaunchSpec) -> (Engine, Ns) {
    let known = profile.entry.get(entry).cloned().unwrap_or_default();
    let (d, k) = (&profile.device, &profile.kernel);
    let sms = u64::from(d.multiprocessors);
    let blocks = product(work.grid);
    let threads = product(work.block);
    let per_sm = blocks_that_fit(profile, &known, work);
    let capacity = per_sm * sms;
    let share = (blocks as f64 / capacity as f64).min(1.0);

    // How much of the device's rates so many blocks can draw.
    let active_sms = blocks.min(sms) as f64;
    let resident = (blocks.div_ceil(sms).min(per_sm) * threads) as f64;
    let fill = |needed: u32| active_sms * (resident / f64::from(needed)).min(1.0);
    // The last round of blocks leaves multiprocessors idle that arithmetic could have used.
    let rounds = blocks as f64 / capacity as f64;
    let evenness = if rounds > 1.0 {
        rounds / rounds.ceil()
    } else {
        1.0
    };

    // Per nanosecond: TFLOP/s are 1000 operations, GB/s are bytes.
    let compute_share = known.compute_share.unwrap_or(k.compute_share);
    let sm_flops = d.fp32_tflops * 1e3 * compute_share / sms as f64;
    let flops_rate = sm_flops * fill(k.threads_for_compute) * evenness;
    let memory_share = known.memory_share.unwrap_or(k.memory_share);
    let bytes = work.bytes.unwrap_or(0);
    let whole_rate = d.memory_gbps * memory_share * l2_gain(profile, bytes);
    let bytes_rate = whole_rate.min(k.sm_gbps * fill(k.threads_for_memory));
    let arithmetic = work.flops.unwrap_or(0) as f64 / flops_rate;
    let traffic = bytes as f64 / bytes_rate;
    let stated = work.time.unwrap_or(0) as f64;

    // Arithmetic hides behind traffic, but not wholly where the two take about as long. The root of the sum of squares
    // fits the measurements on both sides of the ridge and on it.
    let busy = arithmetic.hypot(traffic).max(stated);
    let ns = known.fixed_ns.unwrap_or(k.fixed_ns) + busy.round() as Ns;
    let ns = ns.max(1);
    let drawn = bytes as f64 / ns as f64;
    let memory = (drawn / (d.memory_gbps * memory_share)).min(1.0);
    let load = Load {
        sm: active_sms / sms as f64,
        issue: work.flops.unwrap_or(0) as f64 / (d.fp32_tflops * 1e3 * ns as f64),
        dram: dram_share(profile, bytes, ns),
    };
    let engine = Engine::Compute {
        share,
        memory,
        load,
    };
    (engine, ns)
}

/// The share of the memory's bandwidth that so many bytes take in a time, unless they are in the L2 cache.
fn dram_share(profile: &Profile, bytes: u64, ns: Ns) -> f64 {
    let device = &profile.device;
    if bytes <= device.l2 {
        return 0.0;
    }
    bytes as f64 / (device.memory_gbps * ns as f64)
}

/// How much faster than from device memory so many bytes move. Bytes that all fit into the L2 cache are assumed to be
/// there, left by whatever wrote them.
fn l2_gain(profile: &Profile, bytes: u64) -> f64 {
    if bytes <= profile.device.l2 {
        profile.kernel.l2_gain
    } else {
        1.0
    }
}

/// Blocks that one multiprocessor holds at a time, by the rule that the screen's occupancy follows.
fn blocks_that_fit(profile: &Profile, known: &Entry, work: &LaunchSpec) -> u64 {
    let shape = LaunchShape {
        grid: work.grid,
        block: work.block.map(|n| n.max(1)),
        dynamic_shared: work.shared,
        static_shared: known.static_shared.unwrap_or(0),
        // 0 is not known, and limits nothing.
        registers: known.registers.unwrap_or(0),
        ..LaunchShape::default()
    };
    let found = occupancy::theoretical(&shape, &profile.device_info(0));
    found.map_or(1, |found| u64::from(found.blocks_per_sm))
}

fn product(v: [u32; 3]) -> u64 {
    v.iter().map(|&n| u64::from(n.max(1))).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 33 registers a thread: 1056 a warp, given as 1280. So 12 warps fit in a quarter of the file of 64 Ki, 48 in all.
    /// These are 6 blocks of 8. Without the rounding, 7 would fit.
    #[test]
    fn registers_are_given_to_warps_in_units() {
        let known = Entry {
            registers: Some(33),
            ..Entry::default()
        };
        let work = LaunchSpec {
            kernel: 0,
            grid: [1000, 1, 1],
            block: [256, 1, 1],
            shared: 0,
            args: Vec::new(),
            flops: None,
            bytes: None,
            time: None,
        };
        assert_eq!(blocks_that_fit(&Profile::bundled(), &known, &work), 6);
        // Nothing is known of the registers, so not they limit the blocks of 8 warps, but the 64 warps of a multiprocessor.
        let mut few = Profile::bundled();
        few.device.registers_per_sm = 32 << 10;
        assert_eq!(blocks_that_fit(&few, &Entry::default(), &work), 8);
    }
}

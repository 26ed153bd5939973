//! Theoretical occupancy: how many warps of a launch fit on an SM at once, and what limits them.
//!
//! The rules are those of CUDA's occupancy calculator (`cuda_occupancy.h` of the toolkit) for compute capability 5.0
//! and later: Warps, blocks, registers and shared memory limit it. A warp takes registers in units of 256, out of a
//! quarter of the SM's file. Shared memory comes in units of 256 bytes. From 8.0 on they are 128 bytes, and the system
//! keeps 1 KiB a block. The largest shared memory carve-out is assumed.

use crate::{DeviceInfo, LaunchShape};

/// Registers are given to a warp in units of this many.
const REGISTER_UNIT: u32 = 256;
/// An SM's registers are split between this many schedulers.
const PARTITIONS: u32 = 4;

/// What keeps more blocks from fitting on an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Resident warps.
    Warps,
    /// Resident blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
}

/// How full a launch can make an SM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Blocks of it that fit on an SM at once.
    pub blocks_per_sm: u32,
    /// Warps of it that fit on an SM at once.
    pub warps_per_sm: u32,
    /// Those warps over the most an SM can hold, 0 to 1.
    pub share: f64,
    /// What limits it. Of several equal limits, the first of [`Limit`]'s.
    pub limit: Limit,
    /// How often the grid fills all SMs; less than 1 leaves places for blocks empty from the start.
    pub waves: f64,
}

impl Limit {
    /// Its name in JSON.
    pub fn key(self) -> &'static str {
        ["warps", "blocks", "registers", "shared"][self as usize]
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        ["threads", "blocks", "registers", "shared memory"][self as usize]
    }
}

impl Occupancy {
    /// Part of the kernel's time that the last wave, which fills the SMs only partly, costs at most. Blocks that are
    /// equally long and fill all waves would take so much less. 0 for a grid of one wave or less.
    pub fn tail(&self) -> f64 {
        if self.waves <= 1.0 {
            return 0.0;
        }
        1.0 - self.waves / self.waves.ceil()
    }
}

/// Blocks of a launch.
pub fn blocks(shape: &LaunchShape) -> u64 {
    product(shape.grid)
}

/// How many there are in a grid or a block of these sides; `u64::MAX` stands for more.
pub fn product(sides: [u32; 3]) -> u64 {
    sides
        .into_iter()
        .fold(1, |all, side| all.saturating_mul(u64::from(side)))
}

/// SMs that no block of the launch reaches. `None` where the grid or the device's SMs are unknown.
pub fn idle_sms(shape: &LaunchShape, device: &DeviceInfo) -> Option<u32> {
    let blocks = u32::try_from(blocks(shape)).unwrap_or(u32::MAX);
    let is_known = blocks > 0 && device.multiprocessors > 0;
    is_known.then(|| device.multiprocessors.saturating_sub(blocks))
}

/// Blocks that an SM holds at most: as the source says (Kineto's does not), else as CUDA's programming guide has it.
fn most_blocks(device: &DeviceInfo) -> Option<u32> {
    match (device.max_blocks_per_sm, device.capability) {
        (0, (5..=6, _) | (7, 0..=2) | (8, 0) | (9 | 10, _)) => Some(32),
        (0, (7, 5) | (8, 6 | 7)) => Some(16),
        (0, (8, 9) | (11 | 12, _)) => Some(24),
        (0, _) => None,
        (known, _) => Some(known),
    }
}

/// The occupancy of a launch on a device. `None` when the source did not say enough about either, or
/// when the launch cannot run there.
pub fn theoretical(shape: &LaunchShape, device: &DeviceInfo) -> Option<Occupancy> {
    let threads = u32::try_from(product(shape.block))
        .ok()
        .filter(|&t| t > 0)?;
    let warp = device.warp_size;
    if warp == 0 || device.max_warps_per_sm == 0 {
        return None;
    }
    let warps = threads.div_ceil(warp);
    let mut limits = vec![(device.max_warps_per_sm / warps, Limit::Warps)];
    if let Some(most) = most_blocks(device) {
        limits.push((most, Limit::Blocks));
    }
    if shape.registers > 0 && device.registers_per_sm > 0 {
        let per_warp = (shape.registers.checked_mul(warp)?).next_multiple_of(REGISTER_UNIT);
        let fit = device.registers_per_sm / PARTITIONS / per_warp * PARTITIONS;
        limits.push((fit / warps, Limit::Registers));
    }
    let asked = shape.static_shared.checked_add(shape.dynamic_shared)?;
    let (unit, system) = if device.capability.0 >= 8 {
        (128, 1024)
    } else {
        (256, 0)
    };
    let shared = asked.checked_add(system)?.checked_next_multiple_of(unit)?;
    if shared > 0 && device.shared_per_sm > 0 {
        limits.push((device.shared_per_sm / shared, Limit::Shared));
    }
    let (fit, limit) = limits.into_iter().min_by_key(|&(fit, _)| fit)?;
    if fit == 0 {
        return None;
    }
    let resident = u64::from(fit) * u64::from(device.multiprocessors);
    Some(Occupancy {
        blocks_per_sm: fit,
        warps_per_sm: fit * warps,
        share: f64::from(fit * warps) / f64::from(device.max_warps_per_sm),
        limit,
        waves: if resident > 0 {
            blocks(shape) as f64 / resident as f64
        } else {
            0.0
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An H100/H200's SM: 64 warps, 32 blocks, 64 Ki registers, 228 KiB shared memory.
    fn hopper() -> DeviceInfo {
        DeviceInfo {
            capability: (9, 0),
            multiprocessors: 132,
            max_warps_per_sm: 64,
            max_blocks_per_sm: 32,
            shared_per_sm: 233_472,
            registers_per_sm: 65_536,
            warp_size: 32,
            ..DeviceInfo::default()
        }
    }

    fn shape(threads: u32, registers: u32, shared: u32) -> LaunchShape {
        LaunchShape {
            grid: [264, 1, 1],
            block: [threads, 1, 1],
            registers,
            dynamic_shared: shared,
            ..LaunchShape::default()
        }
    }

    /// Worked by hand from the calculator's rules.
    #[test]
    fn each_limit_is_the_calculators() {
        let cases = [
            // 8 warps a block: 64 / 8.
            (shape(256, 32, 0), 8, 64, Limit::Warps),
            // One warp a block: 64 would fit, 32 blocks may.
            (shape(32, 16, 0), 32, 32, Limit::Blocks),
            // 128 registers: 4096 a warp, 4 warps a quarter, 16 an SM, 2 blocks of 8.
            (shape(256, 128, 0), 2, 16, Limit::Registers),
            // 33 registers: 1056 round up to 1280: 12 warps a quarter, 48 an SM, 6 blocks of 8.
            (shape(256, 33, 0), 6, 48, Limit::Registers),
            // 100 KiB + 1 KiB: two blocks in 228 KiB.
            (shape(128, 32, 102_400), 2, 8, Limit::Shared),
        ];
        for (shape, blocks, warps, limit) in cases {
            let found = theoretical(&shape, &hopper()).expect("known");
            assert_eq!(
                (found.blocks_per_sm, found.warps_per_sm, found.limit),
                (blocks, warps, limit),
                "{shape:?}"
            );
            assert!((found.share - f64::from(warps) / 64.0).abs() < 1e-12);
        }
        let found = theoretical(&shape(256, 32, 0), &hopper()).expect("known");
        assert!((found.waves - 264.0 / (8.0 * 132.0)).abs() < 1e-12);
    }

    /// By hand. 8 blocks of 256 threads on 132 SMs: a wave is 1056 blocks. NVIDIA's guide to Nsight Compute has the tail of one
    /// full wave and a few blocks more at "up to 50 %" of the kernel's time.
    #[test]
    fn the_last_wave_costs_what_it_leaves_empty() {
        let with = |grid| LaunchShape {
            grid: [grid, 1, 1],
            ..shape(256, 32, 0)
        };
        let cases = [
            (64, 64.0 / 1056.0, 0.0, 68),
            (132, 0.125, 0.0, 0),
            (1056, 1.0, 0.0, 0),
            (1057, 1057.0 / 1056.0, 1.0 - 1057.0 / 2112.0, 0),
            (1584, 1.5, 0.25, 0),
            (10_560, 10.0, 0.0, 0),
        ];
        for (grid, waves, tail, idle) in cases {
            let found = theoretical(&with(grid), &hopper()).expect("known");
            assert!((found.waves - waves).abs() < 1e-12, "{grid}");
            assert!((found.tail() - tail).abs() < 1e-12, "{grid}");
            assert_eq!(idle_sms(&with(grid), &hopper()), Some(idle), "{grid}");
        }
        assert_eq!(idle_sms(&with(0), &hopper()), None);
        assert_eq!(idle_sms(&with(9), &DeviceInfo::default()), None);
    }

    /// The table of the CUDA programming guide: a source that does not say it is no reason to be wrong.
    #[test]
    fn sides_of_any_length_have_a_product() {
        assert_eq!(product([2, 3, 4]), 24);
        assert_eq!(product([7, 0, u32::MAX]), 0);
        assert_eq!(product([1 << 31; 3]), u64::MAX);
    }

    #[test]
    fn blocks_of_an_sm_are_known_by_the_capability() {
        let with = |capability, most| DeviceInfo {
            capability,
            max_blocks_per_sm: most,
            ..hopper()
        };
        let fit = |device| theoretical(&shape(32, 16, 0), &device).map(|it| it.blocks_per_sm);
        assert_eq!(fit(with((9, 0), 0)), Some(32));
        assert_eq!(fit(with((8, 9), 0)), Some(24));
        assert_eq!(fit(with((8, 6), 0)), Some(16));
        assert_eq!(fit(with((8, 6), 12)), Some(12));
        assert_eq!(fit(with((99, 0), 0)), Some(64));
    }

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(
            theoretical(&shape(256, 32, 0), &DeviceInfo::default()),
            None
        );
        assert_eq!(theoretical(&LaunchShape::default(), &hopper()), None);
        // More shared memory than the SM has.
        assert_eq!(theoretical(&shape(256, 32, 300_000), &hopper()), None);
        assert_eq!(
            theoretical(&shape(256, u32::MAX, u32::MAX), &hopper()),
            None
        );
    }
}

//! Theoretical occupancy of a launch: resident warps of an SM against the most it can hold.
//!
//! The limits are those of NVIDIA's occupancy calculator: warps, blocks, registers (allocated to a
//! warp in units of 256) and shared memory (allocated to a block in units of 128 bytes, with 1 KiB
//! reserved a block since compute capability 8.0).

use crate::activity::{DeviceInfo, LaunchShape};

/// Registers are given to a warp in units of this many.
const REGISTER_UNIT: u32 = 256;
/// Shared memory is given to a block in units of this many bytes.
const SHARED_UNIT: u32 = 128;

/// The share of an SM's warps that this launch can keep resident; `None` where the device's limits
/// are not known.
#[must_use]
pub fn theoretical(shape: &LaunchShape, device: &DeviceInfo) -> Option<f64> {
    let threads = shape.block.iter().map(|&d| d.max(1)).product::<u32>();
    let (warps_max, warp) = (device.max_warps_per_sm, device.warp_size);
    if warps_max == 0 || warp == 0 || threads == 0 || device.max_blocks_per_sm == 0 {
        return None;
    }
    let warps = threads.div_ceil(warp);
    let mut blocks = device.max_blocks_per_sm.min(warps_max / warps);
    if shape.registers > 0 && device.registers_per_sm > 0 {
        let per_warp = (shape.registers * warp).next_multiple_of(REGISTER_UNIT);
        let warps_that_fit = device.registers_per_sm / per_warp;
        blocks = blocks.min(warps_that_fit / warps);
    }
    let reserved = if device.capability.0 >= 8 { 1024 } else { 0 };
    let shared = (shape.static_shared.saturating_add(shape.dynamic_shared))
        .saturating_add(reserved)
        .next_multiple_of(SHARED_UNIT);
    if shared > 0 && device.shared_per_sm > 0 {
        blocks = blocks.min(device.shared_per_sm / shared);
    }
    Some(f64::from(blocks * warps) / f64::from(warps_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> DeviceInfo {
        DeviceInfo {
            capability: (9, 0),
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
            grid: [1, 1, 1],
            block: [threads, 1, 1],
            registers,
            dynamic_shared: shared,
            ..LaunchShape::default()
        }
    }

    #[test]
    fn each_limit_binds_where_it_should() {
        // By hand, from the limits of compute capability 9.0.
        let cases = [
            (shape(256, 32, 0), 1.0),            // 8 blocks of 8 warps
            (shape(32, 16, 0), 0.5),             // 32 blocks of 1 warp
            (shape(256, 64, 0), 0.5),            // 65536 / 2048 = 32 warps
            (shape(1024, 65, 0), 0.0),           // 2304 a warp: 28 warps, none of 32
            (shape(128, 32, 100 * 1024), 0.125), // 233472 / 103424 = 2 blocks of 4 warps
        ];
        for (shape, expected) in cases {
            let share = theoretical(&shape, &h200()).expect("known limits");
            assert!((share - expected).abs() < 1e-9, "{shape:?}: {share}");
        }
        assert_eq!(
            theoretical(&shape(256, 32, 0), &DeviceInfo::default()),
            None
        );
    }
}

//! What a card's tensor cores can do, by NVIDIA's data sheets.

use activity::DeviceInfo;

/// How many times as fast as in fp32 the tensor cores multiply at least and at most, by compute capability. It is half of the ratio of
/// the peaks in NVIDIA's data sheets up to all of it, for TF32 without sparsity (7.x: fp16). From 8.6 on cards of one capability
/// differ.
const TENSOR_TIMES: [((u32, u32), [f64; 2]); 6] = [
    ((7, 0), [4.0, 8.0]),
    ((8, 0), [4.0, 8.0]),
    ((8, 6), [1.0, 2.0]),
    ((9, 0), [3.7, 7.4]),
    ((10, 0), [7.0, 14.0]),
    ((12, 0), [1.0, 2.0]),
];

/// How many times as fast as in TF32 they multiply in bf16, by the same data sheets.
pub const BF16_TIMES: f64 = 2.0;

/// Capabilities whose cards multiply in TF32 hardly faster than in fp32: only bf16 pays. Cards for work do twice as much of it an SM as those
/// for games. An SM has 128 units for fp32 on all of them, so that clocks and numbers of SMs cancel.
const SMALL: [(u32, u32); 3] = [(8, 6), (8, 9), (12, 0)];

/// Whether a card multiplies in TF32 hardly faster than in fp32.
pub fn is_small(info: &DeviceInfo) -> bool {
    SMALL.contains(&info.capability)
}

/// Whether tensor cores of such a card work at half the rate when they sum in fp32: GeForce, TITAN, and the L40.
pub fn is_halved(info: &DeviceInfo) -> bool {
    let mut words = info.name.split(' ');
    words.any(|it| ["GeForce", "TITAN", "L40"].contains(&it))
}

/// How many times as fast as in fp32 a card multiplies at least and at most in such a precision: see [`TENSOR_TIMES`].
pub fn times(info: &DeviceInfo, precision: &str) -> Option<[f64; 2]> {
    let known = TENSOR_TIMES.iter().rfind(|it| it.0 <= info.capability);
    let tf32 = known?.1;
    Some(match is_small(info) {
        true if is_halved(info) => [1.0, BF16_TIMES],
        true => [BF16_TIMES, 2.0 * BF16_TIMES],
        false if precision.contains("bf16") => [tf32[0], BF16_TIMES * tf32[1]],
        false => tf32,
    })
}

/// Whether a card has no tensor cores: those before 7.0, and those of NVIDIA's chips TU116 and TU117 (7.5).
pub fn lacks_tensor_cores(info: &DeviceInfo) -> bool {
    let cards = "T400 T500 T550 T600 T1000 T1200 MX450 MX550";
    let is_one = |card: &str| info.name.split(' ').any(|it| it == card);
    let is_small = info.name.contains("GTX 16") || cards.split(' ').any(is_one);
    info.capability < (7, 0) && info.capability.0 > 0 || info.capability == (7, 5) && is_small
}

//! What stands out of a kernel by its name and its launches. These are facts: whether they cost anything is what findings say.

use crate::communication::{has_any, is_communication};
use crate::shapes::ShapeRow;
use crate::tensor_cores::lacks_tensor_cores;
use activity::occupancy::{Limit, product};
use activity::text::plural;
use activity::units::{count, percent};
use activity::{DeviceInfo, Ns};

/// Words of names, and what a kernel does that has one of them: those of PyTorch, cuDNN, TensorRT-LLM and vLLM.
const FAMILIES: [(&str, &str); 6] = [
    (TRAINING_NORM, "batch norm as in training"),
    (DROPOUT, "dropout as in training"),
    ("CatArrayBatchedCopy", "copies for torch.cat"),
    ("float16_copy_kernel", "converts types"),
    (LAYOUT, "turns a tensor's layout around"),
    (
        "fused_moe MoeFCGemm expandInputRows finalizeMoeRouting topkGating moe_align",
        "a part of a mixture of experts",
    ),
];

/// CUTLASS's kernels for tensor cores that read one or two values at once, as rows of other lengths have no common alignment.
const UNALIGNED: &str = "_align1 _align2";
/// What is said of those.
pub(crate) const PAD: &str = "sizes that are no multiples of 8: pad them";

/// cuDNN's batch norm that takes its statistics anew.
pub const TRAINING_NORM: &str = "bn_fw_tr";

/// PyTorch's kernels that set a random part of what goes through to zero.
pub const DROPOUT: &str = "fused_dropout_kernel";

/// Kernels of cuDNN and TensorFlow that turn the layout of a tensor around before a convolution or behind it.
pub const LAYOUT: &str = "nchwToNhwc nhwcToNchw nchwToFolded SwapDimension1And2InTensor3 SwapDimension0And2InTensor3 ShuffleInTensor3";

/// CUTLASS's attention in fp32. From 8.0 on it splits each product for the tensor cores.
pub const FP32_ATTENTION: &str = "fmha_cutlassf_f32 fmha_cutlassb_f32";

/// Words of kernels that libraries made for older GPUs, and the compute capability that they were made for.
const ARCHITECTURES: [(&str, (u32, u32)); 4] = [
    ("maxwell_ sm50_ sm52_", (5, 0)),
    ("volta_ sm70_", (7, 0)),
    ("turing_ sm75_", (7, 5)),
    ("ampere_ sm80_ sm80> cutlass_80_", (8, 0)),
];

/// GPUs that are so many generations younger than a kernel are worth a word: cuBLAS runs those of one before on purpose.
const GENERATIONS: u32 = 2;

/// Part of a warp's lanes, or of a GPU's SMs, that has nothing to do, from which on that is told.
const IDLE: f64 = 0.2;
/// Below this part of the warps that an SM can hold it is told what keeps others away.
const FEW: f64 = 0.25;
/// A grid up to this part of what has room at once leaves much of that empty.
const HALF: f64 = 0.5;

/// Whether a kernel multiplies matrices in fp32 without tensor cores, by its name: as cuBLAS, CUTLASS and cuDNN name them. What reads fp32
/// and multiplies in TF32 says so.
pub fn is_fp32(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |words| has_any(&name, words);
    (has(FP32_ATTENTION)
        || has("sgemm ffma f32f32_f32f32 scudnn")
        || has("simt") && has("gemm f32")
        || has("wgrad_alg dgrad_alg dgrad_engine winograd") && has("<float"))
        && !is_half(&name)
        // Winograd's transforms multiply nothing.
        && !has("generatewinogradtiles tf32 tensorop tensor16x8 s1688 s16816 h884 s884 dgemm zgemm hgemm igemm f64")
}

/// Whether a kernel's values are of half precision, by its name: of `sgemm` and `ffma` in such a name only the sums are fp32.
pub fn is_half(name: &str) -> bool {
    has_any(name, "__half half_t bfloat16 fp16_scudnn")
}

/// Whether a kernel is one of a backward pass or of an optimizer, by its name.
pub fn is_backward(name: &str) -> bool {
    has_any(
        name,
        "backward Backward bn_bw dgrad wgrad optimizer Optimizer",
    )
}

/// Whether a kernel is of a library whose kernels are made for few warps: cuBLAS, cuDNN, CUTLASS, flash-attention, Triton, and communication.
pub fn is_for_few_warps(name: &str) -> bool {
    let made = "gemm nvjet cutlass xmma cudnn flash fmha fprop dgrad wgrad triton cute";
    is_communication(name) || has_any(&name.to_ascii_lowercase(), made)
}

/// What stands out of a kernel, a few words each. Of its launches those are told that hold most of its time.
pub(crate) fn find(name: &str, shapes: &[ShapeRow], info: &DeviceInfo) -> Vec<String> {
    let all: Ns = shapes.iter().map(|it| it.total_ns).sum();
    let most = shapes.first().filter(|it| 2 * it.total_ns > all);
    let mut told = Vec::new();
    if let Some(it) = most.filter(|_| !is_communication(name)) {
        told.extend(of_block(it, info));
        told.extend(of_grid(it, info));
        told.extend(few_warps(it).filter(|_| !is_for_few_warps(name)));
    }
    let families = FAMILIES.iter().filter(|it| has_any(name, it.0));
    told.extend(families.map(|it| it.1.to_owned()));
    // One double at once is all that a kernel of doubles needs.
    let is_unaligned = has_any(name, UNALIGNED) && !has_any(name, "_align16 d884 dgemm");
    if name.contains("tensorop") && is_unaligned {
        told.push(PAD.to_owned());
    }
    let splits = has_any(&name.to_ascii_lowercase(), FP32_ATTENTION) && info.capability.0 >= 8;
    if is_fp32(name) && !splits && info.capability >= (7, 0) && !lacks_tensor_cores(info) {
        told.push("fp32 without tensor cores".to_owned());
    }
    told.extend(made_for(name, info));
    told
}

/// Whether a kernel for unaligned operands runs for aligned ones, too: a program that tries all of them has no such sizes.
pub(crate) fn has_aligned_twin<'n>(name: &str, all: &mut impl Iterator<Item = &'n str>) -> bool {
    let stem = |name: &str| name.split_once("_align").map(|it| it.0.to_owned());
    let own = stem(name);
    own.is_some() && all.any(|it| it.contains("_align8") && stem(it) == own)
}

/// Whether it is told of blocks of one thread, or of a grid of one block.
pub(crate) fn is_of_one(remark: &str) -> bool {
    ["blocks of 1 thread:", "1 block for "]
        .iter()
        .any(|it| remark.starts_with(it))
}

/// What blocks leave empty of their warps.
fn of_block(it: &ShapeRow, info: &DeviceInfo) -> Option<String> {
    let warp = u64::from(info.warp_size.max(32));
    let threads = product(it.block);
    if !(1..=THREADS_MAX).contains(&threads) {
        return None;
    }
    let lanes = threads.next_multiple_of(warp);
    match threads {
        _ if threads == warp => Some("blocks of 1 warp".to_owned()),
        _ if (lanes - threads) as f64 >= IDLE * lanes as f64 => Some(format!(
            "blocks of {}: {} of {lanes} lanes idle",
            plural(threads, "thread"),
            lanes - threads
        )),
        _ => None,
    }
}

/// CUDA's most of a block; a file may say any number.
const THREADS_MAX: u64 = 1024;

/// SMs that no block reaches, and room on them for more blocks.
pub fn of_grid(it: &ShapeRow, info: &DeviceInfo) -> Option<String> {
    let idle = f64::from(it.fill.idle_sms?);
    let blocks = product(it.grid);
    let sms = info.multiprocessors;
    let told = || {
        format!(
            "{} for {}",
            plural(blocks, "block"),
            plural(u64::from(sms), "SM")
        )
    };
    if idle >= IDLE * f64::from(sms.max(1)) {
        return Some(told());
    }
    let waves = it.fill.waves.filter(|it| *it <= HALF)?;
    let is_few = waves * it.fill.occupancy? < FEW;
    let room = (blocks as f64 / waves).round() as u64;
    is_few.then(|| format!("{}, which have room for {}", told(), count(room)))
}

/// What of a block keeps others from an SM.
fn few_warps(it: &ShapeRow) -> Option<String> {
    let limit = it.fill.occupancy_limit?;
    let share = it.fill.occupancy.filter(|it| *it < FEW)?;
    matches!(limit, Limit::Shared | Limit::Registers)
        .then(|| format!("occupancy {}, limited by {}", percent(share), limit.words()))
}

/// The older compute capability that a library made a kernel for.
fn made_for(name: &str, info: &DeviceInfo) -> Option<String> {
    // Instructions that CuTe has since then say nothing of what the kernel is for: "cute::SM75_U32x4_LDSM_N".
    let name = name.to_ascii_lowercase().replace("cute::sm", "");
    let row = ARCHITECTURES.iter().rfind(|it| has_any(&name, it.0));
    let (major, minor) = row?.1;
    (info.capability.0 >= major + GENERATIONS)
        .then(|| format!("made for compute capability {major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill::Fill;
    use activity::LaunchShape;

    fn h200() -> DeviceInfo {
        DeviceInfo {
            name: "NVIDIA H200".to_owned(),
            capability: (9, 0),
            multiprocessors: 132,
            max_warps_per_sm: 64,
            max_blocks_per_sm: 32,
            shared_per_sm: 228 << 10,
            registers_per_sm: 65_536,
            warp_size: 32,
            ..DeviceInfo::default()
        }
    }

    fn told(name: &str, grid: u32, block: u32, registers: u32, info: &DeviceInfo) -> String {
        let launched = LaunchShape {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            registers,
            ..LaunchShape::default()
        };
        let row = ShapeRow {
            grid: launched.grid,
            block: launched.block,
            total_ns: 1,
            fill: Fill::of(&launched, info),
            ..ShapeRow::default()
        };
        find(name, &[row], info).join(" · ")
    }

    #[test]
    fn tensor_cores_want_aligned_operands() {
        let told = |name: &str| find(name, &[], &h200()).join(" · ");
        let of = |align| format!("cutlass_75_tensorop_f16_s1688gemm_f16_128x256_tn_align{align}");
        assert!(told(&of(1)).contains("multiples of 8"));
        let (one, eight) = (of(1), of(8));
        let has_twin = |name, all: [&str; 2]| has_aligned_twin(name, &mut all.into_iter());
        assert!(has_twin(&one, [&one, &eight]));
        assert!(!has_twin(&one, [&one, "cutlass_75_tensorop_x_align8"]));
        assert!(!has_twin("walk", ["walk", &eight]));
        for aligned in [
            of(8),
            of(16),
            "cutlass_80_simt_sgemm_128x64_tn_align1".to_owned(),
            "cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1".to_owned(),
        ] {
            assert!(!told(&aligned).contains("multiples of 8"), "{aligned}");
        }
    }

    /// By hand: a warp has 32 lanes, an H200 132 SMs with 65,536 registers and 64 warps each.
    #[test]
    fn launches_tell_what_they_leave_empty() {
        let info = h200();
        for (grid, block, registers, expected) in [
            (
                1,
                1,
                32,
                "blocks of 1 thread: 31 of 32 lanes idle · 1 block for 132 SMs",
            ),
            (15_625, 32, 110, "blocks of 1 warp"),
            (1000, 100, 32, "blocks of 100 threads: 28 of 128 lanes idle"),
            (1000, 256, 32, ""),
            // 16 blocks of 4 warps have room on an SM; 2 of them are 8 of 64 warps.
            (
                264,
                128,
                32,
                "264 blocks for 132 SMs, which have room for 2,112",
            ),
            (1056, 128, 32, ""),
            // A warp takes 32 x 168 of the 16,384 registers of one of four schedulers: three of them, so 12 of 64 warps.
            (1000, 128, 168, "occupancy 19 %, limited by registers"),
        ] {
            let said = told("walk(int*)", grid, block, registers, &info);
            assert_eq!(said, expected, "{grid} {block}");
            assert_eq!(said.split(" · ").any(is_of_one), grid == 1, "{said}");
        }
    }

    #[test]
    fn no_launch_of_a_file_breaks_it() {
        let row = ShapeRow {
            grid: [u32::MAX; 3],
            block: [u32::MAX; 3],
            total_ns: 1,
            ..ShapeRow::default()
        };
        assert_eq!(find("walk", &[row], &h200()), Vec::<String>::new());
    }

    #[test]
    fn names_tell_what_kernels_do() {
        let info = h200();
        let told = |name| told(name, 1000, 256, 32, &info);
        for (name, expected) in [
            ("ampere_sgemm_128x64_tn", "fp32 without tensor cores"),
            ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", ""),
            (
                "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>",
                "batch norm as in training",
            ),
            ("nvjet_hsh_128x256_64x4", ""),
            ("k<cute::Copy_Atom<cute::SM75_U32x4_LDSM_N, half>>", ""),
            (
                "volta_sgemm_128x64_nn",
                "fp32 without tensor cores · made for compute capability 7.0",
            ),
        ] {
            assert_eq!(told(name), expected, "{name}");
        }
    }
}

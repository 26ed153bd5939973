//! Rules that look at launches, and at what counters tell of kernels.

use super::*;
use activity::{Hardware, Metric, RangeKind, Reading, StallSamples};
use trace::testing::Sentence;

const GPU: [u8; 16] = [9; 16];
/// A sample.
const TENTH: Ns = 100_000;

/// Kernels one behind the other on an H200, sampled ten times a millisecond where shares are given.
#[derive(Default)]
pub(super) struct Busy {
    scene: Scene,
    at: Ns,
    samples: Vec<Hardware>,
}

impl Busy {
    /// A kernel of so many tenths of a millisecond, with its shares of DRAM, tensor cores and issue.
    pub(super) fn kernel(&mut self, name: &str, blocks: u32, tenths: Ns, shares: Option<[f64; 3]>) {
        self.kernel_of(name, [blocks, 1024], tenths, shares);
    }

    /// The same of blocks of so many threads.
    fn kernel_of(
        &mut self,
        name: &str,
        [blocks, threads]: [u32; 2],
        tenths: Ns,
        shares: Option<[f64; 3]>,
    ) {
        let shape = LaunchShape {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            registers: 32,
            ..LaunchShape::default()
        };
        let end = self.at + tenths * TENTH;
        self.scene.shaped(shape, name, 1, self.at, end);
        while let Some([dram, tensor, issue]) = shares.filter(|_| self.at < end) {
            self.samples.push(Hardware::Sample(Reading {
                uuid: GPU,
                span: Span::new(self.at, self.at + TENTH),
                values: vec![
                    (Metric::Dram, dram),
                    (Metric::Tensor, tensor),
                    (Metric::Issue, issue),
                ],
                reasons: 0,
            }));
            self.at += TENTH;
        }
        self.at = end;
    }

    pub(super) fn found(mut self, rule: &str) -> Option<Finding> {
        self.scene.device(DeviceInfo {
            uuid: Some(GPU),
            ..h200()
        });
        let batch = self.scene.take();
        self.scene.put(Batch {
            hardware: self.samples,
            ..batch
        });
        all_of(&mut self.scene)
            .into_iter()
            .find(|it| it.rule.name() == rule)
    }
}

/// An SM holds 2 blocks of 32 warps: a wave is 264 blocks. 297 are 1.125 waves, and the second one is 0.875 empty: of
/// two waves' time 0.4375 is lost. 264 are one wave; of 2,904 blocks, 11 waves, nothing is.
/// Ten products of 90 us with one vector each, 10 us apart; and ten of which half the time is another kernel's.
#[test]
fn products_with_one_vector_are_told_as_reading_their_matrices() {
    let scene = |length: Ns| {
        let mut scene = Scene::new();
        for at in (0..10).map(|i| i * 200_000) {
            scene.kernel("void gemvNSP_kernel<float>(int)", 7, at, at + length);
            scene.kernel("softmax", 7, at + length, at + 190_000);
        }
        scene
    };
    let found = sick("matrix-vector", &mut scene(171_000));
    found
        .title
        .must_begin("10 products of a matrix and one vector take 1.71 ms (90 % of kernel time)");
    cured("matrix-vector", &mut scene(80_000));
}

/// Memsets that take seven tenths of the time, and four.
#[test]
fn memory_that_is_set_most_of_the_time_is_told() {
    let scene = |length: Ns| {
        let mut scene = Scene::new();
        for at in (0..10).map(|i| i * 100_000) {
            scene.memset(1, 1 << 20, at, at + length);
            scene.kernel("k", 1, at + length, at + 100_000);
        }
        scene
    };
    let found = sick("memset-bound", &mut scene(70_000));
    assert_eq!((found.bound_ns, found.count), (700_000, 10));
    found
        .title
        .must_begin("10 memsets of 10 MiB take 700 µs (70 %)");
    // Two of a hundred are worth a line where they come again and again. One of a hundred is not.
    let found = sick("memset-bound", &mut scene(4_000));
    assert_eq!((found.bound_ns, found.severity), (40_000, Severity::Info));
    cured("memset-bound", &mut scene(1_000));
    let mut few = Scene::new();
    few.memset(1, 1 << 20, 0, 200_000);
    few.kernel("k", 1, 200_000, 1_000_000);
    cured("memset-bound", &mut few);
}

/// Of an RTX 3060: 28 SMs of 48 warps and 16 blocks, 65,536 registers.
fn rtx_3060() -> DeviceInfo {
    DeviceInfo {
        capability: (8, 6),
        multiprocessors: 28,
        max_warps_per_sm: 48,
        max_blocks_per_sm: 16,
        shared_per_sm: 100 << 10,
        registers_per_sm: 65_536,
        warp_size: 32,
        ..DeviceInfo::default()
    }
}

fn of_blocks(grid: u32, block: u32, registers: u32) -> LaunchShape {
    LaunchShape {
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        registers,
        ..LaunchShape::default()
    }
}

/// By CUDA's occupancy calculator: a warp of 96 registers a thread takes 3,072 of a scheduler's 16,384, so five fit, and 20 an SM: two
/// blocks of eight warps. With 64 a thread eight fit each scheduler: four blocks.
#[test]
fn registers_that_leave_an_sm_half_empty_are_told_of_the_one_kernel() {
    let of = |registers, block| {
        let all = shaped(
            "render(float*)",
            of_blocks(4_000, block, registers),
            rtx_3060(),
        );
        all.into_iter().find(|it| it.rule.name() == "few-warps")
    };
    let it = of(96, 256).expect("found");
    assert_eq!(
        it.title,
        "few warps on an SM, limited by 96 registers a thread: 16 of 48 in render, which takes 10.0 ms (100 %)"
    );
    // Two thirds of the places are empty.
    assert_eq!((it.severity, it.bound_ns), (Severity::Info, 6_666_666));
    let why = "all in render: 16 of 48 warps fit an SM, limited by 96 registers a thread";
    assert_eq!(it.says.expect("nearly all of it").why, why);
    assert_eq!(of(64, 256), None);
    // Sixteen blocks of one warp are all that fit, whatever their registers.
    let it = of(32, 32).expect("found");
    assert!(
        it.advice.contains("blocks of 128 threads or more"),
        "{}",
        it.advice
    );
    assert_eq!(of(32, 128), None);
}

/// Each of 28 SMs has four schedulers, which need a warp each: 84 warps are three quarters of that.
#[test]
fn blocks_of_one_warp_that_leave_schedulers_without_one_are_told() {
    let of = |grid, block| {
        let all = shaped("walk(float*)", of_blocks(grid, block, 32), rtx_3060());
        all.into_iter()
            .find(|it| it.rule.name() == "under-filled-gpu")
    };
    let it = of(56, 32).expect("found");
    it.title
        .must_begin("10 kernels with 56 blocks of 32 threads for 28 SMs");
    assert_eq!(of(84, 32), None);
    assert_eq!(of(56, 64), None);
}

/// An SM of an H200 holds two blocks of 1,024 threads: 39,600 are 150 waves. In 0.1 ms each takes 0.7 us.
#[test]
fn blocks_of_next_to_no_work_are_told_by_counters() {
    let of = |rule, tenths, dram| {
        let mut busy = Busy::default();
        for _ in 0..20 {
            busy.kernel("weigh", 39_600, tenths, Some([dram, 0.0, 0.3]));
        }
        busy.found(rule)
    };
    let it = of("oversized-grid", 1, 0.1).expect("found");
    it.title.must_begin(
        "40,550,400 threads in blocks of weigh that end at once: 2.00 ms (100 %); near no peak",
    );
    // At the memory's speed a tenth is left.
    assert_eq!(it.bound_ns, 1_800_000);
    assert_eq!(of("latency-bound", 1, 0.1), None);
    // What works for a while is another matter, and what memory bounds is none.
    assert_eq!(of("oversized-grid", 10, 0.1), None);
    assert!(of("latency-bound", 10, 0.1).is_some());
    assert_eq!(of("oversized-grid", 1, 0.9), None);
}

/// On the same card six blocks of 256 threads fit an SM, 168 in all: 16,800 blocks are a hundred waves. In 50 us each takes 0.5.
#[test]
fn grids_far_larger_than_the_data_are_told() {
    let of = |time: Ns, bytes: u64| {
        let mut scene = Scene::new();
        scene.device(rtx_3060());
        scene.copy(Direction::H2D, 7, bytes, 0, 10_000);
        for at in (1..11).map(|i| i * 200_000) {
            scene.shaped(of_blocks(16_800, 256, 32), "add(float*)", 7, at, at + time);
        }
        let all = all_of(&mut scene);
        all.into_iter()
            .find(|it| it.rule.name() == "oversized-grid")
    };
    // 4,300,800 threads for 262,144 numbers: fifteen of sixteen have nothing to do.
    let it = of(50_000, 1 << 20).expect("found");
    it.title.must_begin(
        "4,300,800 threads in blocks of add that end at once: 500 µs (24 %); the program copied 262,144 numbers at most",
    );
    assert_eq!(it.bound_ns, 469_524);
    // With a number for each thread, and where each block works for a while, nothing is wrong.
    assert_eq!(of(50_000, 4 * 4_300_800), None);
    assert_eq!(of(150_000, 1 << 20), None);
}

#[test]
fn a_last_wave_costs_what_it_leaves_empty() {
    let of = |blocks, shares| {
        let mut busy = Busy::default();
        for _ in 0..10 {
            busy.kernel("k", blocks, 10, shares);
        }
        busy.found("tail-wave")
    };
    let slow = Some([0.3, 0.0, 0.1]);
    let it = of(297, slow).expect("found");
    assert_eq!(
        (it.bound_ns, it.count, it.severity),
        (4_375_000, 10, Severity::Warning)
    );
    assert_eq!(
        it.title,
        "the last wave is partly empty in 10 kernels (10.0 ms in all), mostly k (1.12 waves)"
    );
    assert_eq!((of(264, slow), of(2_904, slow)), (None, None));
    // At the roof of memory it matters to nobody. Without counters nobody knows.
    assert_eq!(of(297, Some([0.9, 0.0, 0.1])), None);
    assert_eq!(of(297, None), None);
}

/// Forth 2 ms at 0.4 of the tensor cores' peak and back 6 at 0.3: at their roofs they take 0.8 and 1.8 ms. A library's kernel has no registers
/// that anybody could save.
#[test]
fn attention_of_a_library_near_no_peak_is_told_as_one() {
    let cudnn = "cudnn_generated_fort_native_sdpa_sm90_flash";
    let of = |names: [&str; 2]| {
        let mut busy = Busy::default();
        busy.kernel(names[0], 2_904, 20, Some([0.1, 0.4, 0.1]));
        busy.kernel(names[1], 2_904, 60, Some([0.1, 0.3, 0.1]));
        busy.found("latency-bound").expect("found")
    };
    let it = of([&format!("{cudnn}_fprop_0"), &format!("{cudnn}_bprop_0")]);
    assert_eq!(it.bound_ns, 8_000_000 - 800_000 - 1_800_000);
    it.title.must_begin("attention, mostly cudnn");
    it.advice.must_have("is_causal=True");
    let it = of(["nvjet_sm90_a", "nvjet_sm90_b"]);
    it.advice.must_have("a library's");
    of(["slow", "fold"])
        .advice
        .must_have("neighbouring addresses");
}

/// By hand: an H200 has 132 SMs of 64 warps. 118 blocks of 8 warps leave 14 SMs empty, and the others 7 of 8 places.
#[test]
fn a_kernel_near_no_peak_whose_grid_leaves_room_needs_more_blocks() {
    let of = |blocks, name: &str| {
        let mut busy = Busy::default();
        busy.kernel_of(name, [blocks, 256], 60, Some([0.0, 0.0, 0.2]));
        busy.found("latency-bound").expect("found")
    };
    let it = of(118, "bodyForce");
    it.title.must_have("; 118 blocks for 132 SMs");
    assert_eq!(it.cure, "more blocks");
    let says = it.says.expect("it leads").why;
    says.must_begin("all in bodyForce, 118 blocks for 132 SMs");
    it.advice.must_have("cut the work finer");
    // A grid that fills all places, and a library's own choice.
    for (blocks, name) in [(2_904, "bodyForce"), (118, "nvjet_sm90_a")] {
        let it = of(blocks, name);
        it.title.must_lack("blocks for");
        assert_ne!(it.cure, "more blocks");
    }
}

/// 6 of 10 ms of a kernel at 90 % of DRAM's peak: half of its bytes take half of its time.
#[test]
fn kernels_of_ones_own_at_the_speed_of_memory_take_as_long_as_their_bytes() {
    let of = |name: &str, tenths| {
        let mut busy = Busy::default();
        busy.kernel(name, 2_904, tenths, Some([0.9, 0.1, 0.1]));
        busy.kernel("gemm", 2_904, 100 - tenths, Some([0.1, 0.9, 0.1]));
        busy.found("memory-bound")
    };
    let it = of("fused_ffn_kernel", 60).expect("found");
    assert_eq!((it.severity, it.bound_ns), (Severity::Info, 3_000_000));
    it.advice.must_have("half precision");
    // What takes less, what a library has, and what is to be fused.
    assert_eq!(of("fused_ffn_kernel", 40), None);
    assert_eq!(of("cudnn_generated_fprop", 60), None);
    assert_eq!(of("vectorized_elementwise_kernel", 60), None);
}

/// 6 of 8 ms at a fifth of DRAM's peak, the rest at the roof: 4.8 ms are above the roof.
#[test]
fn a_kernel_near_no_peak_that_is_most_of_the_time() {
    let of = |slow, share| {
        let mut busy = Busy::default();
        busy.kernel("slow", 2_904, slow, share);
        busy.kernel("fast", 2_904, 20, Some([0.9, 0.0, 0.1]));
        busy.found("latency-bound")
    };
    let it = of(60, Some([0.2, 0.0, 0.1])).expect("found");
    assert_eq!(it.bound_ns, 4_800_000);
    assert_eq!(
        it.title,
        "slow takes 6.00 ms (75 %), limited by neither memory nor compute"
    );
    assert!(it.advice.contains("it would take 1.20 ms"), "{}", it.advice);
    // Busy for more than half of it, and nothing is known that it lacks.
    assert_eq!(of(60, Some([0.3, 0.0, 0.55])), None);
    // Less than half of the time, at a roof, or not sampled.
    assert_eq!(of(19, Some([0.2, 0.0, 0.1])), None);
    assert_eq!(of(60, Some([0.8, 0.0, 0.1])), None);
    assert_eq!(of(60, None), None);
}

#[test]
fn products_without_tensor_cores_are_a_remark() {
    let of = |name, share| {
        let mut busy = Busy::default();
        busy.kernel(name, 2_904, 30, Some(share));
        busy.found("idle-tensor-cores")
    };
    let it = of("cutlass_simt_sgemm_256x128", [0.1, 0.0, 0.8]).expect("found");
    assert_eq!((it.severity, it.bound_ns), (Severity::Info, 3_000_000));
    // In double precision, with them, and what is no product.
    assert_eq!(of("cutlass_dgemm_128x64", [0.1, 0.0, 0.8]), None);
    assert_eq!(of("sm90_bf16_gemm", [0.1, 0.9, 0.3]), None);
    assert_eq!(of("sha256_rounds", [0.1, 0.0, 0.9]), None);
    // Nobody can lower a precision that is low: fp32 are its sums.
    let it = of("explicit_convolve_sgemm<__half, int>", [0.1, 0.0, 0.8]).expect("found");
    assert!(
        it.advice.contains("multiples of 8") && it.estimated.is_none() && it.change.is_empty(),
        "{}",
        it.advice
    );
}

/// A program that multiplies by its own kernel is told of cuBLAS, which is no program's own: nor is what fuses more than a product, nor what a
/// framework launches.
#[test]
fn products_by_a_kernel_of_the_programs_own() {
    let of = |name: &str, other: &str| {
        let mut busy = Busy::default();
        busy.kernel(name, 2_904, 30, None);
        busy.kernel(other, 2_904, 1, None);
        busy.found("own-kernels")
    };
    let it = of("matmul_naive(float*, float*, float*, int)", "fill").expect("its own");
    assert_eq!(it.gain(0.0).as_deref(), Some("try cuBLAS"));
    let why = it.says.expect("most").why;
    assert!(why.contains("kernel of its own, matmul_naive"), "{why}");
    for library in [
        "ampere_sgemm_128x64_nn",
        "void gemmSN_TN_kernel<float, 128>(cublasGemmSmallNParams<float>)",
        "sgemm_32x32x32_NN_vec",
        "cutlass_80_simt_sgemm_256x128_8x4_nn_align1",
        "fused_matmul_bias(float*)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8",
    ] {
        assert_eq!(of(library, "fill"), None, "{library}");
    }
    assert_eq!(of("matmul_naive(float*)", "at::native::fill"), None);
    for own in [
        "g_mulMatsFirstTransposed(float*)",
        "wmmaNaiveKernel(__half*)",
    ] {
        of(own, "fill").expect("its own");
    }
    // One block takes 300 times as long as a grid that fills the GPU: that is the grid's.
    let by_grid = |slow: u32| {
        let mut busy = Busy::default();
        busy.kernel("matmult(float*)", 2_904, 1, None);
        busy.kernel("matmult(float*)", slow, 300, None);
        busy.found("own-kernels").is_some()
    };
    assert_eq!([1, 2_640].map(by_grid), [false, true]);
    // Several of one program are told as several.
    let mut busy = Busy::default();
    for (name, tenths) in [("gemm_naive(float*)", 5), ("gemm_tiled(float*)", 3)] {
        busy.kernel(name, 2_640, tenths, None);
    }
    let title = busy.found("own-kernels").map(|it| it.title);
    let title = title.expect("two");
    assert!(
        title.contains("by 2 kernels of its own, mostly gemm_naive, for 800 µs"),
        "{title}"
    );
    // What CUB does, too; not CUB's own, and nothing that does more.
    for (name, cure) in [
        ("compact_scan(int*, int)", Some("try CUB")),
        (
            "void julia_reduce_grid_shared<float>(float*)",
            Some("try CUDA.jl"),
        ),
        ("bitonic_sort_step(float*, int, int)", Some("try CUB")),
        ("void cub::DeviceReduceKernel<int>(int*)", None),
        ("softmax_reduce(float*)", None),
        ("scanline_fill(int*)", None),
        ("kernel_mcl_bucket_reduce_g2(G2*, int)", None),
        ("modified_insertion_sort(float*, int*)", None),
        ("_parallel_reduce_cuda(float*)", None),
    ] {
        let gain = of(name, "fill").and_then(|it| it.gain(0.0));
        assert_eq!(gain.as_deref(), cure, "{name}");
    }
}

/// Sixteen batch norms and dropouts as in training: nothing trains, or an optimizer or a backward pass runs too.
#[test]
fn layers_that_train_where_nothing_trains_are_told() {
    let of = |name: &str, other: &str| {
        let mut busy = Busy::default();
        for _ in 0..8 {
            busy.kernel(name, 2_904, 1, None);
            busy.kernel(
                "at::native::fused_dropout_kernel_vec<float>",
                2_904,
                1,
                None,
            );
            busy.kernel(other, 2_904, 10, None);
        }
        busy.found("training-mode").map(|it| it.title)
    };
    let norm = "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>(float*)";
    let both = of(norm, "gemm").expect("nothing trains");
    both.must_begin("batch norms and dropout work as in training");
    assert!(both.contains("16 kernels, 1.60 ms"), "{both}");
    let one = of("void cudnn::bn_fw_inf_1C11_kernel_NCHW<float>()", "gemm").expect("dropout");
    one.must_begin("dropout works as in training");
    for trains in [
        "cudnn::bn_bw_1C11_kernel",
        "at::native::multi_tensor_apply_kernel<4>",
    ] {
        assert_eq!(of(norm, trains), None, "{trains}");
    }
}

/// 1 ms in fp32 and as much in half precision of 23 ms: half of what the GPU works, which is told as what comes next. A third of it is not.
#[test]
fn what_most_kernels_do_comes_next_where_the_gpu_waits() {
    let of = |others| {
        let mut busy = Busy::default();
        for name in ["volta_sgemm_128x64_tn"].into_iter().chain(others) {
            busy.kernel(name, 2_904, 10, None);
        }
        busy.at += 20_000_000;
        busy.kernel("hgemm", 2_904, 1, None);
        busy.found("idle-tensor-cores")
    };
    let it = of(vec![]).expect("most of it");
    assert_eq!((it.severity, it.estimated), (Severity::Info, None));
    let first = "First let the GPU wait less. Where it is precise enough";
    assert!(it.advice.starts_with(first), "{}", it.advice);
    assert_eq!(of(vec!["hgemm", "hgemm"]), None);
}

/// Kernels that copy for 6 of 10 ms; for 4; and where slopes say that weights change, so that they are converted in each step.
#[test]
fn what_grows_by_cat_and_what_autocast_converts_take_most_of_kernel_time() {
    let of = |name: &str, copies, other: &str| {
        let mut busy = Busy::default();
        for (name, tenths) in [(name, copies), (other, 100 - copies)] {
            busy.kernel(name, 2_904, tenths, None);
        }
        busy.found("copy-kernels")
    };
    let cat = "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<>";
    let half =
        "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda>";
    let it = of(cat, 60, "gemm").expect("most of it");
    assert_eq!((it.bound_ns, it.cure), (6_000_000, "writing into place"));
    it.change[0].to_string().must_begin("torch.cat: ");
    let it = of(half, 60, "gemm").expect("most of it");
    assert_eq!((it.bound_ns, it.cure), (6_000_000, "converting once"));
    assert_eq!(it.change[0].to_string(), "model.to: torch.bfloat16");
    assert_eq!(of(cat, 40, "gemm"), None);
    assert_eq!(of(half, 60, "multi_tensor_apply_kernel<FusedAdam>"), None);
    // As it is made contiguous, a tensor keeps its type. Attention reads what was made.
    let plain = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>";
    let it = of(
        plain,
        60,
        "cudnn_generated_fort_native_sdpa_sm80_flash_fprop",
    )
    .expect("most of it");
    assert_eq!((it.bound_ns, it.beside_ns), (6_000_000, 4_000_000));
    it.change[0].to_string().must_have("enable_gqa=True");
    assert_eq!(of(plain, 40, "gemm"), None);
}

/// PyTorch's kernel that adds up by index in order, for 6 of 10 ms, beside the sort before it; and a sort alone.
#[test]
fn sums_by_index_that_sort_first_are_told() {
    let sort = "cub::detail::radix_sort::DeviceRadixSortOnesweepKernel";
    let of = |name: &str, tenths| {
        let mut busy = Busy::default();
        busy.kernel(name, 2_904, tenths, None);
        busy.kernel(sort, 2_904, 30, None);
        busy.kernel("gemm", 2_904, 70 - tenths, None);
        busy.found("copy-kernels")
    };
    let sums = "void at::native::indexing_backward_kernel_stride_1<float>";
    let it = of(sums, 60).expect("most of it");
    assert_eq!((it.bound_ns, it.beside_ns), (6_000_000, 3_000_000));
    it.change[0]
        .to_string()
        .must_have("use_deterministic_algorithms: False");
    assert_eq!(of(sums, 30), None);
    assert_eq!(of("void scatter_gather_elementwise_kernel", 60), None);
}

/// Each of three operations of Adam's formula goes through all parameters: two of 4.2 ms could go. One kernel of all of it does not, nor what
/// scales slopes outside of its step, nor an optimizer that has no such kernel.
#[test]
fn an_optimizer_that_goes_through_all_parameters_for_each_operation() {
    let of = |range: &str, names: [&str; 3]| {
        let mut busy = Busy::default();
        for name in names {
            let at = busy.at;
            busy.scene.call("cudaLaunchKernel", at - 5_000, at - 1_000);
            busy.scene.range(RangeKind::Nvtx, range, 0, at - 6_000, at);
            busy.kernel(name, 2_904, 14, None);
        }
        busy.kernel("gemm", 2_904, 30, None);
        busy.found("optimizer-kernels")
    };
    let [lerp, addcmul, addcdiv] = [
        "multi_tensor_apply_kernel<TernaryOpScalarFunctor>",
        "multi_tensor_apply_kernel<PointwiseOpScalarFunctor>",
        "multi_tensor_apply_kernel<PointwiseOpScalarListFunctor>",
    ];
    let passes = [lerp, addcmul, addcdiv];
    // Without ranges of PyTorch its averages and its quotients say whose they are: others lack one of the two.
    let it = of("train", passes).expect("Adam's kernels");
    it.title.must_begin("Adam or AdamW goes through");
    assert_eq!(
        of(
            "train",
            [addcmul, addcdiv, "multi_tensor_apply_kernel<Sqrt>"]
        ),
        None
    );
    let it = of("Optimizer.step#Adam.step", passes).expect("three passes");
    assert_eq!(it.bound_ns, 2_800_000);
    let told = it.title + &it.change[0].to_string();
    assert!(
        told.contains("Adam goes") && told.contains("fused=True"),
        "{told}"
    );
    let fused = "multi_tensor_apply_kernel<FusedAdamMathFunctor>";
    assert_eq!(of("Optimizer.step#Adam.step", [fused; 3]), None);
    assert_eq!(of("clip_grad_norm_", [addcmul; 3]), None);
    assert_eq!(of("Optimizer.step#RMSprop.step", passes), None);
}

/// Where other kernels multiply in TF32 it is on, and what is left has no kernel for it. Layouts are turned around for them: 8 % of the
/// time, and 4.
#[test]
fn where_tf32_is_on_it_is_not_advised_and_layouts_are_told() {
    let named = |name: &str, turned: Ns| {
        let mut busy = Busy::default();
        busy.kernel("sm80_xmma_fprop_tf32f32_nhwc", 256, 100, None);
        busy.kernel(name, 256, turned, None);
        busy.kernel("implicit_convolve_sgemm", 256, 30, None);
        busy.scene.device(DeviceInfo {
            capability: (8, 0),
            ..DeviceInfo::default()
        });
        all_of(&mut busy.scene)
    };
    let of = |turned| named("void cudnn::ops::nchwToNhwcKernel<float>", turned);
    let found = |all: &[Finding], rule| all.iter().find(|it| it.rule.name() == rule).cloned();
    let all = of(12);
    let fp32 = found(&all, "idle-tensor-cores").expect("found");
    assert!(fp32.advice.contains("use bf16") && fp32.change.is_empty());
    let layout = found(&all, "layout").expect("found");
    assert_eq!((layout.count, layout.bound_ns), (1, 1_200_000));
    assert_eq!(layout.severity, Severity::Info);
    // 80 of 210.
    let layout = found(&of(80), "layout").expect("found");
    assert_eq!(layout.severity, Severity::Warning);
    assert_eq!(found(&of(5), "layout"), None);
    // TensorFlow's transposes of three dimensions, and one of its sums.
    for (kernel, turns) in [
        (
            "SwapDimension1And2InTensor3UsingTiles<float, 256, 32, 32>",
            true,
        ),
        ("ShuffleInTensor3Simple<Eigen::half, 2, 1, 0, false>", true),
        ("ColumnReduceKernel<float const*, float*>", false),
    ] {
        let all = named(&format!("void tensorflow::functor::{kernel}(int)"), 80);
        assert_eq!(found(&all, "layout").is_some(), turns, "{kernel}");
    }
}

/// Kernels of 1 ms of one configuration.
fn shaped(name: &str, shape: LaunchShape, device: DeviceInfo) -> Vec<Finding> {
    let mut scene = Scene::new();
    scene.device(device);
    for i in 0..10 {
        scene.shaped(shape, name, 7, i * MS, (i + 1) * MS);
    }
    all_of(&mut scene)
}

const MS: Ns = 1_000_000;

#[test]
fn an_engine_of_tensorrt_is_built_for_tensor_cores() {
    let change = |name: &str| {
        let card = DeviceInfo {
            capability: (8, 6),
            multiprocessors: 46,
            ..DeviceInfo::default()
        };
        let found = shaped(name, launch(4_600, 256), card);
        let found = found.iter().find(|it| it.rule == Rule::IdleTensorCores);
        found.expect("found").change[0].to_string()
    };
    change("trt_ampere_scudnn_128x128_relu").must_begin("try trtexec: --fp16");
    change("ampere_scudnn_128x128_relu").must_begin("try cublas");
}

/// Forty kernels of 1 ms on an H200, whose blocks share so many bytes, and how many of 1,000 samples waited for what.
fn waiting(shared: u32, reasons: &[(&str, u64)]) -> Scene {
    waiting_in([2_904, 1, 1], shared, reasons)
}

/// The same of a grid.
fn waiting_in(grid: [u32; 3], shared: u32, reasons: &[(&str, u64)]) -> Scene {
    let mut scene = Scene::new();
    scene.device(h200());
    let shape = LaunchShape {
        grid,
        block: [128, 1, 1],
        registers: 32,
        dynamic_shared: shared,
        ..LaunchShape::default()
    };
    for i in 0..40 {
        scene.shaped(shape, "stencil", 7, i * MS, (i + 1) * MS);
    }
    let rest = 1000 - reasons.iter().map(|it| it.1).sum::<u64>();
    let hardware = Hardware::Stalls(StallSamples {
        kernel: "stencil".to_owned(),
        reasons: reasons
            .iter()
            .chain(&[("selected", rest)])
            .map(|it| (it.0.to_owned(), it.1))
            .collect(),
        file: "/src/stencil.cu".to_owned(),
        line: 57,
        ..StallSamples::default()
    });
    let mut batch = scene.take();
    batch.hardware.push(hardware);
    scene.put(batch);
    scene
}

/// 40 ms; at the most the part of the samples is saved.
#[test]
fn kernels_that_wait_inside_an_sm() {
    let kinds = [
        (
            "bank-conflicts",
            "short_scoreboard",
            "shared memory and special units",
        ),
        ("barriers", "barrier", "other warps at barriers"),
        ("code-fetch", "no_instructions", "instructions to load"),
    ];
    for (rule, reason, what) in kinds {
        let found = sick(rule, &mut waiting(4096, &[(reason, 600)]));
        assert_eq!((found.bound_ns, found.count), (24 * MS, 40), "{rule}");
        let title = format!(
            "stencil (40.0 ms, 100 %): its warps wait 60 % of their time for {what}; 100 % at stencil.cu:57"
        );
        assert_eq!(found.title, title);
        cured(rule, &mut waiting(4096, &[(reason, 200)]));
    }
    // Without shared memory those are sines and roots; warps of a GEMM wait for another of their group by design.
    cured(
        "bank-conflicts",
        &mut waiting(0, &[("short_scoreboard", 600)]),
    );
    cured("barriers", &mut waiting(4096, &[("warpgroup_arrive", 600)]));
}

#[test]
fn few_warps_are_told_by_what_they_wait_for() {
    let found = sick(
        "few-warps",
        &mut waiting(160 << 10, &[("long_scoreboard", 700)]),
    );
    let said = "It waits for memory 70 %, issues 30 %; 100 % at stencil.cu:57.";
    assert!(found.advice.ends_with(said), "{}", found.advice);
    cured(
        "few-warps",
        &mut waiting(160 << 10, &[("long_scoreboard", 200)]),
    );
}

/// One block of four warps for each of the 132 SMs. On an H200 such a grid of two warps each waited for memory for 99 % of its samples.
#[test]
fn a_small_grid_that_waits_leaves_few_warps() {
    let grid = [132, 1, 1];
    let found = sick(
        "few-warps",
        &mut waiting_in(grid, 0, &[("long_scoreboard", 990)]),
    );
    let title =
        "few warps on an SM, limited by its grid: 4 of 64 in stencil, which takes 40.0 ms (100 %)";
    assert_eq!(found.title, title);
    // Fifteen of sixteen parts.
    assert_eq!(found.bound_ns, 37_500_000);
    cured(
        "few-warps",
        &mut waiting_in(grid, 0, &[("long_scoreboard", 200)]),
    );
    // Sixteen blocks fill an SM.
    let full = [132 * 16, 1, 1];
    cured(
        "few-warps",
        &mut waiting_in(full, 0, &[("long_scoreboard", 990)]),
    );
}

/// By hand: 30 blocks of 128 threads on 30 SMs are 4 warps each, of 48 or 64 that fit. Nobody saw them wait.
#[test]
fn a_small_grid_that_takes_most_of_the_time_leaves_few_warps() {
    let of_time = |took: Ns, blocks, threads, name: &str, others: i64| {
        let info = rtx_3060();
        let mut scene = Scene::new();
        let sms = info.multiprocessors;
        scene.device(info);
        scene.shaped(of_blocks(sms * blocks, threads, 32), name, 7, 0, 10 * took);
        for at in (0..others).map(|it| (10 + it) * took) {
            scene.shaped(of_blocks(4_000, 256, 32), "fill", 7, at, at + took);
        }
        let all = all_of(&mut scene);
        all.into_iter().find(|it| it.rule.name() == "few-warps")
    };
    let of = |blocks, threads, name: &str, others| of_time(20 * MS, blocks, threads, name, others);
    // A short one may have next to nothing to do.
    assert_eq!(of_time(MS, 1, 128, "trace_lines(float*)", 2), None);
    let it = of(1, 128, "trace_lines(float*)", 2).expect("found");
    it.title
        .must_begin("few warps on an SM, limited by its grid: 4 of 48 in trace_lines");
    // No number is promised.
    assert_eq!((it.severity, it.bound_ns), (Severity::Info, 0));
    for (blocks, threads, name, others) in [
        // More blocks or threads, what takes less than half, and what is made for few warps.
        (4, 128, "trace_lines(float*)", 2),
        (1, 512, "trace_lines(float*)", 2),
        (1, 128, "trace_lines(float*)", 12),
        (1, 128, "void cutlass::device_kernel<flash::Fwd>()", 2),
    ] {
        assert_eq!(of(blocks, threads, name, others), None, "{blocks} {name}");
    }
}

/// By names as cuBLAS, CUTLASS and cuDNN give them, ten of 1 ms each.
#[test]
fn products_in_fp32_are_known_by_their_names() {
    let of = |name, major| {
        let device = DeviceInfo {
            capability: (major, 0),
            ..h200()
        };
        let shape = launch(2_904, 256);
        let found = shaped(name, shape, device).into_iter();
        found
            .filter(|it| it.rule.name() == "idle-tensor-cores")
            .map(|it| (it.bound_ns, it.advice))
            .next()
    };
    for name in [
        "ampere_sgemm_128x64_tn",
        "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, true, true>(int, int, int, float const*)",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(Params)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
    ] {
        let (bound, advice) = of(name, 9).expect(name);
        assert_eq!(bound, 10_000_000);
        assert!(advice.contains("TF32 or bf16"), "{advice}");
    }
    of("volta_sgemm_128x64_nn", 7)
        .expect("it")
        .1
        .must_have("fp16");
    assert_eq!(of("maxwell_sgemm_128x64_nn", 6), None);
    // Attention in fp32 is split for tensor cores, which half precision need not be.
    let split = of(
        "fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention)",
        8,
    );
    assert!(split.expect("it").1.contains("bf16 or fp16"));
    assert_eq!(
        of(
            "fmha_cutlassB_bf16_aligned_64x64_k64_sm80(PyTorchMemEffAttention)",
            8
        ),
        None
    );
    for name in [
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4",
        "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn",
        "void cutlass::Kernel2<cutlass_80_simt_dgemm_64x64_8x5_nn_align1>(Params)",
        "volta_fp16_scudnn_fp16_128x32_relu_interior_nn_v1",
        "void implicit_convolve_sgemm<__half, __half, 128, 5, 5, 3, 3, 3, 1, false, true, true>(int, int, int, __half const*)",
    ] {
        assert_eq!(of(name, 9), None, "{name}");
    }
}

#[test]
fn products_of_few_blocks_or_of_a_moment_gain_nothing_by_tensor_cores() {
    let of = |blocks, length: Ns| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            capability: (9, 0),
            ..h200()
        });
        let shape = launch(blocks, 256);
        for i in 0..100 {
            scene.shaped(
                shape,
                "ampere_sgemm_32x128_tn",
                7,
                i * length,
                (i + 1) * length,
            );
        }
        let all = all_of(&mut scene);
        all.iter().any(|it| it.rule.name() == "idle-tensor-cores")
    };
    // A tenth of 132 SMs is 13.2.
    assert!(of(14, 20_000) && !of(13, 20_000));
    assert!(of(2_904, 5_000) && !of(2_904, 4_999));
}

/// Ten products of 1 ms on cards whose peaks in NVIDIA's data sheets are, in fp32 and bf16: RTX A5000 27.8 and 111 TFLOPS, RTX 6000 Ada 91.1
/// and 364, RTX 3070 Ti 21.7 and 43.5, L40 90.5 and 181.
#[test]
fn cards_for_work_and_for_games_gain_by_their_own_peaks() {
    let found = |name: &str, capability| {
        let device = DeviceInfo {
            name: name.to_owned(),
            capability,
            ..h200()
        };
        let all = shaped("ampere_sgemm_128x64_tn", launch(2_904, 256), device);
        let it = all
            .into_iter()
            .find(|it| it.rule.name() == "idle-tensor-cores");
        let it = it.expect("found");
        // TF32 is no cure where it is hardly faster.
        let told = it.change.iter().map(|it| it.to_string());
        let told = told.collect::<String>();
        assert!(told.contains("16BF") && !told.contains("TF32"), "{told}");
        (it.estimated, it.worth())
    };
    let up_to_half = "; could save up to 5.00 ms, estimated by the card's peak rates";
    let more = "; could save 5.00 to 7.50 ms, estimated by the card's peak rates";
    for (name, capability, least, most, worth) in [
        ("NVIDIA RTX A5000", (8, 6), 5, 75, more),
        ("NVIDIA RTX 6000 Ada Generation", (8, 9), 5, 75, more),
        ("NVIDIA GeForce RTX 3070 Ti", (8, 6), 0, 50, up_to_half),
        ("NVIDIA L40", (8, 9), 0, 50, up_to_half),
    ] {
        let expected = Some([least * MS, most * MS / 10]);
        assert_eq!(
            found(name, capability),
            (expected, worth.to_owned()),
            "{name}"
        );
    }
}

#[test]
fn some_cards_of_turing_have_no_tensor_cores() {
    for (name, has) in [
        ("NVIDIA T1000", false),
        ("NVIDIA GeForce GTX 1660 Ti", false),
        ("NVIDIA GeForce RTX 2080 Ti", true),
        ("Tesla T4", true),
    ] {
        let device = DeviceInfo {
            capability: (7, 5),
            name: name.to_owned(),
            ..h200()
        };
        let shape = launch(2_904, 256);
        let found = shaped("volta_sgemm_128x64_nn", shape, device);
        let is_told = found.iter().any(|it| it.rule.name() == "idle-tensor-cores");
        assert_eq!(is_told, has, "{name}");
    }
}

/// Ten products of 1 ms on a card that multiplies eight times as fast in fp16: alone, beside copies, and two at a time.
#[test]
fn what_runs_beside_others_has_no_estimated_saving() {
    let estimated = |streams: u32, copies: bool| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            capability: (7, 0),
            ..h200()
        });
        let shape = launch(2_904, 256);
        for (i, stream) in (0..10).flat_map(|i| (0..streams).map(move |it| (i, it))) {
            scene.shaped(
                shape,
                "volta_sgemm_128x64_nn",
                7 + stream,
                i * MS,
                (i + 1) * MS,
            );
        }
        if copies {
            scene.copy(Direction::H2D, 1, 1 << 28, 0, 9 * MS);
        }
        let all = all_of(&mut scene);
        let mut of = all
            .iter()
            .filter(|it| it.rule.name() == "idle-tensor-cores");
        of.next().expect("found").estimated
    };
    let alone = estimated(1, false).expect("a range");
    assert!(alone[1] < 10 * MS, "{alone:?}");
    assert_eq!([estimated(1, true), estimated(2, false)], [None, None]);
}

/// Ten products of 1 ms in fp32 on an H200, and behind each another kernel of 0.2 ms.
#[test]
fn half_the_bytes_of_other_kernels_may_go_with_bf16() {
    let mut scene = Scene::new();
    scene.device(h200());
    for at in (0..10).map(|i| i * 12 * MS / 10) {
        scene.shaped(launch(2_904, 256), "ampere_sgemm_128x64_nn", 7, at, at + MS);
        scene.shaped(launch(2_904, 256), "relu", 7, at + MS, at + 12 * MS / 10);
    }
    let found = sick_of(&mut scene, "idle-tensor-cores");
    // At least 1 / 3.7 of the products is left. At most it is 1 / 14.8, and half of the other 2 ms.
    let [least, most] = found.estimated.expect("a range");
    assert!((least - 7_297_297).abs() < 10, "{least}");
    assert!((most - 9_324_324 - 1_000_000).abs() < 10, "{most}");
    // TF32, which is tried first, leaves at least 1 / 7.4 of the products.
    found
        .worth()
        .must_begin("; could save 7.30 to 8.65 ms (up to 10.3 ms with bf16 throughout)");
}

fn sick_of(scene: &mut Scene, rule: &str) -> Finding {
    let mut all = all_of(scene).into_iter();
    all.find(|it| it.rule.name() == rule).expect("found")
}

/// Ten products of 1 ms in fp32, and ten kernels of attention of 0.2 ms: these use tensor cores in their own way.
#[test]
fn attention_in_fp32_is_no_product_without_tensor_cores() {
    let mut busy = Busy::default();
    for _ in 0..10 {
        busy.kernel("ampere_sgemm_128x64_tn", 2_904, 10, None);
        busy.kernel("fmha_cutlassF_f32_aligned_64x64_rf_sm80", 2_904, 2, None);
    }
    let title = busy.found("idle-tensor-cores").expect("found").title;
    assert!(
        title.contains("for 10.0 ms (83 % of kernel time)"),
        "{title}"
    );
}

/// An SM of an H200 holds one block of 128 threads that takes 160 KiB of 228, which are 4 warps.
#[test]
fn few_warps_of_own_kernels_are_a_remark() {
    let of_all = |blocks, name: &str, registers, shared, threads| {
        let shape = LaunchShape {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            registers,
            dynamic_shared: shared,
            ..LaunchShape::default()
        };
        shaped(name, shape, h200())
            .into_iter()
            .find(|it| it.rule.name() == "few-warps")
    };
    let of = |name: &str, shared, threads| of_all(2_904, name, 32, shared, threads);
    let it = of("stencil", 160 << 10, 128).expect("found");
    // Four of 64 warps: of 10 ms fifteen sixteenths at the most.
    assert_eq!((it.severity, it.bound_ns), (Severity::Info, 9_375_000));
    assert_eq!(
        it.title,
        "few warps on an SM, limited by shared memory: 4 of 64 in stencil, which takes 10.0 ms (100 %)"
    );
    // A block for each SM and no more: fewer registers would bring none, and more threads of each bring warps.
    let of_grid = |blocks| of_all(blocks, "stencil", 255, 0, 256);
    assert!(of_grid(2_904).is_some() && of_grid(132).is_none());
    assert!(of_all(132, "stencil", 32, 160 << 10, 128).is_some());
    // Eight are few in what takes most of the time; ten are not.
    assert!(of("stencil", 160 << 10, 256).is_some());
    assert_eq!(of("stencil", 160 << 10, 320), None);
    assert_eq!(of("stencil", 16 << 10, 128), None);
    for name in [
        "void flash::flash_fwd_kernel<…>(…)",
        "triton_red_fused_3",
        "sm90_xmma_gemm_bf16",
    ] {
        assert_eq!(of(name, 160 << 10, 128), None, "{name}");
    }
}

/// Three times three of 1 ms each in a row, with a product between: one of three is left, 6 of 12 ms go.
#[test]
fn elementwise_kernels_at_the_roof_of_memory_are_a_chain() {
    let of = |name: &str, share, others| {
        let mut busy = Busy::default();
        for _ in 0..3 {
            for _ in 0..3 {
                busy.kernel(name, 2_904, 10, Some(share));
                if others {
                    busy.kernel("gemm", 2_904, 1, Some([0.1, 0.9, 0.3]));
                }
            }
            busy.kernel("gemm", 2_904, 10, Some([0.1, 0.9, 0.3]));
        }
        busy.found("memory-chain")
    };
    let name = "vectorized_elementwise_kernel";
    let it = of(name, [0.9, 0.0, 0.1], false).expect("found");
    assert_eq!((it.bound_ns, it.count), (6_000_000, 9));
    assert_eq!(of(name, [0.9, 0.0, 0.1], true), None);
    assert_eq!(of(name, [0.4, 0.0, 0.1], false), None);
    // CuPy's names, near no peak of memory yet; a sum reads more than it writes.
    assert!(
        of(
            "cupy_multiply__float32_float32_float32",
            [0.5, 0.0, 0.2],
            false
        )
        .is_some()
    );
    assert_eq!(of("cupy_sum__float32", [0.9, 0.0, 0.1], false), None);
    let of_cupy = |dram| of("cupy_add__float32", [dram, 0.0, 0.2], false).is_some();
    assert_eq!([0.35, 0.25].map(of_cupy), [true, false]);
    assert_eq!(of("layer_norm", [0.9, 0.0, 0.1], false), None);
    // What writes where a tensor says is no part of a chain.
    let scatter = "index_elementwise_kernel<128, 4, index_put_kernel_impl>";
    assert_eq!(of(scatter, [0.9, 0.0, 0.1], false), None);
}

/// Nine rounds of CuPy's three of 1 ms, and nothing else: of each round one is left. What is fused already is one kernel.
#[test]
fn a_row_that_comes_again_and_again_is_a_row_each() {
    let of = |names: &[&str]| {
        let mut busy = Busy::default();
        for _ in 0..9 {
            for name in names {
                busy.kernel(name, 2_904, 10, Some([0.35, 0.0, 0.2]));
            }
        }
        busy.found("memory-chain")
    };
    let it = of(&["cupy_add__f", "cupy_multiply__f", "cupy_sqrt__f"]).expect("found");
    assert_eq!((it.bound_ns, it.count), (18_000_000, 27));
    assert!(it.title.contains("each read and write memory anew"));
    assert_eq!(of(&["tone"]), None);
}

/// So many rounds of three of 1, 2 and 1 ms in a row and a product: 2 of 5 ms of a round go. Nobody sampled.
#[test]
fn elementwise_kernels_in_a_row_are_a_chain_whatever_their_sizes() {
    let after = |name: &str, rounds, pause| {
        let mut busy = Busy::default();
        for _ in 0..rounds {
            for (blocks, tenths) in [(2_904, 10), (5_808, 20), (2_904, 10)] {
                busy.at += pause;
                busy.kernel(name, blocks, tenths, None);
            }
            busy.kernel("gemm", 2_904, 10, None);
        }
        busy.found("memory-chain")
    };
    let of = |name, rounds| after(name, rounds, 0);
    let it = of("unrolled_elementwise_kernel", 10).expect("found");
    let told = (it.bound_ns, it.count, it.severity);
    assert_eq!(told, (20_000_000, 30, Severity::Info));
    // What the CPU does for over 1 ms between them may need their results.
    assert!(after("unrolled_elementwise_kernel", 10, 1_000_000).is_some());
    assert_eq!(after("unrolled_elementwise_kernel", 10, 1_000_001), None);
    it.title.must_end("40.0 ms (80 % of kernel time)");
    // A few are no model's.
    assert_eq!(of("unrolled_elementwise_kernel", 2), None);
    let norms = of("void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float>()", 10).expect("found");
    norms
        .title
        .must_begin("30 elementwise and batch norm kernels");
    // So is what cuDNN runs backward on a V100.
    let back = of(
        "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>()",
        10,
    );
    assert_eq!(back.expect("found").bound_ns, 20_000_000);
    assert_eq!(of("layer_norm", 10), None);
}

/// 4 of 14 ms in a row, beside ten of one product, or of ten that take a tenth of it each: then no one kernel takes more.
#[test]
fn a_row_is_named_where_it_takes_more_than_any_one_kernel() {
    let of = |name: fn(u32) -> String| {
        let mut busy = Busy::default();
        for _ in 0..10 {
            for tenths in [10, 20, 10] {
                busy.kernel("unrolled_elementwise_kernel", 2_904, tenths, None);
            }
            for number in 0..10 {
                busy.kernel(&name(number), 2_904, 10, None);
            }
        }
        busy.found("memory-chain").expect("found").says.is_some()
    };
    assert!(!of(|_| "gemm".to_owned()));
    assert!(of(|it| format!("gemm_{it}")));
}

/// Ten rounds of 1, 2 and 1 ms and a product, whose calls lie in a range.
#[test]
fn elementwise_kernels_in_an_optimizers_step_are_its() {
    let of = |range: &str| {
        let mut busy = Busy::default();
        for _ in 0..10 {
            for (blocks, tenths) in [(2_904, 10), (5_808, 20), (2_904, 10)] {
                let at = busy.at;
                busy.scene.call("cudaLaunchKernel", at - 5_000, at - 1_000);
                busy.scene.range(RangeKind::Nvtx, range, 0, at - 6_000, at);
                busy.kernel(
                    "at::native::unrolled_elementwise_kernel",
                    blocks,
                    tenths,
                    None,
                );
            }
            busy.kernel("gemm", 2_904, 10, None);
        }
        let it = busy.found("memory-chain").expect("found");
        let change = it
            .change
            .iter()
            .map(|it| it.to_string())
            .collect::<String>();
        (it.title, it.says.expect("it is most").why, change)
    };
    let (title, why, change) = of("optimizer_step");
    let whose = ", 100 % of that in the optimizer's step";
    assert!(title.contains(whose), "{title}");
    assert!(why.ends_with(whose), "{why}");
    assert!(change.contains("fused=True"), "{change}");
    let (title, _, change) = of("forward");
    assert!(!title.contains("optimizer"), "{title}");
    assert!(change.contains("torch.compile"), "{change}");
}

/// Forty of 1 ms each, behind one that fills what they read; or as many of two kinds by turns, of which 40 of 41 ms could go at most.
#[test]
fn one_elementwise_kernel_in_a_loop_is_no_chain() {
    let of = |kinds: usize| {
        let mut busy = Busy::default();
        busy.kernel("elementwise_fill", 2_904, 10, None);
        for i in 0..40 {
            let name = ["elementwise_add", "elementwise_mul"][i % kinds];
            busy.kernel(name, 2_904, 10, None);
        }
        busy.found("memory-chain")
    };
    assert_eq!(of(1), None);
    let it = of(2).expect("found");
    assert_eq!((it.bound_ns, it.count), (40_000_000, 41));
}

/// A kernel of 1 ms, and then for 2 s launches and waits that left no kernel.
#[test]
fn a_recording_that_went_blind_says_so() {
    let of = |seconds: Ns, busy: f64| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            uuid: Some(GPU),
            ..h200()
        });
        scene.call("cudaLaunchKernel", -10_000, -5_000);
        scene.kernel("k", 7, 0, MS);
        for i in 1..=seconds * 100 {
            let at = 10 * i * MS;
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.call("cudaDeviceSynchronize", at + 6_000, at + 9 * MS);
        }
        let mut batch = scene.take();
        batch.hardware.push(Hardware::Reading(Reading {
            uuid: GPU,
            span: Span::new(0, seconds * 1000 * MS),
            values: vec![(Metric::Sm, busy)],
            ..Reading::default()
        }));
        scene.put(batch);
        all_of(&mut scene)
            .into_iter()
            .find(|it| it.rule.name() == "lost-records")
    };
    let said = of(2, 0.9).expect("found").title;
    let expected = "blind for the last 2.00 s: of 200 launched kernels none is recorded, though the GPU was busy";
    assert_eq!(said, expected);
    // Of an idle GPU nobody knows, and less than a second may be under way.
    assert_eq!([of(2, 0.1), of(1, 0.9)], [None, None]);
}

#[test]
fn blocks_of_one_thread_and_one_block_are_told_by_their_names() {
    let advice = |info: Option<DeviceInfo>, blocks, threads| {
        let mut scene = Scene::new();
        info.map(|info| scene.device(info));
        for at in (0..10).map(|i| i * 10_000_000) {
            scene.shaped(launch(blocks, threads), "k", 7, at, at + 9_990_000);
        }
        let found = findings(&mut scene).into_iter();
        let mut found = found.filter(|it| it.rule == Rule::UnderFilledGpu);
        found.next().map(|it| (it.title, it.advice, it.cure))
    };
    let (title, told, _) = advice(Some(h200()), 1 << 20, 1).expect("it is told");
    title.must_have("1,048,576 blocks of 1 thread for 132 SMs");
    told.must_begin("One-thread blocks: ");
    let (_, told, _) = advice(Some(h200()), 1, 256).expect("it is told");
    told.must_begin("One block runs on one SM, ");
    let (_, told, cure) = advice(Some(h200()), 1, 1).expect("it is told");
    told.must_begin("One thread does all the work: ");
    assert_eq!(cure, "launching more blocks and threads");
    // Where nobody says how many SMs there are, one block leaves all others empty.
    let (title, ..) = advice(None, 1, 256).expect("it is told");
    title.must_begin("10 kernels with 1 block: ");
    assert_eq!(advice(None, 2, 256), None);
    assert_eq!(advice(Some(h200()), 132, 256), None);
}

/// Rounds of a product and a kernel of so many blocks for so long.
#[test]
fn short_kernels_of_one_block_are_told_where_they_take_much() {
    let of = |blocks: u32, last: Ns, product: Ns| {
        let mut scene = Scene::new();
        scene.device(h200());
        for i in 0..100 {
            let at = i * (product + last);
            scene.shaped(launch(1024, 256), "product", 7, at, at + product);
            scene.shaped(
                launch(blocks, 256),
                "last",
                7,
                at + product,
                at + product + last,
            );
        }
        let found = findings(&mut scene).into_iter();
        let mut found = found.filter(|it| it.rule == Rule::UnderFilledGpu);
        found.next().map(|it| (it.title, it.severity))
    };
    // 4 of 10 us a round; a fifth of it, and less.
    let (title, severity) = of(1, 4_000, 6_000).expect("it is told");
    title.must_begin("100 kernels with 1 block for 132 SMs: 400 µs (40 % of kernel time)");
    assert_eq!(severity, Severity::Info);
    assert!(of(1, 4_000, 16_000).is_some());
    assert_eq!(of(1, 4_000, 17_000), None);
    // More blocks are a matter of launching, and so is what takes no longer than nothing does.
    assert_eq!(of(33, 4_000, 6_000), None);
    assert_eq!(of(1, 2_900, 6_000), None);
}

#[test]
fn kernels_in_double_are_told_on_cards_with_little_of_it() {
    let of = |capability, name: &str| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            capability,
            ..DeviceInfo::default()
        });
        scene.kernel(name, 1, 0, 9_000_000);
        let found = findings(&mut scene).into_iter();
        let mut found = found.filter(|it| it.rule == Rule::DoublePrecision);
        found.next().map(|it| (it.title, it.severity))
    };
    let name = "divergence(int, double *, double *)";
    let (title, severity) = of((8, 6), name).expect("it is told");
    title.must_begin(
        "kernels in double precision take 9.00 ms (100 % of kernel time), all of it divergence",
    );
    title.must_end("64 times as fast");
    assert_eq!(severity, Severity::Info);
    // An A100 has half as many units for double as for float, and of 11.0 nobody knows.
    assert_eq!(of((8, 0), name), None);
    assert_eq!(of((11, 0), name), None);
    assert_eq!(of((8, 6), "divergence(float const*, float*, double)"), None);
    let each =
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<double>>()";
    assert_eq!(of((8, 6), each), None);
}

/// Levels of a triangular matrix in double on 40 SMs: kernels of 5 to 120 blocks take 67 us. On 5 to 35 an SM has one block each.
#[test]
fn a_chain_that_takes_as_long_with_any_grid_waits_for_no_unit() {
    let is_told = |grids: [u32; 4], times: [i64; 4]| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            capability: (7, 5),
            multiprocessors: 40,
            ..DeviceInfo::default()
        });
        let mut at = 0;
        for (grid, time) in grids.into_iter().zip(times) {
            let shape = LaunchShape {
                grid: [grid, 1, 1],
                block: [32, 1, 1],
                ..LaunchShape::default()
            };
            scene.shaped(shape, "solve(double*)", 1, at, at + time * 1_000);
            at += time * 1_000;
        }
        let found = findings(&mut scene);
        found.iter().any(|it| it.rule == Rule::DoublePrecision)
    };
    assert!(!is_told([5, 11, 93, 120], [67, 67, 69, 65]));
    assert!(is_told([5, 11, 20, 35], [67, 67, 69, 65]));
    assert!(is_told([5, 11, 93, 120], [67, 67, 140, 180]));
    assert!(is_told([93, 93, 120, 120], [67, 67, 69, 65]));
}

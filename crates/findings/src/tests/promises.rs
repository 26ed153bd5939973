//! What is promised holds for the change that is named, and a place is told where it is known.

use super::*;
use trace::testing::Sentence as _;

#[test]
fn a_step_in_one_jit_may_save_its_short_kernels_too() {
    let scene = |name: &str| {
        let mut scene = short_kernels(false);
        scene.name(name);
        scene
    };
    // 99 pauses of 10 us, and 100 kernels of 2 us: no replay of a graph says how many XLA leaves.
    let found = sick("launch-bound", &mut scene("XlaModule:#hlo_module=jit_step"));
    assert_eq!(found.bound_ns, 99 * 10_000 + 100 * 2_000);
    // What is bounded is named: 990 us and 200 us.
    let title = "the GPU is idle for 990 µs (83 %) in gaps under 1 ms between operations, most often before k";
    let with = "; kernels shorter than a launch take 200 µs";
    assert_eq!(found.title, format!("{title}{with}"));
    let reason = Some("jax.jit also fuses kernels".to_owned());
    assert_eq!(
        (found.cure, found.refused),
        ("one jax.jit around the step", reason)
    );
    // A CUDA graph has the same kernels.
    let found = sick("launch-bound", &mut scene("work"));
    assert_eq!((found.bound_ns, found.refused), (99 * 10_000, None));
    assert_eq!(found.title, title);
}

#[test]
fn streams_that_are_made_anew_with_memory_are_told_with_it() {
    // Twenty rounds of 100 us with memory of their own; a stream for each takes so long to make, and as long to destroy.
    let advice = |stream: Ns| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 100_000) {
            scene.call("cudaStreamCreate", at, at + stream);
            scene.call("cudaMallocAsync", at + 10_000, at + 30_000);
            scene.call("cudaLaunchKernel", at + 31_000, at + 34_000);
            scene.kernel("k", 1, at + 40_000, at + 60_000);
            scene.call("cudaFreeAsync", at + 62_000, at + 82_000);
            scene.call("cudaStreamDestroy", at + 84_000, at + 84_000 + stream);
        }
        sick("alloc-in-loop", &mut scene).advice
    };
    // One is made before the first kernel, and one destroyed behind the last.
    let told = " Make streams once, too: 38 calls make and destroy some in 190 µs.";
    advice(5_000).must_end(told);
    advice(500).must_lack("streams");
}

#[test]
fn the_function_that_most_allocating_takes_is_named() {
    let scene = |free: Ns| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 100_000) {
            scene.call("cudaMallocAsync", at, at + 30_000);
            scene.call("cudaLaunchKernel", at + 31_000, at + 34_000);
            scene.kernel("k", 1, at + 40_000, at + 60_000);
            scene.call("cudaFreeAsync", at + 62_000, at + 62_000 + free);
        }
        sick("alloc-in-loop", &mut scene).title
    };
    let told = scene(2_000);
    assert!(told.ends_with(", mostly cudaMallocAsync"), "{told}");
    // Half each, but for the first of one and the last of the other.
    assert!(!scene(30_000).contains("mostly"), "{}", scene(30_000));
}

/// Rounds of a kernel of 20 ms, and a copy of 64 MiB down and up again so long after it.
fn round(kernel: &str, pause: Ns, up: u64) -> Scene {
    let (mut scene, mut now) = (Scene::new(), 0);
    for _ in 0..4 {
        scene.kernel(kernel, 7, now, now + 20_000_000);
        scene.copy(
            Direction::D2H,
            7,
            64 << 20,
            now + 20_000_000,
            now + 26_000_000,
        );
        now += 26_000_000 + pause;
        scene.copy(Direction::H2D, 7, up, now, now + 4_000_000);
        now += 4_000_000;
    }
    scene
}

#[test]
fn arrays_that_come_down_and_go_up_at_once_may_stay() {
    let found = sick(
        "round-trips",
        &mut round("nvkernel_solve_F1L204_2", 500_000, 64 << 20),
    );
    // Four copies up of 4 ms, and what brings them down in 6.
    assert_eq!((found.count, found.bound_ns), (4, 4 * 10_000_000));
    // What is looked at ends before the last one goes up, and begins behind the first that came down.
    let trace = round("nvkernel_solve_F1L204_2", 500_000, 64 << 20).trace();
    let part = Some(Span::new(26_000_000, 117_900_000));
    let of_part = in_scope(&trace, part, PEAKS, all);
    let of_part = of_part.iter().find(|it| it.rule == Rule::RoundTrips);
    assert_eq!(of_part.map(|it| it.bound_ns), Some(3 * 10_000_000));
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(
        found.change[0].to_string(),
        "#pragma acc data: around the loop, or #pragma omp target data"
    );
    // Of a program's own copies nobody knows that they are the same arrays.
    cured("round-trips", &mut round("solve", 500_000, 64 << 20));
    // Nor does another name that ends so tell it.
    let mut own = round("solve", 500_000, 64 << 20);
    own.name("send_to_gpu");
    cured("round-trips", &mut own);
    // In 3 ms the CPU may have gone through them; and other arrays go up.
    cured(
        "round-trips",
        &mut round("nvkernel_solve_F1L204_2", 3_000_000, 64 << 20),
    );
    cured(
        "round-trips",
        &mut round("nvkernel_solve_F1L204_2", 500_000, 48 << 20),
    );
}

/// Twelve words, each a kernel of 1 ms, whose array of some MiB comes up before it and goes down behind it, and is so much larger then.
fn words(grows: u64, pause: Ns) -> Scene {
    let (mut scene, mut now, mut bytes) = (Scene::new(), 0, 200 << 20);
    for _ in 0..12 {
        scene.call("cudaLaunchKernel", now, now + 8_900_000);
        scene.copy(Direction::H2D, 7, bytes, now, now + 4_000_000);
        scene.kernel("attend", 7, now + 4_000_000, now + 5_000_000);
        bytes += grows;
        let down = now + 5_000_000;
        scene.copy(Direction::D2H, 7, bytes, down, down + 4_000_000);
        now += 9_000_000 + pause;
    }
    scene
}

#[test]
fn what_is_kept_of_a_sequence_and_grows_may_stay_on_the_gpu() {
    let found = sick("round-trips", &mut words(1 << 20, 0));
    // All but the first word's array came down before, 11 of 206 MiB on average; 12 times 8 ms are copies alone.
    assert_eq!((found.count, found.bound_ns), (11, 12 * 8_000_000));
    found
        .title
        .must_begin("offloading: 2.21 GiB go to the CPU's memory");
    // Batches and what comes of them are of one size; and in 8 ms a core may change it.
    cured("round-trips", &mut words(0, 0));
    cured("round-trips", &mut words(1 << 20, 8_000_000));
}

/// A product of 2 ms, a scale, another kernel and a product, four times.
fn attention(middle: &str, last: &str) -> Scene {
    rounds(&["ampere_sgemm_128x128_tn", SCALE, middle, last])
}

const SCALE: &str = "void at::native::vectorized_elementwise_kernel<4, MulFunctor<float>>(int)";

/// Kernels of 2 ms, four times.
fn rounds(names: &[&str]) -> Scene {
    let mut scene = Scene::new();
    for (at, name) in (0..).zip(names.repeat(4)) {
        scene.kernel(name, 7, at * 2_000_000, (at + 1) * 2_000_000);
    }
    scene
}

#[test]
fn attention_that_writes_its_scores_is_known_by_its_kernels() {
    let softmax = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, SoftMaxForwardEpilogue>(float*)";
    let found = sick(
        "attention",
        &mut attention(softmax, "ampere_sgemm_128x128_nn"),
    );
    // Half of 32 ms lies between the products, of which a fused kernel takes a quarter.
    assert_eq!((found.count, found.bound_ns), (4, 28_000_000));
    let change = found.change[0].to_string();
    assert!(change.contains("scaled_dot_product_attention"), "{change}");
    // A mask is added, and the softmax is of single precision: five lie before it, and one behind.
    let product = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT";
    let mut eager = vec![SCALE; 5];
    eager.splice(0..0, [product]);
    eager.extend([softmax, SCALE, product]);
    let found = sick("attention", &mut rounds(&eager));
    assert_eq!((found.count, found.bound_ns), (4, 4 * (14 + 3) * 1_000_000));
    // A loss, a choice of experts, and a kernel that is fused.
    let loss = softmax.replace("SoftMaxForwardEpilogue", "LogSoftMaxForwardEpilogue");
    cured(
        "attention",
        &mut attention(&loss, "ampere_sgemm_128x128_nn"),
    );
    cured(
        "attention",
        &mut attention(softmax, "void at::native::sbtopk::gatherTopK<float>()"),
    );
    cured(
        "attention",
        &mut attention(
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80",
            "ampere_sgemm_128x128_nn",
        ),
    );
}

/// Products of 2 ms and attention of so long, four times, on a GPU of such a capability.
fn flash(kernel: &str, length: Ns, capability: (u32, u32), product: &str) -> Scene {
    let mut scene = Scene::new();
    scene.device(DeviceInfo {
        capability,
        ..h200()
    });
    for at in (0..4).map(|it| it * 4_000_000) {
        scene.kernel(product, 7, at, at + 2_000_000);
        scene.kernel(kernel, 7, at + 2_000_000, at + 2_000_000 + length);
    }
    scene
}

#[test]
fn attention_of_a_library_for_older_gpus_is_told_on_newer_ones() {
    let old = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4> >(Flash_fwd_params)";
    let (ms, product) = (2_000_000, "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN");
    let found = sick("attention", &mut flash(old, ms, (9, 0), product));
    // Four of 2 ms, of which newer ones take half at best; nobody knows whether they do.
    assert_eq!((found.count, found.bound_ns), (4, 4_000_000));
    assert_eq!(found.severity, Severity::Info);
    found.advice.must_have("likely");
    // A file that does not say which GPU it was has a product for newer ones alone.
    sick("attention", &mut flash(old, ms, (0, 0), product));
    let new = "void cutlass::device_kernel<flash::FlashAttnFwdSm90<CollectiveMainloopFwdSm90> >()";
    let few = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128> >()";
    for (name, length, capability, product) in [
        (new, ms, (9, 0), product),
        // An A100 has none that is faster, nor may a card that is not known.
        (old, ms, (8, 0), product),
        (old, ms, (0, 0), "ampere_sgemm_128x128_tn"),
        // What reads a cache for one row waits for memory, and 50 us are too short to tell.
        (few, ms, (9, 0), product),
        (old, 50_000, (9, 0), "ampere_bf16_s16816gemm_tiny"),
    ] {
        cured("attention", &mut flash(name, length, capability, product));
    }
}

#[test]
fn what_pytorch_draws_on_the_cpu_is_told_so() {
    let scene = |name: &str| {
        let mut scene = Scene::new();
        for at in (0..10).map(|i| i * 10_000_000) {
            scene.range(
                activity::RangeKind::CpuOp,
                name,
                0,
                at + 4_000,
                at + 10_000_000,
            );
            scene.call("cudaLaunchKernel", at, at + 3_000);
            scene.kernel("k", 1, at + 6_000, at + 2_000_000);
        }
        sick("host-bound", &mut scene).change
    };
    let told = scene("aten::normal_")[0].to_string();
    assert_eq!(told, "torch.randn: device=\"cuda\"");
    assert!(scene("aten::sort").is_empty());
}

#[test]
fn a_context_is_made_behind_a_call_that_needs_none() {
    let title = |takes: &str| {
        let mut scene = Scene::new();
        scene.call("cudaGetDeviceProperties", -400_000_000, -397_000_000);
        scene.call(takes, -300_000_000, -25_000_000);
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("k", 1, 6_000, 50_006_000);
        sick("cold-start", &mut scene).title
    };
    let told = title("cudaMalloc");
    assert!(told.contains("on making the context;"), "{told}");
    // To lock pages takes long by itself.
    let told = title("cudaMallocHost");
    assert!(told.contains("on pinning host memory;"), "{told}");
}

#[test]
fn what_prepares_a_batch_ahead_also_hides_its_copy() {
    let scene = |copied: Ns| {
        let (mut scene, mut now) = (Scene::new(), 0);
        for _ in 0..6 {
            let work = Span::new(now, now + 40_000_000);
            scene.range(
                activity::RangeKind::Nvtx,
                "load_batch",
                0,
                work.start,
                work.end,
            );
            now = work.end;
            if copied > 0 {
                scene.call("cudaMemcpyAsync", now, now + 5_000);
                scene.copy(
                    Direction::H2D,
                    7,
                    64 << 20,
                    now + 10_000,
                    now + 10_000 + copied,
                );
                now += 10_000 + copied;
            }
            scene.call("cudaLaunchKernel", now, now + 5_000);
            scene.kernel("k", 7, now + 10_000, now + 10_010_000);
            now += 10_010_000;
        }
        sick("host-bound", &mut scene)
    };
    // Before the first kernel nothing can be prepared: five batches of 40 ms are. A pause of 10 us goes with each.
    let found = scene(0);
    assert_eq!(
        (found.bound_ns, found.beside_ns),
        (5 * 40_000_000, 5 * 10_000)
    );
    // So do its copy and the pause behind that.
    let found = scene(8_000_000);
    let beside = 5 * 8_020_000;
    assert_eq!((found.bound_ns, found.beside_ns), (5 * 40_000_000, beside));
    let whole = 6 * 58_020_000 - 40_000_000 - 10_000;
    let most = (5 * 40_000_000 + beside) as f64 / whole as f64;
    assert_eq!(found.promise(whole), [0.0, 200e6 / whole as f64, most]);
    found
        .worth()
        .must_have("could save at most 240 ms, 200 ms of it without other changes");
}

#[test]
fn a_prediction_is_told_as_a_range_where_it_is_one() {
    let finding = |low_ns, high_ns| {
        let predicted = Predicted {
            per: Per::Run,
            samples: 1,
            measured_ns: 10_000_000,
            predicted_ns: 6_000_000,
            likely_ns: 6_000_000,
            low_ns,
            high_ns,
            replay_error: 0.0,
            notes: Vec::new(),
            is_estimate: false,
            on_top: 4_000_000,
            above: 0,
        };
        Finding {
            severity: Severity::Warning,
            bound_ns: 4_000_000,
            saving_ns: Some(4_000_000),
            predicted: Some(predicted),
            cure: "pinning",
            ..Finding::default()
        }
    };
    let told = |low, high| finding(low, high).gain(0.0).expect("a cure");
    assert_eq!(told(5_700_000, 6_300_000), "pinning saves 4.00 ms");
    // What is capped is promised as it is told: of 4 ms in 10 ms three, and the same part of the ends.
    let mut capped = finding(5_200_000, 7_000_000);
    capped.predicted.as_mut().expect("a prediction").on_top = 3_000_000;
    assert_eq!(capped.promise(10_000_000), [0.225, 0.3, 0.36]);
    assert_eq!(told(5_200_000, 7_000_000), "pinning saves 3.00 to 4.80 ms");
    assert_eq!(told(5_200_000, 10_400_000), "pinning saves at most 4.80 ms");
}

#[test]
fn of_uneven_steps_a_bound_says_what_it_is_of() {
    let of = |is_mean| {
        let step = OfSteps {
            one: 101_000_000,
            all: 1_010_000_000,
            is_mean,
            ..OfSteps::default()
        };
        let finding = Finding {
            rule: Rule::HostBound,
            severity: Severity::Warning,
            bound_ns: 792_000_000,
            step: Some(step),
            cure: "using more DataLoader workers",
            ..Finding::default()
        };
        (finding.gain(0.0).expect("a cure"), finding.worth())
    };
    let (gain, worth) = of(false);
    assert_eq!(gain, "up to 79.2 ms from using more DataLoader workers");
    assert_eq!(worth, "; could save at most 79.2 ms a step");
    // The change comes first, and what the bound is of.
    let (gain, worth) = of(true);
    assert_eq!(
        gain,
        "using more DataLoader workers: up to 79.2 ms of 101 ms a step (mean)"
    );
    assert_eq!(
        worth,
        "; could save at most 79.2 ms of 101 ms a step (mean)"
    );
}

#[test]
fn a_sync_before_a_copy_that_waits_too_saves_nothing_alone() {
    let scene = |memory: MemoryKind| {
        let (mut scene, mut now) = (Scene::new(), 0);
        for _ in 0..20 {
            scene.call("cudaLaunchKernel", now, now + 5_000);
            scene.kernel("k", 7, now + 10_000, now + 200_000);
            scene.call("cudaDeviceSynchronize", now + 6_000, now + 205_000);
            scene.call("cudaMemcpy", now + 300_000, now + 360_000);
            let copy = Copy {
                to: memory,
                ..pinned(Direction::D2H, 7, 1 << 17)
            };
            scene.copy_of(copy, now + 320_000, now + 350_000);
            now += 460_000;
        }
        sick("sync-in-loop", &mut scene).cures[0].to_string()
    };
    assert_eq!(scene(MemoryKind::Pageable), "no-sync+pin");
    assert_eq!(scene(MemoryKind::Pinned), "no-sync");
}

/// Ten rounds of a copy of 2 ms, a kernel of 5 and a copy back of 2, each waited for; the CPU then works for 1 ms.
#[test]
fn no_cure_saves_more_than_what_it_touches() {
    let mut scene = Scene::new();
    let mut now = 0;
    for _ in 0..10 {
        scene.call("cudaMemcpyAsync", now, now + 5_000);
        scene.copy(Direction::H2D, 1, 32 << 20, now + 10_000, now + 2_010_000);
        scene.call("cudaLaunchKernel", now + 5_000, now + 9_000);
        scene.kernel("k", 1, now + 2_010_000, now + 7_010_000);
        scene.call("cudaMemcpyAsync", now + 9_000, now + 14_000);
        scene.copy(
            Direction::D2H,
            1,
            32 << 20,
            now + 7_010_000,
            now + 9_010_000,
        );
        scene.call("cudaStreamSynchronize", now + 14_000, now + 9_015_000);
        now += 10_000_000;
    }
    // Copies of 40 ms are hidden beside kernels of 50. Nine pauses of 1 ms lie between the rounds.
    assert_eq!(sick("no-overlap", &mut scene).cap_ns, Some(40_000_000));
    let caps = findings(&mut scene).into_iter();
    let sync = caps.filter(|it| it.rule == Rule::SyncInLoop);
    let most = sync.filter_map(|it| it.cap_ns).max();
    assert!(most.is_none_or(|it| it == 9_000_000), "{most:?}");
}

/// Twenty rounds of a kernel of 100 us that is waited for; 20 us later comes the next, and 5 ms later once, which are spent on pinning.
#[test]
fn what_takes_memory_stays_whatever_a_sync_costs() {
    let mut scene = Scene::new();
    let mut now = 0;
    for round in 0..20 {
        scene.call("cudaLaunchKernel", now, now + 4_000);
        scene.kernel("k", 1, now + 5_000, now + 105_000);
        scene.call("cudaStreamSynchronize", now + 5_000, now + 106_000);
        now += 125_000;
        if round == 10 {
            scene.call("cudaHostAlloc", now - 18_000, now + 4_982_000);
            now += 5_000_000;
        }
    }
    let found = sick("sync-in-loop", &mut scene);
    // 18 pauses of 25 us.
    let most = found.bound_ns + found.beside_ns;
    assert!((18 * 24_000..=20 * 25_000).contains(&most), "{most}");
}

#[test]
fn no_graph_leaves_out_the_cpus_long_work() {
    // Four batches that take 2 ms to prepare are copied in 10 us. Behind that 200 kernels of 2 us begin 12 us apart.
    let mut scene = Scene::new();
    let mut at = 0;
    for _ in 0..4 {
        scene.range(activity::RangeKind::Nvtx, "load", 0, at, at + 2_000_000);
        at += 2_000_000;
        scene.call("cudaMemcpyAsync", at, at + 4_000);
        scene.copy(Direction::H2D, 7, 1 << 20, at + 5_000, at + 15_000);
        at += 15_000;
        for _ in 0..200 {
            scene.call("cudaLaunchKernel", at, at + 9_000);
            scene.kernel("k", 7, at + 10_000, at + 12_000);
            at += 12_000;
        }
    }
    let found = sick("launch-bound", &mut scene);
    // The pauses of 10 us before kernels. Larger batches also have an eighth of the 800 kernels of 2 us.
    assert!(
        (7_900_000..8_100_000).contains(&found.bound_ns),
        "{}",
        found.bound_ns
    );
    let batched = 1_400_000;
    assert!(
        (batched..batched + 60_000).contains(&found.beside_ns),
        "{}",
        found.beside_ns
    );
}

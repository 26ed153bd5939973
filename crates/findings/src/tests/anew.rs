//! What is done anew each time, and in more bytes than it needs.

use super::limits::Busy;
use super::*;

/// Of kernels of a millisecond in all, ten times: `wide` takes nine tenths.
fn of(wide: &str, other: &str) -> Option<Finding> {
    let mut busy = Busy::default();
    for _ in 0..10 {
        busy.kernel(wide, 2_904, 9, None);
        busy.kernel(other, 2_904, 1, None);
    }
    busy.found("double-precision")
}

#[test]
fn arrays_that_became_double_take_twice_the_bytes() {
    let mixed = "cupy_multiply__float32_float64_float64";
    let fft = "void regular_fft<2048u, EPT<8u>, unsigned int, double, Host>(kernel_arguments)";
    let found = of(fft, mixed).expect("double");
    // Half of 10 ms.
    assert_eq!(
        (found.bound_ns, found.severity),
        (5_000_000, Severity::Warning)
    );
    assert!(found.title.contains("(100 %)") && found.title.contains("makes double of both"));
    // Nobody mixed anything: it may be wanted.
    assert!(of(fft, "cupy_multiply__float64_float64_float64").is_none());
    let single = "void regular_fft<2048u, EPT<8u>, unsigned int, float, Host>(kernel_arguments)";
    assert!(of(single, "cupy_multiply__float32_float32_float32").is_none());
    // Few of all are; a program's own kernels are as it wants them.
    assert!(of("cupy_multiply__float32_float32_float32", "sum").is_none());
    assert!(
        of(
            "step(double*, double*)",
            "cupy_add__float32_float32_float32"
        )
        .is_none()
    );
}

#[test]
fn a_sparse_tensor_that_is_coalesced_each_time_is_told() {
    let of = |times: usize, name: &str| {
        let mut busy = Busy::default();
        for _ in 0..10 {
            busy.kernel(
                "at::cub::merge_sort::DeviceMergeSortMergeKernel<long>",
                2_904,
                4,
                None,
            );
            busy.kernel("cusparse::csrmm_alg1_kernel<float>", 2_904, 2, None);
        }
        for _ in 0..times {
            busy.kernel(name, 2_904, 4, None);
        }
        busy.found("coalescing")
    };
    let adds = "void at::native::apply::coalesceValuesKernel<float, float>(long*)";
    // 4 ms of sorting and 4 of adding up.
    assert_eq!(of(10, adds).map(|it| it.bound_ns), Some(8_000_000));
    // Once is what is advised; and who sorts has other reasons.
    assert!(of(1, adds).is_none());
    assert!(of(10, "at::native::index_elementwise_kernel<float>").is_none());
}

/// Four streams take turns of a copy up, a kernel and a copy back of a millisecond each, and the CPU waits behind each turn.
#[test]
fn streams_that_are_waited_for_one_by_one_have_their_wait_named() {
    let of = |streams: u32| {
        let (mut scene, mut now) = (Scene::new(), 0);
        for i in 0..16 {
            let stream = 1 + i % streams;
            scene.call("cudaMemcpyAsync", now, now + 5_000);
            scene.copy(
                Direction::H2D,
                stream,
                50 << 20,
                now + 10_000,
                now + 1_000_000,
            );
            scene.call("cudaLaunchKernel", now + 6_000, now + 9_000);
            scene.kernel("weigh", stream, now + 1_001_000, now + 2_000_000);
            scene.call("cudaMemcpyAsync", now + 10_000, now + 15_000);
            scene.copy(
                Direction::D2H,
                stream,
                50 << 20,
                now + 2_001_000,
                now + 3_000_000,
            );
            scene.call("cudaStreamSynchronize", now + 16_000, now + 3_005_000);
            now += 3_010_000;
        }
        sick("no-overlap", &mut scene).change[0].to_string()
    };
    assert_eq!(
        of(4),
        "cudaStreamSynchronize: behind all batches, not behind each"
    );
    assert!(of(1).starts_with("try cudaStreamCreate"), "{}", of(1));
}

/// Sixteen passes of a model over `first` rows and some more each time, twice.
#[test]
fn passes_that_go_through_all_rows_again_want_a_kv_cache() {
    let of = |first: u32, more: u32, other: &str| {
        let mut busy = Busy::default();
        for _ in 0..2 {
            for pass in 0..16 {
                let rows = first + more * pass;
                busy.kernel(
                    "at::native::vectorized_layer_norm_kernel<float>",
                    rows,
                    1,
                    None,
                );
                busy.kernel(other, 2_904, 9, None);
                busy.kernel(
                    "at::native::vectorized_layer_norm_kernel<float>",
                    rows,
                    1,
                    None,
                );
            }
        }
        busy.found("recomputing")
    };
    let found = of(512, 8, "gemm").expect("a pass again");
    // Of 32 passes of 1.1 ms thirty are like the one before: 30 of 32 changes.
    assert_eq!(found.bound_ns, 33_000_000);
    found
        .title
        .must_begin("30 passes go through all rows of the one before again");
    assert!(found.title.contains("512 to 632 blocks"), "{}", found.title);
    // A KV cache: one row a text. Training: batches of lengths that differ, and a backward pass.
    assert!(of(8, 0, "gemm").is_none());
    assert!(of(512, 8, "at::native::layer_norm_backward_kernel").is_none());
    assert!(of(512, 200, "gemm").is_none());
}

/// Twelve launches of a graph of six nodes. `made` says before which one is made, for 2 ms.
fn graphs(made: impl Fn(i64) -> bool, node: Ns) -> Scene {
    let mut scene = Scene::new();
    let (mut now, mut free) = (0, 0);
    let mut call = |scene: &mut Scene, name: &str, takes: Ns| {
        scene.call(name, now, now + takes);
        now += takes + 1_000;
        now
    };
    for step in 0..12 {
        if made(step) {
            call(&mut scene, "cudaStreamBeginCapture_v10000", 5_000);
            call(&mut scene, "cudaStreamEndCapture_v10000", 20_000);
            call(&mut scene, "cudaGraphInstantiate_v12000", 2_000_000);
        }
        let launched = call(&mut scene, "cudaGraphLaunch_v10000", 20_000);
        free = free.max(launched);
        for _ in 0..6 {
            scene.kernel("press", 7, free, free + node);
            free += node + 100;
        }
    }
    scene
}

#[test]
fn graphs_made_for_each_launch_are_told_where_the_gpu_waits_for_them() {
    let found = sick("graphs-anew", &mut graphs(|_| true, 20_000));
    // Eleven lie behind the first operation: 2 ms and more, but for what the nodes of the launch before take (120.6 µs).
    assert_eq!(found.count, 11);
    let least = 11 * (2_000_000 - 120_600);
    assert!(
        (least..least + 11 * 60_000).contains(&found.bound_ns),
        "{found:?}"
    );
    found.title.must_begin("11 CUDA graphs are made anew");
    // The first is kept; the GPU works meanwhile; all are made before the first launch.
    cured("graphs-anew", &mut graphs(|step| step == 0, 20_000));
    cured("graphs-anew", &mut graphs(|_| true, 400_000));
    let mut ahead = Scene::new();
    for at in 0..12 {
        ahead.call(
            "cudaGraphInstantiate_v12000",
            at * 2_000_000,
            at * 2_000_000 + 1_900_000,
        );
    }
    for at in (0..12).map(|it| 24_000_000 + it * 300_000) {
        ahead.call("cudaGraphLaunch_v10000", at, at + 20_000);
        ahead.kernel("press", 7, at + 25_000, at + 45_000);
    }
    cured("graphs-anew", &mut ahead);
}

#[test]
fn what_is_asked_before_each_launch_is_asked_once() {
    // 5 us of `call` before each launch of 4 us, of kernels that take `kernel`.
    let of = |call: &str, kernel: Ns| {
        let mut scene = Scene::new();
        scene.device(h200());
        let mut free = 0;
        for at in (0..100).map(|it| it * 10_000) {
            scene.call(call, at, at + 5_000);
            scene.call("cudaLaunchKernel", at + 5_500, at + 9_500);
            free = (at + 9_000).max(free);
            scene.kernel("sweep", 7, free, free + kernel);
            free += kernel;
        }
        scene
    };
    let found = sick("queries", &mut of("cudaMemGetInfo", 2_000));
    assert_eq!(found.count, 99);
    // All but what lies before the first kernel: half of a round's 10 us.
    assert_eq!(found.bound_ns, 99 * 5_000);
    cured("launch-bound", &mut of("cudaMemGetInfo", 2_000));
    // So does what is asked while the launch before is still on its way.
    let mut on_its_way = Scene::new();
    on_its_way.device(h200());
    for at in (0..100).map(|it| it * 10_000) {
        on_its_way.call("cudaLaunchKernel", at, at + 3_000);
        on_its_way.kernel("sweep", 7, at + 8_000, at + 9_800);
        on_its_way.call("cudaMemGetInfo", at + 3_100, at + 9_900);
    }
    sick("queries", &mut on_its_way);
    // What it stands in for tells of launching, too, also of what the questions alone do not take.
    let rest = |call: &str| {
        let mut scene = Scene::new();
        scene.device(h200());
        for at in (0..200).map(|it| it * 14_000) {
            scene.call(call, at, at + 5_000);
            scene.call("cudaLaunchKernel", at + 5_500, at + 13_500);
            scene.kernel("sweep", 7, at + 13_000, at + 14_000);
        }
        scene
    };
    sick("queries", &mut rest("cudaMemGetInfo"));
    cured("no-cure", &mut rest("cudaMemGetInfo"));
    // What is asked behind a sync costs what the question takes, and not the sync.
    let mut synced = Scene::new();
    synced.device(h200());
    for at in (0..100).map(|it| it * 10_000) {
        synced.call("cudaGetDeviceProperties", at, at + 5_000);
        synced.call("cudaLaunchKernel", at + 5_200, at + 5_500);
        synced.kernel("sweep", 7, at + 6_000, at + 9_000);
        synced.call("cudaDeviceSynchronize", at + 5_600, at + 9_500);
    }
    let found = sick("queries", &mut synced);
    found.change[0]
        .to_string()
        .must_begin("cudaGetDeviceProperties");
    cured("sync-in-loop", &mut synced);
    // The GPU works meanwhile; what libraries ask is their own.
    cured("queries", &mut of("cudaMemGetInfo", 20_000));
    cured("queries", &mut of("cudaPointerGetAttributes", 2_000));
}

#[test]
fn launches_that_return_behind_their_kernels_are_blocked() {
    let of = |call: &str, returns: fn(Ns) -> Ns, takes: Ns| {
        let mut scene = Scene::new();
        for at in (0..40).map(|it| it * 60_000) {
            scene.call(call, at, at + 10_000 + returns(takes));
            scene.kernel("k", 7, at + 10_000, at + 10_000 + takes);
        }
        scene
    };
    let launches = |returns, takes| of("cudaLaunchKernel_v7000", returns, takes);
    let found = sick(
        "blocked-launches",
        &mut launches(|takes| takes + 4_000, 15_000),
    );
    // 29 µs each, of which a launch takes 2.
    assert_eq!((found.count, found.bound_ns), (40, 40 * 27_000));
    assert_eq!(
        found.change[0].to_string(),
        "CUDA_LAUNCH_BLOCKING: leave out, or 0"
    );
    // What launches is an operation of TensorFlow.
    cured(
        "blocked-launches",
        &mut of("Launch", |takes| takes + 4_000, 15_000),
    );
    // They return while it runs; what takes 3 µs may be over before its call is.
    cured(
        "blocked-launches",
        &mut launches(|takes| takes - 5_000, 15_000),
    );
    cured(
        "blocked-launches",
        &mut launches(|takes| takes + 2_000, 3_000),
    );
}

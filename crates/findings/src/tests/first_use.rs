//! What only a program's first calls pay.

use super::*;
use activity::RangeKind;
use trace::SourceKind;
use trace::testing::Sentence;

/// Two kernels by turns, every 100 us. Launches take 5 us, but for the one with this number.
fn launches(slow: i64) -> Scene {
    let mut scene = Scene::new();
    let mut at = 0;
    for i in 0..20 {
        let took = if i == slow { 2_000_000 } else { 5_000 };
        scene.call("cudaLaunchKernel", at, at + took);
        at += took + 2_000;
        scene.kernel(if i % 2 == 0 { "a" } else { "b" }, 1, at, at + 90_000);
        at += 95_000;
    }
    scene
}

#[test]
fn the_first_launch_of_a_kernel_is_a_cold_start_and_a_later_one_is_not() {
    for first in [0, 1] {
        let found = sick("cold-start", &mut launches(first));
        assert_eq!((found.count, found.bound_ns), (1, 2_000_000));
        let what = "cold start: 2.00 ms spent on loading GPU code";
        assert!(found.title.starts_with(what), "{}", found.title);
    }
    cured("cold-start", &mut launches(2));
    cured("cold-start", &mut launches(20));
}

#[test]
fn a_first_launch_that_waits_for_room_in_the_queue_loads_nothing() {
    // The first launch of b takes 6 ms, while what was launched before runs for so long.
    let scene = |busy: Ns| {
        let mut scene = launches(20);
        let at = 2_100_000;
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("a", 1, at + 5_000, at + 5_000 + busy);
        scene.call("cudaLaunchKernel", at + 5_000, at + 6_005_000);
        scene.kernel("c", 1, at + 6_010_000, at + 6_100_000);
        scene
    };
    assert_eq!(
        sick("cold-start", &mut scene(2_000_000)).bound_ns,
        4_000_000
    );
    cured("cold-start", &mut scene(6_000_000));
}

#[test]
fn what_waits_or_returns_late_is_no_cold_start() {
    // A launch of 2 ms, whose kernel begins so long after the call did.
    let launch = |begins: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 2_000_000);
        scene.kernel("k", 1, begins, 14_000_000);
        scene.call("cudaDeviceSynchronize", 2_100_000, 14_010_000);
        scene
    };
    sick("cold-start", &mut launch(2_001_000));
    cured("cold-start", &mut launch(180_000));
    // The first of six operators takes a second, of which it waits so long for what was launched before.
    let operator = |waits: Ns| {
        let mut scene = operators(0, 6);
        scene.call("cudaStreamSynchronize", 10_000, 10_000 + waits);
        scene
    };
    sick("cold-start", &mut operator(0));
    cured("cold-start", &mut operator(999_900_000));
}

#[test]
fn what_a_profiler_takes_to_start_is_no_cold_start() {
    // Twelve kernels, each launched twice within 5 us, but for the first launch of this many of them.
    let told = |slow: i64, source| {
        let mut scene = Scene::new();
        let mut at = 0;
        for i in 0..24 {
            let took = if i < slow { 2_000_000 } else { 5_000 };
            scene.call("cudaLaunchKernel", at, at + took);
            at += took + 2_000;
            scene.kernel(&format!("k{}", i % 12), 1, at, at + 90_000);
            at += 95_000;
        }
        let mut trace = scene.trace();
        trace.source.kind = source;
        let found = in_scope(&trace, None, PEAKS, all);
        let found = found.into_iter().find(|it| it.rule.name() == "cold-start");
        found.map(|it| it.bound_ns)
    };
    assert_eq!(told(1, SourceKind::Kineto), None);
    assert_eq!(told(2, SourceKind::Kineto), Some(4_000_000));
    // Nsight Systems is there before the program.
    assert_eq!(told(1, SourceKind::Nsys), Some(2_000_000));
}

/// A module loads for 20 ms between the first kernel and the first of the steps: the GPU waits for that.
#[test]
fn the_gpu_waits_for_code_that_loads_right_before_the_steps() {
    let mut scene = Scene::new();
    for at in [0, 21_000_000] {
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("k", 1, at + 5_000, at + 105_000);
    }
    scene.call("cuModuleLoadData", 500_000, 20_500_000);
    in_scope(&scene.trace(), None, PEAKS, |whole| {
        let before = whole.within(Some(Span::new(0, 21_005_000)), whole.devices);
        let found = of_start_up(&before).into_iter();
        let mut found = found.filter(|it| it.rule == Rule::ColdStart);
        let inside = found.next().and_then(|it| it.inside_ns);
        assert_eq!(inside, Some(20_000_000));
    });
}

/// What a program does once before its work is named: its context, compiling by the driver, pages that are locked.
#[test]
fn what_a_cold_start_is_made_of_is_named() {
    let told = |name: &str, took: Ns, overhead: &str| {
        let mut scene = Scene::new();
        scene.call(name, 0, took);
        scene.overhead(overhead, took, took + 20_000_000);
        scene.call("cudaHostAlloc", took + 20_000_000, took + 60_000_000);
        let at = took + 60_000_000;
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 8_000, at + 90_000_000);
        let found = sick("cold-start", &mut scene);
        (found.title, found.advice.contains("-arch"))
    };
    let (title, is_built) = told("cudaFree", 200_000_000, "Driver JIT compiler (CUDA)");
    let expected = "cold start: 260 ms spent on making the context (200 ms), compiling PTX in the driver (20.0 ms) and pinning host memory (40.0 ms)";
    assert!(title.starts_with(expected) && is_built, "{title}");
    let (title, is_built) = told(
        "cuDriverGetVersion",
        200_000,
        "Lazy function loading (CUDA)",
    );
    let expected =
        "cold start: 60.0 ms spent on loading GPU code (20.0 ms) and pinning host memory (40.0 ms)";
    assert!(title.starts_with(expected) && !is_built, "{title}");
}

/// 500 ms of pinning after the driver opened its compiler for 2 ms, and a module that loads for so long.
#[test]
fn an_open_compiler_is_no_cure_of_pinning() {
    let told = |load: Ns| {
        let mut scene = Scene::new();
        scene.overhead("dlopen(libnvidia-ptxjitcompiler.so.1)", 0, 2_000_000);
        scene.call("cuModuleLoadDataEx", 2_000_000, 2_000_000 + load);
        let at = 2_000_000 + load;
        scene.call("cuMemHostAlloc", at, at + 500_000_000);
        let at = at + 500_000_000;
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 8_000, at + 90_000_000);
        sick("cold-start", &mut scene).advice
    };
    let said = "Pin only what copies need, or in another thread.";
    // The module alone takes 0.1 ms; as little of all as 10 ms is no cure either.
    assert_eq!([told(100_000), told(10_000_000)], [said, said]);
    let both = told(100_000_000);
    assert!(both.starts_with(said) && both.contains("-arch"), "{both}");
}

/// Two kernels, with so many calls of 25 ms between them that lock memory, behind a first call of 1 ms.
#[test]
fn pinning_is_counted_where_the_gpu_waits_for_it() {
    let scene = |name: &str, number: i64| {
        let mut scene = Scene::new();
        scene.call("cudaHostAlloc", -1_500_000, -500_000);
        scene.call("cudaLaunchKernel", 0, 5_000);
        scene.kernel("k", 1, 6_000, 106_000);
        for i in 0..number {
            scene.call(name, 200_000 + i * 25_000_000, 25_200_000 + i * 25_000_000);
        }
        let at = 300_000 + number * 25_000_000;
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 6_000, at + 10_000_000);
        scene
    };
    let found = sick("cold-start", &mut scene("cuMemHostAlloc", 1));
    let told = (found.bound_ns, found.inside_ns, found.gain(0.0));
    let gain = "up to 25.0 ms from pinning earlier";
    assert_eq!(told, (26_000_000, Some(25_000_000), Some(gain.to_owned())));
    let what = "26.0 ms spent on pinning host memory;";
    assert!(found.title.contains(what), "{}", found.title);
    cured("no-cure", &mut scene("cuMemHostAlloc", 1));
    // What gives pages back pins none, and what is pinned over and over is no start.
    for (name, number) in [
        ("cuMemFreeHost", 1),
        ("cudaHostUnregister", 1),
        ("cuMemHostAlloc", 8),
    ] {
        sick("no-cure", &mut scene(name, number));
    }
}

#[test]
fn what_each_set_of_data_pins_anew_is_no_start() {
    // Two sets of data, with memory that is pinned for 20 ms before each, and given back behind the first one or not.
    let found = |frees: bool| {
        let mut scene = Scene::new();
        for at in [0, 100_000_000] {
            scene.call("cudaMallocHost", at, at + 20_000_000);
            scene.call("cudaLaunchKernel", at + 21_000_000, at + 21_005_000);
            scene.kernel("k", 1, at + 21_006_000, at + 70_000_000);
            if frees {
                scene.call("cudaFreeHost", at + 71_000_000, at + 75_000_000);
            }
        }
        sick("cold-start", &mut scene).bound_ns
    };
    assert_eq!(found(false), 40_000_000);
    assert_eq!(found(true), 20_000_000);
}

/// Kernels with an allocation before each, of 1 us. These take a second.
fn allocations(slow: &[i64], usual: Ns) -> Scene {
    let mut scene = Scene::new();
    let mut at = 0;
    for i in 0..20 {
        let took = if slow.contains(&i) {
            1_000_000_000
        } else {
            usual
        };
        scene.call("cudaMalloc", at, at + took);
        at += took + 1_000;
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 6_000, at + 96_000);
        at += 100_000;
    }
    scene
}

#[test]
fn allocations_that_are_slow_while_all_is_cold_are_no_loop() {
    // Every other one takes a second, long after all that is done for the first time: that is the loop.
    let often: Vec<i64> = (1..10).map(|i| 2 * i).collect();
    let found = sick("alloc-in-loop", &mut allocations(&often, 1_000));
    assert_eq!(found.bound_ns, 9 * 1_000_000_000 + 10 * 1_000);
    cured("alloc-in-loop", &mut allocations(&[4, 9], 1_000));
    // Those of a loop that takes its time for each are one, with such or without.
    let found = sick("alloc-in-loop", &mut allocations(&[], 60_000));
    // The first one came before the first operation.
    assert_eq!(found.bound_ns, 19 * 60_000);
    let found = sick("alloc-in-loop", &mut allocations(&[4], 6_000_000));
    assert_eq!(found.bound_ns, 18 * 6_000_000);
    found
        .title
        .must_have(", 1.00 s of it in 1 outlier (over 10");
}

/// Beside a thread that launches every millisecond another one takes memory and gives it back.
#[test]
fn memory_that_is_shared_with_other_processes_sets_up_their_exchange() {
    let beside = |shares: bool| {
        let mut scene = Scene::new();
        for i in 0..20 {
            let at = i * 1_000_000;
            scene.on_thread(0);
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 6_000, at + 96_000);
            scene.on_thread(1);
            scene.call("cudaMalloc", at + 100_000, at + 700_000);
            if shares {
                scene.call("cudaIpcOpenMemHandle", at + 710_000, at + 720_000);
            }
            scene.call("cudaFree", at + 730_000, at + 900_000);
        }
        scene
    };
    sick("alloc-in-loop", &mut beside(false));
    cured("alloc-in-loop", &mut beside(true));
}

/// A free takes 500 ms and makes the context. A second one takes 240 ms.
#[test]
fn a_free_before_any_memory_is_taken_makes_a_context() {
    let told = |takes: bool| {
        let mut scene = Scene::new();
        scene.call("cudaFree", -2_000_000_000, -1_500_000_000);
        let name = if takes { "cudaMalloc" } else { "cuInit" };
        scene.call(name, -1_490_000_000, -1_489_900_000);
        scene.call("cudaFree", -1_400_000_000, -1_160_000_000);
        scene.call("cudaMalloc", -1_100_000_000, -1_099_900_000);
        scene.call("cudaLaunchKernel", 0, 5_000);
        scene.kernel("k", 1, 6_000, 100_006_000);
        scene.call("cudaFree", 100_010_000, 100_012_000);
        sick("cold-start", &mut scene).title
    };
    told(false).must_begin("cold start: 740 ms spent on making the context;");
    // So does one in a profile of PyTorch from the start on: no operation ran before.
    let profiled = |ran: bool| {
        let mut scene = Scene::new();
        scene.call("cudaFree", -500_000_000, -200_000_000);
        if ran {
            scene.kernel("k", 1, -600_000_000, -550_000_000);
        }
        scene.call("cudaLaunchKernel", 0, 5_000);
        scene.kernel("k", 1, 6_000, 100_006_000);
        let mut trace = scene.trace();
        trace.source.kind = SourceKind::Kineto;
        let found = in_scope(&trace, None, PEAKS, all);
        let found = found.into_iter().find(|it| it.rule == Rule::ColdStart);
        found.map_or_else(String::new, |it| it.title)
    };
    profiled(false).must_begin("cold start: 300 ms spent on making the context;");
    assert!(!profiled(true).contains("context"));
    told(true).must_have("making the context (500 ms) and first allocations and frees (240 ms)");
}

/// A hundred libraries are loaded for 5 ms each, so long before the first launch.
#[test]
fn code_that_is_all_loaded_ahead_may_be_loaded_when_it_is_launched() {
    let advice = |ahead: Ns| {
        let mut scene = Scene::new();
        for i in 0..100 {
            let at = -ahead - 600_000_000 + i * 6_000_000;
            scene.call("cuLibraryLoadData", at, at + 5_000_000);
        }
        scene.call("cudaLaunchKernel", 0, 5_000);
        scene.kernel("k", 1, 6_000, 100_006_000);
        sick("cold-start", &mut scene).advice
    };
    advice(1_000_000_000).must_have("CUDA_MODULE_LOADING=LAZY");
    advice(1_000_000).must_have("CUDA_MODULE_LOADING=EAGER");
}

/// Forty kernels of 90 us with a free of 2 us before each. These take 300 us, and a kernel that is new at the end 2 ms to launch.
#[test]
fn frees_that_are_slow_all_over_the_time_are_the_loops() {
    let scene = |slow: &dyn Fn(i64) -> bool| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for i in 0..41 {
            let took = if slow(i) { 300_000 } else { 2_000 };
            scene.call("cudaFree", at, at + took);
            at += took + 1_000;
            let (name, took) = if i < 40 {
                ("k", 5_000)
            } else {
                ("last", 2_000_000)
            };
            scene.call("cudaLaunchKernel", at, at + took);
            scene.kernel(name, 1, at + took, at + took + 90_000);
            at += took + 100_000;
        }
        scene
    };
    let found = sick("alloc-in-loop", &mut scene(&|i| i % 4 == 3));
    // The first comes before the first kernel: 30 others of 2 us and ten of 300.
    assert_eq!(found.bound_ns, 30 * 2_000 + 10 * 300_000);
    found.title.must_have("3.00 ms of it in 10 outliers");
    // As many at once are no loop's, and nor are few.
    cured("alloc-in-loop", &mut scene(&|i| (3..11).contains(&i)));
    cured("alloc-in-loop", &mut scene(&|i| i % 8 == 3));
}

#[test]
fn a_cache_that_a_cold_program_fills_is_no_loop() {
    // 20 launches with an allocation of 60 us before each. The first launch takes so long, and so many are given back.
    let scene = |first: Ns, given_back: usize| {
        let mut scene = Scene::new();
        let mut at = 0;
        for i in 0..20 {
            scene.call("cudaMalloc", at, at + 60_000);
            let took = if i == 0 { first } else { 5_000 };
            scene.call("cudaLaunchKernel", at + 61_000, at + 61_000 + took);
            at += 61_000 + took;
            scene.kernel("k", 1, at + 1_000, at + 91_000);
            if i < given_back {
                scene.call("cudaFree", at + 92_000, at + 95_000);
            }
            at += 100_000;
        }
        scene
    };
    cured("alloc-in-loop", &mut scene(2_000_000, 1));
    sick("alloc-in-loop", &mut scene(2_000_000, 20));
    sick("alloc-in-loop", &mut scene(5_000, 1));
    // What is given back behind all operations was no cache either.
    let mut late = scene(2_000_000, 1);
    for i in 0..15 {
        late.call("cudaFree", 9_000_000 + i * 5_000, 9_003_000 + i * 5_000);
    }
    assert_eq!(sick("alloc-in-loop", &mut late).cure, "reusing memory");
    // Within operations of PyTorch nobody asked for it.
    let mut full = scene(2_000_000, 20);
    full.range(RangeKind::CpuOp, "aten::empty", 0, 0, 9_000_000);
    let full = sick("alloc-in-loop", &mut full);
    assert!(full.advice.contains("nearly full"), "{}", full.advice);
    // What is behind its first launch is no start: its steps take memory again and again.
    let steady = Span::new(2_200_000, 5_300_000);
    let trace = scene(2_000_000, 1).trace();
    let found = in_scope(&trace, Some(steady), PEAKS, all);
    let found = found.iter().find(|it| it.rule.name() == "alloc-in-loop");
    assert!(found.is_some_and(|it| it.count >= 18), "{found:?}");
}

/// Operators of 1 ms with a launch and a wait in each. The host's own part of this one takes a second, and so many of them
/// there are.
fn operators(slow: i64, number: i64) -> Scene {
    let mut scene = Scene::new();
    let mut at = 0;
    for i in 0..number {
        let own = if i == slow { 1_000_000_000 } else { 900_000 };
        scene.range(
            RangeKind::CpuOp,
            "aten::cudnn_convolution",
            0,
            at,
            at + own + 100_000,
        );
        let launched = at + own;
        scene.call("cudaLaunchKernel", launched, launched + 3_000);
        scene.kernel("k", 1, launched + 6_000, launched + 80_000);
        scene.call("cudaStreamSynchronize", launched + 4_000, launched + 90_000);
        at += own + 100_000;
    }
    scene
}

#[test]
fn the_first_operator_of_a_name_is_a_cold_start_and_not_what_binds_the_host() {
    // Before the first one the GPU has done nothing: another launch before makes the gap.
    let scene = |slow: i64, number: i64| {
        let mut scene = operators(slow, number);
        scene.call("cudaLaunchKernel", -300_000, -297_000);
        scene.kernel("before", 1, -290_000, -200_000);
        scene
    };
    let found = sick("cold-start", &mut scene(0, 5));
    // All of it but the wait, of 86 us.
    assert_eq!(found.bound_ns, 1_000_100_000 - 86_000);
    assert_eq!(
        found.advice,
        "Warm up before measuring: run everything once. The program still takes that time."
    );
    // Without records of the GPU nobody knows what it waits for.
    let unknown = Finding {
        inside_ns: None,
        ..found.clone()
    };
    assert_eq!(unknown.worth(), "");
    // A warm-up saves a program nothing.
    assert_eq!(found.worth(), "; the GPU waits for it");
    let told = found.gain(0.0).expect("a warning with a cure");
    assert_eq!(told, "warming up keeps 1.00 s out of a measurement");
    assert!(!found.has_bound());
    cured("host-bound", &mut scene(0, 5));
    // Nor is one that takes as long again, by a name with a number behind.
    let mut again = scene(0, 5);
    let name = "aten::cudnn_convolution 7";
    again.range(RangeKind::CpuOp, name, 0, 5_000_000_000, 6_000_000_000);
    cured("cold-start", &mut again);
    // Of three nobody knows what one takes, and a later one is none.
    for (slow, number) in [(0, 3), (2, 5)] {
        cured("cold-start", &mut scene(slow, number));
        sick("no-cure", &mut scene(slow, number));
    }
}

#[test]
fn of_few_calls_those_before_the_quickest_are_first_ones() {
    let scene = |name: &str, times: [Ns; 3]| {
        let mut scene = Scene::new();
        let mut at = -2_000_000_000;
        for took in times {
            scene.call(name, at, at + took);
            at += took + 1_000;
        }
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("k", 1, 6_000, 50_006_000);
        scene
    };
    let found = sick(
        "cold-start",
        &mut scene("cudaFree", [266_000_000, 715_000_000, 4_000]),
    );
    assert_eq!((found.count, found.bound_ns), (2, 981_000_000));
    // The quickest first: what came later took its time for something else.
    cured(
        "cold-start",
        &mut scene("cudaFree", [4_000, 266_000_000, 715_000_000]),
    );
    // What locks pages is long for that, but for the call that makes the context.
    let locking = |times| scene("cudaHostAlloc", times);
    let found = sick(
        "cold-start",
        &mut locking([266_000_000, 715_000_000, 4_000]),
    );
    assert_eq!((found.count, found.bound_ns), (3, 981_004_000));
    let what = "making the context (266 ms) and pinning host memory (715 ms)";
    assert!(found.title.contains(what), "{}", found.title);
    let found = sick("cold-start", &mut locking([1_000_000, 715_000_000, 4_000]));
    found.title.must_have("on pinning host memory;");
    cured(
        "cold-start",
        &mut scene("cudaFree", [266_000_000, 715_000_000, 200_000_000]),
    );
}

#[test]
fn the_first_call_of_all_makes_the_context_whatever_it_is() {
    let scene = |before: Ns| {
        let mut scene = Scene::new();
        scene.call(
            "cuModuleGetLoadingMode",
            -900_000_000,
            -900_000_000 + before,
        );
        scene.call("cudaHostAlloc", -300_000_000, -25_000_000);
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("k", 1, 6_000, 50_006_000);
        scene
    };
    let found = sick("cold-start", &mut scene(1_000));
    assert_eq!((found.count, found.bound_ns), (1, 275_000_000));
    found.title.must_have("on making the context;");
    let found = sick("cold-start", &mut scene(200_000));
    found.title.must_have("on pinning host memory;");
}

/// An allocation of so long before a kernel of 50 ms, behind 80 ms in which the driver was asked often enough for a context.
#[test]
fn a_context_that_no_call_made_is_a_likely_one() {
    let told = |asked: bool| {
        let mut scene = Scene::new();
        scene.call("cudaGetDeviceProperties", -90_000_000, -89_000_000);
        if asked {
            let what = "likely making the context: 333 calls of ioctl";
            scene.overhead(what, -85_000_000, -5_000_000);
        }
        scene.call("cudaMalloc", -5_000_000, -4_900_000);
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("k", 1, 6_000, 50_006_000);
        scene
    };
    let found = sick("cold-start", &mut told(true));
    assert_eq!((found.bound_ns, found.inside_ns), (80_000_000, Some(0)));
    let what = "cold start: 80.0 ms spent on likely making the context;";
    found.title.must_begin(what);
    cured("cold-start", &mut told(false));
}

#[test]
fn what_a_first_allocation_takes_is_named() {
    // The kernels' library is loaded for 46 ms without a context, which the first allocation makes; the others take 10 us, but for a
    // first one behind it of 12 ms.
    let told = |pooled: Ns| {
        let mut scene = Scene::new();
        scene.call("cuLibraryLoadData", -300_000_000, -254_000_000);
        scene.call("cudaMalloc", -200_000_000, -104_000_000);
        for i in 0..8 {
            let took = if i == 0 { pooled } else { 10_000 };
            let at = -80_000_000 + i * 5_000_000;
            scene.call("cudaMallocAsync", at, at + took);
            scene.call("cudaMalloc", at + took + 1_000, at + took + 11_000);
        }
        scene.call("cudaLaunchKernel", -20_000, -10_000);
        scene.kernel("k", 1, 0, 10_000_000);
        sick("cold-start", &mut scene).title
    };
    told(10_000).must_have("on making the context (96.0 ms) and loading GPU code (46.0 ms);");
    told(12_000_000).must_have("and first allocations and frees (12.0 ms);");
}

#[test]
fn a_first_launch_that_makes_the_context_compiles_nothing() {
    // The driver opens its compiler with the context; behind another call that made it, the launch loads code.
    let told = |before: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", -300_000_000, -300_000_000 + before);
        scene.overhead(
            "dlopen(libnvidia-ptxjitcompiler.so.1)",
            -101_000_000,
            -100_000_000,
        );
        scene.call("cudaLaunchKernel", -99_000_000, 0);
        scene.kernel("k", 1, 1_000, 101_000);
        sick("cold-start", &mut scene)
    };
    let found = told(1_000);
    found
        .title
        .must_have("99.0 ms spent on making the context;");
    assert!(!found.advice.contains("PTX"), "{}", found.advice);
    let found = told(90_000_000);
    found.title.must_have("and loading GPU code (10");
    assert!(found.advice.contains("PTX"), "{}", found.advice);
}

#[test]
fn what_takes_long_just_once_while_all_is_cold_is_no_work_of_the_host() {
    // The launch of a kernel takes 2 s the first time. The second event that is made takes 0.7 s, the others 1 us.
    let scene = |slow: &[i64]| {
        let mut scene = Scene::new();
        let mut at = 0;
        for i in 0..20 {
            scene.kernel("k", 1, at, at + 90_000);
            let event = if slow.contains(&i) {
                700_000_000
            } else {
                1_000
            };
            scene.call("cudaEventCreateWithFlags", at + 91_000, at + 91_000 + event);
            at += 92_000 + event;
            let launch = if i == 4 { 2_000_000_000 } else { 5_000 };
            let name = if i < 4 { "k" } else { "other" };
            scene.call("cudaLaunchKernel", at, at + launch);
            at += launch + 2_000;
            scene.kernel(name, 1, at, at + 10_000);
            at += 11_000;
        }
        scene
    };
    let found = sick("cold-start", &mut scene(&[1]));
    assert_eq!((found.count, found.bound_ns), (2, 2_700_000_000));
    cured("host-bound", &mut scene(&[1]));
    // Later on it is what the program does.
    assert_eq!(sick("cold-start", &mut scene(&[9])).count, 1);
    // 2 us between calls beside each. What lies before the slow launch of a new kernel is no batch.
    let twice = sick("host-bound", &mut scene(&[9, 14])).bound_ns;
    assert_eq!(twice, 2 * 700_002_000);
    // What happens once is no batch that could be prepared.
    cured("host-bound", &mut scene(&[9]));
}

#[test]
fn a_free_right_behind_questions_is_a_librarys_start() {
    // Memory is taken, and a kernel runs. Then a library asks so much, and frees for 200 ms.
    let told = |asks: &str, pause: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", 0, 60_000_000);
        scene.call("cudaLaunchKernel", 61_000_000, 61_010_000);
        scene.kernel("k", 1, 61_012_000, 62_000_000);
        scene.call(asks, 70_000_000, 71_000_000);
        let at = 71_000_000 + pause;
        scene.call("cudaFree", at, at + 200_000_000);
        scene.call("cudaFree", at + 210_000_000, at + 210_010_000);
        scene.call("cudaLaunchKernel", at + 220_000_000, at + 220_010_000);
        scene.kernel("k", 1, at + 220_012_000, at + 221_000_000);
        sick("cold-start", &mut scene).title
    };
    told("cuInit", 1_000_000).must_have("slow first calls to libraries (200 ms)");
    told("cudaDeviceGetAttribute", 1_000_000).must_have("slow first calls to libraries");
    // Long after them, or behind another call, memory is given back.
    told("cuInit", 6_000_000).must_have("first allocations and frees (200 ms)");
    told("cudaMemGetInfo", 1_000_000).must_have("first allocations and frees");
}

#[test]
fn a_managed_allocation_behind_a_copy_makes_no_context() {
    // Memory and code come quickly, then a copy or none, and then managed memory that takes 20 ms.
    let scene = |copies: bool, name: &str| {
        let mut scene = Scene::new();
        scene.call("cuMemAlloc_v2", 0, 240_000);
        scene.call("cuModuleLoadDataEx", 1_000_000, 8_000_000);
        if copies {
            scene.call("cuMemcpyHtoDAsync_v2", 9_000_000, 9_058_000);
            scene.copy(Direction::H2D, 1, 4_096, 9_060_000, 9_062_000);
        }
        scene.call(name, 12_000_000, 32_411_000);
        scene.call("cuLaunchKernel", 33_000_000, 33_010_000);
        scene.kernel("k", 1, 33_012_000, 73_012_000);
        scene
    };
    let told = |copies| sick("cold-start", &mut scene(copies, "cuMemAllocManaged")).title;
    told(true).must_have("setting up managed memory (20.4 ms)");
    told(true).must_lack("context");
    // Without a copy nothing says that there was a context.
    told(false).must_have("making the context (20.4 ms)");
}

#[test]
fn a_part_of_the_start_that_is_longer_than_all_work_is_told_whatever_its_share() {
    let title = |launch: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", 0, 483_000_000);
        let at = 490_000_000;
        scene.call("cudaLaunchKernel", at, at + launch);
        scene.kernel("k", 1, at + launch + 2_000, at + launch + 322_000);
        sick("cold-start", &mut scene).title
    };
    title(17_800_000).must_have("making the context (483 ms) and loading GPU code (17.8 ms)");
    title(900_000).must_have("spent on making the context; the");
}

#[test]
fn what_the_driver_asks_before_the_first_call_is_its_start() {
    let scene = |asks: &str| {
        let mut scene = Scene::new();
        for at in (0..200).map(|it| it * 5_000_000) {
            scene.range(RangeKind::CpuOp, "open64", 0, at, at + 1_000);
            scene.range(RangeKind::CpuOp, asks, 0, at + 2_000, at + 4_002_000);
        }
        scene.call("cudaMalloc", 1_000_000_000, 1_500_000_000);
        scene.call("cudaLaunchKernel", 1_500_000_000, 1_500_005_000);
        scene.kernel("k", 1, 1_500_006_000, 1_502_000_000);
        scene
    };
    let told = |asks| sick("cold-start", &mut scene(asks)).title;
    told("ioctl").must_begin("cold start: 1.50 s spent on setting up the driver (999 ms) and making the context (500 ms)");
    told("read").must_begin("cold start: 500 ms spent on making the context;");
}

#[test]
fn what_is_paid_before_the_first_operation_costs_the_gpu_nothing() {
    let mut scene = launches(0);
    let found = sick("cold-start", &mut scene);
    assert_eq!(found.inside_ns, Some(0));
    let said = "; the GPU waits for none of it";
    assert_eq!((found.worth().as_str(), found.gain(0.0)), (said, None));
}

#[test]
fn a_profiler_that_begins_with_a_later_step_sees_no_first_calls() {
    let scene = |step: &str| {
        let mut scene = launches(1);
        scene.range(RangeKind::Nvtx, step, 0, 0, 4_000_000);
        scene
    };
    sick("cold-start", &mut scene("ProfilerStep#0"));
    cured("cold-start", &mut scene("ProfilerStep#6"));
}

#[test]
fn where_most_launches_are_first_ones_they_are_all_the_same_cold() {
    // Six kernels, a launch of 5 ms each, and two short ones again; two frees of 20 ms between them set a library up.
    let mut scene = Scene::new();
    let mut at = 0;
    for (i, name) in ["a", "b", "c", "d", "e", "f", "a", "b"]
        .into_iter()
        .enumerate()
    {
        if i == 2 || i == 3 {
            scene.call("cudaFree", at, at + 20_000_000);
            at += 20_001_000;
        }
        let took = if i < 6 { 5_000_000 } else { 5_000 };
        scene.call("cudaLaunchKernel", at, at + took);
        scene.kernel(name, 1, at + took + 1_000, at + took + 3_000);
        at += took + 10_000;
    }
    for _ in 0..3 {
        scene.call("cudaFree", at, at + 1_000);
        at += 2_000;
    }
    let found = sick("cold-start", &mut scene);
    assert_eq!((found.count, found.bound_ns), (8, 70_000_000));
    // The first launch lies before the first operation. Each other kernel begins 1 us after its launch.
    assert_eq!(found.inside_ns, Some(65_005_000));
}

#[test]
fn what_precedes_a_kernels_first_launch_is_no_next_batch() {
    // Three kernels with 50 ms of the CPU before each, the same or each another.
    let scene = |names: [&str; 4]| {
        let mut scene = Scene::new();
        for (at, name) in (0..).map(|i| i * 51_000_000).zip(names) {
            scene.call("cudaLaunchKernel", at, at + 3_000);
            scene.kernel(name, 1, at + 4_000, at + 1_000_000);
        }
        scene.range(RangeKind::CpuOp, "load", 0, 0, 102_001_000);
        scene.range(RangeKind::CpuOp, "load", 0, 102_001_000, 300_000_000);
        scene
    };
    assert_eq!(sick("host-bound", &mut scene(["k"; 4])).count, 3);
    cured("host-bound", &mut scene(["a", "b", "c", "d"]));
}

/// Three kernels by turns, so many rounds of them. Before the first launch of each the CPU works so long, and loads
/// code for 240 us; before a later one it works for 30 us.
fn built(work: Ns, rounds: usize) -> Scene {
    let mut scene = Scene::new();
    let mut at = 0;
    for i in 0..3 * rounds {
        if i < 3 {
            at += work;
            scene.call("cuModuleLoadData", at, at + 240_000);
            at += 240_000;
        } else {
            at += 30_000;
        }
        scene.call("cuLaunchKernel", at, at + 10_000);
        scene.kernel(["a", "b", "c"][i % 3], 1, at + 12_000, at + 17_000);
        at += 17_000;
    }
    scene
}

#[test]
fn what_the_cpu_does_to_build_a_kernel_is_part_of_loading_it() {
    // Of the first kernel only the load is seen to be it. The others: from the launch before, 7 us before its kernel ends.
    let found = sick("cold-start", &mut built(880_000, 2));
    let loads = 2 * (7_000 + 880_000 + 240_000);
    assert_eq!((found.count, found.bound_ns), (5, 240_000 + loads));
    assert_eq!(found.inside_ns, Some(2 * (880_000 + 240_000)));
    cured("no-cure", &mut built(880_000, 2));
    // Nobody launches them again: the loads are all that is known. Nor does building a kernel take so much longer.
    for (work, rounds) in [(880_000, 1), (3_000_000, 2)] {
        let found = sick("cold-start", &mut built(work, rounds));
        assert_eq!((found.count, found.bound_ns), (3, 3 * 240_000));
        sick("no-cure", &mut built(work, rounds));
    }
}

#[test]
fn work_that_ends_with_code_from_memory_made_that_code() {
    // An upload, 700 ms of the CPU, and a kernel that runs once.
    let scene = |load: &str, at: Ns, launch: &str| {
        let mut scene = Scene::new();
        scene.call("cudaMemcpyAsync", -10_000, -1_000);
        scene.copy(Direction::H2D, 1, 1 << 20, 0, 100_000);
        scene.call(load, at, at + 240_000);
        scene.call(launch, 700_500_000, 700_510_000);
        scene.kernel("matmul_kernel", 1, 700_512_000, 702_000_000);
        scene
    };
    let late = 700_000_000;
    let found = sick(
        "cold-start",
        &mut scene("cuModuleLoadData", late, "cuLaunchKernelEx"),
    );
    // From the copy's call to the launch.
    assert_eq!(found.bound_ns, 700_501_000);
    // Code that was loaded long before, that came from a file, or that the runtime launches tells nothing of what comes between.
    for (load, at, launch) in [
        ("cuModuleLoadData", 20_000_000, "cuLaunchKernel"),
        ("cuModuleLoad", late, "cuLaunchKernel"),
        ("cuModuleLoadData", late, "cudaLaunchKernel"),
    ] {
        cured("cold-start", &mut scene(load, at, launch));
    }
}

#[test]
fn libraries_that_start_one_after_the_other_are_all_cold() {
    // Two long frees before anything else runs, and short ones; or the second behind a kernel.
    let scene = |is_between: bool| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", -5_000, -1_000);
        scene.kernel("k", 1, 0, 10_000);
        scene.call("cudaFree", 100_000, 375_100_000);
        if is_between {
            scene.call("cudaLaunchKernel", 375_200_000, 375_205_000);
            scene.kernel("k", 1, 375_206_000, 375_216_000);
        }
        scene.call("cudaFree", 376_000_000, 944_000_000);
        let mut at = 945_000_000;
        for _ in 0..30 {
            scene.call("cudaFree", at, at + 5_000);
            scene.call("cudaLaunchKernel", at + 6_000, at + 10_000);
            scene.kernel("k", 1, at + 11_000, at + 21_000);
            at += 30_000;
        }
        scene
    };
    let found = sick("cold-start", &mut scene(false));
    assert_eq!(found.bound_ns, 375_000_000 + 568_000_000);
    assert_eq!(sick("cold-start", &mut scene(true)).bound_ns, 375_000_000);
}

#[test]
fn memory_that_is_taken_and_kept_is_taken_once() {
    // Forty allocations of 2 ms between launches, none of which is given back, or all.
    let scene = |is_kept: bool| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for _ in 0..40 {
            scene.call("cudaMalloc", at, at + 2_000_000);
            scene.call("cudaLaunchKernel", at + 2_010_000, at + 2_014_000);
            scene.kernel("k", 1, at + 2_016_000, at + 3_000_000);
            if !is_kept {
                scene.call("cudaFree", at + 3_000_000, at + 3_010_000);
            }
            at += 3_100_000;
        }
        scene
    };
    // The first one comes before the first operation.
    let found = sick("cold-start", &mut scene(true));
    assert_eq!(found.bound_ns, 39 * 2_000_000);
    cured("cold-start", &mut scene(false));
    sick("alloc-in-loop", &mut scene(false));
}

/// Steps of 32 launches of a compiled kernel, 27 ms of the CPU before the first of each, or of one step alone.
#[test]
fn what_precedes_a_kernel_in_each_step_builds_none() {
    let steps = |slow: std::ops::Range<usize>| {
        let (mut scene, mut at) = (Scene::new(), 0);
        scene.call("cudaLaunchKernel", 0, 5_000);
        scene.kernel("first", 1, 6_000, 9_000);
        for step in 0..6 {
            at += if slow.contains(&step) { 27_000_000 } else { 0 };
            for _ in 0..32 {
                scene.call("cudaLaunchKernel", at + 20_000, at + 25_000);
                scene.kernel("triton_poi_fused_add_0", 1, at + 27_000, at + 40_000);
                at += 20_000;
            }
        }
        scene
    };
    sick("cold-start", &mut steps(0..1));
    cured("cold-start", &mut steps(0..6));
}

#[test]
fn each_process_has_first_calls_of_its_own() {
    let mut trace = launches(0).trace();
    let process = 1;
    trace.apply(Batch {
        process,
        ..launches(0).take()
    });
    let graph = causes::graph::Graph::new(&trace);
    let first = causes::first_use::FirstUse::of(&trace, &graph);
    assert_eq!(first.calls.len(), 2);
}

#[test]
fn what_compiles_a_kernel_is_told_by_its_name_a_range_or_the_process_that_is_waited_for() {
    // A kernel, and 50 ms later another one for the first and only time. A wait for nothing lies between.
    let scene = |name: &str, range: &str, loads: &str| {
        let mut scene = Scene::new();
        scene.call("cuLaunchKernel", 0, 5_000);
        scene.kernel("first", 1, 7_000, 10_000);
        if !range.is_empty() {
            scene.range(RangeKind::Nvtx, range, 0, 10_000_000, 45_000_000);
        }
        scene.call("cuCtxSynchronize", 48_000_000, 48_008_000);
        if !loads.is_empty() {
            scene.call(loads, 49_000_000, 49_900_000);
        }
        scene.call("cuLaunchKernel", 50_005_000, 50_010_000);
        scene.kernel(name, 1, 50_012_000, 51_000_000);
        scene
    };
    let compiled = [
        ("triton_poi_fused_copy_0", "", ""),
        ("fused_add_15680171862954066917", "", ""),
        ("cudapy::matmul$241(Array<double>)", "", ""),
        ("k", "KernelExecutor::compileFusion", ""),
        ("k", "triton/runtime/jit.py(525): compile", ""),
        ("k", "poll", "cuModuleLoadData"),
        // Threads of its own compile what it links.
        ("k", "futex", "cuLinkComplete"),
    ];
    for (name, range, loads) in compiled {
        let found = sick("cold-start", &mut scene(name, range, loads));
        assert_eq!(found.bound_ns, 50_000_000, "{name} {range}");
        cured("no-cure", &mut scene(name, range, loads));
    }
    let others = [
        ("k", "", ""),
        ("fused_add_2", "", ""),
        ("k", "Torch-Compiled Region", ""),
        ("k", "ColorJitter", ""),
        ("k", "vllm/compilation/decorators.py(167): __call__", ""),
        ("k", "poll", ""),
        // It may have waited for whoever reads the data.
        ("k", "futex", "cuModuleLoadData"),
    ];
    for (name, range, loads) in others {
        cured("cold-start", &mut scene(name, range, loads));
        sick("no-cure", &mut scene(name, range, loads));
    }
}

#[test]
fn what_takes_long_before_the_first_kernel_is_a_cold_start_and_what_unloads_is_none() {
    // Frees of 5 us, the second and the fourth of 20 and 30 ms, and then the only kernel.
    let mut scene = Scene::new();
    let mut at = -60_000_000;
    scene.copy(Direction::H2D, 1, 1_000, at - 10_000, at - 5_000);
    for took in [5_000, 20_000_000, 5_000, 30_000_000, 5_000, 5_000] {
        scene.call("cudaFree", at, at + took);
        at += took + 1_000;
    }
    scene.call("cudaLaunchKernel", 0, 5_000);
    scene.kernel("k", 1, 7_000, 10_000);
    scene.call("cuModuleUnload", 20_000, 900_000_000);
    let found = sick("cold-start", &mut scene);
    assert_eq!((found.count, found.bound_ns), (2, 50_000_000));
}

#[test]
fn libraries_of_cuda_that_open_are_loading_and_the_profilers_are_not() {
    for (library, is_loading) in [
        ("dlopen(libcublasLt.so.12)", true),
        ("dlopen(libcupti.so.12)", false),
        ("dlopen(libcuda.so.1)", false),
        ("dlopen(_sqlite3.so)", false),
        ("Unrecognized", false),
    ] {
        let mut scene = launches(20);
        scene.overhead(library, 103_000, 180_000);
        scene.overhead(library, 203_000, 280_000);
        assert_eq!(causes::is_loading(library), is_loading);
        let found = findings(&mut scene);
        assert_eq!(
            found.iter().any(|it| it.rule.name() == "cold-start"),
            is_loading
        );
    }
}

#[test]
fn a_copy_that_makes_the_context_is_a_cold_start() {
    // Of so long the first copy to a symbol runs for 2 us. Kernels of 10 ms follow.
    let scene = |first: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaMemcpyToSymbol", 0, first);
        scene.copy(Direction::H2D, 1, 4_096, first - 3_000, first - 1_000);
        for at in (0..10).map(|i| first + 10_000 + i * 10_010_000) {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 6_000, at + 10_006_000);
        }
        scene
    };
    let found = sick("cold-start", &mut scene(90_000_000));
    assert_eq!((found.count, found.bound_ns), (1, 90_000_000));
    cured("cold-start", &mut scene(9_000_000));
    // A memset leaves no record where nobody asks for one: all of it makes the context.
    let mut scene = scene(90_000_000);
    scene.call("cudaMemsetAsync", -95_000_000, -5_000_000);
    let found = sick("cold-start", &mut scene);
    assert_eq!((found.count, found.bound_ns), (1, 90_000_000));
}

#[test]
fn what_kernels_allocate_that_run_for_the_first_time_is_in_no_loop() {
    // Kernels of 20 us, with an allocation of 30 us before each.
    let scene = |kernels: usize| {
        let mut scene = Scene::new();
        for i in 0..24 {
            let at = i as Ns * 100_000;
            scene.call("cudaMalloc", at, at + 30_000);
            scene.call("cudaLaunchKernel", at + 40_000, at + 45_000);
            scene.kernel(&format!("k{}", i % kernels), 1, at + 50_000, at + 70_000);
        }
        scene
    };
    // Between the first operation and the last.
    assert_eq!(sick("alloc-in-loop", &mut scene(2)).bound_ns, 23 * 30_000);
    cured("alloc-in-loop", &mut scene(24));
}

#[test]
fn what_a_short_program_gives_back_for_each_piece_of_work_is_told() {
    // Six kernels that run once, with memory taken before each and given back behind it; or kept.
    let scene = |is_freed: bool| {
        let mut scene = Scene::new();
        for i in 0..6 {
            let at = i as Ns * 200_000;
            scene.call("cudaMalloc", at, at + 60_000);
            scene.call("cudaLaunchKernel", at + 62_000, at + 66_000);
            scene.kernel(&format!("k{i}"), 1, at + 68_000, at + 78_000);
            if is_freed {
                scene.call("cudaFree", at + 100_000, at + 160_000);
            }
        }
        scene
    };
    // Between the first operation and the last: five of each.
    assert_eq!(
        sick("alloc-in-loop", &mut scene(true)).bound_ns,
        10 * 60_000
    );
    cured("alloc-in-loop", &mut scene(false));
}

#[test]
fn what_xla_compiles_beside_a_first_launch_is_a_cold_start() {
    // Kernels of 1 ms by turns, 50 ms apart; in the second pause XLA is at work for 40 ms.
    let scene = |range: &str| {
        let mut scene = Scene::new();
        for (i, name) in (0..).zip(["a", "b", "a", "b"]) {
            let at = i * 50_000_000;
            scene.call("cuLaunchKernel", at, at + 5_000);
            scene.kernel(name, 1, at + 6_000, at + 1_000_000);
        }
        scene.range(RangeKind::Nvtx, range, 0, 55_000_000, 95_000_000);
        scene
    };
    let found = sick("cold-start", &mut scene("XlaEmitLlvmIr:#module=m#"));
    found
        .title
        .must_begin("cold start: 40.0 ms spent on compiling kernels;");
    assert_eq!(found.inside_ns, Some(40_000_000));
    // A module that runs compiles nothing.
    cured("cold-start", &mut scene("XlaModule:#hlo_module=m#"));
}

#[test]
fn loads_that_wait_for_the_gpu_compile_nothing() {
    // Six rounds of a kernel of 400 ms; behind its launch code is loaded, which returns when it has ended.
    let (mut scene, mut now) = (Scene::new(), 0);
    for _ in 0..6 {
        scene.call("cuLaunchKernelEx", now, now + 5_000);
        scene.kernel("scale", 7, now + 10_000, now + 400_010_000);
        scene.call("cuModuleLoadData", now + 6_000, now + 400_015_000);
        now += 400_020_000;
    }
    let found = findings(&mut scene).into_iter();
    let compiles = |it: &Finding| it.title.contains("compiling kernels");
    assert_eq!(found.filter(compiles).count(), 0);
}

#[test]
fn a_kernel_that_is_compiled_anew_in_each_step_is_no_work_of_the_program() {
    // Six rounds of a kernel of 2 ms, 400 ms behind the sync of the one before; at the end of these code is loaded.
    let scene = |loads: &str, launches: &str, lasts: Ns| {
        let (mut scene, mut now) = (Scene::new(), 0);
        for _ in 0..6 {
            now += lasts;
            scene.call(loads, now, now + 500_000);
            scene.call("cuModuleGetFunction", now + 500_000, now + 501_000);
            now += 505_000;
            scene.call(launches, now, now + 5_000);
            scene.kernel("scale", 7, now + 10_000, now + 2_010_000);
            scene.call("cuStreamSynchronize", now + 6_000, now + 2_015_000);
            now += 2_020_000;
        }
        scene
    };
    let long = 400_000_000;
    let found = sick(
        "cold-start",
        &mut scene("cuModuleLoadData", "cuLaunchKernelEx", long),
    );
    // Nothing was recorded meanwhile.
    found
        .title
        .must_have("spent on compiling kernels, most likely;");
    found.advice.must_have("No record shows the compiler");
    // Six pairs of calls that load, and five stretches behind a sync.
    assert_eq!(found.count, 17);
    // The calls that load are short; nobody knows what the CPU did before.
    for mut near in [
        scene("cuModuleLoad", "cuLaunchKernel", long),
        scene("cuModuleLoadData", "cudaLaunchKernel", long),
        scene("cuModuleLoadData", "cuLaunchKernel", 40_000_000),
    ] {
        let found = findings(&mut near).into_iter();
        let cold: Vec<String> = found
            .filter(|it| it.rule == Rule::ColdStart)
            .map(|it| it.title)
            .collect();
        assert!(cold.iter().all(|it| !it.contains("compiling")), "{cold:?}");
    }
}

#[test]
fn all_that_keeps_a_step_from_its_kernel_may_go_with_the_compiler() {
    // Six rounds of 610 ms: 200 ms of the CPU, a copy, 400 ms, code that is loaded, a kernel of 2 ms.
    let (mut scene, round) = (Scene::new(), 610 * MS);
    for at in (0..6).map(|i| i * round) {
        scene.call("cuMemcpyHtoDAsync", at + 200 * MS, at + 200 * MS + 5_000);
        scene.copy(Direction::H2D, 7, 4096, at + 201 * MS, at + 202 * MS);
        scene.call("cuModuleLoadData", at + 600 * MS, at + 601 * MS);
        scene.call("cuLaunchKernel", at + 601 * MS, at + 601 * MS + 5_000);
        scene.kernel("scale", 7, at + 602 * MS, at + 604 * MS);
        scene.call("cuStreamSynchronize", at + 602 * MS, at + 604 * MS);
    }
    let window = Span::new(2 * round + 602 * MS, 5 * round + 605 * MS);
    let found = in_scope(&scene.trace(), Some(window), PEAKS, all).into_iter();
    let mut found = found.filter(|it| it.rule == Rule::ColdStart);
    let found = found.next().expect("compiling");
    assert_eq!(found.cure, "compiling once");
    // Three times 608 ms lie between two kernels.
    assert_eq!(
        found.inside_ns.expect("within") + found.beside_ns,
        3 * 608 * MS
    );
}

const MS: Ns = 1_000_000;

#[test]
fn what_is_pinned_between_launches_over_and_over_is_a_loop() {
    // Kernels of 20 us, with pages locked for 30 us before each and let go for 10 us behind it, by the thread that launches or another.
    let scene = |thread: u32| {
        let mut scene = Scene::new();
        for at in (0..24).map(|i| i * 100_000) {
            scene
                .on_thread(thread)
                .call("cudaHostRegister", at, at + 30_000);
            scene
                .on_thread(0)
                .call("cudaLaunchKernel", at + 40_000, at + 45_000);
            scene.kernel("k", 1, at + 50_000, at + 70_000);
            scene
                .on_thread(thread)
                .call("cudaHostUnregister", at + 75_000, at + 85_000);
        }
        scene
    };
    let found = sick("alloc-in-loop", &mut scene(0));
    // Between the first operation and the last.
    assert_eq!((found.count, found.bound_ns), (46, 23 * 40_000));
    assert!(found.advice.starts_with("Pin once"), "{}", found.advice);
    cured("alloc-in-loop", &mut scene(1));
}

#[test]
fn so_many_arrays_that_are_brought_one_by_one_need_one_allocation() {
    // So many arrays of 40 us with an allocation of 100 us each, and a kernel; the context takes 100 ms.
    let scene = |arrays: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaStreamCreate", -200_000_000, -100_000_000);
        for at in (0..arrays).map(|i| i * 200_000) {
            scene.call("cudaMalloc", at, at + 100_000);
            scene.call("cudaMemcpy", at + 110_000, at + 160_000);
            scene.copy(Direction::H2D, 1, 100_000, at + 115_000, at + 155_000);
        }
        let at = arrays * 200_000;
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 6_000, at + 96_000);
        scene
    };
    let found = sick("alloc-in-loop", &mut scene(1_001));
    assert_eq!((found.count, found.bound_ns), (1_000, 100_000_000));
    cured("alloc-in-loop", &mut scene(900));
}

#[test]
fn a_context_is_made_for_each_gpu_and_a_pool_of_memory_is_none() {
    // A call of so long before kernels of 10 ms.
    let told = |name: &str, took: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaFree", -400_000_000, -300_000_000);
        scene.call(name, -took, 0);
        for at in 0..4 {
            scene.call(name, 20_000 + at * 1_000, 20_500 + at * 1_000);
        }
        for at in (0..10).map(|i| i * 10_010_000) {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 6_000, at + 10_006_000);
        }
        sick("cold-start", &mut scene).title
    };
    for makes in ["cudaStreamCreate", "cudaSetDevice"] {
        told(makes, 150_000_000).must_begin("cold start: 250 ms spent on making the context;");
    }
    told("cudaMallocAsync", 12_000_000).must_have("first allocations and frees (12.0 ms)");
}

#[test]
fn contexts_of_further_gpus_are_made_by_streams_and_behind_the_choice_of_a_gpu() {
    // A context of 100 ms, then calls of these times, each behind the choice of a GPU or behind nothing; a kernel of 100 ms.
    let told = |name: &str, choice: &str, times: &[Ns]| {
        let mut scene = Scene::new();
        scene.call("cudaFree", -3_000_000_000, -2_900_000_000);
        let mut at = -2_800_000_000;
        for &took in times {
            scene.call(choice, at, at + 2_000);
            scene.call(name, at + 3_000, at + 3_000 + took);
            at += took + 1_000_000;
        }
        scene.call("cudaLaunchKernel", 0, 5_000);
        scene.kernel("k", 1, 6_000, 100_006_000);
        sick("cold-start", &mut scene).title
    };
    let streams = [6_000_000, 302_000_000, 329_000_000, 345_000_000];
    let made = "cold start: 1.08 s spent on making the context;";
    told("cudaStreamCreate", "cudaGetLastError", &streams).must_begin(made);
    let memory = [10_000, 302_000_000, 329_000_000, 345_000_000];
    told("cudaMalloc", "cudaSetDevice", &memory).must_begin(made);
    // Behind no choice, and as long each time: memory that is zeroed, or pages.
    let other = "cold start: 100 ms spent on making the context;";
    told("cudaMalloc", "cudaGetLastError", &memory).must_begin(other);
    told("cudaMalloc", "cudaSetDevice", &[300_000_000; 4]).must_begin(other);
}

#[test]
fn a_stream_behind_the_gpus_first_operation_is_a_library_s() {
    // A stream takes 1.85 s, before or behind a copy, and the kernels come then.
    let told = |copy: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", -3_000_000_000, -2_800_000_000);
        scene.call("cudaMemcpyAsync", copy, copy + 5_000);
        let direction = Direction::H2D;
        scene.copy(direction, 1, 1 << 20, copy + 6_000, copy + 86_000);
        scene.call("cudaStreamCreateWithFlags", -1_900_000_000, -50_000_000);
        for at in 0..4 {
            let at = 20_000 + at * 1_000;
            scene.call("cudaStreamCreateWithFlags", at, at + 500);
        }
        scene.call("cudaLaunchKernel", 40_000, 45_000);
        scene.kernel("k", 1, 46_000, 100_006_000);
        sick("cold-start", &mut scene).title
    };
    let context = "making the context (200 ms) and slow first calls to libraries (1.85 s)";
    told(-2_500_000_000).must_have(context);
    told(-10_000_000).must_have("2.05 s spent on making the context;");
}

#[test]
fn threads_that_one_lock_lets_go_together_pin_nothing_for_so_long() {
    // A thread makes an event for 2 s while another one pins memory, which begins and ends so long behind that.
    let told = |begins: Ns, ends: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", -3_000_000_000, -2_800_000_000);
        scene.call("cudaMemcpyAsync", -2_790_000_000, -2_789_990_000);
        let direction = Direction::H2D;
        scene.copy(direction, 1, 1 << 20, -2_789_900_000, -2_789_800_000);
        let (start, end) = (-2_100_000_000, -100_000_000);
        scene.call("cudaEventCreateWithFlags", start, end);
        for at in 0..4 {
            let at = -90_000_000 + at * 1_000;
            scene.call("cudaEventCreateWithFlags", at, at + 500);
        }
        scene.on_thread(2);
        scene.call("cudaMallocHost", start + begins, end + ends);
        scene.on_thread(1);
        scene.call("cudaLaunchKernel", 40_000, 45_000);
        scene.kernel("k", 1, 46_000, 100_006_000);
        let found = sick("cold-start", &mut scene);
        (found.title, found.next)
    };
    let (title, next) = told(-200_000, 200_000);
    assert!(!title.contains("pinning") && next.is_empty(), "{title}");
    // What began long before the other waits for none, nor does what ends later.
    for (begins, ends) in [(-300_000_000, 200_000), (-200_000, 30_000_000)] {
        told(begins, ends).0.must_have("pinning host memory");
    }
}

#[test]
fn a_slow_free_before_the_first_launch_is_no_loop_s() {
    // Two threads' frees of 300 ms before the first launch, or behind it; then launches with a free of 2 us each.
    let scene = |before: bool| {
        let mut scene = Scene::new();
        scene.call("cudaMemcpyAsync", -2_000_000_000, -1_999_990_000);
        scene.copy(Direction::H2D, 1, 1 << 20, -1_999_900_000, -1_999_800_000);
        let at = if before { 0 } else { -1_000_000_000 };
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 6_000, at + 50_000);
        for (i, thread) in (0..16).map(|it| (it, 1 + it % 2)) {
            scene.on_thread(thread as u32);
            let at = -900_000_000 + i / 2 * 50_000_000;
            scene.call("cudaFree", at, at + 40_000_000);
        }
        scene.on_thread(0);
        for at in (1..41).map(|it| it * 300_000) {
            scene.call("cudaFree", at, at + 2_000);
            scene.call("cudaLaunchKernel", at + 3_000, at + 8_000);
            scene.kernel("k", 1, at + 9_000, at + 90_000);
        }
        scene
    };
    cured("alloc-in-loop", &mut scene(true));
    sick("alloc-in-loop", &mut scene(false));
}

/// The first call of all pins memory for 856 ms; so do later ones for these times.
#[test]
fn a_first_call_makes_the_context_though_its_function_takes_long_later() {
    let told = |later: [Ns; 3]| {
        let mut scene = Scene::new();
        scene.call("cudaHostAlloc", -3_000_000_000, -2_144_000_000);
        let mut at = -2_000_000_000;
        for took in later {
            scene.call("cudaHostAlloc", at, at + took);
            at += took + 1_000_000;
        }
        scene.call("cudaLaunchKernel", 0, 5_000);
        scene.kernel("k", 1, 6_000, 100_006_000);
        sick("cold-start", &mut scene).title
    };
    let both =
        "cold start: 1.64 s spent on making the context (856 ms) and pinning host memory (785 ms)";
    told([28_000_000, 359_000_000, 398_000_000]).must_begin(both);
    told([800_000_000; 3]).must_begin("cold start: 3.26 s spent on pinning host memory;");
}

#[test]
fn what_is_compiled_is_told_without_the_wait_of_its_load() {
    // A kernel of 500 ms that was launched before; another one's code is made for so long, and its load waits for the kernel.
    let scene = |work: Ns| {
        let mut scene = launches(20);
        let at = 60_000_000;
        scene.call("cuLaunchKernel", at, at + 5_000);
        scene.kernel("c", 1, at + 6_000, at + 500_000_000);
        scene.call("cuModuleLoadData", at + 100_000 + work, at + 500_200_000);
        for i in 0..6 {
            let at = at + 500_300_000 + i * 200_000;
            scene.call("cuLaunchKernel", at, at + 5_000);
            scene.kernel("cupy_scan", 1, at + 6_000, at + 106_000);
        }
        scene
    };
    cured("cold-start", &mut scene(0));
    let made = "cold start: 40.1 ms spent on compiling kernels, most likely;";
    sick("cold-start", &mut scene(40_000_000))
        .title
        .must_begin(made);
}

#[test]
fn a_call_that_loads_code_and_waits_for_a_kernel_is_no_cold_start() {
    // Kernels of 50 ms, and code that is loaded from 0.1 ms after each launch on until so long after it.
    let scene = |until: Ns, kernel: Ns| {
        let mut scene = launches(20);
        for at in (1..5).map(|i| i * 60_000_000) {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("c", 1, at + 6_000, at + kernel);
            scene.call("cuModuleLoadData", at + 100_000, at + until);
        }
        scene
    };
    cured("cold-start", &mut scene(50_200_000, 50_000_000));
    // The kernel goes on, or ended long before: the time is the call's own.
    let loads = "cold start: 120 ms spent on loading GPU code";
    for kernel in [50_000_000, 1_000_000] {
        sick("cold-start", &mut scene(30_100_000, kernel))
            .title
            .must_begin(loads);
    }
}

#[test]
fn a_context_that_was_there_is_not_made_by_a_first_copy() {
    let told = |before: &str| {
        let mut scene = Scene::new();
        scene.call(before, -20_000_000, -19_990_000);
        scene.call("cuMemcpyHtoDAsync_v2", -14_000_000, 0);
        scene.copy(Direction::H2D, 1, 2_356, -10_000, -8_000);
        for at in (0..20).map(|i| i * 100_000) {
            scene.call("cuLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 6_000, at + 96_000);
        }
        sick("cold-start", &mut scene).title
    };
    told("cuMemAllocFromPoolAsync")
        .must_begin("cold start: 14.0 ms spent on the first copy, which makes the staging buffer;");
    told("cudaGetDeviceCount").must_begin("cold start: 14.0 ms spent on making the context;");
}

#[test]
fn only_what_recurs_to_the_end_is_compiled_again_and_again() {
    // Kernels of 1 ms by turns, 50 ms apart; XLA is at work for 40 ms in these pauses.
    let advice = |pauses: std::ops::Range<Ns>| {
        let mut scene = Scene::new();
        for i in 0..40 {
            let at = i * 50_000_000;
            scene.call("cuLaunchKernel", at, at + 5_000);
            scene.kernel(["a", "b"][i as usize % 2], 1, at + 6_000, at + 1_000_000);
        }
        for at in pauses.map(|it| it * 50_000_000 + 5_000_000) {
            scene.range(
                RangeKind::Nvtx,
                "XlaEmitLlvmIr:#module=m#",
                0,
                at,
                at + 40_000_000,
            );
        }
        let window = Span::new(-1, 2_000_000_000);
        let all = in_scope(&scene.trace(), Some(window), PEAKS, all);
        let found = all.into_iter().find(|it| it.rule.name() == "cold-start");
        found.expect("a cold start").advice
    };
    advice(0..38).must_begin("It is compiled anew again and again");
    let built = advice(0..6);
    built.must_begin("Warm up before measuring");
    built.must_have("only a cache kept from run to run saves it");
    let cache = |kernel| {
        let mut scene = Scene::new();
        scene.kernel(kernel, 1, 0, 10);
        in_scope(&scene.trace(), None, PEAKS, |scope| {
            cold_start::cache(scope)
        })
    };
    let both = ["triton_poi_fused_add_0", "triton_softmax"].map(cache);
    assert_eq!(both, ["inductor", "cache"]);
}

/// Kernels of 1 ms, each 50 ms behind the one before, and XLA at work for 40 ms in these pauses. No steps are known.
#[test]
fn a_function_that_xla_compiles_up_to_the_end_is_compiled_anew_and_no_cold_start() {
    let found = |names: [&str; 2], rounds: Ns, others: Ns| {
        let mut scene = Scene::new();
        for i in 0..rounds + others {
            let at = i * 50 * MS;
            scene.call("cuLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 6_000, at + MS);
            if i < rounds {
                let name = format!("XlaCompile:#module={}#", names[i as usize % 2]);
                scene.range(RangeKind::Nvtx, &name, 0, at + 5 * MS, at + 45 * MS);
            }
        }
        let at = (rounds + others) * 50 * MS;
        scene.call("cuLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 6_000, at + MS);
        sick("cold-start", &mut scene)
    };
    let it = found(["jit_step"; 2], 12, 0);
    it.title.must_begin("compiling again and again: ");
    it.advice.must_begin("It is compiled anew again and again");
    assert_eq!(it.cure, "compiling once");
    // Each of two functions alone is at work for less than half of the time; parts of one are tried.
    let [few, parts] = [["jit_a", "jit_b"], ["gemm_fusion_dot"; 2]].map(|it| found(it, 14, 0));
    few.advice.must_begin("Warm up before measuring");
    parts.advice.must_begin("Warm up before measuring");
    // A start with as many rounds, and work as long behind it.
    let start = found(["jit_step"; 2], 12, 12);
    start.advice.must_begin("Warm up before measuring");
}

#[test]
fn what_loads_code_for_a_moment_was_not_shown_to_be_built() {
    // The CPU works for so long before the first launches of three kernels, and loads code for a quarter of that.
    let told = |work: Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        scene.call("cuLaunchKernel", -20_000, -10_000);
        scene.kernel("before", 1, -8_000, -3_000);
        for i in 0..9 {
            if i < 3 {
                at += work;
                scene.call("cuModuleLoadData", at - work / 4, at);
            }
            scene.call("cuLaunchKernel", at, at + 10_000);
            scene.kernel(["a", "b", "c"][i % 3], 1, at + 12_000, at + 17_000);
            at += 20_000;
        }
        sick("cold-start", &mut scene).title
    };
    told(900_000).must_have("the CPU's work before first launches");
    told(20_000_000).must_have("compiling kernels");
}

#[test]
fn what_the_program_does_behind_a_librarys_start_is_its_own() {
    // A library asks for 120 functions, and makes an event 80 ms later; the program is then at other work for so long.
    let told = |work: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 10_000);
        scene.kernel("before", 1, 12_000, 112_000);
        for at in (0..120).map(|it| 20_000 + it * 1_000) {
            scene.call("cuGetProcAddress_v2", at, at + 500);
        }
        scene.call("cudaEventCreate", 80_000_000, 80_010_000);
        // The program's own code is loaded right before its kernel.
        let at = 80_010_000 + work;
        scene.call("cuModuleLoadDataEx", at - 20_000, at - 10_000);
        scene.call("cuLaunchKernel", at, at + 10_000);
        scene.kernel("fill", 1, at + 12_000, at + 112_000);
        sick("cold-start", &mut scene).title
    };
    told(300_000_000).must_begin("cold start: 80.0 ms spent on slow first calls to libraries");
    // From the launch before to the next one: a library has such pauses, too.
    told(20_000_000).must_begin("cold start: 100 ms spent on slow first calls to libraries");
}

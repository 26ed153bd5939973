//! Causes that are known by their names: each with an input that shows it, a cured twin, and a near miss.

use super::*;
use activity::{
    Activity, Frame, RangeKind, SampleDef, SampledThread as SeenAt, Samples, Sampling, StackSample,
};
use trace::testing::Sentence;

/// Kernels of one block on four streams by turns, launched ahead. One on the default stream stands between two of them, or
/// all of them run `beside` each other.
fn by_turns(is_beside: bool, framework: &str, pause: Ns) -> Scene {
    blocks_by_turns(1, is_beside, framework, pause)
}

/// The same of kernels of so many blocks.
fn blocks_by_turns(blocks: u32, is_beside: bool, framework: &str, pause: Ns) -> Scene {
    let mut scene = Scene::new();
    scene.device(h200());
    scene.name(framework);
    let few = launch(blocks, 64);
    let mut now = 400_000;
    for i in 0..24 {
        let at = i * 10_000;
        let begin = if is_beside {
            400_000 + i / 4 * 300_000
        } else {
            now
        };
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.shaped(few, "part", 20 + i as u32 % 4, begin, begin + 300_000);
        scene.call("cudaLaunchKernel", at + 4_000, at + 7_000);
        let begin = if is_beside {
            begin + 1_000 * (i % 4)
        } else {
            begin + 300_000
        };
        scene.shaped(few, "mark", 7, begin, begin + 900);
        now += 300_900 + pause;
    }
    scene
}

#[test]
fn a_default_stream_that_keeps_streams_apart() {
    let found = sick("default-stream", &mut by_turns(false, "cupy_add", 0));
    // 24 rounds of 300.9 us; six kernels of one stream have to follow each other.
    assert_eq!(found.bound_ns, 24 * 300_900 - 6 * 300_000);
    let change = found.change[0].to_string();
    assert_eq!(change, "cupy.cuda.Stream: non_blocking=True");
    assert!(!found.advice.contains("torch"));
    // Pauses of 2 us behind the default stream's work go as well, but for the last.
    let found = sick("default-stream", &mut by_turns(false, "work", 2_000));
    assert_eq!(found.bound_ns, 24 * 300_900 - 6 * 300_000 + 23 * 2_000);
    // An SM has room for 32 blocks of two warps: 132 blocks leave 31 of 32 places to other streams.
    let found = sick(
        "default-stream",
        &mut blocks_by_turns(132, false, "work", 0),
    );
    assert_eq!(found.bound_ns, 24 * 300_900 - 6 * 300_000);
    // More blocks are not what they lack.
    cured("under-filled-gpu", &mut by_turns(false, "cupy_add", 0));
    let found = sick("default-stream", &mut by_turns(false, "work", 0));
    let change = found.change[0].to_string();
    assert!(change.contains("cudaStreamNonBlocking"), "{change}");
    cured("default-stream", &mut by_turns(true, "work", 0));
}

/// Streams with one kernel each, all launched ahead, and one on the default stream behind each.
#[test]
fn of_many_streams_each_need_wait_for_the_default_stream_but_once() {
    let scene = |streams: i64| {
        let mut scene = Scene::new();
        scene.device(h200());
        for i in 0..streams {
            let (at, begin) = (i * 10_000, 400_000 + i * 300_900);
            scene.call("cudaLaunchKernel", at, at + 3_000);
            scene.shaped(launch(1, 64), "part", 20 + i as u32, begin, begin + 300_000);
            scene.call("cudaLaunchKernel", at + 4_000, at + 7_000);
            scene.shaped(launch(1, 1), "mark", 7, begin + 300_000, begin + 300_900);
        }
        scene
    };
    // The first waits for nothing. The others need take no longer than the longest, or than the default stream's.
    let found = sick("default-stream", &mut scene(5));
    found.title.must_begin("4 streams run one after another");
    cured("default-stream", &mut scene(4));
}

#[test]
fn what_the_default_stream_copies_or_sets_is_named_by_its_call() {
    let mut scene = Scene::new();
    scene.device(h200());
    for i in 0..24 {
        let (at, begin) = (i * 10_000, 400_000 + i * 300_900);
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.shaped(
            launch(1, 64),
            "part",
            20 + i as u32 % 4,
            begin,
            begin + 300_000,
        );
        scene.call("cudaMemset", at + 4_000, at + 7_000);
        scene.memset(7, 4, begin + 300_000, begin + 300_900);
    }
    let title = sick("default-stream", &mut scene).title;
    title.must_have("waits for cudaMemset on the legacy default stream");
}

#[test]
fn kernels_on_streams_that_wait_for_each_other_by_events_run_at_once_without_these() {
    // Eight streams in turn, sixteen blocks each: `kernel` names them, and `waits` says whether each waits for the one before.
    let scene = |kernel: fn(usize) -> &'static str, waits: bool| {
        let mut scene = Scene::new();
        scene.device(h200());
        for i in 0..64 {
            let (at, stream) = (i * 10_000, 20 + i as u32 % 8);
            if waits && i > 0 {
                scene.call("cudaStreamWaitEvent", at, at + 500);
            }
            scene.call("cudaLaunchKernel", at + 1_000, at + 4_000);
            let begin = match waits {
                true => 100_000 + i * 303_000,
                false => 100_000 + i / 8 * 303_000,
            };
            let shape = launch(16, 256);
            scene.shaped(
                shape,
                kernel(i as usize % 8),
                stream,
                begin,
                begin + 300_000,
            );
            scene.call("cudaEventRecord", at + 5_000, at + 5_500);
        }
        scene
    };
    let found = sick("under-filled-gpu", &mut scene(|_| "knit", true));
    found
        .advice
        .must_have("Each waits by an event (cudaStreamWaitEvent)");
    // Of eight that run at once seven eighths of 64 times 300 us are saved.
    assert_eq!(found.bound_ns, 64 * 300_000 / 8 * 7);
    // Without waits they run beside each other.
    cured("under-filled-gpu", &mut scene(|_| "knit", false));
    // Stages of one pipeline need what comes before: of them no wait is said to be too much.
    let stage = |i: usize| ["a", "b", "c", "d", "e", "f", "g", "h"][i];
    let found = sick("under-filled-gpu", &mut scene(stage, true));
    found.advice.must_begin("Launch more blocks");
}

/// Rounds of 10 ms on the GPU, `back` and `forth` copies of 64 MiB, and CPU work between.
fn rounds(works: Ns, forth: u64) -> Scene {
    let mut scene = Scene::new();
    let mut now = 0;
    for _ in 0..4 {
        scene.call("cudaLaunchKernel", now, now + 4_000);
        scene.kernel("backward", 7, now + 10_000, now + 10_010_000);
        scene.call("cudaMemcpyAsync", now + 5_000, now + 9_000);
        scene.copy(
            Direction::D2H,
            7,
            64 << 20,
            now + 10_010_000,
            now + 12_010_000,
        );
        scene.call("cudaStreamSynchronize", now + 9_000, now + 12_020_000);
        let begin = now + 12_020_000;
        scene.range(RangeKind::Nvtx, "CPUAdam", 0, begin, begin + works);
        now = begin + works;
        scene.call("cudaMemcpyAsync", now, now + 4_000);
        scene.copy(Direction::H2D, 7, forth, now + 8_000, now + 3_008_000);
        scene.call("cudaStreamSynchronize", now + 5_000, now + 3_010_000);
        now += 3_020_000;
    }
    scene
}

#[test]
fn work_that_goes_to_the_cpu_and_back() {
    let found = sick("offloading", &mut rounds(20_000_000, 64 << 20));
    // 2 ms back, 20 ms of work, 3 ms forth, four times: all but the longest part may be hidden, in chunks.
    assert_eq!(found.bound_ns, 4 * 5_000_000);
    assert!(found.title.contains("CPUAdam"), "{}", found.title);
    cured("host-bound", &mut rounds(20_000_000, 64 << 20));
    cured("no-overlap", &mut rounds(20_000_000, 64 << 20));
    // The CPU does not read what came; what goes forth is a batch of input; it takes little.
    cured("offloading", &mut rounds(100_000, 64 << 20));
    cured("offloading", &mut rounds(20_000_000, 4 << 20));
    // Other data than what came: of as many values in half the bytes it may be made.
    cured("offloading", &mut rounds(20_000_000, 90 << 20));
    sick("offloading", &mut rounds(20_000_000, 32 << 20));
}

#[test]
fn a_cpu_that_waits_for_more_works_on_nothing() {
    // Each round waits once more, until 0.1 ms before its copy forth; a short second wait leaves 19.9 ms of work.
    for (waits, is_found) in [(19_900_000, false), (100_000, true)] {
        let mut scene = rounds(20_000_000, 64 << 20);
        let mut batch = scene.take();
        let again = |it: Activity| {
            // A wait for a copy back ends 20 us behind it.
            let is_its = matches!(it.what, What::Call(_)) && it.span.len() > 10_000_000;
            is_its.then(|| Activity {
                span: Span::new(it.span.end, it.span.end + waits),
                correlation: it.correlation + 1_000,
                ..it
            })
        };
        let more: Vec<_> = batch.items.iter().copied().filter_map(again).collect();
        assert_eq!(more.len(), 4);
        batch.items.extend(more);
        match is_found {
            true => drop(sick("offloading", scene.put(batch))),
            false => cured("offloading", scene.put(batch)),
        }
    }
}

/// Steps of 20 layers and an optimizer's 80 launches, which lie in an op of PyTorch.
fn steps(op: &str, phase: &str) -> Scene {
    let mut scene = Scene::new();
    for i in 0..500 {
        let at = i * 12_000;
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("k", 7, at + 6_000, at + 8_000);
        if i % 100 == 20 {
            scene.range(RangeKind::Nvtx, phase, 0, at, at + 80 * 12_000);
        }
        if i % 100 >= 20 {
            scene.range(RangeKind::CpuOp, op, 0, at, at + 5_000);
        }
    }
    scene
}

#[test]
fn an_optimizer_that_goes_through_its_parameters() {
    let step = "Optimizer.step#AdamW.step";
    let found = sick("optimizer-launches", &mut steps("aten::addcmul_", step));
    found.title.must_begin("400 of 500 launches");
    // 10 us before each of them, and its own 2 us.
    assert_eq!(found.bound_ns, 400 * 12_000);
    assert_eq!(found.change[0].to_string(), "torch.optim.AdamW: fused=True");
    cured("launch-bound", &mut steps("aten::addcmul_", step));
    // On a GPU this one has no fused form.
    let found = steps("aten::addcmul_", "Optimizer.step#Adagrad.step");
    let change = sick("optimizer-launches", &mut { found }).change;
    assert_eq!(change[0].to_string(), "torch.optim.Adagrad: foreach=True");
    cured(
        "optimizer-launches",
        &mut steps("aten::_foreach_addcmul_", step),
    );
    cured(
        "optimizer-launches",
        &mut steps("aten::addcmul_", "backward"),
    );
}

/// A hundred layers' kernels of 50 us, then as many fills in the range of zero_grad, which take so long, 8 us apart.
#[test]
fn gradients_that_are_filled_one_by_one() {
    let scene = |name: &str, range: &str, number: i64| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for _ in 0..4 {
            for _ in 0..100 {
                scene.call("cudaLaunchKernel", at, at + 4_000);
                scene.kernel("layer", 7, at + 5_000, at + 55_000);
                at += 55_000;
            }
            let begin = at;
            for _ in 0..number {
                scene.call("cudaLaunchKernel", at, at + 4_000);
                scene.kernel(name, 7, at + 8_000, at + 10_000);
                at += 10_000;
            }
            scene.range(RangeKind::Nvtx, range, 0, begin, at);
        }
        scene
    };
    let (fill, range) = ("FillFunctor<float>", "Optimizer.zero_grad#SGD.zero_grad");
    let found = sick("optimizer-launches", &mut scene(fill, range, 100));
    // 8 us before each of 400 and its own 2 us.
    found
        .title
        .must_begin("zero_grad fills gradients with zeros, one by one: 400 launches take 4.00 ms");
    assert_eq!(found.bound_ns, 4_000_000);
    let change = found.change[0].to_string();
    assert_eq!(change, "optimizer.zero_grad: set_to_none=True");
    // Few fills, and another range.
    cured("optimizer-launches", &mut scene(fill, range, 4));
    cured("optimizer-launches", &mut scene(fill, "forward", 100));
}

#[test]
fn an_optimizer_that_the_gpu_hardly_waits_for_leaves_launches_told() {
    // 36 us between the layers' launches, 8 us between the optimizer's 400 of 800.
    let scene = || {
        let mut scene = Scene::new();
        let mut at = 0;
        for i in 0..800 {
            scene.call("cudaLaunchKernel", at, at + 4_000);
            scene.kernel("k", 7, at + 6_000, at + 16_000);
            if i % 160 == 80 {
                let step = "Optimizer.step#SGD.step";
                scene.range(RangeKind::Nvtx, step, 0, at, at + 80 * 18_000);
            }
            at += if i % 160 < 80 { 46_000 } else { 18_000 };
        }
        scene
    };
    sick("optimizer-launches", &mut scene());
    sick("launch-bound", &mut scene());
}

/// Three threads of 16 launches in 128 us each, `apart` from the one before.
fn threads(apart: Ns) -> Scene {
    let mut scene = Scene::new();
    for round in 0..12 {
        for thread in 0..3 {
            let mut at = round * 390_000 + Ns::from(thread) * apart;
            for _ in 0..16 {
                scene
                    .on_thread(thread)
                    .call("cudaLaunchKernel", at, at + 4_000);
                scene.kernel("layer", 13 + thread, at + 6_000, at + 8_000);
                at += 8_000;
            }
        }
    }
    scene
}

#[test]
fn threads_that_take_turns() {
    let found = sick("turns", &mut threads(130_000));
    assert!(found.title.contains("a lock"), "{}", found.title);
    cured("turns", &mut threads(1_000));
}

/// Steps of eight launches, with so many functions of Python around each.
fn with_functions(each: i64, kernel: Ns) -> Scene {
    let mut scene = Scene::new();
    for i in 0..80 {
        let at = i * 100_000;
        scene.call("cudaLaunchKernel", at + 60_000, at + 64_000);
        scene.kernel("k", 7, at + 70_000, at + 70_000 + kernel);
        for function in 0..each {
            let begin = at + function * 1_000;
            scene.range(RangeKind::Function, "model.py(8): f", 0, begin, begin + 900);
        }
    }
    scene
}

#[test]
fn functions_of_python_that_were_recorded_one_by_one() {
    let said = |mut scene: Scene| in_scope(&scene.trace(), None, PEAKS, distorts);
    let told = said(with_functions(30, 20_000)).expect("it is told");
    told.must_have("with_stack=True recorded 30 Python functions a launch");
    // Five take as long as a launch does.
    assert!(said(with_functions(5, 20_000)).is_some());
    assert!(said(with_functions(4, 20_000)).is_none());
    // Five marks of operators a launch, or two; calls of the system lie among them.
    let marked = |each: i64, kind| {
        let mut scene = with_functions(0, 20_000);
        for i in 0..80 * each {
            let at = i * 100_000 / each;
            scene.range(kind, "aten::mm, op_id = 7", 0, at, at + 900);
        }
        said(scene)
    };
    let told = marked(5, RangeKind::Nvtx).expect("it is told");
    assert!(told.contains("there are 5 NVTX ranges a launch"), "{told}");
    assert_eq!(marked(2, RangeKind::Nvtx), None);
    assert_eq!(marked(5, RangeKind::CpuOp), None);
    // Five a launch, but 50 in 100 ms: they cost some 50 us.
    let mut sparse = Scene::new();
    for at in (0..10).map(|it| it * 10_000_000) {
        sparse.call("cudaLaunchKernel", at, at + 5_000);
        sparse.kernel("k", 7, at + 10_000, at + 2_000_000);
        for mark in (0..5).map(|it| at + 2_100_000 + it * 1_000_000) {
            sparse.range(RangeKind::Nvtx, "XlaCompile", 0, mark, mark + 900_000);
        }
    }
    assert_eq!(said(sparse), None);
    // Few functions; and a GPU that never waits.
    assert_eq!(said(with_functions(3, 20_000)), None);
    assert_eq!(said(with_functions(30, 99_000)), None);
}

#[test]
fn values_that_an_optimizer_takes_one_by_one() {
    let mut scene = Scene::new();
    for i in 0..40 {
        let at = i * 60_000;
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("dot", 7, at + 8_000, at + 10_000);
        scene.range(RangeKind::CpuOp, "aten::item", 0, at + 4_500, at + 40_000);
        scene.call("cudaMemcpyAsync", at + 5_000, at + 9_000);
        scene.copy(Direction::D2H, 7, 4, at + 11_000, at + 12_000);
        scene.call("cudaStreamSynchronize", at + 9_500, at + 30_000);
    }
    scene.range(
        RangeKind::Nvtx,
        "Optimizer.step#Prodigal.step",
        0,
        0,
        2_400_000,
    );
    let found = sick("sync-in-loop", &mut scene);
    let says = found.says.expect("it is named").why;
    assert_eq!(says, "by aten::item in Optimizer.step#Prodigal.step");
    // What prints a value decides nothing.
    assert_eq!(found.severity, Severity::Warning);
}

/// Forty kernels of 2 us, each behind a wait in the innermost of these operators, which lie in each other.
fn waits_in(ops: &[&str]) -> String {
    let mut scene = Scene::new();
    for i in 0..40 {
        let at = i * 60_000;
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("mm", 7, at + 8_000, at + 10_000);
        for (depth, op) in (0..).zip(ops) {
            scene.range(
                RangeKind::CpuOp,
                op,
                0,
                at + 4_500 + depth * 100,
                at + 40_000 - depth * 100,
            );
        }
        scene.call("cudaStreamSynchronize", at + 9_500, at + 30_000);
    }
    let found = sick("sync-in-loop", &mut scene);
    found.says.expect("it is named").why + &found.advice
}

#[test]
fn a_sync_is_named_by_the_innermost_operator_that_says_something() {
    let told = waits_in(&["aten::matmul", "aten::mm", "aten::_coalesce"]);
    told.must_begin("by aten::_coalesce");
    told.must_have("Coalesce the sparse matrix once");
    // Parts that all others are made of say nothing.
    let told = waits_in(&["aten::to", "aten::_to_copy", "aten::copy_"]);
    told.must_begin("by aten::to");
    waits_in(&[
        "aten::is_nonzero",
        "aten::item",
        "aten::_local_scalar_dense",
    ])
    .must_begin("by aten::item");
}

/// The frames of a thread ("file#function"), outermost first, and how many looks saw it there, running or not.
type Seen<'t> = (u32, &'t [(&'t str, u32)], i64, bool);

/// Kernels of 10 us, one every 10 ms, and what looks saw of the CPU between them, one each.
fn seen(threads: &[Seen<'_>]) -> Scene {
    seen_before(0, 10_000_000, threads)
}

/// The same, with kernels from such a time on, so far apart.
fn seen_before(begin: Ns, period: Ns, threads: &[Seen<'_>]) -> Scene {
    let mut scene = Scene::new();
    for at in (0..400_000_000 / period).map(|i| begin + i * period) {
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("k", 7, at + 6_000, at + 16_000);
    }
    let (mut defs, mut id, mut inner) = (Vec::new(), 0, Vec::new());
    for (_, frames, ..) in threads {
        for (depth, &(file, line)) in frames.iter().enumerate() {
            id += 1;
            let (file, function) = file.split_once('#').unwrap_or((file, ""));
            let caller = if depth == 0 { 0 } else { id - 1 };
            let frame = Frame {
                file: file.to_owned(),
                function: match function {
                    "" => format!("f{line}"),
                    named => named.to_owned(),
                },
                line,
            };
            defs.extend([
                SampleDef::Frame { id, frame },
                SampleDef::Stack {
                    id,
                    caller,
                    frame: id,
                },
            ]);
        }
        inner.push(id);
    }
    let looks = (0..40).map(|i| StackSample {
        time: i * 10_000_000 + 5_000_000,
        changed: threads
            .iter()
            .zip(&inner)
            .map(|(&(thread, _, looks, is_running), &stack)| SeenAt {
                thread,
                stack: if i < looks { stack } else { 0 },
                is_running,
            })
            .collect(),
    });
    let mut batch = scene.take();
    batch.samples = Some(Samples {
        series: 0,
        defs,
        looks: looks.collect(),
        sampling: Sampling {
            hz: 100,
            ..Sampling::default()
        },
    });
    scene.put(batch);
    scene
}

#[test]
fn samples_of_a_compiler_before_a_first_launch_are_a_cold_start() {
    let scene = |file: &str| {
        let mut scene = seen_before(400_000_000, 10_000_000, &[(1, &[(file, 1)], 40, true)]);
        scene.call("cudaMemcpy", 0, 10_000);
        scene.copy(Direction::H2D, 7, 4096, 4_000, 9_000);
        scene
    };
    let found = sick("cold-start", &mut scene("/opt/lib/libLLVM-14.so"));
    found.title.must_have("spent on compiling kernels;");
    cured("cold-start", &mut scene("/opt/lib/libmesh.so"));
}

#[test]
fn an_autotuner_at_work_all_along_is_told_and_none_at_the_start() {
    let tuner = "/usr/lib/python3/site-packages/triton/runtime/autotuner.py#run";
    let scene = |looks: i64| seen(&[(1, &[("/w/mix.py", 30), (tuner, 229)], looks, true)]);
    let found = sick("tuning", &mut scene(40));
    // Of 40 looks the last comes behind the last kernel. All that time is the autotuner's.
    found.title.must_begin(
        "Triton's autotuner tries configurations all along, in 39 of 39 stack samples (100 %)",
    );
    found.title.must_have("mix.py:30");
    assert_eq!(found.bound_ns, 390_010_000);
    cured("tuning", &mut scene(8));
}

#[test]
fn a_thread_that_sleeps_is_told_from_one_that_works_or_is_fed_by_another() {
    let (sleep, queue) = (("/w/serve.py", 12), ("/usr/lib/python3/queue.py", 171));
    let found = sick("asleep", &mut seen(&[(1, &[sleep], 40, false)]));
    // 39 gaps of 9.99 ms, without the 10 us around each launch.
    found
        .title
        .must_begin("asleep or waiting for input at serve.py:12 for 389 ms");
    assert_eq!(found.gain(0.0), None);
    cured("host-bound", &mut seen(&[(1, &[sleep], 40, false)]));
    sick("asleep", &mut seen(&[(1, &[sleep, queue], 40, false)]));
    // At work at the same line; and fed by a thread that is at work.
    cured("asleep", &mut seen(&[(1, &[sleep], 40, true)]));
    let feeder = (2, &[("/w/load.py", 7)][..], 40, true);
    cured(
        "asleep",
        &mut seen(&[(1, &[sleep, queue], 40, false), feeder]),
    );
    let found = sick(
        "host-bound",
        &mut seen(&[(1, &[sleep, queue], 40, false), feeder]),
    );
    assert!(found.title.contains("load.py:7"), "{}", found.title);
    // Its own processes feed it.
    let wait = ("/usr/lib/python3/multiprocessing/connection.py", 9);
    cured(
        "asleep",
        &mut seen(&[(
            1,
            &[sleep, wait, ("/usr/lib/python3/selectors.py", 4)],
            40,
            false,
        )]),
    );
}

/// Adam reads and writes seven values for each parameter, and one is filled: 70 us of a gradient of zeros beside 490 of the optimizer are of
/// one table. Of a model with other parameters the table is a small part.
#[test]
fn an_optimizer_of_a_whole_embedding_wants_sparse_gradients() {
    let scene = |filled: Ns| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 700_000) {
            let names = [
                "embedding_backward_kernel",
                "FillFunctor",
                "multi_tensor_apply_kernel<FusedAdam>",
            ];
            let mut begin = at;
            for (name, time) in names.into_iter().zip([100_000, filled, 490_000]) {
                scene.call("cudaLaunchKernel", at, at + 3_000);
                scene.kernel(&format!("void at::native::{name}"), 7, begin, begin + time);
                begin += time;
            }
        }
        scene
    };
    let found = sick("optimizer-kernels", &mut scene(70_000));
    assert_eq!(found.bound_ns, 20 * 560_000);
    found.change[0].to_string().must_have("sparse=True");
    cured("optimizer-kernels", &mut scene(10_000));
}

/// Who waits for batches needs more workers, and who starts workers for each epoch has to keep them.
#[test]
fn workers_that_are_started_anew_are_to_be_kept() {
    let file = "/v/site-packages/torch/utils/data/dataloader.py#";
    let told = |function: &str| {
        let frames = [("/w/train.py", 12), (&*format!("{file}{function}"), 9)];
        let found = sick("host-bound", &mut seen(&[(1, &frames, 40, true)]));
        found.advice + &found.change[0].to_string()
    };
    let kept = told("_MultiProcessingDataLoaderIter.__init__");
    kept.must_have("anew");
    kept.must_end("train.py:12  DataLoader: persistent_workers=True");
    told("_MultiProcessingDataLoaderIter.__next__").must_lack("anew");
    // Most looks see it wait for the first batches of those workers, and some see it start or end them.
    let mixed = |starts: usize| {
        let [next, ends] = ["__next__", "_shutdown_workers"].map(|it| format!("{file}{it}"));
        let (next, ends) = (
            [("/w/train.py", 12), (&*next, 7)],
            [("/w/train.py", 12), (&*ends, 9)],
        );
        let mut scene = seen(&[(1, &next, 40, true), (2, &ends, 40, true)]);
        let mut batch = scene.take();
        let looks = batch.samples.iter_mut().flat_map(|it| &mut it.looks);
        for (i, look) in looks.enumerate() {
            look.changed[0].stack = look.changed[usize::from(i % 10 < starts)].stack;
            look.changed.truncate(1);
        }
        sick("host-bound", scene.put(batch)).advice
    };
    mixed(4).must_have("anew");
    mixed(2).must_lack("anew");
}

/// What a line calls is told with its cure where half of the looks see it there; and a DataLoader that loads where it is asked has no workers.
#[test]
fn what_the_gpu_waits_for_is_told_by_the_function_of_a_library() {
    let open = ("/v/site-packages/PIL/ImageFile.py#ImageFile.load", 300);
    let told = |frames: &[(&str, u32)], looks: i64| {
        let mine = [("/w/train.py", 19), ("/w/train.py#mine", 40)];
        let threads = [(1, frames, 40, true), (2, &mine[..], 40, true)];
        let mut scene = seen(&threads);
        let mut batch = scene.take();
        let all = batch.samples.iter_mut().flat_map(|it| &mut it.looks);
        for (look, i) in all.zip(0..) {
            look.changed[0].stack = look.changed[usize::from(i >= looks)].stack;
            look.changed.truncate(1);
        }
        let found = sick("host-bound", scene.put(batch));
        let says = found.says.map_or_else(String::new, |it| it.why);
        format!(
            "{says}|{}|{}|{}",
            found.cure,
            found.advice,
            found.change[..]
                .iter()
                .map(ToString::to_string)
                .collect::<String>()
        )
    };
    let decodes = [("/w/train.py", 19), ("/w/train.py#one", 26), open];
    let said = told(&decodes, 40);
    said.must_begin("waiting for train.py:26, which decodes images (PIL)|decoding images ahead|It decodes images (PIL).");
    said.must_have("workers");
    told(&decodes, 15).must_begin("|cutting CPU work|Look at what the CPU does there");
    let loader = |of: &'static str| {
        [
            ("/w/train.py", 19),
            (of, 700),
            ("/w/train.py#__getitem__", 26),
        ]
    };
    let alone =
        "/v/site-packages/torch/utils/data/dataloader.py#_SingleProcessDataLoaderIter._next_data";
    let said = told(&loader(alone), 40);
    said.must_begin("waiting for a DataLoader without workers, in train.py:26|");
    said.must_have("DataLoader: more num_workers");
    told(&loader(alone), 15).must_begin("|cutting CPU work|");
    let by_hand = "/v/site-packages/torch/utils/data/dataset.py#Subset.__getitem__";
    told(&loader(by_hand), 40).must_begin("|cutting CPU work|");
}

/// Copies of 3 ms each way beside 2 ms of kernels in each 10 ms: they go with the hook that makes them, where samples know it.
#[test]
fn activations_that_go_to_the_cpu_and_back_are_to_stay() {
    let scene = |hook: &str| {
        let hook = format!("/v/site-packages/torch/autograd/graph.py#{hook}");
        let frames = [("/w/train.py", 20), (&*hook, 300)];
        let mut scene = seen(&[(1, &frames, 40, true)]);
        for at in (0..40).map(|i| i * 10_000_000) {
            scene.kernel("gemm", 7, at + 1_000_000, at + 3_000_000);
            scene.copy(Direction::D2H, 7, 100 << 20, at + 3_000_000, at + 6_000_000);
            scene.copy(Direction::H2D, 7, 100 << 20, at + 6_000_000, at + 9_000_000);
        }
        scene
    };
    let found = sick(
        "no-overlap",
        &mut scene("save_on_cpu.__init__.<locals>.pack_to_cpu"),
    );
    found.title.must_have("(save_on_cpu)");
    assert_eq!(found.cure, "keeping activations on the GPU");
    // 39 rounds of 10 ms and 9 ms, without 40 of 2.01 ms each; the first ends at 16 us.
    assert!(
        (318_000_000..320_000_000).contains(&found.bound_ns),
        "{}",
        found.bound_ns
    );
    sick("no-overlap", &mut scene("_engine_run_backward"))
        .title
        .must_lack("save_on_cpu");
}

/// A hook looks at what a layer puts out by four lines, none of which holds most: the function is told at the line that holds
/// most of it, and not where it is called.
#[test]
fn a_function_of_several_lines_is_told_at_one_of_its_own() {
    let frames = [16, 17, 18].map(|line| [("/w/t.py", 31), ("/w/t.py#look", line)]);
    let mut scene = seen(&[1, 2, 3].map(|it| (it, &frames[it as usize - 1][..], 40, true)));
    let mut batch = scene.take();
    let looks = batch.samples.iter_mut().flat_map(|it| &mut it.looks);
    for (look, at) in looks.zip([0, 1, 1, 2, 1, 0, 2, 0].into_iter().cycle()) {
        look.changed[0].stack = look.changed[at].stack;
        look.changed.truncate(1);
    }
    let found = sick("host-bound", scene.put(batch));
    found
        .title
        .must_end("39 of 39 stack samples saw the CPU in look at t.py:17");
}

/// The line that launches something does more than its calls: what samples saw of it elsewhere is its own.
#[test]
fn a_line_is_told_by_its_calls_and_by_what_it_does_itself() {
    let frames: [&[(&str, u32)]; 4] = [
        &[("/w/a.py", 57), ("/w/a.py", 36), ("/w/a.py", 31)],
        &[("/w/a.py", 57), ("/w/a.py", 36)],
        &[("/w/a.py", 57), ("/w/a.py", 38)],
        &[("/w/a.py", 57), ("/w/a.py", 39)],
    ];
    let mut scene = seen(&[1, 2, 3, 4].map(|it| (it, frames[it as usize - 1], 40, true)));
    let mut batch = scene.take();
    let looks = batch.samples.iter_mut().flat_map(|it| &mut it.looks);
    for (look, at) in looks.zip([0, 0, 0, 1, 1, 1, 2, 2, 3, 3].into_iter().cycle()) {
        let stack = look.changed[at].stack;
        look.changed.truncate(1);
        look.changed[0].stack = stack;
    }
    let found = sick("host-bound", scene.put(batch));
    found
        .title
        .must_end("24 of 39 stack samples saw the CPU in f36 at a.py:36");
}

/// Samples of 1 kHz that see a thread on its processor alone: one every 10 ms, where ten would be.
#[test]
fn a_thread_off_its_processor_is_told_as_blocked_and_not_by_what_it_last_ran() {
    let frames = [("solver", 1), ("solver", 2), ("solver", 3)];
    let told = |hz: u32| {
        let mut scene = seen(&[(1, &frames, 40, true)]);
        let mut batch = scene.take();
        let samples = batch.samples.as_mut().expect("samples");
        samples.sampling.hz = hz;
        let mut trace = scene.put(batch).trace();
        trace.source.kind = trace::SourceKind::Nsys;
        let found = in_scope(&trace, None, PEAKS, all).into_iter();
        let mut found = found.filter(|it| it.rule == Rule::HostBound);
        found.next().expect("host-bound")
    };
    let blocked = told(1_000);
    let said =
        "; 39 stack samples, few for that time, saw the CPU in f2 at solver:2: mostly it waited";
    blocked.title.must_end(said);
    blocked
        .advice
        .must_begin("There it waits for files, memory or other threads");
    // As many as the rate gives: the thread worked.
    let works = told(100);
    works
        .title
        .must_end("; 39 of 39 stack samples saw the CPU in f3 at solver:3");
}

#[test]
fn memory_that_takes_long_to_lock_is_told_with_its_line() {
    let locks: Seen<'_> = (1, &[("/w/keep.py", 9)], 40, true);
    let mut scene = seen_before(400_000_000, 10_000_000, &[locks]);
    scene.call("cudaFree", 0, 900_000);
    scene.call("cudaHostAlloc", 1_000_000, 399_000_000);
    let found = sick("cold-start", &mut scene);
    let told = "on pinning host memory at keep.py:9;";
    assert!(found.title.contains(told), "{}", found.title);
    assert!(found.advice.starts_with("Pin only"), "{}", found.advice);
}

#[test]
fn a_callback_works_while_the_launching_thread_waits() {
    let (waits, works) = (
        (1, &[("/w/train.py", 11)][..], 40, false),
        [("/w/train.py", 3)],
    );
    let line = |looks| {
        let scene = &mut seen(&[waits, (2, &works, looks, false)]);
        all_of(scene)
            .into_iter()
            .map(|it| it.title)
            .collect::<Vec<_>>()
            .join("\n")
    };
    // In a callback for three quarters of the looks; and a thread that is there at all times.
    assert!(line(30).contains("train.py:3"), "{}", line(30));
    assert!(line(40).contains("train.py:11"), "{}", line(40));
}

#[test]
fn a_lock_that_is_held_until_the_gpu_has_answered() {
    let scene = |holds: bool| {
        let mut scene = Scene::new();
        for round in 0..70 {
            for thread in 0..3 {
                let at = round * 330_000 + if holds { Ns::from(thread) * 110_000 } else { 0 };
                scene
                    .on_thread(thread)
                    .call("cudaLaunchKernel", at, at + 10_000);
                scene.kernel("k", 13 + thread, at + 20_000, at + 60_000);
                scene.call("cudaStreamSynchronize", at + 11_000, at + 100_000);
            }
        }
        scene
    };
    let found = sick("turns", &mut scene(true));
    found.advice.must_begin("Release the lock");
    cured("sync-in-loop", &mut scene(true));
    cured("turns", &mut scene(false));
}

/// Kernels of 6 ms in each 20 ms, whose results come back behind a sleep that sees them late, or that nobody fetches.
#[test]
fn who_sleeps_until_results_are_there_waits_for_the_gpu() {
    let scene = |fetches: bool| {
        let mut scene = seen(&[(1, &[("/w/serve.py", 12)], 40, false)]);
        for i in 0..20 {
            let at = i * 20_000_000;
            scene.call("cudaLaunchKernel", at + 20_000, at + 25_000);
            scene.kernel("answer", 9, at + 30_000, at + 6_030_000);
            if fetches {
                scene.call("cudaMemcpyAsync", at + 9_980_000, at + 9_982_000);
                scene.copy(Direction::D2H, 9, 4_096, at + 9_983_000, at + 9_985_000);
            }
        }
        scene
    };
    sick("asleep", &mut scene(false));
    cured("asleep", &mut scene(true));
    let found = sick("host-bound", &mut scene(true));
    found.advice.must_have("Where it sleeps, wait by a call");
}

/// A thread launches every 5.2 or 6 ms, not running between, while another one counts.
#[test]
fn who_waits_for_the_gil_is_told_who_holds_it() {
    let scene = |period: Ns, runs: bool| {
        let counter = (2, &[("/w/count.py", 7)][..], 40, runs);
        seen_before(
            0,
            period,
            &[(1, &[("/w/train.py", 12)], 40, false), counter],
        )
    };
    let found = sick("host-bound", &mut scene(5_210_000, true));
    let says = found.says.expect("it is named").why;
    assert_eq!(says, "waiting for the GIL, held by f7 at count.py:7");
    found.advice.must_have("multiprocessing");
    let slower = sick("host-bound", &mut scene(6_000_000, true));
    assert_eq!(slower.says, None);
    // At one line all the time, as who waits is.
    cured("host-bound", &mut scene(5_210_000, false));
}

/// The launching thread waits for a pool of processes, while a thread of its own takes in what they send; or the pool itself is slow.
#[test]
fn results_that_come_pickled_through_a_pipe_are_told() {
    let waits = [
        ("/w/train.py", 52),
        (
            "/lib/python3.12/multiprocessing/pool.py#ApplyResult.get",
            768,
        ),
        ("/lib/python3.12/threading.py#Condition.wait", 355),
    ];
    let takes = [
        (
            "/lib/python3.12/multiprocessing/pool.py#_handle_results",
            595,
        ),
        ("/lib/python3.12/multiprocessing/connection.py#_recv", 395),
    ];
    let told = |runs| {
        let threads = [(1, &waits[..], 40, false), (2, &takes[..], 40, runs)];
        sick("host-bound", &mut seen(&threads)).advice
    };
    told(true).must_have("are pickled and come through one pipe");
    told(false).must_lack("pickled");
}

/// In convolutions memory is taken and events are waited for all along; or nothing is.
#[test]
fn algorithms_that_cudnn_tries_anew_are_told() {
    let told = |waits: i64| {
        let conv = (
            "/lib/site-packages/torch/nn/modules/conv.py#_conv_forward",
            543,
        );
        let mut scene = seen(&[(1, &[("/w/name.py", 36), conv], 40, true)]);
        for at in (0..waits).map(|i| i * 10_000_000 + 5_000_000) {
            scene.call("cudaMalloc", at, at + 1_000);
            scene.call("cudaEventSynchronize", at + 2_000, at + 3_000);
        }
        sick("host-bound", &mut scene)
    };
    let found = told(20);
    found
        .advice
        .must_begin("cuDNN tries all its algorithms for each new size");
    let why = found.says.expect("it is named").why;
    assert_eq!(why, "most of it trying cuDNN's algorithms");
    assert_eq!(told(0).says, None);
    told(0).advice.must_lack("cuDNN");
}

/// The thread that launches, and another one, each ask a queue for more: nobody holds the GIL, and nobody works.
#[test]
fn who_waits_for_a_queue_does_not_wait_for_the_gil() {
    let queue = [
        ("/lib/python3.12/queue.py", 180),
        ("/lib/python3.12/threading.py", 359),
    ];
    let at = |line: u32| [("/w/serve.py", line), queue[0], queue[1]];
    let (server, caller) = (at(40), at(31));
    let threads = [(1, &server[..], 40, false), (2, &caller[..], 40, true)];
    let found = sick("asleep", &mut seen_before(0, 5_210_000, &threads));
    found
        .title
        .must_begin("asleep or waiting for input at serve.py:40");
    cured("host-bound", &mut seen_before(0, 5_210_000, &threads));
}

#[test]
fn an_optimizer_of_the_programs_own_is_told_from_pytorchs_step() {
    let calls = ("/lib/site-packages/torch/optim/optimizer.py#wrapper", 517);
    let scene = |inner: &[(&str, u32)], kernel: &str| {
        let mut scene = seen_before(0, 900_000, &[(1, inner, 40, true)]);
        scene.name(kernel);
        scene
    };
    let step = [
        ("/w/train.py", 60),
        calls,
        ("/w/lion.py#Lion.step", 20),
        ("/w/lion.py", 28),
    ];
    let found = sick("optimizer-launches", &mut scene(&step, "lerp"));
    found.title.must_have("(Optimizer.step of lion.py)");
    found.title.must_have("lion.py:28");
    cured(
        "optimizer-launches",
        &mut scene(&step, "multi_tensor_apply_kernel<Lerp>"),
    );
    let not_called = [step[0], step[2], step[3]];
    cured("optimizer-launches", &mut scene(&not_called, "lerp"));
}

/// Five steps of forty kernels of another kind, and of Adam's seven for each of twenty parameters, of 2 us each 10.
#[test]
fn adams_kernels_tell_its_loop_where_nothing_else_does() {
    let of = |name: &str| {
        format!("void at::native::vectorized_elementwise_kernel<4, at::native::{name}>(int)")
    };
    let loops = [
        "(anonymous namespace)::lerp_scalar_kernel",
        "BinaryFunctor<float>",
        "addcmul_cuda_kernel",
        "sqrt_kernel_cuda",
        "DivFunctor<float>",
        "AddFunctor<float>",
        "addcdiv_cuda_kernel",
    ];
    let scene = |adam: [&str; 7]| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for _ in 0..5 {
            let forward = std::iter::repeat_n("gelu_kernel", 40);
            let step = (0..20).flat_map(|_| adam);
            for name in forward.chain(step) {
                scene.call("cudaLaunchKernel", at, at + 8_000);
                scene.kernel(&of(name), 7, at + 7_000, at + 9_000);
                at += 10_000;
            }
        }
        scene
    };
    let found = sick("optimizer-launches", &mut scene(loops));
    found
        .title
        .must_begin("700 of 900 launches are in the optimizer's step (Adam or AdamW)");
    found.advice.must_have("fused=True");
    // The same with one kernel for many parameters; and an average that is kept beside an optimizer.
    cured(
        "optimizer-launches",
        &mut scene(["multi_tensor_apply_kernel"; 7]),
    );
    let mut average = loops;
    average[6] = "mul_kernel";
    cured("optimizer-launches", &mut scene(average));
}

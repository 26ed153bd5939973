//! What is told of the CPU alone.

use super::told;
use activity::{
    Frame, Ns, Range, RangeKind, SampleDef, SampledThread, Samples, Sampling, StackSample, What,
};
use trace::SourceKind;
use trace::testing::{Scene, Sentence as _};

const MS: Ns = 1_000_000;

#[test]
fn a_worker_in_one_range_hides_no_other_thread() {
    let mut scene = Scene::new();
    let worker = Range {
        kind: RangeKind::Nvtx,
        name: scene.name("network_worker"),
        thread: 2,
        index: 0,
    };
    scene.push(0, 200 * MS, 0, What::Range(worker));
    for at in (0..10).map(|i| i * 10 * MS) {
        scene.range(RangeKind::Nvtx, "get", 0, at, at + 9 * MS);
    }
    let (most, _) = told(&scene.trace());
    assert_eq!(
        most.as_deref(),
        Some("91 % of the CPU's 99.0 ms is in `get`")
    );
}

#[test]
fn calls_and_ranges_are_told_without_any_operation() {
    // Ten rounds of 10 ms: 6 ms take memory, 1 ms waits.
    let mut scene = Scene::new();
    for at in (0..10).map(|i| i * 10 * MS) {
        scene.call("cudaMalloc", at, at + 6 * MS);
        scene.call("cudaDeviceSynchronize", at + 9 * MS, at + 10 * MS);
        let name = format!("round {at}");
        scene.range(RangeKind::Nvtx, &name, 0, at, at + 10 * MS);
    }
    let (most, all) = told(&scene.trace());
    assert_eq!(
        most.as_deref(),
        Some("60 % of the CPU's 100 ms is in `cudaMalloc`")
    );
    let calls = "CUDA calls: `cudaMalloc` 60.0 ms (10 of 6.00 ms), `cudaDeviceSynchronize` 10.0 ms (10 of 1.00 ms)";
    assert_eq!(all, [calls, "ranges: `round #` 100 ms (10 of 10.0 ms)"]);
    // Calls of another thread count, too: 2 ms more, and 3 ms of what the first one does not do.
    let mut scene = Scene::new();
    scene.call("cudaMalloc", 0, 6 * MS);
    scene.on_thread(1).call("cudaMalloc", MS, 3 * MS);
    scene.call("cudaFree", 3 * MS, 6 * MS);
    let all = told(&scene.trace()).1;
    let calls = "CUDA calls: `cudaMalloc` 8.00 ms (2, one of 6.00 ms), `cudaFree` 3.00 ms";
    assert_eq!(all, [calls]);
}

/// Rows of TensorFlow: each op lies in the first that has room. PyTorch's are threads.
#[test]
fn ops_of_tensorflow_count_in_all_of_its_rows() {
    let told = |name: &str| {
        let mut scene = Scene::new();
        for (thread, name, from, to) in [(0, name, 0, 4), (1, name, 1, 6), (1, "ApplyAdam", 6, 10)]
        {
            let name = scene.name(name);
            let (kind, index) = (RangeKind::CpuOp, 0);
            let op = Range {
                kind,
                name,
                thread,
                index,
            };
            scene.push(from * MS, to * MS, 0, What::Range(op));
        }
        let mut trace = scene.trace();
        trace.source.kind = SourceKind::Kineto;
        told(&trace).0
    };
    // 4 and 5 ms of 13.
    assert_eq!(
        told("MatMul").as_deref(),
        Some("69 % of 13.0 ms, all threads' together, is in `MatMul`")
    );
    // 5 of the 9 ms of one thread.
    assert_eq!(
        told("aten::mm").as_deref(),
        Some("56 % of the CPU's 9.00 ms is in `aten::mm`")
    );
}

/// Ten nodes of 1 ms in all, a copy of 1 ms, and what the CPU took: 2 ms, next to nothing, or all.
#[test]
fn nodes_that_fall_back_to_the_cpu_are_told() {
    let told = |on: &str, fallen: Ns| {
        let mut scene = Scene::new();
        let mut node = |name: &str, from: Ns, len: Ns| {
            scene.range(RangeKind::CpuOp, name, 0, from, from + len);
        };
        (0..10).for_each(|i| node(&format!("Conv on {on}"), i * MS / 10, MS / 10));
        node(&format!("MemcpyToHost on {on}"), MS, fallen / 2);
        node("TopK on CPU", 2 * MS, fallen);
        let mut trace = scene.trace();
        trace.source.kind = SourceKind::Kineto;
        told(&trace).1.split_off(1)
    };
    let fallen = "CUDA did not take 1 node (2.00 ms, most of it `TopK`), with 1 copy between (1.00 ms): use operators and types that it has";
    assert_eq!(told("CUDA", 2 * MS), [fallen]);
    assert_eq!(told("CUDA", MS / 100), [""; 0]);
    assert_eq!(told("CPU", MS / 100), [""; 0]);
}

#[test]
fn calls_that_come_with_each_launch_are_counted() {
    // Twenty launches of 5 ms in all; a wait of 1 ms behind each or each fourth one, memory for each or for none.
    let told = |waits: usize, memory: Ns| {
        let mut scene = Scene::new();
        for i in 0..20 {
            let at = i as Ns * 10 * MS;
            scene.call("cudaLaunchKernel", at, at + MS / 4);
            if i % waits == 0 {
                scene.call("cudaStreamSynchronize", at + MS, at + 2 * MS);
            }
            scene.call("cudaMalloc", at + 3 * MS, at + 3 * MS + memory);
            scene.call("cudaFree", at + 5 * MS, at + 5 * MS + memory);
        }
        told(&scene.trace()).1.split_off(1)
    };
    let syncs = "20 syncs for 20 launches take 20.0 ms: wait only where the CPU needs a result";
    let memory =
        "40 allocations and frees for 20 launches take 40.0 ms: take memory once, before the loop";
    assert_eq!(told(1, MS), [syncs, memory]);
    assert_eq!(told(1, MS / 100), [syncs]);
    assert_eq!(told(4, MS / 100), [""; 0]);
}

#[test]
fn the_first_call_of_all_that_takes_long_makes_the_context() {
    // One of 70 ms and one of 2 ms, the long one first or behind a copy of 5 ms.
    for (copy_at, named) in [
        (80, "the first `cudaMalloc`, likely making the context"),
        (0, "`cudaMalloc`"),
    ] {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", 5 * MS, 75 * MS);
        scene.call("cudaMalloc", 76 * MS, 78 * MS);
        scene.call("cudaMemcpy", copy_at * MS, copy_at * MS + 5 * MS);
        let most = told(&scene.trace()).0.expect("most of it");
        assert!(most.ends_with(&format!(" ms is in {named}")), "{most}");
        // 70 of 80 ms, and 72 of 78.
        let part = if copy_at > 0 { "88 % of" } else { "92 % of" };
        assert!(most.starts_with(part), "{most}");
    }
}

#[test]
fn operators_are_told_with_their_parts_and_without_a_range_around_all() {
    // Of 100 ms 60 are in `where`, half of each in what it is made of, from the same moment on.
    let mut scene = Scene::new();
    let kind = RangeKind::CpuOp;
    scene.range(kind, "infer", 0, 0, 100 * MS);
    for at in (0..10).map(|i| i * 10 * MS) {
        scene.range(kind, "aten::nonzero", 0, at, at + 3 * MS);
        scene.range(kind, "aten::where", 0, at, at + 6 * MS);
        scene.range(kind, "aten::add", 0, at + 6 * MS, at + 9 * MS);
    }
    let mut trace = scene.trace();
    trace.source.kind = SourceKind::Kineto;
    let (most, all) = told(&trace);
    let most = most.expect("most of it");
    assert_eq!(most, "60 % of the CPU's 100 ms is in `aten::where`");
    let list = "CPU operators: `aten::where` 60.0 ms (10 of 6.00 ms), ";
    assert!(all[0].starts_with(list), "{all:?}");
    // What calls another and does next to nothing itself is told once, with that.
    let mut scene = Scene::new();
    for name in ["EagerKernelExecute 0", "ProfilerStep#1", "aten::matmul"] {
        scene.range(kind, name, 0, 0, 60 * MS);
    }
    scene.range(kind, "aten::mm", 0, MS, 60 * MS);
    scene.range(kind, "aten::add", 0, 60 * MS, 100 * MS);
    let mut trace = scene.trace();
    trace.source.kind = SourceKind::Kineto;
    let list = "CPU operators: `aten::mm` 59.0 ms, `aten::add` 40.0 ms";
    assert_eq!(told(&trace).1, [list]);
}

/// An allocation of 170 ms, a copy 420 ms later, and between them looks that saw the driver's compiler until then, or nothing.
#[test]
fn a_driver_that_compiles_for_longer_than_any_call_takes_is_told_first() {
    let said = |file: &str, until: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", 0, 170 * MS);
        scene.call("cudaMemcpy", 590 * MS, 600 * MS);
        let (id, caller) = (1, 0);
        let frame = Frame {
            file: file.to_owned(),
            function: file.to_owned(),
            line: 0,
        };
        let looks = (170 * MS..until)
            .step_by(MS as usize)
            .map(|time| StackSample {
                time,
                changed: vec![SampledThread {
                    thread: 1,
                    stack: 1,
                    is_running: true,
                }],
            });
        let mut batch = scene.take();
        batch.samples = Some(Samples {
            series: 0,
            defs: vec![
                SampleDef::Frame { id, frame },
                SampleDef::Stack {
                    id,
                    caller,
                    frame: 1,
                },
            ],
            looks: looks.collect(),
            sampling: Sampling {
                hz: 1_000,
                ..Sampling::default()
            },
        });
        told(&scene.put(batch).trace()).0.expect("it works")
    };
    let compiler = "<libnvidia-ptxjitcompiler.so.1>";
    // 419 of 600 ms.
    let most = said(compiler, 590 * MS);
    most.must_begin("70 % of the CPU's 600 ms is in the driver's compiler of PTX");
    assert!(
        most.starts_with("70 %") || most.starts_with("71 %"),
        "{most}"
    );
    said(compiler, 300 * MS).must_have("is in the first `cudaMalloc`");
    said("main", 590 * MS).must_have("is in the first `cudaMalloc`");
}

#[test]
fn a_thread_that_waits_is_not_at_work() {
    let most = |call: &str, took: Ns| {
        let mut scene = Scene::new();
        for at in (0..10).map(|i| i * 10 * MS) {
            scene.range(RangeKind::Nvtx, "round", 0, at, at + 10 * MS);
            scene.range(RangeKind::CpuOp, call, 0, at, at + took);
        }
        told(&scene.trace()).0.expect("most of it")
    };
    let waits = "the thread waits in `select` for 98 % of 100 ms";
    assert_eq!(most("select", 98 * MS / 10), waits);
    assert!(most("select", 8 * MS).starts_with("100 % of"));
    assert!(most("write", 98 * MS / 10).starts_with("100 % of"));
}

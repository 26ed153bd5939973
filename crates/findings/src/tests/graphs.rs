//! Rules that look at launches of CUDA graphs, and at communication.

use super::*;
use activity::RangeKind;
use causes::graph::Graph;
use causes::{Causes, explain};
use trace::SourceKind;
use trace::testing::Sentence;

/// Steps that launch a graph of four kernels and wait for its end. A launch takes so long before its first kernel; some left no records.
fn replays(took: Ns, is_waited: bool, lost: impl Fn(i64) -> bool) -> Scene {
    let mut scene = Scene::new();
    let mut at = 0;
    for step in 0..12 {
        scene.call("cudaGraphLaunch", at, at + took);
        let mut now = at + took + 1_000;
        for node in ["a", "b", "c", "d"].into_iter().filter(|_| !lost(step)) {
            scene.kernel(node, 7, now, now + 500_000);
            now += 501_000;
        }
        at += took + 2_000;
        if is_waited {
            scene.call("cudaStreamSynchronize", at, now + 3_000);
            at = now + 4_000;
        }
    }
    scene
}

/// Each of 11 launches behind the first keeps the GPU idle for the 300 us that it takes, because a step waits for its end.
#[test]
fn a_graph_is_launched_too_late_behind_a_wait() {
    let found = sick("graph-launch", &mut replays(300_000, true, |_| false));
    assert_eq!(found.count, 11);
    assert!(
        (3_200_000..3_400_000).contains(&found.bound_ns),
        "{found:?}"
    );
    found.title.must_have("cudaStreamSynchronize");
    // Launched ahead, and a launch that takes hardly anything.
    cured("graph-launch", &mut replays(300_000, false, |_| false));
    cured("graph-launch", &mut replays(5_000, true, |_| false));
}

#[test]
fn launches_of_graphs_without_records_leave_no_verdict() {
    let mut lost = replays(50_000, true, |step| step % 3 > 0);
    let all = all_of(&mut lost);
    let [it] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!((it.rule.name(), it.bound_ns), ("lost-records", 0));
    it.title
        .must_begin("8 of 12 graph launches have no GPU records");
    // What was done before the first of them holds: a call of 200 ms, and a copy of pageable memory at 2 GB/s. So does no call behind it.
    let with = |at: Ns| {
        let mut lost = replays(50_000, true, |step| step % 3 > 0);
        lost.call("cudaStreamCreate", at, at + 200_000_000);
        lost.call("cudaMemcpy", -5_000_000, -1_000_000);
        let memory = MemoryKind::Pageable;
        let copy = Copy {
            from: memory,
            ..pinned(Direction::H2D, 7, 8 << 20)
        };
        lost.copy_of(copy, -5_000_000, -1_000_000);
        let found = all_of(&mut lost);
        let cold = found.iter().filter(|it| it.rule == Rule::ColdStart);
        // What waits for it is not known.
        assert_eq!(cold.map(Finding::worth).collect::<String>(), "");
        found.iter().map(|it| it.rule).collect::<Vec<_>>()
    };
    let kept = [Rule::LostRecords, Rule::ColdStart, Rule::PageableCopy];
    assert_eq!(with(-300_000_000), kept);
    assert_eq!(with(10_000_000), [kept[0], kept[2]]);
    for few in [0, 1] {
        let found = all_of(&mut replays(50_000, true, |step| step >= 12 - few));
        assert!(
            found.iter().all(|it| it.rule.name() != "lost-records"),
            "{found:?}"
        );
    }
    // Where nothing at all has a record, no option for graphs brings it.
    assert_eq!(all_of(&mut replays(50_000, true, |_| true)), []);
}

/// Forty launches, each of which leaves a kernel of 90 us behind but some.
#[test]
fn launches_of_kernels_without_records_leave_no_verdict() {
    let of = |is_lost: fn(i64) -> bool| {
        let mut scene = Scene::new();
        for i in 0..40 {
            let at = i * 100_000;
            scene.call("cudaLaunchKernel", at, at + 5_000);
            if !is_lost(i) {
                scene.kernel("k", 7, at + 8_000, at + 98_000);
            }
        }
        let found = all_of(&mut scene).into_iter();
        let mut lost = found.filter(|it| it.rule == Rule::LostRecords);
        lost.next().map(|it| it.title)
    };
    let lost = of(|i| i % 4 == 1).expect("found");
    lost.must_begin("10 of 40 launched kernels have no GPU records");
    // Few of them, and those behind the last record or before the first: nothing was recorded then.
    for few in [
        (|i| i % 8 == 1) as fn(i64) -> bool,
        |i| i >= 20,
        |i| i < 20,
        |i| !(10..30).contains(&i),
    ] {
        assert_eq!(of(few), None);
    }
}

/// Forty calls of TensorRT, and their launches are on record in some of them: the time without was read as idle.
#[test]
fn calls_of_a_library_that_launch_nothing_on_record_leave_no_verdict() {
    let of = |name: &str, recorded: i64| {
        let mut scene = Scene::new();
        for i in 0..40 {
            let at = i * 100_000;
            scene.range(RangeKind::Nvtx, name, 0, at, at + 50_000);
            if i < recorded {
                scene.call("cuLaunchKernelEx", at + 10_000, at + 15_000);
                scene.kernel("k", 7, at + 20_000, at + 90_000);
            }
        }
        let mut trace = scene.trace();
        trace.source.kind = SourceKind::Nsys;
        let all = in_scope(&trace, None, PEAKS, all).into_iter();
        let mut lost = all.filter(|it| it.rule == Rule::LostRecords);
        lost.next().map(|it| it.title)
    };
    let lost = of("ExecutionContext::enqueueV3", 2).expect("found");
    lost.must_begin("38 of 40 `ExecutionContext::enqueue` have no records of CUDA calls: ");
    assert_eq!(of("ExecutionContext::enqueueV3", 36), None);
    // What a program marks may be anything, and a collective is launched behind its call.
    assert_eq!(of("enqueue", 2), None);
    assert_eq!(of("ncclAllReduce", 2), None);
}

/// CUPTI numbers all calls. Where the numbers of 200 run to 40,000, and on by thousands while no call is on record, most were left out.
#[test]
fn calls_whose_numbers_run_on_without_them_were_left_out_of_the_file() {
    let of = |kind: SourceKind, id: fn(u32) -> u32| {
        let mut scene = Scene::new();
        for i in 0..200 {
            let at = i * 100_000 + if i >= 100 { 50_000_000 } else { 0 };
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                7,
                at + 8_000,
                at + 98_000,
            );
        }
        let mut batch = scene.take();
        for item in &mut batch.items {
            item.correlation = id(item.correlation);
        }
        let mut trace = scene.put(batch).trace();
        trace.source.kind = kind;
        let all = in_scope(&trace, None, PEAKS, all).into_iter();
        let mut lost = all.filter(|it| it.rule == Rule::LostRecords);
        let graph = Graph::new(&trace);
        let longest = Span::new(99 * 100_000 + 98_000, 60_008_000);
        let said = explain(
            &trace,
            Some(&Causes::new(&trace, &graph)),
            &[trace.streams().next().expect("one").0],
            longest,
        );
        (lost.next().map(|it| it.title), said.sentence)
    };
    // Ids 1 to 200 become 1 to 31,000: 10 each, 29,000 in the pause.
    let cut = |id: u32| id * 10 + if id > 100 { 29_000 } else { 0 };
    let (lost, said) = of(SourceKind::Nsys, cut);
    lost.expect("found")
        .must_begin("the file has 200 of up to 30,991 CUDA calls, by their ids: ");
    said.must_have("The file has 200 of up to 30,991 CUDA calls of this process");
    // A recording has the calls that it asked for; a library that starts calls much at once, among calls that are on record; and a
    // program may call what is never recorded all along.
    for (kind, id) in [
        (SourceKind::Recording, cut as fn(u32) -> u32),
        (SourceKind::Nsys, |id| {
            id + if id > 100 { 12_000 } else { 0 }
        }),
        (SourceKind::Nsys, |id| id * 200),
    ] {
        let (lost, said) = of(kind, id);
        assert_eq!(lost, None);
        said.must_have("outside CUDA");
    }
}

/// Short kernels launched one by one beside a graph are what a larger graph would hold.
#[test]
fn what_is_launched_beside_a_graph_is_named() {
    let beside = |has_graph: bool| {
        let mut scene = Scene::new();
        let mut at = 0;
        for _ in 0..12 {
            if has_graph {
                scene.call("cudaGraphLaunch", at, at + 4_000);
                scene.kernel("node", 7, at + 6_000, at + 10_000);
            }
            for _ in 0..4 {
                at += 20_000;
                scene.call("cudaLaunchKernel", at, at + 5_000);
                scene.kernel("sampler", 7, at + 7_000, at + 9_000);
            }
            at += 20_000;
        }
        let found = sick("launch-bound", &mut scene);
        (found.cure, found.advice.clone(), found.gain(0.0))
    };
    let (cure, advice, _) = beside(true);
    assert_eq!(cure, "capturing more in the CUDA graph");
    assert!(advice.contains("one by one, mostly sampler"), "{advice}");
    // Of kernels of 2 us larger batches have fewer, but for an eighth. A graph has as many: of 1,162 us 48 such kernels take 96, and
    // 1,066 are idle.
    let (cure, _, gain) = beside(false);
    assert_eq!(cure, "using a CUDA graph or larger batches");
    assert_eq!(
        gain.expect("a bound"),
        "up to 1.07 ms from using a CUDA graph, more with larger batches"
    );
}

/// A step of 800 us: a graph of 8 nodes, after 300 us a kernel, 70 us later another, and 360 us until the next graph.
#[test]
fn the_cpus_work_between_few_launches_is_not_called_launching() {
    let mut scene = Scene::new();
    for at in (0..12).map(|step| step * 800_000) {
        scene.call("cudaGraphLaunch", at, at + 4_000);
        for node in (0..8).map(|it| at + 6_000 + it * 5_000) {
            scene.kernel("node", 7, node, node + 4_000);
        }
        for (launch, length) in [(at + 345_000, 8_000), (at + 420_000, 13_000)] {
            scene.call("cudaLaunchKernel", launch, launch + 5_000);
            scene.kernel("optimizer", 7, launch + 7_000, launch + 7_000 + length);
        }
    }
    let found = sick("launch-bound", &mut scene);
    // 12 gaps of 307 us, 12 of 67 and 11 of 366, beside 7 us between the nodes of each graph.
    assert_eq!(found.bound_ns, 12 * 307_000 + 12 * 67_000 + 11 * 366_000);
    // The CPU is outside calls for 12 x 300 and 11 x 360 us of these. What lies between two launches, 67 us, is launching.
    found
        .title
        .must_have("954 µs in launching, 7.56 ms in other CPU work");
    let says = found.says.expect("words for the headline");
    assert_eq!(says.bound, Bound::Host);
    assert_eq!(says.why, "92 % in CPU work and in launching");
    assert_eq!(found.cure, "capturing more in the CUDA graph");
    assert!(all_of(&mut scene).iter().all(|it| it.rule != Rule::NoCure));
}

/// A graph of 60 nodes of 2 us, 1 us apart: a third is gaps, of which a graph in one kernel has none.
#[test]
fn gaps_between_the_nodes_of_a_graph_are_the_graphs() {
    let graph = |call: &str, length: Ns, gap: Ns| {
        let mut scene = Scene::new();
        for replay in 0..4 {
            let begin = replay * 60 * (length + gap);
            scene.call(call, begin - 20_000, begin - 12_000);
            for node in 0..60 {
                let at = begin + node * (length + gap);
                scene.kernel("cool", 7, at, at + length);
            }
        }
        all_of(&mut scene)
            .into_iter()
            .find(|it| it.rule.name() == "graph-nodes")
    };
    let found = graph("cudaGraphLaunch", 2_000, 1_000).expect("found");
    // 59 gaps in each of four graphs; short nodes go as well.
    assert_eq!(found.bound_ns, 236_000 + 480_000);
    found
        .title
        .must_begin("240 nodes of CUDA graphs take 2.00 µs each, mostly cool");
    assert_eq!(graph("cudaGraphLaunch", 20_000, 1_000), None);
    assert_eq!(graph("cudaLaunchKernel", 2_000, 1_000), None);
    // Nodes that do hardly anything, 0.1 us apart, are all there is to save; those that work are not.
    let found = graph("cudaGraphLaunch", 1_200, 100).expect("found");
    assert_eq!(found.bound_ns, 4 * (59 * 100 + 60 * 1_200));
    assert_eq!(graph("cudaGraphLaunch", 4_000, 100), None);
}

/// Twelve launches of 1.5 ms behind a wait, each of 1,500 nodes of 1.2 us: recording those took up to 1.4 ms, where cuptop did it.
#[test]
fn a_launch_that_recording_makes_long_is_not_told_as_late() {
    let mut scene = Scene::new();
    let mut at = 0;
    for _ in 0..12 {
        scene.call("cudaGraphLaunch", at, at + 1_500_000);
        at += 1_500_000;
        for _ in 0..1_500 {
            scene.kernel("cool", 7, at, at + 1_200);
            at += 1_300;
        }
        scene.call("cudaStreamSynchronize", at - 1_900_000, at + 3_000);
        at += 4_000;
    }
    let mut trace = scene.trace();
    let mut told = |source| {
        trace.source.kind = source;
        let found = in_scope(&trace, None, PEAKS, all).into_iter();
        found.map(|it| (it.rule, it.severity)).collect::<Vec<_>>()
    };
    let (late, nodes) = (Rule::GraphLaunch, Rule::GraphNodes);
    assert!(told(SourceKind::Kineto).contains(&(late, Severity::Warning)));
    assert!(told(SourceKind::Kineto).contains(&(nodes, Severity::Info)));
    let recorded = told(SourceKind::Traced);
    assert!(recorded.iter().all(|it| it.0 != late), "{recorded:?}");
    assert_eq!(recorded[0], (nodes, Severity::Warning));
}

/// Twelve launches that find no room for 1 ms each while a kernel runs; or of which half find the GPU idle.
#[test]
fn a_full_queue_is_a_remark_where_the_gpu_works() {
    let of = |busy: Ns| {
        let mut scene = Scene::new();
        for i in 0..12 {
            let at = i * 2_000_000;
            scene.call("cudaLaunchKernel", at - 9_000, at + 1_100_000);
            scene.overhead("Command Buffer Full", at, at + 1_000_000);
            scene.kernel("k", 7, at, at + busy);
        }
        all_of(&mut scene)
            .into_iter()
            .find(|it| it.rule.name() == "queue-full")
    };
    let found = of(1_990_000).expect("found");
    assert_eq!(
        (found.severity, found.bound_ns, found.count),
        (Severity::Info, 0, 12)
    );
    found.title.must_have("12 times for 12.0 ms (50 %)");
    assert_eq!(of(500_000), None);
}

/// A kernel of 3 ms and then communication of 1 ms, ten times, which a pass beside it on the same stream does not hide.
fn exposed(name: &str, stream: u32) -> Finding {
    exposed_beside("ampere_bf16_s16816gemm_128x64", name, stream)
}

fn exposed_beside(compute: &str, name: &str, stream: u32) -> Finding {
    exposed_with(&mut Scene::new(), compute, name, stream)
}

fn exposed_with(scene: &mut Scene, compute: &str, name: &str, stream: u32) -> Finding {
    for i in 0..10 {
        let at = i * 4_000_000;
        scene.call("cudaLaunchKernel", at - 9_000, at - 4_000);
        scene.kernel(compute, 7, at, at + 3_000_000);
        scene.call("cudaLaunchKernel", at - 4_000, at - 1_000);
        scene.kernel(name, stream, at + 3_000_000, at + 4_000_000);
    }
    sick("exposed-communication", scene)
}

#[test]
fn what_hides_communication_depends_on_what_it_is() {
    for (name, word, cure) in [
        (
            "ncclDevKernel_AllGather_RING_LL(…)",
            "prefetch",
            "prefetching communication",
        ),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(…)",
            "buckets",
            "overlapping communication",
        ),
        (
            "ncclDevKernel_SendRecv(…)",
            "stage",
            "a shorter pipeline bubble",
        ),
        (
            "void deep_ep::intranode::combine<…>(…)",
            "Expert",
            "hiding communication",
        ),
    ] {
        let apart = exposed(name, 23);
        assert!(apart.advice.contains(word), "{name}: {}", apart.advice);
        assert_eq!(
            (apart.cure, apart.advice.contains("compute stream")),
            (cure, false)
        );
        let same = exposed(name, 7);
        same.advice.must_begin("They run on the compute stream");
        assert_eq!(same.cure, "a stream of its own for communication");
    }
}

/// Three steps with a product and six exchanges of 2 ms; the first exchange of each takes so long.
#[test]
fn an_exchange_that_waits_in_each_step_waits_for_a_rank() {
    let of = |first: Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for _ in 0..3 {
            for took in [first, 2_000_000, 2_000_000, 2_000_000, 2_000_000, 2_000_000] {
                scene.kernel("ncclDevKernel_SendRecv(…)", 23, at, at + took);
                at += took;
            }
            scene.range(RangeKind::CpuOp, "AddBackward0", 0, at, at + 9_000);
            scene.kernel("void at::native::gemm", 7, at, at + 20_000_000);
            at += 20_000_000;
        }
        sick("exposed-communication", &mut scene).title
    };
    let told = of(1_000_000_000);
    assert!(
        told.starts_with("3 of 18 collectives most likely waited"),
        "{told}"
    );
    // Larger messages take longer.
    let told = of(60_000_000);
    assert!(!told.contains("waited"), "{told}");
}

/// Ten products, and after each an all-reduce of so long.
#[test]
fn short_collectives_want_larger_buckets() {
    let found = |took: Ns, range: &str| {
        let mut scene = Scene::new();
        for at in (0..10).map(|it| it * 4 * took) {
            scene.range(RangeKind::CpuOp, range, 0, at, at + took / 2);
            scene.range(
                RangeKind::CpuOp,
                "AddBackward0",
                0,
                at + took / 2,
                at + took,
            );
            scene.kernel("void at::native::add_kernel", 7, at, at + 3 * took);
            scene.kernel("ncclDevKernel_AllReduce", 23, at + 3 * took, at + 4 * took);
        }
        sick("exposed-communication", &mut scene)
    };
    let of = |took| {
        found(took, "DistributedDataParallel.forward").change[0].set[0]
            .new
            .clone()
    };
    assert_eq!([94_000, 300_000].map(of), ["larger", "smaller"]);
    // A program that calls collectives by itself has no buckets.
    assert_eq!(found(94_000, "Muon.step").change, []);
}

/// Inference, whose all-reduces take 0.6 ms at the least, and so long in half of the layers.
#[test]
fn what_a_collective_takes_beyond_the_usual_is_waiting() {
    let of = |took: fn(i64) -> Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for layer in 0..40 {
            let took = if layer % 2 == 0 { 600_000 } else { took(layer) };
            scene.kernel("void at::native::add_kernel", 7, at, at + 2_000_000);
            at += 2_000_000;
            scene.kernel("ncclDevKernel_AllReduce", 23, at, at + took);
            at += took;
        }
        sick("exposed-communication", &mut scene).title
    };
    // 2 to 40 ms in steps of 2: 20 of 40, 420 ms less 20 times 0.6.
    let late = of(|layer| (layer + 1) * 1_000_000);
    let told = "20 of 40 collectives most likely waited for another rank: 408 ms";
    assert!(late.starts_with(told), "{late}");
    // Where two of them wait at once, the time counts once: four pairs of 10 ms among twenty.
    let mut twice = Scene::new();
    for pair in 0..20 {
        let at = pair * 12_000_000;
        let took = if pair % 5 == 0 { 10_000_000 } else { 900_000 };
        twice.kernel("void at::native::add_kernel", 7, at, at + 2_000_000);
        for stream in [23, 24] {
            let start = at + 2_000_000;
            twice.kernel("ncclDevKernel_AllReduce", stream, start, start + took);
        }
    }
    let title = sick("exposed-communication", &mut twice).title;
    let told = "8 of 40 collectives most likely waited for another rank: 40.0 ms";
    assert!(title.starts_with(told), "{title}");
    // Larger ones take longer, all of them about as long.
    let larger = of(|layer| 4_000_000 + layer * 10_000);
    assert!(!larger.contains("waited"), "{larger}");
}

/// Inference with 96 all-reduces of 48 us, of which each second one takes so much longer.
#[test]
fn collectives_of_any_length_wait_and_those_of_a_few_sizes_do_not() {
    let of = |more: fn(i64) -> Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for i in 0..192 {
            let took = 48_000 + if i % 2 == 0 { 0 } else { more(i / 2) };
            scene.kernel("void at::native::add_kernel", 7, at, at + 50_000);
            at += 50_000;
            scene.kernel("all_reduce_two_shot_kernel", 7, at, at + took);
            at += took;
        }
        sick("exposed-communication", &mut scene)
    };
    // 1 to 96 times 1.5 us: 6.984 ms in all. Over a fifth of the usual, 10.6 us: from the eighth on, less 28 times 1.5 us.
    let late = of(|i| (i + 1) * 1_500);
    late.title
        .must_have("; 89 most likely waited for another rank (6.94 ms)");
    // 2.5 times as much is most of all they take: from the third on, less three times 3.75 us.
    let most = of(|i| (i + 1) * 3_750);
    most.title
        .must_begin("94 of 192 collectives most likely waited for another rank: 17.4 ms");
    // Messages of three sizes, and of one.
    for sizes in [|i: i64| i % 3 * 60_000 + i * 20, |i: i64| i * 20] {
        let told = of(sizes);
        assert!(!told.title.contains("waited"), "{}", told.title);
    }
}

#[test]
fn of_one_collective_alone_the_other_ranks_tell() {
    let mut one = Scene::new();
    one.kernel("ncclDevKernel_AllGather_RING_LL", 7, 0, 186_000_000);
    let [found] = &all_of(&mut one)[..] else {
        panic!("one finding")
    };
    // Neither how much it sends nor who is late is known: it promises nothing.
    assert_eq!(
        (found.rule.name(), found.bound_ns),
        ("exposed-communication", 0)
    );
    found
        .title
        .must_begin("one collective is all that was recorded");
    found.advice.must_have("other ranks");
    // Of several in a row nothing is told, as before.
    one.kernel(
        "ncclDevKernel_AllGather_RING_LL",
        7,
        187_000_000,
        188_000_000,
    );
    assert!(all_of(&mut one).is_empty());
}

#[test]
fn only_stages_of_a_model_are_a_pipeline() {
    let of = |compute, name| exposed_beside(compute, name, 23);
    for solver in ["stencil_step", "volta_dgemm_128x64_nn"] {
        let it = of(solver, "ncclDevKernel_SendRecv(…)");
        assert_eq!(it.cure, "overlapping exchange and inner work");
        it.advice.must_have("border first");
        it.advice.must_lack("micro-batches");
    }
    let it = of("void at::native::add_kernel", "ncclDevKernel_SendRecv(…)");
    assert_eq!(it.cure, "a shorter pipeline bubble");
    // An all-to-all is made of sends, too.
    let (mut scene, add) = (Scene::new(), "void at::native::add_kernel");
    scene.range(RangeKind::CpuOp, "c10d::alltoall_base_", 0, 0, 1_000);
    let it = exposed_with(&mut scene, add, "ncclDevKernel_SendRecv(…)", 23);
    assert_eq!(it.cure, "hiding communication");
    // What is no exchange keeps its advice.
    let it = of("stencil_step", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)");
    assert_eq!(it.cure, "overlapping communication");
}

/// Eight training steps of 1 ms: a graph that takes half of it, and six kernels that are launched one by one.
fn half_graphed(length: Ns, waits: bool, range: &str) -> Vec<Finding> {
    let mut scene = Scene::new();
    for at in (0..8).map(|i| i * 1_000_000) {
        scene.call("cudaGraphLaunch", at, at + 10_000);
        for node in (0..10).map(|i| at + 15_000 + i * 50_000) {
            scene.kernel("gemm", 1, node, node + 50_000);
        }
        for begin in (0..6).map(|i| at + 520_000 + i * 80_000) {
            scene.call("cudaLaunchKernel", begin - 10_000, begin - 5_000);
            scene.kernel("foreach", 1, begin, begin + length);
            if waits {
                scene.call(
                    "cudaStreamSynchronize",
                    begin - 4_000,
                    begin + length + 2_000,
                );
            }
        }
        scene.range(RangeKind::Nvtx, range, 0, at + 505_000, at + 990_000);
    }
    in_scope(&scene.trace(), None, PEAKS, |scope| {
        let mut steps = scope.clone();
        steps.steps = 8;
        all(&steps)
    })
}

#[test]
fn what_a_training_step_launches_beside_its_graph_is_to_be_captured() {
    let step = "Optimizer.step#SGD.step";
    let told = |all: &[Finding]| all.iter().position(|it| it.rule == Rule::BesideGraphs);
    let found = half_graphed(10_000, false, step);
    let it = &found[told(&found).expect("beside-graphs")];
    // From 15 us to 7,930 us the GPU works for 560 us of each step.
    assert_eq!((it.bound_ns, it.count), (7_915_000 - 8 * 560_000, 48));
    it.title.must_begin("6 operations a step are launched one by one beside CUDA graphs, in Optimizer.step#SGD.step");
    // No group of idle time is left without a cure.
    assert!(found.iter().all(|it| it.rule != Rule::NoCure));
    // Little idle time, waits of the CPU, and no training step.
    for other in [
        half_graphed(75_000, false, step),
        half_graphed(10_000, true, step),
        half_graphed(10_000, false, "decode"),
    ] {
        assert_eq!(told(&other), None);
    }
}

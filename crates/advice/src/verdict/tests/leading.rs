//! What is told before what a timeline looks like at first: another process, rare steps that take most, an early end.

use super::*;

#[test]
fn lines_are_no_cause_of_what_another_process_takes() {
    let heading = |owner| {
        let mut trace = on_a_shared_gpu(owner, 0.9, Some(100_000)).trace();
        let frame = Frame {
            file: "/w/serve.py".to_owned(),
            function: "decode".to_owned(),
            line: 16,
        };
        let defs = vec![
            SampleDef::Frame { id: 1, frame },
            SampleDef::Stack {
                id: 1,
                caller: 0,
                frame: 1,
            },
        ];
        let seen = SeenAt {
            thread: 0,
            stack: 1,
            is_running: true,
        };
        let look = |at: Ns| StackSample {
            time: at * 2_000_000 + 1_000_000,
            changed: vec![seen],
        };
        trace.apply(Batch {
            samples: Some(Samples {
                series: 0,
                defs,
                looks: (0..40).map(look).collect(),
                sampling: Sampling {
                    hz: 100,
                    ..Sampling::default()
                },
            }),
            ..Batch::default()
        });
        crate::Facts::new(&trace).lines().remove(0).basis()
    };
    let others =
        "these lines are not the cause: another process likely has the GPU; estimated from";
    heading(Owner::Other).must_begin(others);
    heading(Owner::Program).must_begin("estimated from");
}

/// Forty steps, of which every twentieth reads a prompt: twelve kernels of so long each in place of twelve of 0.2 ms.
fn served(prompt: Ns) -> Verdict {
    let (mut scene, mut now) = (Scene::new(), 0);
    for step in 0..41 {
        let (from, is_prompt) = (now, step % 20 == 10);
        let (name, takes) = match is_prompt {
            true => ("gemm_prefill", prompt),
            false => ("gemm_decode", 200_000),
        };
        for _ in 0..12 {
            scene.call("cudaLaunchKernel", now, now + 2_000);
            scene.kernel(name, 1, now + 4_000, now + 4_000 + takes);
            now += takes + 6_000;
        }
        scene.range(RangeKind::Nvtx, &format!("step {step}"), 0, from, now);
    }
    by_steps(&mut scene).remove(0)
}

#[test]
fn a_few_steps_that_take_most_of_the_time_are_told_before_the_many() {
    // 12 * 40.006 = 480 ms, and 12 * 206 us = 2.47 ms: two of the one and 38 of the other, 91 %.
    let verdict = served(40_000_000);
    let expected = "2 prefill steps of 480 ms (mean) take 91 % of the time, mostly in gemm_prefill \
        · prefill in smaller chunks, as decode steps (2.47 ms) wait";
    assert_eq!(verdict.headline(), expected);
    let beside = verdict.beside.join(" · ");
    beside.must_begin("GPU-bound: kernels run");
    let finding = as_finding(verdict.odd.as_ref().expect("such steps"));
    assert_eq!(finding.bound_ns, 0, "what has to be done is no saving");
    finding.advice.must_begin("Prefill in smaller chunks");
    // 12 * 1.506 = 18.1 ms: seven times as long, and a quarter of the time.
    let less = served(1_500_000);
    less.text.must_begin("GPU-bound: kernels run");
    less.beside.join(" · ").must_have("2 prefill steps of");
}

#[test]
fn a_program_that_ends_behind_one_copy_most_likely_failed() {
    // Pageable copies of 16 MiB, each in 2.18 ms.
    let of = |copies: i64, launches: bool| {
        let mut scene = Scene::new();
        for at in (0..copies).map(|it| it * 2_400_000) {
            scene.call("cuMemcpyHtoD_v2", at, at + 2_360_000);
            let copy = Copy {
                from: MemoryKind::Pageable,
                ..pinned(Direction::H2D, 1, 16 << 20)
            };
            scene.copy_of(copy, at + 100_000, at + 2_280_000);
        }
        if launches {
            let at = copies * 2_400_000;
            scene.call("cuLaunchKernel", at, at + 5_000);
            scene.kernel("scan", 1, at + 6_000, at + 106_000);
        }
        let trace = scene.trace();
        let facts = crate::Facts::new(&trace);
        let judged = facts
            .judgement(crate::JudgedPart::Whole)
            .expect("not stopped");
        let rules = judged.findings.iter().map(|it| it.rule.name());
        let is_told = rules.clone().any(|it| it == "pageable-copy");
        (judged.verdicts[0].headline(), is_told)
    };
    let (failed, is_told) = of(1, false);
    assert_eq!(
        failed,
        "no kernel was launched: see what the program printed; only 1 copy ran (2.18 ms)"
    );
    assert!(
        !is_told,
        "one copy of a program that failed is nothing to speed up"
    );
    // One that copies again and again does what it is for, and one that launches did not fail before that.
    for (copies, launches) in [(30, false), (2, true)] {
        let (headline, is_told) = of(copies, launches);
        headline.must_begin("copy-bound");
        assert!(is_told, "{copies}");
    }
}

/// A kernel of 5 s behind so much of the CPU's work.
fn behind_work(before: Ns) -> String {
    const S: Ns = 1_000_000_000;
    let mut scene = Scene::new();
    scene.range(RangeKind::Nvtx, "assemble", 0, 0, before);
    scene.call("cudaLaunchKernel", before, before + 1_000);
    scene.kernel("k", 1, before + 1_000, before + 5 * S);
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let devices = figures::count(&trace, None, None);
    let mut all = find(&trace, &causes, (None, &devices), (&[], None), None);
    lead(&mut all, (&trace, &causes), &[]);
    all[0].text.clone()
}

#[test]
fn minutes_before_seconds_of_kernels_are_told_first() {
    const S: Ns = 1_000_000_000;
    let minutes =
        "CPU-bound: 120 s outside CUDA before the first operation, most of it in assemble";
    behind_work(120 * S).must_begin(minutes);
    // Less than a minute is twelve times as long, too, and yet a matter of one run.
    behind_work(59 * S).must_begin("GPU-bound: ");
}

/// Eight steps of 1 ms of kernels, and behind them so long of the CPU's work until a copy.
fn before_output(after: Ns) -> (String, usize) {
    const MS: Ns = 1_000_000;
    let mut scene = Scene::new();
    for at in (0..8).map(|it| it * MS) {
        scene.range(RangeKind::Nvtx, "round", 1, at, at + MS);
        for part in 0..4 {
            let at = at + part * 250_000;
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("spread", 1, at + 6_000, at + 248_000);
        }
    }
    let (from, until) = (8 * MS + 100_000, 8 * MS + after);
    scene.range(RangeKind::Nvtx, "write_file", 1, from, until);
    scene.call("cudaMemcpyAsync", until, until + 5_000);
    scene.copy_of(
        pinned(Direction::D2H, 1, 4_000),
        until + 6_000,
        until + 8_000,
    );
    let trace = scene.trace();
    let facts = crate::Facts::new(&trace);
    let judged = facts
        .judgement(crate::JudgedPart::Whole)
        .expect("not stopped");
    let behind = judged.findings.iter();
    let behind = behind.filter(|it| it.places == ["after the steps"]);
    (judged.verdicts[0].headline(), behind.count())
}

#[test]
fn what_takes_ten_times_all_steps_behind_them_is_told_first() {
    const MS: Ns = 1_000_000;
    let (first, found) = before_output(90 * MS);
    first.must_have(" after the steps, CPU-bound: GPU idle ");
    assert_eq!(found, 1, "what the CPU does there is a finding");
    before_output(40 * MS).0.must_begin("GPU-bound: ");
    // A tenth of all is no part of its own.
    assert_eq!(before_output(MS).1, 0);
}

/// Forty layers: a product of 100 us, an all-reduce of so long, and idle for so long before the next launch.
fn reduced(reduce: Ns, idle: Ns) -> Scene {
    let (mut scene, mut at) = (Scene::new(), 0);
    for _ in 0..40 {
        for (name, takes) in [("gemm", 100_000), ("ncclDevKernel_AllReduce(x)", reduce)] {
            scene.call("cudaLaunchKernel", at - 9_000, at - 5_000);
            scene.kernel(name, 1, at, at + takes);
            at += takes;
        }
        at += idle;
    }
    scene
}

#[test]
fn idle_time_is_told_beside_communication() {
    // 39 times 100 us of 19.9 ms.
    let told = verdict(&mut reduced(300_000, 100_000));
    assert_eq!(told.bound_by, Bound::Peer);
    let beside = told.beside.join(" · ");
    beside.must_begin("GPU idle 20 % of 19.9 ms, while the CPU launches 80 kernels");
    // 12 of 412 us are less than a twentieth.
    let told = verdict(&mut reduced(300_000, 12_000));
    assert!(told.beside.is_empty(), "{:?}", told.beside);
}

#[test]
fn what_a_rank_is_idle_itself_leads_before_what_it_waits_for_others() {
    let told = |part: f64| {
        let mut verdict = verdict(&mut reduced(300_000, 200_000));
        verdict.retell(&Says {
            bound: Bound::Peer,
            part,
            why: "12 of 40 collectives most likely waited".to_owned(),
        });
        verdict
    };
    // 39 times 200 us of 23.8 ms.
    let own = told(0.29);
    own.text
        .must_begin("launch-bound: GPU idle 33 % of 23.8 ms");
    assert_eq!(own.beside, ["12 of 40 collectives most likely waited"]);
    assert!((own.share - 7.8 / 23.8).abs() < 0.01, "{}", own.share);
    told(0.4).text.must_begin("peer-bound: kernels run 67 %");
}

#[test]
fn what_recording_costs_is_said_where_the_gpu_is_idle_for_a_part() {
    let told = |idle: Ns| {
        let mut all = verdicts(&mut reduced(300_000, idle));
        distort(&mut all, || Some("profiling overhead".to_owned()));
        all[0].distorted.is_some()
    };
    assert!(told(200_000));
    assert!(!told(12_000));
}

#[test]
fn copies_that_no_kernel_hides_are_told_beside_kernels() {
    // Kernels of 700 us by turns with copies of so long, which may go on beside them for so long.
    let told = |copy: Ns, beside: Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for _ in 0..10 {
            let end = at + copy + beside;
            scene.copy_of(pinned(Direction::H2D, 2, 1 << 20), at, end);
            at += copy;
            scene.kernel("k", 1, at, at + 700_000);
            at += 700_000;
        }
        verdict(&mut scene).beside.join(" · ")
    };
    told(300_000, 0).must_have("copies without a kernel beside them take 30 % of 10.0 ms");
    assert!(!told(50_000, 0).contains("copies"));
    assert!(!told(300_000, 400_000).contains("copies"));
}

/// Twenty graphs of two kernels of 100 us, launched 2 us before, of which the second begins so long behind the first.
#[test]
fn holes_inside_graphs_are_told_as_such() {
    let told = |call: &str, hole: Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for _ in 0..20 {
            scene.call(call, at, at + 2_000);
            scene.kernel("a", 1, at + 4_000, at + 104_000);
            let second = at + 104_000 + hole;
            scene.kernel("b", 1, second, second + 100_000);
            at = second + 98_000;
        }
        verdict(&mut scene).text
    };
    told("cudaGraphLaunch", 300_000)
        .must_have("before or inside CUDA graphs that were launched in time");
    told("cudaLaunchKernel", 300_000).must_lack("graphs");
    told("cudaGraphLaunch", 1_000).must_lack("inside");
}

/// A context of so long, and then copies that bound 20 ms of the GPU's work.
#[test]
fn a_long_start_leads_before_copies() {
    let told = |start: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaMalloc", -start - 5_000_000, -5_000_000);
        for at in (0..20).map(|it| it * 1_000_000) {
            scene.call("cudaMemcpyAsync", at - 9_000, at - 5_000);
            // No two are alike, so that these are no steps.
            let bytes = (1 << 24) + at as u64;
            scene.copy_of(pinned(Direction::H2D, 1, bytes), at, at + 900_000);
            scene.call("cudaLaunchKernel", at + 850_000, at + 855_000);
            scene.kernel(&format!("k{at}"), 1, at + 900_000, at + 990_000);
        }
        let trace = scene.trace();
        let facts = crate::Facts::new(&trace);
        let judged = facts.judgement(crate::JudgedPart::Whole);
        judged.expect("not stopped").verdicts.remove(0).text
    };
    told(504_000_000).must_begin("cold start: 504 ms spent on making the context");
    told(60_000_000).must_begin("copy-bound");
}

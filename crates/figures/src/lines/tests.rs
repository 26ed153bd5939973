use super::*;
use activity::{
    Batch, Def, Frame, Mode, RangeKind, SampleDef, SampledThread, Samples, Sampling, StackSample,
};
use causes::stacks::StackCounts;
use trace::testing::Scene;

const MS: Ns = 1_000_000;

/// Stack 1 is train.py:19 in a library's `__next__`, stack 2 train.py:21 by itself.
fn samples(looks: &[(Ns, u32)]) -> Batch {
    let frames = [
        ("/w/train.py", "main", 19),
        (
            "/w/lib/python3/site-packages/torch/utils/data/dataloader.py",
            "__next__",
            700,
        ),
        ("/w/train.py", "main", 21),
    ];
    let mut defs: Vec<SampleDef> = frames
        .iter()
        .zip(1..)
        .map(|(&(file, function, line), id)| SampleDef::Frame {
            id,
            frame: Frame {
                file: file.to_owned(),
                function: function.to_owned(),
                line,
            },
        })
        .collect();
    for (id, caller, frame) in [(1, 0, 1), (2, 1, 2), (3, 0, 3)] {
        defs.push(SampleDef::Stack { id, caller, frame });
    }
    let look = |&(at, which): &(Ns, u32)| StackSample {
        time: at * MS,
        changed: vec![SampledThread {
            // The main thread of the scene's process.
            thread: 0,
            stack: if which == 1 { 2 } else { 3 },
            is_running: true,
        }],
    };
    Batch {
        samples: Some(Samples {
            series: 0,
            defs,
            looks: looks.iter().map(look).collect(),
            sampling: Sampling {
                hz: 100,
                ..Sampling::default()
            },
        }),
        ..Batch::default()
    }
}

#[test]
fn idle_goes_to_the_lines_that_were_seen_in_it() {
    let mut scene = Scene::new();
    // Busy 0-10, idle 10-40, busy 40-50, idle 50-55, busy 55-65, idle 65-75, busy 75-80.
    for (start, end) in [(0, 10), (40, 50), (55, 65), (75, 80)] {
        scene.kernel("k", 7, start * MS, end * MS);
    }
    let mut trace = scene.trace();
    // Looks in busy time count for nothing; 50-55 has none.
    trace.apply(samples(&[
        (1, 2),
        (12, 1),
        (22, 1),
        (32, 1),
        (42, 2),
        (62, 1),
        (70, 2),
        (79, 2),
    ]));
    let found = find(&trace, &CallIndex::new(&trace), &[]);
    let [device] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((device.idle_ns, device.unseen_ns), (45 * MS, 5 * MS));
    assert_eq!((device.samples, device.hz), (4, 100));
    let told: Vec<(String, &str, u64, Ns)> = device
        .lines
        .iter()
        .map(|it| {
            (
                it.place.clone(),
                it.call.as_deref().unwrap_or_default(),
                it.samples,
                it.idle_ns,
            )
        })
        .collect();
    let next = "torch/utils/data/dataloader.py __next__";
    // Three of four samples, and one.
    assert_eq!(
        told,
        [
            ("train.py:19".to_owned(), next, 3, 33_750_000),
            ("train.py:21".to_owned(), "", 1, 11_250_000),
        ]
    );
}

/// Streams by turns, each launched by a thread of its own; two start together behind the last gap, and the first of them counts.
#[test]
fn a_gap_is_that_of_the_thread_which_launched_what_ends_it_on_whatever_stream() {
    let mut scene = Scene::new();
    let launches = [
        (3, 0),
        (1, 20),
        (2, 40),
        (1, 60),
        (3, 80),
        (2, 100),
        (1, 100),
    ];
    for (stream, at) in launches {
        scene
            .on_thread(10 + stream)
            .call("cudaLaunchKernel", at * MS, at * MS + 1);
        scene.kernel("k", stream, at * MS + 2, (at + 10) * MS);
    }
    let trace = scene.trace();
    let calls = CallIndex::new(&trace);
    let all = launched_gaps(&trace, &calls, 0, Span::new(5 * MS, 200 * MS));
    let found: Vec<(Ns, u32)> = all.map(|(gap, _, thread)| (gap.end / MS, thread)).collect();
    assert_eq!(found, [(20, 12), (40, 13), (60, 12), (80, 14), (100, 12)]);
}

#[test]
fn without_samples_there_are_no_lines() {
    let mut scene = Scene::new();
    scene.kernel("k", 7, 0, 5);
    let trace = scene.trace();
    assert!(find(&trace, &CallIndex::new(&trace), &[]).is_empty());
}

#[test]
fn intervals_are_wilsons() {
    // From R: prop.test(n, all, correct = FALSE)$conf.int.
    for (n, all, low, high) in [
        (3, 4, 0.3006, 0.9544),
        (0, 10, 0.0, 0.2775),
        (50, 100, 0.4038, 0.5962),
        (10, 10, 0.7225, 1.0),
    ] {
        let (a, b) = wilson(n, all);
        assert!(
            (a - low).abs() < 1e-4 && (b - high).abs() < 1e-4,
            "{n}/{all}: {a} {b}"
        );
    }
}

#[test]
fn recorded_functions_share_idle_time_exactly() {
    let mut scene = Scene::new();
    // Idle from 10 to 40, launched by thread 1.
    scene.kernel("k", 7, 0, 10);
    scene.call("cudaLaunchKernel", 38, 39);
    scene.kernel("k", 7, 40, 50);
    for (name, start, end) in [
        ("train.py(1): <module>", 0, 100),
        ("train.py(5): step", 12, 38),
        ("torch/nn/module.py(9): forward", 20, 30),
        ("torch/nn/module.py(50): inner", 22, 28),
        ("<built-in function sleep>", 32, 36),
    ] {
        scene.range(RangeKind::Function, name, 0, start, end);
    }
    let trace = scene.trace();
    let found = find(&trace, &CallIndex::new(&trace), &[]);
    let [device] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(device.is_exact);
    assert_eq!(
        (device.idle_ns, device.unseen_ns, device.samples),
        (30, 0, 0)
    );
    let mut told: Vec<(String, &str, Ns)> = device
        .lines
        .iter()
        .map(|it| {
            (
                it.place.clone(),
                it.call.as_deref().unwrap_or_default(),
                it.idle_ns,
            )
        })
        .collect();
    told.sort();
    let expected = [
        ("train.py:1", "", 4),
        ("train.py:5", "", 12),
        ("train.py:5", "sleep", 4),
        ("train.py:5", "torch/nn/module.py forward", 10),
    ]
    .map(|(place, call, time)| (place.to_owned(), call, time));
    assert_eq!(told, expected);
    assert_eq!(device.lines[0].longest, Span::new(10, 40));
}

#[test]
fn a_line_is_told_by_all_that_it_calls() {
    let define = |id, file: &str, line| SampleDef::Frame {
        id,
        frame: Frame {
            file: file.to_owned(),
            function: "f".to_owned(),
            line,
        },
    };
    let mut defs = vec![
        define(1, "/w/train.py", 5),
        define(2, "/w/site-packages/a.py", 1),
        define(3, "/w/site-packages/b.py", 1),
        define(4, "/w/train.py", 9),
    ];
    // Line 5 calls a and b, line 9 nothing.
    for (id, caller, frame) in [(1, 0, 1), (2, 1, 2), (3, 1, 3), (4, 0, 4)] {
        defs.push(SampleDef::Stack { id, caller, frame });
    }
    let look = |(at, stack): (Ns, u32)| StackSample {
        time: at,
        changed: vec![SampledThread {
            thread: 7,
            stack,
            is_running: true,
        }],
    };
    let mut trace = Scene::new().trace();
    // Twice a, twice b, three times line 9.
    let looks = [2, 2, 3, 3, 4, 4, 4];
    trace.apply(Batch {
        samples: Some(Samples {
            series: 0,
            defs,
            looks: (1..).zip(looks).map(look).collect(),
            sampling: Sampling::default(),
        }),
        ..Batch::default()
    });
    let mut seen = StackCounts::default();
    seen.add_samples(&trace, 0, 7, Span::new(0, 100));
    let told = seen.most(&trace).expect("a line");
    assert_eq!((told.place.as_str(), told.call), ("train.py:5", None));
    assert_eq!((told.samples, told.of), (4, 7));
}

/// `m.generate()` of train.py:5 hands on to `sample`, which spends six of nine samples in `forward` and two in `sort`.
#[test]
fn a_line_with_most_of_the_samples_is_opened() {
    let frames = [
        "main", "generate", "inner", "sample", "forward", "linear", "act", "sort",
    ];
    let define = |(id, function): (u32, &&str)| SampleDef::Frame {
        id,
        frame: Frame {
            file: if id == 1 {
                "/w/train.py"
            } else {
                "/w/site-packages/torch/a.py"
            }
            .to_owned(),
            function: (*function).to_owned(),
            line: 5,
        },
    };
    let mut defs: Vec<SampleDef> = (1..).zip(&frames).map(define).collect();
    // Each is called by the one before it, but `act` as `linear` is, and `sort` as `forward` is.
    for (id, caller) in [
        (1, 0),
        (2, 1),
        (3, 2),
        (4, 3),
        (5, 4),
        (6, 5),
        (7, 5),
        (8, 4),
    ] {
        defs.push(SampleDef::Stack {
            id,
            caller,
            frame: id,
        });
    }
    let looks = [6, 6, 6, 7, 7, 5, 8, 8, 4];
    let look = |(at, stack)| StackSample {
        time: at * MS,
        changed: vec![SampledThread {
            thread: 0,
            stack,
            is_running: true,
        }],
    };
    let mut scene = Scene::new();
    scene.kernel("k", 7, 0, MS).kernel("k", 7, 20 * MS, 21 * MS);
    // All of `linear` lies in the first gap, all of `sort` in the longer second one.
    scene.kernel("k", 7, 7 * MS + 1, 8 * MS - 1);
    let mut trace = scene.trace();
    trace.apply(Batch {
        samples: Some(Samples {
            series: 0,
            defs,
            looks: (2..).zip(looks).map(look).collect(),
            sampling: Sampling::default(),
        }),
        ..Batch::default()
    });
    let found = find(&trace, &CallIndex::new(&trace), &[]);
    let told = found[0].with_functions().map(|it| (it.name(), it.samples));
    let expected = [
        ("train.py:5 main > torch/a.py generate", 9),
        // `inner` hands all on.
        ("  torch/a.py sample", 9),
        ("    torch/a.py forward", 6),
        ("      torch/a.py linear", 3),
        ("      torch/a.py act", 2),
        ("    torch/a.py sort", 2),
    ];
    let expected = expected.map(|(name, samples)| (name.to_owned(), samples));
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let longest = found[0].with_functions().map(|it| it.longest);
    let (first, second) = (Span::new(MS, 7 * MS + 1), Span::new(8 * MS - 1, 20 * MS));
    let expected = [second, second, first, first, first, second];
    assert_eq!(longest.collect::<Vec<_>>(), expected);
}

/// A worker is looked at outside the ranges of `--range` too; what the GPU did there nobody knows.
#[test]
fn workers_are_told_of_by_idle_time_that_was_recorded() {
    let mut scene = Scene::new();
    for (start, end) in [(0, 10), (20, 30), (60, 70)] {
        scene.kernel("k", 7, start * MS, end * MS);
    }
    let mut trace = scene.trace();
    let off = |from, recording| {
        Def::Mode(Mode {
            from: from * MS,
            recording,
            waits: false,
        })
    };
    let frame = Frame {
        file: "/x/site-packages/torch/utils/data/_utils/worker.py".to_owned(),
        function: "_worker_loop".to_owned(),
        line: 300,
    };
    let look = |at| StackSample {
        time: at * MS,
        changed: vec![SampledThread {
            thread: 0,
            stack: 1,
            is_running: true,
        }],
    };
    trace.apply(Batch {
        defs: vec![off(32, false), off(58, true)],
        samples: Some(Samples {
            series: 0,
            defs: vec![
                SampleDef::Frame { id: 1, frame },
                SampleDef::Stack {
                    id: 1,
                    caller: 0,
                    frame: 1,
                },
            ],
            // Busy, idle, not recorded, not recorded, busy.
            looks: [5, 15, 31, 45, 65].map(look).into(),
            sampling: Sampling::default(),
        }),
        ..Batch::default()
    });
    let found = workers(&trace);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].samples, found[0].waiting), (1, 0));
}

#[test]
fn what_a_program_did_before_its_steps_is_not_what_they_wait_for() {
    let mut scene = Scene::new();
    scene.kernel("load", 7, 0, MS);
    // A second of start-up, then steps of 10 ms: busy for 8, idle for 2.
    let mut looks: Vec<(Ns, u32)> = (1..99).map(|at| (10 * at, 1)).collect();
    for step in 0..20 {
        let at = 1_000 + 10 * step;
        scene.kernel("forward", 7, at * MS, (at + 5) * MS);
        scene.kernel("backward", 7, (at + 5) * MS, (at + 8) * MS);
        looks.push((at + 9, 2));
    }
    let mut trace = scene.trace();
    trace.apply(samples(&looks));
    let (calls, steps) = (CallIndex::new(&trace), steps::find(&trace, None));
    let found = find(&trace, &calls, &steps);
    let [found] = found.as_slice() else {
        panic!("{found:?}");
    };
    // The last step has no end.
    assert!(
        found.is_of_steps && found.idle_ns == 19 * 2 * MS,
        "{found:?}"
    );
    assert_eq!((found.samples, found.lines.len()), (19, 1), "{found:?}");
    // Without steps it is of all.
    let all = &find(&trace, &calls, &[])[0];
    assert_eq!((all.is_of_steps, all.lines.len()), (false, 2));
}

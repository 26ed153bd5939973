use super::*;
use activity::anonymous::is_own;
use activity::{Batch, StackSample};

fn frame(file: &str, function: &str, line: u32) -> Frame {
    Frame {
        file: file.to_owned(),
        function: function.to_owned(),
        line,
    }
}

/// `main` at line 3 calls `step` at 10, then at 11, where it calls into a library.
fn defs() -> Vec<SampleDef> {
    let frames = [
        frame("/home/me/train.py", "<module>", 3),
        frame("/home/me/train.py", "step", 10),
        frame("/home/me/train.py", "step", 11),
        frame(
            "/opt/lib/python3.12/site-packages/torch/nn/module.py",
            "forward",
            99,
        ),
        frame("/opt/lib/python3.12/threading.py", "wait", 5),
        frame("<string>", "launcher", 5),
    ];
    let define = |(frame, id)| SampleDef::Frame { id, frame };
    let mut defs: Vec<SampleDef> = frames.into_iter().zip(1..).map(define).collect();
    for (id, caller, frame) in [
        (1, 0, 1),
        (2, 1, 2),
        (3, 1, 3),
        (4, 3, 4),
        (5, 4, 5),
        (6, 4, 6),
        (7, 0, 6),
    ] {
        defs.push(SampleDef::Stack { id, caller, frame });
    }
    defs
}

const MS: Ns = 1_000_000;

fn trace(seen: &[(Ns, StackId)]) -> Trace {
    let look = |&(at, stack): &(Ns, StackId)| StackSample {
        time: at * MS,
        changed: vec![SampledThread {
            thread: 7,
            stack,
            is_running: true,
        }],
    };
    let mut trace = Trace::default();
    trace.apply(Batch {
        samples: Some(Samples {
            series: 3,
            defs: defs(),
            looks: seen.iter().map(look).collect(),
            sampling: Sampling {
                hz: 100,
                looks: seen.len() as u64,
                ..Sampling::default()
            },
        }),
        ..Batch::default()
    });
    trace
}

fn drawn(trace: &Trace) -> Vec<(String, Ns, Ns)> {
    let lane = &trace.lanes()[0];
    (0..lane.len())
        .map(|row| {
            let it = trace.activity(0, row);
            let What::Range(range) = it.what else {
                panic!("{it:?}")
            };
            let name = trace.names().full(range.name).to_owned();
            (name, it.span.start / MS, it.span.end / MS)
        })
        .collect()
}

#[test]
fn a_look_speaks_for_half_a_period_on_each_side() {
    // The last look but one comes three periods late.
    let trace = trace(&[(0, 2), (10, 2), (20, 4), (30, 5), (60, 2), (68, 0)]);
    let expected = [
        ("train.py:3 <module>", 0, 64),
        ("train.py:10 step", 0, 15),
        ("train.py:11 step", 15, 35),
        ("torch/nn/module.py forward", 15, 35),
        ("train.py:10 step", 55, 64),
    ];
    let expected = expected.map(|(name, start, end)| (name.to_owned(), start, end));
    assert_eq!(drawn(&trace), expected);
    assert_eq!(trace.late(), 0);
}

#[test]
fn what_lasts_is_drawn_in_pieces_and_what_nobody_saw_is_not_drawn() {
    // Nobody looked between 510 and 700 ms.
    let trace = trace(&[(490, 1), (500, 1), (510, 1), (700, 1), (710, 0)]);
    let expected = [(490, 495), (495, 515), (695, 705)]
        .map(|(start, end)| ("train.py:3 <module>".to_owned(), start, end));
    assert_eq!(drawn(&trace), expected);
}

#[test]
fn samples_of_a_window_are_those_whose_look_lies_in_it() {
    let trace = trace(&[(0, 2), (10, 2), (20, 4), (30, 0), (40, 5)]);
    let sampled = &trace.processes()[0].sampled;
    let of = |from: Ns, to: Ns| -> Vec<Ns> {
        let samples = sampled.within(7, Span::new(from * MS, to * MS));
        samples.map(|it| it.time / MS).collect()
    };
    assert_eq!(of(0, 100), [0, 10, 20, 40]);
    assert_eq!(of(10, 20), [10]);
    assert!(of(11, 20).is_empty());
    assert_eq!(sampled.within(8, Span::new(0, 100 * MS)).count(), 0);
    let stack = sampled
        .within(7, Span::new(20 * MS, 21 * MS))
        .next()
        .expect("one");
    let (own, called) = trace.stacks().own_line(stack.stack).expect("an own frame");
    assert_eq!((own.function.as_str(), own.line), ("step", 11));
    assert_eq!(called.map(|it| it.line), Some(99));
    // The snapshot says the same.
    let copy = trace.snapshot();
    assert_eq!(
        copy.processes()[0]
            .sampled
            .within(7, Span::new(0, 100 * MS))
            .count(),
        4
    );
    assert_eq!(copy.stacks().frames(5).count(), 4);
}

#[test]
fn a_line_of_made_code_is_told_only_where_no_file_of_the_users_is_in_the_stack() {
    // The library's code that has no file is called from the user's; then such code alone.
    let trace = trace(&[(0, 6), (10, 7)]);
    let sampled = &trace.processes()[0].sampled;
    let own = |stack: StackId| {
        let (own, _) = trace.stacks().own_line(stack).expect("an own frame");
        (own.file.as_str(), own.line)
    };
    let stacks: Vec<StackId> = sampled
        .within(7, Span::new(0, 100 * MS))
        .map(|it| it.stack)
        .collect();
    let lines: Vec<_> = stacks.into_iter().map(own).collect();
    assert_eq!(lines, [("/home/me/train.py", 11), ("<string>", 5)]);
}

#[test]
fn own_files_are_told_from_installed_ones() {
    for (file, own, short) in [
        ("/home/me/train.py", true, "train.py"),
        ("train.py", true, "train.py"),
        ("<string>", true, "<string>"),
        (
            "<frozen importlib._bootstrap>",
            false,
            "<frozen importlib._bootstrap>",
        ),
        ("/usr/lib/python3.12/threading.py", false, "threading.py"),
        (
            "/usr/lib/python3/dist-packages/numpy/a.py",
            false,
            "numpy/a.py",
        ),
        (
            "/work/.venv/lib/python3.12/site-packages/torch/_ops.py",
            false,
            "torch/_ops.py",
        ),
    ] {
        assert_eq!((is_own(file), short_file(file)), (own, short), "{file}");
    }
}

#[test]
fn of_a_long_file_name_the_ends_are_kept() {
    let mut stacks = Stacks::default();
    let folder = format!("/home/{}/lib/python3.12/", "\u{e9}".repeat(10_000));
    for file in [folder.clone() + "site-packages/a.py", format!("<{folder}>")] {
        let stack = stacks.define(0, frame(&file, "f", 1));
        let kept = &stacks.frames(stack).next().expect("a frame").file;
        assert!(kept.len() <= 1_024 + 3, "{}", kept.len());
        let end = file.rsplit('\u{e9}').next().expect("its end");
        assert!(
            kept.starts_with(&file[..6]) && kept.ends_with(end),
            "{kept}"
        );
        assert!(!is_own(kept));
    }
}

#[test]
fn time_in_which_nobody_looked_is_known() {
    // Looks 100 times a second, none between 20 and 300 ms.
    let trace = trace(&[(0, 1), (10, 1), (20, 1), (300, 1), (310, 1)]);
    let sampled = &trace.processes()[0].sampled;
    let looked = |from: Ns, to: Ns| sampled.coverage(Span::new(from * MS, to * MS)) / MS;
    assert_eq!((looked(0, 310), looked(-50, 1000)), (30, 30));
    assert_eq!(
        (looked(15, 25), looked(25, 290), looked(295, 305)),
        (5, 0, 5)
    );
}

#[test]
fn old_looks_are_let_go_and_the_others_stay_what_they_were() {
    // Two stacks in turns, for 50 s.
    let looks: Vec<(Ns, StackId)> = (0..5_000)
        .map(|at| (at * 10, 1 + (at as u32 / 7) % 2))
        .collect();
    let mut trace = trace(&looks);
    let late = Span::new(41_000 * MS, 50_000 * MS);
    let of =
        |trace: &Trace| -> Vec<Sample> { trace.processes()[0].sampled.within(7, late).collect() };
    let (before, memory) = (of(&trace), trace.processes()[0].sampled.memory());
    assert_eq!(before.len(), 900);
    trace.evict_before(late.start);
    assert_eq!(of(&trace), before);
    let sampled = &trace.processes()[0].sampled;
    assert!(
        sampled.memory() < memory / 2,
        "{} of {memory}",
        sampled.memory()
    );
    // Four chunks of 1024 looks are gone.
    let kept = sampled.within(7, Span::new(0, 50_000 * MS)).count();
    assert_eq!(kept, 5_000 - 4 * 1024, "{:?}", sampled.extent());
}

/// Threads that 20 looks see in a stack, and how many rows are drawn of them.
fn crowd(threads: u32, stack: StackId, hz: u32) -> (Trace, usize) {
    let all = (1..=threads).map(|thread| SampledThread {
        thread,
        stack,
        is_running: true,
    });
    let look = |at: Ns| StackSample {
        time: at * 600 * MS,
        changed: all.clone().filter(|_| at == 0).collect(),
    };
    // From 8 on each stack has one frame more.
    let deep = (8..=stack).map(|id| SampleDef::Stack {
        id,
        caller: id - 1,
        frame: 2,
    });
    let mut trace = Trace::default();
    trace.apply(Batch {
        samples: Some(Samples {
            series: 3,
            defs: defs().into_iter().chain(deep).collect(),
            looks: (0..20).map(look).collect(),
            sampling: Sampling {
                hz,
                ..Sampling::default()
            },
        }),
        ..Batch::default()
    });
    let rows = trace.lanes().iter().map(crate::Lane::len).sum::<usize>();
    (trace, rows)
}

/// A file of 83 kB claimed 8,000 threads at one place, and each half second drew all of their frames.
#[test]
fn threads_by_the_thousand_are_drawn_in_longer_pieces() {
    // Two frames each: 19 pieces of all, and of 8,000 threads those that end each 8 s.
    assert_eq!(crowd(2, 2, 1).1, 2 * 2 * 19);
    assert_eq!(crowd(8_000, 2, 1).1, 2 * 8_000);
}

/// The same with stacks of 100 frames, and looks that come so late that each ends what was drawn: 1.5 GB.
#[test]
fn of_deep_stacks_of_many_threads_as_many_frames_are_drawn_as_there_is_room() {
    let (few, rows) = crowd(2, 107, 100);
    assert_eq!(rows, 2 * 101 * 19);
    assert_eq!(few.processes()[0].sampled.totals().lost, 0);
    let (many, rows) = crowd(4_000, 107, 100);
    let room = (ROOM + ROOM_EACH * (20 + 4_000)) as usize;
    assert!((room / 2..=room).contains(&rows), "{rows}");
    // What is left out is counted, and stays as samples.
    let sampled = &many.processes()[0].sampled;
    let open: usize = sampled.open.values().map(|it| it.frames.len()).sum();
    let drawn = (rows + open) as u64 / 101;
    assert_eq!(sampled.totals().lost, 20 * 4_000 - drawn);
    let all = Span::new(0, 12_000 * MS);
    assert_eq!(sampled.within(4_000, all).count(), 20);
}

/// 1.3 MB held a stack of 20,000 frames, and what calls itself for each of them overflowed its own stack.
#[test]
fn of_a_stack_without_end_the_innermost_frames_are_looked_at() {
    let (trace, _) = crowd(1, 20_000, 1);
    assert_eq!(trace.stacks().frames(20_000).count(), 1_024);
    assert_eq!(trace.stacks().frames(107).count(), 101);
}

#[test]
fn of_many_threads_those_are_busiest_whose_stacks_change() {
    let (trace, _) = crowd(5, 2, 1);
    let sampled = &trace.processes()[0].sampled;
    assert_eq!(sampled.busiest(8), [1, 2, 3, 4, 5]);
    assert_eq!(sampled.busiest(2), [1, 2]);
    let second = 1_000 * MS;
    assert!(sampled.has_look(Span::new(600 * MS, 601 * MS)));
    assert!(!sampled.has_look(Span::new(601 * MS, second)));
    assert!(!sampled.has_look(Span::new(20 * second, 30 * second)));
}

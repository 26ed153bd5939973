//! Programs whose steps are known, written down operation by operation.

use proptest::prelude::*;

use super::*;
use activity::{Batch, Direction, LaunchShape, RangeKind};
use trace::testing::Scene;

/// Numbers that look random and are the same each time.
struct Noise(u64);

impl Noise {
    /// From 0 to below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// A program under construction: operations one after another on stream 7.
struct Program {
    scene: Scene,
    now: Ns,
    noise: Noise,
    /// Starts of the steps as they were made.
    starts: Vec<Ns>,
}

impl Program {
    fn new() -> Self {
        Program {
            scene: Scene::new(),
            now: 1_000,
            noise: Noise(7),
            starts: Vec::new(),
        }
    }

    fn op(&mut self, name: &str, grid: u32, length: Ns) {
        let shape = LaunchShape {
            grid: [grid, 1, 1],
            block: [128, 1, 1],
            ..LaunchShape::default()
        };
        self.scene.call("cudaLaunchKernel", self.now - 5, self.now);
        let end = self.now + length;
        self.scene.shaped(shape, name, 7, self.now, end);
        self.now = end + 10;
    }

    /// A training step: a copy, `layers` layers forth and back, an optimizer; each `slow` times as long.
    fn step(&mut self, layers: u32, slow: Ns) {
        self.starts.push(self.now);
        self.scene.call("cudaMemcpyAsync", self.now - 5, self.now);
        let end = self.now + 300 * slow;
        self.scene.copy(Direction::H2D, 7, 4096, self.now, end);
        self.now = end + 10;
        for _ in 0..layers {
            let jitter = self.noise.below(9) as Ns;
            self.op("gemm", 64, (100 + jitter) * slow);
            self.op("relu", 8, 20 * slow);
        }
        self.op("loss", 1, 40 * slow);
        for _ in 0..layers {
            let jitter = self.noise.below(9) as Ns;
            self.op("gemm_back", 64, (190 + jitter) * slow);
            self.op("relu_back", 8, 20 * slow);
        }
        self.op("adam", 32, 80 * slow);
    }

    fn steps(mut self) -> Option<Steps> {
        found(&self.scene.trace())
    }
}

/// What repeats, also where it is no step of the program.
fn found(trace: &Trace) -> Option<Steps> {
    let steps = repeats(trace, 0, None)?;
    Some(with_kinds(trace, steps))
}

fn starts(steps: &Steps) -> Vec<Ns> {
    steps.spans.iter().map(|s| s.start).collect()
}

/// What is left of the start-up is nothing, and all operations but the open last step are in steps.
#[test]
fn the_steps_of_a_loop_are_found_by_its_operations() {
    let mut program = Program::new();
    (0..20).for_each(|_| program.step(4, 1));
    let made = program.starts.clone();
    let steps = program.steps().expect("steps");
    assert_eq!(steps.from, Origin::Period { operations: 19 });
    assert_eq!(starts(&steps), made);
    assert_eq!(steps.steady, 0..19);
    let lengths: Vec<f64> = made.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    assert_eq!(
        steps.main().median_ns,
        stats::median(&lengths).expect("one") as Ns
    );
    assert_eq!(steps.start_up.len(), 0);
    assert_eq!(steps.tail.start, made[19]);
}

#[test]
fn start_up_warm_up_logging_and_evaluation_are_told_apart() {
    let mut program = Program::new();
    // Weights are made: many operations that never come again.
    for i in 0..150 {
        program.op("init", 1000 + i, 50);
    }
    let first = program.now;
    (0..3).for_each(|_| program.step(4, 5));
    for i in 0..60 {
        program.step(4, 1);
        if i % 10 == 9 {
            program.op("sum", 1, 15);
            program.op("print", 1, 15);
        }
        if i % 25 == 24 {
            // An evaluation: forward only, several times.
            for _ in 0..9 {
                program.op("gemm", 64, 100);
                program.op("relu", 8, 20);
                program.op("accuracy", 1, 20);
            }
        }
    }
    let made = program.starts.clone();
    let steps = program.steps().expect("steps");
    assert!(
        matches!(steps.from, Origin::Period { operations: 19 }),
        "{:?}",
        steps.from
    );
    // Two steps are followed by an evaluation and are no steps of the common kind with it.
    let found = starts(&steps);
    assert!(
        found.iter().all(|s| made.contains(s)),
        "a step where there is none"
    );
    assert!(found.len() >= 61, "{} of 63", found.len());
    assert_eq!(steps.start_up, Span::new(1_000, made[3]));
    assert!(first < steps.start_up.end);
}

/// Thirty layers of 40 operations and three more make a token: one in 400 is not of a layer.
#[test]
fn a_step_of_many_layers_and_little_else_is_not_one_of_its_layers() {
    let mut program = Program::new();
    for _ in 0..4 {
        program.starts.push(program.now);
        for layer in 0..30 {
            if layer == 0 {
                program.op("embed", 3, 30);
            }
            (0..40).for_each(|i| program.op(&format!("k{i}"), 16, 40));
        }
        for name in ["norm", "sample"] {
            program.op(name, 5, 30);
        }
    }
    let made = program.starts.clone();
    let steps = program.steps().expect("steps");
    assert_eq!(steps.from, Origin::Period { operations: 1_203 });
    assert_eq!(steps.main().median_ns, made[1] - made[0]);
    assert_eq!(steps.origin_text(), "period of 1203 operations, 4 repeats");
}

/// A first step of few is warm-up when it takes half as long again as the others, and not before.
#[test]
fn of_few_steps_only_a_far_slower_first_one_is_warm_up() {
    let made = |first: Ns| {
        let mut program = Program::new();
        for slow in [first, 10, 10, 10] {
            program.step(4, slow);
        }
        program.steps().expect("steps")
    };
    // The fourth is not seen to its end.
    assert_eq!(made(14).steady, 0..3);
    assert_eq!(made(16).steady, 1..3);
}

/// Two prompts of as many tokens: the middle step is the last one of the first and the beginning of the second, and odd in neither.
#[test]
fn where_the_first_of_two_prompts_warms_up_its_end_does_too() {
    let mut program = Program::new();
    let (first, second) = ([20; 46], [10; 47]);
    let all = first.into_iter().chain([60]).chain(second);
    all.for_each(|slow| program.step(4, slow));
    let steps = program.steps().expect("steps");
    // The last is not seen to its end.
    assert_eq!((steps.spans.len(), steps.steady.clone()), (94, 47..93));
    assert!(steps.main().odd.is_empty());
}

/// As an elimination does, whose rest becomes smaller: the first of them are no start-up.
#[test]
fn steps_that_become_shorter_all_along_warm_nothing_up() {
    let mut program = Program::new();
    (20..60).rev().for_each(|left| program.step(4, left * left));
    let steps = program.steps().expect("steps");
    assert_eq!((steps.steady.start, steps.start_up.len()), (0, 0));
}

/// Ten times the layers of a network are not its steps.
#[test]
fn layers_are_not_steps() {
    let mut program = Program::new();
    for _ in 0..12 {
        program.starts.push(program.now);
        program.op("embed", 3, 30);
        for _ in 0..24 {
            for name in ["norm", "qkv", "attend", "project", "up", "down"] {
                program.op(name, 16, 40);
            }
        }
        for name in [
            "norm_out", "logits", "sort", "sample", "token", "cat", "norm",
        ] {
            program.op(name, 5, 30);
        }
    }
    let made = program.starts.clone();
    let steps = program.steps().expect("steps");
    assert_eq!(steps.from, Origin::Period { operations: 152 });
    assert_eq!(steps.spans.len(), 12);
    // Whichever operation the cut is at: a step is as long as a step.
    assert_eq!(steps.main().median_ns, made[1] - made[0]);
}

/// Four times twenty passes forth and back and a line of log, as a recording of a compiled network has them: two thousand microseconds each.
#[test]
fn passes_that_two_threads_launch_by_turns_are_steps_and_not_twenty_of_them() {
    let made = |threads: &[u32]| {
        let mut program = Program::new();
        for pass in 0..80 {
            if pass % 20 == 0 {
                program.op("print", 1, 15);
            }
            program.starts.push(program.now);
            for at in 0..24 {
                program.scene.on_thread(threads[at / 8]);
                program.op(["norm", "gemm", "gelu"][at % 3], 8 + at as u32 / 3, 2_000);
            }
        }
        let made = program.starts.clone();
        (made[1] - made[0], program.steps().expect("steps"))
    };
    let (length, steps) = made(&[0, 1, 0]);
    assert_eq!((steps.spans.len(), steps.main().median_ns), (80, length));
    // Of one thread they may be layers.
    let (length, steps) = made(&[0, 0, 0]);
    assert_eq!(
        (steps.spans.len(), steps.main().median_ns),
        (4, 20 * length + 25)
    );
}

#[test]
fn one_operation_again_and_again_has_steps_between_waits() {
    let made = |waits: fn(usize) -> bool| {
        let mut program = Program::new();
        for at in 0..1_200 {
            if waits(at) {
                let now = program.now;
                program
                    .scene
                    .call("cudaDeviceSynchronize", now - 300, now - 10);
                program.now += 500;
            }
            program.op("drop", 1, 200);
        }
        find(&program.scene.trace(), None)
    };
    let steps = &made(|at| at % 100 == 0)[0];
    assert_eq!(steps.from, Origin::Waits { operations: 100 });
    // Each operation takes 200 and is 10 before the next one.
    assert_eq!(
        (steps.spans.len(), steps.main().median_ns),
        (12, 100 * 210 + 500)
    );
    // Waits here and there make no steps.
    assert_eq!(made(|at| [3, 4, 90, 500, 530].contains(&at)), []);
}

/// A graph of three rounds of the same two kernels, made anew and launched once a step.
#[test]
fn what_repeats_within_a_graph_is_no_step() {
    let mut scene = Scene::new();
    for step in 0..12 {
        let start = step * 10_000;
        scene.call("cudaGraphLaunch", start, start + 1_000);
        for node in 0..6 {
            let at = start + 1_500 + 120 * node;
            scene.kernel(if node % 2 == 0 { "a" } else { "b" }, 1, at, at + 100);
        }
    }
    let steps = &find(&scene.trace(), None)[0];
    assert_eq!(steps.from, Origin::Period { operations: 6 });
    assert_eq!((steps.spans.len(), steps.main().median_ns), (12, 10_000));
}

#[test]
fn two_kinds_of_piece_by_turns_are_one_step() {
    // Two sorts an iteration: what lies between them is 1 of 13 operations, and only one of the two brings data.
    let mut program = Program::new();
    for _ in 0..10 {
        program.starts.push(program.now);
        let (start, end) = (program.now, program.now + 300);
        program.scene.call("cudaMemcpyAsync", start - 5, start);
        program.scene.copy(Direction::H2D, 7, 4096, start, end);
        program.now = end + 10;
        for between in [5_000, 300] {
            program.op("clear", 1, 10);
            for _ in 0..5 {
                program.op("count", 2, 20);
                program.op("scatter", 3, 30);
            }
            program.op(if between > 300 { "hash" } else { "merge" }, 1, between);
        }
    }
    let made = program.starts.clone();
    let steps = program.steps().expect("steps");
    assert_eq!(steps.spans.len(), made.len());
    // 300 + 2 × (10 + 5 × 50) + 5,000 + 300, and 25 pauses of 10.
    assert_eq!(steps.main().median_ns, 6_370);
}

#[test]
fn every_operation_may_occur_more_than_once_in_a_step() {
    let mut program = Program::new();
    for _ in 0..30 {
        program.starts.push(program.now);
        for name in ["a", "a", "b", "a", "b", "b"] {
            program.op(name, 4, 25);
        }
    }
    let made = program.starts.clone();
    let steps = program.steps().expect("steps");
    assert_eq!(steps.main().median_ns, made[1] - made[0]);
    assert_eq!(steps.from, Origin::Period { operations: 6 });
}

#[test]
fn sizes_may_change_from_step_to_step() {
    let mut program = Program::new();
    for i in 0..40 {
        program.starts.push(program.now);
        for name in ["embed", "gemm", "softmax", "gemm2", "loss"] {
            // As batches of text have lengths: no two steps have the same grids.
            program.op(name, 100 + 7 * i, 50);
        }
    }
    let made = program.starts.clone();
    let steps = program.steps().expect("steps");
    assert_eq!(starts(&steps), made);
}

#[test]
fn without_a_period_there_are_no_steps() {
    let mut program = Program::new();
    for _ in 0..4000 {
        let name = ["a", "b", "c", "d", "e"][program.noise.below(5) as usize];
        program.op(name, 4, 25);
    }
    assert_eq!(program.steps(), None);
    // Few operations, though equal.
    let mut program = Program::new();
    (0..5).for_each(|_| program.op("sin", 4, 25));
    assert_eq!(program.steps(), None);
    // A forward pass with layers and no second pass.
    let mut program = Program::new();
    (0..30).for_each(|i| program.op("prepare", i, 20));
    for _ in 0..4 {
        for name in ["qkv", "attend", "project", "up", "down"] {
            program.op(name, 16, 40);
        }
    }
    (40..60).for_each(|i| program.op("finish", i, 20));
    assert_eq!(program.steps(), None);
    assert_eq!(find(&Trace::default(), None), []);
}

/// One operation again and again is a part of a program. Two by turns are its loop.
#[test]
fn a_loop_over_one_operation_is_not_doubled() {
    let made = |kinds: usize, count: usize| {
        let mut program = Program::new();
        (0..count).for_each(|i| program.op(["even", "odd"][i % kinds], 4, 25));
        program.steps().expect("steps")
    };
    for count in [13, 30, 1_500] {
        let steps = made(1, count);
        assert_eq!(steps.from, Origin::Period { operations: 1 });
        assert_eq!(steps.spans.len(), count);
        assert!(!steps.are_telling(), "{steps:?}");
    }
    let steps = made(2, 1_500);
    assert_eq!(steps.from, Origin::Period { operations: 2 });
    assert_eq!(steps.steady, 0..749);
    assert!(steps.are_telling());
}

/// The second process's operations come in batches of its own, between those of the first.
#[test]
fn each_process_has_its_own_steps() {
    let (mut first, mut second) = (Program::new(), Program::new());
    let mut trace = Trace::default();
    for _ in 0..12 {
        first.step(3, 1);
        second.step(5, 2);
        trace.apply(first.scene.take());
        trace.apply(Batch {
            process: 1,
            ..second.scene.take()
        });
    }
    let steps = find(&trace, None);
    let [one, two] = steps.as_slice() else {
        panic!("{} processes have steps", steps.len());
    };
    assert_eq!((one.process, starts(one)), (0, first.starts));
    assert_eq!((two.process, starts(two)), (1, second.starts));
}

#[test]
fn a_slow_step_says_what_it_has_more_of() {
    let mut program = Program::new();
    for i in 0..30 {
        program.step(4, 1);
        if i == 11 {
            program.now += 3_000;
        }
        if i == 20 {
            (0..2).for_each(|_| program.op("checkpoint", 1, 2_000));
        }
    }
    let steps = program.steps().expect("steps");
    assert_eq!(steps.main().slow_count, 2);
    let [work, idle] = steps.main().slow.as_slice() else {
        panic!("{:?}", steps.main().slow);
    };
    assert_eq!((idle.step, work.step), (11, 20));
    assert!((2_900..3_100).contains(&idle.more[0]), "{idle:?}");
    assert_eq!(idle.more[4], 0);
    assert!((3_900..4_100).contains(&work.more[1]), "{work:?}");
    assert_eq!(work.more[4], 2);
    assert!(idle.text().starts_with("idle +"), "{}", idle.text());
}

/// Steps that the host marks, and that the GPU runs long after: it is the operations they caused that
/// count, not what ran meanwhile.
fn marked(name: impl Fn(i64) -> String, count: i64) -> Trace {
    let mut scene = Scene::new();
    for i in 0..count {
        let (host, gpu) = (1_000 + i * 100, 10_000 + i * 700);
        scene.range(RangeKind::Nvtx, &name(i), i as u32, host, host + 90);
        for op in 0..4 {
            let at = host + 10 * op;
            scene.call("cudaLaunchKernel", at, at + 5);
            // No two are alike, so that nothing repeats by itself.
            let kernel = format!("k{}", (i * 31 + op * 17 + i * op) % 97);
            let start = gpu + op * 150;
            scene.kernel(&kernel, 7, start, start + 140);
        }
    }
    scene.trace()
}

#[test]
fn ranges_mark_steps() {
    type Name = fn(i64) -> String;
    let cases: [(Name, Origin); 3] = [
        (|i| format!("ProfilerStep#{}", i + 4), Origin::ProfilerStep),
        (
            |i| format!("epoch {} step {}", i / 5, i),
            Origin::Ranges("epoch # step #".to_owned()),
        ),
        (|_| "iter".to_owned(), Origin::Ranges("iter".to_owned())),
    ];
    for (name, from) in cases {
        let trace = marked(name, 10);
        let steps = find(&trace, None).pop().expect("steps");
        assert_eq!(steps.from, from);
        // The last one ends with its last operation: 3 * 150 + 140.
        let expected: Vec<Span> = (0..10)
            .map(|i| {
                let start = 10_000 + i * 700;
                Span::new(start, if i < 9 { start + 700 } else { start + 590 })
            })
            .collect();
        assert_eq!(steps.spans, expected);
        // And counts for nothing, as no next one is seen to begin.
        assert_eq!((steps.main().median_ns, steps.steady.clone()), (700, 0..9));
    }
    // A library's own functions, and too few: no steps.
    for library in ["aten::linear", "cudnnBackendExecute", "cublasLtMatmul"] {
        let librarys = marked(|_| library.to_owned(), 10);
        assert_eq!(find(&librarys, None), [], "{library}");
    }
    let own = find(&marked(|_| "cudnn_benchmark".to_owned(), 10), None);
    assert_eq!(own[0].spans.len(), 10);
    assert_eq!(find(&marked(|i| format!("ProfilerStep#{i}"), 1), None), []);
    // Of two that a profiler marks the first is whole.
    let two = find(&marked(|i| format!("ProfilerStep#{i}"), 2), None);
    assert_eq!(two[0].steady(), [Span::new(10_000, 10_700)]);
}

#[test]
fn the_parts_of_a_network_are_no_steps_whatever_counts_them() {
    type Name = fn(i64) -> String;
    let layers: [Name; 4] = [
        |i| format!("nn.Module: SwitchTransformerBlock_{i}"),
        |i| format!("FSDP::pre_forward (blocks.{i}._checkpoint_wrapped_module)"),
        |i| format!("model.layers.{i}"),
        |i| format!("decoder layer {i}"),
    ];
    for layer in layers {
        assert_eq!(find(&marked(layer, 10), None), []);
    }
    let steps = find(&marked(|i| format!("lr=0.{i} step"), 10), None);
    assert_eq!(steps[0].spans.len(), 10);
    // Their operations repeat, too, in one pass over all.
    let repeated = |kind: RangeKind, name: fn(i64) -> String| {
        let mut program = Program::new();
        for i in 0..10 {
            let from = program.now - 10;
            (0..13).for_each(|op| program.op(&format!("k{op}"), 8, 100));
            let end = program.now;
            program.scene.range(kind, &name(i), 0, from, end);
        }
        program.steps().map(|steps| steps.spans.len())
    };
    let library = repeated(RangeKind::Nvtx, |_| "aten::linear".to_owned());
    assert_eq!(library, Some(10));
    for kind in [RangeKind::Nvtx, RangeKind::Function] {
        assert_eq!(repeated(kind, layers[0]), None);
    }
}

#[test]
fn names_of_iterations_are_steps_and_not_parts_of_a_network() {
    type Name = fn(i64) -> String;
    let steps: [Name; 5] = [
        |i| format!("step.{i}"),
        |i| format!("epoch1.step.{i}"),
        |i| format!("train_iter.{i}"),
        |i| format!("player_step {i}"),
        |i| format!("player {i}"),
    ];
    for name in steps {
        assert_eq!(find(&marked(name, 10), None)[0].spans.len(), 10);
    }
    let parts: [Name; 4] = [
        |i| format!("blocks.{i}"),
        |i| format!("step.layers.{i}"),
        |i| format!("layers.{i}.mlp"),
        |i| format!("MLPLayer_{i}"),
    ];
    for name in parts {
        assert_eq!(find(&marked(name, 10), None), []);
    }
}

#[test]
fn ranges_that_hold_most_of_the_one_step_that_a_profiler_marks_are_steps() {
    // Of ten calls of one graph, so many are marked.
    let steps = |from: i64| {
        let mut scene = Scene::new();
        scene.range(RangeKind::Nvtx, "ProfilerStep#3", 3, 0, 5_000);
        for i in 0..10 {
            let (host, gpu) = (1_000 + i * 100, 10_000 + i * 700);
            if i >= from {
                scene.range(
                    RangeKind::Nvtx,
                    "## Call CompiledFxGraph ##",
                    0,
                    host,
                    host + 90,
                );
            }
            for op in 0..4 {
                scene.call("cudaLaunchKernel", host + 10 * op, host + 10 * op + 5);
                let start = gpu + op * 150;
                scene.kernel(&format!("k{op}"), 7, start, start + 140);
            }
        }
        find(&scene.trace(), None)
    };
    assert_eq!(steps(0)[0].spans.len(), 10);
    assert_eq!(steps(2)[0].spans.len(), 8);
    // Less than half of it says nothing of the rest.
    assert_eq!(steps(6), []);
}

/// Iterations of 1,000 ns: ten kernels, of which the calls of the range `optimizer` cause the last six. Before iteration 4
/// there are as many more kernels as `other` says.
fn partly_marked(other: i64) -> Option<Steps> {
    let mut scene = Scene::new();
    let mut now = 0;
    let call = |scene: &mut Scene, name: String, at: i64| {
        scene.call("cudaLaunchKernel", at, at + 10);
        scene.kernel(&name, 7, at + 20, at + 90);
    };
    for i in 0..8 {
        if i == 4 {
            for k in 0..other {
                call(&mut scene, format!("other{k}"), now + k * 100);
            }
            now += other * 100;
        }
        for k in 0..10 {
            // No two are alike, so that nothing repeats by itself.
            call(&mut scene, format!("k{i}_{k}"), now + k * 100);
        }
        scene.range(RangeKind::Nvtx, "optimizer", 0, now + 400, now + 1_000);
        now += 1_000;
    }
    found(&scene.trace())
}

#[test]
fn a_range_that_holds_a_part_of_the_step_marks_where_steps_begin() {
    let steps = partly_marked(0).expect("steps");
    assert_eq!(steps.from, Origin::Ranges("optimizer".to_owned()));
    // From the optimizer's first kernel to the next optimizer's.
    let expected: Vec<Span> = (0..7)
        .map(|i| Span::new(420 + i * 1_000, 1_420 + i * 1_000))
        .collect();
    assert_eq!(steps.steady(), expected);
    assert_eq!(steps.main().median_ns, 1_000);
}

#[test]
fn where_a_range_holds_a_part_the_operations_say_where_a_step_begins() {
    let mut program = Program::new();
    for i in 0..4 {
        program.step(4, 1);
        // Pauses in the step's first part, which is not marked: the distances of the optimizers are others than the steps'.
        program.now += i * 100;
        let start = program.now;
        (0..20).for_each(|_| program.op("adam_part", 9, 50));
        let end = program.now;
        program
            .scene
            .range(RangeKind::Nvtx, "optimizer", 0, start - 6, end);
    }
    let made = program.starts.clone();
    let steps = program.steps().expect("steps");
    assert_eq!(steps.from, Origin::Period { operations: 39 });
    assert_eq!(starts(&steps), made);
}

#[test]
fn a_step_behind_which_something_else_was_done_is_odd() {
    // Twelve operations of 100 ns more, or a pause and two of them.
    for (other, length) in [(12, 2_200.0), (2, 1_200.0)] {
        let steps = partly_marked(other).expect("steps");
        assert_eq!(
            times(steps.steady()),
            [1_000.0, 1_000.0, 1_000.0, length, 1_000.0, 1_000.0, 1_000.0]
        );
        assert_eq!(steps.main().odd, if other == 12 { vec![3] } else { vec![] });
    }
}

/// As a server answers: a word a step for all, and each fortieth step a question whole, with other kernels of its own.
#[test]
fn a_step_that_does_more_now_and_then_is_odd_and_counted() {
    let mut program = Program::new();
    for at in 0..240 {
        for kinds in if at % 40 == 7 {
            &[["gemm", "tanh"], ["gemm_whole", "tanh"]][..]
        } else {
            &[["gemm", "tanh"]]
        } {
            for op in 0..16 {
                program.op(
                    kinds[op % 2],
                    8,
                    if kinds[0] == "gemm" { 50 } else { 2_000 },
                );
            }
        }
        program.op("sum", 1, 20);
    }
    let steps = program.steps().expect("steps");
    // Cut at the sum, which alone is once in each: the first step begins with the first sum.
    assert_eq!(steps.main().steps, Vec::from_iter(0..238));
    assert_eq!(steps.main().odd, [6, 46, 86, 126, 166, 206]);
    assert_eq!(steps.main().every, Some(40));
}

#[test]
fn a_profilers_two_steps_are_not_made_more_by_their_layers() {
    let mut program = Program::new();
    (0..40).for_each(|_| program.step(1, 1));
    let end = program.now;
    program
        .scene
        .range(RangeKind::Nvtx, "ProfilerStep#6", 0, 900, end);
    assert_eq!(program.steps(), None);
}

#[test]
fn repeats_of_one_variant_are_steps_and_those_of_several_are_not() {
    let run = |names: &[(&str, u32)]| {
        let mut scene = Scene::new();
        let mut at = 0;
        for &(name, index) in names {
            at += 1_000;
            scene.range(RangeKind::Repeat, name, index, at, at + 900);
            scene.kernel("k", 1, at + 100, at + 200 + i64::from(index));
        }
        found(&scene.trace())
    };
    let steps = run(&[("fast", 0), ("fast", 1), ("fast", 2)]).expect("steps");
    assert_eq!(steps.from, Origin::Repeats("fast".to_owned()));
    assert_eq!(times(steps.steady()), [100.0, 101.0, 102.0]);
    assert_eq!(
        run(&[("slow", 0), ("slow", 1), ("fast", 0), ("fast", 1)]),
        None
    );
    // The points of a sweep.
    assert_eq!(run(&[("a", 0), ("a", 1), ("a", 0), ("a", 1)]), None);
}

#[test]
fn the_last_steps_are_those_of_the_whole() {
    let mut program = Program::new();
    (0..200).for_each(|_| program.step(4, 1));
    let trace = program.scene.trace();
    let whole = find(&trace, None).pop().expect("steps");
    let window = recent(&trace, 400).expect("a window");
    let last = find(&trace, Some(window)).pop().expect("steps");
    // 400 operations are 21 steps of 19, of which the cut may cost one.
    assert!(last.spans.len() >= 20, "{}", last.spans.len());
    assert!(whole.spans.ends_with(&last.spans[1..]));
    assert_eq!(recent(&trace, 1_000_000), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever a step is made of, if it is repeated it is found, and every cut is as far from the next as
    /// the steps are.
    #[test]
    fn what_repeats_is_found(
        unit in prop::collection::vec(0u32..12, 3..25),
        count in 9usize..40,
        before in 0u32..10,
    ) {
        let mut symbols: Vec<u32> = (0..before).map(|i| 12 + i).collect();
        (0..count).for_each(|_| symbols.extend(&unit));
        // The unit may itself be made of smaller ones.
        let least = (1..=unit.len())
            .find(|n| unit.len().is_multiple_of(*n) && unit.chunks(*n).all(|c| c == &unit[..*n]))
            .expect("the unit itself");
        let found = period::find(&symbols, 0, |_| false).expect("steps");
        // A unit may hold pieces that are alike, and be taken for those.
        let whole = found.length.is_multiple_of(least) || found.length < least;
        prop_assert!(whole, "{} for {least}", found.length);
        let inside: usize = found.units.iter().map(ExactSizeIterator::len).sum();
        prop_assert!(2 * inside >= symbols.len());
    }
}

/// One kernel that touches managed memory: the driver brings it page by page, in the same few sizes again and again.
#[test]
fn pages_that_the_driver_moves_are_no_steps() {
    let scene = |stream: u32| {
        let mut scene = Scene::new();
        scene.kernel("add", 7, 0, 1_000_000);
        for i in 0..200 {
            let at = 1_000 + i * 40_000;
            scene.copy(Direction::H2D, stream, 4 << 10, at, at + 2_000);
            scene.copy(Direction::H2D, stream, 60 << 10, at + 5_000, at + 9_000);
        }
        scene.trace()
    };
    assert_eq!(find(&scene(activity::Place::NO_STREAM), None), []);
    // The same on a stream are.
    assert_eq!(find(&scene(8), None).len(), 1);
}

#[test]
fn a_long_start_up_does_not_keep_steps_from_speaking_for_the_program() {
    // An operation as long as `first`, a pause far longer than all steps, `count` steps of some 1.2 us of work each.
    let made = |first: Ns, count: usize| {
        let mut program = Program::new();
        program.op("load", 1, first);
        program.now += 1_000_000;
        for _ in 0..count {
            program.step(2, 1);
        }
        program.steps().expect("steps")
    };
    let steps = made(100, 20);
    assert!(matches!(steps.from, Origin::Period { .. }), "{steps:?}");
    let all = steps.start_up.len() + steps.steady_span().len() + steps.tail.len();
    assert!(10 * steps.steady_span().len() < all, "{steps:?}");
    assert!(steps.are_telling(), "{steps:?}");
    // Too few to be what the program is about.
    assert!(!made(100, 6).are_telling());
    // As much work before them as in them is a start-up, too.
    assert!(made(24_000, 20).are_telling());
}

#[test]
fn the_layers_of_a_marked_step_do_not_speak_for_the_program() {
    // One step in a range: a pause far longer than the layers, then twenty of them.
    let made = |until: fn(Ns) -> Ns| {
        let mut program = Program::new();
        program.op("load", 1, 100);
        program.now += 1_000_000;
        for _ in 0..20 {
            program.step(2, 1);
        }
        let end = until(program.now);
        program.scene.range(RangeKind::Nvtx, "decode", 0, 0, end);
        program.steps().expect("steps")
    };
    let steps = made(|end| end);
    assert!(steps.is_in_one && !steps.are_telling(), "{steps:?}");
    // A range that ends before them marks something else.
    assert!(made(|_| 900_000).are_telling());
}

#[test]
fn what_repeats_in_one_range_and_copies_nothing_may_be_layers() {
    // Twenty layers fill one forward pass, or twenty steps, each with its input, fill one range around a loop.
    let made = |is_fed: bool| {
        let mut program = Program::new();
        for _ in 0..20 {
            if is_fed {
                program.step(2, 1);
            } else {
                for (name, length) in [("attention", 300), ("norm", 40), ("mlp", 500)] {
                    program.op(name, 64, length);
                }
            }
        }
        let end = program.now;
        program.scene.range(RangeKind::Nvtx, "forward", 0, 0, end);
        program.steps().expect("steps")
    };
    let layers = made(false);
    assert_eq!(layers.from, Origin::Period { operations: 3 });
    assert!(!layers.are_telling(), "{layers:?}");
    assert!(made(true).are_telling());
}

#[test]
fn what_a_range_holds_of_two_passes_is_a_pass_where_something_lies_between() {
    // Twelve layers, or rounds of a benchmark, twice: the second time in a range of its own. A pass begins and ends with more.
    let made = |is_pass: bool| {
        let mut program = Program::new();
        for _ in 0..2 {
            let start = program.now - 5;
            for round in 0..12 {
                if is_pass && round == 0 {
                    program.op("embedding", 8, 70);
                }
                for (name, length) in [("attention", 300), ("norm", 40), ("mlp", 500)] {
                    program.op(name, 64, length);
                }
            }
            let end = program.now;
            if start > 1_000 {
                let scene = &mut program.scene;
                scene.range(RangeKind::Nvtx, "measured", 0, start, end);
            }
        }
        program.steps().expect("steps").are_telling()
    };
    assert_eq!([false, true].map(made), [true, false]);
}

#[test]
fn steps_that_take_far_longer_are_odd_or_the_kind_is_uneven() {
    // Twenty steps of some 1.2 us each. Behind some the CPU is at work for 10 us.
    let made = |is_long: fn(usize) -> bool| {
        let mut program = Program::new();
        for step in 0..21 {
            program.step(2, 1);
            program.now += if is_long(step) { 10_000 } else { 0 };
        }
        program.steps().expect("steps")
    };
    // Steps 3, 8, 13 and 18 are one in five of the twenty that are seen to their end.
    let steps = made(|step| step % 5 == 3);
    let kind = steps.main();
    assert_eq!((steps.kinds.len(), &kind.odd[..]), (1, &[3, 8, 13, 18][..]));
    assert_eq!((kind.every, kind.is_uneven), (Some(5), false));
    assert_eq!(kind.odd_text("20"), "every 5th step");
    assert!(kind.median_ns < 2_000 && kind.regular().count() == 16);
    assert!(!kind.odd.contains(&kind.typical));
    // Every fourth is no oddity.
    let steps = made(|step| step % 4 == 3);
    assert!(steps.main().odd.is_empty() && steps.main().is_uneven);
    assert!(steps.main().range.0 < 2_000 && steps.main().range.1 > 10_000);
    // Two come, but not regularly.
    let steps = made(|step| step == 4 || step == 7);
    assert_eq!(steps.main().odd_text("20"), "2 of 20 steps");
}

#[test]
fn steps_of_other_operations_or_of_far_more_work_are_other_kinds() {
    // Ranges that count steps hold so many kernels of each name, 100 ns each.
    let made = |kernels: fn(i64) -> Vec<(&'static str, Ns)>| {
        let mut scene = Scene::new();
        let mut now = 0;
        for i in 0..21 {
            let from = now;
            for (name, length) in kernels(i) {
                scene.call("cudaLaunchKernel", now, now + 10);
                scene.kernel(name, 7, now + 20, now + 20 + length);
                now += length + 30;
            }
            scene.range(RangeKind::Nvtx, &format!("step {i}"), 0, from, now);
        }
        found(&scene.trace()).expect("steps")
    };
    let kinds = |steps: &Steps| -> Vec<(String, usize)> {
        let kinds = steps.kinds.iter();
        kinds.map(|it| (it.name.clone(), it.steps.len())).collect()
    };
    let of = |name: &str, count| (name.to_owned(), count);
    // Two of twenty fill the cache: they take most of the time, and are too few to be what a step is.
    let served = made(|i| match i % 10 {
        5 => vec![("gemm_prefill", 10_000); 6],
        _ => vec![("gemm_decode", 100); 6],
    });
    assert_eq!(kinds(&served), [of("decode", 18), of("prefill", 2)]);
    // Every second evaluates: half of the operations.
    let by_turns = made(|i| {
        vec![[("forward", 100), ("backward", 200)][..(1 + i % 2) as usize].to_vec(); 4].concat()
    });
    assert_eq!(
        kinds(&by_turns),
        [of("`backward`", 10), of("4-operation", 10)]
    );
    // The same operations, on twice as much data in every third.
    let sizes = made(|i| vec![("gemm", if i % 3 == 1 { 900 } else { 300 }); 4]);
    assert_eq!(kinds(&sizes), [of("long", 7), of("short", 13)]);
    // One saves: the same, and then some.
    let saves = made(|i| match i {
        7 => [vec![("gemm", 300); 4], vec![("pack", 300); 9]].concat(),
        _ => vec![("gemm", 300); 4],
    });
    assert_eq!(kinds(&saves), [of("", 20)]);
    assert_eq!(saves.main().odd, [7]);
}

#[test]
fn one_operation_again_and_again_is_a_step_where_the_cpu_has_a_part_in_it() {
    // Thirty kernels of 100 us, launched ahead, or each behind a wait, 60 us of work, or as a graph.
    let made = |call: &str, waits: bool, work: Ns| {
        let mut scene = Scene::new();
        for i in 0..30 {
            let at = i * 200_000;
            scene.call(call, at + work, at + work + 5_000);
            scene.kernel("k", 7, at + 70_000, at + 170_000);
            if waits {
                scene.call("cudaStreamSynchronize", at + work + 6_000, at + 175_000);
            } else if work == 0 {
                // The CPU is at other calls all the while.
                for k in 0..10 {
                    let from = at + 5_000 + k * 19_500;
                    scene.call("cudaEventQuery", from, from + 19_500);
                }
            }
        }
        find(&scene.trace(), None).len()
    };
    assert_eq!(made("cudaLaunchKernel", false, 0), 0);
    assert_eq!(made("cudaGraphLaunch", false, 0), 1);
    assert_eq!(made("cudaLaunchKernel", true, 0), 1);
    assert_eq!(made("cudaLaunchKernel", false, 60_000), 1);
}

#[test]
fn pieces_that_differ_by_more_than_their_median_are_no_repeats() {
    // Operations of 630 ns, and behind them no pause, one and 19 of so long by turns: the median distance from the median is
    // one pause. Of 1,000 ns the deviation is 1,483 of 1,630 ns; of 2,000 it is 2,965 of 2,630.
    let made = |pause: Ns| {
        let mut program = Program::new();
        for step in 0..30 {
            for (name, length) in [("embed", 100), ("attend", 200), ("norm", 300)] {
                program.op(name, 64, length);
            }
            program.now += [0, 1, 19][step % 3] * pause;
        }
        program.steps().is_some()
    };
    assert!(made(1_000) && !made(2_000));
}

#[test]
fn equal_pieces_of_many_operations_are_steps_however_uneven() {
    // As a program that waits for data: no pause, one of 30 µs and one of 90 µs by turns. Behind 20 operations of 110 ns each the
    // median is 32.2 µs, the deviation 44.5 µs.
    let made = |operations: usize| {
        let mut program = Program::new();
        for step in 0..30 {
            program.starts.push(program.now);
            for op in 0..operations {
                program.op(&format!("k{op}"), 64, 100);
            }
            program.now += [0, 30, 90][step % 3] * 1_000;
        }
        let made = program.starts.clone();
        program.steps().map(|it| starts(&it) == made)
    };
    assert_eq!([12, 20].map(made), [None, Some(true)]);
}

#[test]
fn steps_may_do_some_operations_more_often_than_others_do() {
    // As a benchmark of a kernel within each step, or pictures of which some are turned. No two steps are equal. Each has so many
    // operations of its own among some 170, as products of another size.
    let made = |others: u32| {
        let mut program = Program::new();
        for step in 0..24 {
            program.starts.push(program.now);
            program.op("load", 64, 300);
            for _ in 0..70 + step % 12 * 2 + step / 12 {
                program.op("clear", 64, 100);
                program.op("mix", 64, 50);
            }
            for other in 0..others {
                program.op(&format!("own{step} {other}"), 64, 100);
            }
            program.op("sum", 64, 100);
        }
        let made = program.starts.clone();
        program.steps().is_some_and(|it| starts(&it) == made)
    };
    assert_eq!([0, 1, 12].map(made), [true, true, false]);
}

#[test]
fn copies_before_the_work_are_no_steps() {
    // Twelve copies of 100 ns before a kernel that takes a hundred times, or half of, what they do together.
    let made = |kernel: Ns| {
        let mut program = Program::new();
        for _ in 0..14 {
            let end = program.now + 100;
            program
                .scene
                .call("cudaMemcpyAsync", program.now - 5, program.now);
            program
                .scene
                .copy(Direction::H2D, 7, 4096, program.now, end);
            program.now = end + 10;
        }
        program.op("all", 64, kernel);
        program.steps()
    };
    assert!(made(700).is_some() && made(200_000).is_none());
}

#[test]
fn a_few_steps_that_hold_nearly_all_kernel_time_speak_for_the_program() {
    // Behind a pause of so many steps' time five steps of some 1.2 ms each, beside one kernel that takes as long as `first`.
    let made = |first: Ns| {
        let mut program = Program::new();
        program.op("load", 1, first);
        program.now += 60_000_000;
        (0..5).for_each(|_| program.step(2, 1_000));
        program.steps().expect("steps").are_telling()
    };
    // Their kernels take 4.0 ms: of 4.3 that is 93 %, of 4.6 it is 87 %.
    assert!(made(300_000) && !made(600_000));
}

#[test]
fn repeats_whose_main_kernel_changes_are_no_steps() {
    // Six of seven operations stay the same. The seventh takes 2,000 of 2,600 ns; each of three such has a quarter of all.
    let made = |main: [&str; 3]| {
        let mut program = Program::new();
        for i in 0..42 {
            (0..6).for_each(|k| program.op(&format!("k{k}"), 8, 100));
            program.op(main[i / 14], 8, 2_000);
        }
        program.steps().map(|steps| steps.spans.len())
    };
    assert_eq!(made(["near"; 3]), Some(42));
    assert_eq!(made(["near", "far", "other"]), None);
}

/// Kernels in ranges of one name: twelve and six by turns, of 100 ns each.
fn by_turns(count: usize, name: fn(usize) -> String) -> Option<Steps> {
    let mut scene = Scene::new();
    let mut now = 0;
    for i in 0..count {
        let from = now;
        for op in 0..[12, 6][i % 2] {
            scene.call("cudaLaunchKernel", now, now + 10);
            // No two are alike, so that nothing repeats by itself.
            scene.kernel(&format!("k{i}_{op}"), 7, now + 20, now + 90);
            now += 100;
        }
        scene.range(RangeKind::Nvtx, &name(i), i as u32, from, now);
    }
    found(&scene.trace())
}

#[test]
fn ranges_of_two_kinds_by_turns_are_one_step() {
    let steps = by_turns(12, |_| "aggregate".to_owned()).expect("steps");
    assert_eq!(
        (steps.steady.clone(), steps.main().median_ns),
        (0..5, 1_800)
    );
    // Two pairs are too few.
    assert_eq!(by_turns(4, |_| "aggregate".to_owned()), None);
    // What the program counts is a step each. Of 11 whole ones six take 1,200.
    let counted = by_turns(12, |i| format!("step {i}")).expect("steps");
    assert_eq!(
        (counted.steady.len(), counted.main().median_ns),
        (11, 1_200)
    );
}

#[test]
fn ranges_that_differ_by_more_than_their_median_are_not_one_step() {
    // Kernels of 90 ns, 100 ns apart: so many in each range.
    let made = |kernels: [usize; 7]| {
        let mut scene = Scene::new();
        let mut now = 0;
        for (i, count) in kernels.into_iter().enumerate() {
            let from = now;
            for op in 0..count {
                scene.call("cudaLaunchKernel", now, now + 10);
                scene.kernel(&format!("k{i}_{op}"), 7, now + 20, now + 90);
                now += 100;
            }
            scene.range(RangeKind::Nvtx, &format!("phase {i}"), i as u32, from, now);
        }
        found(&scene.trace()).expect("steps")
    };
    let even = made([10, 12, 9, 10, 11, 10, 10]);
    assert!(even.are_telling(), "{even:?}");
    // 1, 1, 10, 40, 300 and 300 kernels, the last range left out: the median is 25, and half of them are 24 or more off, 1.4826
    // times which is 35.6.
    let uneven = made([1, 300, 10, 40, 300, 1, 1]);
    let (median, deviation) = uneven.deviation().expect("some");
    assert!(deviation > median, "{uneven:?}");
    assert!(!uneven.are_telling(), "{uneven:?}");
}

#[test]
fn ranges_that_only_enqueue_mark_steps_where_the_gpu_keeps_up() {
    // Chunks are enqueued every 2 us. Their copies take 1,000 each and follow each other, their kernels `kernel`.
    let made = |count: Ns, kernel: Ns| {
        let mut scene = Scene::new();
        let mut free = 0;
        for i in 0..count {
            let at = i * 2;
            scene.range(RangeKind::Nvtx, &format!("chunk {i}"), i as u32, at, at + 2);
            let copied = 100 + (i + 1) * 1_000;
            scene.call("cudaMemcpyAsync", at, at + 1);
            scene.copy(Direction::H2D, 7, 1 << 20, copied - 1_000, copied);
            scene.call("cudaLaunchKernel", at + 1, at + 2);
            let from = copied.max(free) + 10;
            free = from + kernel;
            scene.kernel("busy", 8, from, free);
        }
        found(&scene.trace()).map(|it| it.main().median_ns)
    };
    assert_eq!(made(12, 900), Some(1_000));
    // Of 11 whole ones 44 us were caused. Before the last one's copy 21 run: 11 of copies, 10 of kernels.
    assert_eq!(made(12, 3_000), None);
}

#[test]
fn what_repeats_beside_an_op_that_is_done_once_may_be_layers() {
    let made = |embeddings: Ns| {
        let mut program = Program::new();
        for i in 0..embeddings {
            let at = i * 10;
            program
                .scene
                .range(RangeKind::CpuOp, "aten::embedding", 0, at, at + 5);
        }
        for _ in 0..20 {
            for (name, length) in [("attention", 300), ("norm", 40), ("mlp", 500)] {
                program.op(name, 64, length);
            }
        }
        program.steps().expect("steps").are_telling()
    };
    assert!(!made(1) && made(20) && made(0));
}

#[test]
fn parts_of_the_warm_up_are_no_steps() {
    // Four warm-up steps of a forward and a backward pass, six times 100 ns each. Then ten forward passes.
    let mut scene = Scene::new();
    let mut now = 0;
    let mut pass = |scene: &mut Scene, name: &str| {
        let from = now;
        for op in 0..6 {
            scene.call("cudaLaunchKernel", now, now + 10);
            // No two are alike, so that nothing repeats by itself.
            scene.kernel(&format!("k{from}_{op}"), 7, now + 20, now + 90);
            now += 100;
        }
        scene.range(RangeKind::Nvtx, name, 0, from, now);
        Span::new(from, now)
    };
    for i in 0..4 {
        let from = pass(&mut scene, "Forward").start;
        let end = pass(&mut scene, "Backward").end;
        scene.range(RangeKind::Nvtx, &format!("Warm-up Step {i}"), 0, from, end);
    }
    for _ in 0..10 {
        pass(&mut scene, "Forward");
    }
    let steps = found(&scene.trace()).expect("steps");
    // The first begins behind four times 1.2 us; the end of the last is not seen.
    assert_eq!((steps.steady.len(), steps.main().median_ns), (9, 600));
    assert_eq!(steps.steady_span().start, 4 * 1_200 + 20);
}

/// Two or three passes of sixteen kernels, no two alike. The first takes so many times as long.
#[test]
fn what_lies_behind_a_warm_up_is_known_without_steps() {
    let behind = |names: &[&str], slow: Ns| {
        let (mut scene, mut now) = (Scene::new(), 0);
        for (pass, name) in names.iter().enumerate() {
            let (from, length) = (now, if pass == 0 { 100 * slow } else { 100 });
            for op in 0..16 {
                scene.call("cudaLaunchKernel", now, now + 10);
                scene.kernel(&format!("k{pass}_{op}"), 7, now + 20, now + 90);
                now += length;
            }
            scene.range(RangeKind::Nvtx, name, 0, from, now);
        }
        behind_warm_up(&scene.trace()).map(|it| (it.span.start, it.which))
    };
    let told = |start, which: &str| Some((start, which.to_owned()));
    let warm = behind(&["warmup", "warmup", "forward"], 2);
    assert_eq!(warm, told(4_820, "the warm-up"));
    let first = "the first of 2 ranges `iteration #`";
    assert_eq!(
        behind(&["iteration 0", "iteration 1"], 2),
        told(3_220, first)
    );
    // Alike, or of different things, or hardly anything behind it.
    assert_eq!(behind(&["iteration 0", "iteration 1"], 1), None);
    assert_eq!(behind(&["load", "forward"], 2), None);
    assert_eq!(behind(&["warmup", "forward"], 20), None);
}

/// Steps of 19 operations; before the 20th others come in another order each time, `many` steps' worth of them, or a pause.
#[test]
fn a_stretch_whose_pattern_is_not_told_apart_is_no_odd_step() {
    for (many, odd) in [(6, &[][..]), (0, &[19][..])] {
        let mut program = Program::new();
        for step in 0..40 {
            program.step(4, 1);
            for other in 0..many * 19 * i64::from(step == 19) {
                let kind = program.noise.below(4) as usize;
                let name = ["gemm", "relu", "gemm_back", "relu_back"][kind];
                program.op(name, 8 + other as u32, 80);
            }
            program.now += if many == 0 && step == 19 { 10_000 } else { 0 };
        }
        let steps = program.steps().expect("steps");
        assert_eq!(steps.from, Origin::Period { operations: 19 });
        let longest = steps.spans.iter().map(|it| it.len()).max();
        assert!(longest >= Some(10_000), "{longest:?}");
        // What is said of each step is not said of it.
        assert_eq!(steps.main().odd, [19]);
        assert_eq!(steps.main().costly, odd);
    }
}

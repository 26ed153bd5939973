//! A server whose phases, batches and pauses are known, written down operation by operation.

use super::*;
use activity::{Direction, Kernel, LaunchShape, RangeKind, What};
use causes::graph::Graph;
use trace::testing::Scene;

const MS: Ns = 1_000_000;

/// A server under construction; each kernel takes 100 µs, and 10 µs lie between two.
#[derive(Default)]
struct Server {
    scene: Scene,
    now: Ns,
    /// The true phases.
    truth: Vec<(Phase, Ns)>,
}

impl Server {
    fn kernel(&mut self, name: &str, grid: u32, graph: u32) {
        let end = self.now + 100_000;
        if graph == 0 {
            self.scene.call("cudaLaunchKernel", self.now - 5, self.now);
        }
        let shape = LaunchShape {
            grid: [grid, 1, 1],
            block: [128, 1, 1],
            ..LaunchShape::default()
        };
        self.scene.shaped(shape, name, 7, self.now, end);
        if graph != 0 {
            let mut batch = self.scene.take();
            if let Some(What::Kernel(Kernel { graph: of, .. })) =
                batch.items.last_mut().map(|it| &mut it.what)
            {
                *of = graph;
            }
            self.scene.put(batch);
        }
        self.now = end + 10_000;
    }

    fn layers(&mut self, grid: u32, graph: u32) {
        for _ in 0..3 {
            for name in ["norm", "gemm", "flash_attention", "gemm"] {
                self.kernel(name, grid, graph);
            }
        }
        self.kernel(
            "reduce_kernel<ArgMaxOps<float>, unsigned int, long>",
            16,
            graph,
        );
    }

    fn prefill(&mut self) {
        self.truth.push((Phase::Prefill, self.now));
        self.layers(512, 0);
        self.now += 40_000;
    }

    fn decode(&mut self, bytes: u64, graph: u32) {
        self.truth.push((Phase::Decode, self.now));
        if graph != 0 {
            // What prepares a step is a part of it.
            self.kernel("positions", 1, 0);
            self.scene.call("cudaGraphLaunch", self.now - 5, self.now);
        }
        self.layers(16, graph);
        self.scene.call("cudaMemcpyAsync", self.now - 5, self.now);
        self.scene
            .copy(Direction::D2H, 7, bytes, self.now, self.now + 2_000);
        self.now += 502_000;
    }

    fn serves(&mut self) -> Option<(Steps, Serving)> {
        let trace = self.scene.trace();
        let steps = crate::steps::find(&trace, None).into_iter().next()?;
        let graph = Graph::new(&trace);
        let serving = Serving::of(&trace, &Causes::new(&trace, &graph), &steps)?;
        Some((steps, serving))
    }
}

fn server(has_graph: bool) -> Server {
    let mut server = Server {
        now: 1_000,
        ..Server::default()
    };
    for i in 0..30 {
        if i % 10 == 4 {
            server.prefill();
        }
        let graph = if has_graph { 5 } else { 0 };
        server.decode(128, graph);
    }
    server
}

#[test]
fn phases_are_told_by_the_tokens_that_are_copied_back() {
    for has_graph in [false, true] {
        let mut made = server(has_graph);
        let truth = made.truth.clone();
        let (steps, serving) = made.serves().expect("a server");
        assert_eq!(serving.certainty, "likely");
        // The first step, and the last, whose end nobody saw, are left out.
        let found = steps
            .steady
            .clone()
            .filter_map(|at| Some((steps.batch(at)?.phase, steps.spans[at].start)));
        assert_eq!(Vec::from_iter(found), truth[1..truth.len() - 1]);
        let decode = serving.decode.expect("decode steps");
        assert_eq!((decode.steps, decode.batch), (28, Some((16, 16))));
        // 13 kernels of 110 µs, before a graph one more, and 502 µs behind them.
        let step = if has_graph { 2_042_000 } else { 1_932_000 };
        assert_eq!((decode.p50_ns, decode.p99_ns), (step, step));
        let delays = (serving.prefill_delay_ns, serving.prefill_delay_max_ns);
        assert_eq!(delays, (3 * 1_470_000, 1_470_000));
        let kinds = steps.kinds.iter().map(|it| (&it.name[..], it.steps.len()));
        assert_eq!(Vec::from_iter(kinds), [("decode", 28), ("prefill", 3)]);
        let all = 28 * step + 3 * 1_470_000;
        assert_eq!(
            (serving.time_ns, serving.tokens),
            (all, Some((28 * 16, 28 * 16)))
        );
        // From the first node to the end of the last.
        let replay = if has_graph { 13 * 110_000 - 10_000 } else { 0 };
        assert_eq!(decode.replay_p50_ns, replay);
        assert_eq!(decode.between_p50_ns, step - replay);
        let replays = serving.graphs.get(&5).map(|it| it.steps);
        assert_eq!(replays, has_graph.then_some(28));
        assert_eq!(serving.outside_graphs, if has_graph { 0 } else { 28 });
    }
}

#[test]
fn a_pause_before_a_prompt_is_no_part_of_a_step() {
    let mut made = Server {
        now: 1_000,
        ..Server::default()
    };
    for _ in 0..4 {
        made.prefill();
        for _ in 0..8 {
            made.decode(64, 0);
        }
        made.now += 300 * MS;
    }
    let (_, serving) = made.serves().expect("a server");
    // The usual pause of 500 µs is in the gap, too.
    assert_eq!(serving.asleep_ns, 3 * (300 * MS + 500_000));
    assert!(serving.decode.expect("steps").p99_ns < 2 * MS);
    assert_eq!(serving.prefill_delay_ns, 0);
}

#[test]
fn what_is_no_server_is_called_none() {
    // Without a kernel that chooses, with large uploads, with work on many words of each sequence, or on an image.
    for other in 0..4 {
        let mut made = Server {
            now: 1_000,
            ..Server::default()
        };
        for _ in 0..20 {
            made.scene.call("cudaMemcpyAsync", made.now - 5, made.now);
            let bytes = if other == 1 { 1 << 20 } else { 64 };
            made.scene
                .copy(Direction::H2D, 7, bytes, made.now, made.now + 9_000);
            made.now += 10_000;
            match other {
                0 => (0..13).for_each(|_| made.kernel("flash_attention", 16, 0)),
                1 => made.layers(16, 0),
                2 => made.layers(1 << 16, 0),
                _ => {
                    made.kernel("upsample_bilinear2d_out_frame", 16, 0);
                    made.layers(16, 0);
                }
            }
            made.scene.call("cudaMemcpyAsync", made.now - 5, made.now);
            made.scene
                .copy(Direction::D2H, 7, 128, made.now, made.now + 2_000);
            made.now += 500_000;
        }
        assert!(made.serves().is_none(), "{other}");
    }
}

#[test]
fn training_whose_accuracy_is_read_back_serves_nobody() {
    for (last, is_server) in [("norm", true), ("multi_tensor_apply_kernel", false)] {
        let mut made = Server {
            now: 1_000,
            ..Server::default()
        };
        for _ in 0..12 {
            made.kernel(last, 16, 0);
            made.decode(128, 0);
        }
        assert_eq!(made.serves().is_some(), is_server, "{last}");
    }
}

#[test]
fn tokens_of_an_unknown_size_are_told_as_both() {
    let mut made = Server {
        now: 1_000,
        ..Server::default()
    };
    for _ in 0..12 {
        for name in [
            "attn", "attn", "gemm", "gemm", "gemm", "norm", "norm", "norm", "sampler",
        ] {
            made.kernel(name, 16, 0);
        }
        made.scene.call("cudaMemcpyAsync", made.now - 5, made.now);
        made.scene
            .copy(Direction::D2H, 7, 64, made.now, made.now + 2_000);
        made.now += 500_000;
    }
    let (_, serving) = made.serves().expect("a server");
    assert_eq!(serving.decode.expect("steps").batch, Some((8, 16)));
    let (low, high) = serving.tokens_per_s.expect("tokens");
    assert_eq!(2.0 * low, high);
}

#[test]
fn names_of_steps_say_phases_also_where_one_token_is_several_ranges() {
    let mut scene = Scene::new();
    let mut now = 0;
    let mut marked = |name: &str, has_copy: bool, length: Ns| {
        scene.call("cudaLaunchKernel", now, now + 10);
        scene.kernel("k", 7, now + 20, now + length);
        if has_copy {
            scene.call("cudaMemcpyAsync", now + length, now + length + 1);
            scene.copy(Direction::D2H, 7, 8, now + length + 2, now + length + 20);
        }
        scene.range(RangeKind::Nvtx, name, 0, now, now + length + 30);
        now += length + 100;
    };
    for i in 0..16 {
        if i % 5 == 2 {
            marked("step[EXTEND toks=900 bs=1]", true, 9_000);
        }
        for part in 0..3 {
            marked("step[DECODE bs=2 new=1]", part == 2, 900);
        }
    }
    let trace = scene.trace();
    let steps = crate::steps::find(&trace, None).remove(0);
    let graph = Graph::new(&trace);
    let serving = Serving::of(&trace, &Causes::new(&trace, &graph), &steps).expect("a server");
    assert_eq!(
        (serving.certainty, steps.from.text()),
        ("fact", "ranges `step…`".to_owned())
    );
    // The last one is not seen to its end.
    let decode = serving.decode.expect("decode steps");
    assert_eq!(
        (decode.steps, decode.p50_ns, decode.batch),
        (15, 3_000, Some((2, 2)))
    );
    let fields = [("bs", (1, 2)), ("new", (1, 1)), ("toks", (900, 900))];
    let fields = fields.map(|(name, of)| (name.to_owned(), of));
    assert_eq!(serving.fields, fields.into());
    let kinds = steps.kinds.iter().map(|it| (&it.name[..], it.steps.len()));
    assert_eq!(Vec::from_iter(kinds), [("decode", 15), ("prefill", 3)]);
}

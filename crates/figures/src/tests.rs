//! Figures against their definitions, counted nanosecond by nanosecond; passes of small runs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{class, passes, tables};
use activity::{Direction, Ns, RangeKind, Span};
use scenario::figures::Kind;
use trace::testing::Scene;
use trace::{CallIndex, Trace};

/// An operation as the definitions see it.
#[derive(Clone, Copy, Debug)]
struct Op {
    span: Span,
    /// 0 kernel, 1 memset, 2.. a copy of the direction at that place.
    kind: usize,
    stream: u32,
    bytes: u64,
    has_call: bool,
}

const DIRECTIONS: [Direction; 5] = [
    Direction::H2D,
    Direction::D2H,
    Direction::D2D,
    Direction::P2P,
    Direction::Other,
];

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = (
        0i64..300,
        0i64..20,
        0usize..7,
        0u32..4,
        0u64..1000,
        any::<bool>(),
    )
        .prop_map(|(start, length, kind, stream, bytes, has_call)| Op {
            span: Span::new(start, start + length),
            kind,
            stream,
            bytes,
            has_call,
        });
    prop::collection::vec(op, 1..40)
}

fn trace(ops: &[Op]) -> Trace {
    let mut scene = Scene::new();
    // Batches of a few, so that some come late.
    let mut trace = Trace::default();
    for chunk in ops.chunks(7) {
        for op in chunk {
            let (start, end) = (op.span.start, op.span.end);
            if op.has_call {
                scene.call("cudaLaunchKernel", start - 1, start);
            } else {
                scene.without_call();
            }
            match op.kind {
                0 => scene.kernel("k", op.stream, start, end),
                1 => scene.memset(op.stream, 1 << 20, start, end),
                k => scene.copy(DIRECTIONS[k - 2], op.stream, op.bytes, start, end),
            };
        }
        trace.apply(scene.take());
    }
    trace
}

fn count(range: Span, holds: impl Fn(Ns) -> bool) -> Ns {
    (range.start..range.end).filter(|&t| holds(t)).count() as Ns
}

/// Gaps by the definition: spans in order of start, merged where they touch.
fn plain_gaps(ops: &[Op]) -> Vec<Ns> {
    let mut spans: Vec<Span> = ops.iter().map(|op| op.span).collect();
    spans.sort();
    let mut gaps = Vec::new();
    let mut end = spans[0].start;
    for span in spans {
        if span.start > end {
            gaps.push(span.start - end);
        }
        end = end.max(span.end);
    }
    gaps
}

proptest! {
    #[test]
    fn figures_are_their_definitions(all in ops(), window in prop::option::of((0i64..300, 0i64..300))) {
        let trace = trace(&all);
        let window = window.map(|(a, b)| Span::new(a.min(b), a.max(b)));
        let found = crate::count(&trace, Some(&CallIndex::new(&trace)), window);
        let ops: Vec<Op> = all
            .iter()
            .copied()
            .filter(|op| window.is_none_or(|w| w.contains(op.span.start)))
            .collect();
        if ops.is_empty() {
            prop_assert!(found.is_empty());
            return Ok(());
        }
        prop_assert_eq!(found.len(), 1);
        let f = &found[0];
        let start = ops.iter().map(|op| op.span.start).min().expect("ops");
        let end = ops.iter().map(|op| op.span.end).max().expect("ops");
        let span = Span::new(start, end);
        let runs = |t: Ns, is: &dyn Fn(usize) -> bool| ops.iter().any(|op| op.span.contains(t) && is(op.kind));
        let busy = count(span, |t| runs(t, &|_| true));
        prop_assert_eq!(f.ops, ops.len() as u64);
        prop_assert_eq!(f.kernels, ops.iter().filter(|op| op.kind == 0).count() as u64);
        prop_assert_eq!(f.memsets, ops.iter().filter(|op| op.kind == 1).count() as u64);
        prop_assert_eq!(f.span_ns, span.len());
        prop_assert_eq!(f.busy_ns, busy);
        prop_assert_eq!(f.idle_ns, span.len() - busy);
        prop_assert_eq!(f.compute_ns, count(span, |t| runs(t, &|k| k == 0)));
        prop_assert_eq!(f.copy_ns, count(span, |t| runs(t, &|k| k >= 2)));
        prop_assert_eq!(f.overlap_ns, count(span, |t| runs(t, &|k| k == 0) && runs(t, &|k| k >= 2)));
        for (i, direction) in DIRECTIONS.into_iter().enumerate().take(4) {
            let mine: Vec<&Op> = ops.iter().filter(|op| op.kind == i + 2).collect();
            let d = f.direction(direction).expect("named");
            let bytes: u64 = mine.iter().map(|op| op.bytes).sum();
            let time: Ns = mine.iter().map(|op| op.span.len()).sum();
            prop_assert_eq!(d.count, mine.len() as u64);
            prop_assert_eq!(d.bytes, bytes);
            prop_assert_eq!(d.busy_ns, count(span, |t| runs(t, &|k| k == i + 2)));
            prop_assert_eq!(d.gbps, (time > 0).then(|| bytes as f64 / time as f64));
        }
        let mut streams = BTreeMap::new();
        for op in &ops {
            *streams.entry(op.stream).or_insert(0u64) += 1;
        }
        prop_assert_eq!(&f.streams, &streams);
        let without_call = ops.iter().filter(|op| !op.has_call).count();
        prop_assert_eq!(f.no_api, Some(without_call as u64));
        prop_assert_eq!(f.gaps.longest_ns, plain_gaps(&ops).into_iter().max().unwrap_or(0));
    }

    #[test]
    fn gaps_are_counted_by_size(lengths in prop::collection::vec((1i64..2_000_000, 0i64..3), 1..30)) {
        let mut scene = Scene::new();
        let (mut at, mut ops) = (0, Vec::new());
        for (i, &(gap, length)) in lengths.iter().enumerate() {
            scene.kernel("k", i as u32 % 3, at, at + length);
            ops.push(Op { span: Span::new(at, at + length), kind: 0, stream: 0, bytes: 0, has_call: false });
            at += length + gap;
        }
        let found = crate::testing::whole(&scene.trace());
        let gaps = plain_gaps(&ops);
        let over = |min: Ns| gaps.iter().filter(|&&g| g > min).count() as u64;
        prop_assert_eq!(found[0].gaps.over_10us, over(10_000));
        prop_assert_eq!(found[0].gaps.over_100us, over(100_000));
        prop_assert_eq!(found[0].gaps.over_1ms, over(1_000_000));
        prop_assert_eq!(found[0].gaps.longest_ns, gaps.iter().copied().max().unwrap_or(0));
    }
}

#[test]
fn json_rounds_rates_to_four_decimals_and_keys_streams_by_id() {
    let mut scene = Scene::new();
    scene.copy(Direction::D2H, 7, 1, 0, 2240);
    let figures = crate::testing::whole(&scene.trace());
    let json = serde_json::to_value(&figures[0]).expect("json");
    assert_eq!(json["d2h"]["gbps"], serde_json::json!(0.0004));
    assert_eq!(json["h2d"]["gbps"], serde_json::Value::Null);
    assert_eq!(json["streams"], serde_json::json!({"7": 1}));
}

/// Two variants: `a` with three repeats of 30, 10 and 20 ns after a warm-up, `b` with one.
fn run() -> Scene {
    let mut scene = Scene::new();
    scene.range(RangeKind::Variant, "a", 0, 0, 1000);
    scene.range(RangeKind::Warmup, "a", 0, 0, 100);
    scene.kernel("k", 1, 10, 99);
    for (i, length) in [30, 10, 20].into_iter().enumerate() {
        let at = 100 * (i as Ns + 1);
        scene.range(RangeKind::Repeat, "a", i as u32, at, at + 90);
        scene.range(RangeKind::Phase, "upload", 0, at + 1, at + 4);
        scene.copy(Direction::H2D, 1, 100, at + 5, at + 10);
        scene.kernel("k", 1, at + 15, at + 5 + length);
    }
    scene.range(RangeKind::Variant, "b", 1, 1000, 2000);
    scene.range(RangeKind::Repeat, "b", 0, 1100, 1900);
    scene.kernel("other", 1, 1200, 1300);
    scene
}

#[test]
fn a_variant_is_described_by_its_median_repeat() {
    let variants = crate::testing::variants(&run().trace(), None);
    assert_eq!(variants.len(), 2);
    let a = &variants[0];
    assert_eq!((a.variant.index, a.variant.name.as_str()), (0, "a"));
    assert!(a.variant.is_complete);
    assert_eq!((a.repeats, a.pass.index), (3, 2));
    assert_eq!((a.makespan_ns, a.wall_ns), (20, 90));
    // The copy runs for 5 ns, the kernel for 10, with 5 between them.
    assert_eq!(a.idle_ns, 5);
    let figures: Vec<(String, f64)> = (a.figures.iter())
        .map(|m| (m.figure.name(), m.value))
        .collect();
    let expected = [
        ("makespan", 20.0),
        ("wall", 90.0),
        ("idle", 0.25),
        ("overlap", 0.0),
        ("h2d_gbps", 20.0),
        ("phase.upload", 3.0),
        ("ops", 2.0),
        ("kernels", 1.0),
    ];
    assert_eq!(figures, expected.map(|(name, v)| (name.to_owned(), v)));
    assert_eq!(
        (a.phases[0].name.as_str(), a.phases[0].total_ns),
        ("upload", 3)
    );
    assert_eq!((a.kernels[0].count, a.kernels[0].total_ns), (1, 10));
    assert_eq!(a.peak_memory, None);
    let b = &variants[1];
    assert_eq!((b.variant.index, b.makespan_ns, b.wall_ns), (1, 100, 800));
    assert_eq!(b.value(Kind::Overlap), None);
}

#[test]
fn passes_of_a_variant_that_still_runs_are_told_apart_by_their_numbers() {
    let mut scene = run();
    // Two points of a sweep, one name; neither variant's own range has come.
    for (i, at) in [(0, 2000), (1, 2100), (0, 2200)] {
        scene.range(RangeKind::Repeat, "b", i, at, at + 50);
    }
    let found = passes::Passes::of_trace(&scene.trace(), None);
    let brief: Vec<_> = (found.variants.iter().enumerate())
        .map(|(i, v)| {
            (
                v.index,
                v.name.as_str(),
                v.is_complete,
                found.of_variant(i).count(),
            )
        })
        .collect();
    assert_eq!(
        brief,
        [
            // A warm-up and three repeats.
            (0, "a", true, 4),
            (1, "b", true, 1),
            (2, "b", false, 2),
            (3, "b", false, 1)
        ]
    );
    let labels: Vec<String> = found.variants.iter().map(|v| v.label()).collect();
    assert_eq!(labels, ["a", "b #1", "b #2", "b #3"]);
    assert_eq!(found.list[5].makespan(), 0);
}

#[test]
fn a_pass_without_operations_has_no_makespan_and_no_figures() {
    let mut scene = Scene::new();
    scene.range(RangeKind::Variant, "host", 0, 0, 100);
    scene.range(RangeKind::Repeat, "host", 0, 10, 90);
    let variants = crate::testing::variants(&scene.trace(), None);
    assert_eq!((variants[0].makespan_ns, variants[0].wall_ns), (0, 80));
    assert_eq!(
        (
            variants[0].value(Kind::Idle),
            variants[0].value(Kind::Overlap)
        ),
        (None, None)
    );
    assert!(variants[0].devices.is_empty());
}

#[test]
fn tables_are_sorted_by_time_and_waits_do_not_count_twice() {
    let mut scene = Scene::new();
    scene.kernel("short", 1, 0, 10).kernel("long", 1, 10, 40);
    scene.kernel("short", 2, 40, 60);
    scene.call("cudaStreamSynchronize", 5, 50);
    scene.sync(activity::SyncKind::Stream, Some(1), None, 6, 60);
    scene.sync(
        activity::SyncKind::StreamWaitEvent,
        Some(1),
        Some(3),
        80,
        90,
    );
    let trace = scene.trace();
    let rows = tables::kernels(&trace, None);
    let brief: Vec<_> = rows
        .iter()
        .map(|r| {
            (
                r.name.as_str(),
                r.count,
                r.total_ns,
                r.mean_ns,
                r.min_ns,
                r.max_ns,
                r.share,
            )
        })
        .collect();
    assert_eq!(
        brief,
        [
            ("long", 1, 30, 30, 30, 30, 0.5),
            ("short", 2, 30, 15, 10, 20, 0.5)
        ]
    );
    assert_eq!(tables::sync_time(&trace, None), 55);
    assert_eq!(tables::calls(&trace, None)[0].total_ns, 45);
}

/// By hand, on an H200 (132 SMs of 64 warps): blocks of 256 threads and 128 registers fit twice on an SM (4096 registers a warp,
/// 4 warps of each quarter), so a wave is 264 blocks.
#[test]
fn a_kernel_tells_how_each_of_its_launches_fills_the_gpu() {
    use activity::occupancy::Limit;
    let shape = |blocks, registers| activity::LaunchShape {
        grid: [blocks, 1, 1],
        block: [256, 1, 1],
        registers,
        ..activity::LaunchShape::default()
    };
    let mut scene = Scene::new();
    scene.device(trace::testing::h200());
    scene
        .shaped(shape(64, 128), "gemm", 1, 0, 10)
        .shaped(shape(288, 128), "gemm", 1, 10, 40)
        .shaped(shape(288, 128), "gemm", 2, 40, 60);
    let trace = scene.trace();
    let rows = tables::kernels(&trace, None);
    let of = |nth: usize| {
        let it = &rows[0].shapes[nth];
        let fill = it.fill;
        (it.grid[0], it.count, it.total_ns, fill.waves, fill.idle_sms)
    };
    assert_eq!(rows[0].shapes.len(), 2);
    assert_eq!(of(0), (288, 2, 50, Some(288.0 / 264.0), Some(0)));
    assert_eq!(of(1), (64, 1, 10, Some(64.0 / 264.0), Some(68)));
    let fill = rows[0].shapes[0].fill;
    assert_eq!(fill.occupancy, Some(0.25));
    assert_eq!(fill.occupancy_limit, Some(Limit::Registers));
    let tail = fill.tail_share.expect("known");
    assert!((tail - (1.0 - 288.0 / 528.0)).abs() < 1e-12);
    let json = serde_json::to_value(&rows[0].shapes[1]).expect("JSON");
    assert_eq!(json["occupancy_limit"], "registers");
    assert_eq!(json["tail_share"], 0.0);
    // Of a GPU that nobody described nothing is told.
    let mut scene = Scene::new();
    scene.shaped(shape(64, 128), "gemm", 1, 0, 10);
    let rows = tables::kernels(&scene.trace(), None);
    assert_eq!(rows[0].shapes[0].fill, crate::fill::Fill::default());
}

#[test]
fn a_long_launch_limits_a_kernel_only_where_the_gpu_waits_for_it() {
    let class = |scene: &mut Scene| {
        let rows = tables::kernels(&scene.trace(), None);
        let row = rows.iter().find(|it| it.name == "add").expect("ran");
        row.shapes[0].class
    };
    // Calls one after the other, each 3 us before its kernel of 1.5.
    let mut scene = Scene::new();
    for at in (0..40).map(|nth| nth * 4_000) {
        let call = scene.call("cuLaunchKernel", at, at + 4_000);
        call.kernel("add", 1, at + 3_000, at + 4_500);
    }
    assert_eq!(class(&mut scene), class::Class::Launch);
    // A queue of 4 ms is full: a call waits until something of it ends, longer than its kernel of 0.7 ms takes.
    let mut scene = Scene::new();
    for at in (0..40).map(|nth| nth * 1_311_000) {
        let (after, run) = (at + 1_180_000, at + 4_000_000);
        let call = scene.call("cuLaunchKernel", at, after);
        call.kernel("add", 1, run, run + 711_000);
        let call = scene.call("cuLaunchKernel", after, at + 1_311_000);
        call.kernel("other", 1, run + 711_000, run + 1_311_000);
    }
    assert_eq!(class(&mut scene), class::Class::Unknown);
    // The first 50 of 400 calls wait for memory, 3 us before each kernel of 1.5. Behind them the queue never empties: half of all calls
    // wait for no idle GPU.
    let mut scene = Scene::new();
    for at in (0..50).map(|nth| nth * 4_000) {
        let call = scene.call("cuLaunchKernel", at, at + 4_000);
        call.kernel("add", 1, at + 3_000, at + 4_500);
    }
    for nth in 0..350 {
        let (at, run) = (200_000 + nth * 1_000, 200_500 + nth * 1_500);
        let call = scene.call("cuLaunchKernel", at, at + 1_000);
        call.kernel("add", 1, run, run + 1_500);
    }
    assert_eq!(class(&mut scene), class::Class::Unknown);
    // 400 calls in 400 us, and kernels of 1 us with 1 us between them: behind each call lie up to 200 us of such gaps, and right before
    // each kernel one.
    let mut scene = Scene::new();
    for nth in 0..400 {
        let (at, run) = (nth * 1_000, 10_000 + nth * 2_100);
        let call = scene.call("cuLaunchKernel", at, at + 1_000);
        call.kernel("add", 1, run, run + 1_100);
    }
    assert_eq!(class(&mut scene), class::Class::Unknown);
}

#[test]
fn a_stretch_that_was_not_recorded_is_neither_busy_nor_idle() {
    use activity::{Activity, Batch, Def, Kernel, Mode, Place, What};
    let mode = |(from, recording)| {
        Def::Mode(Mode {
            from,
            recording,
            waits: false,
        })
    };
    let kernel = |(start, end)| Activity {
        span: Span::new(start, end),
        correlation: 0,
        what: What::Kernel(Kernel {
            place: Place::default(),
            shape: 0,
            graph: 0,
            node: 0,
        }),
    };
    let mut trace = Trace::default();
    trace.apply(Batch {
        defs: [(0, true), (40, false), (60, true)].map(mode).to_vec(),
        items: [(0, 10), (20, 30), (100, 110), (120, 130)]
            .map(kernel)
            .to_vec(),
        ..Batch::default()
    });
    let figures = crate::testing::whole(&trace);
    // By hand: of 130, operations take 40 and the gap of 30 to 100 is unknown; 10 and 10 are idle.
    let it = &figures[0];
    assert_eq!(
        (it.span_ns, it.busy_ns, it.not_recorded_ns, it.idle_ns),
        (130, 40, 70, 20)
    );
    assert_eq!((it.recorded_ns(), it.gaps.longest_ns), (60, 10));
}

/// A machine of so many H200, of which one is used: 1.5 s with kernels for so long, and what else there is a name of.
#[test]
fn gpus_that_a_program_of_one_leaves_alone_are_counted() {
    let unused = |alike: u32, busy: Ns, name: &str| {
        let mut scene = Scene::new();
        scene.device(activity::DeviceInfo {
            alike,
            ..trace::testing::h200()
        });
        scene.kernel("k", 1, 0, busy - 1_000_000);
        scene.kernel(name, 1, 1_499_000_000, 1_500_000_000);
        crate::device::count(&scene.trace(), None, None)[0].unused
    };
    assert_eq!(unused(8, 1_200_000_000, "k"), 7);
    // One alone; idle for most of it; a rank of a job.
    assert_eq!(unused(1, 1_200_000_000, "k"), 0);
    assert_eq!(unused(8, 900_000_000, "k"), 0);
    assert_eq!(unused(8, 1_200_000_000, "ncclDevKernel_AllReduce"), 0);
}

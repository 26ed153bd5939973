//! What is said of a timeline that has let go of its oldest records.

use crate::report::{KnownGpus, Report};
use activity::{Ns, RangeKind, Span};
use causes::Causes;
use causes::graph::Graph;
use figures::tables;
use trace::Trace;
use trace::testing::Scene;

/// Launches on two streams by one thread, in ranges of a hundred.
fn timeline(launches: i64) -> Trace {
    let mut scene = Scene::new();
    for i in 0..launches {
        let at = i * 20_000;
        scene.call("cudaLaunchKernel", at, at + 4_000);
        let start = at + 6_000;
        scene.kernel("k", (i % 2) as u32 + 1, start, start + (i % 7 + 1) * 1_500);
        if i % 100 == 0 {
            scene.range(RangeKind::Nvtx, "step", 0, at, at + 1_900_000);
        }
    }
    scene.trace()
}

#[test]
fn what_is_left_is_judged_as_if_it_began_there() {
    let whole = timeline(4_000);
    let mut short = whole.clone();
    short.evict_before(41_000_000);
    let window = Some(Span::new(41_000_000, Ns::MAX));
    let (one, other) = (
        figures::count(&short, None, None),
        figures::count(&whole, None, window),
    );
    assert_eq!(one, other);
    // By hand: the kernel of launch i starts at i x 20 us + 6 us, so the first one that is left is that of 2050.
    assert_eq!(one[0].ops, 1_950);
    let graph = Graph::new(&short);
    let causes = Causes::new(&short, &graph);
    let idle: Ns = causes.idle(0, None).iter().map(|row| row.total_ns).sum();
    assert_eq!(idle, one[0].idle_ns);
    assert_eq!(
        tables::kernels(&short, None),
        tables::kernels(&whole, window)
    );

    let report = Report::new(&short, None, KnownGpus::default());
    let let_go = report.let_go.expect("it is said");
    // 2050 calls, 2050 kernels, 21 ranges start before.
    assert_eq!((let_go.records, let_go.until_ns), (4_121, 41_000_000));
    let all = figures::count(&whole, None, None);
    assert_eq!(let_go.devices[0].busy_ns, all[0].busy_ns);
    assert_eq!(let_go.devices[0].span_ns, all[0].span_ns);
    assert!(
        Report::new(&whole, None, KnownGpus::default())
            .let_go
            .is_none()
    );
}

#[test]
fn the_figures_of_a_window_that_holds_all_are_those_of_the_whole() {
    // More than are added up at once, of two streams that overlap: the whole asks the usage that grew with the timeline.
    let whole = timeline(80_000);
    let window = Some(Span::new(0, Ns::MAX));
    assert_eq!(
        figures::count(&whole, None, window),
        figures::count(&whole, None, None)
    );
}

#[test]
fn a_timeline_with_a_limit_stays_within_it() {
    let mut trace = Trace::default();
    let limit = 8 << 20;
    trace.set_limit(Some(limit));
    let mut most = 0;
    for round in 0..40 {
        let mut scene = Scene::new();
        for i in 0..10_000 {
            let at = (round * 10_000 + i) * 1_000;
            scene.kernel("k", 1, at, at + 600);
        }
        trace.apply(scene.take());
        most = most.max(trace.memory());
    }
    // Looked at every 65,536 records, of at most 100 bytes here.
    assert!(most < limit + 65_536 * 100, "{most}");
    let forgotten = trace.evicted().expect("it had to");
    assert!(forgotten.rows > 100_000, "{forgotten:?}");
    assert_eq!(trace.lanes()[0].len(), 400_000);
}

/// The sums of a hundred lanes at thousands of points would take all of it, and a third of each lane is no whole chunk.
#[test]
fn a_limit_leaves_many_lanes_what_they_take_memory_for() {
    let mut trace = Trace::default();
    let limit = 3 << 20;
    trace.set_limit(Some(limit));
    let (mut most, mut least) = (0, f64::MAX);
    for round in 0..50 {
        let mut scene = Scene::new();
        for i in 0..100 {
            for stream in 0..100 {
                let at = (round * 100 + i) * 1_000_000;
                scene.kernel("k", stream, at, at + 600_000);
            }
        }
        trace.apply(scene.take());
        most = most.max(trace.memory());
        let lanes = || trace.lanes().iter();
        let shown: usize = lanes().map(|lane| lane.kept().len()).sum();
        let taken: usize = lanes().map(|lane| lane.len() - lane.first_row()).sum();
        least = least.min(shown as f64 / taken as f64);
    }
    assert!(most < limit + 65_536 * 100, "{most}");
    assert!(least > 0.5, "{least}");
    assert!(trace.evicted().is_some());
}

//! Whatever parts records come in, the sums are those of all of them.

use proptest::prelude::*;

use super::*;
use crate::testing::{run, steps};
use activity::Batch;
use activity::feed::Stop;

/// What a row says, but for source lines.
type Row = (
    &'static str,
    Option<String>,
    Option<String>,
    &'static str,
    u64,
    Ns,
);

fn rows(causes: Vec<IdleCause>) -> Vec<Row> {
    let row = |r: IdleCause| {
        (
            r.cause.label(),
            r.culprit,
            r.root,
            r.certainty,
            r.count,
            r.total_ns,
        )
    };
    causes.into_iter().map(row).collect()
}

/// The same of all at once.
fn at_once(trace: &Trace, sample: usize) -> Vec<Row> {
    let graph = Graph::new(trace);
    let causes = Causes::with_sample(trace, &graph, sample);
    rows(causes.idle(0, None))
}

fn parts(mut batch: Batch, sizes: &[usize]) -> Vec<Batch> {
    let mut rest = std::mem::take(&mut batch.items).into_iter();
    let mut parts = vec![batch];
    for &size in sizes {
        let items: Vec<_> = rest.by_ref().take(size).collect();
        parts.push(Batch {
            items,
            ..Batch::default()
        });
    }
    parts.push(Batch {
        items: rest.collect(),
        ..Batch::default()
    });
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn sums_do_not_depend_on_parts_or_order(
        steps in steps(),
        sizes in prop::collection::vec(1usize..20, 0..8),
        order in any::<u64>(),
        sample in 1usize..40,
    ) {
        let mut batch = run(&steps);
        match order % 3 {
            // As they end, which is how they come; by start; in any order.
            0 => batch.items.sort_by_key(|item| item.span.end),
            1 => batch.items.sort_by_key(|item| item.span.start),
            _ => batch.items.sort_by_key(|item| {
                (item.span.start as u64 ^ order).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            }),
        }
        let mut trace = Trace::default();
        let mut growing = IdleSums::with_sample(sample);
        for part in parts(batch, &sizes) {
            let until = part.items.iter().map(|item| item.span.start).max();
            trace.apply(part);
            if let Some(until) = until {
                growing.grow(&trace, until, &Stop::default()).expect("not stopped");
            }
        }
        let grown = growing.grow(&trace, Ns::MAX, &Stop::default()).expect("not stopped");
        let expected = at_once(&trace, sample);
        let idle: Ns = expected.iter().map(|row| row.5).sum();
        let mine: Vec<_> = grown.into_iter().map(|of| (of.idle_ns, rows(of.causes))).collect();
        if mine.is_empty() {
            prop_assert!(expected.is_empty());
        } else {
            prop_assert_eq!(mine, vec![(idle, expected)]);
        }
    }
}

#[test]
fn what_is_sealed_is_not_looked_at_again() {
    // A kernel of 2 us every 10 us, launched 4 us before. Once four have told what a launch takes, nothing changes that.
    let mut scene = trace::testing::Scene::new();
    let (mut trace, mut growing) = (Trace::default(), IdleSums::with_sample(4));
    for part in 0..20 {
        for i in 0..10 {
            let at = 10_000 * (10 * part + i);
            scene.call("cudaLaunchKernel", at, at + 3_000);
            scene.kernel("k", 7, at + 4_000, at + 6_000);
        }
        trace.apply(scene.take());
        let until = 100_000 * (part + 1);
        let grown = growing
            .grow(&trace, until, &Stop::default())
            .expect("not stopped");
        // The last 20 us, in which two kernels begin, are not settled yet.
        assert_eq!(grown[0].idle_ns, 8_000 * (10 * (part + 1) - 3));
    }
    assert_eq!(growing.walked, 197);
    // A record that comes late is no reason to be wrong.
    scene.without_call().kernel("late", 7, 6_500, 7_500);
    trace.apply(scene.take());
    let grown = growing
        .grow(&trace, 2_000_000, &Stop::default())
        .expect("not stopped");
    assert_eq!(grown[0].idle_ns, 8_000 * 197 - 1_000);
}

#[test]
fn a_launch_that_leaves_no_operation_holds_nothing_up() {
    let mut scene = trace::testing::Scene::new();
    for i in 0..20 {
        let at = 10_000 * i;
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("k", 7, at + 4_000, at + 6_000);
        if i == 5 {
            scene.call("cudaMemsetAsync", at + 3_500, at + 3_900);
        }
    }
    // The last one's operation is yet to come.
    scene.call("cudaLaunchKernel", 200_000, 203_000);
    let trace = scene.trace();
    let grown = IdleSums::default().grow(&trace, 210_000, &Stop::default());
    // Up to 20 us before its call: all kernels but the last two.
    assert_eq!(grown.expect("not stopped")[0].idle_ns, 8_000 * (20 - 3));
}

#[test]
fn a_graph_that_grew_too_large_begins_anew() {
    let mut scene = trace::testing::Scene::new();
    let (mut trace, mut growing) = (Trace::default(), IdleSums::default());
    growing.graph_max = 20_000;
    let mut line = String::new();
    for i in 0..20_000 {
        let at = 10_000 * i;
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("k", 7, at + 4_000, at + 6_000);
        if i % 1_000 == 999 {
            trace.apply(scene.take());
            let grown = growing.grow(&trace, at + 10_000, &Stop::default());
            let grown = grown.expect("not stopped");
            // The last 20 us, in which two kernels begin, are not settled yet.
            assert_eq!(grown[0].idle_ns, 8_000 * (i - 2));
            line = grown[0].line(&trace);
        }
    }
    assert!(growing.graph.ops.len() < 10_000, "it was begun anew");
    // 19,997 gaps of 8 us, of which the thread's own work takes 4 and the launch 4, in as many rounds of 10 us.
    let expected =
        "GPU 0, since the beginning: idle for 80 % of 200 ms: CPU code 40 %, launch latency 40 %";
    assert_eq!(line, expected);
}

#[test]
fn what_was_let_go_stays_in_the_sums() {
    let mut scene = trace::testing::Scene::new();
    let (mut trace, mut growing) = (Trace::default(), IdleSums::default());
    // Enough for chunks of the store to go.
    let count = 20_000;
    for i in 0..count {
        let at = 10_000 * i;
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("k", 7, at + 4_000, at + 6_000);
    }
    trace.apply(scene.take());
    growing
        .grow(&trace, 10_000 * count, &Stop::default())
        .expect("not stopped");
    trace.evict_before(10_000 * (count / 2));
    assert!(trace.evicted().is_some_and(|of| of.rows > 0));
    for i in count..count + 10 {
        let at = 10_000 * i;
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("k", 7, at + 4_000, at + 6_000);
    }
    trace.apply(scene.take());
    let grown = growing.grow(&trace, 10_000 * (count + 10), &Stop::default());
    let [device] = &grown.expect("not stopped")[..] else {
        panic!("one device")
    };
    assert_eq!(device.idle_ns, 8_000 * (count + 10 - 3));
}

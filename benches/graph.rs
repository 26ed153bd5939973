//! What the analysis thread takes: the graph of what depended on what, the causes of idle time, the verdict,
//! by size of the timeline; and what the screen asks of it while a program runs.
//!
//! To reach: a graph of 10^6 operations in well under a second.

#![allow(missing_docs, reason = "criterion's macros make functions")]

mod cpu;
mod quick;
mod timeline;

use std::hint::black_box;

use activity::{Ns, Span};
use advice::{Facts, verdict};
use causes::Causes;
use causes::graph::Graph;
use cpu::CpuTime;
use criterion::measurement::Measurement;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use figures::steps;
use timeline::{Shape, batches};
use trace::Trace;

const STREAMS: u32 = 4;

fn shape(operations: usize) -> Shape {
    Shape {
        operations,
        streams: STREAMS,
        with_calls: true,
    }
}

/// Calls `work` and says what it took, by the million operations.
fn once<T>(what: &str, operations: usize, work: impl FnOnce() -> T) -> T {
    let clock = CpuTime::default();
    let began = clock.start();
    let made = work();
    let ns = clock.to_f64(&clock.end(began));
    let millions = operations as f64 / 1e6;
    eprintln!(
        "{operations} operations: {what} {:.3} s per million",
        ns / 1e9 / millions
    );
    made
}

/// Each part once, also where it takes too long to be measured again and again.
fn parts(_: &mut Criterion<CpuTime>) {
    for operations in quick::sizes([100_000, 1_000_000, 10_000_000]) {
        let mut trace = Trace::default();
        batches(shape(operations)).for_each(|batch| trace.apply(batch));
        let graph = once("graph", operations, || Graph::new(&trace));
        eprintln!(
            "{operations} operations: {:.0} bytes of graph an operation, {:.0} of timeline",
            graph.memory() as f64 / operations as f64,
            trace.memory() as f64 / operations as f64,
        );
        let causes = once("causes, made ready", operations, || {
            Causes::new(&trace, &graph)
        });
        once("causes of all gaps", operations, || causes.idle(0, None));
        let devices = once("figures", operations, || figures::count(&trace, None, None));
        once("verdict", operations, || {
            verdict::find(&trace, &causes, (None, &devices), (&[], None), None)
        });
        once("steps", operations, || steps::find(&trace, None));
        if operations > 1_000_000 {
            continue;
        }
        let facts = Facts::new(&trace);
        let _ = facts.graph();
        let whatif = once("made ready to predict", operations, || facts.whatif(None));
        let edit = "no-sync".parse().ok();
        if let (Ok(whatif), Some(edit)) = (whatif, edit) {
            once("a prediction", operations, || whatif.predict(&edit));
        }
    }
}

fn graph(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("graph");
    group.sample_size(10);
    for operations in quick::sizes([10_000, 100_000]) {
        let mut trace = Trace::default();
        batches(shape(operations)).for_each(|batch| trace.apply(batch));
        group.throughput(Throughput::Elements(operations as u64));
        group.bench_function(BenchmarkId::new("new", operations), |b| {
            b.iter(|| black_box(Graph::new(&trace)));
        });
    }
    group.finish();
}

/// What the last steps of a timeline that grows take, which the screen asks about once a second.
fn live(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("live");
    group.sample_size(10);
    for operations in quick::sizes([1_000_000, 10_000_000]) {
        let mut trace = Trace::default();
        batches(shape(operations)).for_each(|batch| trace.apply(batch));
        let from = steps::recent(&trace, 50_000).map_or(Ns::MIN, |window| window.start);
        let until = trace.extent().map_or(from, |span| span.end);
        group.bench_function(BenchmarkId::new("last 50,000 of", operations), |b| {
            b.iter(|| {
                let window = Span::new(from, until);
                let graph = Graph::within(&trace, window);
                let causes = Causes::new(&trace, &graph);
                let devices = figures::count(&trace, None, Some(window));
                black_box(verdict::find(
                    &trace,
                    &causes,
                    (Some(window), &devices),
                    (&[], None),
                    None,
                ))
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime::default());
    targets = parts, graph, live
}
criterion_main!(benches);

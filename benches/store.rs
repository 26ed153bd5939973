//! How fast the store takes records in, and how much memory an operation costs there.
//!
//! To reach: 5 million records a second on one core, 48 bytes an operation.

#![allow(missing_docs, reason = "criterion's macros make functions")]

mod cpu;
mod quick;
mod timeline;

use std::hint::black_box;

use activity::Batch;
use cpu::CpuTime;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use timeline::{Shape, batches};
use trace::Trace;

const OPERATIONS: usize = 500_000;

fn ingest(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("ingest");
    group.sample_size(10);
    let shapes = [
        ("1 stream", 1, false),
        ("8 streams", 8, false),
        ("8 streams and calls", 8, true),
    ];
    for (name, streams, with_calls) in shapes {
        let shape = Shape {
            operations: quick::sizes([OPERATIONS]).sum(),
            streams,
            with_calls,
        };
        let all: Vec<Batch> = batches(shape).collect();
        let records: usize = all.iter().map(|b| b.items.len()).sum();
        let mut trace = Trace::default();
        all.iter().cloned().for_each(|batch| trace.apply(batch));
        eprintln!(
            "{name}: {:.1} bytes a record, {} of {records} late",
            trace.memory() as f64 / records as f64,
            trace.late(),
        );
        group.throughput(Throughput::Elements(records as u64));
        group.bench_function(name, |b| {
            b.iter_batched(
                || all.clone(),
                |all| {
                    let mut trace = Trace::default();
                    all.into_iter().for_each(|batch| trace.apply(batch));
                    black_box(trace)
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime::default());
    targets = ingest
}
criterion_main!(benches);

//! The zoom ladder: what one frame of the screen asks of the store, by size of the timeline and by how
//! much of it is on the screen.
//!
//! To reach: 4 ms a frame at 10^7 operations and any zoom, at most twice what 10^4 operations cost.

#![allow(missing_docs, reason = "criterion's macros make functions")]

mod cpu;
mod quick;
mod timeline;

use std::hint::black_box;

use activity::{Direction, Span};
use cpu::CpuTime;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use timeline::{Shape, batches};
use trace::{LaneKind, Measure, Trace};

/// Lanes of a tall terminal.
const LANES: u32 = 40;
/// Columns of a wide one.
const COLUMNS: i64 = 200;

/// Everything that the timeline view asks for one frame: for each cell how full it is and which
/// operation names it, and for each column of the device's rows the figures over it.
fn frame(trace: &Trace, window: Span) -> i64 {
    let edge = |i: i64| {
        window.start + (i128::from(window.len()) * i128::from(i) / i128::from(COLUMNS)) as i64
    };
    let edges: Vec<i64> = (0..=COLUMNS).map(edge).collect();
    let column = |i: i64| Span::new(edge(i), edge(i + 1));
    let mut sum = 0;
    for lane in trace.lanes() {
        if !matches!(lane.key().kind, LaneKind::Stream { .. }) {
            continue;
        }
        let mut lane = lane.cursor_over(&edges);
        for i in 0..COLUMNS {
            let cell = column(i);
            sum += lane.longest(cell).map_or(0, |row| row as i64);
            sum += lane.busy(cell);
        }
    }
    let usage = &trace.devices()[0].usage;
    for i in 0..COLUMNS {
        let cell = column(i);
        for measure in [
            Measure::Busy,
            Measure::Compute,
            Measure::Copy,
            Measure::Overlap,
        ] {
            sum += usage.time(measure, cell);
        }
        for direction in [Direction::H2D, Direction::D2H] {
            sum += usage.time(Measure::Direction(direction), cell);
            sum += trace.bytes_moved(0, direction, cell) as i64;
        }
    }
    sum
}

fn ladder(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("frame");
    group.sample_size(20);
    for operations in quick::sizes([1_000, 10_000, 100_000, 1_000_000, 10_000_000]) {
        let power = operations.ilog10();
        let mut trace = Trace::default();
        let shape = Shape {
            operations,
            streams: LANES,
            with_calls: false,
        };
        batches(shape).for_each(|batch| trace.apply(batch));
        let Some(all) = trace.extent() else {
            continue;
        };
        eprintln!(
            "10^{power}: {:.1} bytes an operation",
            trace.memory() as f64 / operations as f64
        );
        for (zoom, part) in [
            ("all", 1),
            ("1/16", 16),
            ("1/1024", 1024),
            ("1/65536", 65_536),
        ] {
            let middle = all.start + all.len() / 2;
            let window = Span::new(
                middle - all.len() / part / 2,
                middle + (all.len() / part / 2).max(200),
            );
            group.bench_with_input(
                BenchmarkId::new(zoom, format!("10^{power}")),
                &window,
                |b, &window| {
                    b.iter(|| black_box(frame(&trace, window)));
                },
            );
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime::default());
    targets = ladder
}
criterion_main!(benches);

//! A frame of the screen, whole: prepared and drawn into a buffer of 200x50, by size of the timeline
//! and by how much of it is in the window.
//!
//! To reach: 4 ms at 10^7 operations and any zoom, at most twice what 10^4 operations cost.

#![allow(missing_docs, reason = "criterion's macros make functions")]

mod cpu;
mod quick;
mod timeline;

use std::cell::LazyCell;
use std::hint::black_box;

use activity::Span;
use cpu::CpuTime;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cuptop::report::KnownGpus;
use cuptop::tui::app::App;
use cuptop::tui::{Theme, render};
use ratatui::layout::Size;
use timeline::{Shape, batches};
use trace::Trace;

const SIZE: Size = Size {
    width: 200,
    height: 50,
};

fn app(operations: usize) -> App {
    let mut trace = Trace::default();
    let shape = Shape {
        operations,
        streams: 32,
        with_calls: true,
    };
    for batch in batches(shape) {
        trace.apply(batch);
    }
    let mut app = App::of_trace(trace, None, KnownGpus::default());
    app.state.size = SIZE;
    app.prepare();
    app
}

fn draw(criterion: &mut Criterion<CpuTime>) {
    let theme = Theme::default();
    let mut group = criterion.benchmark_group("draw");
    group.sample_size(20);
    for operations in quick::sizes([10_000, 1_000_000, 10_000_000]) {
        // Only made for a bench that was chosen.
        let mut app = LazyCell::new(|| app(operations));
        for zoom in [1, 100, 10_000] {
            let id = BenchmarkId::new(format!("{operations}"), format!("1/{zoom}"));
            group.bench_function(id, |bencher| {
                let app = LazyCell::force_mut(&mut app);
                let whole = app.state.focus.camera.viewport.bounds;
                let length = whole.len() / zoom;
                let start = whole.start + (whole.len() - length) / 2;
                let mut by = 0;
                bencher.iter(|| {
                    // A window that has not been prepared.
                    by = 1 - by;
                    let window = Span::new(start + by, start + length - 1 + by);
                    app.state.focus.camera.viewport.show(window);
                    black_box(render(app, &theme))
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime::default());
    targets = draw
}
criterion_main!(benches);

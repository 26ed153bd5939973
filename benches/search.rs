//! The search, by size of the timeline: from a word that was typed to the frame that shows its records, all of it on one
//! thread; what frames cost while they are shown; and going from one to the next.
//!
//! To reach at 10^7 operations: a tenth of a second, and 4 ms for a frame.

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

/// A word that all kernels have, one that a sixty-fourth of them has, and one that nothing has.
const WORDS: [&str; 3] = ["kernel", "kernel_63", "gemm"];

fn app(operations: usize) -> App {
    let mut trace = Trace::default();
    let shape = Shape {
        operations,
        streams: 40,
        with_calls: true,
    };
    batches(shape).for_each(|batch| trace.apply(batch));
    // Without threads of its own it answers before it draws.
    let mut app = App::of_trace(trace, None, KnownGpus::default());
    app.state.size = Size {
        width: 200,
        height: 50,
    };
    app.prepare();
    app
}

fn search(criterion: &mut Criterion<CpuTime>) {
    let theme = Theme::default();
    let mut group = criterion.benchmark_group("search");
    group.sample_size(10);
    for operations in quick::sizes([10_000, 1_000_000, 10_000_000]) {
        // Only made for a bench that was chosen.
        let mut app = LazyCell::new(|| app(operations));
        for word in WORDS {
            let id = BenchmarkId::new(format!("{operations}"), format!("{word} typed"));
            group.bench_function(id, |bencher| {
                let app = LazyCell::force_mut(&mut app);
                bencher.iter(|| {
                    // Forgotten and typed again.
                    app.state.focus.search.set("");
                    app.prepare();
                    app.state.focus.search.set(word);
                    black_box(render(app, &theme))
                });
            });
            let id = BenchmarkId::new(format!("{operations}"), format!("{word} shown"));
            group.bench_function(id, |bencher| {
                let app = LazyCell::force_mut(&mut app);
                app.state.focus.search.set(word);
                let whole = app.state.focus.camera.viewport.bounds;
                let mut by = 0;
                bencher.iter(|| {
                    // A window that has not been prepared.
                    by = 1 - by;
                    let window = Span::new(whole.start + by, whole.end - 1 + by);
                    app.state.focus.camera.viewport.show(window);
                    black_box(render(app, &theme))
                });
            });
            let id = BenchmarkId::new(format!("{operations}"), format!("{word} next"));
            group.bench_function(id, |bencher| {
                let app = LazyCell::force_mut(&mut app);
                app.state.focus.search.set(word);
                app.prepare();
                bencher.iter(|| app.state.step_hit(true));
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime::default());
    targets = search
}
criterion_main!(benches);

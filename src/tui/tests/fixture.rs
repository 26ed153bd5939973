//! A timeline built by hand, for tests: two variants of a pipeline whose figures can be reckoned.
//!
//! A batch is an upload of 300 µs, a kernel of 400 µs and a download of 300 µs, of 16 MiB each way.
//! `sequential` runs four of them one after another on one stream, with 100 µs before each; `streamed`
//! runs them on four streams, each starting 400 µs after the one before.

use std::sync::Arc;

use crate::bundled::LIBRARY;
use activity::{
    Activity, Batch, Copy, Def, DeviceInfo, Direction, Health, HostCall, Kernel, LaunchShape,
    MemoryKind, Ns, Place, ProcessInfo, Range, RangeKind, Span, StreamInfo, What,
};
use scenario::plan::Plan;
use scenario::{Overrides, compile};
use trace::{SourceInfo, SourceKind, Trace};

/// Where the clock starts: an epoch time, as CUPTI's are.
pub(crate) const EPOCH: Ns = 1_790_000_000_000_000_000;

const US: Ns = 1_000;
const NAMES: [&str; 7] = [
    "matmul_tiled",
    "cudaMemcpyAsync",
    "cudaLaunchKernel",
    "cudaStreamSynchronize",
    "sequential",
    "streamed",
    "cudaDeviceSynchronize",
];

/// Batches of the feed that make up the timeline, in the order in which they would arrive.
pub(crate) fn batches() -> Vec<Batch> {
    let mut first = definitions();
    let mut correlation = 0;
    first.items = sequential(EPOCH, &mut correlation);
    let mut second = Batch {
        items: streamed(EPOCH + 10_000 * US, &mut correlation),
        ..Batch::default()
    };
    second.health = Some(Health {
        received: (first.items.len() + second.items.len()) as u64,
        ..Health::default()
    });
    vec![first, second]
}

/// The whole timeline.
pub(crate) fn trace() -> Trace {
    let mut trace = Trace::new(source());
    for batch in batches() {
        trace.apply(batch);
    }
    trace
}

/// Where it is from: a simulation.
pub(crate) fn source() -> SourceInfo {
    SourceInfo {
        kind: SourceKind::Simulator,
        title: "pipeline".to_owned(),
        path: None,
        simulated: true,
        ..SourceInfo::default()
    }
}

fn definitions() -> Batch {
    let mut defs: Vec<Def> = NAMES
        .iter()
        .zip(0..)
        .map(|(text, id)| Def::Name {
            id,
            text: (*text).to_owned(),
        })
        .collect();
    defs.push(Def::Shape {
        id: 0,
        shape: LaunchShape {
            name: 0,
            grid: [128, 128, 1],
            block: [16, 16, 1],
            registers: 32,
            static_shared: 2048,
            ..LaunchShape::default()
        },
    });
    defs.push(Def::Device(DeviceInfo {
        name: "NVIDIA H200".to_owned(),
        link: "PCIe 5.0 x16".to_owned(),
        capability: (9, 0),
        max_warps_per_sm: 64,
        max_blocks_per_sm: 32,
        shared_per_sm: 233_472,
        registers_per_sm: 65_536,
        warp_size: 32,
        ..DeviceInfo::default()
    }));
    defs.push(Def::Process(ProcessInfo {
        pid: 4711,
        command: "cuptop run pipeline".to_owned(),
        ..ProcessInfo::default()
    }));
    for (stream, name) in [(7, "main"), (13, "s0"), (14, "s1"), (15, "s2"), (16, "s3")] {
        defs.push(Def::Stream(StreamInfo {
            device: 0,
            context: 1,
            stream,
            name: name.to_owned(),
            ..StreamInfo::default()
        }));
    }
    Batch {
        defs,
        ..Batch::default()
    }
}

fn place(stream: u32) -> Place {
    Place {
        device: 0,
        context: 1,
        stream,
    }
}

fn call(start: Ns, length: Ns, name: u32, correlation: u32) -> Activity {
    Activity {
        span: Span::new(start, start + length),
        correlation,
        what: What::Call(HostCall {
            thread: 4711,
            name,
            code: 0,
        }),
    }
}

fn copy(start: Ns, stream: u32, direction: Direction, correlation: u32) -> Activity {
    let (from, to) = match direction {
        Direction::H2D => (MemoryKind::Pinned, MemoryKind::Device),
        _ => (MemoryKind::Device, MemoryKind::Pinned),
    };
    Activity {
        span: Span::new(start, start + 300 * US),
        correlation,
        what: What::Copy(Copy {
            place: place(stream),
            direction,
            from,
            to,
            is_async: true,
            bytes: 16 << 20,
            peer: 0,
            graph: 0,
            node: 0,
        }),
    }
}

fn kernel(start: Ns, stream: u32, correlation: u32) -> Activity {
    Activity {
        span: Span::new(start, start + 400 * US),
        correlation,
        what: What::Kernel(Kernel {
            place: place(stream),
            shape: 0,
            graph: 0,
            node: 0,
        }),
    }
}

fn range(kind: RangeKind, name: u32, index: u32, start: Ns, end: Ns) -> Activity {
    Activity {
        span: Span::new(start, end),
        correlation: 0,
        what: What::Range(Range {
            kind,
            name,
            thread: 4711,
            index,
        }),
    }
}

/// Three calls at `launched`, 10 µs each, and the batch that they launch on `stream` at `start`.
fn batch(launched: Ns, start: Ns, stream: u32, correlation: &mut u32) -> Vec<Activity> {
    let first = *correlation + 1;
    *correlation += 3;
    vec![
        call(launched, 10 * US, 1, first),
        call(launched + 10 * US, 10 * US, 2, first + 1),
        call(launched + 20 * US, 10 * US, 1, first + 2),
        copy(start, stream, Direction::H2D, first),
        kernel(start + 300 * US, stream, first + 1),
        copy(start + 700 * US, stream, Direction::D2H, first + 2),
    ]
}

/// Four batches of 1000 µs, 100 µs before each: a makespan of 4300 µs.
fn sequential(at: Ns, correlation: &mut u32) -> Vec<Activity> {
    let mut items = Vec::new();
    for i in 0..4 {
        let start = at + i * 1_100 * US;
        items.extend(batch(start, start + 100 * US, 7, correlation));
        items.push(call(start + 30 * US, 1_070 * US, 3, 0));
    }
    let end = at + 4_450 * US;
    items.push(range(RangeKind::Repeat, 4, 0, at, end));
    items.push(range(RangeKind::Variant, 4, 0, at - 50 * US, end + 50 * US));
    items
}

/// Four batches, 400 µs apart: a makespan of 2200 µs.
fn streamed(at: Ns, correlation: &mut u32) -> Vec<Activity> {
    let mut items = Vec::new();
    for i in 0..4 {
        let start = at + (100 + i * 400) * US;
        items.extend(batch(at + i * 30 * US, start, 13 + i as u32, correlation));
    }
    items.push(call(at + 120 * US, 2_190 * US, 6, 0));
    let end = at + 2_350 * US;
    items.push(range(RangeKind::Repeat, 5, 0, at, end));
    items.push(range(RangeKind::Variant, 5, 1, at - 50 * US, end + 50 * US));
    items
}

/// The pipeline with copies of pageable memory at a quarter of the link's rate: something to be found.
pub(crate) fn pageable() -> Trace {
    let mut trace = Trace::new(source());
    for mut batch in batches() {
        for item in &mut batch.items {
            if let What::Copy(copy) = &mut item.what {
                copy.bytes = 4 << 20;
                match copy.direction {
                    Direction::H2D => copy.from = MemoryKind::Pageable,
                    _ => copy.to = MemoryKind::Pageable,
                }
            }
        }
        trace.apply(batch);
    }
    trace
}

/// The pipeline once more, half as fast.
pub(crate) fn slower() -> Vec<Batch> {
    let slow = |t: Ns| EPOCH + 2 * (t - EPOCH);
    let mut batches = batches();
    for item in batches.iter_mut().flat_map(|batch| &mut batch.items) {
        item.span = Span::new(slow(item.span.start), slow(item.span.end));
    }
    batches
}

/// The bundled roofline's plan, and a run of it. The GPU moves 4 TB/s, computes 60 TFLOP/s, and takes 5 µs for a kernel
/// whatever it does.
pub(crate) fn roofline() -> (Arc<Plan>, Trace) {
    let source_of = LIBRARY.get("roofline").expect("it is bundled");
    let compiled = compile(&source_of, &Overrides::default());
    let plan = Arc::new(compiled.expect("it compiles").plan);
    let mut batch = definitions();
    let (kernel_name, large, small) = (100, 101, 102);
    for (id, text) in [
        (kernel_name, "fma_loop"),
        (large, "large"),
        (small, "small"),
    ] {
        batch.defs.push(Def::Name {
            id,
            text: text.to_owned(),
        });
    }
    batch.defs.push(Def::Shape {
        id: 1,
        shape: LaunchShape {
            name: kernel_name,
            ..LaunchShape::default()
        },
    });
    for (index, variant) in (0..).zip(&plan.variants) {
        let (name, numbers) = match variant.name.as_str() {
            "large" => (large, 32.0 * 1024.0 * 1024.0),
            _ => (small, 4096.0),
        };
        let iterations = variant.point.expect("every variant is a point") as f64;
        let (moving, computing) = (8.0 * numbers / 4e3, 2.0 * iterations * numbers / 60e3);
        let length = moving.max(computing).max(5_000.0) as Ns;
        let start = EPOCH + Ns::from(index) * 10_000 * US;
        batch.items.push(Activity {
            span: Span::new(start + 10 * US, start + 10 * US + length),
            correlation: 0,
            what: What::Kernel(Kernel {
                place: place(7),
                shape: 1,
                graph: 0,
                node: 0,
            }),
        });
        let end = start + length + 20 * US;
        batch.items.extend([
            range(RangeKind::Repeat, name, 0, start, end),
            range(RangeKind::Variant, name, index, start - US, end + US),
        ]);
    }
    let mut trace = Trace::new(SourceInfo {
        title: "roofline".to_owned(),
        ..source()
    });
    trace.apply(batch);
    (plan, trace)
}

//! Made-up programs for property tests: what threads, streams and engines would leave as records.

use proptest::prelude::*;

use crate::Gap;
use crate::graph::Graph;
use activity::{Activity, Batch, Direction, HostCall, Kernel, Ns, Span, Sync, SyncKind, What};
use trace::testing::{Scene, pinned, place};
use trace::{LaneId, Trace};

/// A step of a made-up program.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    thread: u32,
    think: Ns,
    stream: u32,
    /// 0 kernel, 1 H2D, 2 blocking D2H, 3 wait for the stream, 4 for the device, 5 malloc.
    kind: u8,
    call: Ns,
    latency: Ns,
    gpu: Ns,
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        1u32..=3,
        0i64..60_000,
        1u32..=3,
        0u8..6,
        1i64..9_000,
        2_000i64..70_000,
        0i64..90_000,
    )
        .prop_map(|(thread, think, stream, kind, call, latency, gpu)| Step {
            thread,
            think,
            stream,
            kind,
            call,
            latency,
            gpu,
        });
    prop::collection::vec(step, 1..60)
}

/// The records of a program: threads go on by themselves, streams are in order, copies of one direction
/// one after the other.
pub fn run(steps: &[Step]) -> Batch {
    let mut scene = Scene::new();
    let names = [
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "cudaMemcpy",
        "cudaStreamSynchronize",
        "cudaDeviceSynchronize",
        "cudaMalloc",
    ]
    .map(|name| scene.name(name));
    scene.kernel("k", 1, 0, 0);
    let mut batch = scene.take();
    batch.items.clear();
    let mut clock = [0i64; 4];
    let mut streams = [0i64; 4];
    let mut engines = [0i64; 2];
    for (i, step) in steps.iter().enumerate() {
        let correlation = i as u32 + 1;
        let start = clock[step.thread as usize] + step.think;
        let queue = &mut streams[step.stream as usize];
        let mut end = start + step.call;
        let mut push = |start, end, what| {
            batch.items.push(Activity {
                span: Span::new(start, end),
                correlation,
                what,
            });
        };
        match step.kind {
            0..=2 => {
                let mut begun = (start + step.latency).max(*queue);
                if step.kind > 0 {
                    let engine = &mut engines[usize::from(step.kind) - 1];
                    begun = begun.max(*engine);
                    *engine = begun + step.gpu;
                }
                *queue = begun + step.gpu + 1;
                let what = match step.kind {
                    0 => What::Kernel(Kernel {
                        place: place(step.stream),
                        shape: 0,
                        graph: 0,
                        node: 0,
                    }),
                    1 => What::Copy(pinned(Direction::H2D, step.stream, 100)),
                    _ => What::Copy(activity::Copy {
                        is_async: false,
                        ..pinned(Direction::D2H, step.stream, 100)
                    }),
                };
                push(begun, begun + step.gpu, what);
                if step.kind == 2 {
                    end = end.max(begun + step.gpu + 500);
                }
            }
            3 | 4 => {
                let until = match step.kind {
                    3 => *queue,
                    _ => streams.into_iter().max().unwrap_or(0),
                };
                end = end.max(until + 700);
                let kind = if step.kind == 3 {
                    SyncKind::Stream
                } else {
                    SyncKind::Context
                };
                let sync = Sync {
                    kind,
                    context: 1,
                    stream: (step.kind == 3).then_some(step.stream),
                    event: None,
                };
                push(start + 100, end - 100, What::Sync(sync));
            }
            _ => {}
        }
        push(
            start,
            end,
            What::Call(HostCall {
                thread: step.thread,
                name: names[usize::from(step.kind)],
                code: 0,
            }),
        );
        clock[step.thread as usize] = end;
    }
    batch
}

pub fn trace_of(batch: Batch) -> Trace {
    let mut trace = Trace::default();
    trace.apply(batch);
    trace
}

/// The stretches of a stream with nothing running, each with the operation that ends it.
pub fn gaps_of_stream(graph: &Graph, lane: LaneId) -> Vec<Gap> {
    let (mut gaps, mut busy_until) = (Vec::new(), Ns::MAX);
    for &next in graph.ops.of_lane(lane) {
        let span = graph.ops.span(next);
        if span.start > busy_until {
            let span = Span::new(busy_until, span.start);
            gaps.push(Gap { span, next });
        }
        busy_until = match busy_until {
            Ns::MAX => span.end,
            until => until.max(span.end),
        };
    }
    gaps
}

//! Timelines to measure with: many streams, kernels of a few shapes, copies, and their host calls, in
//! batches like those of a collector that flushes every few milliseconds.

use activity::{
    Activity, Batch, Copy, Def, Direction, HostCall, Kernel, LaunchShape, MemoryKind, Ns, Place,
    Span, What,
};

/// Records of a batch: what a busy program makes in about 20 ms.
const BATCH: usize = 4096;
/// Distinct launch configurations.
const SHAPES: u32 = 64;

/// What to make.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Operations in all.
    pub(crate) operations: usize,
    /// Streams they are spread over.
    pub(crate) streams: u32,
    /// Whether each has a host call's record too.
    pub(crate) with_calls: bool,
}

/// Batches of a program that launches `shape.operations` operations round robin over its streams.
/// Every eighth is a copy; a stream's operations follow each other.
pub(crate) fn batches(shape: Shape) -> impl Iterator<Item = Batch> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut free = vec![0 as Ns; shape.streams as usize];
    let mut made = 0usize;
    let per_operation = if shape.with_calls { 2 } else { 1 };
    std::iter::from_fn(move || {
        if made == shape.operations {
            return None;
        }
        let mut batch = Batch::default();
        if made == 0 {
            batch.defs = definitions();
        }
        let until = shape.operations.min(made + BATCH / per_operation);
        for i in made..until {
            let correlation = i as u32 + 1;
            let stream = i as u32 % shape.streams;
            // As many as the streams can take, so that they stay side by side and idle now and then.
            let called = i as Ns * (33_000 / Ns::from(shape.streams));
            if shape.with_calls {
                batch.items.push(Activity {
                    span: Span::new(called, called + 700),
                    correlation,
                    what: What::Call(HostCall {
                        thread: 1,
                        name: 0,
                        code: 0,
                    }),
                });
            }
            let start = free[stream as usize].max(called + 5_000);
            let length = 2_000 + (random.next() % 60_000) as Ns;
            free[stream as usize] = start + length;
            batch.items.push(Activity {
                span: Span::new(start, start + length),
                correlation,
                what: operation(stream, i, &mut random),
            });
        }
        made = until;
        Some(batch)
    })
}

fn operation(stream: u32, i: usize, random: &mut Random) -> What {
    let place = Place {
        device: 0,
        context: 1,
        stream,
    };
    if i % 8 < 7 {
        return What::Kernel(Kernel {
            place,
            shape: (random.next() % u64::from(SHAPES)) as u32,
            graph: 0,
            node: 0,
        });
    }
    let is_up = i % 16 < 8;
    What::Copy(Copy {
        place,
        direction: if is_up {
            Direction::H2D
        } else {
            Direction::D2H
        },
        from: if is_up {
            MemoryKind::Pinned
        } else {
            MemoryKind::Device
        },
        to: if is_up {
            MemoryKind::Device
        } else {
            MemoryKind::Pinned
        },
        is_async: true,
        bytes: 1 << (12 + random.next() % 8),
        peer: 0,
        graph: 0,
        node: 0,
    })
}

fn definitions() -> Vec<Def> {
    let name = |id: u32| Def::Name {
        id,
        text: format!("kernel_{id}"),
    };
    let shape = |id: u32| Def::Shape {
        id,
        shape: LaunchShape {
            name: id,
            grid: [128, 1, 1],
            block: [256, 1, 1],
            ..LaunchShape::default()
        },
    };
    (0..SHAPES)
        .map(name)
        .chain((0..SHAPES).map(shape))
        .collect()
}

/// A small generator, so that every run measures the same timeline (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

//! A timeline made for tests of exports, and what they share.

use activity::{
    Activity, Batch, Collective, Copy, Def, DeviceInfo, Direction, Health, HostCall, Kernel,
    LaunchShape, MemoryKind, Place, ProcessInfo, Range, RangeKind, Span, Sync, SyncKind, What,
};
use cuptop::export::{self, TimelineFormat};
use trace::{SourceInfo, SourceKind, Trace};

pub(crate) fn written(format: TimelineFormat, trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    export::write_data(
        format,
        trace,
        &cuptop::report::KnownGpus::default(),
        &mut out,
    )
    .expect("memory can be written to");
    out
}

/// Two processes; a copy and a kernel that overlap, a call for each, a wait, a repeat; simulated, with losses.
pub(crate) fn made() -> Trace {
    let mut trace = Trace::new(SourceInfo {
        kind: SourceKind::Simulator,
        title: "made".to_owned(),
        path: None,
        simulated: true,
        ..SourceInfo::default()
    });
    for process in 0..2u32 {
        let place = Place {
            device: process,
            context: 1,
            stream: 7,
        };
        let second = Place {
            stream: 13,
            ..place
        };
        let at = i64::from(process) * 1_000 + 1_000_000_000_000_123;
        let item = |start: i64, end: i64, correlation: u32, what: What| Activity {
            span: Span::new(at + start, at + end),
            correlation,
            what,
        };
        let call = |name| {
            What::Call(HostCall {
                thread: 42,
                name,
                code: 0,
            })
        };
        trace.apply(Batch {
            process,
            defs: vec![
                Def::Name {
                    id: 0,
                    text: "void say<\"a,b\">(int)\n\u{1b}[31m".to_owned(),
                },
                Def::Name {
                    id: 1,
                    text: "cudaLaunchKernel".to_owned(),
                },
                Def::Name {
                    id: 2,
                    text: "cudaMemcpyAsync".to_owned(),
                },
                Def::Name {
                    id: 3,
                    text: "streamed".to_owned(),
                },
                Def::Shape {
                    id: 0,
                    shape: LaunchShape {
                        grid: [8, 4, 1],
                        block: [128, 1, 1],
                        registers: 32,
                        static_shared: 100,
                        dynamic_shared: 24,
                        ..LaunchShape::default()
                    },
                },
                Def::Collective {
                    shape: 0,
                    collective: Collective {
                        operation: "allreduce".to_owned(),
                        group: "0 [0, 1]".to_owned(),
                        size: 2,
                        elements: [3, 4],
                        element: "Float".to_owned(),
                        peer: Some(1),
                    },
                },
                Def::Device(DeviceInfo {
                    id: process,
                    name: "Model".to_owned(),
                    ..DeviceInfo::default()
                }),
                Def::Process(ProcessInfo {
                    pid: 5000 + process,
                    command: "a.out".to_owned(),
                    ..ProcessInfo::default()
                }),
                Def::Thread {
                    thread: 42,
                    name: "main".to_owned(),
                },
            ],
            items: vec![
                item(0, 10, 1, call(2)),
                item(12, 20, 2, call(1)),
                item(
                    100,
                    300,
                    1,
                    What::Copy(Copy {
                        place,
                        direction: Direction::H2D,
                        from: MemoryKind::Pinned,
                        to: MemoryKind::Device,
                        is_async: true,
                        bytes: 10_000,
                        peer: process,
                        graph: 0,
                        node: 0,
                    }),
                ),
                item(
                    200,
                    450,
                    2,
                    What::Kernel(Kernel {
                        place: second,
                        shape: 0,
                        graph: 3,
                        node: 9,
                    }),
                ),
                // Starts before the kernel before it ends, on the same stream: it can not nest.
                item(
                    440,
                    460,
                    2,
                    What::Kernel(Kernel {
                        place: second,
                        shape: 0,
                        graph: 3,
                        node: 10,
                    }),
                ),
                item(
                    30,
                    460,
                    3,
                    What::Sync(Sync {
                        kind: SyncKind::Stream,
                        context: 1,
                        stream: Some(13),
                        event: None,
                    }),
                ),
                item(
                    0,
                    470,
                    0,
                    What::Range(Range {
                        kind: RangeKind::Repeat,
                        name: 3,
                        thread: 42,
                        index: 1,
                    }),
                ),
            ],
            health: Some(Health {
                received: 9,
                lost: 2,
                ..Health::default()
            }),
            ..Batch::default()
        });
    }
    trace
}

//! Small programs for the model, and what it makes of them.

use activity::{
    Activity, Copy, Direction, EventRecord, Kernel, MemoryAction, MemoryKind, MemoryOp, Ns, Place,
    Sync, SyncKind, What,
};
use profile::Profile;
use sim::machine::Machine;
use sim::program::{
    Engine, EventKey, Item, Load, Operation, Returns, Step, StreamConfig, StreamKey, Target,
};

/// The name of every call.
const CALL: u32 = 1;
/// What every submitting call costs.
const COST: Ns = 10;

/// A profile with round numbers; the comment in `sim.rs` lists them.
pub(crate) fn profile() -> Profile {
    let mut p = Profile::bundled();
    p.copy.h2d_shared_gbps = p.copy.h2d_gbps / 2.0;
    p.copy.d2h_shared_gbps = p.copy.d2h_gbps / 2.0;
    p.api.sync_ns = 5;
    p.api.between_ns = 1;
    p.latency.launch_ns = 100;
    p.latency.copy_ns = 100;
    p.latency.kernel_to_kernel_ns = 20;
    p.latency.kernel_to_copy_ns = 20;
    p.latency.copy_to_kernel_ns = 20;
    p.latency.copy_to_copy_ns = 30;
    p.latency.poll_ns = 0;
    p.latency.event_ns = 40;
    p.latency.graph_node_ns = 7;
    p.latency.wake_ns = 50;
    p
}

/// What the model made of a program, each kind in the order of start and then of end.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Run {
    pub(crate) operations: Vec<Activity>,
    pub(crate) calls: Vec<Activity>,
    pub(crate) events: Vec<Activity>,
    pub(crate) memory: Vec<Activity>,
    pub(crate) is_done: bool,
}

impl Run {
    pub(crate) fn of(streams: u32, steps: Vec<Step>) -> Run {
        Run::with_profile(&profile(), streams, steps)
    }

    pub(crate) fn with_profile(profile: &Profile, streams: u32, steps: Vec<Step>) -> Run {
        let configs = (0..streams).map(|key| config(key, 0)).collect();
        run(profile, configs, steps)
    }

    pub(crate) fn with_priorities(priorities: &[i32], steps: Vec<Step>) -> Run {
        let configs = (priorities.iter().zip(0..))
            .map(|(priority, key)| config(key, *priority))
            .collect();
        run(&profile(), configs, steps)
    }
}

fn config(key: StreamKey, priority: i32) -> StreamConfig {
    StreamConfig {
        place: place(key),
        priority,
    }
}

/// Streams are numbered in activities as in the program.
pub(crate) fn place(stream: StreamKey) -> Place {
    Place {
        device: 0,
        context: 1,
        stream,
    }
}

fn run(profile: &Profile, streams: Vec<StreamConfig>, steps: Vec<Step>) -> Run {
    let opened = streams
        .into_iter()
        .zip(0..)
        .map(|(config, key)| Step::Open(key, config));
    let steps: Vec<Step> = opened.chain(steps).collect();
    let mut machine = Machine::new(profile, 1, steps.into_iter(), 0);
    machine.advance(Ns::MAX);
    let (_, mut items) = machine.take();
    items.sort_by_key(|a| (a.span.start, a.span.end));
    let mut run = Run {
        is_done: machine.is_done(),
        ..Run::default()
    };
    for item in items {
        match item.what {
            What::Call(_) => run.calls.push(item),
            What::Event(_) => run.events.push(item),
            What::Memory(_) => run.memory.push(item),
            _ if item.is_operation() => run.operations.push(item),
            _ => {}
        }
    }
    run
}

pub(crate) fn submit(stream: StreamKey, item: Item) -> Step {
    let item = on(stream, item);
    Step::Submit {
        call: CALL,
        cost: COST,
        stream,
        item,
        returns: Returns::AtOnce,
        first_use: None,
    }
}

pub(crate) fn submit_blocking(stream: StreamKey, item: Item) -> Step {
    let item = on(stream, item);
    Step::Submit {
        call: CALL,
        cost: COST,
        stream,
        item,
        returns: Returns::After(0),
        first_use: None,
    }
}

/// The item with its operation placed on the stream.
fn on(stream: StreamKey, item: Item) -> Item {
    let Item::Run(mut op) = item else {
        return item;
    };
    match &mut op.what {
        What::Kernel(kernel) => kernel.place = place(stream),
        What::Copy(copy) => copy.place = place(stream),
        _ => {}
    }
    Item::Run(op)
}

/// A kernel that fills a share of the device and needs no memory bandwidth.
pub(crate) fn kernel(ns: Ns, share: f64) -> Item {
    kernel_with(ns, share, 0.0)
}

/// A kernel that fills the device.
pub(crate) fn whole_kernel(ns: Ns) -> Item {
    kernel(ns, 1.0)
}

/// A kernel that takes a share of the memory bandwidth.
pub(crate) fn kernel_with(ns: Ns, share: f64, memory: f64) -> Item {
    let what = What::Kernel(Kernel {
        place: place(0),
        shape: 1,
        graph: 0,
        node: 0,
    });
    Item::Run(Operation {
        what,
        engine: Engine::Compute {
            share,
            memory,
            load: Load::default(),
        },
        ns,
    })
}

/// A copy from the host; a byte a nanosecond.
pub(crate) fn copy_in(ns: Ns) -> Item {
    copy(ns, Direction::H2D, Engine::H2D)
}

/// A copy to the host; a byte a nanosecond.
pub(crate) fn copy_out(ns: Ns) -> Item {
    copy(ns, Direction::D2H, Engine::D2H)
}

fn copy(ns: Ns, direction: Direction, engine: Engine) -> Item {
    let what = What::Copy(Copy {
        place: place(0),
        direction,
        from: MemoryKind::Unknown,
        to: MemoryKind::Unknown,
        is_async: true,
        bytes: ns.unsigned_abs(),
        peer: 0,
        graph: 0,
        node: 0,
    });
    Item::Run(Operation { what, engine, ns })
}

pub(crate) fn record(event: EventKey, stream: StreamKey) -> Step {
    submit(
        stream,
        Item::Record(
            event,
            EventRecord {
                place: place(stream),
                event,
            },
        ),
    )
}

pub(crate) fn wait(event: EventKey, stream: StreamKey) -> Step {
    let kind = SyncKind::StreamWaitEvent;
    submit(stream, Item::Wait(event, sync_record(kind)))
}

pub(crate) fn sync(target: Target) -> Step {
    let record = sync_record(SyncKind::Context);
    Step::Sync {
        call: CALL,
        target,
        record,
    }
}

fn sync_record(kind: SyncKind) -> Sync {
    Sync {
        kind,
        context: 1,
        stream: None,
        event: None,
    }
}

pub(crate) fn work(ns: Ns) -> Step {
    Step::Work(ns)
}

pub(crate) fn alloc(bytes: u64) -> Step {
    memory(MemoryAction::Alloc, bytes, None)
}

/// A plain free, which waits for the device.
pub(crate) fn free(bytes: u64) -> Step {
    memory(MemoryAction::Free, bytes, Some(0))
}

fn memory(action: MemoryAction, bytes: u64, waits_for: Option<u32>) -> Step {
    let op = MemoryOp {
        action,
        kind: MemoryKind::Device,
        place: place(0),
        bytes,
        address: 1,
        is_async: false,
    };
    Step::Memory {
        call: CALL,
        cost: COST,
        op,
        waits_for,
    }
}

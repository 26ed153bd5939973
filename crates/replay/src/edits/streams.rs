//! `own-stream`: independent batches of one stream run on a stream each.

use super::Editing;
use crate::program::{Class, Dep, NONE};
use activity::What;
use causes::graph::{CallId, CallKind, EdgeKind, Engine, Graph, OpId};
use trace::{LaneId, Trace};

/// How far through a batch its stream is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    New,
    In,
    Compute,
    Out,
}

/// A batch is copies to the device, what is done with them, copies back. A copy back that follows a copy in
/// with nothing between is none of its batch.
pub(super) fn own_stream(on: &mut Editing<'_, '_>) {
    let mut next = on.scene.trace.lanes().len() as u32;
    for list in on.streams() {
        let mut starts: Vec<usize> = Vec::new();
        let mut phase = Phase::New;
        for (at, &op) in list.iter().enumerate() {
            let engine = on.program.ops[op as usize].engine;
            let now = match engine {
                Engine::H2D => Phase::In,
                Engine::D2H => Phase::Out,
                _ => Phase::Compute,
            };
            let begins = matches!(
                (phase, now),
                (Phase::New, _)
                    | (Phase::Compute | Phase::Out, Phase::In)
                    | (Phase::In, Phase::Out)
            );
            if begins && on.has_op(op) {
                starts.push(at);
            }
            phase = now;
        }
        let ids = list.iter().map(|&op| on.program.op_id(op));
        if starts.len() < 2 || is_one_graph(on.scene.trace, on.scene.graph, ids) {
            continue;
        }
        on.applied.count += starts.len();
        let batch_of = |at: usize| starts.partition_point(|&start| start <= at);
        for (at, &op) in list.iter().enumerate() {
            on.program.ops[op as usize].stream = next + batch_of(at) as u32;
        }
        next += starts.len() as u32 + 1;
        part(on, &list);
    }
    if on.applied.count > 0 {
        cover(on);
        on.applied
            .note("assumes that batches are independent and use separate buffers");
    }
}

/// Whether some graph is launched more than once: it works in the same memory each time, so it waits for itself. Where no
/// record names its graph, a launch is told by the kernel that it begins with.
pub fn is_one_graph(trace: &Trace, graph: &Graph, ops: impl Iterator<Item = OpId>) -> bool {
    let mut launches: Vec<(u32, u32, CallId)> = Vec::new();
    for op in ops {
        let call = graph.ops.call[op as usize];
        if call == NONE
            || graph.calls.kind[call as usize] != CallKind::GraphLaunch
            || launches.last().is_some_and(|last| last.2 == call)
        {
            continue;
        }
        let (lane, row) = graph.ops.place(op);
        let what = trace.what(lane, row);
        let shape = match what {
            What::Kernel(kernel) => kernel.shape,
            _ => NONE,
        };
        launches.push((what.graph(), shape, call));
    }
    launches.sort_unstable();
    launches.dedup();
    let mut pairs = launches.windows(2);
    pairs.any(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1))
}

/// Operations of different batches no longer follow each other but for their engine.
fn part(on: &mut Editing<'_, '_>, list: &[u32]) {
    let stream = |on: &Editing<'_, '_>, op: u32| on.program.ops[op as usize].stream;
    let mut last_copy: [Option<u32>; 2] = [None; 2];
    for &op in list {
        let of = &on.program.ops[op as usize];
        let (mine, engine) = (of.stream, of.engine);
        let mut deps = on.program.lists.get(of.deps).to_vec();
        deps.retain(|dep| {
            let is_stream = matches!(
                dep.class,
                Class::Between {
                    kind: EdgeKind::Stream,
                    ..
                }
            );
            !is_stream || stream(on, dep.op) == mine
        });
        let slot = [Engine::H2D, Engine::D2H].iter().position(|&e| e == engine);
        if let Some(before) = slot.and_then(|slot| last_copy[slot].replace(op))
            && deps.iter().all(|dep| dep.op != before)
        {
            let (delay, class) = on.program.delay(EdgeKind::Engine, engine, engine);
            deps.push(Dep::on_end(before, delay, class));
        }
        on.program.ops[op as usize].deps = on.program.lists.list(deps);
    }
}

/// A wait that stays is for everything that was issued before it, on whatever stream it now is.
fn cover(on: &mut Editing<'_, '_>) {
    let mut issued: Vec<u32> = (0..on.program.ops.len() as u32)
        .filter(|&op| on.program.ops[op as usize].call != NONE)
        .collect();
    issued.sort_by_key(|&op| on.program.ops[op as usize].call);
    let mut from = 0;
    for c in 0..on.program.calls.len() as u32 {
        let call = &on.program.calls[c as usize];
        let kind = on.program.kind(c);
        if call.is_gone || !matches!(kind, CallKind::WaitDevice | CallKind::WaitStream) {
            continue;
        }
        let process = |lane: u32| on.scene.trace.lanes()[lane as LaneId].key().process;
        let mine = process(on.program.lane(c));
        let to = issued.partition_point(|&op| on.program.ops[op as usize].call < c);
        let class = Class::Wake(kind);
        let delay = on.program.delays.typical(class, &on.program.known);
        let mut waits = call.waits;
        for &op in &issued[from..to] {
            let caller = on.program.ops[op as usize].call;
            if process(on.program.lane(caller)) == mine {
                on.program
                    .lists
                    .push(&mut waits, Dep::on_end(op, delay, class));
            }
        }
        on.program.calls[c as usize].waits = waits;
        from = to;
    }
}

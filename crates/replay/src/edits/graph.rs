//! `graph`: launches become one launch of a CUDA graph.

use super::{Bound, Editing};
use crate::program::{Class, GpuRates, NONE, Op};
use activity::Ns;
use activity::units::duration;
use causes::LAUNCH_GAP_MAX;
use causes::graph::{CallKind, EdgeKind, Engine};

/// What an empty kernel of a graph takes from its start to the next one's where nobody records the nodes. Measured on an
/// H200; its record, made one by one, says twice as much.
const NODE_LEAST: Ns = 530;

/// The most that it takes where every node is recorded: 0.83 to 2.8 us on H200s of several hosts.
const NODE_MOST: Ns = 2_800;

/// Of kernels that take longer, what a node takes beside is small.
const SHORT: Ns = 5_000;

/// Runs of launches. No wait of the host lies between them, no copy from or to it, no long work of the CPU and no step.
pub(super) fn graph(on: &mut Editing<'_, '_>) -> Result<(), String> {
    let mut ops: Vec<u32> = (0..on.program.ops.len() as u32)
        .filter(|&op| {
            on.program.ops[op as usize].call != NONE && !on.program.ops[op as usize].is_gone
        })
        .collect();
    ops.sort_by_key(|&op| (on.program.ops[op as usize].call, op));
    // A host that takes longer over launches than that which was measured takes longer over graphs.
    let pace = pace(on);
    let (mut at, mut ended) = (0, Ns::MIN / 2);
    let mut run: Vec<u32> = Vec::new();
    for c in 0..on.program.calls.len() as u32 {
        let from = at;
        while ops
            .get(at)
            .is_some_and(|&op| on.program.ops[op as usize].call == c)
        {
            at += 1;
        }
        let call = &on.program.calls[c as usize];
        if call.is_gone {
            continue;
        }
        let (kind, span) = (on.program.kind(c), on.program.call_span(c));
        // The CPU's own work stays.
        let is_worked = span.start - ended > LAUNCH_GAP_MAX;
        ended = ended.max(span.end);
        let mine = &ops[from..at];
        let is_launch = matches!(kind, CallKind::Launch | CallKind::Copy)
            && !mine.is_empty()
            && mine.iter().all(|&op| !is_of_host(on, op));
        let breaks = !call.waits.is_empty()
            || (!mine.is_empty() && !is_launch)
            || kind == CallKind::GraphLaunch;
        let is_new_step = run
            .first()
            .is_some_and(|&first| on.is_step_between(on.program.issued(first), span.start));
        if breaks || is_new_step || is_worked {
            one_of(on, std::mem::take(&mut run), pace)?;
        }
        if is_launch && !breaks && on.has_call(c) {
            run.extend_from_slice(mine);
        }
    }
    drop(ops);
    one_of(on, run, pace)
}

/// Copies from and to the host's memory are left outside: their addresses change from step to step.
fn is_of_host(on: &Editing<'_, '_>, op: u32) -> bool {
    let engine = on.program.ops[op as usize].engine;
    matches!(engine, Engine::H2D | Engine::D2H)
}

fn one_of(on: &mut Editing<'_, '_>, mut run: Vec<u32>, pace: f64) -> Result<(), String> {
    if run.len() < 2 {
        return Ok(());
    }
    let bound = on.scene.bound;
    let is_step = !on.scene.steps.is_empty();
    let Some([fixed, mut node]) = on.program.known.graph_call else {
        return Err(
            "the time of a graph launch is not known: this GPU is not calibrated (`cuptop calibrate`)".to_owned(),
        );
    };
    // Where nodes are not recorded, a launch takes hardly longer for many. The first launch brings them to the device,
    // and a run without steps may be that one.
    match bound {
        Bound::Least => node = 0,
        Bound::Most if !is_step => node += on.program.known.graph_upload.unwrap_or(0),
        Bound::Most | Bound::Likely => {}
    }
    let Some(first) = on.join_calls(&run, false) else {
        return Ok(());
    };
    let (fixed, node) = (fixed as f64 * pace, node as f64 * pace);
    let own = (fixed + node * run.len() as f64).round() as Ns;
    on.program.calls[first as usize].own = own;
    run.sort_unstable();
    let is_short = run
        .iter()
        .any(|&op| on.program.ops[op as usize].time < SHORT);
    make_nodes(on, &run, first);
    // A graph starts when its call has handed it over. A run that shows no steps is taken to be a loop over many
    // short graphs: nodes start as the host hands them over.
    for (i, &op) in run.iter().enumerate() {
        let of = &mut on.program.ops[op as usize];
        let known = &on.program.known;
        let launch = known.latency(of.engine).unwrap_or(0);
        let after = (launch - known.launch_call.unwrap_or(0)).max(0);
        let handed = if is_step {
            own
        } else {
            (fixed + node * (i + 1) as f64).round() as Ns
        };
        (of.launch, of.is_staged) = (handed + after, false);
    }
    on.applied.count += run.len();
    let many = if is_step {
        ""
    } else {
        "; no steps were found, so many short graphs are assumed"
    };
    on.applied.note(format!(
        "assumes {:.0} ns per node of a graph launch ({}, scaled to this CPU's launches), and a graph captured beforehand{many}",
        node, on.program.known.source
    ));
    if is_short {
        on.applied.unknown(format!(
            "kernels under {} take at least {} each in a graph, and up to {} while cuptop records each node",
            duration(SHORT),
            duration(NODE_LEAST),
            duration(NODE_MOST)
        ));
    }
    Ok(())
}

/// Makes the operations of a sorted run nodes of a graph that this call launches. Nodes of one stream follow each other as
/// nodes do.
fn make_nodes(on: &mut Editing<'_, '_>, run: &[u32], call: u32) {
    let bound = on.scene.bound;
    for &op in run {
        let before = run_before(on, run, op);
        let between = between(&on.program.known, bound, before);
        let of = &mut on.program.ops[op as usize];
        of.call = call;
        if bound == Bound::Least {
            of.time = least(&on.program.known, of.time);
        }
        for dep in on.program.lists.get_mut(of.deps) {
            if let (
                Class::Between {
                    kind: EdgeKind::Stream,
                    from,
                    to,
                },
                Some(between),
            ) = (dep.class, between)
                && holds(run, dep.op)
            {
                dep.class = Class::between(EdgeKind::GraphNode, from, to);
                dep.delay = match bound {
                    Bound::Most => between,
                    Bound::Least | Bound::Likely => dep.delay.min(between),
                };
            }
        }
    }
}

/// Whether an operation is one of a sorted run, most of which are numbered without a gap.
fn holds(run: &[u32], op: u32) -> bool {
    let (Some(&first), Some(&last)) = (run.first(), run.last()) else {
        return false;
    };
    (first..=last).contains(&op)
        && (run.get((op - first) as usize) == Some(&op) || run.binary_search(&op).is_ok())
}

/// The operation of the same run and stream that one follows.
fn run_before<'p>(on: &'p Editing<'_, '_>, run: &[u32], op: u32) -> Option<&'p Op> {
    let deps = on.program.lists.get(on.program.ops[op as usize].deps);
    let before = deps.iter().filter(|dep| holds(run, dep.op));
    let last = before.max_by_key(|dep| on.program.op_span(dep.op).end)?;
    Some(&on.program.ops[last.op as usize])
}

/// From the end of a node to the start of the next.
fn between(known: &GpuRates, bound: Bound, before: Option<&Op>) -> Option<Ns> {
    let between = known.graph_node?;
    Some(match bound {
        Bound::Least => 0,
        Bound::Likely => between,
        Bound::Most => between.max(NODE_MOST - before.map_or(NODE_MOST, |before| before.time)),
    })
}

/// A node's time where nobody records it: without what starting and ending a kernel costs, at most.
fn least(known: &GpuRates, time: Ns) -> Ns {
    (time - known.kernel_fixed.unwrap_or(0)).max(time.min(NODE_LEAST))
}

/// How long this host takes over a launch, over what the host took where the GPU was measured.
fn pace(on: &Editing<'_, '_>) -> f64 {
    let program = &on.program;
    let calls = program.calls.iter().zip(0..);
    let launches =
        calls.filter(|(call, c)| program.kind(*c) == CallKind::Launch && call.waits.is_empty());
    let mut times: Vec<Ns> = launches.map(|(_, c)| program.call_span(c).len()).collect();
    times.sort_unstable();
    match (times.get(times.len() / 2), on.program.known.launch_call) {
        (Some(&median), Some(known)) if known > 0 && median > 0 => median as f64 / known as f64,
        _ => 1.0,
    }
}

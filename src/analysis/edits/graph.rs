//! `graph`: launches become one launch of a CUDA graph.

use super::Editing;
use crate::activity::Ns;
use crate::analysis::graph::{CallKind, EdgeKind};
use crate::analysis::program::{Class, Engines, NONE};

/// Runs of launches with no wait of the host, no copy from or to it and no step between them.
pub(super) fn graph(on: &mut Editing<'_, '_>) -> Result<(), String> {
    let mut ops: Vec<u32> = (0..on.program.ops.len() as u32)
        .filter(|&op| {
            on.program.ops[op as usize].call != NONE && !on.program.ops[op as usize].is_gone
        })
        .collect();
    ops.sort_by_key(|&op| (on.program.ops[op as usize].call, op));
    let mut at = 0;
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
        let mine = &ops[from..at];
        let is_launch = matches!(call.kind, CallKind::Launch | CallKind::Copy)
            && !mine.is_empty()
            && mine.iter().all(|&op| !is_of_host(on, op));
        let breaks = !call.waits.is_empty()
            || (!mine.is_empty() && !is_launch)
            || call.kind == CallKind::GraphLaunch;
        let is_new_step = run
            .first()
            .is_some_and(|&first| on.is_step_between(on.issued(first), call.span.start));
        if breaks || is_new_step {
            one_of(on, &run)?;
            run.clear();
        }
        if is_launch && call_waits_not(on, c) && on.has_call(c) {
            run.extend_from_slice(mine);
        }
    }
    one_of(on, &run)
}

fn call_waits_not(on: &Editing<'_, '_>, call: u32) -> bool {
    on.program.calls[call as usize].waits.is_empty()
}

/// Copies from and to the host's memory are left outside: their addresses change from step to step.
fn is_of_host(on: &Editing<'_, '_>, op: u32) -> bool {
    use crate::analysis::graph::Engine;
    matches!(
        on.program.ops[op as usize].engine,
        Engine::H2D | Engine::D2H
    )
}

fn one_of(on: &mut Editing<'_, '_>, run: &[u32]) -> Result<(), String> {
    if run.len() < 2 {
        return Ok(());
    }
    let Some([fixed, node]) = on.program.known.graph_call else {
        return Err(
            "what launching a graph takes is not known: there is no profile of this GPU".to_owned(),
        );
    };
    let Some(first) = on.join_calls(run) else {
        return Ok(());
    };
    let call = &mut on.program.calls[first as usize];
    call.own = fixed + node * run.len() as Ns;
    let between = on.program.known.graph_node;
    for &op in run {
        let of = &mut on.program.ops[op as usize];
        of.call = first;
        for dep in &mut of.deps {
            if let (
                Class::Between {
                    kind: EdgeKind::Stream,
                    from,
                    to,
                },
                Some(between),
            ) = (dep.class, between)
                && run.binary_search(&dep.op).is_ok()
            {
                dep.class = Class::between(EdgeKind::GraphNode, from, to);
                dep.delay = dep.delay.min(between);
            }
        }
    }
    // The first nodes start when the call has handed the graph over.
    let own = on.program.calls[first as usize].own;
    for &op in run {
        let of = &mut on.program.ops[op as usize];
        let class = Class::Launch {
            to: of.engine,
            is_staged: false,
        };
        let launch = on
            .program
            .known
            .launch
            .map_or(0, |l| l[usize::from(Engines::is_copy(of.engine))]);
        let call = on.program.known.launch_call.unwrap_or(0);
        of.launch = (own + (launch - call).max(0), class);
    }
    on.applied.count += run.len();
    on.applied.note(format!(
        "launching a graph takes {fixed} ns and {node} ns a node: {}; the graph was made before",
        on.program.known.source
    ));
    Ok(())
}

//! Which delay each dependency has: that which was seen where it bound, else what is typical.

use super::Build;
use crate::graph::{Engine, LATENCY_MAX};
use crate::program::{Call, Dep, NONE, Op};
use activity::Ns;

impl Build<'_> {
    /// What did not bind gets the typical delay, as far as what was seen leaves room for it.
    pub(super) fn settle(&mut self) {
        let program = &mut self.program;
        for (op, bound) in program.ops.iter().zip(&self.binding) {
            // The staging lies between a copy's call and its start, whatever else had to end before.
            if (bound.is_none() || is_staged(op, &program.calls)) && op.call != NONE {
                program.delays.see(op.launch_class(), op.launch);
            }
        }
        program.delays.settle();
        for (op, bound) in program.ops.iter().zip(&self.binding) {
            let Some(dep) = bound.map(|at| program.lists.get(op.deps)[at]) else {
                continue;
            };
            // Launched so late that the launch may have held it as well, it says nothing of the other.
            let typical = program.delays.typical(op.launch_class(), &program.known);
            if !is_staged(op, &program.calls)
                && (op.call == NONE || op.launch - dep.delay >= typical)
            {
                program.delays.see(dep.class, dep.delay);
            }
        }
        program.delays.settle();
        for op in &mut program.ops {
            let typical = |class| program.delays.typical(class, &program.known);
            // What would have held it longest with typical delays did.
            let deps = program.lists.get_mut(op.deps);
            let after = deps.iter().map(|dep| typical(dep.class) - dep.delay);
            let last = after.enumerate().max_by_key(|&(at, time)| (time, at));
            let launched = (op.call != NONE).then(|| typical(op.launch_class()) - op.launch);
            let bound = match (last, launched) {
                (Some((_, time)), Some(launched)) if launched >= time => None,
                (Some((at, _)), _) => Some(at),
                (None, _) => None,
            };
            let unexplained = match bound {
                None => unexplained(op, deps, &program.calls),
                Some(_) => 0,
            };
            for (at, dep) in deps.iter_mut().enumerate() {
                if bound != Some(at) {
                    dep.delay = dep.delay.min(typical(dep.class) + unexplained);
                }
            }
            if bound.is_some() {
                op.launch = op.launch.min(typical(op.launch_class()));
            }
        }
        let waited = &self.graph.calls.waited[program.first_call as usize..];
        for (call, &waited) in program.calls.iter_mut().zip(waited) {
            let waits = program.lists.get_mut(call.waits);
            for wait in &mut *waits {
                if wait.op + program.first_op != waited && !wait.is_start {
                    wait.delay = wait
                        .delay
                        .min(program.delays.typical(wait.class, &program.known));
                }
            }
            // A call that turned out not to wait takes its own time.
            if waited == NONE && waits.iter().all(|w| !w.is_start) {
                call.own = call.span.len();
            }
        }
        program.order();
    }
}

/// How long an operation did not begin though its call had returned and nothing else is seen to have held it, beyond
/// what launches take. What it waited for nobody knows, so that nothing says that it would not wait behind another
/// operation as well.
fn unexplained(op: &Op, deps: &[Dep], calls: &[Call]) -> Ns {
    if op.call == NONE || is_staged(op, calls) {
        return 0;
    }
    let call = &calls[op.call as usize];
    let held = deps.iter().map(|dep| op.span.start - dep.delay);
    let since = held.fold(call.span.end, Ns::max);
    (op.span.start - since - LATENCY_MAX).max(0)
}

/// Whether the CPU stages what it copies before the copy begins. On the way back it does so behind it. A few bytes go
/// with the command: their call returns however long the copy is held.
fn is_staged(op: &Op, calls: &[Call]) -> bool {
    let is_held = |call: u32| op.span.start > calls[call as usize].span.end;
    op.is_staged && op.engine != Engine::D2H && (op.call == NONE || !is_held(op.call))
}

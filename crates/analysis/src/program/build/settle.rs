//! Which delay each dependency has: that which was seen where it bound, else what is typical.

use super::Build;
use crate::graph::{Engine, LATENCY_MAX};
use crate::program::{Call, Class, NONE, Op};
use activity::Ns;

impl Build<'_> {
    /// What did not bind gets the typical delay, as far as what was seen leaves room for it.
    pub(super) fn settle(&mut self) {
        let program = &mut self.program;
        for (op, bound) in program.ops.iter().zip(&self.binding) {
            // The staging lies between a copy's call and its start, whatever else had to end before.
            if (bound.is_none() || is_staged(op)) && op.call != NONE {
                program.delays.see(op.launch.1, op.launch.0);
            }
        }
        program.delays.settle();
        for (op, bound) in program.ops.iter().zip(&self.binding) {
            let Some(dep) = bound.map(|at| op.deps[at]) else {
                continue;
            };
            // Launched so late that the launch may have held it as well, it says nothing of the other.
            let typical = program.delays.typical(op.launch.1, &program.known);
            if !is_staged(op) && (op.call == NONE || op.launch.0 - dep.delay >= typical) {
                program.delays.see(dep.class, dep.delay);
            }
        }
        program.delays.settle();
        for op in &mut program.ops {
            let typical = |class| program.delays.typical(class, &program.known);
            // What would have held it longest with typical delays did.
            let after = op.deps.iter().map(|dep| typical(dep.class) - dep.delay);
            let last = after.enumerate().max_by_key(|&(at, time)| (time, at));
            let launched = (op.call != NONE).then(|| typical(op.launch.1) - op.launch.0);
            let bound = match (last, launched) {
                (Some((_, time)), Some(launched)) if launched >= time => None,
                (Some((at, _)), _) => Some(at),
                (None, _) => None,
            };
            let unexplained = match bound {
                None => unexplained(op, &program.calls),
                Some(_) => 0,
            };
            for (at, dep) in op.deps.iter_mut().enumerate() {
                if bound != Some(at) {
                    dep.delay = dep.delay.min(typical(dep.class) + unexplained);
                }
            }
            if bound.is_some() {
                op.launch.0 = op.launch.0.min(typical(op.launch.1));
            }
        }
        for call in &mut program.calls {
            let waited = self.graph.calls.waited[call.id as usize];
            for wait in &mut call.waits {
                if wait.op + self.first_op != waited && !wait.is_start {
                    wait.delay = wait
                        .delay
                        .min(program.delays.typical(wait.class, &program.known));
                }
            }
            // A call that turned out not to wait takes its own time.
            if waited == NONE && call.waits.iter().all(|w| !w.is_start) {
                call.own = call.span.len();
            }
        }
        program.order();
    }
}

/// How long an operation did not begin though its call had returned and nothing else is seen to have held it, beyond
/// what launches take. What it waited for nobody knows, so that nothing says that it would not wait behind another
/// operation as well.
fn unexplained(op: &Op, calls: &[Call]) -> Ns {
    if op.call == NONE || is_staged(op) {
        return 0;
    }
    let call = &calls[op.call as usize];
    let held = op.deps.iter().map(|dep| op.span.start - dep.delay);
    let since = held.fold(call.span.end, Ns::max);
    (op.span.start - since - LATENCY_MAX).max(0)
}

/// Whether the CPU stages what it copies before the copy begins. On the way back it does so behind it.
fn is_staged(op: &Op) -> bool {
    matches!(op.launch.1, Class::Launch { to, is_staged: true } if to != Engine::D2H)
}

//! Which delay each dependency has: that which was seen where it bound, else what is typical.

use super::Build;
use crate::program::{Dep, NONE, Op};
use activity::Ns;
use causes::graph::{Engine, LATENCY_MAX};

impl Build<'_, '_> {
    /// What did not bind gets the typical delay, as far as what was seen leaves room for it.
    pub(super) fn settle(&mut self) {
        let (graph, program) = (self.graph, &mut self.program);
        let (first_call, first_op) = (program.first_call, program.first_op);
        // When an operation's call returned, and when it began.
        let times = |op: &Op, at: usize| {
            let returned = match op.call {
                NONE => Ns::MAX,
                call => graph.calls.end[(first_call + call) as usize],
            };
            [returned, graph.ops.start[first_op as usize + at]]
        };
        for ((at, op), bound) in program.ops.iter().enumerate().zip(&self.binding) {
            // The staging lies between a copy's call and its start, whatever else had to end before.
            if (bound.is_none() || is_staged(op, times(op, at))) && op.call != NONE {
                program.delays.see(op.launch_class(), op.launch);
            }
        }
        program.delays.settle();
        for ((at, op), bound) in program.ops.iter().enumerate().zip(&self.binding) {
            let Some(dep) = bound.map(|bound| program.lists.get(op.deps)[bound]) else {
                continue;
            };
            // Launched so late that the launch may have held it as well, it says nothing of the other.
            let typical = program.delays.typical(op.launch_class(), &program.known);
            if !is_staged(op, times(op, at))
                && (op.call == NONE || op.launch - dep.delay >= typical)
            {
                program.delays.see(dep.class, dep.delay);
            }
        }
        program.delays.settle();
        for (i, op) in program.ops.iter_mut().enumerate() {
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
                None => unexplained(op, deps, times(op, i)),
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
        for (call, id) in program.calls.iter_mut().zip(first_call..) {
            let waited = graph.calls.waited[id as usize];
            let waits = program.lists.get_mut(call.waits);
            for wait in &mut *waits {
                if wait.op + first_op != waited && !wait.is_start {
                    wait.delay = wait
                        .delay
                        .min(program.delays.typical(wait.class, &program.known));
                }
            }
            // A call that turned out not to wait takes its own time.
            if waited == NONE && waits.iter().all(|w| !w.is_start) {
                call.own = graph.calls.span(id).len();
            }
        }
        program.order();
    }
}

/// How long an operation did not begin though its call had returned and nothing else is seen to have held it, beyond
/// what launches take. What it waited for nobody knows, so that nothing says that it would not wait behind another
/// operation as well.
fn unexplained(op: &Op, deps: &[Dep], [returned, start]: [Ns; 2]) -> Ns {
    if op.call == NONE || is_staged(op, [returned, start]) {
        return 0;
    }
    let held = deps.iter().map(|dep| start - dep.delay);
    let since = held.fold(returned, Ns::max);
    (start - since - LATENCY_MAX).max(0)
}

/// Whether the CPU stages what it copies before the copy begins. On the way back it does so behind it. A few bytes go
/// with the command: their call returns however long the copy is held.
fn is_staged(op: &Op, [returned, start]: [Ns; 2]) -> bool {
    op.is_staged && op.engine != Engine::D2H && start <= returned
}

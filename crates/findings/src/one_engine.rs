//! Copies of one direction on several streams, which one engine takes one after the other.

use super::{DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::Ns;
use activity::units::percent;
use causes::graph::{EdgeKind, Engine, OpId};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // Beside kernels several streams have another purpose.
    if cases::ENGINE_SHARE.is_reached_by(f.part(f.compute_ns)) {
        return None;
    }
    let graph = scope.causes.graph();
    let ops = &graph.ops;
    let found = [Engine::H2D, Engine::D2H].into_iter().filter_map(|engine| {
        let is_within = |op: &OpId| (f.span.start..=f.span.end).contains(&ops.start[*op as usize]);
        let all = ops.of_engine(f.index, engine).iter().copied();
        let all: Vec<OpId> = all.filter(is_within).collect();
        // Another process's copies have their turn at times of the driver's.
        let is_queued = |op: &&OpId| {
            ops.edge[**op as usize] == EdgeKind::Engine
                && scope.causes.process(**op) == scope.causes.process(ops.bind[**op as usize])
        };
        let at: Vec<Occurrence> = all
            .iter()
            .filter(is_queued)
            .map(|&op| Occurrence::Row(ops.place(op)))
            .collect();
        let share = at.len() as f64 / all.len().max(1) as f64;
        // A scenario says what it means with two.
        let is_many =
            cases::LOOP_MIN.is_reached_by(at.len()) || (scope.planned.is_some() && !at.is_empty());
        (is_many && share >= thresholds::QUEUED_SHARE).then_some((at, all.len(), engine))
    });
    let (at, all, engine) = found.max_by_key(|found| found.0.len())?;
    let both = [f.h2d.busy_ns, f.d2h.busy_ns];
    let are_apart = both.iter().all(|it| *it > 0) && f.copy_ns == both.iter().sum::<Ns>();
    Some(Finding {
        title: format!(
            "{} of {all} copies ({}) wait for another stream's copy in the same direction: there is only one {}",
            at.len(),
            percent(at.len() as f64 / all as f64),
            engine.label(),
        ),
        advice: match are_apart {
            true => "A second stream does not help copies in one direction; it helps kernels. Copies up and down never overlap here either: a slice of a GPU (MIG) may have one engine for both.",
            false => "A second stream does not help copies in one direction; it helps kernels and the other direction.",
        }
        .to_owned(),
        ..scope.found(f.span_ns, 0, &at)
    })
}

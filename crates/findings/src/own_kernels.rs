//! What a kernel of the program's own does where a library has one: products of matrices, and what CUB does with rows of values.

use super::limits::{full, name, time};
use super::{Finding, Says, Scope, configs, migrations};
use ::program::Framework;
use activity::{Ns, Span};
use causes::sum_by;
use figures::DeviceFigures;
use figures::busy::mostly;
use figures::class::Class;
use figures::configs::Config;
use figures::own_work::{KINDS, OwnWork};
use rustc_hash::FxHashSet;
use trace::SourceKind;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // Frameworks call libraries; what is written beside them does what these have not.
    // A lesson's kernels are what it teaches, and Kineto is a framework's.
    let source = &scope.trace.source;
    let is_lesson = scope.planned.is_some() || source.simulated || source.kind == SourceKind::Cuda;
    let is_kineto = source.kind == SourceKind::Kineto;
    if scope.framework() != Framework::Cuda || is_lesson || is_kineto {
        return None;
    }
    let found = KINDS.iter().filter_map(|kind| found(kind, scope, f));
    found.max_by_key(|it| it.bound_ns)
}

/// What its kernels of one kind do.
fn found(of: &OwnWork, scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let mut all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
    // At the speed of memory it is as good as a library's.
    all.retain(|it| (of.is_its)(full(scope, it)) && it.row.class != Class::Memory);
    let its = all.clone();
    let sms = scope.trace.devices()[f.index].info.multiprocessors;
    all.retain(|it| !it.is_slow_by_its_grid(sms, &its));
    let (taken, most) = (time(&all), *all.first()?);
    // No library brings pages of managed memory sooner.
    let pages = migrations::pages(scope, f);
    let ran: FxHashSet<_> = configs::ran(scope, f, &all).iter().map(|it| it.0).collect();
    let lanes = scope.trace.lanes();
    let kernels = ran.iter().map(|at| lanes[at.0].span(at.1));
    let waits = kernels.filter_map(|it| Some(migrations::until_last(&pages, it)?.len()));
    // What runs beside others is no time less without it.
    let others = scope.operations(f).filter(|it| !ran.contains(&it.0));
    let others = Span::union_len(others.map(|it| it.1.span).collect());
    let saved = taken.min(f.busy_ns - others);
    if !configs::is_worth(scope, f, saved) || 2 * waits.sum::<Ns>() > taken {
        return None;
    }
    let part = configs::kernel_time(scope, f);
    let own = match sum_by(all.iter().map(|it| (it.shape.name, it.row.total_ns))).as_slice() {
        [_] => format!("by a kernel of its own, {}", name(scope, most)),
        several => {
            let mostly = mostly(several[0].1, taken);
            format!(
                "by {} kernels of its own, {mostly} {}",
                several.len(),
                name(scope, most)
            )
        }
    };
    let (library, change) = of.library_for(full(scope, most));
    let OwnWork { does, of_it, .. } = of;
    Some(Finding {
        title: format!("the program {does} {own}, for {}", part.words(taken)),
        advice: format!(
            "{}{library} has tuned kernels for that. Of a kernel that is written to learn, it shows what the GPU can do.",
            configs::first(f)
        ),
        change: scope.changes(change, None),
        says: Some(Says::of_kernels(
            f,
            format!("{} in {of_it} {own}", part.of_it(taken)),
        )),
        cure: library,
        is_all: true,
        ..scope.found(f.span_ns, saved, &configs::places(scope, f, &all))
    })
}

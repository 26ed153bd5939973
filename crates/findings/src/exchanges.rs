//! Data that processes exchange through the host's memory, by MPI, again and again.

use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use activity::units::{bytes, duration, percent};
use activity::{Span, What};
use causes::{Bound, is_mpi};
use figures::exchanges::{self, Exchanges};

/// MPI has the device's pointers and copies by itself.
const STAGED: &str = "MPI was given pointers of the GPU, and yet copies through the host. Let it copy from GPU to GPU (UCX: cuda_ipc and gdr_copy), or use NCCL (ncclSend, ncclRecv). Compute the border first, and exchange it beside the inner work.";

/// The program copies what it hands to MPI.
const COPIED: &str = "Hand the GPU's pointers to a CUDA-aware MPI, or use NCCL (ncclSend, ncclRecv). Compute the border first, and exchange it beside the inner work.";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let found = of_device(scope, f)?;
    let kernels = scope
        .operations(f)
        .filter(|it| matches!(it.1.what, What::Kernel(_)));
    let kernels: Vec<Span> = kernels.map(|it| it.1.span).collect();
    let within = found.spans.iter().map(|it| it.intersect(f.span));
    let both = within.chain(kernels.iter().copied()).collect();
    let alone = Span::union_len(both) - Span::union_len(kernels);
    if !cases::WORTH_SHARE.is_reached_by(f.part(alone)) {
        return None;
    }
    let (by, each) = (&found.by, bytes(found.bytes / found.ops.len() as u64));
    let (advice, change) = match found.within {
        true => (
            STAGED,
            format!("try ncclGroupStart: ncclSend, ncclRecv in place of {by}"),
        ),
        false => (
            COPIED,
            format!("try {by}: pointers of the GPU, by a CUDA-aware MPI"),
        ),
    };
    let at: Vec<_> = found
        .ops
        .iter()
        .map(|&op| Occurrence::Row(scope.causes.graph().ops.place(op)))
        .collect();
    Some(Finding {
        title: format!(
            "processes exchange data through the host's memory, by {by}: {} back, and as many up; no kernel runs for {} ({}) meanwhile",
            activity::text::counted(
                at.len() as u64,
                &format!("copy of {each}"),
                &format!("copies of {each}")
            ),
            duration(alone),
            percent(f.part(alone)),
        ),
        advice: advice.to_owned(),
        change: scope.changes(&change, None),
        says: Some(Says {
            bound: Bound::Sync,
            part: f.part(alone).min(f.idle_share()),
            why: format!("data go between processes through the host, by {by}"),
        }),
        instead_of: &[Rule::NoOverlap],
        ..scope.found(f.span_ns, alone, &at)
    })
}

/// What is exchanged so, often enough; `None` also where no MPI is seen.
pub(super) fn of_device(scope: &Scope, f: &DeviceFigures) -> Option<Exchanges> {
    if scope.planned.is_some() || !scope.has_name(is_mpi) {
        return None;
    }
    let (trace, graph) = (scope.trace, scope.causes.graph());
    let found = exchanges::find(trace, graph, f.index, scope.window_on(f.index));
    cases::LOOP_MIN
        .is_reached_by(found.ops.len())
        .then_some(found)
}

//! Recording takes a part of the time that is measured: there is a cheaper way.

use super::{DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::{count, duration, percent, share};
use activity::{Ns, RangeKind, What};
use trace::{LaneKind, SourceKind};

/// Records of launches, which GPUs wait for.
pub(super) fn launches(scope: &Scope) -> Option<Finding> {
    // A scenario is always recorded as a whole.
    if scope.trace.source.kind == SourceKind::Cuda {
        return None;
    }
    let cost = scope.watching?;
    let mut lanes = scope.trace.lanes().iter();
    let waits = match lanes.any(|lane| lane.key().kind == LaneKind::Sync) {
        true => "Leave out --waits, which costs most here. ",
        false => "",
    };
    Some(Finding {
        advice: format!(
            "{waits}Record only a part (cuptop trace --duration 10s, --range NAME, or the key R on the screen). Each cause's share stays valid; without cuptop a step is shorter by this overhead.",
        ),
        ..found(scope, cost.launches, "launches", cost.waited_ns)?
    })
}

/// Clocks of CPU and GPU that the profiler did not bring together.
pub(super) fn clocks(scope: &Scope) -> Option<Finding> {
    let apart = duration(scope.causes.graph().clocks_apart()?);
    Some(Finding {
        title: format!("clocks of CPU and GPU are at least {apart} apart in this trace: copies begin behind the syncs that wait for them"),
        advice: "What the GPU did holds, and so does what the CPU did. Times from one to the other do not.".to_owned(),
        ..everywhere(scope)
    })
}

/// Python's functions, which PyTorch's profiler records one by one where it is told to, and ranges around each operator.
pub(super) fn stacks(scope: &Scope) -> Option<Finding> {
    let span = scope.trace.operations_extent()?;
    let launches = scope.causes.graph().ops.len().max(1);
    let rows = |wanted: RangeKind| {
        let (mut rows, mut known) = (0, Vec::new());
        let is_one = |it: &What| matches!(it, What::Range(of) if of.kind == wanted);
        for (id, lane) in scope.trace.lanes().iter().enumerate() {
            if matches!(lane.key().kind, LaneKind::Range { kind, .. } if kind == wanted) {
                scope.trace.rows_of(id, &mut known, is_one, |row, is_one| {
                    rows += usize::from(is_one && span.contains(lane.span(row).start));
                    true
                });
            }
        }
        rows
    };
    // PyTorch marks each operator where it is told to emit NVTX.
    #[rustfmt::skip]
    let marks = [
        (RangeKind::Function, thresholds::STACK_ROWS, "with_stack=True recorded", "Python functions", "with_stack"),
        (RangeKind::Nvtx, thresholds::NVTX_ROWS, "there are", "NVTX ranges", "most of them (emit_nvtx, autograd-nvtx)"),
    ];
    // Many beside few launches cost little where they are few in the time.
    let cost = |rows: usize| share(rows as Ns * thresholds::RANGE_NS, span.len());
    let mut marks = marks.into_iter().map(|it| (rows(it.0), it));
    let each = |rows: usize| ((rows + launches / 2) / launches) as u64;
    let (rows, (.., made, what, without)) =
        marks.find(|it| each(it.0) >= it.1.1 && cost(it.0) >= thresholds::WATCHED_SHARE)?;
    // Where the GPU is never kept waiting, longer CPU times change nothing.
    let waits = |f: &DeviceFigures| cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share());
    let title = format!(
        "profiling overhead: {made} {} {what} a launch, so CPU times are too long",
        count(each(rows))
    );
    scope.devices.iter().any(waits).then(|| Finding {
        title,
        advice: format!("Record again without {without}: the CPU's share is smaller then."),
        ..everywhere(scope)
    })
}

/// What recording made of the CPU's shares, where they are too large by it.
pub fn distorts(scope: &Scope) -> Option<String> {
    stacks(scope).or_else(|| launches(scope)).map(|it| it.title)
}

/// Records of graphs' nodes.
pub(super) fn nodes(scope: &Scope) -> Option<Finding> {
    let cost = scope.watching?;
    Some(Finding {
        advice: "For times closer to an unprofiled run, make one record per graph launch: cuptop trace --graphs whole.".to_owned(),
        ..found(scope, cost.graph_nodes, "nodes of CUDA graphs", cost.nodes_ns)?
    })
}

fn found(scope: &Scope, records: u64, of: &str, [least, most]: [Ns; 2]) -> Option<Finding> {
    let span = scope.watching?.span_ns;
    if share(least, span) < thresholds::WATCHED_SHARE {
        return None;
    }
    Some(Finding {
        title: format!(
            "profiling overhead: recording {} {of} costs up to {} ({}, estimated from an H200)",
            count(records),
            duration(most),
            percent(share(most, span)),
        ),
        ..everywhere(scope)
    })
}

/// The program does not save it: it is the recorder's own.
fn everywhere(scope: &Scope) -> Finding {
    let all = scope.devices.iter();
    let at: Vec<_> = all.map(|f| Occurrence::Gap(f.index, f.span)).collect();
    scope.found(0, 0, &at)
}

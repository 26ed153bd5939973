//! What to do about idle time that no rule has a cure for: where to look.

use crate::{Scope, host_bound};
use ::program::Framework;
use ::program::cures;
use activity::Ns;
use causes::graph::CallId;
use causes::{Cause, Group};
use figures::{DeviceFigures, communication::packs};
use trace::describe::is_input;

/// What to do where no rule has a cure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Look at work that has a name.
    Look,
    /// The next batch of TensorFlow.
    Input,
    /// What DistributedDataParallel copies to all ranks before each forward.
    Buffers,
    Once,
    /// Nothing says what the CPU works on.
    Sample,
    Mark,
    Native,
    Blocked,
    Output,
    InManyFunctions,
    WhileItWaits,
    LikelyBatch,
    LateBatch,
    Managed,
    SetUp,
    WarmUp,
    Launches,
    Syncs,
    NoRecord,
    Draws,
    Late,
    NoCalls,
    NoCallsOfPyTorch,
}

impl Way {
    pub(super) fn advice(self) -> &'static str {
        match self {
            Way::Look => "Look at what the CPU does there: it may be done earlier, or less often.",
            Way::Input => cures::INPUT.0,
            Way::Buffers => cures::BUFFERS.0,
            Way::Once => {
                "It happens once. Where it is set-up or a check of results, leave it out of what you measure."
            }
            Way::Sample => {
                "See what the CPU works on: sample its stacks (in Python with --python), or mark the code with NVTX ranges."
            }
            Way::Native => cures::NATIVE.0,
            Way::Blocked => cures::BLOCKED.0,
            Way::Output => cures::OUTPUT.0,
            Way::InManyFunctions => {
                "No function holds most of it: the lines that stack samples saw are in a list of their own (--only lines)."
            }
            Way::WhileItWaits => {
                "What is queued starts only while the CPU waits. See what it needs there: that may be done once, or on the GPU."
            }
            Way::Mark => {
                "Mark the CPU's code with NVTX ranges, or sample its stacks, to see what it works on."
            }
            Way::LikelyBatch => {
                "Where that copy brings the next batch, prepare it ahead, in another thread or process."
            }
            Way::LateBatch => {
                "The next batch was not ready: prepare it while the GPU works on the one before, in another thread or process."
            }
            Way::Managed => cures::MANAGED.0,
            Way::SetUp => {
                "Allocate before the work, or from a pool that keeps memory (cudaMallocAsync, a caching allocator)."
            }
            Way::WarmUp => {
                "Warm up before measuring: run everything once. The program still takes that time."
            }
            Way::Launches => "Launch less often: one CUDA graph, fused kernels, larger batches.",
            Way::Syncs => "Look at what the CPU needs the result for: can the GPU do that part?",
            Way::NoRecord => "No record says why.",
            Way::Draws => {
                "The program shares memory with OpenGL or Vulkan: see what it draws with a profiler of graphics."
            }
            Way::Late => {
                "The GPU was free. A first launch may still load code. Else look who shares the GPU: nvidia-smi lists programs and displays. Windows and WSL send launches late."
            }
            Way::NoCalls => "The trace has no CUDA calls, which may say why.",
            Way::NoCallsOfPyTorch => {
                "The trace has no CUDA calls, which may say why: ProfilerActivity.CPU records them."
            }
        }
    }

    /// For the end of a headline; else empty.
    pub(super) fn next(self) -> &'static str {
        match self {
            Way::Native => "make that faster, or run it beside the GPU",
            Way::Look => "do it earlier, or less often",
            Way::Buffers => "try broadcast_buffers=False",
            Way::Input => "let tf.data load ahead",
            Way::Output => "write beside the GPU's work, or less often",
            Way::Once => "it happens once: do not measure set-up",
            Way::Sample => "cuptop trace --python shows what the CPU does",
            Way::Mark => "mark the CPU's code with NVTX ranges to see what it does",
            Way::LikelyBatch => "prepare ahead what is copied",
            _ => "",
        }
    }
}

/// Where to look. `is_warm`: no cold start is told of.
pub(super) fn way(
    scope: &Scope,
    f: &DeviceFigures,
    (group, time): (Group, Ns),
    (is_warm, is_managed, is_at_edge): (bool, bool, bool),
) -> Way {
    let in_names = |is_one: fn(&str) -> bool| {
        scope.idle_that(f, |gap, piece| {
            let name = scope.causes.host_name(piece.culprit);
            scope.causes.group(*gap, piece) == Group::Host
                && name.is_some_and(|id| is_one(scope.trace.names().full(id)))
        })
    };
    let loading = || scope.idle_that(f, |_, piece| piece.cause == Cause::Load);
    match group {
        Group::SetUp if is_warm && 2 * loading() >= time => Way::WarmUp,
        Group::SetUp => Way::SetUp,
        Group::Host if 2 * in_names(is_input) >= time => Way::Input,
        Group::Host if host_bound::sends_buffers(scope) && 2 * in_names(packs) >= time => {
            Way::Buffers
        }
        Group::Host if 2 * in_names(|_| true) >= time => Way::Look,
        Group::Host if is_managed => Way::Managed,
        Group::Host if is_at_edge => Way::Once,
        Group::Host if scope.framework() == Framework::Cuda => Way::Mark,
        Group::Host => Way::Sample,
        Group::Launch => Way::Launches,
        Group::Sync => Way::Syncs,
        Group::Unknown if scope.trace.threads().next().is_none() => match scope.framework() {
            Framework::PyTorch => Way::NoCallsOfPyTorch,
            _ => Way::NoCalls,
        },
        Group::Unknown if draws(scope) => Way::Draws,
        Group::Unknown if starts_late(scope, f, time) => Way::Late,
        Group::Queue | Group::Process | Group::Profiler | Group::Unknown => Way::NoRecord,
    }
}

/// Whether most of such idle time lies before operations that were launched in time.
pub(super) fn starts_late(scope: &Scope, f: &DeviceFigures, time: Ns) -> bool {
    2 * scope.idle_that(f, |_, piece| piece.cause == Cause::LateStart) > time
}

/// Whether a program hands memory of the GPU to what draws, over and over: that has the GPU meanwhile, and nothing records it.
pub(super) fn draws(scope: &Scope) -> bool {
    let graph = scope.causes.graph();
    let mut calls = (0..graph.calls.len() as CallId).filter(|it| {
        let name = graph.function(scope.trace, *it);
        name.contains("GraphicsUnmapResources")
    });
    scope.has_name(|it| it.contains("GraphicsUnmapResources"))
        && calls.nth(cases::LOOP_MIN.value()).is_some()
}

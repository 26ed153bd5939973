//! Passes of a model that go through all rows of the one before again, and a few new ones. So text is made without a KV cache.
//! And blocks that run forward again in backward.

use super::limits::{full, line_of, name};
use super::words::seen_at;
use super::{DeviceFigures, Finding, Says, Scope, configs, longest_first};
use activity::Ns;
use activity::units::{count, duration, percent, share};
use causes::graph::OpId;
use causes::sum_by;
use figures::communication::has_any;
use figures::configs::Config;
use figures::growth::Growth;
use figures::remarks::is_backward;

/// Kernels that have a block for each row or few of them: layer norms, and the mean of squares of one that PyTorch puts together. Those of
/// attention grow with a KV cache, too.
const NORMS: &str = "layer_norm LayerNorm rms_norm rmsnorm RMSNorm MeanOps";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !scope.has_name(|it| has_any(it, NORMS)) {
        return None;
    }
    let all = configs::of_device(scope, f);
    // By its kernels alone: a module that is imported may have functions of such names.
    if all.iter().any(|it| is_backward(full(scope, it))) {
        return None;
    }
    let norms = configs::such(scope, f, |it| has_any(it, NORMS));
    let by_name = norms.iter().map(|it| (it.shape.name, it.row.total_ns));
    let of = sum_by(by_name).first()?.0;
    let its: Vec<&Config> = norms.into_iter().filter(|it| it.shape.name == of).collect();
    if !cases::LOOP_MIN.is_reached_by(its.len()) {
        return None;
    }
    let rows = Growth::of_kernel(scope.trace, scope.operations(f).map(|it| it.1), of);
    // What is computed again is all but the first pass of each text.
    let again = share(rows.grown as Ns, (rows.grown + rows.anew + 1) as Ns);
    let bound = (f.compute_ns as f64 * again) as Ns;
    if !rows.is_steady() || !cases::LARGE_SHARE.is_reached_by(f.part(bound)) {
        return None;
    }
    let line = line_of(scope, f, &its);
    let found = scope.found(f.span_ns, bound, &configs::places(scope, f, &its));
    Some(Finding {
        title: format!(
            "{} passes go through all rows of the one before again, and a few new ones ({}: {} to {} blocks){}",
            count(rows.grown as u64),
            name(scope, its[0]),
            count(rows.least),
            count(rows.most),
            seen_at(line.as_ref()),
        ),
        advice: "Where a model makes text word by word, keep its keys and values (a KV cache): each pass then works on the new word alone.".to_owned(),
        change: scope.change("kv-cache", line.as_ref()),
        says: Some(Says::of_kernels(
            f,
            "each pass of the model goes through all rows again".to_owned(),
        )),
        ..found
    })
}

/// Activation checkpointing, which trades time for memory.
pub(super) fn checkpointed(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let graph = scope.causes.graph();
    let it = figures::recomputed::find(scope.trace, graph, f.index, f.span)?;
    if !cases::LARGE_SHARE.is_reached_by(f.part(it.time)) {
        return None;
    }
    let row = |&op: &OpId| (graph.ops.span(op).len(), graph.ops.place(op));
    let again = longest_first(it.between.iter().map(row).collect());
    let took = format!("{} ({})", duration(it.time), percent(f.part(it.time)));
    Some(Finding {
        title: format!(
            "blocks run forward a second time in backward, as torch/utils/checkpoint.py does, {} of {} times, for {took}",
            count(it.again as u64),
            count(it.forward as u64),
        ),
        advice: "Checkpointing throws activations away to save memory, and computes them again. Keep those of some blocks, or of all, where memory allows.".to_owned(),
        change: scope.change("checkpoint", None),
        says: Some(Says::of_kernels(f, format!("{} in running blocks forward again", percent(f.part(it.time))))),
        beside_ns: f.idle_ns,
        ..scope.found(f.span_ns, it.time, &again)
    })
}

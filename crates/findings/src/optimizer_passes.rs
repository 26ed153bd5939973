//! An optimizer that goes through all parameters several times, where one kernel goes through them once.
//!
//! PyTorch's `foreach` updates all parameters with one `multi_tensor_apply_kernel` for each operation of the formula, so that each reads and writes them
//! anew; `fused=True` makes one kernel of these (torch.optim's docs, 2.11).

use super::limits::{full, time};
use super::optimizer::FUSED;
use super::{Finding, Says, Scope, Severity, configs};
use activity::Ns;
use causes::around::{Around, OPTIMIZER};
use causes::graph::NONE;
use causes::sum_by;
use figures::DeviceFigures;
use figures::communication::has_any;
use figures::configs::Config;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    of_table(scope, f).or_else(|| several(scope, f))
}

/// An optimizer goes over seven values for each parameter, and its gradient is filled once. Where most parameters are an embedding's, that
/// takes one of so many parts of the optimizer's time at least.
const FILLED: Ns = 20;

/// A dense gradient of an embedding has all of its rows, so that the optimizer goes through each of them.
fn of_table(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let is_dense = |it: &str| has_any(it, "embedding_backward compute_grad_weight");
    if !scope.has_name(is_dense) {
        return None;
    }
    let such = |part: &str| configs::such(scope, f, |it| it.contains(part));
    let (all, fills) = (such("multi_tensor_apply_kernel"), such("FillFunctor"));
    let (taken, filling) = (time(&all), time(&fills));
    let part = configs::kernel_time(scope, f);
    let is_most = cases::MOST_OF_KERNELS.is_reached_by(part.share(taken));
    let is_table = cases::FEW_FILLS.holds(FILLED * filling < taken);
    if !is_most || is_table || !configs::is_worth(scope, f, taken) {
        return None;
    }
    Some(Finding {
        title: format!(
            "the optimizer goes through all rows of an embedding: {}",
            part.words(taken),
        ),
        advice: format!(
            "{}A step uses few rows, and the gradient has all: with sparse=True and SparseAdam it has those alone.",
            configs::first(f)
        ),
        change: scope.change("sparse", None),
        cure: "sparse gradients",
        says: Some(Says::of_kernels(
            f,
            format!(
                "{} in an optimizer that goes through whole embeddings",
                part.of_it(taken)
            ),
        )),
        ..scope.found(f.span_ns, taken + filling, &configs::places(scope, f, &all))
    })
}

/// Several kernels that each go through all parameters.
fn several(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let all = configs::such(scope, f, is_pass);
    let taken = time(&all);
    if !cases::PASSES_MIN.is_reached_by(all.len()) || !configs::is_worth(scope, f, taken) {
        return None;
    }
    let has = |word: &str| all.iter().any(|it| full(scope, it).contains(word));
    let is_adams = has("TernaryOpScalar") && has("PointwiseOpScalarList");
    let is_fused = |name: &str| FUSED.split(' ').any(|it| it == name);
    // Others of its kind clip slopes, or keep means of parameters.
    let name = match stepped(scope, f, &all) {
        Some((name, inside)) if 2 * inside >= taken && is_fused(&name) => name,
        None if is_adams => "Adam or AdamW".to_owned(),
        _ => return None,
    };
    let longest = all.iter().map(|it| it.row.total_ns).max().unwrap_or(0);
    let part = configs::kernel_time(scope, f);
    let title = format!(
        "{name} goes through all parameters once for each part of its formula: {}",
        part.words(taken),
    );
    let name = name.replace(" or ", "|torch.optim.");
    Some(Finding {
        severity: Severity::Info,
        title,
        advice: format!(
            "{}Make it with fused=True: one kernel then reads and writes each parameter once.",
            configs::first(f)
        ),
        change: scope.changes(&format!("torch.optim.{name}: fused=True"), None),
        ..scope.found(f.span_ns, taken - longest, &configs::places(scope, f, &all))
    })
}

fn is_pass(name: &str) -> bool {
    name.contains("multi_tensor_apply_kernel") && !name.contains("Fused")
}

/// The optimizer in whose step most of these kernels' time was launched, and that time.
fn stepped(scope: &Scope, f: &DeviceFigures, of: &[&Config]) -> Option<(String, Ns)> {
    let graph = scope.causes.graph();
    let mut around = Around::new(scope.trace);
    let ran = configs::ran(scope, f, of);
    let step = ran.into_iter().filter_map(|(place, time, _)| {
        let call = Some(graph.call_at(place)).filter(|it| *it != NONE)?;
        let names = around.call(graph, call);
        let step = names.iter().find_map(|it| it.strip_prefix(OPTIMIZER))?;
        Some((step.trim_end_matches(".step").to_owned(), time))
    });
    sum_by(step).into_iter().next()
}

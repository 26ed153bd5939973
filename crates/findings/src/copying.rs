//! Kernels that copy what the GPU has: tensors that grow by `torch.cat`, and weights that autocast converts at each use.

use super::limits::{launched_at, time};
use super::words::seen_at;
use super::{DeviceFigures, Finding, Rule, Says, Scope, configs};
use figures::communication::has_any;
use figures::remarks::is_backward;

struct Copying {
    is_its: fn(&str) -> bool,
    does: &'static str,
    advice: &'static str,
    cure: &'static str,
    change: &'static str,
    /// Words in names of kernels whose work goes with it.
    with: &'static str,
    /// Whether it is of weights: an optimizer changes them, so that they have to be converted in each step.
    is_of_weights: bool,
}

macro_rules! kinds {
    ($($its:literal $does:literal, $advice:expr, $cure:literal, $change:literal, $with:literal, $weights:literal;)*) => {
        const KINDS: &[Copying] = &[$(Copying {
            is_its: |name| name.contains($its),
            does: $does,
            advice: $advice,
            cure: $cure,
            change: $change,
            with: $with,
            is_of_weights: $weights,
        }),*];
    };
}

kinds! {
    "CatArrayBatchedCopy" "torch.cat", "What grows by torch.cat is read and written anew each time. Make room for all of it once, and write each part into its place.", "writing into place", "torch.cat: in place of it room that is made once", "", false;
    "bfloat16_copy_kernel" "conversions to bfloat16", CONVERTS, "converting once", "model.to: torch.bfloat16", "", true;
    "::float16_copy_kernel" "conversions to float16", CONVERTS, "converting once", "model.to: torch.float16", "", true;
    "direct_copy_kernel" "copies of tensors", "What is expanded, turned or cut is written anew by reshape, contiguous, clone or copy_. Where heads share keys and values, attention takes them as they are (enable_gqa).", "not copying tensors", "try scaled_dot_product_attention: enable_gqa=True in place of repeated keys and values; .reshape|.contiguous|.clone: leave out where a view does", "sdpa flash fmha attention", false;
    "indexing_backward_kernel" "sums by index that sort first", "So do index_put_ with accumulate, the gradient of x[index], and scatter_add_ or index_add_ while algorithms have to be deterministic. Else index_add_, scatter_add_ and index_select add by atomics, without a sort.", "adding by atomics", "try torch.use_deterministic_algorithms: False; try .index_put_: index_add_, by atomics", "RadixSort arange_cuda_out div_trunc_kernel", false;
}

const CONVERTS: &str = "Autocast converts weights at each use. Where nothing trains them, convert the model once, before the loop.";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let found = KINDS.iter().filter_map(|kind| kind.found(scope, f));
    found.max_by_key(|it| it.bound_ns)
}

impl Copying {
    fn found(&self, scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
        let with = time(&configs::such(scope, f, |it| has_any(it, self.with)));
        let all = configs::such(scope, f, self.is_its);
        let (taken, kernels) = (time(&all), configs::kernel_time(scope, f));
        let is_most = cases::MOST_OF_KERNELS.is_reached_by(kernels.share(taken));
        if all.is_empty() || !is_most || !configs::is_worth(scope, f, taken) {
            return None;
        }
        let trains = |it: &str| it.contains("multi_tensor_apply") || is_backward(it);
        if self.is_of_weights && scope.has_name(trains) {
            return None;
        }
        let ran = configs::ran(scope, f, &all).into_iter();
        let places: Vec<_> = ran.map(|it| it.0).collect();
        let line = launched_at(scope, &places).telling(scope.trace);
        let does = self.does;
        Some(Finding {
            title: format!("{does}: {}{}", kernels.words(taken), seen_at(line.as_ref())),
            advice: format!("{}{}", configs::first(f), self.advice),
            change: scope.changes(self.change, None),
            says: Some(Says::of_kernels(
                f,
                format!("{} in {does}", kernels.of_it(taken)),
            )),
            instead_of: &[Rule::LatencyBound, Rule::MemoryChain],
            cure: self.cure,
            // Fewer kernels are waited for less.
            beside_ns: f.idle_ns + with,
            ..scope.found(f.span_ns, taken, &configs::places(scope, f, &all))
        })
    }
}

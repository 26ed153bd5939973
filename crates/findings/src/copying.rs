//! Kernels that copy what the GPU has: tensors that grow by `torch.cat`, and weights that autocast converts at each use.

use super::limits::{full, launched_at, time};
use super::words::seen_at;
use super::{DeviceFigures, Finding, Rule, Says, Scope, configs};
use activity::units::duration;
use figures::configs::Config;
use figures::remarks::is_backward;

struct Copying {
    is_its: fn(&str) -> bool,
    does: &'static str,
    advice: &'static str,
    cure: &'static str,
    change: &'static str,
    /// Whether it is of weights: an optimizer changes them, so that they have to be converted in each step.
    is_of_weights: bool,
}

const KINDS: [Copying; 3] = [
    Copying {
        is_its: |name| name.contains("CatArrayBatchedCopy"),
        does: "torch.cat",
        advice: "What grows by torch.cat is read and written anew each time. Make room for all of it once, and write each part into its place.",
        cure: "writing into place",
        change: "torch.cat: in place of it room that is made once",
        is_of_weights: false,
    },
    Copying {
        is_its: |name| name.contains("bfloat16_copy_kernel"),
        does: "conversions to bfloat16",
        advice: CONVERTS,
        cure: "converting once",
        change: "model.to: torch.bfloat16",
        is_of_weights: true,
    },
    Copying {
        is_its: |name| name.contains("::float16_copy_kernel"),
        does: "conversions to float16",
        advice: CONVERTS,
        cure: "converting once",
        change: "model.to: torch.float16",
        is_of_weights: true,
    },
];

const CONVERTS: &str = "Autocast converts weights at each use. Where nothing trains them, convert the model once, before the loop.";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let found = KINDS.iter().filter_map(|kind| kind.found(scope, f));
    found.max_by_key(|it| it.bound_ns)
}

impl Copying {
    fn found(&self, scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
        let mut all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
        all.retain(|it| (self.is_its)(full(scope, it)));
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
            title: format!(
                "{does}: {} ({}){}",
                duration(taken),
                kernels.words(taken),
                seen_at(line.as_ref())
            ),
            advice: format!("{}{}", configs::first(f), self.advice),
            change: scope.changes(self.change, None),
            says: Some(Says::of_kernels(
                f,
                format!("{} in {does}", kernels.of_it(taken)),
            )),
            instead_of: &[Rule::LatencyBound, Rule::MemoryChain],
            cure: self.cure,
            // Fewer kernels are waited for less.
            beside_ns: f.idle_ns,
            ..scope.found(f.span_ns, taken, &configs::places(scope, f, &all))
        })
    }
}

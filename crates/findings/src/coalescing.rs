//! Sparse tensors of PyTorch that are sorted and added up again each time, as nobody keeps what comes of it.

use super::limits::{line_of, time};
use super::words::seen_at;
use super::{DeviceFigures, Finding, Says, Scope, configs};
use activity::text::counted;
use activity::units::{duration, percent};
use figures::communication::has_any;

/// PyTorch's kernel that adds up equal places of a sparse tensor.
const ADDS: &str = "coalesceValuesKernel";
/// What it sorts places with, and works them out with.
const SORTS: &str = "merge_sort RadixSort unique_by_key _flatten_indices arange_cuda_out div_trunc_kernel CUDAFunctor_add<long>";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !scope.has_name(|it| it.contains(ADDS)) {
        return None;
    }
    let adds = configs::such(scope, f, |it| it.contains(ADDS));
    let times: u64 = adds.iter().map(|it| it.row.count).sum();
    let all = configs::such(scope, f, |it| has_any(it, ADDS) || has_any(it, SORTS));
    let took = time(&all);
    if !cases::LOOP_MIN.is_reached_by(times as usize) || !configs::is_worth(scope, f, took) {
        return None;
    }
    let line = line_of(scope, f, &all);
    let found = scope.found(f.span_ns, took, &configs::places(scope, f, &all));
    Some(Finding {
        title: format!(
            "a sparse tensor is coalesced (sorted and added up) {}, for {} ({}){}",
            counted(times, "time", "times"),
            duration(took),
            percent(f.part(took)),
            seen_at(line.as_ref()),
        ),
        advice: "If its places do not change, coalesce it once before the loop, or keep it as CSR."
            .to_owned(),
        change: scope.change("coalesce", line.as_ref()),
        says: Some(Says::of_kernels(
            f,
            format!(
                "{} in coalescing a sparse tensor",
                configs::kernel_time(scope, f).of_it(took)
            ),
        )),
        // The CPU waits for how many are left, and launches more.
        beside_ns: f.idle_ns,
        ..found
    })
}

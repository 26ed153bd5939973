//! Arrays in double precision, which take twice the bytes. NumPy and CuPy make them where nobody asks: `float32` times `float64` is `float64`.

use super::limits::{full, line_of, name, time};
use super::words::seen_at;
use super::{DeviceFigures, Finding, Says, Scope, configs};
use activity::units::{duration, percent};
use figures::communication::has_any;

/// What CuPy calls double precision in names of kernels that work on each element.
const WIDE: &str = "float64 complex128";
/// cuFFT's kernels.
const TRANSFORMS: &str = "regular_fft vector_fft multi_bluestein_fft";

fn is_wide(name: &str) -> bool {
    is_mixed(name)
        || name.starts_with("cupy_") && has_any(name, WIDE)
        || has_any(name, TRANSFORMS) && name.contains("double")
}

/// Whether a kernel of CuPy takes both precisions, which hardly anybody wants.
fn is_mixed(name: &str) -> bool {
    let has = |both: [&str; 2]| both.iter().all(|it| name.contains(it));
    name.starts_with("cupy_") && (has(["float32", "float64"]) || has(["complex64", "complex128"]))
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let all = configs::such(scope, f, is_wide);
    let mixed = *all.iter().find(|it| is_mixed(full(scope, it)))?;
    let took = time(&all);
    if !configs::is_worth(scope, f, took) {
        return None;
    }
    let line = line_of(scope, f, &[mixed]);
    let part = configs::kernel_time(scope, f).of_it(took);
    Some(Finding {
        title: format!(
            "kernels over arrays in double precision take {} ({}): {} makes double of both{}",
            duration(took),
            percent(f.part(took)),
            name(scope, mixed),
            seen_at(line.as_ref()),
        ),
        advice: "Where single precision is precise enough, make all arrays float32 (complex64): they have half the bytes.".to_owned(),
        change: scope.change("single", line.as_ref()),
        says: Some(Says::of_kernels(f, format!("{part} over arrays in double precision"))),
        ..scope.found(f.span_ns, took / 2, &configs::places(scope, f, &all))
    })
}

//! Products of matrices by a kernel of the program's own, where cuBLAS has one that is several times as fast.

use super::limits::{full, name, time};
use super::scope::Config;
use super::{Finding, Says, Scope, configs};
use ::program::Framework;
use activity::units::duration;
use figures::DeviceFigures;
use figures::communication::has_any;
use trace::SourceKind;

/// What such a kernel is called.
const PRODUCT: &str = "matmul mat_mul matrixmul matrix_mul mmul gemm";

/// What is in the names of libraries' kernels, and of products that no library's call does.
const OTHERS: [&str; 3] = [
    "cutlass cublas xmma nvjet cudnn magma ampere volta turing maxwell pascal kepler hopper",
    "sm_ sm5 sm6 sm7 sm8 sm9 sm1 splitk gemmsn gemmk1 gemv implicit explicit convolve triton _vec",
    "fused bias relu gelu quant awq gptq marlin int4 int8 fp8 sparse spmm csr group moe",
];

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // Frameworks call libraries; what is written beside them does what these have not.
    // A lesson's kernels are what it teaches, and Kineto is a framework's.
    let source = &scope.trace.source;
    let is_lesson = scope.planned.is_some() || source.simulated || source.kind == SourceKind::Cuda;
    let is_kineto = source.kind == SourceKind::Kineto;
    if scope.framework() != Framework::Cuda || is_lesson || is_kineto {
        return None;
    }
    let mut all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
    all.retain(|it| is_own(full(scope, it)));
    let taken = time(&all);
    let most = *all.first()?;
    if !configs::is_worth(scope, f, taken) {
        return None;
    }
    let part = configs::kernel_time(scope, f);
    let own = format!("by a kernel of its own, {}", name(scope, most));
    Some(Finding {
        title: format!(
            "the program multiplies matrices {own}, for {} ({})",
            duration(taken),
            part.words(taken)
        ),
        advice: format!(
            "{}cuBLAS has tuned kernels for that. Of a kernel that is written to learn, it shows what the GPU can do.",
            configs::first(f)
        ),
        change: scope.changes("try cublasGemmEx: in place of that kernel", None),
        says: Some(Says::of_kernels(
            f,
            format!("{} in products of matrices {own}", part.of_it(taken)),
        )),
        is_all: true,
        ..scope.found(f.span_ns, taken, &configs::places(scope, f, &all))
    })
}

/// Whether a kernel is one, by its name without its arguments. cuBLAS's older ones are called by their tiles ("sgemm_32x32x32_NN").
fn is_own(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let own = name.split(['(', '<']).next().unwrap_or_default();
    let is_tile = own
        .split_once("gemm_")
        .is_some_and(|it| it.1.starts_with(|c: char| c.is_ascii_digit()));
    has_any(own, PRODUCT) && !OTHERS.iter().any(|it| has_any(&name, it)) && !is_tile
}

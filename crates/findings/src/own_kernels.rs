//! What a kernel of the program's own does where a library has one: products of matrices, and what CUB does with rows of values.

use super::limits::{full, name, time};
use super::scope::Config;
use super::{Finding, Says, Scope, configs};
use ::program::Framework;
use activity::units::duration;
use figures::DeviceFigures;
use figures::class::Class;
use figures::communication::has_any;
use trace::SourceKind;

/// What such kernels do, and the library's way.
struct OwnWork {
    is_its: fn(&str) -> bool,
    does: &'static str,
    of_it: &'static str,
    library: &'static str,
    change: &'static str,
}

const KINDS: [OwnWork; 4] = [
    OwnWork {
        is_its: is_product,
        does: "multiplies matrices",
        of_it: "products of matrices",
        library: "cuBLAS",
        change: "try cublasGemmEx: in place of that kernel",
    },
    OwnWork {
        is_its: |name| has_word(name, &["scan", "scans", "prefix", "compact", "compaction"]),
        does: "sums or packs values in order",
        of_it: "scans",
        library: "CUB",
        change: "try cub::DeviceScan, cub::DeviceSelect: in place of that kernel",
    },
    OwnWork {
        is_its: |name| has_word(name, &["reduce", "reduction"]),
        does: "reduces values",
        of_it: "reductions",
        library: "CUB",
        change: "try cub::DeviceReduce: in place of that kernel",
    },
    OwnWork {
        is_its: |name| {
            has_word(
                name,
                &["sort", "bitonic", "radix", "quicksort", "mergesort"],
            )
        },
        does: "sorts",
        of_it: "sorting",
        library: "CUB",
        change: "try cub::DeviceRadixSort: in place of that kernel",
    },
];

/// What a product's kernel is called.
const PRODUCT: &str = "matmul mat_mul mulmat matrixmul matrix_mul mmul gemm globalmm tiledmm";

/// What is in the names of libraries' kernels, and of products that no library's call does.
const OTHERS: [&str; 3] = [
    "cutlass cublas xmma nvjet cudnn magma ampere volta turing maxwell pascal kepler hopper",
    "sm_ sm5 sm6 sm7 sm8 sm9 sm1 splitk gemmsn gemmk1 gemv implicit explicit convolve triton _vec",
    "fused bias relu gelu quant awq gptq marlin int4 int8 fp8 sparse spmm csr group moe",
];

/// What else is in the name of a kernel that does nothing more. Kernels of whole algorithms have words of their own
/// ("bucket_reduce" of a multiplication on a curve).
const PLAIN: [&str; 4] = [
    "kernel kernels gpu cuda julia device global shared mem memory grid block blocks thread threads",
    "warp atomic atomics unroll unrolled shuffle shfl naive simple basic optimized opt my test",
    "first second final pass step stage level up down sweep sum max min add",
    "float double int long exclusive inclusive",
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
    let found = KINDS.iter().filter_map(|kind| kind.found(scope, f));
    found.max_by_key(|it| it.bound_ns)
}

impl OwnWork {
    fn found(&self, scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
        let mut all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
        // At the speed of memory it is as good as a library's.
        all.retain(|it| (self.is_its)(full(scope, it)) && it.row.class != Class::Memory);
        let its = all.clone();
        all.retain(|it| !is_slow_by_its_grid(scope, f, (it, &its)));
        let (taken, most) = (time(&all), *all.first()?);
        if !configs::is_worth(scope, f, taken) {
            return None;
        }
        let part = configs::kernel_time(scope, f);
        let own = format!("by a kernel of its own, {}", name(scope, most));
        let OwnWork {
            does,
            of_it,
            library,
            ..
        } = self;
        Some(Finding {
            title: format!(
                "the program {does} {own}, for {} ({})",
                duration(taken),
                part.words(taken)
            ),
            advice: format!(
                "{}{library} has tuned kernels for that. Of a kernel that is written to learn, it shows what the GPU can do.",
                configs::first(f)
            ),
            change: scope.changes(self.change, None),
            says: Some(Says::of_kernels(
                f,
                format!("{} in {of_it} {own}", part.of_it(taken)),
            )),
            cure: library,
            is_all: true,
            ..scope.found(f.span_ns, taken, &configs::places(scope, f, &all))
        })
    }
}

/// So many times as long a launch of the same kernel takes for its grid, and not for what the kernel does.
const FAR_SLOWER: i64 = 100;

/// Whether a launch leaves SMs empty, and one of the same kernel that fills them takes far less.
fn is_slow_by_its_grid(scope: &Scope, f: &DeviceFigures, (it, all): (&Config, &[&Config])) -> bool {
    let sms = f64::from(scope.trace.devices()[f.index].info.multiprocessors);
    let few = cases::UNDER_FILLED_BLOCKS.value() * sms;
    let blocks = |it: &Config| it.shape.grid.map(f64::from).iter().product::<f64>();
    let is_few = |it: &Config| blocks(it) < few;
    let is_other = |other: &&&Config| other.shape.name == it.shape.name && !is_few(other);
    let mut others = all.iter().filter(is_other);
    is_few(it) && others.any(|other| FAR_SLOWER * other.usual <= it.usual)
}

/// Whether a kernel's own name has one of some words, and otherwise plain ones alone.
fn has_word(name: &str, words: &[&str]) -> bool {
    let low = name.to_ascii_lowercase();
    let own = low.split(['(', '<']).next().unwrap_or_default();
    let own = own.rsplit(' ').next().unwrap_or_default();
    let mut parts = own
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|it| !it.is_empty());
    let is_plain =
        |it: &str| it.len() == 1 || PLAIN.iter().any(|of| of.split(' ').any(|word| word == it));
    parts.clone().any(|it| words.contains(&it))
        && parts.all(|it| words.contains(&it) || is_plain(it))
}

/// Whether a kernel multiplies matrices, by its name without its arguments. cuBLAS's older ones are called by their tiles ("sgemm_32x32x32_NN").
fn is_product(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let own = name.split(['(', '<']).next().unwrap_or_default();
    let is_tile = own
        .split_once("gemm_")
        .is_some_and(|it| it.1.starts_with(|c: char| c.is_ascii_digit()));
    has_any(own, PRODUCT) && !OTHERS.iter().any(|it| has_any(&name, it)) && !is_tile
}

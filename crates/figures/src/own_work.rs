//! What a program's own kernels do that a library has kernels for, by their names.

use activity::anonymous::is_own;
use activity::units::share;
use activity::{Activity, Frame, What};
use causes::around::Around;
use causes::graph::{Graph, NONE, OpId};
use causes::stacks::StackCounts;
use rustc_hash::FxHashSet;
use trace::{LaneId, Trace};

use crate::communication::has_any;

/// What such kernels do, and the library's way.
#[derive(Clone, Copy, Debug)]
pub struct OwnWork {
    /// Whether a kernel of this name does it.
    pub is_its: fn(&str) -> bool,
    pub does: &'static str,
    pub of_it: &'static str,
    pub library: &'static str,
    pub change: &'static str,
}

impl OwnWork {
    /// The library that has such kernels, and how it is called: Julia has its own.
    pub fn library_for(&self, kernel: &str) -> (&'static str, &'static str) {
        match kernel.contains("julia_") {
            true => ("CUDA.jl", ""),
            false => (self.library, self.change),
        }
    }
}

/// All that is told by name.
pub const KINDS: [OwnWork; 4] = [
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
const PRODUCT: &str = "wmma matmul mat_mul mulmat matrixmul matrix_mul mmul gemm globalmm tiledmm";

/// What is in the names of libraries' kernels, and of products that no library's call does.
const OTHERS: [&str; 3] = [
    "cutlass cublas xmma nvjet cudnn magma ampere volta turing maxwell pascal kepler hopper",
    "sm_ sm5 sm6 sm7 sm8 sm9 sm1 elem splitk gemmsn gemmk1 gemv implicit explicit convolve triton _vec",
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

/// What is in the names of the kernels that begin and end a parameter's update in PyTorch's Adam, which has so many at most. One with
/// `foreach` or `fused` has none of these kernels.
const ADAM: [&str; 2] = [
    "at::native::(anonymous namespace)::lerp_",
    "at::native::addcdiv_",
];
const OF_ONE: usize = 12;

/// Whether a kernel ends such an update.
pub fn ends_adams_update(name: &str) -> bool {
    name.contains(ADAM[1])
}

/// The kernels of Adam among operations, from a parameter's first average to its new value.
pub fn adams_loop(
    trace: &Trace,
    graph: &Graph,
    operations: impl Iterator<Item = ((LaneId, usize), Activity)>,
) -> FxHashSet<OpId> {
    let (mut all, mut one) = (FxHashSet::default(), Vec::new());
    for (place, activity) in operations {
        let What::Kernel(it) = activity.what else {
            continue;
        };
        let name = trace.names().full(trace.shape(it.shape).name);
        match name {
            name if name.contains(ADAM[0]) => one = vec![place],
            _ if !one.is_empty() && one.len() < OF_ONE => one.push(place),
            _ => one.clear(),
        }
        if ends_adams_update(name) {
            all.extend(one.drain(..).filter_map(|it| graph.op_at(it.0, it.1)));
        }
    }
    all
}

/// What samples saw in the step of an optimizer of the program's own, which PyTorch calls. One whose kernels take several parameters
/// goes through none of them.
pub fn own_steps(trace: &Trace, all: &StackCounts) -> Option<StackCounts> {
    let is_called = |it: &Frame| it.file.ends_with("torch/optim/optimizer.py");
    let is_step = |it: &Frame| is_own(&it.file) && it.function.rsplit('.').next() == Some("step");
    let its = all.filtered(trace, is_called);
    let its = its.filtered(trace, is_step);
    let mut names = (0..trace.names().len() as u32).map(|it| trace.names().full(it));
    (its.all > 0 && !names.any(|it| it.contains("multi_tensor_apply"))).then_some(its)
}

/// What part of the time of these operations was asked for in ranges of such names. Those whose call lies before the recording tell
/// nothing.
pub fn part_in(
    trace: &Trace,
    graph: &Graph,
    at: impl Iterator<Item = (LaneId, usize)>,
    is_such: fn(&str) -> bool,
) -> f64 {
    let mut names = (0..trace.names().len() as u32).map(|it| trace.names().full(it));
    if !names.any(is_such) {
        return 0.0;
    }
    let mut around = Around::new(trace);
    let (mut inside, mut all) = (0, 0);
    for place in at {
        let time = trace.lanes()[place.0].span(place.1).len();
        let call = graph.call_at(place);
        if call == NONE {
            continue;
        }
        let is_inside = around.call(graph, call).into_iter().any(is_such);
        inside += if is_inside { time } else { 0 };
        all += time;
    }
    share(inside, all)
}

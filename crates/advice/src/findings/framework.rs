//! What a program is written in, as far as its records say: a change is told in its words.

use trace::Trace;
use trace::samples::short_file;

/// What calls CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framework {
    PyTorch,
    Jax,
    CuPy,
    Numba,
    /// CUDA itself, or something else on it.
    Cuda,
}

/// What is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Streams that do not wait for the default stream.
    NonBlocking,
    /// Memory of the host that copies can use as it is.
    Pin,
    /// One launch for many kernels.
    Graph,
    /// One kernel for several.
    Fuse,
    /// Values that stay on the GPU.
    KeepValues,
    /// Less precise products of matrices.
    Tensor,
}

/// By framework, what only its programs have: parts of names of ranges and kernels, and folders of source files.
const NAMES: [(Framework, &[&str]); 4] = [
    (
        Framework::PyTorch,
        &["aten::", "at::native", "c10::", "torch/"],
    ),
    (Framework::Jax, &["Xla", "jit_", "jax/"]),
    (Framework::CuPy, &["cupy_", "cupy/"]),
    (Framework::Numba, &["cudapy", "numba/"]),
];

impl Framework {
    /// The first of those whose names a timeline has.
    pub(super) fn of(trace: &Trace) -> Framework {
        let names = trace.names();
        let names = (0..names.len() as u32).map(|id| names.full(id));
        let names: Vec<&str> = names.collect();
        let files: Vec<&str> = trace.stacks().files().map(short_file).collect();
        let has = |word: &&str| match word.ends_with('/') {
            true => files.iter().any(|it| it.starts_with(*word)),
            false => names.iter().any(|it| it.contains(*word)),
        };
        let found = NAMES.iter().find(|it| it.1.iter().any(has));
        found.map_or(Framework::Cuda, |it| it.0)
    }

    /// What to add or to call there, for the end of a sentence.
    pub(super) fn say(self, change: Change) -> &'static str {
        use Framework::{CuPy, Jax, Numba, PyTorch};
        match (change, self) {
            (Change::NonBlocking, CuPy) => {
                "cupy.cuda.Stream(non_blocking=True), or CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=1"
            }
            (Change::NonBlocking, Numba) => "NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM=1",
            (Change::NonBlocking, PyTorch) => {
                "launch all of it under torch.cuda.stream(torch.cuda.Stream())"
            }
            (Change::NonBlocking, _) => {
                "cudaStreamCreateWithFlags(…, cudaStreamNonBlocking), or nvcc --default-stream per-thread"
            }
            (Change::Pin, PyTorch) => "pin_memory=True, tensor.pin_memory()",
            (Change::Pin, CuPy) => "cupyx.empty_pinned",
            (Change::Pin, Numba) => "numba.cuda.pinned_array",
            (Change::Pin, Jax) => "memory_kind=\"pinned_host\"",
            (Change::Pin, _) => "cudaMallocHost, cudaHostRegister",
            (Change::Graph, PyTorch) => {
                "a CUDA graph (torch.compile(mode=\"reduce-overhead\"), torch.cuda.graph), fused kernels"
            }
            (Change::Graph, Jax) => {
                "one jax.jit around the whole step, jax.lax.scan around the loop"
            }
            (Change::Graph, CuPy) => {
                "a CUDA graph (Stream.begin_capture), fused kernels (cupy.fuse)"
            }
            (Change::Graph, _) => "a CUDA graph (cudaStreamBeginCapture), fused kernels",
            (Change::Fuse, PyTorch) => "torch.compile does so",
            (Change::Fuse, Jax) => "jax.jit does so",
            (Change::Fuse, CuPy) => "cupy.fuse does so",
            (Change::Fuse, _) => "one kernel with the work of all",
            (Change::KeepValues, PyTorch) => ", not one by one as `.item()` does",
            (Change::KeepValues, Jax | CuPy) => ", not one by one as `float()` does",
            (Change::KeepValues, _) => ", not one by one",
            (Change::Tensor, PyTorch) => "torch.set_float32_matmul_precision(\"high\")",
            (Change::Tensor, Jax) => "jax.default_matmul_precision(\"tensorfloat32\")",
            (Change::Tensor, CuPy) => "CUPY_TF32=1",
            (Change::Tensor, _) => "CUBLAS_COMPUTE_32F_FAST_TF32",
        }
    }
}

//! What a program is written in, and what its own source files say: the calls that stand there, and what to change in them.
//!
//! Files of the machine that looks are read alone, and only where the program ran there.

mod change;
pub mod cures;
mod known;
mod operators;
mod source;

use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use rustc_hash::{FxHashMap, FxHashSet};

use activity::{Ns, What, door};
use trace::samples::short_file;
use trace::{Lane, LaneId, Trace};

pub use change::{Change, Setting};
pub use known::{At, Known};
pub use operators::operators_cure;
pub use source::{Sources, at_lines};

/// Of each stream so many operations say which compiler made its kernels.
const KERNELS_MAX: usize = 1_000;

/// Larger files are not read; nor are those without a size, such as pipes, devices and those of the kernel.
const BYTES_MAX: u64 = 1 << 20;

/// The source files of a program, each read once, when somebody asks first.
#[derive(Debug, Default)]
pub struct Files {
    /// The text of each by path; `None` of what is not read.
    texts: Mutex<FxHashMap<String, Option<Arc<str>>>>,
}

impl Files {
    /// The text of a plain file of some size that is older than what was recorded until then.
    fn text(&self, path: &str, until: Ns) -> Option<Arc<str>> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let text = texts.entry(path.to_owned());
        text.or_insert_with(|| read(path, until)).clone()
    }
}

/// What calls CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    PyTorch,
    TensorFlow,
    Jax,
    CuPy,
    Numba,
    /// CUDA itself, or something else on it.
    Cuda,
}

/// By framework, what only its programs have: parts of names of ranges and kernels, and folders of source files.
const NAMES: [(Framework, &[&str]); 5] = [
    (
        Framework::PyTorch,
        &["aten::", "at::native", "c10::", "torch/"],
    ),
    (
        Framework::TensorFlow,
        &[
            "tensorflow::",
            "ExecutorState::",
            "TFE_Py",
            "tensorflow/",
            "Launch of ",
        ],
    ),
    (Framework::Jax, &["Xla", "PjitFunction", "jax/"]),
    (Framework::CuPy, &["cupy_", "cupy/"]),
    (Framework::Numba, &["cudapy", "numba/"]),
];

impl Framework {
    /// The first of those whose names a timeline has.
    pub fn of(trace: &Trace) -> Framework {
        let names = trace.names();
        let names = (0..names.len() as u32).map(|id| names.full(id));
        let names: Vec<&str> = names.collect();
        let files: Vec<&str> = trace.stacks().files().map(short_file).collect();
        let has = |word: &&str| match word.ends_with('/') {
            true => files.iter().any(|it| it.starts_with(*word)),
            false => names.iter().any(|it| has_word(it, word)),
        };
        // Others compile on the way, too: only XLA's kernels are called so beside it.
        let is_jitted = || has(&"jit_") && names.iter().any(|it| it.contains("fusion"));
        let is_one = |it: &&(Framework, &[&str])| {
            it.1.iter().any(has) || it.0 == Framework::Jax && is_jitted()
        };
        let found = NAMES.iter().find(is_one);
        let found = found.map_or(Framework::Cuda, |it| it.0);
        match found {
            Framework::PyTorch if copies_itself(trace) => Framework::Cuda,
            found => found,
        }
    }
}

/// So many such copies are made in a loop.
const OWN_MIN: usize = 8;

/// Whether most copies are calls of `cudaMemcpy`, which PyTorch never makes: a library below Python copies, and allocates by itself.
fn copies_itself(trace: &Trace) -> bool {
    let names = trace.names();
    let id = |word| (0..names.len() as u32).find(|&id| names.full(id) == word);
    let Some(own) = id("cudaMemcpy") else {
        return false;
    };
    let others = id("cudaMemcpyAsync");
    let (mut copies, mut beyond) = (0, 0);
    for (lane, it, _) in trace.threads() {
        for row in it.kept() {
            if let What::Call(call) = trace.what(lane, row) {
                copies += usize::from(call.name == own);
                beyond += i64::from(call.name == own) - i64::from(Some(call.name) == others);
            }
        }
    }
    copies >= OWN_MIN && beyond > 0
}

/// Whether a kernel is called as OpenACC or OpenMP calls what it makes of a region.
pub fn is_of_region(kernel: &str) -> bool {
    let is_so = |with: &&str| kernel.starts_with(with);
    ["nvkernel_", "__omp_offloading"].iter().any(is_so)
        || kernel.ends_with("_gpu")
        || kernel.contains("_gpu__")
}

/// The option of its compiler that brings machine code for a program's GPU.
pub fn arch_option(trace: &Trace) -> String {
    let kernel = |id: LaneId, row: usize| match trace.what(id, row) {
        What::Kernel(it) => Some(trace.names().full(trace.shape(it.shape).name)),
        _ => None,
    };
    let rows = |lane: &Lane| lane.kept().take(KERNELS_MAX);
    let all = trace.streams();
    let all = all.flat_map(|(id, lane)| rows(lane).filter_map(move |row| kernel(id, row)));
    let all: FxHashSet<&str> = all.collect();
    if !all.iter().all(|it| is_of_region(it)) {
        return "nvcc -arch".to_owned();
    }
    let of_llvm = all.iter().any(|it| it.starts_with("__omp_offloading"));
    let gpu = trace.devices().first();
    let (major, minor) = gpu.map_or((0, 0), |it| it.info.capability);
    match (of_llvm, major) {
        (true, 0) => "--offload-arch".to_owned(),
        (true, _) => format!("--offload-arch=sm_{major}{minor}"),
        (false, 0) => "nvc -gpu".to_owned(),
        (false, _) => format!("nvc -gpu=cc{major}{minor}"),
    }
}

/// Whether a word, or one that it begins, stands in a name: "jit_step" has "jit_", "codeinst_to_jit_impl" of Julia does not.
fn has_word(name: &str, word: &str) -> bool {
    let mut at = name.match_indices(word);
    at.any(|(at, _)| !name[..at].ends_with(|c: char| c == '_' || c.is_ascii_alphabetic()))
}

fn read(path: &str, until: Ns) -> Option<Arc<str>> {
    let path = Some(Path::new(path)).filter(|it| it.is_absolute())?;
    let file = door::open(path).ok()?;
    let about = file.metadata().ok()?;
    let changed = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    if !(1..=BYTES_MAX).contains(&about.len()) || changed.as_nanos() > until as u128 {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compiler_has_its_own_option_for_the_gpus_architecture() {
        for (kernels, option) in [
            (["main_16_gpu__red", "main_9_gpu"], "nvc -gpu=cc90"),
            (["nvkernel_main_F1L31_2", "main_9_gpu"], "nvc -gpu=cc90"),
            (["__omp_offloading_1_2_main_l9"; 2], "--offload-arch=sm_90"),
            // A kernel of CUDA's own beside it.
            (["main_9_gpu", "scale"], "nvcc -arch"),
            (["step_gpu_all", "on_gpu2"], "nvcc -arch"),
        ] {
            let mut scene = trace::testing::Scene::new();
            scene.device(trace::testing::h200());
            for (at, kernel) in (0..).zip(kernels) {
                scene.kernel(kernel, 1, at * 1_000, at * 1_000 + 500);
            }
            assert_eq!(arch_option(&scene.trace()), option, "{kernels:?}");
        }
    }

    #[test]
    fn a_library_below_pytorch_copies_by_itself() {
        for (call, number, expected) in [
            ("cudaMemcpy", 9, Framework::Cuda),
            ("cudaMemcpy", 7, Framework::PyTorch),
            ("cudaMemcpyAsync", 9, Framework::PyTorch),
        ] {
            let mut scene = trace::testing::Scene::new();
            scene.name("aten::add");
            for at in 0..number {
                scene.call(call, at * 1_000, at * 1_000 + 500);
            }
            assert_eq!(Framework::of(&scene.trace()), expected, "{call} {number}");
        }
    }

    #[test]
    fn a_framework_is_told_by_whole_words() {
        for (name, word, expected) in [
            ("jit_step", "jit_", true),
            ("XlaModule:#hlo_module=jit_step#", "jit_", true),
            ("jl_emit_codeinst_to_jit_impl", "jit_", false),
            ("void at::native::add<float>", "at::native", true),
            ("_ZN6cudapy8__main__3addE", "cudapy", true),
        ] {
            assert_eq!(has_word(name, word), expected, "{name}");
        }
    }

    #[test]
    fn only_a_plain_file_of_some_size_from_before_is_read() {
        assert!(
            read("Cargo.toml", Ns::MAX).is_none(),
            "a path that says not where"
        );
        assert!(read("/dev/zero", Ns::MAX).is_none());
        let pipe = std::env::temp_dir().join(format!("cuptop-fifo-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|it| it.success()));
        // Nobody writes: opened in the ordinary way it would be waited for.
        assert!(read(&pipe.to_string_lossy(), Ns::MAX).is_none());
        std::fs::remove_file(&pipe).expect("the pipe");
        assert!(read("/proc/self/maps", Ns::MAX).is_none());
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(read(file, Ns::MAX).is_some());
        assert!(
            read(file, 1_000_000_000_000_000_000).is_none(),
            "younger than what was recorded"
        );
    }
}

//! What a program is written in, and what its own source files say: the calls that stand there, and what to change in them.
//!
//! Files of the machine that looks are read alone, and only where the program ran there.

mod change;
mod source;

use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use rustc_hash::FxHashMap;

use activity::{Ns, door};
use trace::Trace;
use trace::samples::short_file;

pub use change::{Change, Setting};
pub use source::{Sources, at_lines};

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
    Jax,
    CuPy,
    Numba,
    /// CUDA itself, or something else on it.
    Cuda,
}

/// By framework, what only its programs have: parts of names of ranges and kernels, and folders of source files.
const NAMES: [(Framework, &[&str]); 4] = [
    (
        Framework::PyTorch,
        &["aten::", "at::native", "c10::", "torch/"],
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
        found.map_or(Framework::Cuda, |it| it.0)
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

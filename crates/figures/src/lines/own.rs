//! Which recorded Python functions are of the program's own files, as far as their names tell: profilers leave out where
//! packages lie.

use activity::anonymous::{EVERYBODYS, short_file};
use trace::describe::function_parts;

/// Packages and modules that come with Python, and PyTorch: what a program's own functions pass through.
#[rustfmt::skip]
const PASSED_THROUGH: [&str; 26] = [
    "torch", "_bootstrap", "abc", "argparse", "asyncio", "codecs", "collections", "concurrent", "contextlib", "copy", "enum",
    "functools", "importlib", "inspect", "logging", "multiprocessing", "pickle", "queue", "runpy", "selectors", "site", "socket",
    "subprocess", "threading", "typing", "weakref",
];

/// Packages that run others' work.
const PACKAGES: [&str; 4] = ["torch", "triton", "functorch", "torchgen"];

/// Whether a function as a profiler names it ("train.py(19): main") is of the program's own files, or of a package that does its
/// work.
pub fn is_own(name: &str) -> bool {
    let Some((file, ..)) = function_parts(name) else {
        return false;
    };
    let first = file.split('/').next().unwrap_or(file);
    let module = first.strip_suffix(".py").unwrap_or(first);
    let is_everybodys = EVERYBODYS.iter().any(|part| file.contains(part));
    !file.starts_with('<') && !is_everybodys && !PASSED_THROUGH.contains(&module)
}

/// Whether a source file, as the interpreter names it, belongs to what a program's own functions pass through: Python, PyTorch, or
/// code that a compiler made.
pub fn is_passed_through(file: &str) -> bool {
    let is_everybodys = EVERYBODYS.iter().any(|part| file.contains(part));
    let is_package = file.contains("/site-packages/") || file.contains("/dist-packages/");
    let first = short_file(file).split('/').next().unwrap_or_default();
    let is_made = file.starts_with('<') || file.contains("/torchinductor_");
    is_made || is_everybodys && (!is_package || PACKAGES.contains(&first))
}

#[cfg(test)]
mod tests {
    use super::{is_own, is_passed_through};

    #[test]
    fn a_frame_is_of_who_does_the_work() {
        for (file, is) in [
            ("/home/me/train.py", false),
            (
                "/v/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py",
                false,
            ),
            (
                "/v/lib/python3.11/site-packages/torch/nn/modules/linear.py",
                true,
            ),
            ("/v/lib/python3.11/site-packages/torch/cuda/graphs.py", true),
            ("/usr/lib/python3.12/contextlib.py", true),
            ("/tmp/torchinductor_root/ab/cab12.py", true),
            ("<string>", true),
        ] {
            assert_eq!(is_passed_through(file), is, "{file}");
        }
    }

    #[test]
    fn what_python_brings_is_passed_through() {
        for (name, is) in [
            ("train.py(19): main", true),
            ("/home/me/contextlib2.py(1): f", true),
            (
                "transformers/models/bert/modeling_bert.py(1306): forward",
                true,
            ),
            ("torch/nn/modules/module.py(1743): _call_impl", false),
            ("multiprocessing/spawn.py(122): spawn_main", false),
            ("threading.py(1016): _bootstrap", false),
            ("/usr/lib/python3.12/queue.py(7): get", false),
            ("<string>(1): <module>", false),
            ("<built-in method run_backward of torch>", false),
            ("nn.Module: BertModel_0", false),
        ] {
            assert_eq!(is_own(name), is, "{name}");
        }
    }
}

//! Which recorded Python functions are of the program's own files, as far as their names tell: profilers leave out where
//! packages lie.

use activity::anonymous::EVERYBODYS;
use trace::describe::function_parts;

/// Packages and modules that come with Python, and PyTorch: what a program's own functions pass through.
#[rustfmt::skip]
const PASSED_THROUGH: [&str; 26] = [
    "torch", "_bootstrap", "abc", "argparse", "asyncio", "codecs", "collections", "concurrent", "contextlib", "copy", "enum",
    "functools", "importlib", "inspect", "logging", "multiprocessing", "pickle", "queue", "runpy", "selectors", "site", "socket",
    "subprocess", "threading", "typing", "weakref",
];

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

#[cfg(test)]
mod tests {
    use super::is_own;

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

//! The functions below a line, as a tree by samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use activity::text::printable;
use activity::{Frame, Span, StackId};
use trace::Trace;
use trace::samples::short_file;

/// What hands this part of its samples on to one other function is left out.
const HANDED_ON: f64 = 0.95;

/// Frames outermost last, how many samples have them, and the longest gap of those.
pub(super) type Path<'f> = (&'f [&'f Frame], u64, Span);

/// A function of the tree: how deep in it, its samples, and the longest gap in which it was seen.
pub struct Node<'f> {
    pub depth: usize,
    pub frame: &'f Frame,
    pub samples: u64,
    pub longest: Span,
}

/// The deepest function below a line that still holds half of all samples, whatever they are of, and how many it holds.
pub(super) fn deepest(
    trace: &Trace,
    all: &FxHashMap<StackId, u64>,
    own: (&str, u32),
) -> Option<(String, u64)> {
    let none = Span::default();
    let stacks = all.iter().map(|(&id, &samples)| (id, (samples, none)));
    let stacks = below_line(trace, stacks, own);
    let paths: Vec<Path<'_>> = stacks.iter().map(|it| (&it.0[..], it.1.0, none)).collect();
    let mut nodes = Vec::new();
    let half = all.values().sum::<u64>() as f64 / 2.0;
    if let Some((module, samples)) = imported(&paths).filter(|it| it.1 as f64 >= half) {
        return Some((format!("importlib {IMPORT}{}", printable(&module)), samples));
    }
    add_functions(&paths, 0, half, &mut nodes);
    let told = |node: &&Node<'_>| !is_inner(&node.frame.function);
    let Node { frame, samples, .. } = nodes.iter().rev().find(told)?;
    let name = format!("{} {}", short_file(&frame.file), frame.function);
    Some((printable(&name), *samples))
}

/// Stands before the name of a module that a line imports.
pub(super) const IMPORT: &str = "import:";

/// The module that most of them import, by the outermost one, and how many.
fn imported(paths: &[Path<'_>]) -> Option<(String, u64)> {
    let mut by: BTreeMap<&str, u64> = BTreeMap::new();
    for (frames, samples, _) in paths {
        let is_imported = |two: &&[&Frame]| {
            two[0].function == "<module>" && two[1].file.starts_with("<frozen importlib")
        };
        if let Some(two) = frames.windows(2).rfind(is_imported) {
            *by.entry(&two[0].file).or_default() += samples;
        }
    }
    let (file, samples) = by.into_iter().max_by_key(|it| it.1)?;
    let name = short_file(file)
        .trim_end_matches(".py")
        .trim_end_matches("/__init__");
    Some((name.replace('/', "."), samples))
}

/// Whether a function's name tells nobody anything, as it hands on to another one or is a library's own.
pub(super) fn is_inner(function: &str) -> bool {
    // What "__getitem__" and its like are, Python says.
    let is_own = |it: &str| it.starts_with('_') && !it.ends_with("__");
    is_wrapper(function) || function.split('.').any(is_own)
}

/// Whether a function only hands on to another one.
pub fn is_wrapper(function: &str) -> bool {
    const WRAPPERS: &str = "<module> <lambda> <genexpr> <listcomp> decorate_context wrapper inner _wrapped_call_impl \
        _call_impl _fn";
    let last = function.rsplit('.').next().unwrap_or(function);
    WRAPPERS.split(' ').any(|it| it == last)
}

/// The frames of each stack below a line, with its samples and their longest gap.
pub fn below_line<'t>(
    trace: &'t Trace,
    stacks: impl Iterator<Item = (StackId, (u64, Span))>,
    own: (&str, u32),
) -> Vec<(Vec<&'t Frame>, (u64, Span))> {
    let below = stacks.filter_map(|(stack, of)| {
        let frames: Vec<&Frame> = trace.stacks().frames(stack).collect();
        let is_own = |it: &&Frame| (it.file.as_str(), it.line) == own;
        let at = frames.iter().position(is_own)?;
        Some((frames[..at].to_vec(), of))
    });
    below.collect()
}

/// Adds the outermost functions of the paths, each with its own behind it.
pub fn add_functions<'f>(paths: &[Path<'f>], depth: usize, least: f64, into: &mut Vec<Node<'f>>) {
    let mut by: BTreeMap<(&str, &str), (&Frame, u64, Vec<Path<'f>>)> = BTreeMap::new();
    for (frames, samples, longest) in paths {
        if let [inner @ .., frame] = frames {
            let key = (frame.file.as_str(), frame.function.as_str());
            let of = by.entry(key).or_insert((frame, 0, Vec::new()));
            of.1 += samples;
            of.2.push((inner, *samples, *longest));
        }
    }
    let mut by: Vec<_> = by.into_values().filter(|it| it.1 as f64 >= least).collect();
    by.sort_by_key(|it| Reverse(it.1));
    for (frame, samples, inner) in by {
        let at = into.len();
        let longest = inner.iter().map(|it| it.2).max_by_key(|it| it.len());
        into.push(Node {
            longest: longest.unwrap_or_default(),
            depth,
            frame,
            samples,
        });
        add_functions(&inner, depth + 1, least, into);
        let only = into.get(at + 1).map_or(0, |it| it.samples);
        if only as f64 >= HANDED_ON * samples as f64 {
            into.remove(at);
            into[at..].iter_mut().for_each(|it| it.depth -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_stack_has_a_node_for_each_function_that_does_something() {
        let frames: Vec<Frame> = (0..1_024)
            .map(|i| Frame {
                function: format!("f{i}"),
                ..Frame::default()
            })
            .collect();
        let frames: Vec<&Frame> = frames.iter().collect();
        let mut nodes = Vec::new();
        let halves = [&frames[..], &frames[512..]].map(|it| (it, 10, Span::default()));
        add_functions(&halves, 0, 1.0, &mut nodes);
        let told: Vec<_> = nodes
            .iter()
            .map(|it| (&*it.frame.function, it.samples))
            .collect();
        assert_eq!(told, [("f512", 20), ("f0", 10)]);
    }

    /// `Adam.__init__` imports torch._dynamo, which imports others.
    #[test]
    fn what_a_line_imports_is_the_outermost_module() {
        let packages = "/venv/lib/python3.12/site-packages/torch";
        let frame = |function: &str, file: &str| Frame {
            function: function.to_owned(),
            file: file.to_owned(),
            ..Frame::default()
        };
        let importlib = || frame("_call_with_frames_removed", "<frozen importlib._bootstrap>");
        let module = |file: &str| frame("<module>", &format!("{packages}/{file}"));
        let frames = [
            frame("compile", "<frozen importlib._bootstrap_external>"),
            importlib(),
            module("_dynamo/aot_compile.py"),
            importlib(),
            module("_dynamo/__init__.py"),
            importlib(),
            frame("Adam.__init__", &format!("{packages}/optim/adam.py")),
        ];
        let frames: Vec<&Frame> = frames.iter().collect();
        let found = imported(&[(&frames[..], 7, Span::default())]);
        assert_eq!(found, Some(("torch._dynamo".to_owned(), 7)));
        assert_eq!(imported(&[(&frames[6..], 7, Span::default())]), None);
    }
}

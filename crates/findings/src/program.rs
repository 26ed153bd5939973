//! What is known of a program by its names and calls.

use std::any::TypeId;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use activity::Ns;
use causes::graph::CallId;
use program::{Files, Framework};

/// The cure of steps that host functions in a stream make longer.
pub const HOST_FUNCTION: &str = "host-function";

/// The first words of a cure that are for what a program is written in. They are data: see `changes.txt`.
pub(super) fn words_of(cure: &str, is_for: impl Fn(&str) -> bool) -> Option<&'static str> {
    let lines = include_str!("changes.txt")
        .lines()
        .map(|it| it.splitn(3, ' '));
    let mut lines = lines.map(|mut it| [it.next(), it.next(), it.next()]);
    lines.find(|it| it[0] == Some(cure) && it[1].is_some_and(&is_for))?[2]
}

/// What is known of a program by names and files: both are looked at once, by the rule that asks first.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub framework: OnceLock<Framework>,
    /// Its calls that lock memory of the host.
    pub pinning: OnceLock<FxHashSet<CallId>>,
    /// When the first of its launches began of which the records are lost.
    pub lost: OnceLock<Option<Ns>>,
    /// Whether most of its calls for a device's memory take managed memory.
    pub takes_managed: OnceLock<bool>,
    /// Its calls that make a stream wait for an event, in order.
    pub event_waits: OnceLock<Vec<CallId>>,
    /// By device, waits for what was copied back that the CPU works on.
    pub needed: OnceLock<FxHashMap<usize, Vec<CallId>>>,
    /// Whether it has names of some kind, by who asks.
    names: Mutex<FxHashMap<TypeId, bool>>,
    /// Its source files.
    pub files: Files,
}

impl Program {
    /// Whether it has names that somebody looks for.
    pub(super) fn has(&self, asked: TypeId, has: impl FnOnce() -> bool) -> bool {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        *names.entry(asked).or_insert_with(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cure_is_named_by_a_rule_and_has_words_for_every_framework() {
        use Framework::{CuPy, Cuda, Jax, Numba, PyTorch, TensorFlow};
        let folders = ["/src", "/../program/src"];
        let read = |it| std::fs::read_dir(env!("CARGO_MANIFEST_DIR").to_owned() + it);
        let files = folders
            .into_iter()
            .flat_map(|it| read(it).expect("the rules").flatten());
        let texts = files.filter_map(|it| std::fs::read_to_string(it.path()).ok());
        let rules = texts.collect::<Vec<_>>().join("\n");
        let lines = include_str!("changes.txt").lines().skip(3);
        for cure in lines.filter_map(|it| it.split(' ').next()) {
            assert!(
                rules.contains(&format!("\"{cure}\"")),
                "nobody asks for {cure}"
            );
            for of in [Cuda, CuPy, Jax, Numba, PyTorch, TensorFlow] {
                let name = format!("{of:?}").to_lowercase();
                let words = words_of(cure, |it| it == name || it == "*");
                let words = words.unwrap_or_else(|| panic!("no words for {cure}"));
                let has_both = |it: &str| {
                    it.split_once(": ")
                        .is_some_and(|it| !it.0.is_empty() && !it.1.is_empty())
                };
                assert!(words.split("; ").all(has_both), "{words}");
            }
        }
    }
}

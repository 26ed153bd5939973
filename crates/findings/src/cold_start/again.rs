//! Whether code is built again and again, which no warm-up ends.

use super::{Cold, FirstWork, Occurrence, trace_name};
use activity::{Ns, Span};
use rustc_hash::FxHashMap;

/// So often code is built anew, and not for the first time.
const STEPS_BUILT: usize = 3;

impl Cold<'_, '_> {
    /// Whether something is built step by step, up to the end: in steps that are told of nothing is new any more.
    pub(super) fn is_each(&self, time: Ns) -> bool {
        let again = self.built.is_empty() || self.is_rebuilt;
        self.at.len() >= STEPS_BUILT
            && self.builds_until() >= self.whole.start + self.whole.len() / 2
            && [FirstWork::Compiling, FirstWork::Building]
                .iter()
                .any(|it| self.has.is_mostly(*it, time))
            && (self.scope.window.is_some() && again || self.recurs())
    }

    /// Whether XLA compiles one function of the program over and over up to the end, for most of the time from the second round on.
    fn recurs(&self) -> bool {
        let trace = self.scope.trace;
        let mut by: FxHashMap<&str, Vec<Span>> = FxHashMap::default();
        for (_, at) in &self.at {
            let Occurrence::Row(place) = *at else {
                continue;
            };
            if let Some(name) = trace_name(self.scope, place).and_then(function) {
                let span = self.on_all(trace.activity(place.0, place.1).span, place);
                by.entry(name).or_default().push(span);
            }
        }
        let is_one = |rounds: &mut Vec<Span>| {
            rounds.sort_unstable();
            let (Some(second), Some(last)) = (rounds.get(1), rounds.last()) else {
                return false;
            };
            let taken: Ns = rounds[1..].iter().map(|it| it.len()).sum();
            cases::LOOP_MIN.is_reached_by(rounds.len())
                && 2 * taken >= self.whole.end - second.start
                && 8 * (self.whole.end - last.end) <= self.whole.len()
        };
        by.values_mut().any(is_one)
    }

    /// Until when something was built.
    fn builds_until(&self) -> Ns {
        let built =
            [FirstWork::Compiling, FirstWork::Building].map(|it| &self.has.spans[it as usize]);
        let built = built.into_iter().flatten();
        built.map(|it| it.start).max().unwrap_or(Ns::MIN)
    }
}

/// The function of the program that a range of XLA compiles. Parts of it are compiled several times to try which is fastest.
fn function(range: &str) -> Option<&str> {
    let module = range.strip_prefix("XlaCompile:#module=")?;
    let is_own = module.starts_with("jit_") || module.starts_with("pmap_");
    is_own.then_some(module)
}

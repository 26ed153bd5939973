//! What the warps of a kernel waited for, from samples of where each was (`--stalls on`).
//!
//! A sample is of one warp at one moment: it issued an instruction, or it says why not. NVIDIA's reasons make five groups that a person
//! understands, beside what was issued. All launches of a kernel are pooled, of all GPUs and processes.

use serde::Serialize;

use activity::units::percent;
use activity::{NameId, Ns};
use trace::Trace;

/// Samples below which nothing is told: a share is then off by 4 points in 95 of 100 cases.
const LEAST: u64 = 500;
/// Launches, or else time, below which a kernel is not told of: the first ones are unlike the rest.
const LEAST_LAUNCHES: u64 = 20;
const LEAST_TIME: Ns = 5_000_000;
/// Parts below this are left out of a sentence.
const SAID: f64 = 0.05;

/// Samples of a kernel by what its warps did. The groups add up to `samples`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StallMix {
    /// All of them.
    pub samples: u64,
    /// Waited for memory outside the SM, or for room to ask it.
    pub memory: u64,
    /// Waited for shared memory or special units inside the SM.
    pub sm: u64,
    /// Waited for other warps.
    pub warps: u64,
    /// Waited for the instruction before, or a busy pipe.
    pub pipe: u64,
    /// Waited for instructions to be there.
    pub fetch: u64,
    /// Issued an instruction.
    pub issued: u64,
    /// Anything else: ready while another warp went first, asleep, or of a reason that is not known.
    pub other: u64,
}

impl StallMix {
    /// Of samples by reason, under NVIDIA's names.
    fn of<'a>(reasons: impl Iterator<Item = (&'a str, u64)>) -> StallMix {
        let mut mix = StallMix::default();
        for (reason, samples) in reasons {
            // A part of the reason without this ending: ncu's "not-issued samples" of "all samples". On an H100 none of 57 pairs had more.
            if reason.ends_with("_not_issued") {
                continue;
            }
            let group = match reason {
                "long_scoreboard" | "lg_throttle" | "lg" | "drain" => &mut mix.memory,
                "short_scoreboard" | "mio_throttle" | "mio" | "tex_throttle" => &mut mix.sm,
                "barrier" | "membar" | "warpgroup_arrive" | "gmma" => &mut mix.warps,
                "wait" | "math_pipe_throttle" | "math" | "dispatch_stall" | "dispatch"
                | "tensor" => &mut mix.pipe,
                "no_instructions" | "no_instruction" | "no_inst" | "branch_resolving"
                | "branch_resolve" | "branch" | "imc_miss" => &mut mix.fetch,
                "selected" => &mut mix.issued,
                _ => &mut mix.other,
            };
            *group = group.saturating_add(samples);
        }
        // Samples are counts of what was: a recording that claims more than can be counted says nothing.
        let groups = [
            mix.memory, mix.sm, mix.warps, mix.pipe, mix.fetch, mix.issued, mix.other,
        ];
        let all = groups.into_iter().try_fold(0_u64, u64::checked_add);
        all.map_or_else(StallMix::default, |samples| StallMix { samples, ..mix })
    }

    /// "waits for memory 72 %, issues 12 %"; `None` where nothing is worth a word.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let mut groups = [
            ("waits for memory", self.memory),
            ("waits for shared memory and special units", self.sm),
            ("waits for other warps", self.warps),
            (
                "waits for its previous instruction or a busy pipe",
                self.pipe,
            ),
            ("waits for instructions to load", self.fetch),
        ];
        groups.sort_by_key(|it| std::cmp::Reverse(it.1));
        let issued = [("issues", self.issued)];
        let share = |samples| samples as f64 / self.samples.max(1) as f64;
        let said = groups.into_iter().chain(issued);
        let said = said.filter(|it| share(it.1) >= SAID);
        let said: Vec<_> = said
            .map(|(words, n)| format!("{words} {}", percent(share(n))))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

/// The same of a kernel whatever its launches, in a sentence.
#[must_use]
pub fn sentence(trace: &Trace, kernel: NameId) -> Option<String> {
    of_kernel(trace, kernel, LEAST_LAUNCHES, LEAST_TIME)?.sentence()
}

/// What a kernel that ran so often and so long in all waited for; `None` where it was sampled too little.
#[must_use]
pub fn of_kernel(trace: &Trace, kernel: NameId, launches: u64, time: Ns) -> Option<StallMix> {
    let reasons = trace.hardware().stalls.get(&kernel)?.iter();
    let mix = StallMix::of(reasons.map(|(reason, samples)| (reason.as_str(), *samples)));
    let is_enough = launches >= LEAST_LAUNCHES || time >= LEAST_TIME;
    (is_enough && mix.samples >= LEAST).then_some(mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_add_up_and_what_was_not_issued_is_a_part() {
        let reasons = [
            ("long_scoreboard", 720),
            ("long_scoreboard_not_issued", 420),
            ("drain", 80),
        ];
        let rest = [
            ("selected", 120),
            ("not_selected", 30),
            ("of_a_later_chip", 50),
        ];
        let mix = StallMix::of(reasons.into_iter().chain(rest));
        assert_eq!(
            (mix.samples, mix.memory, mix.issued, mix.other),
            (1000, 800, 120, 80)
        );
        assert_eq!(
            mix.sentence().as_deref(),
            Some("waits for memory 80 %, issues 12 %")
        );
        assert_eq!(StallMix::default().sentence(), None);
        let hostile = [("drain", u64::MAX), ("drain", 1), ("selected", 1)];
        assert_eq!(StallMix::of(hostile.into_iter()), StallMix::default());
    }
}

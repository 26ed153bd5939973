//! What the warps of a kernel waited for, from samples of where each was (`--stalls on`).
//!
//! A sample is of one warp at one moment: it issued an instruction, or it says why not. NVIDIA's reasons make five groups that a person
//! understands, beside what was issued. All launches of a kernel are pooled, of all GPUs and processes.

use serde::Serialize;

use activity::anonymous::short_file;
use activity::units::percent;
use activity::{NameId, Ns};
use trace::{StallReasons, Trace};

/// Samples below which nothing is told: a share is then off by 4 points in 95 of 100 cases.
const LEAST: u64 = 500;
/// Launches, or else time, below which a kernel is not told of: the first ones are unlike the rest.
const LEAST_LAUNCHES: u64 = 20;
const LEAST_TIME: Ns = 5_000_000;
/// Lines that are told of a kernel.
const LINES: usize = 5;
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
    /// Of these, at barriers of their block.
    #[serde(skip)]
    pub barrier: u64,
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
            if reason == "barrier" {
                mix.barrier = samples;
            }
        }
        // Samples are counts of what was: a recording that claims more than can be counted says nothing.
        let all = mix.counts().into_iter().try_fold(0_u64, u64::checked_add);
        all.map_or_else(StallMix::default, |samples| StallMix { samples, ..mix })
    }

    fn counts(&self) -> [u64; 7] {
        [
            self.memory,
            self.sm,
            self.warps,
            self.pipe,
            self.fetch,
            self.issued,
            self.other,
        ]
    }

    /// The groups with their parts of all samples.
    fn groups(&self) -> impl Iterator<Item = (&'static [&'static str; 2], f64)> {
        GROUPS.iter().zip(self.counts().map(|it| self.share(it)))
    }

    /// So many samples' part of all.
    pub fn share(&self, samples: u64) -> f64 {
        samples as f64 / self.samples.max(1) as f64
    }

    /// "waits for memory 72 %, issues 12 %"; `None` where nothing is worth a word.
    pub fn sentence(&self) -> Option<String> {
        let mut groups: Vec<_> = self.groups().take(6).collect();
        groups[..5].sort_by(|a, b| b.1.total_cmp(&a.1));
        let said = groups.iter().filter(|it| it.1 >= SAID);
        let said: Vec<_> = said
            .map(|it| format!("{} {}", it.0[0], percent(it.1)))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// "memory ████████ 80 % issues █ 12 % other █ 8 %": a mark for each tenth, and parts that add up.
    pub fn bar(&self) -> String {
        let mut groups: Vec<_> = self.groups().take(6).map(|it| (it.0[1], it.1)).collect();
        groups.sort_by(|a, b| b.1.total_cmp(&a.1));
        groups.retain(|it| it.1 >= SAID);
        groups.truncate(5);
        let other = 1.0 - groups.iter().map(|it| it.1).sum::<f64>();
        groups.extend((other >= 0.005 && self.samples > 0).then_some(("other", other)));
        let marks = |share: f64| "█".repeat((10.0 * share).round().max(1.0) as usize);
        let part = |it: &(&str, f64)| format!("{} {} {}", it.0, marks(it.1), percent(it.1));
        groups.iter().map(part).collect::<Vec<_>>().join(" ")
    }
}

/// What the groups do, and what they are called on a bar.
#[rustfmt::skip]
const GROUPS: [[&str; 2]; 7] = [
    ["waits for memory", "memory"],
    ["waits for shared memory and special units", "shared memory"],
    ["waits for other warps", "other warps"],
    ["waits for its previous instruction or a busy pipe", "pipe"],
    ["waits for instructions to load", "fetch"],
    ["issues", "issues"],
    ["is ready or asleep", "other"],
];

/// What a kernel waited for, and where.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelStalls {
    /// Its samples.
    #[serde(flatten)]
    pub mix: StallMix,
    /// Whether the simulator's profile declares them: nothing was sampled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub declared: bool,
    /// The lines with most of them, at most five, where its module tells lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<StallLine>,
}

/// A source line of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StallLine {
    /// Its file, as its compiler had it.
    pub file: String,
    /// Its number.
    pub line: u32,
    /// Its samples' part of the kernel's, 0 to 1.
    pub share: f64,
    /// What most of them did, in words.
    pub does: &'static str,
}

impl KernelStalls {
    /// "waits for memory 72 %, issues 12 %; 61 % at kernel.cu:57": its mix, and the line with most samples.
    pub fn sentence(&self) -> Option<String> {
        let declared = if self.declared { " (declared)" } else { "" };
        Some(self.mix.sentence()? + &self.hottest() + declared)
    }

    /// "; 61 % at kernel.cu:57", where that is known.
    pub fn hottest(&self) -> String {
        self.lines.first().map_or_else(String::new, |it| {
            let (share, file) = (percent(it.share), short_file(&it.file));
            format!("; {share} at {file}:{}", it.line)
        })
    }
}

/// What a kernel that ran so often and so long in all waited for; `None` where it was sampled too little.
pub fn of_kernel(trace: &Trace, kernel: NameId, launches: u64, time: Ns) -> Option<KernelStalls> {
    let mix_of =
        |reasons: &StallReasons| StallMix::of(reasons.iter().map(|it| (it.0.as_str(), *it.1)));
    let hardware = trace.hardware();
    let mix = mix_of(hardware.stalls.get(&kernel)?);
    let declared = trace.source.simulated;
    let is_enough = mix.samples >= LEAST && (launches >= LEAST_LAUNCHES || time >= LEAST_TIME);
    if !declared && !is_enough {
        return None;
    }
    let lines = hardware.stall_lines.get(&kernel).into_iter().flatten();
    let mut lines: Vec<_> = lines.map(|it| (it.0, mix_of(it.1))).collect();
    lines.sort_by_key(|it| std::cmp::Reverse(it.1.samples));
    let lines = lines
        .into_iter()
        .take(LINES)
        .map(|((file, line), of)| StallLine {
            file: file.clone(),
            line: *line,
            share: mix.share(of.samples),
            does: of
                .groups()
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .map_or("", |it| it.0[0]),
        });
    let lines = lines.collect();
    Some(KernelStalls {
        mix,
        declared,
        lines,
    })
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
        assert_eq!(mix.bar(), "memory ████████ 80 % issues █ 12 % other █ 8 %");
        assert_eq!(
            (StallMix::default().sentence(), StallMix::default().bar()),
            (None, String::new())
        );
        let hostile = [("drain", u64::MAX), ("drain", 1), ("selected", 1)];
        assert_eq!(StallMix::of(hostile.into_iter()), StallMix::default());
    }
}

//! What is known of late ranks, in words.

use super::{JobAnalysis, Lateness, Pattern, Reason, Stretch};
use crate::causes::Cause;
use activity::units::{count, duration, percent};

impl JobAnalysis {
    /// Why a rank is late, in words; `None` where nothing shows.
    #[must_use]
    pub fn reason(&self, late: &Lateness) -> Option<String> {
        Some(match &late.reason {
            Reason::Idle(cause) if cause.cause == Cause::Unknown.label() => {
                "its GPU is idle meanwhile, and no record says why".to_owned()
            }
            Reason::Idle(cause) => {
                let culprit = cause.culprit.as_ref();
                let culprit = culprit.map_or_else(String::new, |it| format!(" ({it})"));
                let line = cause.line.as_ref();
                let line = line.map_or_else(String::new, |it| format!(", then at {}", it.words()));
                format!("its GPU is idle meanwhile: {}{culprit}{line}", cause.cause)
            }
            Reason::IdleForMany => "its GPU is idle meanwhile, for no single cause".to_owned(),
            Reason::SlowKernels(ratio) => {
                format!("the same kernels take {ratio:.2}× as long on its GPU")
            }
            Reason::MoreWork(more) => {
                let each = match late.unit {
                    Stretch::Step => "a step",
                    Stretch::Collective => "from one collective to the next",
                };
                format!(
                    "its kernels, which are not those of the others, take {} {each}, and {} on {}",
                    duration(more.mine),
                    duration(more.theirs),
                    self.ranks[more.other].name
                )
            }
            Reason::Waited(rank) => format!("it waits for {} itself", self.ranks[*rank].name),
            Reason::Unknown => return None,
        })
    }

    /// "rank 5 keeps the others waiting on 4 of 12 steps: … Without that a step would take 18.9 ms in the place of 22.0 ms."
    #[must_use]
    pub fn sentence(&self, late: &Lateness) -> String {
        let (rank, sums) = (&self.ranks[late.rank], &self.split.sums[late.rank]);
        let late_unit = late.unit;
        let share = sums.last_arrivals as f64 / sums.judged.max(1) as f64;
        let mut text = format!("{} keeps the others waiting", rank.name);
        match late.pattern {
            Pattern::ByTurns { late, of } => {
                text.push_str(&format!(" on {late} of {of} {}", units(late_unit)));
            }
            Pattern::Steady => {
                text.push_str(match late_unit {
                    Stretch::Step => " on every step alike",
                    Stretch::Collective => " at every collective alike",
                });
            }
            Pattern::Unknown => {}
        }
        text.push_str(&format!(
            ": it arrives last at {} of {} collectives, {} later than the others in all",
            percent(share),
            count(sums.judged),
            duration(sums.late_ns)
        ));
        match self.reason(late) {
            Some(reason) => text.push_str(&format!("; {reason}")),
            None => text.push_str("; why is unknown"),
        }
        if let (Some(saving), Some(without)) = (late.saving, late.without()) {
            text.push_str(&format!(
                ". Without that {without} (predicted, mean of {} {})",
                count(saving.steps as u64),
                units(late_unit),
            ));
        }
        text
    }
}

impl Lateness {
    /// What its cure is worth: "a step would take 18.9 ms in the place of 22.0 ms".
    #[must_use]
    pub fn without(&self) -> Option<String> {
        let saving = self.saving?;
        let what = match self.unit {
            Stretch::Step => "a step would take",
            Stretch::Collective => "it would take from one collective to the next",
        };
        Some(format!(
            "{what} {} in the place of {}",
            duration(saving.without_ns),
            duration(saving.now_ns)
        ))
    }
}

/// What lateness is told by, of several.
fn units(unit: Stretch) -> &'static str {
    match unit {
        Stretch::Step => "steps",
        Stretch::Collective => "stretches between collectives",
    }
}

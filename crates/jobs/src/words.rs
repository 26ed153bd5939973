//! What is known of late ranks, in words.

use super::{JobAnalysis, Lateness, Pattern, Reason, Stretch};
use activity::units::{count, duration};
use causes::Cause;

impl JobAnalysis {
    /// Why a rank is late, in words; `None` where nothing shows.
    pub fn reason(&self, late: &Lateness) -> Option<String> {
        Some(match &late.reason {
            Reason::Idle(cause) => match (&cause.line, &cause.culprit, cause.cause) {
                (Some(line), ..) => format!("its CPU is at {}", line.place),
                (None, _, Cause::Unknown) => "its GPU is idle, and no record says why".to_owned(),
                (None, None, Cause::Host) => "its CPU is in code that was not traced".to_owned(),
                (None, Some(culprit), Cause::Host | Cause::Call) => {
                    format!("its CPU is in {culprit}")
                }
                (None, None, _) => format!("its GPU is idle: {}", cause.cause.label()),
                (None, Some(culprit), _) => {
                    format!("its GPU is idle: {} ({culprit})", cause.cause.label())
                }
            },
            Reason::IdleForMany => "its GPU is idle for several causes".to_owned(),
            Reason::SlowKernels(ratio) => {
                format!("its kernels take {ratio:.2}× as long as on other ranks")
            }
            Reason::MoreWork(more) => {
                let (mine, theirs) = (duration(more.mine), duration(more.theirs));
                let other = &self.ranks[more.other].name;
                format!("its kernels take {mine}, {theirs} on {other}")
            }
            Reason::Waited(rank) => format!("it waits for {}, too", self.ranks[*rank].name),
            Reason::Unknown => return None,
        })
    }

    /// "straggler rank 5: 3.1 ms late every third step, its CPU is at train.py:12".
    pub fn headline(&self, late: &Lateness) -> String {
        let (name, how) = (&self.ranks[late.rank].name, late.how());
        let why = self.reason(late);
        let why = why.unwrap_or_else(|| "and no record says why".to_owned());
        format!("straggler {name}: {how}, {why}")
    }

    /// The headline, and what its cure is worth. Steps are not named by numbers: a rank falls behind in one and comes late in the next.
    pub fn sentence(&self, late: &Lateness) -> String {
        let mut text = format!("{}.", self.headline(late));
        if let Some(without) = late.without("its") {
            text.push_str(&format!(" Predicted: {without}."));
        }
        text
    }
}

impl Lateness {
    /// Whether the profiler itself made it late.
    pub fn is_profilers(&self) -> bool {
        matches!(&self.reason, Reason::Idle(cause) if cause.cause == Cause::Profiler)
    }

    /// "3.1 ms late every third step".
    fn how(&self) -> String {
        let (by, unit) = (duration(self.by_ns), self.unit_name());
        match self.pattern {
            Pattern::ByTurns { late, of } => match self.period() {
                Some(period) => format!("{by} late every {} {unit}", ordinal(period)),
                None => format!("{by} late on {late} of {} {unit}s", count(of as u64)),
            },
            Pattern::Steady if self.saving.is_some() => format!("{by} late every {unit}"),
            Pattern::Steady | Pattern::Unknown => {
                let all = self.saving.map_or(self.late_ns, |it| it.all_ns);
                format!("delays the others by {}", duration(all))
            }
        }
    }

    /// Of late steps that lie equally far apart, how far: three at least, and none left out at either end.
    fn period(&self) -> Option<usize> {
        let Pattern::ByTurns { late, of } = self.pattern else {
            return None;
        };
        let at: Vec<usize> = self.steps.iter().map(|it| it.step).collect();
        let period = at.get(1)? - at[0];
        let is_even = at.windows(2).all(|two| two[1] - two[0] == period);
        let last = *at.last()?;
        (is_even && at.len() >= 3 && at.len() == late && at[0] < period && last + period >= of)
            .then_some(period)
    }

    /// What its cure is worth, with whose delays they are: "without rank 5's delays 18.9 ms a step instead of 22.0 ms, on average".
    /// On average, as the median step need not be late.
    pub fn without(&self, whose: &str) -> Option<String> {
        let saving = self.saving?;
        // Over a hundred others a mean of one says nothing.
        if matches!(self.pattern, Pattern::ByTurns { late: 1, .. }) {
            let less = duration(saving.all_ns);
            let most = if saving.is_capped { "up to " } else { "" };
            return Some(format!(
                "without {whose} one delay {most}{less} less in all"
            ));
        }
        // Of stretches that take no time a mean says nothing.
        if saving.now_ns == 0 {
            return None;
        }
        let (without, now) = (duration(saving.without_ns), duration(saving.now_ns));
        let unit = self.unit_name();
        let least = if saving.is_capped { "at least " } else { "" };
        Some(format!(
            "without {whose} delays {least}{without} a {unit} instead of {now}, on average"
        ))
    }

    /// What lateness is told by.
    fn unit_name(&self) -> &'static str {
        match self.unit {
            Stretch::Step => "step",
            Stretch::Collective => "collective",
        }
    }
}

/// "second", "third", "7th".
fn ordinal(number: usize) -> String {
    match number {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        4 => "fourth".to_owned(),
        5 => "fifth".to_owned(),
        number => format!("{number}th"),
    }
}

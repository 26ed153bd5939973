//! What a verdict calls the steps that it is of, and those of another kind.

use activity::Ns;
use activity::text::counted;
use activity::units::{duration, percent, share};
use figures::steps::{Origin, StepKind, Steps};
use trace::{Trace, describe};

/// The steps that a verdict is of: those of one kind that are not odd.
#[derive(Clone, Debug)]
pub(super) struct StepScope {
    pub median: Ns,
    pub steps: usize,
    pub kind: Option<String>,
    /// "37.2 ms step", "2.43 ms decode step", "56.1 to 201 ms step", "14.1 ms step between waits".
    pub words: String,
}

impl StepScope {
    pub(super) fn of(steps: &Steps) -> StepScope {
        let kind = steps.main();
        let between = match steps.from {
            Origin::Waits { .. } => " between waits",
            _ => "",
        };
        StepScope {
            median: kind.median_ns,
            steps: kind.regular().count(),
            kind: Some(kind.name.clone()).filter(|it| !it.is_empty()),
            words: format!("{} {}{between}", kind.length(), step_of(kind)),
        }
    }
}

/// "step", "decode step".
fn step_of(kind: &StepKind) -> String {
    format!("{} step", kind.name).trim_start().to_owned()
}

/// "2 prefill steps of 760 ms (mean) take 87 % of the time".
pub(super) fn other_kind(kind: &StepKind, part: f64) -> String {
    let steps = counted(
        kind.steps.len() as u64,
        &step_of(kind),
        &format!("{}s", step_of(kind)),
    );
    let take = if kind.steps.len() == 1 {
        "takes"
    } else {
        "take"
    };
    // A median stands for no sum.
    let length = duration(kind.total_ns / kind.steps.len().max(1) as Ns);
    let mean = if kind.steps.len() == 1 { "" } else { " (mean)" };
    format!(
        "{steps} of {length}{mean} {take} {} of the time",
        percent(part)
    )
}

/// The first batch of PyTorch's loader, where it takes a tenth as long as what the GPU does from its first operation on, or longer.
pub(super) fn loaded(trace: &Trace, span: Ns, first: Ns) -> Option<String> {
    let longest = describe::loads(trace, first)?;
    let is_worth = cases::LARGE_SHARE.is_reached_by(share(longest, span));
    let time = duration(longest);
    is_worth.then(|| format!("{time} in DataLoader before the first operation"))
}

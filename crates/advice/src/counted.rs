//! What steps findings are counted in and replayed with.

use std::ops::Range;

use crate::facts::Facts;
use activity::units::share;
use activity::{Ns, Span};
use figures::steps::Steps;
use findings::OfSteps;
use replay::whatif::WhatIf;
use trace::Lane;

/// The steps of a window that findings are counted in, of so many of their kind.
pub(super) fn counted_in(steps: &Steps, window: Span, kind: usize) -> OfSteps {
    // The median of uneven steps is no part of what all of them take. Of others it is the length that the headline's share is of.
    let mean = window.len() / steps.steady.len().max(1) as Ns;
    let median = steps.main().median_ns;
    // Where many are far shorter, all of them take less than their number times the median: no saving may be above what there is.
    let is_mean = steps.main().is_uneven || 10 * mean < 9 * median;
    OfSteps {
        one: if is_mean { mean } else { median },
        all: window.len(),
        count: steps.steady.len(),
        of: kind,
        first: steps.steady.start,
        found: steps.spans.len(),
        is_mean,
    }
}

/// The same with the longest stretch of steps of the main kind alone, none of them odd, where there are others. Rules look at one
/// stretch, and what is found a step is to be of such steps.
pub(super) fn longest_alike(steps: &Steps) -> Option<Steps> {
    let main = steps.main();
    let regular: Vec<usize> = main.regular().collect();
    let length = |step: usize| steps.spans[step].len();
    let all: Ns = steps.steady.clone().map(length).sum();
    // Of an odd step what it takes more than the others is all that is different.
    let odd = (main.steps.len() - regular.len()) as Ns * main.median_ns;
    let others = all - odd - regular.iter().map(|it| length(*it)).sum::<Ns>();
    // Next to no time makes no difference a step, and in a part of the loop what adds up is less than there is.
    if share(others, all) < FEW_OTHERS {
        return None;
    }
    let runs = regular.chunk_by(|a, b| a + 1 == *b);
    let longest = runs.max_by_key(|run| run.len())?;
    let steady = longest[0]..longest[0] + longest.len();
    let of = || steps.only(steady);
    (longest.len() >= STEPS_LEAST).then(of)
}

/// Other steps that take less of the time are looked at with the regular ones.
const FEW_OTHERS: f64 = 0.01;

/// Fewer steps in a row tell rules nothing of a loop.
const STEPS_LEAST: usize = 3;

/// Operations that findings are replayed with, where steps can stand for others. A replay takes some 3 us for each, and
/// every finding takes a few.
const OPERATIONS: usize = 200_000;

/// Operations that they are replayed with at most.
const OPERATIONS_MAX: usize = 500_000;

/// The steps that are replayed: the last ones, where they are many. At least as many as make an interval.
const STEPS_MIN: usize = 6;

pub(super) fn replayed<'a>(
    facts: &'a Facts<'a>,
    main: Option<&Steps>,
    window: Option<Span>,
) -> Result<WhatIf<'a>, String> {
    let operations = |window: Option<Span>| -> usize {
        let streams = facts.trace.streams();
        let of = |(_, lane): (_, &Lane)| window.map_or(lane.len(), |w| lane.starting(w).len());
        streams.map(of).sum()
    };
    let few = operations(window) <= OPERATIONS;
    let Some(main) = main.filter(|_| !few) else {
        let count = operations(window);
        if count > OPERATIONS_MAX {
            return Err(format!(
                "{count} operations without steps are too many to replay for each finding: ask `cuptop whatif`"
            ));
        }
        return WhatIf::of_steps(facts.basis(), main, window);
    };
    let mut steady = main.steady.clone();
    let of_steps = |steady: &Range<usize>| {
        let (first, last) = (main.spans[steady.start], main.spans[steady.end - 1]);
        Span::new(first.start, last.end)
    };
    while steady.len() > STEPS_MIN && operations(Some(of_steps(&steady))) > OPERATIONS {
        steady.start += (steady.len() - STEPS_MIN).div_ceil(2);
    }
    let span = of_steps(&steady);
    let count = operations(Some(span));
    if count > OPERATIONS_MAX {
        return Err(format!(
            "the last {STEPS_MIN} steps have {count} operations, too many to replay for each finding: ask `cuptop whatif`"
        ));
    }
    let times = main.steady.len() as f64 / steady.len() as f64;
    let last = main.only(steady);
    let mut of = WhatIf::of_steps(facts.basis(), Some(&last), Some(span))?;
    of.times = times;
    Ok(of)
}

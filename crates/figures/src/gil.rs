//! A thread of Python that computes and holds the GIL: whoever launches gets it back after the interpreter's switch interval.

use activity::{Ns, Span};
use causes::graph::OpId;
use causes::{Causes, stacks};
use trace::Trace;

/// After so long Python asks a thread that computes for the GIL (`sys.getswitchinterval`), and waking the other one takes so much longer
/// at most. Measured beside a thread that counts words, on an H200's machine: 5.15 to 5.4 ms.
const INTERVAL: Ns = 5_000_000;
const AWAKE: Ns = 600_000;

/// So many waits, and this part of their time, tell that it is the GIL.
const WAITS: usize = 16;
const MOST: (Ns, Ns) = (3, 4);

/// Whether a wait lasts one interval or several.
fn is_turn(time: Ns) -> bool {
    let turns = time / INTERVAL;
    turns > 0 && time - turns * INTERVAL <= turns * AWAKE
}

/// Whether these gaps, each before an operation, are mostly waits for the GIL while another thread was seen at work.
pub fn is_held(trace: &Trace, causes: &Causes<'_>, gaps: &[(Span, OpId)]) -> bool {
    let all: Ns = gaps.iter().map(|it| it.0.len()).sum();
    let turns: Vec<_> = gaps.iter().filter(|it| is_turn(it.0.len())).collect();
    let taken: Ns = turns.iter().map(|it| it.0.len()).sum();
    let is_beside = |it: &&&(Span, OpId)| {
        let launcher = causes.launcher(it.1);
        launcher.is_some_and(|at| stacks::works_beside(trace, at, it.0))
    };
    // A look comes every second turn or so.
    turns.len() >= WAITS
        && taken * MOST.1 >= all * MOST.0
        && 4 * turns.iter().take(WAITS).filter(is_beside).count() >= WAITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_whole_intervals_and_a_little_more() {
        for (time, expected) in [
            (4_900_000, false),
            (5_200_000, true),
            (5_700_000, false),
            (10_400_000, true),
            (7_000_000, false),
            (16_000_000, true),
        ] {
            assert_eq!(is_turn(time), expected, "{time}");
        }
    }
}

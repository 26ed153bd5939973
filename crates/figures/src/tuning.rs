//! How much of a program's time Triton's autotuner has.

use activity::{Ns, Span};
use causes::stacks::StackCounts;
use trace::Trace;

/// Who tunes at the start does so in the first of so many parts of the time.
const PARTS: Ns = 4;

/// In each of them at least this part of the samples has to be the autotuner's.
const EACH: f64 = 0.1;

/// The samples of programs' main threads in Triton's autotuner, and how many there are in all; `None` where it is not at work all along.
pub fn goes_on(trace: &Trace, processes: &[usize], span: Span) -> Option<(StackCounts, u64)> {
    let (mut tuning, mut all) = (StackCounts::default(), 0);
    for part in 0..PARTS {
        let at = |part| span.start + span.len() / PARTS * part;
        let part = Span::new(at(part), at(part + 1));
        let mut seen = StackCounts::default();
        for &process in processes {
            let main = trace.processes()[process].info.pid;
            seen.add_samples(trace, process, main, part);
        }
        let tuned = seen.filtered(trace, |it| it.file.ends_with("runtime/autotuner.py"));
        if tuned.all == 0 || (tuned.all as f64) < EACH * seen.all as f64 {
            return None;
        }
        tuning.add(&tuned);
        all += seen.all;
    }
    Some((tuning, all))
}

//! How much a program owes to its residuals: played again with the usual ones in their place.

use super::{Hold, Program};
use crate::activity::Ns;

/// The median, of an even number the lower of the two in the middle; 0 of none.
pub(super) fn median(all: &mut [Ns]) -> Ns {
    match all.len().checked_sub(1) {
        Some(last) => *all.select_nth_unstable(last / 2).1,
        None => 0,
    }
}

impl Program {
    /// The same with every residual of a start, and every tail of a return, replaced by the median of those
    /// that were held alike. Lengths of operations and calls, and the threads' own time, stay.
    #[must_use]
    pub fn without_residuals(&self) -> Program {
        let mut program = self.clone();
        let smooth = |values: &mut [Ns], holds: &[Hold]| {
            let mut all: Vec<Vec<Ns>> = vec![Vec::new(); Hold::COUNT];
            for (&value, &hold) in values.iter().zip(holds) {
                all[hold as usize].push(value);
            }
            let medians: Vec<Ns> = all.iter_mut().map(|all| median(all)).collect();
            for (value, &hold) in values.iter_mut().zip(holds) {
                if hold != Hold::Nothing {
                    *value = medians[hold as usize];
                }
            }
        };
        smooth(&mut program.ops.residual, &self.ops.hold);
        smooth(&mut program.calls.tail, &self.calls.hold);
        program
    }

    /// How far the time from the first operation to the last is off when every residual is the usual one, as a
    /// share: what the graph does not explain. `None` without operations.
    #[must_use]
    pub fn replay_error(&self) -> Option<f64> {
        let recorded = self.run().span().len();
        let played = self.without_residuals().run().span().len();
        (recorded > 0).then(|| (played - recorded).unsigned_abs() as f64 / recorded as f64)
    }
}

//! Counts the operations that steps unroll to, before anything is unrolled. So a loop of 10^9 by accident costs an
//! error and not the machine's memory.

use super::super::plan::MAX_OPS;
use super::{Loc, Step, Unroll};

/// A loop that is too long.
pub(crate) struct TooMany {
    pub(super) loc: Loc,
    pub(super) count: u64,
}

/// Whether steps unroll to as many operations as may be. Reports it when not.
pub(crate) fn fit<'f>(steps: &'f [Step], unroll: &mut Unroll<'_, 'f>) -> bool {
    match count(steps, unroll) {
        Ok(_) => true,
        Err(TooMany { loc, count }) => {
            let message = format!(
                "this loop makes at least {count} operations; a variant may have {MAX_OPS}"
            );
            let help =
                "fewer iterations, or one step with `chunk` in the place of a loop of copies";
            unroll.error_help(loc, message, help);
            false
        }
    }
}

/// Operations of steps. What cannot be evaluated counts as nothing here; unrolling reports it.
pub(super) fn count<'f>(steps: &'f [Step], unroll: &mut Unroll<'_, 'f>) -> Result<u64, TooMany> {
    let mut total = 0u64;
    for step in steps {
        total = total.saturating_add(step.kind.count(unroll, step.loc)?);
    }
    Ok(total)
}

/// Whether the number of operations of steps can depend on a loop variable.
pub(super) fn depends_on(steps: &[Step], variable: &str) -> bool {
    let mut steps = steps.iter();
    steps.any(|step| step.kind.count_depends_on(variable))
}

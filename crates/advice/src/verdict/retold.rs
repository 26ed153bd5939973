//! A headline in the words of the first finding, where that knows the cause by its name.

use super::words::class;
use super::{Bound, Verdict};
use crate::findings::Says;
use activity::Ns;
use activity::text::printable;

impl Verdict {
    /// Takes the words of a finding, where that tells of the same time or of more.
    pub(super) fn retell(&mut self, says: &Says) {
        let is_stall = |it| matches!(it, Bound::Host | Bound::Launch | Bound::Sync);
        let is_same =
            says.bound == self.bound_by || is_stall(says.bound) && is_stall(self.bound_by);
        if self.frames[0].is_empty() || !is_same && says.part <= self.share {
            return;
        }
        let frame = &self.frames[usize::from(!is_stall(says.bound))];
        // Rules say it in few words, whose names are cut already: a word cut in its middle is a riddle.
        self.text = printable(&format!("{}{frame}, {}", class(says.bound), says.why));
        (self.bound_by, self.share) = (says.bound, says.part);
        let part = |time: Ns| (says.part * time as f64) as Ns;
        self.cost_a_step_ns = self.scope.step_ns.map(part);
        self.cost_ns = part(self.span_ns);
    }
}

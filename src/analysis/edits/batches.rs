//! What becomes one: the calls of a run of operations.

use super::Editing;
use crate::analysis::program::NONE;

impl Editing<'_, '_> {
    /// The first operation's call stays; those of the others go, with all that their thread did between
    /// the first and the last, unless that is kept. Returns the one that stays.
    pub(super) fn join_calls(&mut self, run: &[u32], keeps_work: bool) -> Option<u32> {
        let calls = run.iter().map(|&op| self.program.ops[op as usize].call);
        let mut calls: Vec<u32> = calls.filter(|&call| call != NONE).collect();
        calls.sort_unstable();
        let (&first, &last) = (calls.first()?, calls.last()?);
        let mut lanes: Vec<u32> = calls
            .iter()
            .map(|&c| self.program.calls[c as usize].lane)
            .collect();
        lanes.sort_unstable();
        lanes.dedup();
        for call in first + 1..=last {
            let of = &self.program.calls[call as usize];
            let is_of_run = calls.binary_search(&call).is_ok();
            // Calls between that wait for nothing only served the launches.
            if is_of_run || (lanes.contains(&of.lane) && of.waits.is_empty()) {
                if keeps_work {
                    self.remove_call(call);
                } else {
                    self.remove_work(call);
                }
            }
        }
        Some(first)
    }
}

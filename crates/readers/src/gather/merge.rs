//! Merges sorted runs of records into one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use activity::{Activity, Ns};

/// The sort key of records: of two with one start the longer goes first, as the other nests in it.
pub(super) fn key(activity: &Activity) -> (Ns, Reverse<Ns>) {
    (activity.span.start, Reverse(activity.span.end))
}

/// So many places a record is moved by on average where a file is in order but for what overlaps.
const MOVES: usize = 8;

/// Puts records in order. Most stand a few places from theirs, as operations start after what comes next on the host.
pub(super) fn sort(run: &mut [Activity]) {
    let mut left = MOVES * run.len();
    for at in 1..run.len() {
        let behind = run[..at].iter().rev();
        let moves = behind
            .take(left + 1)
            .take_while(|it| key(it) > key(&run[at]));
        let moves = moves.count();
        if moves > left {
            return run.sort_by_key(key);
        }
        left -= moves;
        run[at - moves..=at].rotate_right(1);
    }
}

/// The next record of a run. Of equal ones, that of the earlier process and run goes first. So the order is the file's,
/// wherever its runs begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key: (Ns, Reverse<Ns>),
    process: usize,
    run: usize,
}

/// Hands out the records of all runs in order.
#[derive(Debug, Default)]
pub(super) struct Merge {
    /// The rest of each run. A run without a rest is freed at once.
    runs: Vec<std::vec::IntoIter<Activity>>,
    heads: BinaryHeap<Reverse<Head>>,
}

impl Merge {
    /// Runs of several processes, each of them sorted.
    pub(super) fn new(processes: impl Iterator<Item = Vec<Vec<Activity>>>) -> Merge {
        let mut merge = Merge::default();
        for (process, runs) in processes.enumerate() {
            for run in runs {
                if let Some(first) = run.first() {
                    let head = Head {
                        key: key(first),
                        process,
                        run: merge.runs.len(),
                    };
                    merge.heads.push(Reverse(head));
                    merge.runs.push(run.into_iter());
                }
            }
        }
        merge
    }

    /// Hands out the next records, about `count` of them, each with its process. False when there are no more.
    pub(super) fn take(&mut self, count: usize, mut give: impl FnMut(usize, Activity)) -> bool {
        let mut left = count;
        while left > 0 {
            let Some(Reverse(first)) = self.heads.pop() else {
                return false;
            };
            let second = self.heads.peek().map(|head| head.0);
            let run = &mut self.runs[first.run];
            // Mostly many records of one run come before the next of another one.
            let mut head = first;
            while left > 0 && second.is_none_or(|second| head < second) {
                let Some(item) = run.next() else { break };
                give(first.process, item);
                left -= 1;
                let Some(next) = run.as_slice().first() else {
                    break;
                };
                head.key = key(next);
            }
            if run.as_slice().is_empty() {
                *run = Vec::new().into_iter();
            } else {
                self.heads.push(Reverse(head));
            }
        }
        true
    }
}

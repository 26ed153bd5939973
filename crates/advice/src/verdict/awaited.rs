//! A GPU that mostly waits for other ranks.

use std::cmp::Reverse;

use activity::Ns;
use activity::text::printable;
use activity::units::{duration, share};
use figures::DeviceFigures;
use jobs::{JobAnalysis, Rank};

/// Of a GPU most of whose work is to wait for other ranks: "GPU 0 waits for pid 13097 in collectives for 168 of the 209 ms that it works".
pub(super) fn waits(ranks: &JobAnalysis, devices: &[DeviceFigures]) -> Option<String> {
    let of = |at: usize| {
        let exposed = ranks.split.sums[at].exposed_ns;
        let device = ranks.ranks[at].device;
        let f = devices.iter().find(|f| f.index == device)?;
        let is_much = cases::WORTH_SHARE.is_reached_by(share(exposed, f.span_ns));
        (is_much && 2 * exposed > f.busy_ns).then_some((exposed, at, f))
    };
    let all = 0..ranks.ranks.len();
    let (time, at, f) = all.filter_map(of).max_by_key(|it| it.0)?;
    let others: Vec<&Rank> = ranks
        .ranks
        .iter()
        .filter(|it| it.device != f.index)
        .collect();
    let whom = match others.as_slice() {
        [one] => &one.name,
        _ => "other ranks",
    };
    let few = few(ranks.split.waits[at].iter().map(|it| it.exposed).collect());
    let all = ranks.split.sums[at].judged;
    Some(format!(
        "{} waits for {whom} in collectives for {} of the {} that its GPU works{}",
        printable(&ranks.ranks[at].name),
        duration(time),
        duration(f.busy_ns),
        few.map_or_else(String::new, |few| format!(
            ", nearly all of it in {few} of {all} collectives"
        )),
    ))
}

/// How few of so many waits hold nine tenths of their time, where that is a tenth of them at most: no steady lateness.
fn few(mut waits: Vec<Ns>) -> Option<usize> {
    waits.sort_unstable_by_key(|it| Reverse(*it));
    let all: Ns = waits.iter().sum();
    let mut so_far = 0;
    let most = waits.iter().position(|it| {
        so_far += it;
        10 * so_far >= 9 * all
    });
    let few = most.map_or(0, |at| at + 1);
    (all > 0 && 10 * few <= waits.len()).then_some(few)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_waits_that_holds_nine_tenths_of_their_time_is_few() {
        // 132 + 28 of 168 ms in two of 30 waits; and as much in each of thirty.
        let mut waits = vec![285_714; 28];
        waits.extend([28_000_000, 132_000_000]);
        assert_eq!(few(waits), Some(2));
        assert_eq!(few(vec![5_600_000; 30]), None);
        assert_eq!(few(vec![1, 2]), None);
        assert_eq!(few(Vec::new()), None);
    }
}

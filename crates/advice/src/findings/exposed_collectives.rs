//! Collective communication that nothing runs beside.

use super::{DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::Ns;
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{duration, percent};
use figures::collectives::Collectives;

const ADVICE: &str = "Overlap: send finished parts (buckets) on their own stream while the rest is computed. Or send less, or less often.";

const UNKNOWN: &str = "One late rank makes these kernels long on all others: record every rank to see who waits for whom.";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let window = scope.window_on(f.index);
    let collectives = Collectives::of(scope.trace, f, window);
    // What a rank waits in them for a later one is another rule's, where the ranks are known.
    let waits = scope.ranks.map(|ranks| ranks.waits_on(f.index, window));
    let waited: Ns = waits.into_iter().flatten().map(|it| it.1).sum();
    let alone = collectives.alone - waited;
    let [share, all] = [alone, collectives.took].map(|it| f.part(it));
    // One rank by itself does not show who waits: what takes much is told, though most of it is hidden.
    let is_much = scope.ranks.is_none() && all >= thresholds::COLLECTIVE_SHARE;
    let least = match is_much {
        true => cases::WORTH_SHARE.value(),
        false => thresholds::EXPOSED_SHARE,
    };
    if share < least {
        return None;
    }
    let most = scope.trace.names().short(collectives.most?);
    let length = |&(lane, row): &(usize, usize)| scope.trace.lanes()[lane].span(row).len();
    let mut rows = collectives.rows;
    rows.sort_by_cached_key(|at| (std::cmp::Reverse(length(at)), *at));
    // One that takes most of it waits for a late rank, which no overlap hides.
    let lengths: Vec<Ns> = rows.iter().map(length).collect();
    let one = match (scope.ranks, &lengths[..]) {
        (None, &[first, second, .., _]) if 2 * first >= collectives.took => first - second,
        _ => 0,
    };
    let of_one = match one {
        0 => String::new(),
        _ => format!(", one of them {}", duration(lengths[0])),
    };
    // What runs beside them already hides nothing more.
    let beside = (f.busy_ns - collectives.took).max(0);
    if !cases::WORTH_SHARE.is_reached_by(f.part(beside)) {
        return None;
    }
    let bound = (alone - one).clamp(0, beside);
    let at: Vec<Occurrence> = rows.into_iter().map(Occurrence::Row).collect();
    Some(Finding {
        title: format!(
            "{} of communication between GPUs take {} ({}){of_one}; {} ({}) of it is not overlapped, mostly {}",
            activity::text::counted(at.len() as u64, "kernel", "kernels"),
            duration(collectives.took),
            percent(all),
            duration(alone),
            percent(share),
            cut_middle(most, NAME_MAX),
        ),
        advice: match scope.ranks {
            Some(_) => ADVICE.to_owned(),
            None => format!("{ADVICE} {UNKNOWN}"),
        },
        ..scope.found(f.span_ns, bound, &at)
    })
}

//! Data on its way from one GPU to another through the host's memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{Copied, DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::{bytes, duration, share};
use activity::{Copy, Direction, Ns, Span, What};

pub(super) fn check<'a>(scope: &'a Scope<'a>) -> Option<Finding> {
    if scope.devices.len() < 2 {
        return None;
    }
    let of_device = |f: &'a DeviceFigures| scope.copies(f).iter().map(move |it| (f.index, it));
    let in_order = |direction: Direction| {
        let all = scope.devices.iter().flat_map(of_device);
        let mut all: Vec<_> = all.filter(|it| it.1.2.direction == direction).collect();
        all.sort_by_key(|it| it.1.1);
        all
    };
    let (down, up) = (in_order(Direction::D2H), in_order(Direction::H2D));
    // Each copy up belongs to the last one down of the same size that had ended, once.
    let mut pairs = Vec::new();
    let mut from = 0;
    for (device, &(place, span, copy)) in down {
        let is_before = |(_, it): &&(usize, &Copied)| it.1.start < span.end;
        from += up[from..].iter().take_while(is_before).count();
        let Some(&(other, &(up_place, up_span, back))) = up.get(from) else {
            break;
        };
        if other != device && back.bytes == copy.bytes && back.bytes > Copy::TINY_BYTES {
            from += 1;
            let at = [place, up_place].map(Occurrence::Row);
            pairs.push((copy.bytes, [device, other], [span, up_span], at));
        }
    }
    // A scenario says what it means with one.
    let fewest = scope.planned.map_or(thresholds::THROUGH_HOST_MIN, |_| 1);
    if pairs.len() < fewest {
        return None;
    }
    // Equal sizes alone are chance where each of these GPUs has its own input of that size, before it sends results of it.
    let fed = fed(scope);
    let ends = pairs
        .iter()
        .flat_map(|it| it.1.map(|device| (device, it.0)));
    let passed: BTreeSet<u64> = ends.filter(|it| !fed.contains(it)).map(|it| it.1).collect();
    pairs.retain(|it| passed.contains(&it.0));
    let moved: u64 = pairs.iter().map(|it| it.0).sum();
    let spans = pairs.iter().flat_map(|it| it.2).collect();
    let at: Vec<_> = pairs.iter().flat_map(|it| it.3).collect();
    let whole = scope.span().len();
    // How fast a direct copy is nobody knows: beside kernels it may take no time at all.
    let saving: Ns = Span::union_len(spans);
    if pairs.len() < fewest || !cases::WORTH_SHARE.is_reached_by(share(saving, whole)) {
        return None;
    }
    Some(Finding {
        title: format!(
            "{} go from GPU to GPU through host memory, in {}; both ways take {}",
            bytes(moved),
            activity::text::counted(pairs.len() as u64, "pair of copies", "pairs of copies"),
            duration(saving),
        ),
        advice: "Copy directly (cudaMemcpyPeerAsync, NCCL), with peer access enabled where the link allows it.".to_owned(),
        ..scope.found(whole, saving, &at)
    })
}

/// The GPUs that get a copy before they first send one of the same size, each with that size.
fn fed(scope: &Scope) -> BTreeSet<(usize, u64)> {
    let mut first: BTreeMap<(usize, u64), [Ns; 2]> = BTreeMap::new();
    for f in scope.devices {
        let lanes = scope.trace.streams_of(f.index);
        let all = lanes.flat_map(|(id, lane)| scope.trace.activities(id, lane.kept()));
        for (_, it) in all {
            let (copy, way) = match it.what {
                What::Copy(copy) if copy.direction == Direction::H2D => (copy, 0),
                What::Copy(copy) if copy.direction == Direction::D2H => (copy, 1),
                _ => continue,
            };
            let times = first.entry((f.index, copy.bytes)).or_insert([Ns::MAX; 2]);
            times[way] = times[way].min(it.span.start);
        }
    }
    first.retain(|_, [up, down]| up < down && *down < Ns::MAX);
    first.into_keys().collect()
}

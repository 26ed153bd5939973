//! Data on its way from one GPU to another through the host's memory.

use super::{Copied, DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::{bytes, duration, share};
use activity::{Copy, Direction, Ns, Span};

pub(super) fn check<'a>(scope: &'a Scope<'a>) -> Option<Finding> {
    if scope.devices.len() < 2 {
        return None;
    }
    let of_device = |f: &'a DeviceFigures| scope.copies(f).iter().map(|it| (f.index, it));
    let in_order = |direction: Direction| {
        let all = scope.devices.iter().flat_map(of_device);
        let mut all: Vec<_> = all.filter(|it| it.1.2.direction == direction).collect();
        all.sort_by_key(|it| it.1.1);
        all
    };
    let (down, up) = (in_order(Direction::D2H), in_order(Direction::H2D));
    // Each copy up belongs to the last one down of the same size that had ended, once.
    let (mut at, mut spans, mut moved) = (Vec::new(), Vec::new(), 0u64);
    let (mut from, mut pairs) = (0, 0);
    for (device, &(place, span, copy)) in down {
        let is_before = |(_, it): &&(usize, &Copied)| it.1.start < span.end;
        from += up[from..].iter().take_while(is_before).count();
        let Some(&(other, &(up_place, up_span, back))) = up.get(from) else {
            break;
        };
        if other != device && back.bytes == copy.bytes && back.bytes > Copy::TINY_BYTES {
            from += 1;
            moved += copy.bytes;
            pairs += 1;
            spans.extend([span, up_span]);
            at.extend([Occurrence::Row(place), Occurrence::Row(up_place)]);
        }
    }
    let whole = scope.span().len();
    // How fast a direct copy is nobody knows: beside kernels it may take no time at all.
    let saving: Ns = Span::union_len(spans);
    // A scenario says what it means with one.
    let fewest = scope.planned.map_or(thresholds::THROUGH_HOST_MIN, |_| 1);
    if pairs < fewest || !cases::WORTH_SHARE.is_reached_by(share(saving, whole)) {
        return None;
    }
    Some(Finding {
        title: format!(
            "{} go from GPU to GPU through host memory, in {}; both ways take {}",
            bytes(moved),
            activity::text::counted(pairs as u64, "pair of copies", "pairs of copies"),
            duration(saving),
        ),
        advice: "Copy directly (cudaMemcpyPeerAsync, NCCL), with peer access enabled where the link allows it.".to_owned(),
        ..scope.found(whole, saving, &at)
    })
}

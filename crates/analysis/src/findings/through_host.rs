//! Data on its way from one GPU to another through the host's memory.

use super::{Finding, Occurrence, Scope, thresholds};
use crate::tables;
use activity::units::{bytes, duration};
use activity::{Direction, Ns, Span, What};

struct Copied {
    device: usize,
    span: Span,
    bytes: u64,
    at: super::At,
}

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    if scope.devices.len() < 2 {
        return None;
    }
    let (mut down, mut up): (Vec<Copied>, Vec<Copied>) = (Vec::new(), Vec::new());
    for f in scope.devices {
        for (at, activity) in scope.operations(f) {
            let What::Copy(copy) = activity.what else {
                continue;
            };
            let list = match copy.direction {
                Direction::D2H => &mut down,
                Direction::H2D => &mut up,
                _ => continue,
            };
            list.push(Copied {
                device: f.index,
                span: activity.span,
                bytes: copy.bytes,
                at,
            });
        }
    }
    down.sort_by_key(|c| c.span);
    up.sort_by_key(|c| c.span);
    // Each copy up belongs to the last one down of the same size that had ended, once.
    let (mut at, mut spans, mut moved) = (Vec::new(), Vec::new(), 0u64);
    let mut from = 0;
    for d in &down {
        from += up[from..]
            .iter()
            .take_while(|u| u.span.start < d.span.end)
            .count();
        let Some(u) = up.get(from) else {
            break;
        };
        if u.device != d.device && u.bytes == d.bytes && u.bytes > thresholds::TINY_BYTES {
            from += 1;
            moved += d.bytes;
            spans.push(d.span);
            at.extend([Occurrence::Row(d.at), Occurrence::Row(u.at)]);
        }
    }
    let pairs = spans.len();
    let whole = scope.span().len();
    // The way up takes as long as a copy between the GPUs at least.
    let saving: Ns = tables::union(spans);
    // A scenario says what it means with one.
    let fewest = scope.planned.map_or(thresholds::THROUGH_HOST_MIN, |_| 1);
    if pairs < fewest || super::figures::share(saving, whole) < thresholds::WORTH_SHARE {
        return None;
    }
    Some(Finding {
        title: format!(
            "{} go from GPU to GPU through host memory, in {}; the D2H part takes {}",
            bytes(moved),
            activity::text::counted(pairs as u64, "pair of copies", "pairs of copies"),
            duration(saving),
        ),
        advice: "Copy directly (cudaMemcpyPeerAsync, NCCL), with peer access enabled where the link allows it.".to_owned(),
        ..scope.found(whole, saving, &at)
    })
}

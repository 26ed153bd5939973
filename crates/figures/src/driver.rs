//! The driver's own start: before a program's first CUDA call it asks its device files some hundred times.

use activity::{Ns, RangeKind, Span, What};
use trace::{LaneId, LaneKey, LaneKind, Trace};

/// So many questions to devices are the driver's, where it opens so many files among them. Cameras and terminals open few.
/// Reports keep long calls only.
const ASKS_MIN: usize = 50;
const OPENS_MIN: usize = 3;

/// Between two of them lies no longer time, in which there are shorter ones.
const PAUSE: Ns = 50_000_000;
/// They take this part of all.
const ASKS_SHARE: Ns = 3;

/// A shorter start is no matter.
const LONG: Ns = 500_000_000;

/// By process, where the first one stands, and from when to when it takes, where that is long. Calls of the system show it.
pub fn set_up(trace: &Trace) -> Vec<((LaneId, usize), Span)> {
    let mut first: Vec<(usize, Ns, u32)> = Vec::new();
    for (_, lane, _) in trace.threads() {
        let (LaneKey { process, kind }, Some(extent)) = (lane.key(), lane.extent()) else {
            continue;
        };
        if let LaneKind::Thread { thread } = kind {
            first.push((process, extent.start, thread));
        }
    }
    first.sort_unstable();
    first.dedup_by_key(|it| it.0);
    let of = |it: &(usize, Ns, u32)| asks(trace, *it);
    first.iter().filter_map(of).collect()
}

/// What a thread asks before its first call, back to the first pause.
fn asks(
    trace: &Trace,
    (process, call, thread): (usize, Ns, u32),
) -> Option<((LaneId, usize), Span)> {
    let kind = RangeKind::Nvtx;
    let kind = LaneKind::Range { kind, thread };
    let id = trace.lane_id(LaneKey { process, kind })?;
    let lane = &trace.lanes()[id];
    let rows: Vec<usize> = lane.starting(Span::new(Ns::MIN / 4, call)).collect();
    let (mut from, mut asks, mut opens) = (call, Vec::new(), 0);
    for row in rows.into_iter().rev() {
        let What::Range(of) = trace.what(id, row) else {
            continue;
        };
        let name = trace.names().full(of.name);
        let (opened, asked) = (name.starts_with("open"), name == "ioctl");
        if of.kind != RangeKind::CpuOp || !opened && !asked {
            continue;
        }
        let span = lane.span(row);
        if from - span.end > PAUSE {
            break;
        }
        from = span.start;
        opens += usize::from(opened);
        if asked {
            asks.push((row, span.intersect(Span::new(span.start, call))));
        }
    }
    let (at, first) = *asks.last()?;
    let all = Span::new(first.start, asks.first()?.1.end);
    let time: Ns = asks.iter().map(|it| it.1.len()).sum();
    let is_driver = asks.len() >= ASKS_MIN && opens >= OPENS_MIN && ASKS_SHARE * time >= all.len();
    (is_driver && all.len() >= LONG).then_some(((id, at), all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::Scene;

    const MS: Ns = 1_000_000;

    /// So many questions of so long right before the first call, each behind a file that is opened or not.
    fn set_up_of(asks: Ns, each: Ns, opens: bool) -> Ns {
        let mut scene = Scene::new();
        for at in (0..asks).map(|it| it * (each + MS)) {
            if opens {
                scene.range(RangeKind::CpuOp, "open64", 0, at, at + 1_000);
            }
            scene.range(RangeKind::CpuOp, "ioctl", 0, at + 2_000, at + 2_000 + each);
        }
        let at = asks * (each + MS);
        scene.call("cudaMalloc", at, at + 100 * MS);
        let found = set_up(&scene.trace());
        found.iter().map(|it| it.1.len()).sum()
    }

    #[test]
    fn many_questions_among_opened_files_are_the_drivers() {
        // 200 times 3 ms, and 1 ms between two.
        assert_eq!(set_up_of(200, 3 * MS, true), 799 * MS);
        // A camera opens one file; few questions; a start of 400 ms.
        assert_eq!(set_up_of(200, 3 * MS, false), 0);
        assert_eq!(set_up_of(40, 20 * MS, true), 0);
        assert_eq!(set_up_of(200, MS, true), 0);
    }

    #[test]
    fn what_lies_before_a_pause_is_no_part_of_it() {
        let mut scene = Scene::new();
        for at in (0..200).map(|it| it * 4 * MS) {
            scene.range(RangeKind::CpuOp, "open64", 0, at, at + 1_000);
            scene.range(RangeKind::CpuOp, "ioctl", 0, at + 2_000, at + 3 * MS);
        }
        scene.call("cudaMalloc", 901 * MS, 950 * MS);
        assert!(set_up(&scene.trace()).is_empty());
    }
}

//! The stretches of a device with nothing running: found once, and walked once, for many questions about all of them or a window.
//!
//! To find them the search passes every operation of all devices. It takes longer than the walk through the gaps, so
//! they are kept (24 bytes each) once somebody asks for all. A window's come from them where they are there. Most gaps
//! of a long run have one cause, which is kept too (20 bytes); others are walked anew.

use std::ops::Range;
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::sum::Sums;
use super::{Cause, Certainty, Culprit, Gap, Piece};
use crate::graph::{CallId, Graph, NONE, OpId};
use activity::{Ns, Span};

/// All gaps of each device, made when first asked for.
#[derive(Debug)]
pub(super) struct Gaps {
    of_device: Vec<DeviceGaps>,
}

#[derive(Debug, Default)]
struct DeviceGaps {
    all: OnceLock<Vec<Gap>>,
    /// By gap: its cause, where it has one.
    causes: OnceLock<Vec<Option<One>>>,
}

impl Gaps {
    /// Of so many devices.
    pub(super) fn new(devices: usize) -> Gaps {
        Gaps {
            of_device: std::iter::repeat_with(DeviceGaps::default)
                .take(devices)
                .collect(),
        }
    }

    /// Whether the causes of all gaps of a device are kept.
    pub(super) fn has_causes(&self, device: usize) -> bool {
        let known = self.of_device.get(device);
        known.is_none_or(|known| known.causes.get().is_some())
    }

    /// Keeps all gaps of a device and their causes. Returns their sums.
    pub(super) fn keep(&self, device: usize, mut walked: Walked) -> Sums {
        if let Some(known) = self.of_device.get(device) {
            walked.all.shrink_to_fit();
            walked.causes.shrink_to_fit();
            // Whoever asked at the same time has kept the same.
            let _ = known.all.set(walked.all);
            let _ = known.causes.set(walked.causes);
        }
        walked.sums
    }

    /// The gaps between the first and the last of a device's operations that start within `window`, or of all. They are
    /// in order, each with its one cause where that is known.
    pub(super) fn find<'g>(
        &'g self,
        graph: &'g Graph,
        device: usize,
        window: Option<Span>,
    ) -> impl Iterator<Item = (Gap, Option<One>)> + use<'g> {
        let ops = graph.ops.of_device(device);
        let known = self.of_device.get(device);
        let none = (ops, 0..0);
        let (own, rows) = match (window, known) {
            (None, None) => none,
            (None, Some(known)) => (&[][..], 0..known.all(graph, device).len()),
            (Some(window), known) => {
                let ops = within(graph, ops, window);
                let all = known.and_then(|known| known.all.get());
                all.map_or((ops, 0..0), |all| joined(graph, ops, all, window))
            }
        };
        let all = known.and_then(|known| known.all.get());
        let causes = known.and_then(|known| known.causes.get());
        let known = rows.filter_map(move |row| {
            let cause = causes.and_then(|causes| causes[row]);
            Some((*all?.get(row)?, cause))
        });
        between(graph, own).map(|gap| (gap, None)).chain(known)
    }
}

/// The gaps of a device that were walked through, from the first on.
#[derive(Default)]
pub(super) struct Walked {
    all: Vec<Gap>,
    causes: Vec<Option<One>>,
    pub(super) sums: Sums,
    /// When the operations so far ended.
    end: Option<Ns>,
}

impl Walked {
    /// The stretch before the device's next operation in which none ran.
    pub(super) fn gap_before(&mut self, graph: &Graph, next: OpId) -> Option<Gap> {
        gap_before(graph, next, &mut self.end)
    }

    pub(super) fn add(&mut self, gap: Gap, pieces: &[Piece]) {
        self.all.push(gap);
        self.causes.push(One::of(pieces));
    }
}

impl DeviceGaps {
    fn all(&self, graph: &Graph, device: usize) -> &[Gap] {
        let ops = graph.ops.of_device(device);
        self.all.get_or_init(|| {
            let mut all = Vec::with_capacity(ops.len());
            all.extend(between(graph, ops));
            all.shrink_to_fit();
            all
        })
    }
}

/// The piece of a gap that has but one, without what the gap tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct One {
    culprit: Who,
    root: CallId,
    cause: Cause,
    certainty: Certainty,
}

/// A [`Culprit`] in less room.
#[derive(Clone, Copy, Debug)]
enum Who {
    Nobody,
    Call(CallId),
    Op(OpId),
    Row(u32, u32),
}

impl One {
    /// `None` where there are several.
    pub(super) fn of(pieces: &[Piece]) -> Option<One> {
        let [piece] = pieces else {
            return None;
        };
        let culprit = match piece.culprit {
            Culprit::Nobody => Who::Nobody,
            Culprit::Call(call) => Who::Call(call),
            Culprit::Op(op) => Who::Op(op),
            Culprit::Row(lane, row) => Who::Row(lane.try_into().ok()?, row.try_into().ok()?),
        };
        Some(One {
            culprit,
            root: piece.root.unwrap_or(NONE),
            cause: piece.cause,
            certainty: piece.certainty,
        })
    }

    fn piece(self, span: Span) -> Piece {
        Piece {
            span,
            cause: self.cause,
            culprit: match self.culprit {
                Who::Nobody => Culprit::Nobody,
                Who::Call(call) => Culprit::Call(call),
                Who::Op(op) => Culprit::Op(op),
                Who::Row(lane, row) => Culprit::Row(lane as usize, row as usize),
            },
            certainty: self.certainty,
            root: Some(self.root).filter(|root| *root != NONE),
        }
    }
}

/// The pieces of a gap in order of time. They sum to it.
pub type Pieces = SmallVec<[Piece; 1]>;

/// Those of a gap whose one cause is known, or else of a walk.
pub(super) fn pieces(gap: Gap, one: Option<One>, walk: impl FnOnce() -> Vec<Piece>) -> Pieces {
    one.map_or_else(|| walk().into(), |one| [one.piece(gap.span)].into())
}

/// The operations of a window whose gaps are still to be found, and the known gaps behind them. What began before the
/// window is no part of it. Where that ran on into the window, the gaps there are others.
fn joined<'g>(
    graph: &Graph,
    ops: &'g [OpId],
    all: &[Gap],
    window: Span,
) -> (&'g [OpId], Range<usize>) {
    let none = (ops, 0..0);
    let Some(&first) = ops.first() else {
        return none;
    };
    let first = graph.ops.start[first as usize];
    let mut at = all.partition_point(|gap| gap.span.end <= first);
    let mut end = Ns::MIN;
    for (i, &op) in ops.iter().enumerate() {
        let Some(gap) = all.get(at) else {
            return none;
        };
        if gap.next == op {
            if gap.span.start == end {
                let behind = all.partition_point(|gap| gap.span.end < window.end);
                return (&ops[..i], at..behind.max(at));
            }
            at += 1;
        }
        end = end.max(graph.ops.end[op as usize]);
    }
    none
}

/// Those of a row of operations that start within a window.
pub(super) fn within<'g>(graph: &Graph, ops: &'g [OpId], window: Span) -> &'g [OpId] {
    let before = |time: Ns| ops.partition_point(|&op| graph.ops.start[op as usize] < time);
    let from = before(window.start);
    &ops[from..before(window.end).max(from)]
}

/// The stretches between operations, which are in order of start, in which none of them ran.
pub(super) fn between<'g>(
    graph: &'g Graph,
    ops: &'g [OpId],
) -> impl Iterator<Item = Gap> + use<'g> {
    let mut end = None;
    ops.iter()
        .filter_map(move |&next| gap_before(graph, next, &mut end))
}

/// The stretch before an operation in which none of those before it ran, which end then.
fn gap_before(graph: &Graph, next: OpId, end: &mut Option<Ns>) -> Option<Gap> {
    let span = graph.ops.span(next);
    let before = end.replace(end.map_or(span.end, |end| end.max(span.end)))?;
    (before < span.start).then(|| Gap {
        span: Span::new(before, span.start),
        next,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::causes::Causes;
    use crate::testing::Scene;
    use activity::RangeKind;

    proptest! {
        /// Whatever runs across the begin of a window: with all gaps at hand its own are those that its operations alone have.
        #[test]
        fn gaps_of_a_window_are_the_same_with_all_at_hand(
            ops in prop::collection::vec((0_i64..400, 1_i64..60, 7_u32..10), 0..40),
            from in 0_i64..420,
            length in 0_i64..200,
        ) {
            let mut scene = Scene::new();
            for (start, length, stream) in ops {
                scene.kernel("k", stream, start, start + length);
            }
            let trace = scene.trace();
            let graph = Graph::new(&trace);
            let window = Some(Span::new(from, from + length));
            let of = |gaps: &Gaps, window| -> Vec<Gap> {
                gaps.find(&graph, 0, window).map(|(gap, _)| gap).collect()
            };
            let alone = of(&Gaps::new(1), window);
            let gaps = Gaps::new(1);
            let all = of(&gaps, None);
            prop_assert_eq!(&all, &of(&gaps, None));
            prop_assert_eq!(&alone, &of(&gaps, window));
            // By hand: what none of the window's operations covers, between the first and the last of them.
            let spans: Vec<Span> = trace
                .streams_of(0)
                .flat_map(|(_, lane)| lane.kept().map(|row| lane.span(row)))
                .filter(|span| from <= span.start && span.start < from + length)
                .collect();
            let idle = (from..from + length).filter(|&time| {
                spans.iter().any(|span| span.start <= time)
                    && spans.iter().any(|span| span.start > time)
                    && !spans.iter().any(|span| span.contains(time))
            });
            let told: Ns = alone.iter().map(|gap| gap.span.len()).sum();
            prop_assert_eq!(told, idle.count() as Ns);
        }

        /// What is kept of a gap's pieces is what a walk says of it, whoever asks, and so are the sums.
        #[test]
        fn kept_causes_are_those_of_a_walk(
            ops in prop::collection::vec((1_i64..60, 1_i64..40, 0_i64..50, 7_u32..9, any::<bool>()), 1..30),
            from in 0_i64..1_000,
            length in 0_i64..2_000,
        ) {
            let mut scene = Scene::new();
            let mut now = 0;
            for (call, lasts, queued, stream, waits) in ops {
                scene.call("cudaLaunchKernel", now, now + call);
                scene.kernel("k", stream, now + call + queued, now + call + queued + lasts);
                now += call + 1;
                if waits {
                    scene.range(RangeKind::Nvtx, "loader", 0, now, now + 2 * queued + 1);
                    now += 3 * queued + 2;
                }
            }
            let trace = scene.trace();
            let graph = Graph::new(&trace);
            let window = Some(Span::new(from, from + length));
            let causes = Causes::new(&trace, &graph);
            let first = causes.idle(0, None);
            prop_assert_eq!(&first, &causes.idle(0, None));
            prop_assert_eq!(causes.idle(0, window), Causes::new(&trace, &graph).idle(0, window));
            let mut kept = 0;
            for (gap, pieces) in causes.gaps_with_pieces(0, None).chain(causes.gaps_with_pieces(0, window)) {
                prop_assert_eq!(pieces.to_vec(), causes.pieces(gap));
                kept += usize::from(!pieces.spilled());
            }
            let single = causes.gaps_of_device(0, None).filter(|gap| causes.pieces(*gap).len() == 1);
            prop_assert!(kept >= single.count());
        }
    }
}

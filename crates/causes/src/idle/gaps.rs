//! The stretches of a device with nothing running: found once, and walked once, for many questions about all of them or a window.
//!
//! To find them the search passes every operation of all devices. It takes longer than the walk through the gaps, so
//! they are kept once somebody asks for all. Of each stays which operations lie around it (8 bytes), and of most the one
//! cause (20 bytes). The others are walked anew. A window's come from them where they are there.

use std::sync::OnceLock;

use smallvec::SmallVec;

use super::sum::Sums;
use super::{Cause, Certainty, Culprit, Gap, Piece};
use crate::graph::{CallId, Graph, NONE, OpId};
use activity::{Ns, Span};

/// All gaps of each device, made when first asked for, each with its cause where it has one.
#[derive(Debug)]
pub(super) struct Gaps {
    of_device: Vec<OnceLock<Vec<Known>>>,
}

type Known = (Ends, Option<One>);

/// The operations at a gap's ends: the one that ended last, and the one that began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    before: OpId,
    next: OpId,
}

impl Ends {
    pub(super) fn gap(self, graph: &Graph) -> Gap {
        let ops = &graph.ops;
        let end = ops.end[self.before as usize];
        Gap {
            span: Span::new(end, ops.start[self.next as usize]),
            next: self.next,
        }
    }
}

impl Gaps {
    /// Of so many devices.
    pub(super) fn new(devices: usize) -> Gaps {
        Gaps {
            of_device: vec![OnceLock::new(); devices],
        }
    }

    /// Whether all gaps of a device are kept.
    pub(super) fn has_all(&self, device: usize) -> bool {
        let known = self.of_device.get(device);
        known.is_none_or(|known| known.get().is_some())
    }

    /// Keeps all gaps of a device and their causes. Returns their sums.
    pub(super) fn keep(&self, device: usize, mut walked: Walked) -> Sums {
        if let Some(known) = self.of_device.get(device) {
            walked.all.shrink_to_fit();
            // Whoever asked at the same time has kept the same.
            let _ = known.set(walked.all);
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
        let known = self.of_device.get(device).and_then(OnceLock::get);
        let (own, known) = match (window, known) {
            (None, None) => (ops, &[][..]),
            (None, Some(all)) => (&[][..], &all[..]),
            (Some(window), known) => {
                let ops = within(graph, ops, window);
                let joined = known.map(|all| joined(graph, ops, all, window));
                joined.unwrap_or((ops, &[]))
            }
        };
        let own = between(graph, own).map(|ends| (ends, None));
        let all = own.chain(known.iter().copied());
        all.map(|(ends, cause)| (ends.gap(graph), cause))
    }
}

/// The gaps of a device that were walked through, from the first on.
#[derive(Default)]
pub(super) struct Walked {
    all: Vec<Known>,
    pub(super) sums: Sums,
    /// Which of the operations so far ended last.
    last: Option<OpId>,
}

impl Walked {
    /// Of no more than so many gaps: what grows bit by bit leaves holes in memory.
    pub(super) fn with_capacity(count: usize) -> Walked {
        Walked {
            all: Vec::with_capacity(count),
            ..Walked::default()
        }
    }

    /// The stretch before the device's next operation in which none ran.
    pub(super) fn next(&mut self, graph: &Graph, next: OpId) -> Option<Ends> {
        ends_before(graph, next, &mut self.last)
    }

    pub(super) fn add(&mut self, ends: Ends, pieces: &[Piece]) {
        self.all.push((ends, One::of(pieces)));
    }
}

/// The piece of a gap that has but one, without what the gap tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct One {
    culprit: Culprit,
    root: CallId,
    cause: Cause,
    certainty: Certainty,
}

impl One {
    /// `None` where there are several.
    pub(super) fn of(pieces: &[Piece]) -> Option<One> {
        let [piece] = pieces else {
            return None;
        };
        Some(One {
            culprit: piece.culprit,
            root: piece.root.unwrap_or(NONE),
            cause: piece.cause,
            certainty: piece.certainty,
        })
    }

    fn piece(self, span: Span) -> Piece {
        Piece {
            span,
            cause: self.cause,
            culprit: self.culprit,
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
    all: &'g [Known],
    window: Span,
) -> (&'g [OpId], &'g [Known]) {
    let none = (ops, &[][..]);
    let Some(&first) = ops.first() else {
        return none;
    };
    let start = |op: OpId| graph.ops.start[op as usize];
    let mut at = all.partition_point(|(ends, _)| start(ends.next) <= start(first));
    let mut end = Ns::MIN;
    for (i, &op) in ops.iter().enumerate() {
        let Some((ends, _)) = all.get(at) else {
            return none;
        };
        if ends.next == op {
            if graph.ops.end[ends.before as usize] == end {
                let behind = all.partition_point(|(ends, _)| start(ends.next) < window.end);
                return (&ops[..i], &all[at..behind.max(at)]);
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

/// The ends of the stretches between operations, which are in order of start, in which none of them ran.
pub(super) fn between<'g>(
    graph: &'g Graph,
    ops: &'g [OpId],
) -> impl Iterator<Item = Ends> + use<'g> {
    let mut last = None;
    ops.iter()
        .filter_map(move |&next| ends_before(graph, next, &mut last))
}

/// Those of the stretch before an operation in which none of those before it ran. `last` ended last of them.
fn ends_before(graph: &Graph, next: OpId, last: &mut Option<OpId>) -> Option<Ends> {
    let end = |op: OpId| graph.ops.end[op as usize];
    let ends_last = last.filter(|&last| end(last) >= end(next));
    let before = last.replace(ends_last.unwrap_or(next))?;
    (end(before) < graph.ops.start[next as usize]).then_some(Ends { before, next })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::idle::Causes;
    use activity::RangeKind;
    use trace::testing::Scene;

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
            let causes = Causes::new(&trace, &graph);
            let of = |window| -> Vec<Gap> { causes.gaps_of_device(0, window).collect() };
            let alone = of(window);
            let gaps = &causes.ready.gaps;
            let all: Vec<Gap> = gaps.find(&graph, 0, None).map(|it| it.0).collect();
            prop_assert_eq!(&all, &of(None));
            prop_assert!(gaps.has_all(0));
            prop_assert_eq!(&all, &of(None));
            prop_assert_eq!(&alone, &of(window));
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

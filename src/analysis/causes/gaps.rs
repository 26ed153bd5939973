//! The stretches of a device with nothing running: found once, for many questions about all of them or a window.
//!
//! To find them every operation is looked at, wherever it stands among those of all devices, which takes longer than the walk through what is
//! found. So they are kept (24 bytes each) once somebody asks for all; a question about a window is answered from them where they are there.

use std::sync::OnceLock;

use super::Gap;
use crate::activity::{Ns, Span};
use crate::analysis::graph::{Graph, OpId};

/// All gaps of each device, made when first asked for.
#[derive(Debug)]
pub(super) struct Gaps {
    of_device: Vec<OnceLock<Vec<Gap>>>,
}

impl Gaps {
    /// Of so many devices.
    pub(super) fn new(devices: usize) -> Gaps {
        Gaps {
            of_device: std::iter::repeat_with(OnceLock::new)
                .take(devices)
                .collect(),
        }
    }

    /// Those between the first and the last of a device's operations that start within `window`, or of all, in order.
    pub(super) fn of<'g>(
        &'g self,
        graph: &'g Graph,
        device: usize,
        window: Option<Span>,
    ) -> impl Iterator<Item = Gap> + use<'g> {
        let ops = graph.ops.of_device(device);
        let known = self.of_device.get(device);
        let (own, known) = match (window, known) {
            (None, Some(known)) => {
                let all = known.get_or_init(|| between(graph, ops).collect());
                (&[][..], all.as_slice())
            }
            (None, None) => (ops, &[][..]),
            (Some(window), known) => {
                let ops = within(graph, ops, window);
                let known = known.and_then(OnceLock::get);
                known.map_or((ops, &[][..]), |all| joined(graph, ops, all, window))
            }
        };
        between(graph, own).chain(known.iter().copied())
    }
}

/// The operations of a window whose gaps have to be looked for, and the known ones behind them: what began before the window
/// is no part of it, and where it ran on into the window, the gaps there are others.
fn joined<'g>(
    graph: &Graph,
    ops: &'g [OpId],
    all: &'g [Gap],
    window: Span,
) -> (&'g [OpId], &'g [Gap]) {
    let none = (ops, &all[..0]);
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

/// The stretches between operations, which are in order of start, in which none of them ran.
pub(super) fn between<'g>(
    graph: &'g Graph,
    ops: &'g [OpId],
) -> impl Iterator<Item = Gap> + use<'g> {
    let mut end: Option<Ns> = None;
    ops.iter().filter_map(move |&next| {
        let span = graph.ops.span(next);
        let before = end.replace(end.map_or(span.end, |e| e.max(span.end)))?;
        (before < span.start).then(|| Gap {
            span: Span::new(before, span.start),
            next,
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::testing::Scene;

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
            let alone: Vec<Gap> = Gaps::new(1).of(&graph, 0, window).collect();
            let gaps = Gaps::new(1);
            let all: Vec<Gap> = gaps.of(&graph, 0, None).collect();
            prop_assert_eq!(&all, &gaps.of(&graph, 0, None).collect::<Vec<Gap>>());
            prop_assert_eq!(&alone, &gaps.of(&graph, 0, window).collect::<Vec<Gap>>());
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
    }
}

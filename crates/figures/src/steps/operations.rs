//! The operations of one process: which there are, and when.

use std::ops::Range;

use rustc_hash::FxHashMap;

use activity::{Activity, Direction, NameId, Ns, Place, Span, What};
use trace::{Lane, LaneId, LaneKind, Trace};

/// What makes two operations the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// Kernels of one name and launch configuration, copies of one direction and size.
    Exact,
    /// Kernels of one name, copies of one direction.
    Name,
}

/// The operations of a process, for who asks about many stretches.
pub(super) struct ProcessOperations<'t> {
    trace: &'t Trace,
    streams: Vec<(LaneId, &'t Lane)>,
    /// When which row of which of them starts, in order. Empty where to ask each stream about each stretch costs less.
    by_start: Vec<(Ns, usize, usize)>,
}

impl<'t> ProcessOperations<'t> {
    /// For so many stretches.
    pub(super) fn new(trace: &'t Trace, process: usize, stretches: usize) -> Self {
        let streams: Vec<_> = trace.streams_in(process).collect();
        let mut by_start = Vec::new();
        let kept: usize = streams.iter().map(|it| it.1.kept().len()).sum();
        if streams.len() * stretches > 8 * kept {
            for (at, (_, lane)) in streams.iter().enumerate() {
                let spans = lane.spans(lane.kept());
                by_start.extend(spans.map(|(row, span)| (span.start, at, row)));
            }
            by_start.sort_unstable();
        }
        ProcessOperations {
            trace,
            streams,
            by_start,
        }
    }

    /// Rows that start there, of one stream each.
    pub(super) fn starting(
        &self,
        stretch: Span,
    ) -> impl Iterator<Item = (LaneId, &'t Lane, Range<usize>)> + '_ {
        let before = |time| self.by_start.partition_point(|it| it.0 < time);
        let from = before(stretch.start);
        let sorted = &self.by_start[from..before(stretch.end).max(from)];
        let asked: &[_] = match self.by_start.is_empty() {
            true => &self.streams,
            false => &[],
        };
        let asked = asked
            .iter()
            .map(move |&(id, lane)| (id, lane, lane.starting(stretch)));
        let sorted = sorted.iter().map(|&(_, at, row)| {
            let (id, lane) = self.streams[at];
            (id, lane, row..row + 1)
        });
        asked.chain(sorted)
    }

    /// How many start there.
    pub(super) fn count(&self, stretch: Span) -> usize {
        self.starting(stretch).map(|(_, _, rows)| rows.len()).sum()
    }

    /// When they start and end, and what each is.
    pub(super) fn activities(&self, stretch: Span) -> impl Iterator<Item = Activity> + '_ {
        let all = self.starting(stretch);
        all.flat_map(|(id, _, rows)| self.trace.activities(id, rows).map(|it| it.1))
    }

    /// First start to last end of those that start there.
    pub(super) fn extent(&self, stretch: Span) -> Option<Span> {
        let all = self.starting(stretch);
        let spans = all.flat_map(|(_, lane, rows)| lane.spans(rows).map(|it| it.1));
        spans.reduce(Span::hull)
    }
}

/// How many operations of a process start in the window.
pub(super) fn count(trace: &Trace, process: usize, window: Option<Span>) -> usize {
    let lanes = trace.streams_in(process);
    lanes.map(|(_, lane)| lane.rows_in(window).len()).sum()
}

/// First start to last end of a process's operations.
pub(super) fn extent(trace: &Trace, process: usize, window: Option<Span>) -> Option<Span> {
    trace
        .streams_in(process)
        .filter_map(|(_, lane)| {
            let rows = lane.rows_in(window);
            let first = lane.span(rows.clone().next()?).start;
            let last = rows.map(|row| lane.span(row).end).max()?;
            Some(Span::new(first, last))
        })
        .reduce(Span::hull)
}

/// What operations of a process take of a stretch together.
pub(super) fn time(trace: &Trace, process: usize, stretch: Span) -> Ns {
    let of = |lane: &Lane| -> Ns {
        let rows = lane.spans(lane.rows(stretch));
        rows.map(|(_, it)| it.intersect(stretch).len()).sum()
    };
    trace.streams_in(process).map(|it| of(it.1)).sum()
}

/// Whether something is copied from or to the CPU there.
pub(super) fn has_copies(trace: &Trace, process: usize, stretch: Span) -> bool {
    let is_copy = |what| matches!(what, What::Copy(copy) if matches!(copy.direction, Direction::H2D | Direction::D2H));
    trace.streams_in(process).any(|(id, lane)| {
        lane.starting(stretch)
            .any(|row| is_copy(trace.what(id, row)))
    })
}

/// The time of kernels, and of whole graphs, that start there, by name of the kernel.
pub(super) fn kernels(
    operations: &ProcessOperations<'_>,
    stretch: Span,
) -> FxHashMap<Option<NameId>, Ns> {
    let mut of = FxHashMap::default();
    for activity in operations.activities(stretch) {
        let name = match activity.what {
            What::Kernel(kernel) => Some(operations.trace.shape(kernel.shape).name),
            What::Graph(_) => None,
            _ => continue,
        };
        *of.entry(name).or_default() += activity.span.len();
    }
    of
}

/// Whether each kernel that takes much runs in most of the usual steps: else one loop follows another. And whether others take less
/// in the long ones: else the usual ones are rounds behind those.
pub(super) fn keeps_kernels(
    operations: &ProcessOperations<'_>,
    usual: &[Span],
    long: &[Span],
) -> bool {
    let [of, long] = [usual, long].map(|it| of_steps(operations, it));
    let time = |of: &Kernels| of.values().map(|it| it.0).sum::<Ns>();
    let others = long.iter().filter(|it| !of.contains_key(it.0));
    let others: Ns = others.map(|it| it.1.0).sum();
    main(&of).all(|it| it.1 as f64 >= cases::KEPT_KERNEL.value() * usual.len() as f64)
        && !cases::ROUNDS_WITHIN.holds(2 * others > time(&of) + time(&long))
}

/// The time of each kernel, and in how many steps it runs.
type Kernels = FxHashMap<Option<NameId>, (Ns, usize)>;

/// The kernels that take much of all.
fn main(of: &Kernels) -> impl Iterator<Item = &(Ns, usize)> {
    let all: Ns = of.values().map(|it| it.0).sum();
    of.values()
        .filter(move |it| it.0 as f64 >= cases::MAIN_KERNEL.value() * all as f64)
}

/// Whether some kernel takes much of the steps, and none runs in half of them: each does something else.
pub(super) fn share_none(operations: &ProcessOperations<'_>, steps: &[Span]) -> bool {
    let of = of_steps(operations, steps);
    main(&of).next().is_some() && of.values().all(|it| 2 * it.1 < steps.len())
}

fn of_steps(operations: &ProcessOperations<'_>, steps: &[Span]) -> Kernels {
    let mut of = Kernels::default();
    for &step in steps {
        for (name, time) in kernels(operations, step) {
            let it = of.entry(name).or_default();
            *it = (it.0 + time, it.1 + 1);
        }
    }
    of
}

/// Whether each step copies more than the one before.
pub(super) fn grow(operations: &ProcessOperations<'_>, steps: &[Span]) -> bool {
    let bytes = |of| match of {
        What::Copy(it) => it.bytes,
        _ => 0,
    };
    let copied = steps
        .iter()
        .map(|&step| -> u64 { operations.activities(step).map(|it| bytes(it.what)).sum() });
    copied.is_sorted_by(|before, after| before < after)
}

/// The stream with the most operations, when it has at least half of those of its device. A sequence of
/// less than that does not speak for the process.
pub(super) fn busiest(
    trace: &Trace,
    process: usize,
    window: Option<Span>,
) -> Option<(LaneId, Range<usize>)> {
    let device_of = |lane: &Lane| lane.key().kind.device();
    let is_asked = |lane: &Lane| {
        let is_drivers =
            matches!(lane.key().kind, LaneKind::Stream { stream, .. } if stream >= Place::EVICTED);
        !cases::DRIVERS_MOVES.holds(is_drivers)
    };
    let all: Vec<(LaneId, Option<usize>, Range<usize>)> = trace
        .streams_in(process)
        .filter(|(_, lane)| is_asked(lane))
        .map(|(id, lane)| (id, device_of(lane), lane.rows_in(window)))
        .collect();
    // Of equals the first, so that the answer does not depend on how lanes are counted.
    let (lane, device, rows) = all.iter().rev().max_by_key(|(_, _, rows)| rows.len())?;
    let others = all.iter().filter(|(_, d, _)| d == device);
    let sum: usize = others.map(|(_, _, rows)| rows.len()).sum();
    (2 * rows.len() >= sum).then(|| (*lane, rows.clone()))
}

/// The sequence of operations of a lane, equal ones as equal numbers, counted from 0. The numbers do not
/// depend on where the sequence begins. Uploads come first, then kernels in the order in which the
/// timeline met them, then the rest. Beside them how many of the numbers are uploads.
pub(super) fn symbols(
    trace: &Trace,
    lane: LaneId,
    rows: Range<usize>,
    identity: Identity,
) -> (Vec<u32>, u32) {
    let mut ids: FxHashMap<(u8, u64), u32> = FxHashMap::default();
    let mut keys = Vec::new();
    let met: Vec<u32> = rows
        .map(|row| {
            let is_exact = identity == Identity::Exact;
            let key = match trace.what(lane, row) {
                What::Kernel(k) if is_exact => (1, u64::from(k.shape)),
                What::Kernel(k) => (1, u64::from(trace.shape(k.shape).name)),
                What::Copy(c) => {
                    let kind = match c.direction {
                        Direction::H2D => 0,
                        other => 2 + other as u8,
                    };
                    (kind, if is_exact { c.bytes } else { 0 })
                }
                What::Memset(m) if is_exact => (u8::MAX, m.bytes),
                _ => (u8::MAX, 0),
            };
            *ids.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            })
        })
        .collect();
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|&id| keys[id]);
    let mut number = vec![0; keys.len()];
    for (place, id) in order.into_iter().enumerate() {
        number[id] = place as u32;
    }
    let uploads = keys.iter().filter(|key| key.0 == 0).count() as u32;
    let symbols = met.into_iter().map(|id| number[id as usize]);
    (symbols.collect(), uploads)
}

/// When the operations of each host call ran: sorted by correlation id, then by start.
pub(super) struct ByCall(Vec<(u32, Span)>);

impl ByCall {
    pub(super) fn new(trace: &Trace, process: usize, window: Option<Span>) -> Self {
        let mut all = Vec::with_capacity(count(trace, process, window));
        for (_, lane) in trace.streams_in(process) {
            all.extend(
                lane.rows_in(window)
                    .map(|row| (lane.correlation(row), lane.span(row))),
            );
        }
        all.retain(|&(correlation, _)| correlation != 0);
        all.sort_unstable();
        ByCall(all)
    }

    /// Operations that have a host call's id.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The operations of one call.
    pub(super) fn of_call(&self, correlation: u32) -> &[(u32, Span)] {
        let from = self.0.partition_point(|&(c, _)| c < correlation);
        let count = self.0[from..].partition_point(|&(c, _)| c == correlation);
        &self.0[from..from + count]
    }
}

/// The operations that the calls within one range caused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Caused {
    pub(super) count: usize,
    /// First start to last end; `None` when there is none.
    pub(super) span: Option<Span>,
    /// What they take together; 0 where no call says which they are.
    pub(super) time: Ns,
}

impl Caused {
    /// By the calls of all threads of the process that start in `range`. What a step hands to another
    /// thread (PyTorch's backward pass) belongs to it.
    pub(super) fn by(trace: &Trace, process: usize, calls: &ByCall, range: Span) -> Caused {
        let mut caused = Caused::default();
        for (_, lane, _) in trace.threads_in(process) {
            for row in lane.starting(range) {
                for &(_, span) in calls.of_call(lane.correlation(row)) {
                    caused.count += 1;
                    caused.time += span.len();
                    caused.span = Some(caused.span.map_or(span, |all| all.hull(span)));
                }
            }
        }
        caused
    }

    /// By their own start, where the timeline has no host calls.
    pub(super) fn within(
        operations: &ProcessOperations<'_>,
        window: Option<Span>,
        range: Span,
    ) -> Caused {
        let range = window.map_or(range, |w| range.intersect(w));
        Caused {
            count: operations.count(range),
            span: operations.extent(range),
            time: 0,
        }
    }
}

/// The earliest start, for sorting steps that a search found.
pub(super) fn is_ascending(starts: &[Ns]) -> bool {
    starts.is_sorted_by(|a, b| a < b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::Scene;

    /// Asked one after the other, or sorted where they are many: streams tell the same of each stretch.
    #[test]
    fn many_streams_tell_of_a_stretch_what_few_do() {
        let mut scene = Scene::new();
        for at in 0..60 {
            scene.kernel(
                if at % 3 == 0 { "a" } else { "b" },
                at,
                i64::from(at * 7 % 60) * 10,
                600,
            );
        }
        let trace = scene.trace();
        let [few, many] = [0, 1_000].map(|it| ProcessOperations::new(&trace, 0, it));
        assert_eq!((few.by_start.len(), many.by_start.len()), (0, 60));
        for (from, to) in [
            (0, 600),
            (0, 1),
            (5, 25),
            (10, 20),
            (590, 591),
            (591, 9_999),
            (7, 7),
            (50, 40),
        ] {
            let stretch = Span::new(from, to);
            let expected = (0..60).filter(|it| (from..to).contains(&(it * 10))).count();
            assert_eq!(
                [few.count(stretch), many.count(stretch)],
                [expected; 2],
                "{stretch:?}"
            );
            assert_eq!(kernels(&few, stretch), kernels(&many, stretch));
            assert_eq!(few.extent(stretch), many.extent(stretch));
        }
    }
}

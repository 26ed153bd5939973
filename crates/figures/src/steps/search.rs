//! Steps by the operations that repeat, and what is made of what was found.

use std::cell::LazyCell;
use std::ops::Range;

use rustc_hash::FxHashSet;

use super::operations::{self, Identity, ProcessOperations};
use super::period::{self, Units};
use super::{Found, Origin, Steps, driven, ranges, times};
use activity::{Direction, NameId, Ns, Span, What, stats};
use trace::{LaneId, Trace};

pub(super) fn by_period(trace: &Trace, process: usize, window: Option<Span>) -> Option<Found> {
    let (lane, rows) = operations::busiest(trace, process, window)?;
    let span = |at: usize| trace.lanes()[lane].span(rows.start + at);
    let id = |at: usize| trace.lanes()[lane].correlation(rows.start + at);
    let ids = || (0..rows.len()).map(id).collect();
    let launches = LazyCell::new(|| driven::launches(trace, process, &ids()));
    let by_turns = |unit: &Range<usize>| {
        let launched = unit.clone().filter_map(|at| launches.get(&id(at)));
        let by: Vec<LaneId> = launched.map(|it| it.by).collect();
        let changes = by.windows(2).filter(|it| it[0] != it[1]).count();
        changes + usize::from(by.first() != by.last()) == 2
    };
    let symbols = |identity| operations::symbols(trace, lane, rows.clone(), identity);
    let repeats = |(symbols, uploads): (Vec<u32>, u32)| period::find(&symbols, uploads, by_turns);
    // What one call launches together is a graph. Without records of calls nobody knows.
    let is_first = |at: usize| at == 0 || id(at) == 0 || id(at) != id(at - 1);
    let apart = |are_apart: &dyn Fn(usize) -> bool| {
        let (mut symbols, uploads) = symbols(Identity::Exact);
        let kinds = 1 + symbols.iter().max()?;
        for (at, symbol) in symbols.iter_mut().enumerate() {
            *symbol += if are_apart(at) { kinds } else { 0 };
        }
        repeats((symbols, uploads))
    };
    let between_waits = || {
        let has_waited = |at| launches.get(&id(at)).is_some_and(|it| it.has_waited);
        let found = apart(&|at| is_first(at) && has_waited(at));
        found.filter(|it| cases::BETWEEN_WAITS.holds(it.length > 1))
    };
    // The same kernel on data of another size is another operation, unless nothing repeats so.
    let mut identities = [Identity::Exact, Identity::Name].into_iter();
    let period = identities.find_map(|it| repeats(symbols(it)));
    // Nodes of one graph that repeat are parts of what its launch does.
    let are_nodes = |it: &Units| {
        let is_inside = |it: &&Range<usize>| !is_first(it.start) && id(it.start) == id(it.end - 1);
        let inside = it.units.iter().filter(is_inside);
        2 * inside.count() > it.units.len()
    };
    let of_nodes = period.as_ref().is_some_and(are_nodes);
    let period = of_nodes.then(|| apart(&is_first)).flatten().or(period);
    // Of one operation again and again those are a step that lie between two waits of the CPU.
    let is_one = period.as_ref().is_none_or(|it| it.length == 1);
    let of = is_one.then(between_waits).flatten().map(|it| (it, true));
    let (of, waits) = of.or(period.map(|it| (it, false)))?;
    let (mut units, operations) = (of.units, of.length);
    let first = trace.what(lane, rows.start + units[units.len() / 2].start);
    let brings = matches!(first, What::Copy(it) if it.direction == Direction::H2D);
    if let Some(time) = optimizers(trace, lane, rows.start).filter(|_| !brings) {
        put_behind(&mut units, rows.len(), time);
    }
    let from = match waits {
        true => Origin::Waits { operations },
        false => Origin::Period { operations },
    };
    // What else lies between two steps is of the first.
    let starts = units.iter().map(|unit| span(unit.start).start);
    let end = units.last()?.clone().map(|at| span(at).end).max();
    let ends = starts.clone().skip(1).chain(end);
    Some(Found {
        from,
        spans: starts.zip(ends).map(|it| Span::new(it.0, it.1)).collect(),
        // Whether what follows belongs to it is not known.
        is_closed: false,
        is_part: false,
        is_sure: of.is_sure,
        batches: Vec::new(),
    })
}

/// How long each operation of a lane takes that works on many tensors at once, as an optimizer of PyTorch does. `None` where there
/// is none at all.
fn optimizers(
    trace: &Trace,
    lane: LaneId,
    from: usize,
) -> Option<impl Fn(usize) -> Option<Ns> + '_> {
    let names = trace.names();
    let ids =
        (0..names.len() as NameId).filter(|id| names.full(*id).contains("multi_tensor_apply"));
    let ids: FxHashSet<NameId> = ids.collect();
    let has_some = !ids.is_empty();
    let time = move |at| match trace.what(lane, from + at) {
        What::Kernel(it) if ids.contains(&trace.shape(it.shape).name) => {
            Some(trace.lanes()[lane].span(from + at).len())
        }
        _ => None,
    };
    has_some.then_some(time)
}

/// Lets steps begin behind such operations, behind those in a row that take most, where each step has some. A step of training begins
/// with the pass forth, wherever the operation stands that shows where steps repeat. `all` operations there are.
fn put_behind(units: &mut [Range<usize>], all: usize, time: impl Fn(usize) -> Option<Ns>) {
    let end = |unit: &Range<usize>| {
        let (mut row, mut most) = (0, None);
        for at in unit.clone() {
            row = time(at).map_or(0, |it| row + it);
            most = most.max((row > 0).then_some((row, at)));
        }
        let last = most?.1;
        (last + 1..all).find(|at| time(*at).is_none()).or(Some(all))
    };
    let ends: Option<Vec<usize>> = units.iter().map(end).collect();
    let ends = ends.filter(|it| it.is_sorted_by(|a, b| a < b));
    let length = units[units.len() / 2].len();
    // The first one is as long as the others.
    let mut start = ends.as_ref().map_or(0, |it| it[0].saturating_sub(length));
    for (unit, end) in units.iter_mut().zip(ends.into_iter().flatten()) {
        *unit = start..end;
        start = end;
    }
}

pub(super) fn finish(
    trace: &Trace,
    process: usize,
    window: Option<Span>,
    found: Found,
) -> Option<Steps> {
    let Found {
        from,
        mut spans,
        is_closed,
        is_sure,
        batches,
        ..
    } = found;
    if trace.has_unrecorded() {
        // Nobody knows how many there were in such a while.
        spans.retain(|span| !trace.recorded(process).misses(*span));
        if !cases::STEPS_MIN.is_reached_by(spans.len()) {
            return None;
        }
    }
    let seen = spans.len() - usize::from(!is_closed);
    let first = match from {
        Origin::Repeats(_) => 0,
        // Prompts come first, and take longer than what follows.
        _ if !batches.is_empty() => 0,
        _ => warm_up(&spans[..seen]),
    };
    let steady = first..seen;
    let all = operations::extent(trace, process, window)?;
    if steady.is_empty() {
        return None;
    }
    let mut steps = Steps {
        process,
        start_up: Span::new(all.start, spans[steady.start].start),
        tail: Span::new(spans[steady.end - 1].end, all.end),
        kinds: Vec::new(),
        batches,
        work_share: 0.0,
        is_in_one: false,
        has_copies: false,
        is_driven: false,
        is_behind_work: false,
        from,
        spans,
        steady,
    };
    hold(trace, window, (all, is_sure), &mut steps)?;
    steps.is_driven = steps.from == Origin::Period { operations: 1 }
        && driven::is_so(trace, process, steps.steady_span());
    Some(steps)
}

/// Puts to steps what they hold of all that the process did on GPUs. `None` where a period holds too little, or loops that
/// follow each other.
fn hold(
    trace: &Trace,
    window: Option<Span>,
    (all, is_sure): (Span, bool),
    steps: &mut Steps,
) -> Option<()> {
    let process = steps.process;
    let is_period = matches!(steps.from, Origin::Period { .. } | Origin::Waits { .. });
    let operations = ProcessOperations::new(trace, process, steps.spans.len());
    if is_period {
        let (median, deviation) = steps.deviation()?;
        let limit = cases::ODD_TIMES.value() * median;
        let all = steps.steady().iter();
        // What waits for data at times is as uneven as that.
        let is_uneven = deviation > median && !is_sure;
        let (usual, long): (Vec<Span>, Vec<Span>) = all.partition(|it| it.len() as f64 <= limit);
        if cases::UNEVEN_PERIOD.holds(is_uneven)
            || !operations::keeps_kernels(&operations, &usual, &long)
            || cases::SWEEP_OF_SIZES.holds(operations::grow(&operations, steps.steady()))
        {
            return None;
        }
    }
    let are_free = matches!(steps.from, Origin::Ranges(_)) && steps.batches.is_empty();
    let are_others = || operations::share_none(&operations, steps.steady());
    if are_free && cases::VARIANTS.holds(are_others()) {
        return None;
    }
    let kernels = |span: Span| -> Ns { operations::kernels(&operations, span).values().sum() };
    // Many that become shorter and shorter are no steps alike.
    let counted = match cases::MANY_STEPS.is_reached_by(steps.steady.len()) {
        true => steps.steady.start,
        false => 0,
    };
    let work = steps.spans[counted..].iter().map(|&span| kernels(span));
    steps.work_share = work.sum::<Ns>() as f64 / kernels(all).max(1) as f64;
    let before = Span::new(all.start, steps.spans[0].start);
    steps.is_behind_work = steps.work_share > 0.0 && 3 * kernels(before) > 2 * kernels(all);
    // What holds next to nothing of what the GPU did is set-up, such as copies before the work.
    let time = |span: Span| -> Ns {
        let all = operations.starting(span);
        let spans = all.flat_map(|(_, lane, rows)| lane.spans(rows));
        spans.map(|it| it.1.len()).sum()
    };
    let held: Ns = steps.spans.iter().copied().map(time).sum();
    let is_little = !cases::LEAST_SHARE.is_reached_by(steps.work_share);
    if is_period && is_little && 2 * held < time(all) {
        return None;
    }
    // A range that leaves some of the repeats out is no pass over all of them.
    let is_in_one = |of: &[Span]| {
        let hull = of.iter().copied().reduce(Span::hull);
        hull.is_some_and(|it| ranges::is_in_one(trace, process, window, it))
    };
    // Between two passes lies what no layer has.
    let is_second = || {
        let (first, second) = steps.spans.split_at(steps.spans.len().div_ceil(2));
        let ends = [first.last(), second.first()];
        let [last, next] = ends.map(|it| it.map(|it| operations::count(trace, process, Some(*it))));
        last > next && is_in_one(second)
    };
    let is_once = || cases::ONCE_BESIDE.holds(ranges::is_once(trace, process, window));
    steps.is_in_one = is_period
        && (is_in_one(&steps.spans) || cases::SECOND_PASS.holds(is_second()) || is_once());
    steps.has_copies =
        steps.is_in_one && operations::has_copies(trace, process, steps.steady_span());
    Some(())
}

/// How many leading steps are warm-up (see the words of [`super`]).
fn warm_up(spans: &[Span]) -> usize {
    if let [first, others @ ..] = spans
        && !cases::FEW_STEPS.is_reached_by(spans.len())
    {
        let usual = stats::median(&times(others)).unwrap_or(f64::INFINITY);
        return usize::from(first.len() as f64 >= cases::WARM_UP_OF_FEW.value() * usual);
    }
    let later = times(&spans[spans.len() / 2..]);
    let (Some(median), Some(distance)) = (stats::median(&later), stats::median_deviation(&later))
    else {
        return 0;
    };
    let share = cases::WARM_UP_SHARE.value();
    // What becomes shorter all along warms nothing up, but for what takes far longer.
    let quarters = spans.chunks(spans.len().div_ceil(4));
    let quarters: Vec<f64> = quarters
        .filter_map(|it| stats::median(&times(it)))
        .collect();
    let limit = match quarters.windows(2).all(|it| it[1] < (1.0 - share) * it[0]) {
        true => median * cases::OUTLIER.value() as f64,
        false => median + (share * median).max(4.0 * 1.4826 * distance),
    };
    // Of two parts that are as long, such as two prompts, the middle one holds the end of the first.
    spans[..spans.len().div_ceil(2)]
        .iter()
        .take_while(|span| span.len() as f64 > limit)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_training_begin_behind_the_optimizer() {
        let of = |sequence: &str, starts: [usize; 3]| {
            let ops = sequence.as_bytes();
            let ends = starts[1..].iter().copied().chain([starts[2] + 7]);
            let mut units: Vec<Range<usize>> =
                starts.iter().zip(ends).map(|it| *it.0..it.1).collect();
            let time = |at: usize| match ops[at] {
                b'O' => Some(9),
                b'c' => Some(1),
                _ => None,
            };
            put_behind(&mut units, ops.len(), time);
            units.iter().map(|it| it.start).collect::<Vec<_>>()
        };
        // Forth, loss, back, and an optimizer of two kernels, cut before the loss; a part of one is left.
        assert_eq!(of("FFLBBOOFFLBBOOFFLBBOOFF", [2, 9, 16]), [0, 7, 14]);
        assert_eq!(of("FFLBBOOFFLBBOOFFLBBOO", [0, 7, 14]), [0, 7, 14]);
        // Gradients are clipped before it, or copied, and steps are cut between, or within its kernels.
        assert_eq!(of("FFLBccOFFLBccOFFLBccOFFLBc", [5, 12, 19]), [0, 7, 14]);
        assert_eq!(of("FFcBBcOFFcBBcOFFcBBcOFF", [2, 9, 16]), [0, 7, 14]);
        // One step of three has another kernel of it; one has none.
        assert_eq!(of("FFLBBOOFFLBOOOFFLBBOOFF", [2, 9, 16]), [0, 7, 14]);
        assert_eq!(of("FFLBBOOFFLBBBBFFLBBOOFF", [2, 9, 16]), [2, 9, 16]);
    }
}

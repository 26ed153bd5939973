//! Ranges within ranges: which row of a lane lies at which depth.

use std::ops::Range;

use activity::{NameId, Ns, RangeKind, Span, What};
use figures::lines;
use rustc_hash::FxHashMap;
use trace::{LaneId, Trace};

/// Depths that get a row of their own in any case, and where other rows have room.
pub const LEAST: usize = 2;
pub const USUAL: usize = 4;

/// Depths that get one where there is room. What lies deeper is inside what the last of them shows, and
/// can be stepped to.
pub const DEEPEST: usize = 16;

/// Rows of a window that are looked at one by one: about 1 ms. With more of them the columns are too
/// narrow to tell depths apart anyway.
const LIMIT: usize = 20_000;

/// Rows of one depth with their times. They follow each other.
pub type Level = Vec<(usize, Span)>;

/// The rows of `window` by depth, at least one level and at most `deepest`. Python functions are those of the program's own files, where
/// there are some. `None` when there are too many.
pub fn levels(trace: &Trace, id: LaneId, window: Span, deepest: usize) -> Option<Vec<Level>> {
    let lane = &trace.lanes()[id];
    let rows = lane.rows(window);
    (rows.len() <= LIMIT).then(|| all_levels(trace, id, rows, deepest))
}

/// The same of any number of rows.
pub fn all_levels(trace: &Trace, id: LaneId, rows: Range<usize>, deepest: usize) -> Vec<Level> {
    let lane = &trace.lanes()[id];
    let mut levels: Vec<Level> = vec![Vec::new()];
    // Each goes to the first level that is free when it starts. For ranges that nest this is their
    // depth; for others it still lets no two of a level run at once. A range that contains the
    // window's start is among the rows, and so is everything between it and the window.
    let rows = own(trace, id, rows.clone()).unwrap_or_else(|| rows.collect());
    for row in rows {
        let span = lane.span(row);
        let is_free = |level: &Level| level.last().is_none_or(|(_, last)| last.end <= span.start);
        match levels.iter().position(is_free) {
            Some(depth) => levels[depth].push((row, span)),
            None if levels.len() < deepest => levels.push(vec![(row, span)]),
            None => {}
        }
    }
    levels
}

/// Of Python functions those of the program's own files; `None` where there are none, and of other ranges.
fn own(trace: &Trace, id: LaneId, rows: Range<usize>) -> Option<Vec<usize>> {
    let mut known: FxHashMap<NameId, bool> = FxHashMap::default();
    let mut is_own = |row: &usize| match trace.what(id, *row) {
        What::Range(it) => *known.entry(it.name).or_insert_with(|| {
            let name = trace.names().full(it.name);
            // A module of PyTorch says which layer it is.
            lines::is_own(name) || name.starts_with("nn.Module: ")
        }),
        _ => false,
    };
    if trace.lanes()[id].key().kind.range_kind() != Some(RangeKind::Function) {
        return None;
    }
    Some(rows.filter(&mut is_own).collect()).filter(|own: &Vec<usize>| !own.is_empty())
}

/// The row of a depth that runs at `time`.
pub fn range_at(trace: &Trace, id: LaneId, depth: usize, time: Ns) -> Option<usize> {
    let levels = levels(trace, id, Span::at(time), DEEPEST)?;
    let mut level = levels.get(depth)?.iter().rev();
    Some(level.find(|(_, span)| span.contains(time))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::RangeKind;
    use trace::Trace;
    use trace::testing::Scene;

    fn trace(spans: &[(Ns, Ns)]) -> Trace {
        let mut made = Scene::new();
        for &(start, end) in spans {
            made.range(RangeKind::Nvtx, "range", 0, start, end);
        }
        made.trace()
    }

    #[test]
    fn each_range_lies_below_the_one_that_holds_it() {
        // A step with two parts, the second with a part of its own; then another step.
        let trace = trace(&[(0, 100), (10, 40), (50, 90), (60, 70), (100, 120)]);
        let levels = levels(&trace, 0, Span::new(0, 200), USUAL).expect("few rows");
        let rows: Vec<Vec<usize>> = levels
            .iter()
            .map(|level| level.iter().map(|(row, _)| *row).collect())
            .collect();
        assert_eq!(rows, [vec![0, 4], vec![1, 2], vec![3]]);
        // The same when the window begins in the middle of it.
        assert_eq!(range_at(&trace, 0, 0, 65), Some(0));
        assert_eq!(range_at(&trace, 0, 1, 65), Some(2));
        assert_eq!(range_at(&trace, 0, 2, 65), Some(3));
        assert_eq!(range_at(&trace, 0, 1, 45), None);
        assert_eq!(range_at(&trace, 0, 3, 65), None);
    }

    #[test]
    fn what_is_deeper_than_there_are_rows_is_left_to_the_last_of_them() {
        let spans: Vec<(Ns, Ns)> = (0..10).map(|i| (i, 100 - i)).collect();
        let trace = trace(&spans);
        let levels = levels(&trace, 0, Span::new(0, 100), USUAL).expect("few rows");
        let counts: Vec<usize> = levels.iter().map(Vec::len).collect();
        assert_eq!(counts, [1, 1, 1, 1]);
    }

    #[test]
    fn ranges_that_overlap_without_nesting_never_share_a_level() {
        let trace = trace(&[(0, 10), (5, 15), (12, 20)]);
        let levels = levels(&trace, 0, Span::new(0, 30), USUAL).expect("few rows");
        let rows: Vec<Vec<usize>> = levels
            .iter()
            .map(|level| level.iter().map(|(row, _)| *row).collect())
            .collect();
        assert_eq!(rows, [vec![0, 2], vec![1]]);
    }

    #[test]
    fn functions_that_python_and_pytorch_bring_are_passed_through() {
        let levels_of = |functions: &[(&str, Ns, Ns)]| {
            let mut made = Scene::new();
            for (index, &(name, start, end)) in (0..).zip(functions) {
                made.range(RangeKind::Function, name, index, start, end);
            }
            let levels = levels(&made.trace(), 0, Span::new(0, 200), DEEPEST).expect("few rows");
            let rows = |level: &Level| level.iter().map(|(row, _)| *row).collect();
            levels.iter().map(rows).collect::<Vec<Vec<usize>>>()
        };
        let found = levels_of(&[
            ("runpy.py(1): run", 0, 100),
            ("train.py(19): main", 5, 95),
            ("torch/nn/module.py(7): _call", 10, 60),
            ("model.py(3): forward", 12, 58),
            ("torch/functional.py(1): linear", 20, 50),
            ("torch/_ops.py(9): inner", 25, 45),
            ("torch/optim.py(2): step", 70, 90),
        ]);
        assert_eq!(found, [[1], [3]]);
        // Where none is the program's own, all are seen.
        let found = levels_of(&[("torch/a.py(1): f", 0, 10), ("torch/b.py(2): g", 2, 8)]);
        assert_eq!(found, [[0], [1]]);
    }
}

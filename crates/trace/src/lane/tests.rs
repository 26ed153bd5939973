use std::cmp::Reverse;

use super::*;
use crate::LaneKind;
use proptest::prelude::*;

fn lane(batches: &[Vec<Span>]) -> (Lane, usize) {
    let key = LaneKey {
        process: 0,
        kind: LaneKind::Overhead,
    };
    let mut lane = Lane::new(key);
    let mut late = 0;
    for batch in batches {
        for &span in batch {
            lane.queue(Row {
                span,
                correlation: 1,
                detail: 0,
            });
        }
        late += lane.settle();
    }
    (lane, late)
}

fn batches() -> impl Strategy<Value = Vec<Vec<Span>>> {
    let span = (0i64..300, 0i64..25).prop_map(|(start, len)| Span::new(start, start + len));
    prop::collection::vec(prop::collection::vec(span, 0..80), 0..4)
}

proptest! {
    #[test]
    fn windows_agree_with_counting(batches in batches(), a in -5i64..330, b in -5i64..330) {
        let (lane, _) = lane(&batches);
        let mut all: Vec<Span> = batches.concat();
        all.sort_by_key(|s| (s.start, Reverse(s.end)));
        let kept: Vec<Span> = (0..lane.len()).map(|i| lane.span(i)).collect();
        prop_assert_eq!(&kept, &all);

        let window = Span::new(a.min(b), a.max(b));
        let busy = (window.start..window.end).filter(|&t| all.iter().any(|s| s.contains(t))).count();
        prop_assert_eq!(lane.busy(window), busy as Ns);

        let rows = lane.rows(window);
        for (i, span) in all.iter().enumerate() {
            if span.overlaps(window) {
                prop_assert!(rows.contains(&i), "row {i} {span:?} of {window:?} not in {rows:?}");
            }
        }
        if let Some(first) = all.get(rows.start).filter(|_| !rows.is_empty()) {
            prop_assert!(first.end > window.start || first.start >= window.start);
        }
        // A cursor that goes over all cells says the same as each question by itself.
        // Where there are many rows to a cell, it looks into all of them at once.
        for step in [7i64, 67] {
            let edges: Vec<Ns> = (-5..400).step_by(step as usize).collect();
            let mut cursor = if a < b { lane.cursor() } else { lane.cursor_over(&edges) };
            for two in edges.windows(2) {
                let cell = Span::new(two[0], two[1]);
                prop_assert_eq!(cursor.longest(cell), lane.cursor().longest(cell));
                prop_assert_eq!(cursor.busy(cell), lane.busy(cell));
                let cut = Span::new(cell.start + 3, cell.end);
                prop_assert_eq!(cursor.rows(cut), lane.rows(cut));
                prop_assert_eq!(cursor.longest(cut), lane.cursor().longest(cut));
            }
        }
        // The longest that starts in the window, unless more of the window is the one's that runs into it.
        let within = |row: usize| all[row].intersect(window).len();
        let starts = |row: &usize| all[*row].start >= window.start && all[*row].start < window.end.max(window.start + 1);
        let starting = (0..all.len()).filter(starts).rev().max_by_key(|&row| all[row].len());
        let begun = all.iter().filter(|s| s.start < window.start).count();
        let running = (0..begun).rev().take(16).find(|&row| all[row].end > window.start);
        let expected = match (starting, running) {
            (Some(a), Some(b)) if within(b) > within(a) => Some(b),
            (a, b) => a.or(b),
        };
        prop_assert_eq!(lane.cursor().longest(window), expected);
        let mut cursor = lane.cursor_over(&[window.start, window.end]);
        prop_assert_eq!(cursor.longest(window), expected);
        let at = all.iter().rposition(|s| s.contains(a));
        prop_assert_eq!(lane.at(a), at);

        // Gaps, from the union.
        let free = |t: Ns| !all.iter().any(|s| s.contains(t));
        let gap = lane.gap_at(a);
        if let Some(gap) = gap {
            prop_assert!((gap.start..gap.end).all(free) && all.iter().any(|s| s.end == gap.start));
            prop_assert_eq!(lane.next_gap(gap.start, gap.len()), Some(gap));
            prop_assert_eq!(lane.previous_gap(gap.start + 1, gap.len()), Some(gap));
        } else {
            let inside = all.iter().any(|s| s.end <= a) && all.iter().any(|s| s.start > a);
            prop_assert!(!free(a) || !inside);
        }
    }
}

proptest! {
    #[test]
    fn the_hull_of_rows_is_that_of_each_of_them(batches in batches(), a in 0usize..240, b in 0usize..240) {
        let (lane, _) = lane(&batches);
        let rows = a.min(b).min(lane.len())..a.max(b).min(lane.len());
        let all = rows.clone().map(|row| lane.span(row)).reduce(Span::hull);
        prop_assert_eq!(lane.hull(rows), all);
    }

    #[test]
    fn gaps_are_those_of_the_union(batches in batches(), time in -5i64..330, min in 0i64..12) {
        let (lane, _) = lane(&batches);
        let mut all: Vec<Span> = batches.concat();
        all.sort_by_key(|s| s.start);
        // Stretches without a row between the first start and the last, instants ending a stretch too.
        let mut gaps = Vec::new();
        let mut end = None;
        for span in &all {
            if let Some(end) = end
                && span.start > end
                && span.start - end >= min
            {
                gaps.push(Span::new(end, span.start));
            }
            end = Some(end.unwrap_or(span.end).max(span.end));
        }
        let next = gaps.iter().find(|g| g.start >= time).copied();
        prop_assert_eq!(lane.next_gap(time, min), next);
        let previous = gaps.iter().rfind(|g| g.start < time).copied();
        prop_assert_eq!(lane.previous_gap(time, min), previous);
        let window = Span::new(time, time + 150);
        let inside = gaps.iter().filter(|g| window.start <= g.start && g.end <= window.end);
        let longest = inside.rev().max_by_key(|g| g.len()).copied();
        prop_assert_eq!(lane.longest_gap(window, min.max(1)), longest);
    }

    #[test]
    fn correlations_are_found_whatever_their_order(
        ids in prop::collection::vec(1u32..200, 1..300), ascend in any::<bool>(), wanted in 1u32..200,
    ) {
        let mut ids = ids;
        if ascend {
            ids.sort_unstable();
        }
        let mut lane = Lane::new(LaneKey { process: 0, kind: LaneKind::Overhead });
        for (i, &correlation) in ids.iter().enumerate() {
            let span = Span::new(i as Ns * 10, i as Ns * 10 + 5);
            lane.queue(Row { span, correlation, detail: 0 });
        }
        lane.settle();
        prop_assert_eq!(lane.find_correlation(wanted), ids.iter().position(|&id| id == wanted));
    }
}

#[test]
fn a_late_row_changes_its_chunk_and_no_other() {
    let spans: Vec<Span> = (0..400).map(|i| Span::new(i * 10, i * 10 + 5)).collect();
    let (mut lane, _) = lane(&[spans]);
    let before = lane.rows.clone();
    lane.queue(Row {
        span: Span::new(1006, 1008),
        correlation: 0,
        detail: 0,
    });
    assert_eq!(lane.settle(), 1);
    let same = |a: &Rows| before.chunks().any(|b| std::ptr::eq(a, b));
    let changed = lane.rows.chunks().filter(|chunk| !same(chunk)).count();
    // It was full, so it became two.
    assert_eq!(changed, 2);
    assert_eq!(lane.rows.count(), before.count() + 1);
    assert_eq!(lane.busy(Span::new(0, 4000)), 2002);
}

#[test]
fn late_rows_are_merged_and_counted() {
    let (lane, late) = lane(&[
        vec![Span::new(0, 10), Span::new(20, 30)],
        vec![Span::new(12, 15), Span::new(40, 50)],
    ]);
    assert_eq!(late, 1);
    let starts: Vec<Ns> = (0..4).map(|i| lane.span(i).start).collect();
    assert_eq!(starts, [0, 12, 20, 40]);
    assert_eq!(lane.cursor().longest(Span::new(11, 19)), Some(1));
    assert_eq!(lane.cursor().longest(Span::new(5, 19)), Some(0));
    assert_eq!(lane.cursor().longest(Span::new(31, 39)), None);
}

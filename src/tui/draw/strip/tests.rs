//! Lanes as they are drawn, against times counted one nanosecond at a time.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use super::*;
use crate::tui::draw::lane::draw_strip;
use crate::tui::state::nest;
use crate::tui::state::search::Needle;
use crate::tui::theme::ColorLevel;
use crate::tui::theme::Theme;
use activity::{RangeKind, What};
use trace::testing::{Scene, kernels};

fn strip(spans: &[(Ns, Ns)], window: Span, columns: u16) -> Strip {
    let input = StripInput {
        scale: TimeScale::new(window, columns),
        scope: window,
        record: None,
        gap: None,
        has_gaps: true,
        found: None,
        waits: None,
        rounds: None,
    };
    Strip::new(&kernels(spans), 0, &input)
}

fn drawn(strip: &Strip, theme: &Theme, columns: u16, lines: u16) -> Buffer {
    let area = Rect::new(0, 0, columns, lines);
    let mut buf = Buffer::empty(area);
    draw_strip(theme, strip, area, &mut buf);
    buf
}

fn symbols(buf: &Buffer) -> String {
    buf.content().iter().map(|cell| cell.symbol()).collect()
}

/// Which eighths of a cell are inked, counted from the left, and how many from below; as a terminal
/// shows it.
fn ink_of(cell: &Cell) -> (Range<u32>, u32) {
    let code = cell.symbol().chars().next().unwrap_or(' ') as u32;
    let is_reversed = cell.modifier.contains(Modifier::REVERSED);
    match code {
        // Left blocks, from seven eighths down to one.
        0x2589..=0x258f => {
            let eighths = 0x2590 - code;
            match (is_reversed, cell.bg) {
                (true, Color::Reset) => (eighths..8, 8),
                (_, Color::Reset) => (0..eighths, 8),
                // Two colours, both of them ink.
                _ => (0..8, 8),
            }
        }
        // Lower blocks, from one eighth up to eight; before another colour both are ink.
        0x2581..=0x2588 if cell.bg != Color::Reset => (0..8, 8),
        0x2581..=0x2588 => (0..8, code - 0x2580),
        _ if cell.bg != Color::Reset || is_reversed => (0..8, 8),
        _ => (0..0, 0),
    }
}

fn area(cell: &Cell) -> f64 {
    let (sides, height) = ink_of(cell);
    f64::from(sides.len() as u32 * height) / 64.0
}

/// A collective from 0 to 100 ns that waits for 60 of them, and a kernel from 100 to 150.
#[test]
fn a_kernel_that_waits_has_the_colour_of_waiting_until_it_works() {
    use jobs::Wait;

    let window = Span::new(0, 160);
    let waits = Waits::of(vec![Wait {
        span: Span::new(0, 60),
        for_rank: 1,
        lane: 0,
        row: 0,
        exposed: 60,
    }]);
    let input = StripInput {
        scale: TimeScale::new(window, 16),
        scope: window,
        record: None,
        gap: None,
        has_gaps: false,
        found: None,
        waits: Some(&waits),
        rounds: None,
    };
    let trace = kernels(&[(0, 100), (100, 150)]);
    let theme = Theme {
        level: ColorLevel::True,
        ..Theme::default()
    };
    let buf = drawn(&Strip::new(&trace, 0, &input), &theme, 16, 1);
    let wait = theme.ink_of(Role::Wait, false).fg;
    let is_wait: Vec<bool> = buf.content().iter().map(|it| Some(it.bg) == wait).collect();
    assert_eq!(is_wait, [[true; 6].as_slice(), &[false; 10]].concat());
    // The name stands on both.
    assert!(symbols(&buf).contains("kernel"), "{}", symbols(&buf));
}

#[test]
fn edges_lie_where_those_of_the_operations_are() {
    // 80 ns over 10 columns: an eighth is 1 ns. From 3 to 29, from 29 to 42, from 53 to 56.
    let found = strip(&[(3, 29), (29, 42), (53, 56)], Span::new(0, 80), 10);
    let buf = drawn(&found, &Theme::default(), 10, 1);
    let inked: Vec<_> = buf.content().iter().map(ink_of).collect();
    assert_eq!(
        inked,
        [
            (3..8, 8),
            (0..8, 8),
            (0..8, 8),
            (0..8, 8),
            (0..8, 8),
            (0..2, 8),
            (5..8, 8),
            (0..0, 0),
            (0..0, 0),
            (0..0, 0),
        ]
    );
    // The two that meet do so 5 ns into their cell, in two shades.
    assert!(matches!(found.cells[3], Ink::Split(5, a, b) if a.is_second != b.is_second));
    let cell = &buf.content()[3];
    assert!(cell.symbol() == "▋" && cell.fg != cell.bg);
}

#[test]
fn one_operation_between_two_edges_is_as_high_as_its_share() {
    // A quarter of the cell, in its middle.
    let found = strip(&[(43, 45)], Span::new(0, 80), 10);
    assert!(matches!(found.cells[5], Ink::Level(share, _) if share == 0.25));
}

#[test]
fn many_operations_in_a_column_are_as_high_as_they_are_busy() {
    // Every 100 ns one of 25: a quarter of every column of 1000.
    let spans: Vec<(Ns, Ns)> = (0..400).map(|i| (i * 100, i * 100 + 25)).collect();
    let found = strip(&spans, Span::new(0, 40_000), 40);
    let theme = Theme::default();
    assert_eq!(symbols(&drawn(&found, &theme, 40, 1)), "▂".repeat(40));
    // Over two lines a quarter is half of the lower one.
    let expected = " ".repeat(40) + &"▄".repeat(40);
    assert_eq!(symbols(&drawn(&found, &theme, 40, 2)), expected);
}

#[test]
fn names_stand_on_bars_and_gaps_say_how_long_they_are() {
    let spans = [(0, 100_000), (300_000, 400_000)];
    let found = strip(&spans, Span::new(0, 400_000), 40);
    let text = symbols(&drawn(&found, &Theme::default(), 40, 1));
    // Without a record of the launch nobody knows of work that was queued.
    assert_eq!(text, " kernel      ‹idle 200 µs›     kernel   ");
}

#[test]
fn without_blocks_and_colours_bars_and_borders_are_seen() {
    let theme = Theme {
        level: ColorLevel::None,
        is_ascii: true,
        ..Theme::default()
    };
    let found = strip(&[(3, 29), (29, 42), (53, 56)], Span::new(0, 80), 10);
    let buf = drawn(&found, &theme, 10, 1);
    assert_eq!(symbols(&buf), "=  | .:   ");
    let filled: Vec<bool> = buf
        .content()
        .iter()
        .map(|cell| cell.modifier.contains(Modifier::REVERSED))
        .collect();
    assert_eq!(filled[..6], [false, true, true, true, true, false]);
}

/// Spans that follow each other, or also nest and overlap.
#[test]
fn short_ranges_are_shares_of_their_cells_with_the_names_that_matter() {
    // Three of four nanoseconds for one, the fourth for the other; a cell has eight.
    let mut made = Scene::new();
    for start in (0..256).step_by(4) {
        made.range(RangeKind::Nvtx, "wide", 0, start, start + 3);
        made.range(RangeKind::Nvtx, "thin", 0, start + 3, start + 4);
    }
    let trace = made.trace();
    let window = Span::new(0, 256);
    let input = StripInput {
        scale: TimeScale::new(window, 32),
        scope: window,
        record: None,
        gap: None,
        has_gaps: false,
        found: None,
        waits: None,
        rounds: None,
    };
    let levels = nest::levels(&trace, 0, window, nest::DEEPEST);
    let strip = Strip::nested(&trace, 0, levels.as_deref(), 0, &input);
    for ink in &strip.cells {
        let Ink::Shares(shares, _) = ink else {
            panic!("{ink:?}");
        };
        assert_eq!(shares, &[0.75, 1.0]);
    }
    let names: Vec<&str> = strip.names.iter().map(|name| name.text.trim()).collect();
    assert_eq!(names, ["wide 75 %"], "half of 32 columns has room for one");
}

fn spans() -> impl Strategy<Value = Vec<(Ns, Ns)>> {
    let one = (0i64..60, 0i64..90, any::<bool>());
    (prop::collection::vec(one, 1..50), any::<bool>()).prop_map(|(parts, may_overlap)| {
        let mut at = 0;
        let mut spans = Vec::new();
        for (gap, length, is_inside) in parts {
            // Half of them follow at once.
            let start = at + if gap < 30 { 0 } else { gap - 30 };
            spans.push((start, start + length));
            at = if may_overlap && is_inside {
                start + length / 3
            } else {
                start + length
            };
        }
        spans
    })
}

/// Ranges that nest, each with its depth, in the order of their starts.
fn nest() -> impl Strategy<Value = Vec<(usize, (Ns, Ns))>> {
    prop::collection::vec((0i64..40, any::<bool>()), 1..80).prop_map(|steps| {
        let (mut now, mut open, mut all) = (0, Vec::new(), Vec::new());
        for (time, is_new) in steps {
            // Half of them begin where another ends.
            now += (time - 20).max(0);
            if is_new && open.len() < 5 {
                all.push((open.len(), (now, now)));
                open.push(all.len() - 1);
                now += 1;
            } else if let Some(at) = open.pop() {
                all[at].1.1 = now;
            }
        }
        for at in open.into_iter().rev() {
            now += 1;
            all[at].1.1 = now;
        }
        all
    })
}

fn trace_of_ranges(all: &[(usize, (Ns, Ns))]) -> Trace {
    let mut made = Scene::new();
    for &(_, (start, end)) in all {
        made.range(RangeKind::CpuOp, "op", 0, start, end);
    }
    made.trace()
}

/// A part of the time up to `end`, in hundredths.
fn part_of(end: Ns, (from, length): (u8, u8)) -> Span {
    let from = end * Ns::from(from) / 100;
    Span::new(from, from + (end * Ns::from(length) / 100).max(1))
}

/// Holds what is drawn of a lane to what ran on it, counted one nanosecond at a time: the inked area, black, edges, shades.
fn check(strip: &Strip, spans: &[(Ns, Ns)], scale: TimeScale, lines: u16) -> TestCaseResult {
    let columns = scale.columns;
    let buf = drawn(strip, &Theme::default(), columns, lines);
    let runs = |t: Ns| spans.iter().any(|&(a, b)| a <= t && t < b);
    // The one operation of the column before, and its shade.
    let mut before: Option<(usize, bool)> = None;
    for x in 0..columns {
        let (start, end) = (scale.edge(x), scale.edge(x + 1).max(scale.edge(x) + 1));
        let busy = (start..end).filter(|&t| runs(t)).count();
        let share = busy as f64 / (end - start) as f64;
        let is_instant = spans.iter().any(|&(a, b)| a == b && start <= a && a < end);
        let of_column = (0..lines).map(|y| &buf[(x, y)]);
        // Gaps have words on no background.
        let inked = of_column.map(area).sum::<f64>() / f64::from(lines);
        let cell = &buf[(x, lines - 1)];
        prop_assert!(
            (inked - share).abs() <= 0.125 + 1e-9,
            "column {x}, {start}..{end}: {share} of it ran, {inked} is inked: {cell:?}"
        );
        prop_assert_eq!(inked > 0.0, busy > 0 || is_instant, "column {}", x);
        if busy > 0 {
            let least = 0.125 / f64::from(lines);
            prop_assert!(inked >= least, "column {x}: {inked} is inked: {cell:?}");
        }
        if let Ink::Shares(..) = strip.cells[usize::from(x)] {
            before = None;
            continue;
        }
        // One operation, one edge: the side is right.
        let is_inside = |&i: &usize| {
            let (a, b) = spans[i];
            (a < end && b > start) || (a == b && start <= a && a < end)
        };
        let inside: Vec<usize> = (0..spans.len()).filter(is_inside).collect();
        let ink = strip.cells[usize::from(x)];
        let mut single = None;
        if let [i] = inside[..] {
            let (a, b) = spans[i];
            let (sides, height) = ink_of(cell);
            let eighth = (end - start) as f64 / 8.0;
            let ends = [a <= start, b >= end];
            if ends == [true, false] && busy > 0 {
                let edge = start as f64 + f64::from(sides.end) * eighth;
                prop_assert!(
                    height == 8 && sides.start == 0 && (edge - b as f64).abs() <= eighth + 1e-9,
                    "{b} is drawn at {edge}: {cell:?}"
                );
            } else if ends == [false, true] {
                let edge = start as f64 + f64::from(sides.start) * eighth;
                prop_assert!(
                    height == 8 && sides.end == 8 && (edge - a as f64).abs() <= eighth + 1e-9,
                    "{a} is drawn at {edge}: {cell:?}"
                );
            }
            let (Ink::Left(_, p) | Ink::Right(_, p) | Ink::Full(p) | Ink::Level(_, p)) = ink else {
                return Err(TestCaseError::fail(format!("column {x}: {ink:?}")));
            };
            single = Some((i, p.is_second));
            if let Some((other, is_second)) = before {
                let is_same = other == i;
                prop_assert_eq!(
                    p.is_second == is_second,
                    is_same,
                    "column {}: {:?} beside {:?}",
                    x,
                    spans[other],
                    spans[i]
                );
            }
        }
        if let Ink::Split(_, left, right) = ink {
            prop_assert_ne!(left.is_second, right.is_second, "column {}", x);
        }
        before = single;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn what_is_inked_is_what_ran(
        spans in spans(),
        columns in 1u16..60,
        lines in 1u16..=2,
        cut in (0u8..100, 1u8..=100),
    ) {
        let end = spans.iter().map(|s| s.1).max().unwrap_or(0).max(1);
        let window = part_of(end, cut);
        let scale = TimeScale::new(window, columns);
        check(&strip(&spans, window, columns), &spans, scale, lines)?;
    }

    #[test]
    fn what_is_inked_of_ranges_that_nest_is_what_ran_at_their_depth(
        all in nest(),
        columns in 1u16..60,
        cut in (0u8..100, 1u8..=100),
    ) {
        let end = all.iter().map(|(_, span)| span.1).max().unwrap_or(0).max(1);
        let window = part_of(end, cut);
        let input = StripInput {
            scale: TimeScale::new(window, columns),
            scope: window,
            record: None,
            gap: None,
            has_gaps: false,
            found: None,
            waits: None,
            rounds: None,
        };
        let trace = trace_of_ranges(&all);
        for depth in 0..5 {
            let of_depth = all.iter().filter(|(of, _)| *of == depth);
            let spans: Vec<(Ns, Ns)> = of_depth.map(|(_, span)| *span).collect();
            if !trace.lanes().is_empty() {
                let levels = nest::levels(&trace, 0, window, nest::DEEPEST);
                let mut strip = Strip::nested(&trace, 0, levels.as_deref(), depth, &input);
                // What says which colour is which stands over the cells.
                strip.names.retain(|name| !name.is_key);
                check(&strip, &spans, input.scale, 1)?;
            }
        }
    }

    #[test]
    fn a_column_stands_back_unless_something_in_it_is_looked_for(
        parts in prop::collection::vec((0i64..60, 1i64..90, any::<bool>()), 1..50),
        columns in 1u16..60,
    ) {
        // Every other one is another kernel.
        let mut at = 0;
        let mut items = Vec::new();
        for &(gap, length, is_hit) in &parts {
            let start = at + (gap - 30).max(0);
            at = start + length;
            items.push((start, at, is_hit));
        }
        let mut made = Scene::new();
        for &(start, end, is_hit) in &items {
            made.kernel(if is_hit { "needle" } else { "kernel" }, 0, start, end);
        }
        let trace = made.trace();
        let needle = Needle::new("NEEDLE").expect("something");
        let found = Hits::of(&trace, &needle, &activity::feed::Stop::default());
        let window = Span::new(0, at);
        let input = StripInput {
            scale: TimeScale::new(window, columns),
            scope: window,
            record: None,
            gap: None,
            has_gaps: false,
            found: Some(&found),
            waits: None,
            rounds: None,
        };
        let strip = Strip::new(&trace, 0, &input);
        for x in 0..columns {
            let cell = at_least_1ns(input.scale.cell(x));
            let expected = items
                .iter()
                .any(|&(a, b, is_hit)| is_hit && a < cell.end && b > cell.start);
            let is_lit = match strip.cells[usize::from(x)] {
                Ink::Nothing => false,
                Ink::Left(_, p) | Ink::Right(_, p) | Ink::Full(p) | Ink::Level(_, p) => !p.is_calm,
                Ink::Split(_, a, b) | Ink::Shares(_, [a, b]) => !a.is_calm || !b.is_calm,
            };
            prop_assert_eq!(is_lit, expected, "column {} of {:?}", x, items);
        }
    }
}

/// Four rounds of 20 kernels of 10 ns each, and what stands on them in so many columns.
#[test]
fn rounds_of_a_graph_are_told_where_its_kernels_are_too_short_for_names() {
    let names: Vec<String> = (0..20).map(|it| format!("kernel_{it}")).collect();
    let mut scene = Scene::new();
    for (at, name) in (0..).step_by(10).zip(names.iter().cycle().take(80)) {
        scene.kernel(name, 1, at, at + 10);
    }
    let mut batch = scene.take();
    let kernels = batch.items.iter_mut().filter_map(|it| match &mut it.what {
        What::Kernel(it) => Some(it),
        _ => None,
    });
    for (node, kernel) in (1..).zip(kernels) {
        (kernel.graph, kernel.node) = (5, 5 << 32 | node);
    }
    let trace = scene.put(batch).trace();
    let rounds = NodeRounds::of(&trace);
    let told = |window: Span, columns| {
        let input = StripInput {
            scale: TimeScale::new(window, columns),
            scope: window,
            rounds: Some(&rounds),
            ..StripInput::default()
        };
        let names = Strip::new(&trace, 0, &input).names.into_iter();
        let names = names.filter(|it| it.is_key);
        names.map(|it| (it.x, it.text)).collect::<Vec<_>>()
    };
    let all = |text: fn(u16) -> String, wide: u16| {
        let each = (0..4).map(|it| (it * wide, text(it + 1)));
        each.collect::<Vec<_>>()
    };
    let whole = Span::new(0, 800);
    assert_eq!(told(whole, 80), all(|it| format!("│round {it} of 4 "), 20));
    assert_eq!(told(whole, 40), all(|it| format!("│round {it} "), 10));
    // A number alone would be a riddle.
    assert_eq!(told(whole, 20), []);
    // Kernels have names of their own.
    assert_eq!(told(whole, 800), []);
    // Half of the first and of the last are in view.
    let within = told(Span::new(100, 700), 60);
    assert_eq!(within.iter().map(|it| it.0).collect::<Vec<_>>(), [10, 30]);
}

use super::super::ink::Ink;
use super::*;
use crate::tui::fixture::{self, EPOCH};
use activity::Ns;

const US: Ns = 1_000;
/// A column of the picture: the longer half's 4300 µs over 86 columns.
const COLUMN: Ns = 50 * US;

/// The fixture's variants: `sequential` takes 4300 µs on one stream, `streamed` 2200 µs on four.
fn drawn(order: [usize; 2], trace: &Trace) -> Vec<String> {
    let spans = [
        Span::new(EPOCH + 100 * US, EPOCH + 4_400 * US),
        Span::new(EPOCH + 10_100 * US, EPOCH + 12_300 * US),
    ];
    let names = ["sequential", "streamed"];
    let idle = spans.map(|span| IdleMap::at_once(trace, span));
    let half = |i: usize| Half {
        idle: &idle[order[i]],
        trace,
        span: spans[order[i]],
        name: names[order[i]],
        figures: "figures",
    };
    let words = ["1.95× faster".to_owned(), "2.10 ms saved".to_owned()];
    // Room for devices and streams, and none for the host.
    let area = Rect::new(0, 0, 97, 11);
    let versus = Versus::new([half(0), half(1)], &words, Role::Good, false, area, 10);
    let theme = Theme::default();
    let mut buf = Buffer::empty(area);
    versus.draw(&theme, &mut buf);
    crate::tui::tests::text(&buf)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Columns of the plot of the first line that begins with a label.
fn plot(lines: &[String], label: &str) -> Vec<char> {
    let line = lines.iter().find(|l| l.trim_start().starts_with(label));
    line.expect("the row").chars().skip(10).collect()
}

#[test]
fn a_column_is_as_long_in_both_and_what_is_saved_is_hatched() {
    let lines = drawn([0, 1], &fixture::trace());
    // 2200 µs are 44 columns; all behind them is hatched, but for the words.
    let s0 = plot(&lines, "s0");
    let hatched = s0.iter().position(|c| *c == '╱').expect("hatched");
    assert_eq!(Ns::try_from(hatched), Ok(2_200 * US / COLUMN));
    assert_eq!(s0.len(), 86);
    // The last stream of `streamed` begins 1200 µs after the first: 24 columns.
    let s3 = plot(&lines, "s3");
    let first = s3.iter().position(|c| *c != ' ').expect("something");
    // As text: the name, which stands a column behind the edge.
    assert_eq!(first, 25);
    // `sequential` takes all of it, the second batch stands behind a gap from 1000 to 1100 µs.
    let main = plot(&lines, "main");
    assert_eq!(
        (main[19] == ' ', main[20], main[21], main[23] == ' '),
        (false, ' ', ' ', false)
    );
    assert!(!main.contains(&'╱') && main.len() == 86, "{main:?}");
    let all = lines.join("\n");
    assert!(all.contains("  1.95× faster  ") && all.contains("  2.10 ms saved  "));
    assert!(all.contains("╷0 ms"), "{all}");
}

#[test]
fn where_the_second_takes_longer_the_first_is_hatched() {
    let lines = drawn([1, 0], &fixture::trace());
    assert!(plot(&lines, "s0").contains(&'╱'));
    assert!(!plot(&lines, "main").contains(&'╱'));
}

#[test]
fn nothing_of_what_comes_after_a_half_is_drawn() {
    let trace = fixture::trace();
    let start = EPOCH + 100 * US;
    // The second batch of `sequential` begins 1100 µs after the first, which ends 100 µs before.
    let both = TimeScale::new(Span::new(0, 8_600 * US), 860);
    let of_main = |end: Ns| {
        let half = Half {
            trace: &trace,
            span: Span::new(start, start + end),
            name: "",
            figures: "",
            idle: &IdleMap::default(),
        };
        let is_stream = |row: &Row| matches!(row.kind, RowKind::Stream(_));
        let row = lane_rows(&half).into_iter().find(is_stream);
        let scale = half_scale(half.span, both);
        match lane_row(&half, row.expect("a stream"), scale, (10, 900)).plot {
            Plot::Strip(strip) => strip.cells,
            _ => panic!("a stream is a strip"),
        }
    };
    // A half that ends in the gap before it, and one that ends with its upload: a column is 10 µs, or a little less.
    for (end, columns, is_inked) in [(1_096 * US, 110, false), (1_118 * US, 112, true)] {
        let cells = of_main(end);
        assert_eq!(cells.len(), columns);
        assert_eq!(cells[columns - 1] != Ink::Nothing, is_inked, "{end}");
    }
}

#[test]
fn rows_without_room_are_counted() {
    let trace = fixture::trace();
    let idle = IdleMap::default();
    let half = |from: Ns, to: Ns| Half {
        idle: &idle,
        trace: &trace,
        span: Span::new(EPOCH + from * US, EPOCH + to * US),
        name: "half",
        figures: "",
    };
    let halves = [half(100, 4_400), half(10_100, 12_300)];
    for height in 0..30 {
        for width in [0, 9, 20, 80] {
            let area = Rect::new(0, 0, width, height);
            let versus = Versus::new(halves, &[], Role::Good, true, area, 11);
            let mut buf = Buffer::empty(area);
            versus.draw(&Theme::default(), &mut buf);
            let shown = versus.rows.len();
            let words = versus.titles.iter().filter_map(|(_, [_, figures])| {
                let count = figures.split(" more").next()?;
                count.trim_start_matches(" · ").parse::<usize>().ok()
            });
            let hidden: usize = words.sum();
            // A stream and a thread, four streams and a thread; both devices where there is room for all.
            let all = if shown == 9 { 9 } else { 7 };
            assert!(
                versus.titles.is_empty() || shown + hidden == all,
                "{width}x{height}: {shown} {hidden}"
            );
            let last = versus.rows.last().map_or(0, |(at, _)| at.bottom());
            assert!(last <= height, "{width}x{height}");
        }
    }
}

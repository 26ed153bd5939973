//! The rows of a device, against times and bytes counted one nanosecond at a time.

use crate::report::{KnownGpu, KnownGpus};
use figures::Peaks;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use super::*;
use crate::tui::app::App;
use crate::tui::theme::{Role, Theme};
use activity::{DeviceInfo, Direction, RangeKind};
use ratatui::style::Modifier;
use trace::testing::Scene;

/// What an operation is done by.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Engine {
    Kernels,
    Up,
    Down,
    Memsets,
}

#[derive(Clone, Copy, Debug)]
struct Op {
    engine: Engine,
    stream: u32,
    start: Ns,
    end: Ns,
    bytes: u64,
}

impl Op {
    fn within(&self, window: Span) -> Ns {
        (self.end.min(window.end) - self.start.max(window.start)).max(0)
    }
}

/// Operations that follow each other on each of three streams.
fn operations() -> impl Strategy<Value = Vec<Op>> {
    let engine = prop::sample::select(vec![
        Engine::Kernels,
        Engine::Up,
        Engine::Up,
        Engine::Down,
        Engine::Memsets,
    ]);
    let one = (engine, 0u32..3, 0i64..60, 1i64..200, 1u64..40_000);
    prop::collection::vec(one, 1..30).prop_map(|parts| {
        let mut free = [0; 3];
        let mut all = Vec::new();
        for (engine, stream, gap, length, bytes) in parts {
            let start = free[stream as usize] + gap;
            let end = start + length;
            free[stream as usize] = end;
            // Now and then a few bytes that take long.
            let bytes = if bytes < 4_000 {
                bytes / 400 + 1
            } else {
                bytes
            };
            all.push(Op {
                engine,
                stream,
                start,
                end,
                bytes,
            });
        }
        all
    })
}

fn app(all: &[Op], peak: Option<f64>) -> App {
    let mut all = all.to_vec();
    all.sort_by_key(|op| op.start);
    let mut made = Scene::new();
    made.device(DeviceInfo::default());
    for op in &all {
        let (stream, start, end) = (op.stream, op.start, op.end);
        match op.engine {
            Engine::Kernels => made.kernel("kernel", stream, start, end),
            Engine::Up => made.copy(Direction::H2D, stream, op.bytes, start, end),
            Engine::Down => made.copy(Direction::D2H, stream, op.bytes, start, end),
            Engine::Memsets => made.memset(stream, op.bytes, start, end),
        };
    }
    let trace = made.trace();
    let peaks = Peaks {
        h2d: peak,
        d2h: peak,
        ..Peaks::default()
    };
    let gpus = KnownGpus::from_iter([KnownGpu {
        peaks,
        ..KnownGpu::default()
    }]);
    let mut app = App::of_trace(trace, None, gpus);
    // The side column has room for "fastest 999 MB/s".
    app.state.size = Size::new(200, 40);
    app
}

/// GB/s, which are bytes a ns, of "11.1", "2.4 MB/s", "fastest 54.9 GB/s".
fn rate_in(text: &str) -> Option<f64> {
    let text = text.strip_prefix("fastest ").unwrap_or(text);
    let mut words = text.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        None | Some("GB/s") => 1.0,
        Some("MB/s") => 1e-3,
        Some("kB/s") => 1e-6,
        Some(_) => return None,
    };
    Some(number * unit)
}

/// Each column's inked area, as a terminal shows it.
fn areas(row: &LaneRow, columns: u16, lines: u16) -> Vec<f64> {
    let area = Rect::new(0, 0, row.gutter + columns + row.side_columns, lines);
    let mut buf = Buffer::empty(area);
    row.draw(&Theme::default(), area, &mut buf);
    let theme = Theme::default();
    let copies = theme.fg(Role::H2D).fg.expect("a colour");
    let inks = [copies, theme.fg(Role::Good).fg.expect("a colour")];
    let eighths = |x, y| {
        let cell = &buf[(row.gutter + x, y)];
        match cell.symbol().chars().next() {
            // Copies alone stand behind the kernels.
            Some('▁'..='█') if cell.bg == copies => 8.0,
            Some(block @ '▁'..='█') => f64::from(block as u32 - 0x2580),
            // From the side; what is filled from the right draws the rest of the cell.
            Some(block @ '▉'..='▏') => {
                let left = f64::from(0x2590 - block as u32);
                let is_rest = inks.contains(&cell.bg) || cell.modifier.contains(Modifier::REVERSED);
                if is_rest { 8.0 - left } else { left }
            }
            _ => 0.0,
        }
    };
    (0..columns)
        .map(|x| (0..lines).map(|y| eighths(x, y)).sum::<f64>() / f64::from(8 * lines))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn the_rows_of_a_device_are_what_its_engines_did(
        all in operations(),
        cut in (0i64..100, 5i64..=100),
        lines in 1u16..=2,
        is_peak_known in any::<bool>(),
    ) {
        let peak = is_peak_known.then_some(500.0);
        let mut app = app(&all, peak);
        let whole = app.state.focus.camera.viewport.window;
        let start = whole.start + whole.len() * cut.0 / 100;
        app.state.focus.camera.viewport.show(Span::new(start, start + whole.len() * cut.1 / 100));
        app.prepare();
        let state = &app.state;
        let layout = Layout::of(state);
        let scale = TimeScale::new(state.focus.camera.viewport.window, layout.plot_columns());
        let cells: Vec<Span> = (0..scale.columns).map(|x| scale.cell(x)).collect();
        let runs = |engine: Engine, t: Ns| {
            all.iter().any(|op| op.engine == engine && op.start <= t && t < op.end)
        };
        let engines = [Engine::Kernels, Engine::Up, Engine::Down, Engine::Memsets];
        let at_work = |t: Ns| engines.iter().filter(|&&engine| runs(engine, t)).count();
        let count = |cell: Span, is: &dyn Fn(Ns) -> bool| {
            (cell.start..cell.end).filter(|&t| is(t)).count() as f64
        };
        let mut rates = Shared::default();
        let mut rate_rows: Vec<(f64, Vec<f64>)> = Vec::new();
        for row in &state.rows.list {
            let RowContent::Lane(lane) = make(state, &layout, scale, &mut rates, row) else {
                continue;
            };
            let is_counted: Box<dyn Fn(Ns) -> bool> = match row.kind {
                RowKind::Gpu(_) => Box::new(|t| at_work(t) >= 1),
                RowKind::Overlap(_) => Box::new(|t| at_work(t) >= 2),
                RowKind::Bandwidth(_, direction) => {
                    let engine = if direction == Direction::H2D { Engine::Up } else { Engine::Down };
                    let Plot::Levels(levels) = &lane.plot else {
                        return Err(TestCaseError::fail("no row of heights"));
                    };
                    let shares: Vec<f64> = levels.iter().map(|it| it.map_or(0.0, |it| it.0)).collect();
                    let copies = all.iter().filter(|op| op.engine == engine);
                    let moved = |window: Span| -> f64 {
                        let part = |op: &Op| {
                            op.bytes as f64 * op.within(window) as f64 / (op.end - op.start) as f64
                        };
                        copies.clone().map(part).sum()
                    };
                    let of_cell = |cell: &Span| moved(*cell) / cell.len().max(1) as f64;
                    let in_cell: Vec<f64> = cells.iter().map(of_cell).collect();
                    // The greatest of a column while copies ran in it.
                    let busy = |cell: Span| count(cell, &|t| runs(engine, t));
                    let while_copying = cells.iter().filter(|cell| busy(**cell) > 0.0);
                    let greatest = while_copying.map(|cell| moved(*cell) / busy(*cell)).fold(0.0, f64::max);
                    let mean = rate_in(&lane.figure).unwrap_or(0.0);
                    if let Some(peak) = peak {
                        for (share, rate) in shares.iter().zip(&in_cell) {
                            prop_assert!((share - rate / peak).abs() < 1e-6, "{share} of {peak}: {rate}");
                        }
                    } else {
                        rate_rows.push((greatest, shares.clone()));
                        if !lane.figure.is_empty() {
                            let most = rate_in(&lane.side).expect("the fastest");
                            prop_assert!(most >= mean, "{} at {}", lane.side, lane.figure);
                            // Small rates have two digits.
                            prop_assert!(most >= 0.95 * greatest, "{}: {greatest}", lane.side);
                        }
                    }
                    Box::new(move |t| runs(engine, t))
                }
                _ => continue,
            };
            let drawn = areas(&lane, scale.columns, lines);
            for (cell, drawn) in cells.iter().zip(drawn) {
                let busy = count(*cell, &*is_counted);
                // Black only where nothing ran, and nothing else is.
                prop_assert_eq!(drawn > 0.0, busy > 0.0, "{:?} {:?}: {}", row.kind, cell, drawn);
                if !matches!(row.kind, RowKind::Bandwidth(..)) {
                    let share = busy / cell.len().max(1) as f64;
                    prop_assert!((drawn - share).abs() <= 0.125, "{:?}: {share} as {drawn}", row.kind);
                }
            }
        }
        // Of a link without a known peak the faster direction is the scale of both.
        let full = rate_rows.iter().map(|row| row.0).fold(0.0, f64::max);
        for (_, shares) in &rate_rows {
            prop_assert!(shares.iter().all(|share| *share <= 1.0 + 1e-9), "{full}: {shares:?}");
        }
    }
}

/// A kernel, then a copy and nothing from these moments on, and a kernel that ends at the last one.
fn parts_at([copy, idle, kernel, end]: [Ns; 4]) -> App {
    let op = |engine, start, end| Op {
        engine,
        stream: 1,
        start,
        end,
        bytes: 64,
    };
    let all = [
        op(Engine::Kernels, 0, copy),
        op(Engine::Up, copy, idle),
        op(Engine::Kernels, kernel, end),
    ];
    let mut app = app(&all, None);
    app.prepare();
    app
}

/// 70, 10 and 20 % of a microsecond.
fn three_parts() -> App {
    parts_at([600, 700, 900, 1_000])
}

#[test]
fn what_has_no_room_in_the_legend_is_told_in_a_word_and_never_as_a_letter_alone() {
    let app = three_parts();
    let all = legend(&app.state, 200);
    assert_eq!(all.len(), 3, "kernels, copies and why it was idle");
    // By hand: 70, 10 and 20 % of it. Of less room each time, what ran goes together; why it was idle stays.
    for room in 20..200 {
        let shown = legend(&app.state, room);
        assert!(shown.iter().all(|it| !it.1.is_empty()), "{shown:?}");
        let words = format!("{shown:?}");
        let ran = ["kernels 70 %", "busy 80 %"];
        assert!(ran.iter().any(|it| words.contains(it)), "{words}");
        assert!(!words.contains(OTHER) && words.contains(" 20 %"), "{words}");
    }
    // A cause of little keeps its word, and not its share, before it goes: 4 % of a millisecond. What ran has its share.
    let app = parts_at([600_000, 900_000, 940_000, 1_000_000]);
    let is_bare = |it: &(Role, String)| !it.1.contains('%');
    let all: Vec<_> = (20..200)
        .flat_map(|room| legend(&app.state, room))
        .collect();
    let bare: Vec<_> = all.iter().filter(|it| is_bare(it)).collect();
    assert!(!bare.is_empty());
    assert!(
        bare.iter().all(|it| matches!(it.0, Role::Cause(_))),
        "{bare:?}"
    );
}

#[test]
fn other_causes_have_their_share_or_are_left_out() {
    let parts = [
        (Role::Good, "kernels", 600),
        (Role::Cause(0), "CPU work", 350),
    ];
    let last = |others| told(&parts, (0, others), Some(1_000)).pop().map(|it| it.1);
    assert_eq!(last(50).as_deref(), Some("other 5 %"));
    assert_eq!(last(10).as_deref(), Some("other 1 %"));
    // Below a hundredth.
    assert_eq!(last(9).as_deref(), Some("CPU work 35 %"));
}

/// What a legend tells, and the shares in it.
fn told_in(app: &App, room: usize) -> (String, f64) {
    let shown = legend(&app.state, room);
    let words: Vec<String> = shown.into_iter().map(|it| it.1).collect();
    let words = words.join("  ");
    let shares = words.split("  ").filter_map(|it| {
        let number = it.split(" %").next()?.rsplit(' ').next()?;
        number.parse::<f64>().ok()
    });
    (words.clone(), shares.sum())
}

#[test]
fn other_behind_idle_holds_no_work_and_not_the_cause_in_focus() {
    let mut made = Scene::new();
    made.device(DeviceInfo::default());
    let us = |us: Ns| 1_000 * us;
    for at in (0..5).map(|i| us(100 * i)) {
        made.call("cudaMemcpyAsync", at, at + us(2));
        made.copy(Direction::H2D, 1, 64, at + us(3), at + us(8));
        made.call("cudaLaunchKernel", at + us(4), at + us(6));
        made.kernel("a", 1, at + us(8), at + us(48));
        made.call("cudaDeviceSynchronize", at + us(9), at + us(50));
    }
    // Launched at once, of which one ends long after the first kernel did.
    made.call("cudaLaunchKernel", us(500), us(530));
    made.kernel("b", 1, us(503), us(505));
    made.call("cudaLaunchKernel", us(530), us(544));
    made.kernel("b", 1, us(540), us(543));
    let mut app = App::of_trace(made.trace(), None, KnownGpus::default());
    app.prepare();
    app.state.focus.camera.viewport.show(Span::new(0, us(543)));
    let greatest = legend(&app.state, 200);
    let greatest = &greatest.iter().find(|it| matches!(it.0, Role::Cause(_)));
    let greatest = &greatest.expect("a cause").1;
    let rooms = 50..200;
    for room in rooms.clone() {
        let (words, sum) = told_in(&app, room);
        // By hand: from 3 to 543 us kernels run for 205, and copies for 25.
        let ran = words.contains("kernels 38 %") && words.contains("alone 5 %");
        assert!(ran || words.contains("busy 43 %"), "{room}: {words}");
        assert!(words.contains(greatest), "{room}: {words}");
        assert!((99.0..102.0).contains(&sum), "{room}: {words}");
    }
    let gap = Span::new(us(505), us(540));
    app.state.focus.selection.row = Some(RowKind::Gpu(0));
    app.state.focus.selection.item = Item::Gap(gap);
    app.prepare();
    for room in rooms {
        let words = told_in(&app, room).0;
        assert!(words.contains(greatest), "{room}: {words}");
        assert!(words.contains("launching"), "{room}: {words}");
    }
}

/// A pipeline is judged by kernels against copies, however little it is idle.
#[test]
fn hardly_any_idle_time_leaves_what_ran_instead() {
    // By hand: 400, 580 and 20 of 1,000 us.
    let app = parts_at([400_000, 980_000, 1_000_000, 1_000_100]);
    for room in 56..200 {
        let words = told_in(&app, room).0;
        let ran = words.contains("kernels 40 %") && words.contains("alone 58 %");
        assert!(ran, "{room}: {words}");
    }
    let narrow = legend(&app.state, 40);
    assert_eq!(narrow.last().map(|it| it.1.as_str()), Some("idle 2 %"));
}

#[test]
fn while_the_steps_of_a_file_are_looked_for_no_shares_are_told() {
    let mut app = three_parts();
    app.state.model.answers.leave_open();
    assert!(app.state.is_early());
    let shown = legend(&app.state, 200);
    let words: Vec<&str> = shown.iter().map(|it| &*it.1).collect();
    assert!(words.starts_with(&["kernels", "copies alone"]), "{words:?}");
    let told = || format!("{:?}", legend(&app.state, 200));
    assert!(!told().contains('%'), "{}", told());
    let side = |app: &App| {
        let scale = TimeScale::new(app.state.focus.camera.viewport.window, 80);
        gpu(&app.state, 0, scale, 20).side
    };
    assert_eq!(side(&app), "");
    app.prepare();
    assert!(!app.state.is_early());
    let told = format!("{:?}", legend(&app.state, 200));
    assert!(told.contains("kernels 70 %"), "{told}");
    assert_eq!(side(&app), "busy 80 %");
}

#[test]
fn a_depth_of_a_stack_without_anything_in_view_takes_no_line() {
    let mut made = Scene::new();
    made.device(DeviceInfo::default());
    made.call("cuLaunchKernel", 0, 10);
    made.kernel("kernel", 1, 10, 1_000);
    made.range(RangeKind::Nvtx, "step", 0, 0, 1_000);
    made.range(RangeKind::Nvtx, "load", 0, 0, 300);
    let mut app = App::of_trace(made.trace(), None, KnownGpus::default());
    app.prepare();
    let deep = |row: &&Row| matches!(row.kind, RowKind::Range(_, 1));
    let row = app.state.rows.list.iter().find(deep).cloned();
    let row = row.expect("a row of its own");
    assert!(!Shared::default().is_blank(&app.state, &row));
    // What holds the window is among its rows, and so is what ended within that before it.
    app.state.focus.camera.viewport.show(Span::new(500, 900));
    assert!(Shared::default().is_blank(&app.state, &row));
}

#[test]
fn a_short_rate_of_what_moved_is_never_0() {
    let short = [54.9, 0.72, 0.000_446].map(short_rate);
    assert_eq!(short, ["55 GB/s", "720 MB/s", "446 kB/s"]);
}

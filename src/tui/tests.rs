//! Whole screens, text and styles, on the timeline of [`fixture`].

pub(super) mod fixture;

use crate::report::{KnownGpu, KnownGpus};
use figures::Peaks;
use std::fmt::Write as _;
use std::time::Duration;

use live::machine::{GpuLoad, Machine, ProcessLoad, Seen, Sight};
use ratatui::buffer::Buffer;
use ratatui::layout::Size;
use ratatui::style::{Color, Modifier, Style};

use super::action::Action;
use super::app::App;
use super::frame::overlay::Overlay;
use super::theme::{KERNEL_COLORS, Role};
use super::view::VIEWS;
use super::*;
use crate::export::screen::{self, PictureFormat};
use activity::feed::{Failure, FailureKind, Message};
use activity::{Batch, Def, Health, ProcessInfo};

mod training;

/// What the H200 of the fixture can do. Predictions know of it what the bundled profile says.
fn known(peaks: Peaks) -> KnownGpus {
    KnownGpus::from_iter([KnownGpu {
        name: "NVIDIA H200".to_owned(),
        peaks,
        rates: KnownGpus::default().rates(&fixture::trace()),
    }])
}

pub(super) fn gpus() -> KnownGpus {
    known(Peaks {
        h2d: Some(57.0),
        d2h: Some(57.0),
        ..Peaks::default()
    })
}

/// A start that failed by its input.
pub(super) fn wrong_input(message: &str) -> Failure {
    Failure {
        kind: FailureKind::Input,
        message: message.to_owned(),
        help: String::new(),
    }
}

/// The lines of a buffer, as they are saved as text.
pub(super) fn text(buf: &Buffer) -> String {
    let mut out = Vec::new();
    let shown = screen::Shown {
        buffer: buf.clone(),
        ..screen::Shown::default()
    };
    screen::write(PictureFormat::Txt, &shown, &mut out).expect("memory can be written to");
    String::from_utf8(out).expect("UTF-8")
}

/// The styles of a buffer, line by line: what each stretch of text is coloured as, by its role.
/// Ordinary text and blanks are left out.
fn styles(buf: &Buffer) -> String {
    let theme = Theme::default();
    let width = usize::from(buf.area().width).max(1);
    let mut out = String::new();
    for (y, line) in buf.content().chunks(width).enumerate() {
        let mut parts: Vec<String> = Vec::new();
        for cells in line.chunk_by(|a, b| a.style() == b.style()) {
            let text: String = cells.iter().map(|c| c.symbol()).collect();
            let name = role_name(&theme, cells[0].style());
            if name != "Text" {
                parts.push(format!("{name} {:?}", text.trim()));
            }
        }
        if !parts.is_empty() {
            let _ = writeln!(out, "{y:>2}  {}", parts.join("  "));
        }
    }
    out
}

/// "H2D", "on H2D" for what stands on that colour, "+bold" and the like behind it.
fn role_name(theme: &Theme, style: Style) -> String {
    let of = |style: Style| (style.fg.unwrap_or_default(), style.bg.unwrap_or_default());
    let mut roles: Vec<(Role, String)> = [
        (Role::Text, "Text"),
        (Role::Dim, "Dim"),
        (Role::Rule, "Rule"),
        (Role::Accent, "Accent"),
        (Role::Good, "Good"),
        (Role::Warning, "Warning"),
        (Role::Bad, "Bad"),
        (Role::H2D, "H2D"),
        (Role::D2H, "D2H"),
        (Role::D2D, "D2D"),
        (Role::P2P, "P2P"),
        (Role::Memset, "Memset"),
        (Role::Overlap, "Overlap"),
        (Role::Host, "Host"),
        (Role::Wait, "Wait"),
        (Role::Range, "Range"),
        (Role::Op, "Op"),
        (Role::Python, "Python"),
        (Role::Selected, "Selected"),
    ]
    .map(|(role, name)| (role, name.to_owned()))
    .into();
    roles.extend((0..KERNEL_COLORS).map(|i| (Role::Kernel(i), format!("Kernel{i}"))));
    // The second shade of a role has a prime.
    let named = |color: Color| {
        let shades = [(false, ""), (true, "'")];
        let all = shades.iter().flat_map(|(is_second, prime)| {
            roles.iter().map(move |(role, name)| {
                let ink = theme.ink_of(*role, *is_second).fg.unwrap_or_default();
                (ink, format!("{name}{prime}"))
            })
        });
        all.into_iter()
            .find(|(ink, _)| *ink == color)
            .map(|(_, name)| name)
    };
    let (fg, bg) = of(style);
    let ink = of(theme.bg(Role::H2D)).0;
    let raw = || format!("{:?}", (fg, bg));
    let mut name = match (fg, bg) {
        (_, Color::Reset) => named(fg).unwrap_or_else(raw),
        (fg, bg) if fg == ink => named(bg).map_or_else(raw, |name| format!("on {name}")),
        _ => match (named(fg), named(bg)) {
            (Some(left), Some(right)) => format!("{left}|{right}"),
            _ => raw(),
        },
    };
    for (modifier, word) in [
        (Modifier::BOLD, "+bold"),
        (Modifier::UNDERLINED, "+underlined"),
        (Modifier::REVERSED, "+reversed"),
        (Modifier::DIM, "+dim"),
    ] {
        if style.add_modifier.contains(modifier) {
            name.push_str(word);
        }
    }
    name
}

/// Two GPUs with four processes: of two users here, one that draws, and one of another process namespace.
pub(super) fn machine() -> Machine {
    let seen = |user: &str, command: &str, age, right: Result<&str, &str>| {
        Sight::Seen(Seen {
            user: user.to_owned(),
            command: command.to_owned(),
            began: 100,
            age: Duration::from_secs(age),
            inner: None,
            is_filtered: false,
            right: right.map(str::to_owned).map_err(str::to_owned),
        })
    };
    let mine = Ok("You may: the process is yours.");
    let process = |pid, sight, memory: Option<u64>, share| ProcessLoad {
        pid,
        sight,
        memory: memory.map(|it| it << 20),
        share,
        draws: false,
        is_listed: true,
    };
    let gpu = |index, busy, past, processes| GpuLoad {
        index,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        busy: Some(busy),
        memory: Some((u64::from(busy) << 29, 81_559 << 20)),
        power: Some(5_000 * busy + 70_000),
        past,
        processes,
    };
    let train = "python train.py --model llama --batch 64 --steps 100000 --out /data/ana/run-7";
    let serve = "/opt/venv/bin/python3 -m vllm serve";
    let may_not = Err("It belongs to bea, and you may not. This may: sudo cuptop attach 50122");
    let first = vec![
        process(
            48213,
            seen("ana", train, 8_000, mine),
            Some(41_000),
            Some(84),
        ),
        process(
            50122,
            seen("bea", serve, 86_400 * 3, may_not),
            Some(3_500),
            Some(13),
        ),
    ];
    let display = ProcessLoad {
        draws: true,
        ..process(
            991,
            seen("ana", "/usr/lib/xorg/Xorg :0", 600, mine),
            Some(4),
            Some(0),
        )
    };
    let second = vec![process(1_204_331, Sight::Elsewhere, None, None), display];
    let mut past: Vec<_> = (0..40).map(|it| Some(it * 2)).collect();
    past.extend([Some(0); 30]);
    past.extend([Some(97); 20]);
    Machine {
        gpus: vec![
            gpu(0, 97, past, first),
            gpu(1, 0, vec![Some(0); 120], second),
        ],
    }
}

fn both(app: &mut App) -> String {
    let buf = render(app, &Theme::default());
    format!("{}\n{}", text(&buf), styles(&buf))
}

fn done(width: u16, height: u16) -> App {
    let mut app = App::of_trace(fixture::trace(), None, gpus());
    app.state.size = Size::new(width, height);
    app.prepare();
    app
}

fn live(batches: usize) -> App {
    let mut app = App::new(Vec::new());
    app.state.size = Size::new(80, 24);
    app.start(fixture::source(), None, gpus());
    app.tick(Duration::from_millis(3_210));
    for batch in fixture::batches().into_iter().take(batches) {
        app.take(Message::Batch(batch));
    }
    app.prepare();
    app
}

#[test]
fn a_complete_run_at_three_sizes() {
    insta::assert_snapshot!("done_80x24", both(&mut done(80, 24)));
    insta::assert_snapshot!("done_120x40", both(&mut done(120, 40)));
    insta::assert_snapshot!("done_200x50", both(&mut done(200, 50)));
}

#[test]
fn a_live_run() {
    insta::assert_snapshot!("live_80x24", both(&mut live(1)));
}

#[test]
fn a_live_run_without_records() {
    insta::assert_snapshot!("empty_80x24", both(&mut live(0)));
}

#[test]
fn a_paused_run() {
    let mut app = live(1);
    app.act(Action::Pause);
    app.prepare();
    insta::assert_snapshot!("paused_80x24", both(&mut app));
}

#[test]
fn losses_are_red() {
    let mut app = live(2);
    app.take(Message::Batch(Batch {
        health: Some(Health {
            received: 1_234_567,
            dropped: 12,
            ..Health::default()
        }),
        ..Batch::default()
    }));
    app.prepare();
    insta::assert_snapshot!("losses_80x24", both(&mut app));
}

#[test]
fn an_error_lies_above_the_last_good_run() {
    let mut app = done(80, 24);
    app.fail(&wrong_input(
        "error: unknown key `repat`\n  --> pipeline.toml:24:1\n   |\n24 | repat = 3\n   | ^^^^^ did you mean `repeat`?",
    ));
    insta::assert_snapshot!("error_80x24", both(&mut app));
}

#[test]
fn a_failed_program_is_said() {
    let mut app = live(1);
    app.take(Message::Finished(Outcome::Failed(Failure {
        kind: FailureKind::Program { code: 1 },
        message: "the kernel `bad` wrote out of bounds".to_owned(),
        help: "compute-sanitizer names the line".to_owned(),
    })));
    app.prepare();
    insta::assert_snapshot!("failed_80x24", text(&render(&mut app, &Theme::default())));
}

#[test]
fn the_help() {
    let mut app = done(120, 40);
    app.act(Action::Help);
    insta::assert_snapshot!("help_120x40", both(&mut app));
}

#[test]
fn a_selected_operation_and_a_selected_gap() {
    let mut app = done(120, 24);
    for action in [
        Action::Variant(-1),
        Action::Down,
        Action::Operation(1),
        Action::Operation(1),
    ] {
        app.act(action);
        app.prepare();
    }
    insta::assert_snapshot!("operation_120x24", both(&mut app));
    app.act(Action::Gap(-1));
    insta::assert_snapshot!("gap_120x24", both(&mut app));
}

/// A view of an app at the two sizes that matter most.
fn view_at_two_sizes(title: &str, name: &str, app: &mut App) {
    let view = VIEWS.iter().position(|entry| entry.title == title);
    for (width, height) in [(80, 24), (120, 40)] {
        app.state.size = Size::new(width, height);
        app.act(Action::Show(view.expect("a view")));
        app.act(Action::Down);
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), both(app));
    }
}

#[test]
fn every_view_without_content_says_so() {
    let mut app = live(0);
    let mut screens = String::new();
    for (view, entry) in VIEWS.iter().enumerate() {
        app.act(Action::Show(view));
        let screen = text(&render(&mut app, &Theme::default()));
        // Below the header, the verdict and the tabs.
        let middle = screen
            .lines()
            .skip(3)
            .take_while(|line| !line.starts_with("───"));
        let said: Vec<&str> = middle
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let _ = writeln!(screens, "{}: {}", entry.title, said.join(" / "));
    }
    insta::assert_snapshot!("views_without_content", screens);
}

#[test]
fn the_operations() {
    view_at_two_sizes("operations", "view_operations", &mut done(80, 24));
}

#[test]
fn findings_with_their_places() {
    let mut app = App::of_trace(fixture::pageable(), None, gpus());
    view_at_two_sizes("findings", "view_findings", &mut app);
}

#[test]
fn variants_beside_the_run_before() {
    let mut app = App::new(Vec::new());
    for batches in [fixture::slower(), fixture::batches()] {
        app.start(fixture::source(), None, gpus());
        for batch in batches {
            app.take(Message::Batch(batch));
        }
        app.take(Message::Finished(Outcome::Complete));
        app.prepare();
    }
    view_at_two_sizes("compare", "view_compare", &mut app);
}

#[test]
fn a_chart_over_a_sweep_under_its_roof() {
    let (plan, trace) = fixture::roofline();
    let peaks = Peaks {
        memory: Some(4_800.0),
        flops: Some(67e12),
        ..Peaks::default()
    };
    let mut app = App::of_trace(trace, Some(plan), known(peaks));
    view_at_two_sizes("sweep", "view_sweep", &mut app);
    // The next figure: the makespan.
    app.act(Action::Sort);
    insta::assert_snapshot!("view_sweep_makespan_120x40", both(&mut app));
    // Below the rows of the timeline it is, too, where there is room.
    app.act(Action::ShowNth(0));
    let seen = |app: &mut App| {
        text(&render(app, &Theme::default())).contains("kernel flops.fma by FLOP a byte")
    };
    app.state.size = Size::new(120, 40);
    app.prepare();
    assert!(seen(&mut app));
    app.state.size = Size::new(120, 16);
    app.prepare();
    assert!(!seen(&mut app));
}

#[test]
fn what_a_program_printed_and_what_was_noticed() {
    let mut app = live(1);
    app.tick(Duration::from_millis(3_600));
    let log = &mut app.state.messages.log;
    log.clock = Some(|| chrono::NaiveTime::from_hms_opt(14, 7, 31).expect("a time"));
    for (is_error, line) in [
        (false, "step 1: loss 2.31"),
        (
            true,
            "a warning on standard error, which is long enough to be cut where the screen is narrow",
        ),
        (
            false,
            "step 2: loss 1.98\twith a tab and a \u{1b}[31mcolour",
        ),
    ] {
        app.take(Message::Output {
            is_error,
            line: line.to_owned(),
        });
    }
    for (is_warning, text) in [
        (false, "reading pipeline.json"),
        (true, "3 records name a device that is not known"),
        (false, "done"),
    ] {
        app.take(Message::Notice {
            is_warning,
            text: text.to_owned(),
        });
    }
    view_at_two_sizes("log", "view_log", &mut app);
}

#[test]
fn the_picker() {
    let mut app = App::new(vec![
        Choice {
            name: "pipeline".to_owned(),
            about: "Eight batches: one stream against eight.".to_owned(),
            ..Default::default()
        },
        Choice {
            name: "tiny_copies".to_owned(),
            about: "4096 copies of 4 bytes.".to_owned(),
            ..Default::default()
        },
    ]);
    app.state.size = Size::new(80, 24);
    app.act(Action::Down);
    insta::assert_snapshot!("picker_80x24", both(&mut app));
}

#[test]
fn the_picker_of_a_machine_with_gpus() {
    let choice = |name: &str, about: &str| Choice {
        name: name.to_owned(),
        about: about.to_owned(),
        ..Default::default()
    };
    let mut app = App::new(vec![
        choice("pipeline", "Eight batches: one stream against eight."),
        choice("tiny_copies", "4096 copies of 4 bytes."),
    ]);
    app.see(machine());
    for (width, height) in [(80, 24), (120, 40)] {
        app.state.size = Size::new(width, height);
        insta::assert_snapshot!(format!("machine_{width}x{height}"), both(&mut app));
    }
    app.act(Action::Down);
    app.act(Action::Choose);
    app.state.size = Size::new(80, 24);
    insta::assert_snapshot!("attach_80x24", both(&mut app));
}

#[test]
fn ascii_without_colours_is_ascii_without_colours() {
    let mut app = done(100, 30);
    app.act(Action::Down);
    app.act(Action::Gap(1));
    app.prepare();
    let theme = Theme {
        level: ColorLevel::None,
        is_ascii: true,
        ..Theme::default()
    };
    for overlay in [Overlay::None, Overlay::Help { at: 0 }, Overlay::Troubles] {
        app.overlay = overlay;
        let buf = render(&mut app, &theme);
        assert!(text(&buf).is_ascii(), "{}", text(&buf));
        assert!(
            buf.content()
                .iter()
                .all(|c| (c.fg, c.bg) == Default::default())
        );
    }
    app.overlay = Overlay::None;
    insta::assert_snapshot!("ascii_100x30", text(&render(&mut app, &theme)));
}

#[test]
fn a_simulation_says_so_at_every_width_and_in_every_view() {
    let mut app = done(80, 24);
    for width in 24..200 {
        app.state.size = Size::new(width, 24);
        for (view, entry) in VIEWS.iter().enumerate() {
            app.act(Action::Show(view));
            let screen = text(&render(&mut app, &Theme::default()));
            let title = entry.title;
            assert!(screen.contains("SIMULATED"), "{width} {title}:\n{screen}");
        }
    }
}

#[test]
fn a_killed_program_leaves_an_incomplete_timeline() {
    let mut app = live(2);
    app.take(Message::Batch(Batch {
        defs: vec![Def::Process(ProcessInfo {
            ended_well: Some(false),
            ..ProcessInfo::default()
        })],
        ..Batch::default()
    }));
    app.prepare();
    let screen = text(&render(&mut app, &Theme::default()));
    assert!(screen.contains("INCOMPLETE"), "{screen}");
}

#[test]
fn no_size_and_no_view_panics() {
    for (width, height) in [
        (0, 0),
        (1, 1),
        (20, 5),
        (24, 5),
        (24, 8),
        (3, 60),
        (400, 2),
        (40, 9),
        (59, 12),
        (1000, 5),
    ] {
        let mut app = done(width, height);
        for action in [
            Action::Help,
            Action::Help,
            Action::Down,
            Action::Gap(1),
            Action::ZoomToSelection,
            Action::Click { x: 5, y: 4 },
            Action::Drag {
                from: (30, 6),
                x: 27,
                columns: -3,
            },
            Action::Wheel {
                x: 30,
                y: 6,
                is_in: true,
            },
        ] {
            app.act(action);
            app.prepare();
            let _ = render(&mut app, &Theme::default());
        }
        app.fail(&wrong_input(
            "error: one\n  --> a\nsome words that are long enough to be wrapped",
        ));
        for view in 0..VIEWS.len() {
            app.act(Action::Show(view));
            let _ = render(&mut app, &Theme::default());
        }
    }
}

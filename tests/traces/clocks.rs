//! A job whose ranks' clocks are off is one timeline: of every lane, figure and export.

use crate::common::job::{Clock, Job};
use activity::feed::{Message, Outcome};
use activity::{Batch, Span};
use cuptop::export::{self, TimelineFormat};
use cuptop::report::KnownGpus;
use cuptop::report::Report;
use cuptop::tui::app::App;
use cuptop::tui::{ColorLevel, Theme, render};
use ratatui::layout::Size;
use std::time::Duration;
use trace::{LaneKind, Measure, SourceInfo, Trace};

const HOUR: i64 = 3_600_000_000_000;
/// What a job's collectives end apart at most (its jitter), and what the clocks may be off beside.
const APART: i64 = 15_000 + 8_000;

/// Three ranks; only the clock of the first is right.
fn job(clock: fn(usize) -> Clock) -> Job {
    Job {
        ranks: 3,
        steps: 60,
        idle: |rank, step| ((rank * 31 + step * step * 7_919) % 977) as i64 * 500,
        has_host: true,
        host: |rank| format!("node{}", rank / 2),
        clock,
        ..Job::default()
    }
}

const OFF: [fn(usize) -> Clock; 3] = [
    |rank| Clock {
        offset: rank as i64 * 1_700_000,
        drift: rank as f64 * 20e-6,
    },
    |rank| Clock {
        offset: rank as i64 * -2 * HOUR,
        drift: 0.0,
    },
    |rank| Clock {
        offset: rank as i64 * HOUR,
        drift: rank as f64 * -35e-6,
    },
];

/// The spans on a stream of each rank, in order of time.
fn stream(trace: &Trace, number: u32) -> Vec<Vec<Span>> {
    let mut found = vec![Vec::new(); trace.processes().len()];
    for lane in trace.lanes() {
        if matches!(lane.key().kind, LaneKind::Stream { stream, .. } if stream == number) {
            found[lane.key().process] = (0..lane.len()).map(|row| lane.span(row)).collect();
        }
    }
    found
}

/// How far the ends of a collective lie apart at most, of all of them.
fn apart(trace: &Trace) -> i64 {
    let ranks = stream(trace, 20);
    assert!(
        ranks
            .iter()
            .all(|it| it.len() == ranks[0].len() && it.len() == 180)
    );
    let spread = |i: usize| {
        let ends = || ranks.iter().map(|it| it[i].end);
        ends().max().expect("ranks") - ends().min().expect("ranks")
    };
    (0..180).map(spread).max().expect("collectives")
}

#[test]
fn lanes_and_totals_are_those_of_clocks_that_were_right() {
    let (even, truth) = job(|_| Clock::default()).make();
    for clock in OFF {
        let (mut trace, _) = job(clock).make();
        assert!(apart(&trace) > 1_000_000);
        jobs::align_clocks(&mut trace);
        assert!(apart(&trace) < APART, "{}", apart(&trace));
        let extent = trace.extent().expect("records");
        assert!((extent.len() - even.extent().expect("records").len()).abs() < APART);
        assert!(extent.len() < truth.end + APART);
        for (rank, device) in trace.devices().iter().enumerate() {
            for measure in [Measure::Busy, Measure::Compute] {
                let (is, was) = (
                    device.usage.total(measure),
                    even.devices()[rank].usage.total(measure),
                );
                // Only what a clock lies off is mended, and 100 ppm of it could be guessed wrong.
                let most = if rank == 0 { 0 } else { was / 10_000 };
                assert!((is - was).abs() <= most, "rank {rank}: {is} of {was}");
            }
        }
        // Whatever belongs to a process has gone along: a call still begins 4.5 us before its kernel.
        for (id, lane) in trace.lanes().iter().enumerate() {
            if !matches!(lane.key().kind, LaneKind::Stream { .. }) {
                continue;
            }
            for row in 0..lane.len() {
                let at = trace.activity(id, row);
                let (calls, call) = trace
                    .call(lane.key().process, at.correlation)
                    .expect("its call");
                let before = at.span.start - trace.lanes()[calls].span(call).start;
                let was = even.activity(id, row).span.start - even.lanes()[calls].span(call).start;
                // 100 ppm of a step, in which a launch waits for the ones before.
                assert!(
                    (before - was).abs() <= 2 + was / 10_000,
                    "{before} of {was}"
                );
            }
        }
    }
}

#[test]
fn a_report_says_the_same_of_a_timeline_on_one_clock_and_of_times_as_recorded() {
    for clock in OFF {
        let (raw, _) = job(clock).make();
        let (mut set, _) = job(clock).make();
        jobs::align_clocks(&mut set);
        let [raw, set] = [raw, set].map(|trace| Report::new(&trace, None, KnownGpus::default()));
        let told = |report: &Report| -> Vec<(String, i64)> {
            let found = report.findings.iter();
            let found = found.map(|it| (it.rule.name().to_owned(), it.bound_ns));
            let mut found: Vec<_> = found.collect();
            // Two that bring about the same change places.
            found.sort();
            found
        };
        let (of_raw, of_set) = (told(&raw), told(&set));
        assert_eq!(of_raw.len(), of_set.len());
        for (raw, set) in of_raw.iter().zip(&of_set) {
            assert_eq!(raw.0, set.0);
            // Lengths are on another clock by 70 ppm at most.
            assert!(
                (raw.1 - set.1).abs() <= raw.1 / 5_000 + 20_000,
                "{raw:?} {set:?}"
            );
        }
        let json = |report: &Report| -> serde_json::Value {
            serde_json::from_str(&report.json().expect("JSON")).expect("JSON")
        };
        let (raw, set) = (json(&raw), json(&set));
        for rank in 0..3 {
            let of = |report: &serde_json::Value, field: &str| {
                report["ranks"][rank][field].as_f64().expect("a number")
            };
            // What is to be added to what was recorded, whichever of both is looked at.
            let made = clock(rank);
            let offset = |report| of(report, "offset_ns") + made.offset as f64;
            assert!((of(&raw, "offset_ns") - of(&set, "offset_ns")).abs() < 2_000.0);
            // In the middle of 240 ms a drift has made up to 8.4 us of offset.
            assert!(offset(&set).abs() < 20_000.0, "{}", offset(&set));
            assert!((of(&set, "drift_ppm") + made.drift * 1e6).abs() < 15.0);
            assert_eq!(of(&raw, "collectives"), of(&set, "collectives"));
        }
    }
}

fn exported(trace: &Trace, format: TimelineFormat) -> Vec<u8> {
    let mut out = Vec::new();
    export::write_data(format, trace, &KnownGpus::default(), &mut out).expect("memory");
    out
}

/// By process: when operations start, in their order, and when they were recorded to.
fn csv(trace: &Trace) -> Vec<Vec<[i64; 2]>> {
    let text = String::from_utf8(exported(trace, TimelineFormat::Csv)).expect("text");
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().expect("columns").split(',').collect();
    let place = |name| columns.iter().position(|it| *it == name).expect(name);
    let places = ["process", "start_ns", "recorded_start_ns"].map(place);
    let mut found = vec![Vec::new(); 3];
    for line in lines {
        // The one name with a comma is quoted.
        let plain = line.replace("4096ul>)\"", "");
        let cells: Vec<&str> = plain.split(',').collect();
        let [process, start, recorded] =
            places.map(|at| cells[at].parse::<i64>().expect("a number"));
        found[process as usize].push([start, recorded]);
    }
    found
}

#[test]
fn exports_are_on_one_clock_and_have_what_was_recorded() {
    let (even, _) = job(|_| Clock::default()).make();
    let even = csv(&even);
    for clock in OFF {
        let (raw, _) = job(clock).make();
        let recorded = csv(&raw);
        let (mut set, _) = job(clock).make();
        jobs::align_clocks(&mut set);
        for (rank, rows) in csv(&set).iter().enumerate() {
            assert_eq!(rows.len(), 60 * 11);
            for (i, [start, own]) in rows.iter().enumerate() {
                assert!((start - even[rank][i][0]).abs() < APART);
                // The nanosecond that rounding a drift takes.
                assert!((own - recorded[rank][i][0]).abs() <= 1);
                assert_eq!(recorded[rank][i][0], recorded[rank][i][1]);
            }
        }
        let times = |trace: &Trace| {
            let json = exported(trace, TimelineFormat::Chrome);
            let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
            json["rankClocks"]["times"].clone()
        };
        assert_eq!(
            (times(&set), times(&raw)),
            ("aligned".into(), "recorded".into())
        );
    }
}

fn screen(app: &mut App) -> String {
    let theme = Theme {
        level: ColorLevel::None,
        ..Theme::default()
    };
    let buffer = render(app, &theme);
    let cells = buffer.content().chunks(usize::from(buffer.area().width));
    let lines = cells.map(|line| line.iter().map(|it| it.symbol()).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

/// The part of a batch with the first steps, and the rest.
fn cut(batch: Batch, steps: usize) -> [Batch; 2] {
    let mut first = batch;
    let rest = first.items.split_off(first.items.len() * steps / 60);
    let later = Batch {
        process: first.process,
        items: rest,
        ..Batch::default()
    };
    [first, later]
}

#[test]
fn a_rank_that_joins_a_live_job_comes_onto_its_clock() {
    let mut app = App::new(Vec::new());
    app.start(SourceInfo::default(), None, Default::default());
    app.state.size = Size::new(200, 40);
    let (batches, _) = job(OFF[2]).batches();
    let [zero, one, two] = <[Batch; 3]>::try_from(batches).expect("three ranks");
    let ([zero, zeros_rest], [one, ones_rest]) = (cut(zero, 20), cut(one, 20));
    app.take(Message::Batch(zero));
    app.tick(Duration::from_secs(1));
    assert!(!screen(&mut app).contains("clocks"));
    app.take(Message::Batch(one));
    app.tick(Duration::from_secs(4));
    assert!(screen(&mut app).contains("clocks aligned to ± "));
    // An hour lay between them.
    let length = |app: &App| app.state.model.run.trace.extent().expect("records").len();
    assert!(length(&app) < 1_000_000_000);
    // What comes is moved as it comes, and a third one when it is known how.
    app.take(Message::Batch(zeros_rest));
    app.take(Message::Batch(ones_rest));
    app.take(Message::Batch(two));
    assert!(length(&app) > HOUR);
    app.tick(Duration::from_secs(8));
    let drawn = screen(&mut app);
    assert!(drawn.contains("over 180 collectives"), "{drawn}");
    assert!(apart(&app.state.model.run.trace) < APART);
    // Nothing that came so far is moved again for no reason.
    let (number, revision) = (
        app.state.model.run.number,
        app.state.model.run.trace.revision(),
    );
    app.tick(Duration::from_secs(20));
    let _ = screen(&mut app);
    assert_eq!(
        (
            app.state.model.run.number,
            app.state.model.run.trace.revision()
        ),
        (number, revision)
    );
    app.take(Message::Finished(Outcome::Complete));
    assert!(screen(&mut app).contains("clocks aligned to ± "));
    assert!(apart(&app.state.model.run.trace) < APART);
}

/// While a job goes on its lines become better and better known: what is told of it must not be thrown away at every look.
#[test]
fn clocks_are_set_ever_more_seldom() {
    let mut app = App::new(Vec::new());
    app.start(SourceInfo::default(), None, Default::default());
    app.state.size = Size::new(120, 40);
    let (mut batches, _) = Job {
        ranks: 16,
        ..job(OFF[2])
    }
    .batches();
    let mut numbers = Vec::new();
    for look in 0..30 {
        for batch in &mut batches {
            let count = batch.items.len() / (30 - look);
            let rest = batch.items.split_off(count);
            let now = std::mem::replace(&mut batch.items, rest);
            app.take(Message::Batch(Batch {
                process: batch.process,
                defs: std::mem::take(&mut batch.defs),
                items: now,
                ..Batch::default()
            }));
        }
        app.tick(Duration::from_secs(3 * (look as u64 + 1)));
        let _ = screen(&mut app);
        numbers.push(app.state.model.run.number);
    }
    // Seldom: each time that it has lasted half as long again, which from 3 to 90 s is 9 times at most.
    let sets = numbers.windows(2).filter(|two| two[0] != two[1]).count();
    assert!((1..=9).contains(&sets), "{numbers:?}");
    // The median of a rank's ends is known to a few us; those of two ranks may lie apart by their jitter and that of both.
    assert!(apart(&app.state.model.run.trace) < 3 * 15_000);
}

#[test]
fn a_complete_timeline_is_set_before_anything_else_is_told() {
    let mut app = App::new(Vec::new());
    app.start(SourceInfo::default(), None, Default::default());
    app.state.size = Size::new(200, 40);
    for batch in job(OFF[1]).batches().0 {
        app.take(Message::Batch(batch));
    }
    app.take(Message::Finished(Outcome::Complete));
    let drawn = screen(&mut app);
    assert!(drawn.contains("clocks aligned to ± "), "{drawn}");
    let extent = app.state.model.run.trace.extent().expect("records");
    assert!(extent.len() < HOUR && apart(&app.state.model.run.trace) < APART);
    let window = app.state.focus.camera.viewport.window;
    assert!(extent.overlaps(window) && window.len() < HOUR);
}

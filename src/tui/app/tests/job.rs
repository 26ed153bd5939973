//! A job of several ranks: matched once, whoever asks.

use super::stepping::screen;
use super::*;
use crate::tui::state::RowKind;
use activity::feed::Outcome;
use activity::{Activity, Batch, Def, DeviceInfo, Kernel, LaunchShape, Place, ProcessInfo, What};
use trace::SourceInfo;
use trace::testing::count_made;

/// Steps of a millisecond in which two ranks share an all-reduce; rank 1 comes 300 us late.
fn batch(rank: u32, steps: std::ops::Range<i64>) -> Batch {
    let name = |id, text: &str| Def::Name {
        id,
        text: text.to_owned(),
    };
    let shape = |id| Def::Shape {
        id,
        shape: LaunchShape {
            name: id,
            ..LaunchShape::default()
        },
    };
    let device = DeviceInfo {
        uuid: Some([rank as u8 + 1; 16]),
        ..DeviceInfo::default()
    };
    let process = ProcessInfo {
        pid: 100 + rank,
        rank: Some(rank),
        ..ProcessInfo::default()
    };
    let operation = |shape, start: Ns, end: Ns| Activity {
        span: Span::new(start, end),
        correlation: 0,
        what: What::Kernel(Kernel {
            place: Place::default(),
            shape,
            graph: 0,
            node: 0,
        }),
    };
    let items = steps.flat_map(|step| {
        let begin = step * 1_000 * US + step * step % 7 * US;
        let late = i64::from(rank) * 300 * US;
        let came = begin + 400 * US + late;
        [
            operation(0, begin + late, came),
            operation(1, came, begin + 800 * US),
        ]
    });
    Batch {
        process: rank,
        defs: vec![
            Def::Process(process),
            Def::Device(device),
            name(0, "gemm"),
            name(1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
            shape(0),
            shape(1),
        ],
        items: items.collect(),
        ..Batch::default()
    }
}

fn take(app: &mut App, steps: std::ops::Range<i64>) {
    for rank in 0..2 {
        app.take(Message::Batch(batch(rank, steps.clone())));
    }
}

#[test]
fn a_job_is_matched_once_for_the_timeline_the_verdict_and_the_view_of_ranks() {
    let mut app = App::new(Vec::new());
    app.start(SourceInfo::default(), None, gpus());
    app.state.size = Size::new(120, 40);
    let before = count_made("ranks");
    let matched = || count_made("ranks") - before;
    take(&mut app, 0..40);
    app.tick(Duration::from_millis(10));
    app.prepare();
    assert_eq!(matched(), 1, "the first look at it");
    // A refresh is due after two seconds, and is one for the view of ranks, too.
    take(&mut app, 40..50);
    app.prepare();
    assert_eq!(matched(), 1, "not due yet");
    press(&mut app, "5");
    assert_eq!(matched(), 2, "the view is asked for");
    take(&mut app, 50..60);
    app.prepare();
    assert_eq!(matched(), 2, "not due yet");
    app.tick(Duration::from_secs(3));
    app.prepare();
    app.prepare();
    assert_eq!(matched(), 3, "due");
    let graphs = count_made("graph");
    app.take(Message::Finished(Outcome::Complete));
    app.prepare();
    press(&mut app, "18123");
    assert_eq!(matched(), 4, "once when it has ended");
    assert_eq!(
        count_made("graph") - graphs,
        1,
        "and so is what depends on what"
    );
    let job = app
        .state
        .model
        .job
        .judged(&app.state.model.run)
        .expect("a job");
    // Each of 60 collectives waits 300 us for rank 1.
    assert_eq!(job.ranks[0].wait_ns, 60 * 300 * US);
    assert_eq!(job.ranks[1].last_arrivals, 60);
    let verdict = app
        .state
        .model
        .answers
        .get(&app.state.model.run, app.state.focus.camera.scope);
    assert!(!verdict.expect("an answer").verdicts.is_empty());
}

#[test]
fn a_late_rank_opens_where_its_gpu_was_idle() {
    for keys in ["5", "3"] {
        let mut app = App::new(Vec::new());
        app.start(SourceInfo::default(), None, gpus());
        app.state.size = Size::new(120, 40);
        take(&mut app, 0..40);
        app.take(Message::Finished(Outcome::Complete));
        app.prepare();
        press(&mut app, keys);
        let mut lines = screen(&mut app)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        // The cursor stands on the late rank, else it goes to the finding.
        while !lines
            .iter()
            .any(|it| it.contains('▸') && it.contains("rank 1"))
        {
            press(&mut app, "j");
            let now: Vec<_> = screen(&mut app).lines().map(str::to_owned).collect();
            assert_ne!(now, lines, "{}", now.join("\n"));
            lines = now;
        }
        press(&mut app, "^");
        app.prepare();
        // By hand: 200 us after each collective, and the 300 us that it is late.
        let Item::Gap(gap) = app.state.focus.selection.item else {
            panic!("{keys}: {}", screen(&mut app));
        };
        assert!((500 * US..=507 * US).contains(&gap.len()), "{gap:?}");
        let row = app.state.focus.selection.row.and_then(RowKind::device);
        assert_eq!(row, Some(1));
    }
}

//! A job of many ranks, made by rule: what taking it in, aligning its clocks and telling who is late take, whether that is
//! found which was put in, and the frame of its view. `cargo bench --bench ranks`, with sizes behind `--`: `RANKSxSTEPS`.
//!
//! Without sizes: 64 ranks of 10^5 operations, and 512 of 10^4. One of them is late by 3 ms on every third step, one's own
//! kernels take 1.3 times as long, and clocks are up to seconds off and drift by up to 20 ppm.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "it prints what it measured"
)]

#[path = "../tests/common/job.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod job;
#[allow(dead_code, reason = "other benches use more of it")]
mod quick;

use std::time::Instant;

use activity::feed::{Message, Outcome};
use causes::Causes;
use causes::graph::Graph;
use cuptop::report::KnownGpus;
use cuptop::report::{Report, text};
use cuptop::tui::action::Action;
use cuptop::tui::app::App;
use cuptop::tui::{Theme, render};
use figures::steps;
use job::{Clock, Job};
use jobs::{MatchedCollectives, Pattern};
use ratatui::layout::Size;
use trace::{SourceInfo, Trace};

/// Operations of a rank in a step: twenty kernels, five collectives.
const OPERATIONS: usize = 25;
const LATE: usize = 5;
const SLOW: usize = 9;

fn clock(rank: usize) -> Clock {
    Clock {
        offset: (rank as i64 * 37_919_173) % 3_000_000_000,
        drift: ((rank * 7) % 41) as f64 * 1e-6 - 20e-6,
    }
}

fn idle(rank: usize, step: usize) -> i64 {
    let uneven = ((rank * 31 + step * step * 7_919) % 977) as i64 * 500;
    match (rank, step % 3) {
        (LATE, 1) => 3_000_000,
        _ => uneven,
    }
}

fn shaped(ranks: usize, steps: usize) -> Job {
    Job {
        ranks,
        steps,
        kernels: 20,
        collectives: 5,
        work: 100_000,
        idle,
        slow: |rank| if rank == SLOW { 1.3 } else { 1.0 },
        clock,
        host: |rank| format!("node{}", rank / 8),
        ..Job::default()
    }
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let made = work();
    println!("  {what:44} {:8.3} s", began.elapsed().as_secs_f64());
    made
}

/// The most memory that this process ever had, MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn measure(ranks: usize, steps: usize) {
    let job = shaped(ranks, steps);
    println!("{ranks} ranks, {} operations each", steps * OPERATIONS);
    let (batches, truth) = job.batches();
    let mut trace = Trace::new(SourceInfo::default());
    timed("taken in", || {
        for batch in batches {
            trace.apply(batch);
        }
    });
    let graph = timed("graph", || Graph::new(&trace));
    let causes = timed("causes, made ready", || Causes::new(&trace, &graph));
    let steps = timed("steps", || steps::find(&trace, None));
    let found = timed("ranks: matched, aligned, who is late", || {
        let matched = MatchedCollectives::of(&trace).expect("a job");
        matched.judge(&trace, Some(&causes), &steps)
    });
    // How far two aligned clocks lie apart at most, at the begin, in the middle and at the end.
    let apart = [0, truth.end / 2, truth.end].map(|time| {
        let all = (0..ranks).map(|rank| found.aligned(rank, clock(rank).read(time)));
        let (least, most) = all.fold((i64::MAX, i64::MIN), |(l, m), t| (l.min(t), m.max(t)));
        (most - least) / 1_000
    });
    println!("  aligned clocks differ by at most               {apart:?} us");
    for late in &found.late {
        let pattern = match late.pattern {
            Pattern::Steady => "steadily".to_owned(),
            Pattern::ByTurns { late, of } => format!("on {late} of {of} steps"),
            Pattern::Unknown => "unknown".to_owned(),
        };
        let saving = late.saving.map(|s| (s.now_ns - s.without_ns) / 1_000);
        println!(
            "  {} is late {pattern}; a step saves {saving:?} us",
            found.ranks[late.rank].name
        );
    }
    drop((causes, steps, found));
    drop(graph);
    let report = timed("report", || Report::new(&trace, None, Default::default()));
    timed("its text", || {
        text::render(&report, &text::Options::default())
    });
    drop(trace);
    let mut app = App::new(Vec::new());
    app.start(SourceInfo::default(), None, KnownGpus::default());
    for batch in job.batches().0 {
        app.take(Message::Batch(batch));
    }
    app.take(Message::Finished(Outcome::Complete));
    app.state.size = Size::new(80, 24);
    app.prepare();
    app.act(Action::Show(5));
    timed("first frame of the view, with its answers", || {
        app.prepare();
        render(&mut app, &Theme::default())
    });
    timed("next frame", || {
        app.act(Action::Down);
        app.prepare();
        render(&mut app, &Theme::default())
    });
    println!(
        "  most memory so far                             {} MiB",
        peak()
    );
}

fn main() {
    let sizes: Vec<(usize, usize)> = std::env::args()
        .filter_map(|arg| {
            let (ranks, steps) = arg.split_once('x')?;
            Some((ranks.parse().ok()?, steps.parse().ok()?))
        })
        .collect();
    let sizes = if quick::is_quick() {
        vec![(12, 40)]
    } else if sizes.is_empty() {
        vec![(64, 4_000), (512, 400)]
    } else {
        sizes
    };
    for (ranks, steps) in sizes {
        measure(ranks, steps);
    }
}

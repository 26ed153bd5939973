//! What is asked when, and of which part of a timeline that grows.

use super::judge::arrived;
use super::*;
use crate::report::KnownGpus;
use crate::tui::state::Status;
use activity::feed::Stop;
use activity::{Activity, Batch, Def, HostCall, Kernel, LaunchShape, Ns, Place, Span, What};
use advice::Facts;
use trace::Trace;

fn kernel(start: Ns, end: Ns, correlation: u32) -> Activity {
    Activity {
        span: Span::new(start, end),
        correlation,
        what: What::Kernel(Kernel {
            place: Place::default(),
            shape: 0,
            graph: 0,
            node: 0,
        }),
    }
}

fn call(start: Ns, end: Ns, correlation: u32) -> Activity {
    Activity {
        span: Span::new(start, end),
        correlation,
        what: What::Call(HostCall {
            thread: 1,
            name: 1,
            code: 0,
        }),
    }
}

fn trace(items: Vec<Activity>) -> Trace {
    let mut trace = Trace::default();
    let name = |id, text: &str| Def::Name {
        id,
        text: text.to_owned(),
    };
    trace.apply(Batch {
        defs: vec![
            name(0, "kernel"),
            name(1, "cudaLaunchKernel"),
            Def::Shape {
                id: 0,
                shape: LaunchShape::default(),
            },
        ],
        items,
        ..Batch::default()
    });
    trace
}

fn running(trace: Trace) -> Run {
    Run::new(trace, None, KnownGpus::default(), Status::Running)
}

#[test]
fn while_it_runs_an_answer_a_second_and_the_last_one_stays() {
    let mut run = running(trace(vec![call(0, 5, 1), kernel(10, 1_000, 1)]));
    let (mut answers, analyst) = (Answers::default(), Analyst::default());
    let on_screen = OnScreen::default();
    let mut at = |run: &mut Run, ms: u64, now: u64| {
        run.elapsed = Duration::from_millis(ms);
        run.trace.apply(Batch {
            items: vec![kernel(now as Ns * 2_000, now as Ns * 2_000 + 1_000, 9)],
            ..Batch::default()
        });
        answers.prepare(&analyst, run, on_screen, false);
        let answer = answers.get(run, Scope::Whole).expect("an answer");
        answer.as_of.map(|d| d.as_millis())
    };
    assert_eq!(at(&mut run, 500, 1), Some(500));
    assert_eq!(at(&mut run, 1_400, 2), Some(500));
    assert_eq!(at(&mut run, 1_501, 3), Some(1_501));
    assert_eq!(at(&mut run, 2_000, 4), Some(1_501));
    // At the end at once, and of everything.
    run.status = Status::Ended(activity::feed::Outcome::Complete);
    assert_eq!(at(&mut run, 2_001, 5), None);
}

#[test]
fn what_was_told_while_a_recording_was_read_is_not_told_of_all_of_it() {
    let told = |kind| {
        let mut half = trace(vec![call(0, 5, 1), kernel(10, 1_000, 1)]);
        half.source.kind = kind;
        let mut run = running(half);
        let (mut answers, analyst) = (Answers::default(), Analyst::default());
        answers.prepare(&analyst, &run, OnScreen::default(), false);
        assert!(answers.get(&run, Scope::Whole).is_some());
        // The rest has come, and what is to be said of it is still open.
        run.status = Status::Ended(activity::feed::Outcome::Complete);
        answers.get(&run, Scope::Whole).is_some()
    };
    assert!(!told(SourceKind::Recording));
    // A program that was watched keeps the answer of its last seconds meanwhile.
    assert!(told(SourceKind::Traced));
}

#[test]
fn only_what_has_come_of_both_sides_is_looked_at() {
    // Calls up to 300, operations up to 5000: of what was launched later the calls are missing.
    let trace = trace(vec![
        call(100, 110, 1),
        call(300, 310, 2),
        kernel(120, 200, 1),
        kernel(320, 400, 2),
        kernel(5_000, 5_100, 3),
    ]);
    assert_eq!(arrived(&trace), Some(Span::new(100, 301)));
    assert_eq!(arrived(&Trace::default()), None);
}

#[test]
fn a_timeline_that_grows_is_judged_by_what_was_done_last() {
    // 60,000 kernels, one every 10 us: 600 ms, of which the last 50,000 take 500 ms.
    let mut items = Vec::new();
    for i in 0..60_000 {
        let start = i * 10_000;
        let length = if i < 30_000 { 9_900 } else { 500 };
        items.push(call(start - 4_000, start - 3_000, i as u32 + 1));
        items.push(kernel(start, start + length, i as u32 + 1));
    }
    let trace = trace(items);
    let stop = Stop::default();
    let looked = JudgedRun {
        pass: None,
        plan: None,
        gpus: KnownGpus::default(),
    };
    let answer = judge_live(&trace, &looked, &stop).expect("an answer");
    let first = answer.verdicts.first().expect("a verdict");
    let whole = judge_whole(Facts::new(&trace), &looked, &stop);
    let whole = whole.expect("an answer");
    assert!(
        (250_000_000..=500_000_000).contains(&first.span_ns),
        "{first:?}"
    );
    assert!(whole.verdicts[0].span_ns > 590_000_000, "{whole:?}");
    stop.stop();
    assert!(judge_live(&trace, &looked, &stop).is_none());
}

/// Forty kernels, 10 us apart, and the launch of one left no record: from the one before it to the one behind it the GPU may have worked.
#[test]
fn idle_time_beside_a_launch_without_a_record_may_be_work() {
    let missing = |lost: Option<i64>| {
        let mut scene = trace::testing::Scene::new();
        for i in 0..40 {
            let at = i * 100_000;
            scene.call("cudaLaunchKernel", at, at + 5_000);
            if lost != Some(i) {
                scene.kernel("k", 7, at + 8_000, at + 98_000);
            }
        }
        let run = running(scene.trace());
        let looked = JudgedRun {
            pass: None,
            plan: None,
            gpus: run.gpus.clone(),
        };
        let answer = judge_whole(Facts::new(&run.trace), &looked, &Stop::default());
        answer.expect("judged").missing
    };
    assert_eq!(missing(Some(20)), 2_108_000 - 1_998_000);
    assert_eq!(missing(None), 0);
}

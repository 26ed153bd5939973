//! Questions to the timeline, with threads and without.

use std::time::Instant;

use super::*;
use crate::report::KnownGpus;
use crate::tui::state::Status;
use crate::tui::state::run::Run;
use activity::{Activity, Batch, HostCall, Span, What};

const PATIENCE: Duration = Duration::from_secs(20);

/// A run with more records than are looked at at once.
fn run() -> Run {
    let mut trace = Trace::default();
    add(&mut trace, AT_ONCE + 1);
    Run::new(trace, None, KnownGpus::default(), Status::Running)
}

fn add(trace: &mut Trace, count: usize) {
    let call = |i: usize| Activity {
        span: Span::at(i as i64),
        correlation: 0,
        what: What::Call(HostCall {
            thread: 1,
            name: 0,
            code: 0,
        }),
    };
    trace.apply(Batch {
        items: (0..count).map(call).collect(),
        ..Batch::default()
    });
}

type Asked = Question<u8, usize>;

fn ask(question: &mut Asked, analyst: &Analyst, run: &Run, about: u8) -> bool {
    question.ask(analyst, run, about, |trace, _| trace.lanes()[0].len())
}

#[test]
fn an_answer_comes_from_a_thread_and_wakes_the_screen() {
    let (wake, answers) = bounded(1);
    let analyst = Analyst::start(&wake).expect("threads");
    let mut run = run();
    let mut question = Asked::default();
    assert!(!ask(&mut question, &analyst, &run, 0));
    assert!(question.is_open());
    answers.recv_timeout(PATIENCE).expect("a wake");
    assert!(ask(&mut question, &analyst, &run, 0));
    assert_eq!(question.answer_to(&run, 0), Some(&(AT_ONCE + 1)));
    assert_eq!(question.answer_to(&run, 1), None);
    // More records: the last answer stays until the next one comes.
    add(&mut run.trace, 9);
    run.elapsed = PATIENCE;
    assert!(!ask(&mut question, &analyst, &run, 0));
    assert_eq!(question.answer_to(&run, 0), Some(&(AT_ONCE + 1)));
    assert!(question.is_open());
    answers.recv_timeout(PATIENCE).expect("a wake");
    assert!(ask(&mut question, &analyst, &run, 0));
    assert_eq!(question.answer_to(&run, 0), Some(&(AT_ONCE + 10)));
    assert!(!question.is_open());
}

#[test]
fn a_run_that_goes_on_is_asked_about_at_its_pace() {
    let second = Duration::from_secs(1);
    let pace = |_: &Run, last: u8, now: u8| match last == now {
        true => Duration::from_secs(1),
        false => Duration::ZERO,
    };
    let mut question = Asked::default();
    question.paced(pace);
    let (analyst, mut run) = (Analyst::default(), run());
    assert!(ask(&mut question, &analyst, &run, 0));
    add(&mut run.trace, 9);
    run.elapsed = second / 2;
    assert!(!ask(&mut question, &analyst, &run, 0), "not due yet");
    assert!(ask(&mut question, &analyst, &run, 1), "something else");
    add(&mut run.trace, 9);
    run.elapsed = second * 3 / 2;
    question.took = second;
    assert!(!ask(&mut question, &analyst, &run, 1), "it took a second");
    run.elapsed += second * REST as u32;
    assert!(ask(&mut question, &analyst, &run, 1));
    // Behind a key sooner.
    add(&mut run.trace, 9);
    question.took = second;
    run.elapsed += second * BRISK;
    assert!(!ask(&mut question, &analyst, &run, 1), "nobody waits");
    analyst.act(run.elapsed);
    assert!(ask(&mut question, &analyst, &run, 1));
    add(&mut run.trace, 9);
    run.status = Status::Ended(activity::feed::Outcome::Complete);
    assert!(ask(&mut question, &analyst, &run, 1), "it has ended");
}

/// Four questions take 200, 50, 2 and 0.1 ms: in an hour all of them together no more than their part of a core.
#[test]
fn all_questions_about_a_run_that_goes_on_share_one_part_of_a_core() {
    let (analyst, mut run) = (Analyst::default(), run());
    let pace = |_: &Run, _, _| Duration::from_millis(1);
    let mut all: Vec<(Asked, Duration, u32)> = [200_000, 50_000, 2_000, 100]
        .map(|took| (Asked::default(), Duration::from_micros(took), 0))
        .into();
    let hour = Duration::from_secs(3_600);
    while run.elapsed < hour {
        run.elapsed += Duration::from_millis(25);
        for (question, took, times) in &mut all {
            question.took = *took;
            *times += u32::from(question.paced(pace).is_due(&analyst, &run, 0));
        }
    }
    let spent: Duration = all.iter().map(|it| it.1 * it.2).sum();
    assert!(spent < hour.div_f64(REST) * 11 / 10, "{spent:?}");
    assert!(spent > hour.div_f64(REST) * 8 / 10, "{spent:?}");
    // What takes least is the freshest, and none goes without.
    let times: Vec<u32> = all.iter().map(|it| it.2).collect();
    assert!(times.is_sorted() && times[0] > 200, "{times:?}");
    // One that nobody asks any more leaves its part to the others.
    let before = all[0].2;
    for _ in 0..40 * 3_600 {
        run.elapsed += Duration::from_millis(25);
        let (question, took, times) = &mut all[0];
        question.took = *took;
        *times += u32::from(question.is_due(&analyst, &run, 0));
    }
    assert!(all[0].2 - before > before * 3 / 2, "{before} {}", all[0].2);
}

#[test]
fn what_is_asked_last_is_answered_and_nothing_else_waits() {
    let (wake, answers) = bounded(1);
    let analyst = Analyst::start(&wake).expect("threads");
    let run = run();
    // Holds the thread until all of the others wait.
    let (go, held) = bounded::<()>(0);
    let mut holder: Question<u8, ()> = Question::default();
    holder.ask(&analyst, &run, 0, move |_, _| {
        let _ = held.recv_timeout(PATIENCE);
    });
    let mut question = Asked::default();
    for about in 0..5 {
        ask(&mut question, &analyst, &run, about);
    }
    go.send_timeout((), PATIENCE).expect("it waits");
    let until = Instant::now() + PATIENCE;
    while question.answer_to(&run, 4).is_none() {
        assert!(Instant::now() < until, "no answer");
        let _ = answers.recv_timeout(Duration::from_millis(50));
        ask(&mut question, &analyst, &run, 4);
    }
    assert_eq!(question.last(&run), Some(&(AT_ONCE + 1)));
}

#[test]
fn leaving_stops_what_is_at_work() {
    let (wake, _answers) = bounded(1);
    let analyst = Analyst::start(&wake).expect("threads");
    let run = run();
    let mut question: Question<u8, bool> = Question::default();
    question.light().ask(&analyst, &run, 0, |_, stop| {
        let until = Instant::now() + PATIENCE;
        while !stop.is_stopped() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.is_stopped()
    });
    let began = Instant::now();
    drop(analyst);
    assert!(began.elapsed() < PATIENCE / 2);
}

#[test]
fn without_threads_and_for_little_the_answer_is_there_at_once() {
    let mut question = Asked::default();
    assert!(ask(&mut question, &Analyst::default(), &run(), 0));
    let (wake, _answers) = bounded(1);
    let analyst = Analyst::start(&wake).expect("threads");
    let mut trace = Trace::default();
    add(&mut trace, 3);
    let little = Run::new(trace, None, KnownGpus::default(), Status::Running);
    let mut question = Asked::default();
    assert!(ask(&mut question, &analyst, &little, 0));
    assert_eq!(question.answer_to(&little, 0), Some(&3));
    // Another run's answer is none of this one's.
    let other = Run {
        number: 1,
        ..Run::default()
    };
    assert_eq!(question.answer_to(&other, 0), None);
}

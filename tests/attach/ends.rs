//! However a program ends, and whatever processes it starts.

use std::process::Command;

use activity::feed::{Failure, FailureKind, Message, Outcome};
use live::attach::{self, AttachRequest, Output};

use crate::harness::{fakes, has_python, request, trace};

#[test]
fn what_was_flushed_survives_every_kind_of_end() {
    let made = fakes();
    for (how, code) in [
        ("_exit", None),
        ("abort", Some(128 + 6)),
        ("kill", Some(128 + 9)),
    ] {
        let seen = trace(made, &[how, "700"], &[]);
        seen.has_kernels(0, 700);
        assert_eq!(seen.ended_well(0), Some(false), "{how}");
        match code {
            None => assert_eq!(seen.outcome, Outcome::Complete),
            Some(code) => assert!(
                matches!(&seen.outcome, Outcome::Failed(Failure { kind: FailureKind::Program { code: it }, .. }) if *it == code),
                "{:?}",
                seen.outcome
            ),
        }
        assert!(
            seen.notices
                .iter()
                .any(|text| text.contains("without closing its recording")),
            "{how}: {:?}",
            seen.notices
        );
    }
}

#[test]
fn a_signal_to_us_is_passed_on_and_its_end_reported() {
    let made = fakes();
    let directory = tempfile::tempdir().expect("a directory");
    let (feed, _) = attach::run(AttachRequest {
        output: Output::Inherit,
        ..request(
            vec![made.join("program").into(), "sleep".into()],
            directory.path(),
        )
    })
    .expect("started");
    // The handler stands since before the program was started.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
        .expect("sent");
    let last = feed.receiver().iter().last().expect("a last word");
    assert!(
        matches!(&last, Message::Finished(Outcome::Failed(failure)) if failure.kind == FailureKind::Program { code: 128 + 15 }),
        "{last:?}"
    );
}

#[test]
fn a_forked_child_disturbs_nothing() {
    let made = fakes();
    let seen = trace(made, &["fork", "300"], &[]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    assert_eq!(seen.processes(), 1);
    seen.has_kernels(0, 600);
    assert_eq!(seen.ended_well(0), Some(true));
}

#[test]
fn processes_that_use_cuda_each_for_itself_are_two_recordings() {
    let made = fakes();
    let seen = trace(made, &["fork-first", "100"], &[]);
    assert_eq!(seen.processes(), 2);
    let mut counts = [seen.kernels(0).len(), seen.kernels(1).len()];
    counts.sort_unstable();
    assert_eq!(counts, [100, 200]);
}

#[test]
fn a_program_that_becomes_another_is_two_recordings() {
    let made = fakes();
    let seen = trace(made, &["exec", "50"], &[]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    assert_eq!(seen.processes(), 2);
    assert_eq!((seen.kernels(0).len(), seen.kernels(1).len()), (50, 50));
    let mut ends = [seen.ended_well(0), seen.ended_well(1)];
    ends.sort_unstable();
    assert_eq!(ends, [Some(false), Some(true)]);
}

#[test]
fn the_programs_own_failure_is_passed_on() {
    let made = fakes();
    let seen = trace(made, &["fail", "10"], &[]);
    assert!(
        matches!(&seen.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Program { code: 7 }),
        "{:?}",
        seen.outcome
    );
    assert_eq!(seen.kernels(0).len(), 10);
    assert_eq!(seen.ended_well(0), Some(true));
}

#[test]
fn its_lines_come_with_the_stream_they_were_printed_to() {
    let made = fakes();
    let mut seen = trace(made, &["lines"], &[]);
    seen.lines.sort();
    assert_eq!(
        seen.lines,
        [
            (false, "to stdout".to_owned()),
            (true, "to stderr".to_owned())
        ]
    );
}

#[test]
fn stopping_the_feed_ends_the_program() {
    let made = fakes();
    let directory = tempfile::tempdir().expect("a directory");
    let (feed, _) = attach::run(request(
        vec![made.join("program").into(), "sleep".into()],
        directory.path(),
    ))
    .expect("started");
    feed.stop.stop();
    let last = feed.receiver().iter().last().expect("a last word");
    assert!(
        matches!(last, Message::Finished(Outcome::Stopped)),
        "{last:?}"
    );
}

#[test]
fn a_command_that_does_not_exist_is_an_error_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = attach::run(request(
        vec!["/nonexistent/program".into()],
        directory.path(),
    ))
    .expect_err("nothing to start");
    assert!(
        error.to_string().contains("/nonexistent/program"),
        "{error}"
    );
}

/// Some of those that `docs/RELIABILITY.md` tells of. How long each takes is a matter of load.
#[test]
fn signals_at_random_moments_leave_nothing_behind() {
    if !has_python() {
        return;
    }
    let done = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/signals.py"))
        .args([env!("CARGO_BIN_EXE_cuptop"), "24", "3"])
        .arg(fakes())
        .env("PATIENCE", "60")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}");
}

//! Faults of a traced program and of those who read along.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use activity::What;
use activity::feed::{FailureKind, Message, Outcome};

use crate::harness::{fakes, trace, trace_with};

/// `cuptop trace --headless` of the fake program.
fn headless(made: &Path, save: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuptop"));
    command
        .args([
            "trace",
            "--headless",
            "--hardware",
            "off",
            "--python",
            "off",
            "--save",
        ])
        .arg(save)
        .arg("--")
        .arg(made.join("program"))
        .args(arguments)
        .env("LD_LIBRARY_PATH", made)
        .env("CUPTOP_CUPTI", made.join("libcupti.so.13"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Correlation ids of the kernels of a recording, sorted.
fn kernels(directory: &Path) -> Vec<u32> {
    let feed = recording::open(&[directory.to_path_buf()]).expect("opens");
    let mut found = Vec::new();
    for message in feed.receiver() {
        if let Message::Batch(batch) = message {
            let kernels = batch
                .items
                .iter()
                .filter(|item| matches!(item.what, What::Kernel(_)));
            found.extend(kernels.map(|item| item.correlation));
        }
    }
    found.sort_unstable();
    found
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn has_recording(directory: &Path) -> bool {
    directory.read_dir().is_ok_and(|mut files| {
        files.any(|file| file.is_ok_and(|it| it.path().extension().is_some_and(|e| e == "cuptop")))
    })
}

#[test]
fn a_reader_that_is_killed_costs_the_program_and_the_recording_nothing() {
    let made = fakes();
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().join("run");
    // A launch each 10 ms for 2 s.
    let mut reader = headless(made, &save, &["slowly", "200"])
        .spawn()
        .expect("started");
    wait_for("the recording begins", || has_recording(&save));
    reader.kill().expect("killed");
    reader.wait().expect("gone");
    // Opened again while it is still written; the end of the feed is the end of the program.
    assert_eq!(kernels(&save), (1..=200).collect::<Vec<u32>>());
}

#[test]
fn two_readers_of_one_recording_see_the_same_and_all() {
    let made = fakes();
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().join("run");
    let mut tracer = headless(made, &save, &["slowly", "100"])
        .spawn()
        .expect("started");
    wait_for("the recording begins", || has_recording(&save));
    let all: Vec<u32> = (1..=100).collect();
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| kernels(&save)));
        for reader in readers {
            assert_eq!(reader.join().expect("no panic"), all);
        }
    });
    assert!(tracer.wait().expect("ends").success());
}

#[test]
fn a_program_that_is_stopped_for_a_while_loses_nothing() {
    let made = fakes();
    let seen = trace_with(made, &[], &[], |request| {
        // It stops in the middle, and somebody lets it go on a second later.
        let script = "\"$@\" & p=$!; sleep 0.3; kill -STOP $p; sleep 1; kill -CONT $p; wait $p";
        let program = request.command.clone();
        request.command = ["sh", "-c", script, "sh"].iter().map(Into::into).collect();
        request.command.extend(program);
        request.command.extend(["slowly".into(), "100".into()]);
    });
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    seen.has_kernels(0, 100);
    assert_eq!(seen.health(0).losses(), 0);
    assert_eq!(seen.ended_well(0), Some(true));
}

#[test]
fn a_program_that_ends_at_once_after_its_first_call_is_whole() {
    let made = fakes();
    for count in [0, 1] {
        let seen = trace(made, &["return", &count.to_string()], &[]);
        assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
        seen.has_kernels(0, count);
        assert_eq!(seen.ended_well(0), Some(true));
    }
}

#[test]
fn libraries_that_are_missing_or_newer_than_the_driver_are_named_and_the_program_runs_on() {
    let made = fakes();
    for (variable, value, named) in [
        ("CUPTOP_CUPTI", "/nonexistent", "no usable libcupti"),
        (
            "FAKE_VERSION",
            "140000",
            "it is for CUDA 14, the driver offers CUDA 13",
        ),
    ] {
        let seen = trace(made, &["return", "10"], &[(variable, value)]);
        assert!(
            seen.notices.iter().any(|text| text.contains(named)),
            "{variable}={value}: {:?}",
            seen.notices
        );
        assert!(
            matches!(&seen.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Machine),
            "{:?}",
            seen.outcome
        );
    }
}

#[test]
fn an_older_libcupti_records() {
    // 12.9 on a driver for CUDA 13.
    let seen = trace(fakes(), &["return", "10"], &[("FAKE_VERSION", "28")]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    seen.has_kernels(0, 10);
}

/// How many folders lie in it.
fn folders(of: &Path) -> usize {
    of.read_dir().expect("a folder").count()
}

/// Nobody reads the report, so that it takes for ever.
#[test]
fn a_report_that_takes_long_ends_by_a_signal() {
    let (made, (_reader, mut pipe)) = (fakes(), std::io::pipe().expect("a pipe"));
    // As much as a pipe holds.
    pipe.write_all(&[0; 1 << 16]).expect("room");
    let mut cuptop = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(["trace", "--headless", "--json", "--hardware", "off", "--"])
        .arg(made.join("program"))
        .arg("return")
        .env("LD_LIBRARY_PATH", made)
        .env("CUPTOP_CUPTI", made.join("libcupti.so.13"))
        .stdout(pipe)
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut status = None;
    wait_for("it goes on", || {
        // It has begun, and the program has ended, before the first.
        std::thread::sleep(Duration::from_secs(2));
        let pid = rustix::process::Pid::from_child(&cuptop);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        status = cuptop.try_wait().expect("ours");
        status.is_some()
    });
    assert_eq!(status.and_then(|it| it.signal()), Some(15));
}

#[test]
fn every_ending_signal_leaves_no_memory_and_no_program_and_a_killed_one_is_swept() {
    let made = fakes();
    let memory = tempfile::tempdir().expect("a folder");
    let start = |how: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuptop"));
        command
            .args(["trace", "--headless", "--", "env"])
            .arg(format!("LD_LIBRARY_PATH={}", made.display()))
            .arg(format!(
                "CUPTOP_CUPTI={}",
                made.join("libcupti.so.13").display()
            ))
            .arg(made.join("program"))
            .args(how)
            .env("XDG_RUNTIME_DIR", memory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs")
    };
    // The program is past its first call.
    let wait = || {
        wait_for("nothing is recorded", || {
            let mut inside = memory.path().read_dir().expect("a folder").flatten();
            inside.any(|it| {
                let mut files = it.path().read_dir().into_iter().flatten().flatten();
                files.any(|file| file.path().extension().is_some_and(|it| it == "cuptop"))
            })
        });
    };
    let kill = |pid: u32, signal: i32| {
        let done = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(pid.to_string())
            .status();
        assert!(done.expect("a kill").success());
    };
    for signal in [15, 10, 14, 24, 6, 29] {
        let mut child = start(&["slowly", "30000"]);
        wait();
        kill(child.id(), signal);
        assert_eq!(
            child.wait().expect("ended").code(),
            Some(128 + signal),
            "{signal}"
        );
        assert_eq!(folders(memory.path()), 0, "{signal}");
    }
    let mut child = start(&["slowly", "100"]);
    wait();
    kill(child.id(), 9);
    child.wait().expect("ended");
    // The program runs on, and its recording stays until it has ended.
    assert_eq!(folders(memory.path()), 1);
    wait_for("it is not swept", || {
        start(&["return"]).wait().expect("ended");
        folders(memory.path()) == 0
    });
}

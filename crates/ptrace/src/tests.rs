//! Programs that nobody prepared, entered while they compute: their output must be what it is without.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::inject::{CallState, Loaded, load};
use crate::places::Request;
use crate::{Refused, check, steps};

fn made() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = std::env::var_os("CUPTOP_TEST_GUESTS").map(PathBuf::from);
        folder.unwrap_or_else(|| {
            let folder = tempfile::tempdir().expect("a folder").keep();
            let shared = ["-shared", "-fPIC"];
            compile(&folder, "guest", "guest", &["-pthread", "-ldl"]);
            compile(&folder, "guest", "static", &["-pthread", "-static", "-w"]);
            compile(&folder, "library", "library.so", &shared);
            compile(&folder, "constructor", "constructor.so", &shared);
            // So that other users can run it.
            let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&folder, rights).expect("its owner's");
            folder
        })
    })
}

fn compile(folder: &Path, source: &str, output: &str, arguments: &[&str]) -> bool {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-Wall", "-o"])
        .arg(folder.join(output));
    compiler.arg(sources.join(source).with_extension("c"));
    compiler
        .args(arguments)
        .status()
        .expect("a compiler")
        .success()
}

/// A program that runs; it is ended when this goes.
struct Guest {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Guest {
    fn start(arguments: &[&str]) -> Guest {
        Guest::of(Command::new(made().join("guest")).args(arguments))
    }

    fn of(command: &mut Command) -> Guest {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("started");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut guest = Guest { child, output };
        assert_eq!(guest.line(), "ready");
        guest
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The rest of what it prints, and that it ended as it should.
    #[track_caller]
    fn rest(mut self) -> String {
        self.child.stdin = None;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let status = self.child.wait().expect("its end");
        assert_eq!((status.code(), status.signal()), (Some(0), None), "{rest}");
        rest.trim_end().to_owned()
    }

    fn descriptors(&self) -> usize {
        let list = std::fs::read_dir(format!("/proc/{}/fd", self.pid()));
        list.expect("it runs").count()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program prints that nobody enters.
fn alone(arguments: &[&str]) -> String {
    Guest::start(arguments).rest()
}

const LIMIT: Duration = Duration::from_secs(3);

fn enter_within(pid: u32, limit: Duration) -> Result<Loaded, Refused> {
    let library = memory(
        "cuptop-guest",
        &std::fs::read(made().join("library.so")).expect("made"),
    );
    let passed = memory("passed", b"X");
    // The thread of the last one may be on its way out, and traces until it is gone.
    let is_ours = |by| Path::new(&format!("/proc/self/task/{by}")).exists();
    while matches!(check(pid), Err(Refused::Traced { by, .. }) if is_ours(by)) {
        std::thread::yield_now();
    }
    load(&Request {
        pid,
        library: library.as_fd(),
        mapping: "/memfd:cuptop-guest",
        symbol: "guest_entry",
        area: "guest_area",
        passed: passed.as_fd(),
        limit,
        given_up: &AtomicBool::new(false),
    })
}

fn memory(name: &str, content: &[u8]) -> File {
    let name = std::ffi::CString::new(name).expect("no zero");
    // SAFETY: the name ends with zero; what comes back is a new descriptor.
    let mut file = unsafe {
        let number = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        assert!(number >= 0);
        <File as std::os::fd::FromRawFd>::from_raw_fd(number)
    };
    file.write_all(content).expect("memory");
    file
}

/// Enters, and says what the function said.
#[track_caller]
fn enter(pid: u32) -> String {
    let loaded = enter_within(pid, LIMIT).unwrap_or_else(|refused| panic!("{refused}"));
    said(&loaded)
}

#[track_caller]
fn said(loaded: &Loaded) -> String {
    let state = loaded.call.wait(LIMIT);
    assert!(matches!(state, CallState::Done(1000..)), "{state:?}");
    let mut text = [0_u8; 100];
    let at = text.as_mut_ptr().cast();
    // SAFETY: writes at most so many bytes.
    let length = unsafe { libc::recv(loaded.socket.as_raw_fd(), at, text.len(), 0) };
    let length = usize::try_from(length).expect("a message");
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[test]
fn a_program_that_is_entered_computes_the_same_and_keeps_every_register() {
    let expected = alone(&["poll"]);
    let guest = Guest::start(&["poll"]);
    let before = guest.descriptors();
    let first = enter(guest.pid());
    assert_eq!(first, "call 1, passed X, library 1, sum 7");
    // The second call finds the library there.
    assert_eq!(enter(guest.pid()), "call 2, passed X, library 0, sum 7");
    let maps = || std::fs::read_to_string(format!("/proc/{}/maps", guest.pid())).expect("it runs");
    let (maps_before, begun) = (maps().lines().count(), Instant::now());
    let mut rounds = 2;
    // On a busy machine a round takes long.
    while begun.elapsed() < Duration::from_millis(300) || rounds < 5 {
        rounds += 1;
        assert!(enter(guest.pid()).starts_with(&format!("call {rounds},")));
    }
    assert_eq!(
        (guest.descriptors(), maps().lines().count()),
        (before, maps_before)
    );
    assert_eq!(guest.rest(), expected);
}

#[test]
fn programs_of_all_kinds_go_on_as_if_nothing_had_been() {
    for how in ["epoll", "signals", "threads", "busy", "sleep"] {
        let expected = alone(&[how]);
        let guest = Guest::start(&[how]);
        let (mut entered, mut still) = (0, Vec::new());
        for _ in 0..5 {
            match enter_within(guest.pid(), LIMIT) {
                Ok(loaded) if entered == 0 => {
                    assert!(said(&loaded).contains("sum 7"), "{how}");
                    still.push(loaded.still);
                    entered += 1;
                }
                Ok(loaded) => {
                    still.push(loaded.still);
                    drop(loaded.call.wait(LIMIT));
                }
                // It may have come to its end by now.
                Err(_) if entered > 0 => {}
                Err(refused) => panic!("{how}: {refused}"),
            }
        }
        assert_eq!(guest.rest(), expected, "{how}");
        // On a busy machine a thread that is let go waits for a core: the least tells what standing still takes.
        let least = still.into_iter().min().expect("it was entered");
        assert!(least < Duration::from_millis(200), "{how}: {least:?}");
    }
}

#[test]
fn the_only_thread_that_calls_has_sixteen_kib_of_stack() {
    let expected = alone(&["small"]);
    let guest = Guest::start(&["small"]);
    assert!(enter(guest.pid()).contains("sum 7"));
    assert_eq!(guest.rest(), expected);
}

#[test]
fn nobody_is_entered_inside_the_allocator() {
    let guest = Guest::start(&["malloc"]);
    let refused = enter_within(guest.pid(), Duration::from_millis(700));
    assert!(
        matches!(refused, Err(Refused::NoPlace { .. })),
        "{refused:?}"
    );
    assert_eq!(guest.rest(), "0 were wrong");
}

/// A shell that does so without an end, on one core that it shares with others.
fn shell(with: &[&str], script: &str) -> Guest {
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    let cores = crate::process::field(&status, "Cpus_allowed_list");
    let core = cores.split([',', '-']).next().expect("one");
    let mut command = Command::new("taskset");
    command.args(["-c", core]).args(with).args(["sh", "-c"]);
    Guest::of(command.arg(format!("echo ready; {script}")))
}

#[test]
fn who_gets_no_core_is_waited_for_and_said_to_get_none() {
    let _other = shell(&[], "while :; do :; done");
    let guest = shell(&["chrt", "-i", "0"], "while :; do :; done");
    let limit = Duration::from_millis(200);
    let refused = enter_within(guest.pid(), limit).expect_err("it calls nothing");
    let Refused::NoPlace { waited, why, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(
        (waited, why.as_str()),
        (1.0, "they got next to nothing of a core")
    );
}

/// A fifth of a core is no little, and still a thread comes by a call a fifth as often.
#[test]
fn who_waits_for_a_core_most_of_the_time_is_looked_at_for_longer() {
    let _others: Vec<Guest> = (0..4).map(|_| shell(&[], "while :; do :; done")).collect();
    let guest = shell(&[], "while :; do :; done");
    let limit = Duration::from_secs(1);
    let refused = enter_within(guest.pid(), limit).expect_err("it calls nothing");
    let Refused::NoPlace { waited, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(waited, 5.0);
}

#[test]
fn nobody_is_entered_inside_the_loader() {
    let constructor = made().join("constructor.so");
    let arguments = ["dlopen", constructor.to_str().expect("a path")];
    let expected = alone(&arguments);
    let guest = Guest::start(&arguments);
    let refused = enter_within(guest.pid(), Duration::from_millis(500));
    assert!(
        matches!(refused, Err(Refused::NoPlace { .. })),
        "{refused:?}"
    );
    assert!(enter(guest.pid()).contains("call 1,"));
    assert_eq!(guest.rest(), expected);
}

#[test]
fn programs_that_fork_and_become_others_meanwhile_are_not_disturbed() {
    let guest = Guest::start(&["forks"]);
    for _ in 0..5 {
        enter(guest.pid());
    }
    assert!(guest.rest().ends_with("\n0 were wrong"));
    let guest = Guest::start(&["execs", "40"]);
    for _ in 0..10 {
        // Whether it comes in between two programs is chance.
        if let Ok(loaded) = enter_within(guest.pid(), Duration::from_millis(200)) {
            let _ = loaded.call.wait(Duration::from_millis(100));
        }
    }
    assert!(guest.rest().ends_with("the last"));
}

#[test]
fn kinds_that_cannot_be_entered_are_named_and_left_alone() {
    let unfit = |guest: &Guest, word: &str| {
        let refused = enter_within(guest.pid(), LIMIT).expect_err("unfit");
        assert!(matches!(refused, Refused::Unfit { .. }), "{refused}");
        assert!(refused.to_string().contains(word), "{refused}");
    };
    let mut fixed = Command::new(made().join("static"));
    let guest = Guest::of(fixed.args(["poll", "100"]));
    unfit(&guest, "statically");
    guest.rest();
    let musl = made().join("ld-musl-x86_64.so.1");
    std::fs::write(&musl, "not really").expect("written");
    let mut guest = Guest::start(&["mapped", musl.to_str().expect("a path")]);
    assert_eq!(guest.line(), "mapped");
    unfit(&guest, "musl");
    let arguments = ["-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie"];
    if cfg!(target_arch = "x86_64") && compile(made(), "bits32", "bits32", &arguments) {
        let mut child = Command::new(made().join("bits32"))
            .spawn()
            .expect("started");
        let refused = check(child.id()).expect_err("32 bits");
        assert!(refused.to_string().contains("32-bit"), "{refused}");
        assert!(child.wait().expect("its end").success());
    } else {
        eprintln!("left out: no compiler for 32 bits");
    }
    // SAFETY: stops and continues our own child.
    unsafe {
        let guest = Guest::start(&["poll"]);
        libc::kill(guest.pid().cast_signed(), libc::SIGSTOP);
        while !matches!(check(guest.pid()), Err(Refused::Stopped(_))) {
            std::thread::yield_now();
        }
        libc::kill(guest.pid().cast_signed(), libc::SIGCONT);
    }
}

/// No test: run by tests below as a process of its own, it enters, and is killed at a step.
#[test]
fn enterer() {
    let number = |name: &str| -> Option<i64> {
        let text = std::env::var(name).ok()?;
        Some(text.parse().expect("a number"))
    };
    let (Some(pid), Some(step)) = (number("CUPTOP_TEST_PID"), number("CUPTOP_TEST_STEP")) else {
        return;
    };
    let pid = u32::try_from(pid).expect("a process");
    steps::die::die_after(step);
    match enter_within(pid, LIMIT) {
        Ok(loaded) => println!("said: {}", said(&loaded)),
        Err(refused) => println!("refused: {refused:?}"),
    }
}

fn enterer_of(pid: u32, step: i64) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this"));
    command.args(["--exact", "tests::enterer", "--nocapture"]);
    command.env("CUPTOP_TEST_PID", pid.to_string());
    command.env("CUPTOP_TEST_STEP", step.to_string());
    command.env("CUPTOP_TEST_GUESTS", made());
    command
}

#[test]
fn whoever_enters_may_be_killed_between_any_two_of_its_requests() {
    for (how, every) in [("poll", 1), ("threads", 9)] {
        let expected = alone(&[how, "500"]);
        // Whether it came through, when it is killed at this step.
        let at = |step: i64| {
            let guest = Guest::start(&[how, "500"]);
            let before = guest.descriptors();
            let made = enterer_of(guest.pid(), step).output().expect("run");
            let is_through = made.status.success();
            if is_through {
                let text = String::from_utf8_lossy(&made.stdout).into_owned();
                assert!(text.contains("said: call 1, "), "{text}");
            } else {
                assert_eq!(made.status.signal(), Some(libc::SIGKILL), "{made:?}");
            }
            let begun = Instant::now();
            while guest.descriptors() != before {
                let left = guest.descriptors();
                assert!(begun.elapsed() < LIMIT, "{how} at {step}: {before}, {left}");
                std::thread::yield_now();
            }
            // Another can follow at once.
            assert!(!enter(guest.pid()).is_empty());
            assert_eq!(guest.rest(), expected, "{how} at {step}");
            is_through
        };
        let mut last = 0;
        let is_over = std::iter::from_fn(|| {
            let steps: Vec<i64> = (0..8).map(|i| last + i * every).collect();
            last += 8 * every;
            let through = std::thread::scope(|scope| {
                let all = steps.iter().map(|step| scope.spawn(|| at(*step)));
                let all: Vec<_> = all.collect();
                all.into_iter().any(|it| it.join().expect("no panic"))
            });
            Some(through)
        })
        .any(|through| through);
        assert!(is_over && last > 40, "{how}: {last} steps were all");
    }
}

#[test]
fn another_user_may_not() {
    // SAFETY: has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("left out: it takes root to become another user");
        return;
    }
    let guest = Guest::start(&["poll"]);
    let made = enterer_of(guest.pid(), -1)
        .uid(65534)
        .gid(65534)
        .output()
        .expect("run");
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(text.contains("refused: NotPermitted"), "{text}");
}

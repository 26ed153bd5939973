//! The runner process and its parent, with drivers that are missing, broken, crashing and hanging.
//!
//! This file is three programs: the list of tests, the parent of a run (started by a test with the
//! environment it wants), and the runner process, which the parent starts as cuptop does: by running its own
//! executable again.
#![expect(clippy::print_stdout, reason = "its programs speak on stdout")]

use cuptop::bundled::LIBRARY;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use activity::feed::{Message, Outcome};
use live::runner::{self, RunRequest};
use scenario::{Overrides, Source};

/// Runs one scenario, as the parent.
const PARENT: &str = "parent";
/// The same, but asks for an end after a moment.
const STOPPING_PARENT: &str = "stopping-parent";
/// Asks what the machine has.
const PROBE: &str = "probe-machine";

const SCENARIO: &str = r#"
name = "Test"
[buffers.x]
bytes = "1 KiB"
host = "pinned"
[[variant]]
name = "only"
steps = [{ h2d = "x", stream = "s" }, { sync = "device" }]
"#;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(runner::PROCESS_COMMAND) => runner::process_main(LIBRARY),
        Some(PARENT) => parent(&arguments[1], None),
        Some(STOPPING_PARENT) => parent(&arguments[1], Some(Duration::from_millis(300))),
        Some(PROBE) => {
            let probe = runner::probe();
            println!("usable: {}", probe.can_run());
            println!("driver: {}", probe.driver.text);
            println!("help: {}", probe.driver.help);
            ExitCode::SUCCESS
        }
        _ => tests(&arguments),
    }
}

/// Runs a scenario and prints what comes of it.
fn parent(text: &str, stop_after: Option<Duration>) -> ExitCode {
    let feed = runner::run(RunRequest {
        graphs: collector::Graphs::Nodes,
        source: Source {
            name: "test".to_owned(),
            path: None,
            text: text.into(),
            kernel_dir: None,
            library: LIBRARY,
        },
        overrides: Overrides::default(),
        save: None,
        flush: Duration::from_millis(20),
        hardware: false,
        stalls: false,
        counters: live::counters::Counters::Off,
    })
    .expect("the runner process starts");
    let start = Instant::now();
    loop {
        match feed.receiver().recv_timeout(Duration::from_millis(50)) {
            Ok(Message::Finished(outcome)) => {
                match outcome {
                    Outcome::Failed(failure) => {
                        println!("failed: {:?}", failure.kind);
                        println!("message: {}", failure.message);
                        println!("help: {}", failure.help);
                    }
                    other => println!("outcome: {other:?}"),
                }
                return ExitCode::SUCCESS;
            }
            Ok(Message::Output { line, .. }) => println!("output: {line}"),
            Ok(_) => {}
            Err(error) => assert!(error.is_timeout(), "the feed ends with an outcome"),
        }
        if stop_after.is_some_and(|after| start.elapsed() > after) {
            feed.stop.stop();
        }
    }
}

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("a_scenario_with_a_mistake_is_refused", mistake),
    ("a_library_that_is_none_is_no_driver", not_a_library),
    ("a_driver_that_cannot_start_says_why", cannot_start),
    ("a_driver_that_crashes_ends_only_the_runner", crash),
    ("a_driver_that_hangs_can_be_stopped", hang),
    ("no_recording_directory_is_left_behind", nothing_left),
    ("the_runner_refuses_what_is_no_job", no_job),
    ("the_runner_ends_with_its_parent", orphan),
];

/// A small stand-in for the test harness, which would not let this file be a program.
fn tests(arguments: &[String]) -> ExitCode {
    if arguments.iter().any(|a| a == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|a| !a.starts_with('-'));
    let mut failed = 0;
    for (name, test) in TESTS {
        if filter.is_none_or(|f| name.contains(f.as_str())) {
            let ok = std::panic::catch_unwind(test).is_ok();
            println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
            failed += usize::from(!ok);
        }
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A folder with a `libcuda.so.1` compiled from C.
fn driver(code: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    let source = folder.path().join("driver.c");
    std::fs::write(&source, code).expect("written");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(folder.path().join("libcuda.so.1"))
        .arg(&source)
        .status()
        .expect("a C compiler: cc");
    assert!(status.success());
    folder
}

/// The fake driver's source, with another cuInit.
fn driver_with_init(body: &str) -> tempfile::TempDir {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/driver.c");
    let source = std::fs::read_to_string(path).expect("the fake driver's source");
    let old = "Code cuInit(unsigned flags) {";
    assert!(source.contains(old));
    let new = format!("#include <unistd.h>\nCode cuInit(unsigned flags) {{ {body}");
    driver(&source.replacen(old, &new, 1))
}

/// Runs this program again, with a driver folder; what it prints.
fn with_driver(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder)
        .env("CUPTOP_CUPTI", "/nowhere/libcupti.so")
        .env("TMPDIR", folder)
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn assert_has(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted:?} in:\n{text}");
    }
}

fn mistake() {
    let folder = tempfile::tempdir().expect("a directory");
    let text = with_driver(folder.path(), &[PARENT, "name = \"x\"\nbufers = 1\n"]);
    assert_has(&text, &["failed: Input", "bufers"]);
}

fn not_a_library() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("libcuda.so.1"), "no ELF file").expect("written");
    let text = with_driver(folder.path(), &[PARENT, SCENARIO]);
    assert_has(&text, &["failed: Machine", "libcuda.so.1", "--backend sim"]);
    let text = with_driver(folder.path(), &[PROBE]);
    assert_has(
        &text,
        &["usable: false", "libcuda.so.1", "install the NVIDIA driver"],
    );
}

fn cannot_start() {
    // CUDA_ERROR_NO_DEVICE.
    let folder = driver_with_init("return 100;");
    let text = with_driver(folder.path(), &[PARENT, SCENARIO]);
    assert_has(
        &text,
        &["failed: Machine", "cannot start", "CUDA_VISIBLE_DEVICES"],
    );
    let old = driver("int cuInit(unsigned f) { return 0; }");
    let text = with_driver(old.path(), &[PROBE]);
    assert_has(&text, &["usable: false", "too old", "cuDriverGetVersion"]);
}

fn crash() {
    let folder = driver_with_init("puts(\"a last word\"); fflush(stdout); abort();");
    let text = with_driver(folder.path(), &[PARENT, SCENARIO]);
    assert_has(
        &text,
        &[
            "output: a last word",
            "failed: Program { code: 134 }",
            "signal 6",
        ],
    );
    let text = with_driver(folder.path(), &[PROBE]);
    assert_has(&text, &["usable: false", "signal 6"]);
}

fn hang() {
    let folder = driver_with_init("for (;;) pause();");
    let text = with_driver(folder.path(), &[STOPPING_PARENT, SCENARIO]);
    assert_has(&text, &["outcome: Stopped"]);
}

fn nothing_left() {
    let folder = driver_with_init("return 100;");
    with_driver(folder.path(), &[PARENT, SCENARIO]);
    let left: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .expect("there")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn no_job() {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .arg(runner::PROCESS_COMMAND)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert_has(
        &String::from_utf8_lossy(&output.stdout),
        &["\"event\":\"error\"", "use `cuptop run`"],
    );
}

fn orphan() {
    let folder = driver_with_init("for (;;) pause();");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .arg(runner::PROCESS_COMMAND)
        .env("LD_LIBRARY_PATH", folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, b"{\"job\":\"probe\"}\n").expect("written");
    std::thread::sleep(Duration::from_millis(100));
    assert!(child.try_wait().expect("a child").is_none(), "it hangs");
    // What happens to the pipe when the parent dies.
    drop(stdin);
    let status = child.wait().expect("a child");
    assert_eq!(status.code(), Some(130));
}

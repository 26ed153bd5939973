//! Attaching to programs that run already: the way in is the real one, CUPTI and the driver are made here.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use activity::feed::Message;
use activity::{Def, What};

use crate::harness::fakes;

/// A program that runs; ended when this goes.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Program {
        let mut command = Command::new(fakes().join("program"));
        Program::of(command.args(arguments), variables)
    }

    fn of(command: &mut Command, variables: &[(&str, &str)]) -> Program {
        let made = fakes();
        command
            .env("LD_LIBRARY_PATH", made)
            .env("CUPTOP_CUPTI", made.join("libcupti.so.13"))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("text");
        assert_eq!(line, "running\n");
        Program { child, output }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, and returns how often it launched. It must end well, and have computed what it would have with nobody looking.
    #[track_caller]
    fn end_well(mut self) -> u32 {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}: {rest}");
        let line = rest.lines().next().and_then(|it| it.split_once(' '));
        let (count, sum) = line.expect("count and sum");
        let count = count.parse().expect("a number");
        let rounds = (1..=u64::from(count)).flat_map(|i| (0..1000).map(move |j| i ^ j));
        let expected = rounds.fold(0_u64, |sum, it| sum.wrapping_mul(31).wrapping_add(it));
        assert_eq!(sum, format!("{expected:016x}"));
        count
    }

    /// Waits until nothing of cuptop is in it, and it has as many descriptors as before.
    #[track_caller]
    fn wait_for_end(&self, before: usize, when: &str) {
        let begin = Instant::now();
        let left = || (self.ours(), self.descriptors());
        while left() != (0, before) {
            let is_late = begin.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "{when}: {:?}, {before} before", left());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn descriptors(&self) -> usize {
        let list = std::fs::read_dir(format!("/proc/{}/fd", self.pid()));
        list.expect("it runs").count()
    }

    /// Threads that are cuptop's. CUPTI's own inherit the name of the one that starts them, with its number.
    fn ours(&self) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("it runs");
        let is_ours = |task: &std::fs::DirEntry| {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let rest = name.trim().strip_prefix("cuptop-");
            let is_number = |it: &str| it.parse::<u32>().is_ok();
            rest.is_some_and(|it| !is_number(it) || task.file_name() == it)
        };
        tasks.flatten().filter(is_ours).count()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn attach(pid: u32, save: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuptop"));
    command
        .args(["attach", &pid.to_string(), "--headless", "--save"])
        .arg(save)
        .args(["--hardware", "off", "--python", "off"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Attaches to a program until it ends with this code. Returns what it said.
#[track_caller]
fn record(pid: u32, save: &Path, more: &[&str], code: i32) -> String {
    let output = attach(pid, save, more).output().expect("run");
    let said = words(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Correlations of the kernels of a recording by process, and the streams that were told.
fn read(directory: &Path) -> (Vec<BTreeSet<u32>>, BTreeSet<u32>) {
    let feed = recording::open(&[directory.to_path_buf()]).expect("opens");
    let (mut kernels, mut streams) = (Vec::<BTreeSet<u32>>::new(), BTreeSet::new());
    for message in feed.receiver() {
        let Message::Batch(batch) = message else {
            continue;
        };
        let process = batch.process as usize;
        kernels.resize(kernels.len().max(process + 1), BTreeSet::new());
        for item in &batch.items {
            if matches!(item.what, What::Kernel(_)) {
                assert!(kernels[process].insert(item.correlation), "twice");
            }
        }
        for def in &batch.defs {
            if let Def::Stream(stream) = def {
                streams.insert(stream.stream);
            }
        }
    }
    (kernels, streams)
}

/// That what was launched in a stretch of time is there, without a hole.
#[track_caller]
fn whole(kernels: &BTreeSet<u32>, least: u32) {
    let (first, last) = (kernels.first(), kernels.last());
    let (first, last) = (*first.expect("some"), *last.expect("some"));
    assert_eq!(
        kernels.len() as u32,
        last - first + 1,
        "from {first} to {last}"
    );
    assert!(last - first >= least, "only from {first} to {last}");
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().join("run");
    (folder, save)
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupt(process: &Child) {
    let sent = Command::new("kill")
        .args(["-INT", &process.id().to_string()])
        .status();
    assert!(sent.expect("runs").success());
}

/// Waits until it has said this.
#[track_caller]
fn await_word(process: &mut Child, expected: &str) {
    let (mut said, mut byte) = (Vec::new(), [0]);
    let errors = process.stderr.as_mut().expect("a pipe");
    while !String::from_utf8_lossy(&said).contains(expected) {
        let read = errors.read(&mut byte).expect("the pipe");
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&said));
        said.extend(byte);
    }
}

#[test]
fn a_running_program_is_recorded_left_and_recorded_again() {
    let program = Program::start(&["late"], &[]);
    let before = program.descriptors();
    for round in 0..3 {
        let (_folder, save) = folder();
        let said = record(program.pid(), &save, &["--duration", "400ms"], 0);
        assert!(said.contains("recording process"), "{said}");
        let (kernels, streams) = read(&save);
        assert_eq!(kernels.len(), 1);
        whole(&kernels[0], 10);
        // One that was made before anybody looked.
        assert!(streams.contains(&23), "{round}: {streams:?}");
        assert_eq!(
            (program.ours(), program.descriptors()),
            (0, before),
            "{round}"
        );
    }
    program.end_well();
}

#[test]
fn a_program_whose_stalls_were_sampled_goes_on_and_keeps_the_counters() {
    let program = Program::start(&["late"], &[]);
    let (_folder, save) = folder();
    let options = ["--stalls", "on", "--duration", "2s"];
    let mut attach = attach(program.pid(), &save, &options);
    let output = attach.env("LD_LIBRARY_PATH", fakes()).output();
    let said = words(&output.expect("runs"));
    assert!(said.contains("stalls of GPU 0 are sampled"), "{said}");
    assert!(
        said.contains("keeps the counters of GPU 0 until it ends"),
        "{said}"
    );
    program.end_well();
}

#[test]
fn a_signal_ends_it_with_a_report() {
    let program = Program::start(&["late"], &[]);
    let (_folder, save) = folder();
    let attached = attach(program.pid(), &save, &[]).spawn().expect("started");
    wait_for("a recording", || program.ours() >= 3);
    interrupt(&attached);
    let output = attached.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(130), "{}", words(&output));
    let report = words(&output);
    assert!(report.contains("program late"), "{report}");
    wait_for("its leaving", || program.ours() == 0);
    program.end_well();
}

#[test]
fn of_two_that_attach_the_second_waits_for_the_first() {
    let program = Program::start(&["late"], &[]);
    let (_folder, save) = folder();
    let first = attach(program.pid(), &save, &[]).spawn().expect("started");
    wait_for("a recording", || program.ours() >= 3);
    let (_other, saved) = folder();
    let before = program.descriptors();
    let (_third, given_up) = folder();
    let third = attach(program.pid(), &given_up, &[])
        .spawn()
        .expect("started");
    let mut second = attach(program.pid(), &saved, &["--duration", "500ms"]);
    let (mut second, mut third) = (second.spawn().expect("started"), third);
    let expected = format!("another cuptop is attached to process {} (", program.pid());
    await_word(&mut third, &expected);
    await_word(&mut second, &expected);
    // Nobody enters beside another one, and who waits can be ended.
    assert_eq!(program.descriptors(), before);
    for (which, ended) in [("third", third), ("first", first)] {
        interrupt(&ended);
        let output = ended.wait_with_output().expect("its end");
        assert_eq!(
            output.status.code(),
            Some(130),
            "{which}: {}",
            words(&output)
        );
    }
    whole(&read(&save).0[0], 50);
    let second = second.wait_with_output().expect("its end");
    assert!(second.status.success(), "{}", words(&second));
    whole(&read(&saved).0[0], 50);
    assert_eq!(program.ours(), 0);
}

/// A shell that never comes by a system call is looked at for a second and more.
#[test]
fn who_looks_for_a_safe_place_ends_by_a_signal() {
    let mut spinning = Command::new("sh");
    let program = Program::of(
        spinning.args(["-c", "echo running; while :; do :; done"]),
        &[],
    );
    let (_folder, save) = folder();
    let attached = attach(program.pid(), &save, &[]).spawn().expect("started");
    let status = format!("/proc/{}/status", program.pid());
    wait_for("somebody who looks", || {
        let status = std::fs::read_to_string(&status).expect("it runs");
        !status.contains("TracerPid:\t0\n")
    });
    interrupt(&attached);
    let output = attached.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(130), "{}", words(&output));
}

#[test]
fn of_many_that_attach_at_once_each_has_its_turn() {
    let program = Program::start(&["late"], &[]);
    let (folder, _) = folder();
    let start = |at: u32| {
        let save = folder.path().join(at.to_string());
        let attached = attach(program.pid(), &save, &["--duration", "200ms"]).spawn();
        attached.expect("started")
    };
    let all: Vec<Child> = (0..4).map(start).collect();
    for attached in all {
        let output = attached.wait_with_output().expect("its end");
        assert!(output.status.success(), "{}", words(&output));
    }
    assert_eq!(program.ours(), 0);
    program.end_well();
}

#[test]
fn whoever_attached_may_be_killed_at_any_moment() {
    let program = Program::start(&["late"], &[]);
    let before = program.descriptors();
    for moment in 0..20 {
        let (_folder, save) = folder();
        let mut attached = attach(program.pid(), &save, &[]).spawn().expect("started");
        std::thread::sleep(Duration::from_millis(10 * moment));
        attached.kill().expect("killed");
        attached.wait().expect("gone");
        program.wait_for_end(before, &format!("killed after {} ms", 10 * moment));
    }
    let (_folder, save) = folder();
    record(program.pid(), &save, &["--duration", "1s"], 0);
    whole(&read(&save).0[0], 50);
    program.end_well();
}

/// Eight threads that launch as long as somebody holds its input open.
const THREADS: &str = r#"import ctypes, itertools, os, sys, threading
ctypes.CDLL("libcuda.so.1").cuInit(0)
launch = ctypes.CDLL(os.environ["CUPTOP_CUPTI"]).fake_launch
launch.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
numbers, ends = itertools.count(1), threading.Event()

def work():
    while not ends.wait(0.001):
        launch(next(numbers), 1000)

threads = [threading.Thread(target=work) for _ in range(8)]
for it in threads: it.start()
print("running", flush=True)
sys.stdin.read()
ends.set()
for it in threads: it.join()
print("0 0000000000000000")
"#;

/// CUPTI says that it begins no call to a subscriber that has gone, and not that it waits for those under way.
#[test]
fn calls_under_way_while_it_leaves_harm_nothing() {
    if !crate::harness::has_python() {
        return;
    }
    let mut python = Command::new("python3");
    let program = Program::of(python.args(["-c", THREADS]), &[("FAKE_CALLS_LATE", "60")]);
    let before = program.descriptors();
    for round in 0..10 {
        let (_folder, save) = folder();
        let options = ["--lines", "on", "--duration", "200ms"];
        let said = record(program.pid(), &save, &options, 0);
        assert!(!read(&save).0[0].is_empty(), "{round}: {said}");
        program.wait_for_end(before, &format!("round {round}"));
    }
    program.end_well();
}

#[test]
fn what_stands_in_the_way_is_named_and_nothing_stays() {
    for (variables, expected) in [
        (
            &[("FAKE_TAKEN", "1")][..],
            "another profiler (Some Other Profiler) is attached",
        ),
        (
            &[("FAKE_VERSION", "140000")],
            "it is for CUDA 14, the driver offers CUDA 13",
        ),
        (&[("FAKE_VERSION", "130000")], "13.0.85 or later is needed"),
    ] {
        let program = Program::start(&["late"], variables);
        let (_folder, save) = folder();
        let said = record(program.pid(), &save, &["--duration", "1s"], 3);
        assert!(said.contains(expected), "{expected}: {said}");
        wait_for("the library lets go", || program.ours() == 0);
        program.end_well();
    }
    let (_folder, save) = folder();
    let said = record(u32::MAX >> 1, &save, &[], 3);
    assert!(said.contains("there is no process"), "{said}");
}

#[test]
fn versions_with_known_faults_that_still_record_are_named() {
    let program = Program::start(&["late"], &[("FAKE_VERSION", "22")]);
    let (_folder, save) = folder();
    let said = record(program.pid(), &save, &["--duration", "300ms"], 0);
    assert!(said.contains("12.6 or later does not"), "{said}");
    whole(&read(&save).0[0], 50);
}

#[test]
fn a_program_that_does_not_use_cuda_yet_is_recorded_from_when_it_does() {
    let program = Program::start(&["late-cuda", "600"], &[]);
    let (_folder, save) = folder();
    let said = record(program.pid(), &save, &[], 0);
    assert!(said.contains("does not use CUDA yet"), "{said}");
    let (kernels, _) = read(&save);
    whole(&kernels[0], 300);
    assert!(kernels[0].contains(&600), "its end is missing");
    program.end_well();
}

#[test]
fn children_that_are_forked_meanwhile_disturb_nothing() {
    let program = Program::start(&["late-fork"], &[]);
    let (_folder, save) = folder();
    record(program.pid(), &save, &["--duration", "800ms"], 0);
    whole(&read(&save).0[0], 50);
    program.end_well();
}

#[test]
fn of_a_launcher_every_process_that_uses_cuda_is_recorded() {
    let script = "\"$0\" late 2000 > /dev/null & \"$0\" late 2000 > /dev/null & sleep 0.2; echo running; wait";
    let mut shell = Command::new("sh");
    let launcher = Program::of(shell.args(["-c", script]).arg(fakes().join("program")), &[]);
    let (_folder, save) = folder();
    let said = record(launcher.pid(), &save, &["--duration", "500ms"], 0);
    let (kernels, _) = read(&save);
    assert_eq!(kernels.len(), 2, "{said}");
    kernels.iter().for_each(|it| whole(it, 50));
}

#[test]
fn a_program_under_trace_is_not_recorded_twice() {
    let made = fakes();
    let (_folder, save) = folder();
    let mut traced = Command::new(env!("CARGO_BIN_EXE_cuptop"));
    traced.args([
        "trace",
        "--headless",
        "--hardware",
        "off",
        "--python",
        "off",
        "--save",
    ]);
    traced
        .arg(&save)
        .arg("--")
        .arg(made.join("program"))
        .arg("late");
    let traced = Program::of(&mut traced, &[]);
    let of = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", traced.pid()));
    let children = of.expect("readable");
    let child = children.split_whitespace().find_map(|it| it.parse().ok());
    let (_other, second) = folder();
    let pid = child.expect("a child");
    let said = record(pid, &second, &["--duration", "1s"], 3);
    assert!(said.contains("recorded already"), "{said}");
    let count = traced.end_well();
    assert_eq!(read(&save).0[0], (1..=count).collect());
}

#[test]
fn a_program_that_uses_no_cuda_is_left_at_once() {
    let program = Program::start(&["late-cuda"], &[]);
    let (_folder, save) = folder();
    let mut attached = attach(program.pid(), &save, &["--duration", "100ms"])
        .spawn()
        .expect("started");
    // The program waits for its own end: were it awaited, it would be for ever.
    let mut status = None;
    wait_for("it is left", || {
        status = attached.try_wait().expect("its end");
        status.is_some()
    });
    assert!(status.expect("an end").success());
    wait_for("the library lets go", || program.ours() == 0);
    program.end_well();
}

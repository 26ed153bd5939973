//! What goes wrong around cuptop and in what it reads, by name. `docs/RELIABILITY.md` lists the faults; those
//! that need a program with a driver are in `tests/attach/faults.rs`.

mod files;
mod growth;
mod machine;
mod traces;

use std::ffi::OsStr;
use std::process::{Command, Output};

fn cuptop() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cuptop"))
}

fn run<A: AsRef<OsStr>>(args: &[A]) -> Output {
    cuptop().args(args).output().expect("cuptop runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A saved recording of a simulated run.
fn recording() -> tempfile::TempDir {
    recording_of("transpose")
}

fn recording_of(scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("run");
    let output = cuptop()
        .args(["run", scenario, "--backend", "sim", "--headless", "--save"])
        .arg(&at)
        .output()
        .expect("cuptop runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    folder
}

//! What of a program is recorded, who may read it, and what can be left out of what is handed on.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::harness::{Seen, fakes, trace};

/// In the program's command line, and in its environment.
const ARGUMENT: &str = "argument-of-the-program";
const VARIABLE: &str = "value-of-a-variable";

fn traced() -> Seen {
    let seen = trace(
        fakes(),
        &["return", "10", ARGUMENT],
        &[("SECRET", VARIABLE)],
    );
    seen.has_kernels(0, 10);
    seen
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn command_lines_are_recorded_and_the_environment_is_not() {
    let seen = traced();
    let mut all = Vec::new();
    for file in seen
        .directory
        .path()
        .join("run")
        .read_dir()
        .expect("a folder")
    {
        let path = file.expect("readable").path();
        let mode = path.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        all.extend(std::fs::read(path).expect("readable"));
    }
    assert!(holds(&all, ARGUMENT));
    assert!(!holds(&all, VARIABLE));
}

/// An export, or a report on standard output.
fn handed_on(run: &Path, to: &str, is_anonymous: bool) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuptop"));
    match to {
        "text" => command.args(["report", "--all"]),
        "json" => command.args(["report", "--json"]),
        format => command.args(["export", "--to", format]),
    };
    command.arg(run);
    if is_anonymous {
        command.arg("--anonymous");
    }
    let output = command.output().expect("it runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{to}: {complaints}");
    assert_eq!(
        complaints.contains("left out: command lines"),
        is_anonymous,
        "{complaints}"
    );
    output.stdout
}

#[test]
fn what_is_handed_on_leaves_out_command_paths_and_host_when_asked_to() {
    let seen = traced();
    let run = seen.directory.path().join("run");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let folder = seen.directory.path().display().to_string();
    let fakes = fakes().display().to_string();
    let mut gave_away = Vec::new();
    for to in ["text", "json", "chrome", "csv", "svg", "txt", "cast"] {
        let secrets = [ARGUMENT, host.trim(), &folder, &fakes];
        let open = handed_on(&run, to, false);
        let closed = handed_on(&run, to, true);
        for secret in secrets {
            if holds(&open, secret) {
                gave_away.push((to, secret));
            }
            assert!(!holds(&closed, secret), "{to} holds {secret}");
        }
        // Kernels are what it is handed on for.
        assert!(holds(&closed, "odd"), "{to}");
    }
    // Without being asked to they are there: what is looked for could be found.
    assert!(gave_away.contains(&("chrome", ARGUMENT)), "{gave_away:?}");
    assert!(gave_away.contains(&("json", &folder)), "{gave_away:?}");
}

#[test]
fn comparisons_and_predictions_leave_out_the_same_when_asked_to() {
    let seen = traced();
    let run = seen.directory.path().join("run");
    let folder = seen.directory.path().display().to_string();
    let said = |arguments: &[&str], is_anonymous: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuptop"));
        command.arg(arguments[0]).arg(&run);
        if arguments[0] == "compare" {
            command.arg(&run);
        }
        command.args(&arguments[1..]);
        if is_anonymous {
            command.arg("--anonymous");
        }
        let output = command.output().expect("it runs");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {complaints}");
        let times = complaints.matches("left out: command lines").count();
        assert_eq!(times, usize::from(is_anonymous), "{complaints}");
        output.stdout
    };
    let mut gave_away = Vec::new();
    for arguments in [
        &["compare"][..],
        &["compare", "--json"],
        &["compare", "--markdown"],
        &["whatif"],
        &["whatif", "--json"],
    ] {
        let (open, closed) = (said(arguments, false), said(arguments, true));
        for secret in [ARGUMENT, &folder] {
            if holds(&open, secret) {
                gave_away.push(arguments[0]);
            }
            assert!(!holds(&closed, secret), "{arguments:?} holds {secret}");
        }
        assert!(closed.len() > 100, "{arguments:?}");
    }
    // Without being asked to they are there: what is looked for could be found.
    assert!(gave_away.contains(&"compare"), "{gave_away:?}");
}

#[test]
fn a_new_export_with_command_lines_is_its_owners_alone() {
    let seen = traced();
    let folder = seen.directory.path();
    let mode = |name: &str, options: &[&str]| {
        let out = folder.join(name);
        let status = Command::new("sh")
            .args(["-c", "umask 027; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_cuptop"))
            .arg("export")
            .arg(folder.join("run"))
            .arg("-o")
            .arg(&out)
            .args(options)
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{name}");
        out.metadata().expect("there").permissions().mode() & 0o777
    };
    assert_eq!(mode("a.json", &[]), 0o600);
    assert_eq!(mode("b.json", &["--anonymous"]), 0o640);
    assert_eq!(mode("a.csv", &[]), 0o640);
    assert_eq!(mode("a.svg", &[]), 0o640);
}

#[test]
fn a_directory_that_others_could_put_recordings_into_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    std::fs::create_dir(&run).expect("made");
    let refused = || {
        let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
            .args(["trace", "--headless", "--save"])
            .arg(&run)
            .args(["--", "true"])
            .output()
            .expect("it runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    std::fs::set_permissions(&run, PermissionsExt::from_mode(0o777)).expect("set");
    let text = refused();
    assert!(text.contains("written to by others"), "{text}");
    std::fs::set_permissions(&run, PermissionsExt::from_mode(0o700)).expect("set");
    // Only root can give it away.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&run, Some(65534), None).expect("given away");
        let text = refused();
        assert!(text.contains("another user's"), "{text}");
    }
}

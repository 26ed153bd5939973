//! The machine around cuptop: full disks, missing rights, readers that go away.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use super::{cuptop, recording, run, stderr, stdout};

fn trace() -> String {
    format!("{}/tests/data/small.json", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_full_disk_under_an_export_leaves_no_half_file_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a.json");
    // `ulimit -f` counts blocks of 512 bytes: a file may have 512 bytes.
    let script = "ulimit -f 1; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_cuptop")])
        .args(["export", &trace(), "-o"])
        .arg(&out)
        .output()
        .expect("it runs");
    assert_eq!(
        output.status.code(),
        Some(2),
        "{:?} {}",
        output.status,
        stderr(&output)
    );
    assert!(stderr(&output).contains("a.json"), "{}", stderr(&output));
    let left: Vec<_> = folder.path().read_dir().expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A shell that asks for completions is answered before all else.
#[test]
fn a_file_without_room_ends_no_answer_to_a_shell_by_a_signal() {
    let script = "ulimit -f 0; exec \"$0\" > \"$1\"";
    let out = tempfile::NamedTempFile::new().expect("a file");
    let status = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_cuptop")])
        .arg(out.path())
        .env("CUPTOP_COMPLETE", "bash")
        .stderr(Stdio::null())
        .status();
    assert_eq!(status.expect("it runs").code(), Some(2));
}

#[test]
fn a_full_disk_under_a_saved_run_is_said_and_the_run_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().join("run");
    let script = "ulimit -f 16; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_cuptop")])
        .args([
            "run",
            "tiny_copies",
            "--backend",
            "sim",
            "--headless",
            "--save",
        ])
        .arg(&save)
        .output()
        .expect("it runs");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{:?} {}",
        output.status,
        stderr(&output)
    );
    assert!(stderr(&output).contains("no space"), "{}", stderr(&output));
    // What was written before is whole, and what is missing is counted.
    let again = run(&["report".as_ref(), "--json".as_ref(), save.as_os_str()]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&again)).expect("JSON");
    assert!(
        report["health"]["lost"].as_u64() > Some(0),
        "{}",
        report["health"]
    );
}

#[test]
fn full_standard_output_is_an_error() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let output = cuptop()
        .args(["report", &trace()])
        .stdout(full)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("No space left"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    for command in [
        &["report"][..],
        &["report", "--json"],
        &["export", "--to", "csv"],
        &["export", "--to", "png"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = cuptop()
            .args(command)
            .arg(trace())
            .stdout(writer)
            .output()
            .expect("it runs");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{command:?}: {}",
            stderr(&output)
        );
        let complaints = stderr(&output);
        assert!(
            !complaints.contains("panicked") && !complaints.contains("Broken pipe"),
            "{complaints}"
        );
    }
}

#[test]
fn without_a_terminal_the_screen_says_what_to_do_instead() {
    let output = cuptop()
        .args(["run", "transpose", "--backend", "sim"])
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--headless"),
        "{}",
        stderr(&output)
    );
}

/// A user that owns nothing, where the tests are root's, to whom everything is allowed.
fn as_nobody(command: &mut Command) -> &mut Command {
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    command
}

#[test]
fn what_may_not_be_read_or_written_is_named() {
    // The program has to lie where that user can start it.
    let folder = tempfile::tempdir().expect("a folder");
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("set");
    };
    set(folder.path(), 0o755);
    let program = folder.path().join("cuptop");
    // By another process: a child that another test starts meanwhile would hold it open for writing, and no program starts then.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_cuptop"))
        .arg(&program)
        .status();
    assert!(copied.is_ok_and(|it| it.success()));
    set(&program, 0o755);
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).expect("made");
    let secret = folder.path().join("secret.json");
    std::fs::copy(trace(), &secret).expect("copied");
    set(&closed, 0o000);
    set(&secret, 0o000);
    let nobody = |args: &[&std::ffi::OsStr]| {
        as_nobody(&mut Command::new(&program))
            .args(args)
            .current_dir(folder.path())
            .env("HOME", "/nonexistent")
            .output()
            .expect("it runs")
    };
    let read = nobody(&["report".as_ref(), secret.as_os_str()]);
    let inside = closed.join("run");
    let marker = folder.path().join("started");
    let save = nobody(&[
        "trace".as_ref(),
        "--headless".as_ref(),
        "--save".as_ref(),
        inside.as_os_str(),
        "--".as_ref(),
        "touch".as_ref(),
        marker.as_os_str(),
    ]);
    let simulated = nobody(&[
        "run".as_ref(),
        "pipeline".as_ref(),
        "--backend".as_ref(),
        "sim".as_ref(),
        "--headless".as_ref(),
        "--save".as_ref(),
        inside.as_os_str(),
    ]);
    let out = closed.join("a.csv");
    let export = nobody(&[
        "export".as_ref(),
        trace().as_ref(),
        "-o".as_ref(),
        out.as_os_str(),
    ]);
    set(&closed, 0o700);
    for (what, path, output) in [
        ("report", &secret, read),
        ("trace", &inside, save),
        ("run", &inside, simulated),
        ("export", &out, export),
    ] {
        let text = stderr(&output);
        assert!(text.contains("ermission denied"), "{what}: {text}");
        let path = path.to_str().expect("UTF-8");
        assert!(text.contains(path), "{what} does not name it: {text}");
        assert!(
            [Some(2), Some(3)].contains(&output.status.code()),
            "{what}: {:?}",
            output.status
        );
    }
    assert!(!marker.exists(), "the program was not started for nothing");
}

#[test]
fn a_recording_that_is_replaced_or_removed_is_read_as_what_it_is_then() {
    let one = recording();
    let run_of = one.path().join("run");
    let file = run_of
        .read_dir()
        .expect("a folder")
        .next()
        .expect("a file")
        .expect("readable")
        .path();
    // Replaced by something else under its name: said, and no figures of the old one.
    std::fs::rename(&file, file.with_extension("old")).expect("renamed");
    std::fs::write(&file, "something else").expect("written");
    let output = run(&["report".as_ref(), run_of.as_os_str()]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("not a recording"),
        "{}",
        stderr(&output)
    );
    std::fs::remove_file(&file).expect("removed");
    let output = run(&["report".as_ref(), run_of.as_os_str()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_link_that_leads_nowhere_stays_and_what_it_leads_to_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("link.csv");
    std::os::unix::fs::symlink("there.csv", &link).expect("linked");
    let output = run(&[
        "export".as_ref(),
        trace().as_ref(),
        "-o".as_ref(),
        link.as_os_str(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(link.symlink_metadata().expect("there").is_symlink());
    assert!(folder.path().join("there.csv").is_file());
}

/// Killed at any time: while it reads, makes the database, or writes.
#[test]
fn an_export_that_is_killed_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let kernels = (0..8_000).map(|i| {
        let (ts, name) = (20 * i, i % 100);
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"k{name}","pid":0,"tid":7,"ts":{ts},"dur":9,"args":{{"device":0,"stream":7}}}}"#
        )
    });
    let events = kernels.collect::<Vec<_>>().join(",");
    std::fs::write(at("in.json"), format!(r#"{{"traceEvents":[{events}]}}"#)).expect("written");
    std::fs::create_dir(at("tmp")).expect("made");
    let start = |out: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuptop"));
        command
            .env("TMPDIR", at("tmp"))
            .arg("export")
            .arg(at("in.json"));
        command.arg("-o").arg(at(out)).spawn().expect("it runs")
    };
    for out in ["out.sqlite", "out.json"] {
        let began = std::time::Instant::now();
        assert!(start(out).wait().expect("an end").success());
        let whole = began.elapsed();
        for part in 1..8 {
            let _ = std::fs::remove_file(at(out));
            let mut running = start(out);
            std::thread::sleep(whole * part / 8);
            running.kill().expect("killed");
            running.wait().expect("an end");
            let names = |of: &std::path::Path| -> Vec<_> {
                let entries = of.read_dir().expect("a folder").flatten();
                entries.map(|it| it.file_name()).collect()
            };
            let left: Vec<_> = names(folder.path())
                .into_iter()
                .filter(|it| {
                    it != "in.json" && it != "tmp" && it != "out.sqlite" && it != "out.json"
                })
                .chain(names(&at("tmp")))
                .collect();
            assert!(left.is_empty(), "after {part}/8 of {out}: {left:?}");
        }
    }
}

/// As `-o >(gzip)` of a shell names it: a link to what has no place.
#[test]
fn an_export_into_a_pipe_of_the_shell_arrives() {
    let script = "\"$@\" 3>&1 >/dev/null -o /dev/fd/3 | head -c 8";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_cuptop")])
        .args(["export", &trace(), "--to", "csv"])
        .output()
        .expect("it runs");
    assert_eq!(stdout(&output), "process,", "{}", stderr(&output));
}

/// What another program left beside a database is put into whatever takes its name: the export would be lost.
#[test]
fn an_export_does_not_take_the_name_of_a_database_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a.sqlite");
    let export = || {
        run(&[
            "export".as_ref(),
            trace().as_ref(),
            "-o".as_ref(),
            out.as_os_str(),
        ])
    };
    for ending in ["-journal", "-wal"] {
        let journal = folder.path().join(format!("a.sqlite{ending}"));
        std::fs::write(&journal, "pages").expect("written");
        let output = export();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(ending), "{}", stderr(&output));
        assert!(!out.exists());
        // SQLite leaves an empty one where it is told to keep it.
        std::fs::write(&journal, "").expect("written");
    }
    assert_eq!(export().status.code(), Some(0));
}

#[test]
fn what_was_typed_is_quoted_as_text() {
    let output = run(&["report", "--color", "A\u{9b}31mB\u{202e}\u{200b}", "x"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("\\u{9b}31mB\\u{202e}\\u{200b}"), "{said}");
    assert!(!said.contains(['\u{9b}', '\u{202e}', '\u{200b}']), "{said}");
}

//! What a trace, a path or a scenario's name holds reaches a terminal, or a file that is shown on one, only as
//! text: nothing steers it, reorders it or hides in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Clears the screen, sets the title, turns the line around, hides.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2066}\u{200b}\u{2060}\u{feff}\u{2028}\u{34f}\u{115f}\u{3164}\u{e0041}\u{e0100}";

fn cuptop(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(args)
        .output()
        .expect("cuptop runs")
}

/// Whether a byte stream holds one of the characters of [`EVIL`]; the list is this test's own.
fn hostile(bytes: &[u8]) -> Option<char> {
    let text = String::from_utf8_lossy(bytes);
    let hidden = |c: char| !c.is_ascii() && !c.is_control() && EVIL.contains(c);
    text.chars()
        .find(|&c| c.is_control() && c != '\n' || hidden(c))
}

fn assert_plain(what: &str, output: &Output) {
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let found = hostile(bytes);
        assert_eq!(
            found,
            None,
            "{what}, {stream}: {}",
            String::from_utf8_lossy(bytes)
        );
    }
}

/// A Kineto trace whose every string is hostile, behind a word that shows that it was kept.
fn kineto(folder: &Path) -> PathBuf {
    let text = |word: &str| serde_json::to_string(&format!("{word}{EVIL}")).expect("a string");
    let json = format!(
        r#"{{"schemaVersion": 1,
 "deviceProperties": [{{"id": 0, "name": {gpu}, "computeMajor": 9, "computeMinor": 0, "numSms": 132}}],
 "traceEvents": [
 {{"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {{"name": {process}}}}},
 {{"ph": "M", "name": "thread_name", "pid": 77, "tid": 77, "args": {{"name": {thread}}}}},
 {{"ph": "X", "cat": "cuda_runtime", "name": {call}, "pid": 77, "tid": 77, "ts": 1, "dur": 3,
   "args": {{"correlation": 5}}}},
 {{"ph": "X", "cat": "kernel", "name": {kernel}, "pid": 0, "tid": 7, "ts": 10, "dur": 20,
   "args": {{"device": 0, "context": 1, "stream": 7, "correlation": 5, "grid": [1,1,1], "block": [32,1,1]}}}},
 {{"ph": "X", "cat": "cuda_runtime", "name": {call}, "pid": 77, "tid": 77, "ts": 45, "dur": 3,
   "args": {{"correlation": 6}}}},
 {{"ph": "X", "cat": "kernel", "name": {kernel}, "pid": 0, "tid": 7, "ts": 50, "dur": 20,
   "args": {{"device": 0, "context": 1, "stream": 7, "correlation": 6, "grid": [1,1,1], "block": [32,1,1]}}}},
 {{"ph": "X", "cat": {category}, "name": "x", "pid": 77, "tid": 77, "ts": 1, "dur": 3}},
 {{"ph": "X", "cat": "user_annotation", "name": {range}, "pid": 77, "tid": 77, "ts": 1, "dur": 3}},
 {{"ph": "X", "cat": "python_function", "name": {function}, "pid": 77, "tid": 77, "ts": 1, "dur": 50}}
 ]}}"#,
        gpu = text("gpu-word"),
        process = text("process-word"),
        thread = text("thread-word"),
        call = text("call-word"),
        kernel = text("kernel-word@name #1 "),
        category = text("category-word"),
        range = text("range-word"),
        function = text("python-word.py(3): f"),
    );
    let path = folder.join("hostile.json");
    std::fs::write(&path, json).expect("written");
    path
}

#[test]
fn names_in_a_trace_are_only_text_in_every_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = kineto(folder.path());
    let path = path.to_str().expect("UTF-8");
    // The words show that the strings are there at all.
    let outputs: [(&[&str], &[&str]); 11] = [
        (&["report", path], &["gpu-word", "kernel-word"]),
        (&["report", "--json", path], &["gpu-word", "kernel-word"]),
        (&["compare", path, path], &[]),
        (
            &["export", "--to", "csv", path],
            &["gpu-word", "kernel-word"],
        ),
        (
            &["export", "--to", "chrome", path],
            &["gpu-word", "kernel-word", "thread-word"],
        ),
        (&["export", "--to", "svg", path], &["kernel-word"]),
        (&["export", "--to", "txt", path], &["kernel-word"]),
        (&["export", "--to", "html", path], &["kernel-word"]),
        (&["whatif", path], &[]),
        (&["whatif", "--json", path], &[]),
        (&["compare", "--json", path, path], &[]),
    ];
    for (args, words) in outputs {
        let output = cuptop(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        assert_plain(&args.join(" "), &output);
        let shown = String::from_utf8_lossy(&output.stdout);
        for word in words {
            assert!(shown.contains(word), "{args:?} lacks {word}: {shown}");
        }
    }
    // This is no plain text: it has colours and places of our own.
    let output = cuptop(&["export", "--to", "cast", path]);
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("kernel-word"), "{shown}");
    for evil in EVIL.chars().filter(|c| !c.is_ascii()) {
        assert!(!shown.contains(evil), "{evil:?}");
    }
    assert!(!shown.contains("\\u001b]0"));
}

/// A file's name, its folder's and a scenario's come from outside as much as what is in it.
#[test]
fn names_of_files_are_only_text_in_every_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let evil: String = EVIL.chars().filter(|c| !c.is_ascii()).collect();
    let inner = folder.path().join(format!("folder-word{evil}"));
    std::fs::create_dir(&inner).expect("made");
    let trace = inner.join(format!("file-word{evil}.json"));
    std::fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.json"),
        &trace,
    )
    .expect("copied");
    let scenario = inner.join(format!("run-word{evil}.toml"));
    std::fs::copy(
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/scenarios/pinned_vs_pageable.toml"
        ),
        &scenario,
    )
    .expect("copied");
    let trace = trace.to_str().expect("UTF-8");
    let scenario = scenario.to_str().expect("UTF-8");
    for args in [
        &["report", "--json", trace][..],
        &["report", "--json=brief", trace],
        &["report", "--markdown", trace],
        &["compare", "--json", trace, trace],
        &["whatif", "--json", trace],
        &["export", "--to", "chrome", trace],
        &["export", "--to", "csv", trace],
        &["export", "--to", "svg", trace],
        &["run", "--backend", "sim", "--headless", "--json", scenario],
        &["trace", "--headless", "--json", "--", "true", &evil],
        &["check", scenario],
        &["check", "--format", "json", scenario],
        &["export", "--to", "cast", trace],
    ] {
        let output = cuptop(args);
        assert!(!output.stdout.is_empty(), "{args:?}: {output:?}");
        assert_plain(&args[..2].join(" "), &output);
    }
    // The same to whoever parses it.
    let json = cuptop(&["report", "--json", trace]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["source"]["path"], trace);
}

#[test]
fn names_of_what_is_not_there_are_only_text() {
    let path = format!("no-{EVIL}.json");
    let scenario = format!("no-{EVIL}");
    for args in [
        ["report", path.as_str()],
        ["check", &scenario],
        ["check", &format!("{scenario}.toml")],
    ] {
        let output = cuptop(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_plain(args[0], &output);
    }
    for args in [
        vec!["run", "--headless", "--backend", "sim", &scenario],
        vec![
            "run",
            "--headless",
            "--backend",
            "sim",
            "--variant",
            &scenario,
            "pipeline",
        ],
    ] {
        let output = cuptop(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty());
        assert_plain("run", &output);
    }
}

#[test]
fn words_of_a_database_are_only_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hostile.sqlite");
    let base = rusqlite::Connection::open(&path).expect("a database");
    base.execute_batch(&format!(
        "CREATE TABLE StringIds (id INTEGER, value TEXT);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, \"end\" INTEGER, deviceId INTEGER,
           contextId INTEGER, streamId INTEGER, correlationId INTEGER, shortName INTEGER, demangledName INTEGER,
           gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
         CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER);
         INSERT INTO StringIds VALUES (1, 'kernel-word{EVIL}');
         INSERT INTO TARGET_INFO_GPU VALUES (0, 'gpu-word{EVIL}', 0);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 1, 7, 1, 1, 1, 1, 1, 1, 32, 1, 1);"
    ))
    .expect("tables");
    let path = path.to_str().expect("UTF-8");
    for args in [
        ["report", path].as_slice(),
        &["export", "--to", "csv", path],
    ] {
        let output = cuptop(args);
        assert!(output.status.success(), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("gpu-word"),
            "{output:?}"
        );
        assert_plain(args[0], &output);
    }
    // SQLite quotes what it could not understand.
    base.execute_batch(&format!(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_master SET sql = 'CREATE {EVIL}' WHERE name = 'StringIds';
         UPDATE sqlite_master SET name = 'x{EVIL}' WHERE name = 'TARGET_INFO_GPU';"
    ))
    .expect("a broken schema");
    drop(base);
    let output = cuptop(&["report", path]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!output.stderr.is_empty());
    assert_plain("a broken schema", &output);
}

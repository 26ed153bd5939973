//! What several tests of files need.

#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod job;
pub(crate) mod made;

use std::path::PathBuf;

use activity::feed::{Message, Outcome, Progress};
use readers::file::{self, OpenTrace};
use trace::{SourceInfo, Trace};

/// Everything that came through a feed.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) trace: Trace,
    pub(crate) outcome: Outcome,
    pub(crate) notices: Vec<String>,
    pub(crate) progress: Vec<Progress>,
}

/// Opens files and waits for the end.
pub(crate) fn load(paths: &[PathBuf]) -> Loaded {
    drain(file::open(paths, &mut |_| {}).expect("the files can be opened"))
}

/// Takes everything that a timeline has to give.
pub(crate) fn drain(opened: OpenTrace) -> Loaded {
    let mut loaded = Loaded {
        trace: Trace::new(SourceInfo {
            simulated: opened.simulated,
            ..SourceInfo::default()
        }),
        outcome: Outcome::Stopped,
        notices: Vec::new(),
        progress: Vec::new(),
    };
    for message in opened.feed.receiver() {
        match message {
            Message::Batch(batch) => loaded.trace.apply(batch),
            Message::Progress(progress) => loaded.progress.push(progress),
            Message::Notice { text, .. } => loaded.notices.push(text),
            Message::Output { .. } | Message::Status(_) => {}
            Message::Finished(outcome) => {
                loaded.outcome = outcome;
                break;
            }
        }
    }
    loaded
}

/// Folders of real traces, each with the figures that an oracle printed of them (`expected.jsonl`): the one of
/// this repository, and those that `CUPTOP_TEST_TRACES` names. `tests/data/traces/README.md` says where to get more.
pub(crate) fn trace_folders() -> Vec<PathBuf> {
    let named = std::env::var_os("CUPTOP_TEST_TRACES").unwrap_or_default();
    let own = data("traces");
    std::iter::once(own)
        .chain(std::env::split_paths(&named).filter(|it| it.as_os_str() != ""))
        .inspect(|it| assert!(it.join("expected.jsonl").is_file(), "{}", it.display()))
        .collect()
}

/// Every real trace at hand, with its line of `expected.jsonl`.
pub(crate) fn real_traces() -> Vec<(PathBuf, serde_json::Value)> {
    let mut traces = Vec::new();
    for folder in trace_folders() {
        let lines = std::fs::read_to_string(folder.join("expected.jsonl")).expect("figures");
        for line in lines.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            let name = line["trace"].as_str().expect("a name");
            traces.push((folder.join(name), line));
        }
    }
    assert!(traces.len() >= 4, "the repository's own traces are there");
    traces
}

/// The figures as JSON, without what the oracle's lines do not have.
pub(crate) fn figures(trace: &Trace) -> serde_json::Value {
    let mut list = serde_json::to_value(figures::testing::whole(trace)).expect("JSON");
    for device in list.as_array_mut().expect("a list") {
        let fields = device.as_object_mut().expect("an object");
        fields.remove("name");
        fields.remove("idle");
    }
    list
}

/// A file of tests/data.
pub(crate) fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// A database that these statements make, in a folder of its own.
pub(crate) fn exported(name: &str, sql: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let database = rusqlite::Connection::open(&path).expect("a database");
    database
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; BEGIN")
        .expect("SQL");
    database.execute_batch(sql).expect("SQL");
    database.execute_batch("COMMIT").expect("SQL");
    (folder, path)
}

//! Figures of real traces against an independent implementation of their definitions.
//!
//! The traces are large and lie beside the checkout where they are at hand; without them the test
//! says that it was skipped.

use std::path::{Path, PathBuf};

use cuptop::activity::feed::{Message, Outcome};
use cuptop::analysis::figures::Peaks;
use cuptop::report::Report;
use cuptop::source::file;
use cuptop::trace::{SourceInfo, Trace};
use serde_json::Value;

/// The traces' folder, where there is one.
fn traces() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["../shared/traces", "../../shared/traces"]
        .iter()
        .map(|folder| root.join(folder))
        .find(|folder| folder.join("expected.jsonl").exists())
}

fn load(path: &Path) -> Trace {
    let opened = file::open(&[path.to_owned()]).expect("a trace");
    let mut trace = Trace::new(SourceInfo::default());
    loop {
        match opened.feed.receiver().recv().expect("a last message") {
            Message::Batch(batch) => trace.apply(batch),
            Message::Finished(outcome) => {
                assert_eq!(outcome, Outcome::Complete, "{}", path.display());
                return trace;
            }
            _ => {}
        }
    }
}

#[test]
fn figures_of_real_traces_are_those_of_the_reference() {
    let Some(folder) = traces() else {
        eprintln!("skipped: no ../shared/traces beside this checkout");
        return;
    };
    let expected = std::fs::read_to_string(folder.join("expected.jsonl")).expect("figures");
    let mut compared = 0;
    for line in expected.lines() {
        let expected: Value = serde_json::from_str(line).expect("a line of JSON");
        let name = expected["trace"].as_str().expect("a name");
        let report = Report::new(&load(&folder.join(name)), None, Peaks::default());
        let found: Value = serde_json::from_str(&report.json().expect("JSON")).expect("valid JSON");
        let (expected, found) = (&expected["devices"], &found["devices"]);
        let count = expected.as_array().expect("devices").len();
        assert_eq!(found.as_array().expect("devices").len(), count, "{name}");
        for device in 0..count {
            for (key, value) in expected[device].as_object().expect("figures") {
                assert_eq!(&found[device][key], value, "{name} device {device}: {key}");
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "no figure was compared");
}

/// The rules that find something in a trace.
fn rules(folder: &Path, name: &str) -> Vec<&'static str> {
    let report = Report::new(&load(&folder.join(name)), None, Peaks::default());
    report.findings.iter().map(|f| f.rule).collect()
}

#[test]
fn rules_find_in_real_traces_what_is_known_of_them() {
    let Some(folder) = traces() else {
        eprintln!("skipped: no ../shared/traces beside this checkout");
        return;
    };
    // What each trace is known to show, and what it is known not to.
    let cases: [(&str, &[&str], &[&str]); 7] = [
        (
            "a100_launch_bound.json.gz",
            &["launch-bound"],
            &["tiny-copies"],
        ),
        // 44 % of its kernels are short, and its queue is up to 1022 deep.
        (
            "v100_gpu_bound.json.gz",
            &[],
            &["launch-bound", "sync-in-loop"],
        ),
        (
            "h200_first_sum.json.gz",
            &["tiny-copies", "sync-in-loop"],
            &["pageable-copy"],
        ),
        (
            "h200_nested_sin.json.gz",
            &["pageable-copy"],
            &["launch-bound", "tiny-copies"],
        ),
        (
            "h200_sequential.json.gz",
            &["no-overlap", "sync-in-loop"],
            &["pageable-copy"],
        ),
        (
            "h200_streamed.json.gz",
            &[],
            &["no-overlap", "sync-in-loop", "launch-bound"],
        ),
        (
            "h100_bert_small.json.gz",
            &["launch-bound"],
            &["no-overlap"],
        ),
    ];
    for (name, there, absent) in cases {
        let found = rules(&folder, name);
        for rule in there {
            assert!(
                found.contains(rule),
                "{rule} is not among {found:?} in {name}"
            );
        }
        for rule in absent {
            assert!(!found.contains(rule), "{rule} is among {found:?} in {name}");
        }
    }
}

//! Trace files that are none, that break off, that lie: each ends in words, and nothing that was read is lost.

use std::io::Write;

use crate::common::{data, drain, exported, figures, load};
use activity::feed::{Message, Outcome};
use proptest::prelude::*;
use readers::file::{self, Format, OpenError};

#[test]
fn what_is_no_trace_is_refused_with_a_list_of_what_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = exported("other.sqlite", "CREATE TABLE t (a);");
    let cases: [(&str, &[u8], &str); 7] = [
        ("a.nsys-rep", b"\x01\x02\x03\x04", "export it first"),
        ("empty.json", b"", "it is empty"),
        ("prose.txt", b"Dear reader", "neither JSON"),
        (
            "config.json",
            br#"{"name": "x", "list": [1, 2]}"#,
            "without \"traceEvents\"",
        ),
        (
            "numbers.json",
            b"[1, 2, 3]",
            "a JSON list, but not of events",
        ),
        ("program", b"\x7fELF\x02\x01\x01\0", "neither JSON"),
        (
            "bad.sqlite",
            b"SQLite format 3\0 and then nothing",
            "damaged",
        ),
    ];
    for (name, content, what) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("a file");
        let error = file::open(&[path], &mut |_| {})
            .expect_err(name)
            .to_string();
        assert!(
            error.contains(what) && error.contains("Nsight Systems exports"),
            "{error}"
        );
    }
    let error = file::open(&[database.1], &mut |_| {})
        .expect_err("no export")
        .to_string();
    assert!(error.contains("without the tables"), "{error}");
    let missing = file::open(&[folder.path().join("missing.json")], &mut |_| {});
    assert!(matches!(missing, Err(OpenError::Io { .. })));
    assert!(matches!(
        file::open(&[], &mut |_| {}),
        Err(OpenError::Nothing)
    ));
}

#[test]
fn a_trace_that_breaks_off_keeps_what_was_read() {
    let whole = std::fs::read_to_string(data("small.json")).expect("a file");
    let at = whole.find("Memset (Device)").expect("the memset");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cut.json");
    std::fs::write(&path, &whole[..at]).expect("a file");
    let loaded = load(&[path]);
    let Outcome::Failed(failure) = &loaded.outcome else {
        panic!("{:?}", loaded.outcome);
    };
    assert!(
        failure.message.contains(&format!("byte {at}")),
        "{}",
        failure.message
    );
    assert_eq!(figures(&loaded.trace)[0]["ops"], 3);

    // The same, cut off within gzip.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(whole.as_bytes()).expect("gzip");
    let mut packed = packed.finish().expect("gzip");
    packed.truncate(packed.len() / 2);
    let path = folder.path().join("cut.json.gz");
    std::fs::write(&path, &packed).expect("a file");
    let opened = file::open(&[path], &mut |_| {}).expect("it begins like a trace");
    assert_eq!(opened.format, Format::Kineto);
    assert!(matches!(drain(opened).outcome, Outcome::Failed(_)));
}

#[test]
fn reading_can_be_cancelled() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.json");
    let event = r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":{"device":0}},"#;
    std::fs::write(&path, format!("[{}", event.repeat(200_000))).expect("a file");
    let opened = file::open(std::slice::from_ref(&path), &mut |_| {}).expect("a trace");
    let (mut outcome, mut operations) = (None, 0);
    for message in opened.feed.receiver() {
        match message {
            Message::Progress(progress) => {
                assert!(progress.done <= progress.total);
                opened.feed.stop.stop();
            }
            Message::Batch(batch) => operations += batch.items.len(),
            Message::Finished(last) => outcome = Some(last),
            _ => {}
        }
    }
    assert_eq!(outcome, Some(Outcome::Stopped));
    assert!(operations < 200_000, "{operations}");
    // Who leaves in the middle of it is let go.
    let opened = file::open(&[path], &mut |_| {}).expect("a trace");
    let mut messages = opened.feed.receiver().iter();
    assert!(messages.any(|message| matches!(message, Message::Progress(_))));
    drop(opened);
}

/// Opens bytes that may be anything; whatever happens, it ends and says how.
fn survive(name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    if let Ok(opened) = file::open(&[path], &mut |_| {}) {
        let loaded = drain(opened);
        let _ = figures(&loaded.trace);
    }
}

fn mutate(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    for (at, how, byte) in changes {
        let at = at.index(bytes.len());
        match how % 4 {
            0 => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            2 => drop(bytes.remove(at)),
            _ => {
                let end = (at + usize::from(*byte)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    let bytes = prop_oneof![
        any::<u8>(),
        prop::sample::select(b"{}[]\",:-9e.\\".to_vec())
    ];
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), bytes), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_damaged_json_trace_ends_in_words(changes in changes()) {
        let bytes = std::fs::read(data("small.json")).expect("a file");
        survive("x.json", &mutate(bytes, &changes));
    }

    #[test]
    fn a_damaged_export_ends_in_words(changes in changes()) {
        let sql = std::fs::read_to_string(data("small.sql")).expect("a file");
        let (_folder, path) = exported("x.sqlite", &sql);
        let bytes = std::fs::read(path).expect("a file");
        survive("y.sqlite", &mutate(bytes, &changes));
    }

    #[test]
    fn wild_numbers_do_no_harm(ts in "-?[0-9]{1,25}(\\.[0-9]{1,25})?(e-?[0-9]{1,4})?", dur in "-?[0-9]{1,20}", device in any::<i64>(), base in any::<i64>()) {
        let text = format!(
            r#"{{"baseTimeNanoseconds": {base}, "traceEvents": [
                {{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {ts}, "dur": {dur}, "args": {{"device": {device}, "stream": {device}}}}},
                {{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {{"device": 0, "bytes": {device}}}}}]}}"#
        );
        survive("x.json", text.as_bytes());
    }
}

use proptest::prelude::*;

use super::*;
use crate::kineto::event::Args;

/// Everything that the two ways read of an event, as words.
fn seen(event: &Event<'_>) -> String {
    // An operator's arguments are never asked for, and are only read by serde.
    let args = match event.category.0.as_ref() {
        "cpu_op" | "python_function" => Args::default(),
        _ => Args::read(event).into_owned(),
    };
    let Event {
        phase,
        category,
        name,
        pid,
        tid,
        ts,
        dur,
        ..
    } = event;
    format!("{phase:?} {category:?} {name:?} {pid:?} {tid:?} {ts:?} {dur:?} {args:?}")
}

/// That serde reads the same, if the fast way reads it at all. Whether it does.
fn agree(text: &[u8]) -> bool {
    let mut fast = Event::default();
    let Some(length) = event(text, &mut fast) else {
        return false;
    };
    let text = &text[..length];
    let repaired = super::super::repair::repair(text);
    let careful = Event::parse(text)
        .or_else(|_| Event::parse(repaired.as_bytes()))
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)));
    match fast.is_passed_over() {
        true => assert!(careful.is_passed_over()),
        false => assert_eq!(seen(&fast), seen(&careful)),
    }
    true
}

const KERNEL: &str = r#"{
    "ph": "X", "cat": "kernel", "name": "void f<4>(int, \u00e4)", "pid": 0, "tid": 7,
    "ts": 4368170406511.092, "dur": 9.711,
    "args": {
      "External id": 5, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 5,
      "registers per thread": 32, "shared memory": 0, "blocks per SM": 0.969697, "warps": [1, [], {"a": "b"}],
      "grid": [128, 1, 1], "block": [256, 1, 1], "graph node id": 77, "est. achieved occupancy %": 12
    }
  }"#;

#[test]
fn what_profilers_write_is_read_the_fast_way() {
    let cases = [
        &KERNEL.replace("\\u00e4", "\u{e4}"),
        r#"{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":0,"args":{"name":"python"}}"#,
        r#"{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 5, "tid": 5, "ts": 1.5, "dur": 2, "args": {"Input Dims": [[1, 2], []], "x": -1.5e-3}} ,"#,
        r#"{"name": "cudaMemcpy", "cat": "cuda_runtime", "args": {"correlation": 9, "return value": -1}, "ts": -1, "dur": 0, "ph": "X"}"#,
        r#"{"ph": "X", "cat": "cuda_sync", "args": {"cuda_sync_kind": "Event Sync", "stream": 7, "extra": null, "y": true, "z": false}}"#,
        r#"{"ph": "s", "id": 5, "pid": 0, "tid": 7, "cat": "ac2g", "name": "ac2g"}"#,
        "{\n  \"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"a\"}",
        r#"{"name": "a", "cat": "gpu_user_annotation", "ph": "X", "args": {"x": 1}}"#,
        "{ }",
    ];
    for text in cases {
        assert!(agree(text.as_bytes()), "{text}");
    }
}

#[test]
fn what_is_not_of_the_common_shape_is_left_to_serde() {
    let cases = [
        KERNEL,
        r#"{"ph": "X", "pid": "7"}"#,
        r#"{"ph": "X", "pid": 7.0}"#,
        r#"{"ph": "X", "pid": 07}"#,
        r#"{"ph": "X", "pid": -0}"#,
        r#"{"ph": "X", "pid": 1234567890123456789}"#,
        r#"{"ph": "X", "ts": "7"}"#,
        r#"{"ph": "X", "ts": .5}"#,
        r#"{"ph": "X", "ts": 5.}"#,
        r#"{"ph": "X", "args": []}"#,
        r#"{"ph": "X", "args": {}, "args": {}}"#,
        r#"{"ph": "X", "args": {"grid": [1, 2]}}"#,
        r#"{"ph": "X", "x": [1 2]}"#,
        r#"{"ph": "X", "x": nul}"#,
        r#"{"ph": "X", "x": NaN}"#,
        r#"{"ph": "X", "x": "\q"}"#,
        r#"{"ph": "X",}"#,
        r#"{"ph": "X" "x": 1}"#,
        "{\"name\": \"a\u{1}b\"}",
        r#"{"ph": "X""#,
        r#"["ph"]"#,
        "",
    ];
    for text in cases {
        assert!(!agree(text.as_bytes()), "{text}");
    }
    let deep = format!("{{\"x\": {}1{}}}", "[".repeat(40), "]".repeat(40));
    assert!(!agree(deep.as_bytes()));
}

#[test]
fn a_flat_object_ends_where_its_text_says() {
    let flow = r#"{"ph": "s", "id": 5, "name": "a,b"}"#;
    assert_eq!(flat(format!("{flow}, {{}}").as_bytes()), Some(flow.len()));
    for other in [
        r#"{"a": "}"}"#,
        r#"{"a": {}}"#,
        r#"{"a": [}"#,
        r#"{"a": "\""}"#,
        r#"{"a": 1"#,
        "1}",
    ] {
        assert_eq!(flat(other.as_bytes()), None, "{other}");
    }
}

proptest! {
    /// Any few bytes of an event changed, put in or taken out: never is something read that serde reads otherwise.
    #[test]
    fn whatever_is_read_serde_reads_the_same(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, prop::sample::select(b"\"\\{}[]:,0159.-eEnt \n\x01\xc3\xa4".to_vec())), 0..4),
    ) {
        let mut text = KERNEL.replace("\\u00e4", "\u{e4}").into_bytes();
        for (at, kind, byte) in changes {
            let at = at.index(text.len());
            match kind {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => {
                    text.remove(at);
                }
            }
        }
        agree(&text);
        if let Some(length) = flat(&text) {
            let mut scanner = super::super::scan::Scanner::new(&text[..]);
            prop_assert_eq!(scanner.value().expect("a value").len(), length);
        }
    }

    #[test]
    fn a_quote_is_found_where_it_is(text in prop::collection::vec(prop::sample::select(b"\"\\ab\x21\x23\x5b\x5d\xa2\xdc\x00".to_vec()), 0..60)) {
        let first = text.iter().position(|b| matches!(b, b'"' | b'\\'));
        prop_assert_eq!(closing(&text), first.filter(|&at| text[at] == b'"'));
    }
}

//! Twelve questions on four recordings: the call that answers each, what it may cost to read, and the answer. Figures come
//! from `tests/data/traces/oracle.py`, not from cuptop.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn each_question_is_answered_by_its_call_in_few_bytes() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let text = std::fs::read_to_string(data.join("questions.json")).expect("questions");
    let questions: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(questions.len(), 12);
    for asked in &questions {
        let words = asked["call"].as_array().expect("words");
        let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
            .args(words.iter().map(|it| it.as_str().expect("a word")))
            .current_dir(data.join("traces"))
            .output()
            .expect("it runs");
        let about = &asked["question"];
        let code = asked["code"].as_i64().unwrap_or(0);
        assert_eq!(output.status.code().map(i64::from), Some(code), "{about}");
        let most = usize::try_from(asked["most_bytes"].as_u64().expect("bytes")).expect("bytes");
        let length = output.stdout.len();
        assert!((1..=most).contains(&length), "{about}: {length} bytes");
        let said = String::from_utf8(output.stdout).expect("text");
        if let Some(lines) = asked["lines"].as_u64() {
            assert_eq!(said.lines().count() as u64, lines, "{about}");
        }
        let answer = asked["answer"].as_object().expect("an answer");
        for (place, expected) in answer {
            let whole: Value = serde_json::from_str(&said).expect("JSON");
            assert_eq!(whole.pointer(place), Some(expected), "{about}: {place}");
        }
    }
}

//! Corrects other programs' output that is nearly JSON.

/// Corrects a value that Python's json module writes or accepts, and serde would refuse. Bare `NaN` and `inf` become
/// null, control characters and broken UTF-8 become U+FFFD.
pub(super) fn repair(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let mut out = String::with_capacity(text.len());
    let (mut is_string, mut is_escaped) = (false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if is_string {
            is_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            out.push(if c.is_ascii_control() { '\u{fffd}' } else { c });
            continue;
        }
        is_string = c == '"';
        if !c.is_alphanumeric() && !matches!(c, '-' | '+' | '.') {
            out.push(c);
            continue;
        }
        let mut word = String::from(c);
        while let Some(&c) = rest.peek()
            && (c.is_alphanumeric() || matches!(c, '-' | '+' | '.'))
        {
            word.push(c);
            rest.next();
        }
        let is_known = matches!(word.as_str(), "true" | "false" | "null")
            || serde_json::from_str::<serde::de::IgnoredAny>(&word).is_ok();
        out.push_str(if is_known { &word } else { "null" });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn repairing_good_json_changes_nothing(
            list in prop::collection::vec("[a-z\"\\\\{}\\[\\],:\u{e9}\n]{0,8}", 0..6),
            number in any::<i64>(),
        ) {
            let text = serde_json::json!([list, {"a": number, "b": [true, null, -1.5e3]}]).to_string();
            prop_assert_eq!(repair(text.as_bytes()), text);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\a1 \n\xff".to_vec()), 0..200)) {
            let _ = repair(&bytes);
        }
    }

    #[test]
    fn what_python_writes_is_put_right() {
        let text =
            b"{\"gbps\": inf, \"x\": [NaN, -Infinity, -1.5e3, true], \"inf\": \"nan\x01\xff\"}";
        assert_eq!(
            repair(text),
            "{\"gbps\": null, \"x\": [null, null, -1.5e3, true], \"inf\": \"nan\u{fffd}\u{fffd}\"}"
        );
    }
}

use std::io::Read as _;

use activity::Ns;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::*;

/// A page with a name in all its places.
fn page(name: &str, unit: Ns) -> String {
    let mark = |start: Ns, end: Ns| PageMark {
        span: Span::new(start, end),
        look: 0,
    };
    let row = |kind, marks| PageRow {
        kind,
        label: name.to_owned(),
        used: Some(Span::new(1_000, 9_000)),
        marks,
    };
    let timeline = Timeline {
        extent: Span::new(1_000, 11_000),
        opened: Span::new(2_000, 3_000),
        steps: vec![PageStep {
            span: Span::new(1_000, 9_000),
            is_odd: true,
        }],
        looks: vec![Look {
            short: name.to_owned(),
            whole: String::new(),
            colors: [0x10_20_30, 0x40_50_60],
        }],
        rows: vec![
            row(PageRowKind::Gpu, vec![mark(2_000, 4_500)]),
            row(
                PageRowKind::Stream,
                vec![mark(1_000, 2_000), mark(1_500, 1_501), mark(4_500, 9_000)],
            ),
        ],
        left_out: 7,
        unit,
    };
    let report = format!("### {name}\n\n- {name}\n\n| {name} | b |\n|---|--:|\n| {name} | 1 |\n");
    let mut out = Vec::new();
    let page = TracePage {
        title: name,
        report: &report,
        picture: "<svg><style>text{font:14px}</style></svg>",
        timeline: &timeline,
    };
    page.write(&mut out).expect("memory can be written to");
    String::from_utf8(out).expect("UTF-8")
}

/// The head of a page's data, and the numbers behind it.
pub(crate) fn unpacked(page: &str) -> (Value, Vec<u64>) {
    let packed = STANDARD
        .decode(between(page, "id=\"data\">", "</script>"))
        .expect("base64");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .expect("gzip");
    let (size, rest) = bytes.split_at(4);
    let size = u32::from_le_bytes(size.try_into().expect("four bytes")) as usize;
    let head = serde_json::from_slice(&rest[..size]).expect("JSON");
    let (mut numbers, mut value, mut shift) = (Vec::new(), 0, 0);
    for byte in &rest[size..] {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(value);
            (value, shift) = (0, 0);
        }
    }
    (head, numbers)
}

#[test]
fn the_data_holds_every_mark_to_the_nanosecond() {
    let (head, numbers) = unpacked(&page("axpy", 1));
    assert_eq!(head["length"], 10_000);
    assert_eq!(head["opened"], serde_json::json!([1_000, 1_000]));
    assert_eq!(head["steps"], serde_json::json!([[0, 8_000, true]]));
    assert_eq!(head["left_out"], 7);
    assert_eq!(head["rows"][1]["marks"], 3);
    // Of each row begins, each since the one before, then lengths, then looks.
    let gpu = [1_000, 2_500, 0];
    let stream = [[0, 500, 3_000], [1_000, 1, 4_500], [0, 0, 0]];
    assert_eq!(numbers, [&gpu[..], &stream.concat()].concat());
}

#[test]
fn rounded_times_say_their_unit_and_do_not_drift() {
    let (head, numbers) = unpacked(&page("axpy", 256));
    assert_eq!(head["unit"], 256);
    // 1,000, then 0, 500 and 3,500 after the timeline's begin.
    assert_eq!(numbers[0], 3);
    assert_eq!(numbers[3..6], [0, 1, 12]);
}

#[test]
fn no_name_is_markup_or_leads_anywhere() {
    for name in [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1)) ![b](https://example.org/x.png)",
        "<svg onload=alert(1)> <!-- --> \u{2028} \u{202e}",
        "a style=\"text-align: right\" </article><base href=//example.org>",
        "<style>*{display:none}</style> | x\n### y",
    ] {
        let page = page(name, 1);
        assert_eq!(page.matches("<script").count(), 2, "{name}");
        assert_eq!(page.matches("<style").count(), 2, "{name}");
        for tag in [
            "<img", "<a ", "<a href", "<base", "<svg o", "<iframe", "<link",
        ] {
            assert!(!page.contains(tag), "{tag} of {name}");
        }
        let (head, _) = unpacked(&page);
        assert_eq!(
            head["looks"][0]["short"], name,
            "the value stays in the data"
        );
    }
}

/// The digests are those that `openssl dgst -sha256 -binary | base64` gives for the texts.
#[test]
fn a_policy_names_texts_by_their_digest() {
    assert_eq!(
        hash(""),
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    );
    assert_eq!(
        hash("abc"),
        "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
    );
    let page = page("axpy", 1);
    let script = between(&page, "</script>\n<script>", "</script>");
    let policy = between(&page, "Security-Policy\" content=\"", "\">");
    assert!(policy.contains(&format!("script-src '{}'", hash(script))));
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    // Neither file asks another place for anything.
    for text in [SCRIPT, STYLE] {
        assert!(
            !["http", "fetch(", "import(", "url(", "XMLHttp"]
                .iter()
                .any(|word| text.contains(word))
        );
    }
}

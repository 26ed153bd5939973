//! Hostile input: whatever the text, compiling ends, within bounds, with a plan or with diagnostics
//! that can be shown.

use cuptop::bundled::LIBRARY;
use proptest::prelude::*;
use scenario::plan::MAX_OPS;
use scenario::{Overrides, Source, compile, template};

/// Compiles and renders a text; a plan must keep the promises of its documentation.
fn survives(text: &str, overrides: &Overrides) {
    let source = Source {
        name: "fuzz.toml".to_owned(),
        path: None,
        text: text.into(),
        kernel_dir: None,
        library: LIBRARY,
    };
    let diagnostics = match compile(&source, overrides) {
        Ok(compiled) => {
            for variant in &compiled.plan.variants {
                assert!(variant.ops.len() <= MAX_OPS && variant.repeat >= 1);
                for op in &variant.ops {
                    assert!((op.site as usize) < compiled.plan.sites.len());
                }
            }
            compiled.warnings
        }
        Err(diagnostics) => {
            assert!(diagnostics.has_errors(), "refused without a reason");
            diagnostics
        }
    };
    let rendered = diagnostics.render(false);
    let steers = |c: char| c.is_control() && c != '\n';
    assert!(
        !rendered.chars().any(steers),
        "control characters in {rendered:?}"
    );
    for item in &diagnostics.items {
        assert!(
            text.get(item.span.clone()).is_some(),
            "a span outside of the text"
        );
    }
}

/// Words of the language, and some that break it.
const WORDS: &[&str] = &[
    "name",
    "params",
    "buffers",
    "kernels",
    "variant",
    "sweep",
    "expect",
    "streams",
    "steps",
    "bytes",
    "count",
    "host",
    "h2d",
    "d2h",
    "launch",
    "sync",
    "for",
    "do",
    "if",
    "else",
    "capture",
    "alloc",
    "free",
    "record",
    "wait",
    "=",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    ",",
    ".",
    "\n",
    "\"",
    "'",
    "\"\"\"",
    "\\u001b",
    "\u{1b}[31m",
    "\u{202e}",
    "é",
    "0",
    "-1",
    "8",
    "1e308",
    "9223372036854775807",
    "10 ** 9",
    "64 MiB",
    "200 us",
    "i in 0..n",
    "i in 0..9 step 0",
    "x[i]",
    "s{i}",
    "s{",
    "n / 0",
    "n * n",
    "((((",
    "))))",
    ">= 2",
    "true",
    "1979-05-27",
    "#",
    " ",
    "..",
    "%",
    "\"file\"",
    "/dev/zero",
];

/// A bundled scenario, or the template, with pieces cut out, doubled, or replaced by words.
fn mutated() -> impl Strategy<Value = String> {
    let whole: Vec<String> = LIBRARY
        .scenarios
        .iter()
        .map(|scenario| scenario.text.to_owned())
        .chain([template("fuzz")])
        .collect();
    let edit = (
        any::<prop::sample::Index>(),
        0..40usize,
        0..3u8,
        prop::sample::select(WORDS),
    );
    (
        prop::sample::select(whole),
        prop::collection::vec(edit, 1..4),
    )
        .prop_map(|(mut text, edits)| {
            for (at, length, how, word) in edits {
                let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
                if starts.is_empty() {
                    return word.to_owned();
                }
                let from = at.index(starts.len());
                let end = starts.get(from + length).copied().unwrap_or(text.len());
                let piece = text[starts[from]..end].to_owned();
                let new = match how {
                    0 => String::new(),
                    1 => format!("{piece}{piece}"),
                    _ => word.to_owned(),
                };
                text.replace_range(starts[from]..end, &new);
            }
            text
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        survives(&text, &Overrides::default());
    }

    #[test]
    fn any_words_are_survived(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        survives(&words.join(" "), &Overrides::default());
        survives(&words.concat(), &Overrides::default());
    }

    #[test]
    fn any_change_of_a_scenario_is_survived(text in mutated()) {
        survives(&text, &Overrides::default());
    }

    #[test]
    fn any_override_is_survived(
        scenario in prop::sample::select(LIBRARY.scenarios),
        name in "[a-z]{0,8}|n|batches|size",
        value in any::<String>(),
        variant in any::<Option<String>>(),
    ) {
        let overrides = Overrides { set: vec![(name, value)], variant, repeat: None };
        survives(scenario.text, &overrides);
    }

    #[test]
    fn any_expression_is_survived(expression in "[-+*/%!()<>=&|0-9a-z. ]{0,80}") {
        survives(&format!("name = 't'\n[params]\nn = '{expression}'\n"), &Overrides::default());
        survives(&format!("name = 't'\n[[variant]]\nname = 'v'\nsteps = [{{ for = 'i in {expression}', do = [] }}]"), &Overrides::default());
    }
}

#[test]
fn deep_nesting_is_refused_and_not_a_stack_overflow() {
    let open = "{ for = \"i in 0..1\", do = [".repeat(5000);
    survives(
        &format!("[[variant]]\nname = \"v\"\nsteps = [{open}"),
        &Overrides::default(),
    );
    survives(
        &format!("name = {}", "[".repeat(100_000)),
        &Overrides::default(),
    );
    let sum = format!("[params]\nn = \"{}\"", "1+".repeat(100_000));
    survives(&sum, &Overrides::default());
}

#[test]
fn large_files_end() {
    let steps = "{ h2d = \"x\", stream = \"a\" }, { d2h = \"x\", stream = \"b\" },".repeat(4000);
    let file = format!(
        "name = \"t\"\n[buffers.x]\nbytes = 4\nhost = \"pinned\"\n[[variant]]\nname = \"v\"\nsteps = [{steps}]"
    );
    survives(&file, &Overrides::default());
    survives(&"x = 1\n".repeat(100_000), &Overrides::default());
    let names: String = (0..20_000).map(|at| format!("k{at} = 1\n")).collect();
    survives(&names, &Overrides::default());
}

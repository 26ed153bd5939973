//! Every file of `tests/invalid_scenarios` is refused (or warned of) for the reason that its first
//! line gives: `# error: LINE:COLUMN | fragment | …`, all of which the rendered diagnostics must contain.

use cuptop::bundled::LIBRARY;
use std::path::Path;

use scenario::{Overrides, Severity, Source, compile};

use crate::source_of;

/// What a file gives, or what is missing from it.
fn check(path: &Path) -> Result<(), String> {
    let source = Source::read(path, LIBRARY).map_err(|error| error.to_string())?;
    let first = source.text.lines().next().unwrap_or_default();
    let (kind, rest) = first
        .strip_prefix("# ")
        .and_then(|line| line.split_once(": "))
        .ok_or("the first line does not say what is expected")?;
    let (diagnostics, severity) = match (kind, compile(&source, &Overrides::default())) {
        ("error", Err(diagnostics)) => (diagnostics, Severity::Error),
        ("warning", Ok(compiled)) => (compiled.warnings, Severity::Warning),
        ("warning", Err(diagnostics)) => {
            return Err(format!("is refused:\n{}", diagnostics.render(false)));
        }
        _ => return Err("compiles".to_owned()),
    };
    let rendered = diagnostics.render(false);
    let places: Vec<String> = diagnostics
        .items
        .iter()
        .filter(|item| item.severity == severity)
        .map(|item| format!("{}:{}", item.line, item.column))
        .collect();
    for fragment in rest.split(" | ").filter(|fragment| !fragment.is_empty()) {
        let is_place = fragment.split_once(':').is_some_and(|(line, column)| {
            line.parse::<u32>().is_ok() && column.parse::<u32>().is_ok()
        });
        let is_there = if is_place {
            places.iter().any(|place| place == fragment)
                && rendered.contains(&format!(":{fragment}\n"))
        } else {
            rendered.contains(fragment)
        };
        if !is_there {
            return Err(format!("lacks {fragment:?}:\n{rendered}"));
        }
    }
    Ok(())
}

#[test]
fn invalid_scenarios_are_refused_for_the_right_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/invalid_scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 40, "{} files", paths.len());
    let wrong: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            Some(format!(
                "{}: {}",
                path.file_stem()?.display(),
                check(path).err()?
            ))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} wrong\n\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_is_no_toml_is_one_mistake_with_its_cure() {
    let good = scenario::template("t");
    let compiled = |text: String| compile(&source_of(&text), &Overrides::default());
    assert!(compiled(good.clone()).is_ok());
    let step = "{ h2d = \"batch[i]\", stream = \"main\" },";
    let end = "stream = \"main\" },\n  ] },\n]\n";
    for (from, to, words) in [
        ("\"16 MiB\"", "16 MiB", "write size = \"16 MiB\""),
        ("\"pinned\"", "“pinned”", "host = \"pinned\""),
        ("batches = 4", "batches = 4;", "leave out the `;`"),
        ("batches = 4", "batches = 4 // four", "begins with `#`"),
        ("batches = 4", "batches: 4", "behind `=`"),
        ("batches = 4", "batches 4", "write batches = 4"),
        ("look_for", "look for", "put a `_`"),
        (step, &step[..step.len() - 1], "put a `,` before this"),
        (step, &step.replace('}', ""), "this `{` is not closed"),
        (end, &end.replace("]\n", "\n"), "this `[` is not closed"),
        (
            end,
            &end.replace("] }", "}"),
            "a `]` is missing before this",
        ),
        (end, &end.replace("]\n", "]\n]\n"), "this `]` closes"),
        (
            "[buffers.batch]",
            "[buffers.batch",
            "this `[` is not closed",
        ),
        ("\"size\"", "\"size", "a \" is missing at its end"),
        (
            "[[variant]]\nname = \"st",
            "[variant]\nname = \"st",
            "write [[variant]]",
        ),
        ("[[variant]]", "[variant]", "write [[variant]]"),
        ("[buffers", "[bufers", "did you mean `buffers`?"),
        ("0..batches", "0..=batches", "ends before its end"),
        ("\"pinned\"", "\"none\"", "set host ="),
    ] {
        let text = match from {
            "[[variant]]" | "0..batches" => good.replace(from, to),
            _ => good.replacen(from, to, 1),
        };
        assert_ne!(text, good, "{from}");
        let found = compiled(text).expect_err(to);
        let shown = found.render(false);
        assert_eq!(found.count(Severity::Error), 1, "{to}:\n{shown}");
        assert!(shown.contains(words), "{to}:\n{shown}");
    }
}

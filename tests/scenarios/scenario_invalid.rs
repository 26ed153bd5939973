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
fn a_mistake_is_told_once_with_its_cure() {
    let good = scenario::template("t");
    let compiled = |text: String| compile(&source_of(&text), &Overrides::default());
    assert!(compiled(good.clone()).is_ok());
    let step = "{ h2d = \"batch[i]\", stream = \"main\" },";
    let end = "stream = \"main\" },\n  ] },\n]\n";
    let variant = "about = \"One stream.\"";
    let until = |share: &str| format!("repeat = {{ until = {share} }}");
    let two_sweeps = "[[sweep]]\nparam = \"size\"\nvalues = [1]\n\n[[sweep]]\nparam = \"batches\"\nvalues = [2]\n\n[buffers.batch]";
    for (from, to, words) in [
        ("\"16 MiB\"", "16 MiB", "write size = \"16 MiB\""),
        ("\"pinned\"", "“pinned”", "host = \"pinned\""),
        ("batches = 4", "batches = 4;", "leave out the `;`"),
        ("batches = 4", "batches = 4 // four", "begins with `#`"),
        ("batches = 4", "batches: 4", "behind `=`"),
        ("batches = 4", "batches 4", "write batches = 4"),
        ("look_for", "look for", "put a `_`"),
        (step, &step[..step.len() - 1], "put a `,` here"),
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
        ("0..batches", "0..=batches", "stops at n - 1"),
        ("\"pinned\"", "\"none\"", "set host ="),
        (end, &end.replace("] }", "] }}"), "this `}` closes"),
        ("[kernels.add]", "[kernels]", "write [kernels.add]"),
        (
            "\"batch\", \"size / 4\"",
            "\"size / 4\", \"batch\"",
            "swap them",
        ),
        ("\"2 * size\"", "\"2 size\"", "a product is `2 * size`"),
        (", on = \"batch[i]\"", "", "add on = \"batch[i]\""),
        ("on = \"batch[i]\"", "on = \"batch\"", "write \"batch[i]\""),
        ("do = [", "steps = [", "did you mean `do`?"),
        (variant, &until("2"), "write it as \"2 %\""),
        (variant, &until("\"0.02\""), "write it as \"2 %\""),
        (
            variant,
            &until("\"2 %\", at_most = 3"),
            "`at_most` is 6 to 1000",
        ),
        ("\">= 1.2\"", "1.2", "as \">= 1.2\""),
        ("\">= 1.2\"", "\"=> 1.2\"", "as \">= 1.2\""),
        ("batches = 4", "batches = -4", "cannot be negative"),
        ("batches = 4", "batches = 0", "and this is 0\n"),
        ("\"16 MiB\"", "0", "and this is 0 B\n"),
        ("block = 256", "block = 2048", "and this is 2048\n"),
        (
            end,
            &end.replace("]\n", "  { sync = \"mian\" },\n]\n"),
            "write sync = \"stream\", stream = \"main\"",
        ),
        (
            step,
            "{ wait = \"done{i}\", stream = \"main\" },",
            "{ record = \"done{i}\", stream = … }",
        ),
        ("[buffers.batch]", two_sweeps, "keep one, as [sweep]"),
        ("16 MiB", "16 MBi", "did you mean `MiB`?"),
        ("16 MiB", "16 M", "write MiB or MB"),
        ("block = 256", "block = [256 1, 1]", "put a `,` here"),
        ("batches = 4", "batches = 4\nbatches = 5", "take one out"),
        (
            "batch[i]\", stream =",
            "batch[i]\", stream = \"a\", stream =",
            "the first one",
        ),
        ("[params]", "", "is `[params]` missing before this?"),
        (
            "[params]",
            "repeat = 20\n[params]",
            "is `[[variant]]` missing before this?",
        ),
        ("[expect]", "", "is `[expect]` missing before this?"),
        (
            "[kernels.add]",
            "",
            "is `[kernels.NAME]` missing before `file`?",
        ),
        (
            "[[variant]]\nname = \"st",
            "name = \"st",
            "is `[[variant]]` missing before this?",
        ),
        (
            "d2h = \"batch[i]\", stream = \"s{i}\" },\n  ] },\n]\n\n[expect]",
            "d2h = \"batch[i + 9]\", stream = \"s{i}\" },\n  ] },\n]\n\n[expect]\n\"streamed.d2h_gbps\" = \">= 1 GB/s\"",
            "index 9 is out of range",
        ),
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

#[test]
fn a_mistake_is_told_where_it_was_made() {
    let good = scenario::template("t");
    let step = "{ h2d = \"batch[i]\", stream = \"main\" },";
    for (from, to, place) in [
        (", on = \"batch[i]\"", "", "{ launch = |\"add\""),
        ("batches = 4", "batches = 0", "batches = |0\n"),
        ("\"16 MiB\"", "0", "size = |0\n"),
        ("[[variant]]", "[variant]", "\n[|variant]\n"),
        (step, &step[..step.len() - 1], "stream = \"main\" }|\n"),
        ("do = [", "steps = [", "0..batches\", |steps = ["),
    ] {
        let text = good.replacen(from, to, 1);
        let found = compile(&source_of(&text), &Overrides::default()).expect_err(to);
        let (before, behind) = place.split_once('|').expect("a place");
        let at = found.items[0].span.start;
        assert!(text[..at].ends_with(before), "{place}: {found:?}");
        assert!(text[at..].starts_with(behind), "{place}: {found:?}");
    }
}

/// What the missing wait orders as well is no second race, and the event that is recorded there is the one to wait for.
#[test]
fn a_race_is_told_once_with_the_event_that_is_there() {
    let text = |wait: &str, record: &str| {
        let streamed = "stream = \"s{i}\" },\n    { launch = \"add\", on = \"batch[i]\", stream = \"s{i}\" },\n";
        let ordered = format!(
            "stream = \"up\" }},\n{record}{wait}    {{ launch = \"add\", on = \"batch[i]\", stream = \"work\" }},\n    \
             {{ record = \"done{{i}}\", stream = \"work\" }},\n    {{ wait = \"done{{i}}\", stream = \"s{{i}}\" }},\n"
        );
        let good = scenario::template("t");
        assert!(good.contains(streamed));
        good.replace(streamed, &ordered)
    };
    let warned = |text: String| {
        let compiled = compile(&source_of(&text), &Overrides::default()).expect("it runs");
        (
            compiled.warnings.count(Severity::Warning),
            compiled.warnings.render(false),
        )
    };
    let record = "    { record = \"filled{i}\", stream = \"up\" },\n";
    let wait = "    { wait = \"filled{i}\", stream = \"work\" },\n";
    assert_eq!(warned(text(wait, record)).0, 0);
    let (count, shown) = warned(text("", record));
    assert_eq!(count, 1, "{shown}");
    let help = "help: before line 46 { wait = \"filled{i}\", stream = \"work\" }\n";
    assert!(shown.contains(help), "{shown}");
    let (count, shown) = warned(text("", ""));
    assert_eq!(count, 1, "{shown}");
    let help = "record = \"done_44\", stream = \"up\" }, and before line 45 { wait = \"done_44\", stream = \"work\" }\n";
    assert!(shown.contains(help), "{shown}");
    let never = scenario::template("t").replacen("0..batches", "batches..0", 1);
    let (_, shown) = warned(never);
    assert!(
        shown.contains("this loop never runs: it goes from 4 to 0"),
        "{shown}"
    );
}

/// The file as its warnings of races say it should be.
fn cured(text: &str, found: &scenario::diagnostics::Diagnostics) -> String {
    let helps = found.items.iter().filter(|it| it.is_race);
    let helps = helps.map(|it| it.help.clone().expect("a cure"));
    let mut added: Vec<(usize, String)> = Vec::new();
    for help in helps {
        for part in help.split(", and before ") {
            let (at, step) = part.split_once(" {").expect("a step");
            let words: Vec<&str> = at.split(' ').collect();
            let line: usize = words.last().expect("a line").parse().expect("a number");
            let is_behind = usize::from(words[0] == "after");
            added.push((line - 1 + is_behind, format!("{{{step},")));
        }
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // From the end on, and what is recorded stands before who waits for it.
    added.sort_by_key(|(at, step)| std::cmp::Reverse((*at, step.contains("wait"))));
    for (at, step) in added {
        lines.insert(at, step);
    }
    lines.join("\n")
}

#[test]
fn the_cure_of_a_race_does_it_when_copied() {
    let bundled = |name: &str| Source::find(name, LIBRARY).expect("it is bundled").text;
    for (name, from, to, races) in [
        ("cross_stream_reuse", "race = true\n", "", 1),
        (
            "three_streams",
            "    { wait = \"up{i}\", stream = \"compute\" },\n",
            "",
            1,
        ),
        (
            "three_streams",
            "    { if = \"i >= slots\", do = [{ wait = \"down{i - slots}\", stream = \"upload\" }] },\n",
            "",
            2,
        ),
        (
            "pipeline",
            "\"product[i]\"], stream = \"s{i}\"",
            "\"product[i]\"], stream = \"t{i}\"",
            2,
        ),
        (
            "pipeline",
            "h2d = \"batch[i]\", stream = \"s",
            "h2d = \"batch[0]\", stream = \"s",
            2,
        ),
    ] {
        let good = bundled(name);
        let text = good.replacen(from, to, 1);
        assert_ne!(*text, *good, "{name}: {from}");
        let compiled = compile(&source_of(&text), &Overrides::default()).expect("it runs");
        let shown = compiled.warnings.render(false);
        assert_eq!(compiled.warnings.count(Severity::Warning), races, "{shown}");
        let text = cured(&text, &compiled.warnings);
        let again = compile(&source_of(&text), &Overrides::default());
        let again = again.unwrap_or_else(|it| panic!("{shown}\n{}", it.render(false)));
        assert!(
            again.warnings.is_empty(),
            "{shown}\n{}",
            again.warnings.render(false)
        );
    }
}

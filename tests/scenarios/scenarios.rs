//! The bundled scenarios, the template and the documentation's example compile; the schema file and
//! the documentation keep up with the language.

use cuptop::bundled::LIBRARY;
use std::path::Path;

use scenario::keys::{self, Key, ValueKind};
use scenario::plan::Plan;
use scenario::view::View;
use scenario::{
    Compiled, FIGURES, Operand, Overrides, Severity, Source, compile, edit, schema, template,
};

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        path: None,
        text: text.into(),
        kernel_dir: None,
        library: LIBRARY,
    }
}

/// Compiles without an error or a warning; notes are fine.
fn clean(source: &Source) -> Compiled {
    let compiled = compile(source, &Overrides::default());
    let compiled = compiled.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let rendered = compiled.warnings.render(false);
    assert_eq!(compiled.warnings.count(Severity::Warning), 0, "{rendered}");
    compiled
}

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn bundled_scenarios_are_clean_and_complete() {
    for bundled in LIBRARY.scenarios {
        let plan = clean(&LIBRARY.source(bundled)).plan;
        for text in [&plan.name, &plan.about, &plan.look_for] {
            assert!(!text.is_empty(), "{} lacks a text", bundled.name);
        }
        assert!(
            !plan.expectations.is_empty(),
            "{} proves nothing",
            bundled.name
        );
        assert!(
            bundled
                .text
                .starts_with("#:schema ../docs/scenario.schema.json\n")
        );
    }
}

#[test]
fn template_is_clean_whatever_the_name() {
    for name in ["mine", "with \"quotes\" and \\ and \u{1b}[31m", "", "TITLE"] {
        clean(&source("new.toml", &template(name)));
    }
    assert_eq!(
        clean(&source("new.toml", &template("mine"))).plan.name,
        "mine"
    );
}

#[test]
fn the_documented_example_is_clean() {
    let text = file("docs/SCENARIOS.md");
    let example = text
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    clean(&source(
        "example.toml",
        example.expect("the first block of TOML"),
    ));
}

#[test]
fn the_documentation_names_every_key_step_and_figure() {
    let text = file("docs/SCENARIOS.md");
    let is_named = |name: &str| {
        let quoted = [
            format!("`{name}`"),
            format!("`{name} = "),
            format!("[{name}"),
            format!("`{name}."),
        ];
        quoted.iter().any(|form| text.contains(form))
    };
    let sections = [
        keys::TOP,
        keys::BUFFER,
        keys::KERNEL,
        keys::STREAM,
        keys::VARIANT,
        keys::PAIR,
        keys::SWEEP,
    ];
    let steps = keys::STEPS
        .iter()
        .flat_map(|form| std::iter::once(&form.head).chain(form.keys));
    for key in sections.into_iter().flatten().chain(steps) {
        assert!(is_named(key.name), "{} is not documented", key.name);
        if let ValueKind::OneOf(words) = key.kind {
            for word in words {
                assert!(
                    text.contains(&format!("\"{word}\"")),
                    "{word} is not documented"
                );
            }
        }
    }
    for spec in FIGURES {
        let operand = match spec.operand {
            Operand::None => "",
            Operand::Variant => ".VARIANT",
            Operand::Kernel => ".KERNEL",
            Operand::Range => ".NAME",
            Operand::Cause => ".CAUSE",
        };
        let row = format!(
            "| `{}{operand}` | {} | `\"{}\"` |",
            spec.name, spec.words, spec.bound
        );
        assert!(text.contains(&row), "this line is missing:\n{row}");
    }
    for (edit, _) in edit::FORMS {
        let forms = [format!("`{edit}`"), format!("`{edit}:")];
        let is_named = forms.iter().any(|form| text.contains(form));
        assert!(is_named, "{edit} is not documented");
    }
}

#[test]
fn the_schema_file_is_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scenario.schema.json");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|it| it == "always") {
        std::fs::write(&path, schema()).expect("docs/ can be written");
    }
    let is_current = file("docs/scenario.schema.json") == schema();
    assert!(
        is_current,
        "docs/scenario.schema.json differs: `.ci/bless` writes it anew"
    );
}

/// A key that the tables name but the parser forgets would be accepted and do nothing: a value that no
/// key can have must be an error, at every key.
#[test]
fn every_key_of_the_tables_is_read() {
    const NEVER: &str = "1979-05-27";
    let refused = |key: &Key, text: &str| {
        let errors = compile(&source("key.toml", text), &Overrides::default()).expect_err(text);
        let rendered = errors.render(false);
        assert!(
            rendered.contains("this is a datetime"),
            "{} is not read:\n{rendered}",
            key.name
        );
    };
    for key in keys::TOP {
        refused(key, &format!("{} = {NEVER}", key.name));
    }
    let tables = [
        ("buffers.x", keys::BUFFER),
        ("kernels.x", keys::KERNEL),
        ("streams.x", keys::STREAM),
    ];
    let lists = [("[variant]", keys::VARIANT), ("[pair]", keys::PAIR)];
    for (table, keys) in tables.into_iter().chain(lists) {
        for key in keys {
            refused(key, &format!("[{table}]\n{} = {NEVER}", key.name));
        }
    }
    for key in keys::SWEEP {
        let others = match key.name {
            "param" => "",
            "step" => "param = \"x\"\nfrom = 1\nto = 1\n",
            _ => "param = \"x\"\n",
        };
        refused(key, &format!("[sweep]\n{others}{} = {NEVER}", key.name));
    }
    for form in keys::STEPS {
        let head = form.head.name;
        refused(
            &form.head,
            &format!("[[variant]]\nsteps = [{{ {head} = {NEVER} }}]"),
        );
        for key in form.keys {
            let before = match (head, key.name) {
                ("host", "time") => "host = \"busy\"".to_owned(),
                ("host", "n") => "host = \"matmul\", of = [\"a\", \"b\", \"c\"]".to_owned(),
                ("host", _) => "host = \"sum\"".to_owned(),
                ("sync", word) => format!("sync = \"{word}\""),
                ("for", _) => "for = \"i in 0..1\"".to_owned(),
                _ => format!("{head} = \"x\""),
            };
            refused(
                key,
                &format!(
                    "[[variant]]\nsteps = [{{ {before}, {} = {NEVER} }}]",
                    key.name
                ),
            );
        }
    }
}

/// The one scenario that shows a race is told so, in a note; no other has one.
#[test]
fn the_bundled_race_is_found_and_no_other() {
    let races: Vec<(&str, String)> = LIBRARY
        .scenarios
        .iter()
        .flat_map(|bundled| {
            let notes = clean(&LIBRARY.source(bundled)).warnings;
            let races: Vec<_> = notes
                .items
                .iter()
                .filter(|note| note.message.contains("race"))
                .map(|note| (bundled.name, note.message.clone()))
                .collect();
            races
        })
        .collect();
    let [(name, message)] = &races[..] else {
        panic!("one race, not {races:#?}");
    };
    assert_eq!(*name, "cross_stream_reuse");
    assert!(message.contains("race on `data[0]`"), "{message}");
}

fn bundled(name: &str) -> Source {
    LIBRARY.get(name).expect("a bundled scenario")
}

/// What each variant is compared with.
fn baselines(plan: &Plan) -> Vec<(&str, Option<&str>)> {
    let mut all: Vec<_> = plan
        .variants
        .iter()
        .map(|variant| (variant.name.as_str(), variant.baseline.as_deref()))
        .collect();
    all.dedup();
    all
}

#[test]
fn speed_ups_are_against_what_does_the_same_work_rightly() {
    let of = |name: &str| clean(&bundled(name)).plan;
    assert_eq!(
        baselines(&of("two_gpus")),
        [
            ("through_host", None),
            ("peer", Some("through_host")),
            ("on_one", None),
            ("on_two", Some("on_one")),
        ]
    );
    assert_eq!(
        baselines(&of("cross_stream_reuse")),
        [
            ("race", None),
            ("ordered", None),
            ("two_buffers", Some("ordered")),
        ]
    );
    let pinned = of("pinned_vs_pageable");
    let against = Some("pageable_sync");
    assert_eq!(
        baselines(&pinned),
        [
            ("pinned_async", against),
            ("pinned_sync", against),
            ("pageable_async", against),
            ("pageable_sync", None),
        ]
    );
    let at: Vec<Option<i64>> = pinned.pairs.iter().map(|pair| pair.at).collect();
    let (large, small) = (Some(256 << 20), Some(1 << 20));
    assert_eq!(at, [large, large, small, small]);
}

#[test]
fn the_command_line_leaves_out_pairs_and_baselines_of_what_it_leaves_out() {
    let compiled = |variant: Option<&str>| {
        let overrides = Overrides {
            variant: variant.map(str::to_owned),
            ..Overrides::default()
        };
        let compiled = compile(&bundled("sync_points"), &overrides);
        compiled.unwrap_or_else(|errors| panic!("{}", errors.render(false)))
    };
    let all = compiled(None).plan;
    let edits: Vec<_> = all.pairs.iter().map(|pair| pair.edit.to_string()).collect();
    assert_eq!(edits, ["no-sync", "no-sync", "no-sync"]);
    assert!(
        all.variants
            .iter()
            .all(|v| v.view == Some(View::First(200_000)))
    );
    let one = compiled(Some("no_sync")).plan;
    assert!(one.pairs.is_empty());
    assert_eq!(baselines(&one), [("no_sync", None)]);
    // A swept parameter that is set leaves the one value.
    let set = |value: &str| {
        let overrides = Overrides {
            set: vec![("size".to_owned(), value.to_owned())],
            ..Overrides::default()
        };
        let compiled = compile(&bundled("pinned_vs_pageable"), &overrides);
        compiled
            .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
            .plan
            .pairs
            .len()
    };
    assert_eq!((set("2 MiB"), set("1 MiB")), (0, 2));
}

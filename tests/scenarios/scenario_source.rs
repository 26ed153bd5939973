//! Where scenarios and kernels come from, what the command line changes, and what is said about it.

use cuptop::bundled::LIBRARY;
use scenario::plan::Plan;
use scenario::{Compiled, Diagnostics, Overrides, Severity, Source, compile};

use crate::source_of;

fn try_compile(
    text: &str,
    set: &[(&str, &str)],
    variant: Option<&str>,
) -> Result<Compiled, Diagnostics> {
    let source = source_of(text);
    let set = set
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    compile(
        &source,
        &Overrides {
            set,
            variant: variant.map(str::to_owned),
            ..Overrides::default()
        },
    )
}

fn plan_of(text: &str, set: &[(&str, &str)]) -> Plan {
    let compiled = try_compile(text, set, None);
    compiled
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
        .plan
}

#[test]
fn overrides_go_before_the_sweep_and_variants_before_params() {
    let text = "name = \"t\"\n[params]\na = 1\nb = \"a * 10\"\n[buffers.x]\nbytes = \"b\"\nhost = \"pinned\"\n\
        [[variant]]\nname = \"plain\"\nsteps = [{ h2d = \"x\" }]\n\
        [[variant]]\nname = \"own\"\nparams = { a = 2 }\nsteps = [{ h2d = \"x\" }]\n";
    let bytes = |set: &[(&str, &str)]| -> Vec<u64> {
        plan_of(text, set)
            .variants
            .iter()
            .map(|variant| variant.buffers[0].bytes)
            .collect()
    };
    assert_eq!(bytes(&[]), [10, 20]);
    assert_eq!(bytes(&[("a", "3")]), [30, 30]);
    assert_eq!(bytes(&[("b", "1 KiB")]), [1024, 1024]);
    let one = try_compile(text, &[], Some("own")).expect("it exists").plan;
    assert_eq!(one.variants.len(), 1);
    for (set, variant, fragment) in [
        (
            vec![("aa", "1")],
            None,
            "the scenario has no parameter `aa`",
        ),
        (
            vec![("a", "1 KaB")],
            None,
            "--set a=1 KaB: `KaB` is not a unit",
        ),
        (vec![], Some("pain"), "did you mean `plain`?"),
    ] {
        let errors = try_compile(text, &set, variant).expect_err(fragment);
        let rendered = errors.render(false);
        assert!(rendered.contains(fragment), "{rendered}");
        assert_eq!(errors.items[0].line, 0, "it is about the command line");
    }
}

#[test]
fn a_race_that_is_meant_is_a_note() {
    let text = |race: &str| {
        format!(
            "name = \"t\"\n[buffers.x]\nbytes = 8\nhost = \"pinned\"\n[[variant]]\nname = \"v\"\n{race}\nsteps = [\
             {{ h2d = \"x\", stream = \"a\" }}, {{ d2h = \"x\", stream = \"b\" }}]\n"
        )
    };
    let counts = |text: &str| {
        let warnings = try_compile(text, &[], None)
            .expect("races do not stop a run")
            .warnings;
        (
            warnings.count(Severity::Warning),
            warnings.count(Severity::Note),
        )
    };
    // Host side: `a` reads what `b` writes. Device side: `a` writes what `b` reads. One pair of steps.
    assert_eq!(counts(&text("")), (1, 0));
    assert_eq!(counts(&text("race = true")), (0, 1));
}

#[test]
fn the_same_kernel_file_beside_the_scenario_goes_before_the_bundled_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = "extern \"C\" __global__ void mine(float* x) {}";
    std::fs::create_dir(folder.path().join("kernels")).expect("a folder");
    std::fs::write(folder.path().join("kernels/add.cu"), kernel).expect("written");
    let path = folder.path().join("t.toml");
    let text = "name = \"t\"\n[buffers.x]\nbytes = 8\n[kernels.k]\nfile = \"add.cu\"\nentry = \"mine\"\nargs = [\"x\"]\n[[variant]]\nname = \"v\"\nsteps = [{ launch = \"k\" }]\n";
    std::fs::write(&path, text).expect("written");
    let source = Source::find(path.to_str().expect("a plain path"), LIBRARY).expect("it is there");
    let compiled = compile(&source, &Overrides::default());
    let plan = compiled
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
        .plan;
    assert_eq!(&*plan.variants[0].kernels[0].source, kernel);
}

#[test]
fn scenarios_are_found_by_name_and_by_path() {
    assert_eq!(
        Source::find("pipeline", LIBRARY).expect("bundled").path,
        None
    );
    let message = |arg: &str| {
        Source::find(arg, LIBRARY)
            .expect_err("it is not there")
            .to_string()
    };
    assert_eq!(
        message("pipline"),
        "there is no scenario `pipline`; did you mean `pipeline`?"
    );
    let begun = Source::find("pipe", LIBRARY).expect("only one begins so");
    assert_eq!(begun.name, "pipeline.toml");
    assert_eq!(
        message("pi"),
        "there is no scenario `pi`; it could be `pipeline` or `pinned_vs_pageable`"
    );
    assert!(message("qqq").contains("the bundled ones are `pipeline`"));
    assert!(message("nowhere/pipeline.toml").contains("but a bundled scenario: `pipeline`"));
    assert!(
        message("nowhere/mine.toml").starts_with("cannot read the scenario nowhere/mine.toml: ")
    );
}

#[test]
fn how_often_a_variant_is_measured_can_be_asked_for() {
    let source = Source::find("transpose", LIBRARY).expect("it is bundled");
    let overrides = Overrides {
        repeat: Some(100),
        ..Overrides::default()
    };
    let plan = compile(&source, &overrides).expect("compiles").plan;
    // The first of its four says 1, the others nothing, which is 3.
    assert!(plan.variants.iter().all(|it| it.repeat == 100));
    let plan = compile(&source, &Overrides::default())
        .expect("compiles")
        .plan;
    let repeats: Vec<u32> = plan.variants.iter().map(|it| it.repeat).collect();
    assert_eq!(repeats, [1, 3, 3, 3]);
}

/// Once, a buffer that is never freed is a warning; the second time its memory is gone.
#[test]
fn what_may_not_repeat_is_refused_when_it_is_asked_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let leaks = |declared: u32, asked: Option<u32>| {
        let text = format!(
            "name = \"leak\"\n[buffers.a]\nbytes = \"4 KiB\"\nhost = \"pinned\"\nalloc = \"step\"\n[[variant]]\nname = \"one\"\nwarmup = 0\nrepeat = {declared}\n\
             steps = [{{ alloc = \"a\" }}]\n"
        );
        let file = dir.path().join("leak.toml");
        std::fs::write(&file, text).expect("a file");
        let source = Source::find(file.to_str().expect("a path"), LIBRARY).expect("is read");
        let overrides = Overrides {
            repeat: asked,
            ..Overrides::default()
        };
        compile(&source, &overrides).is_ok()
    };
    assert_eq!(
        [(1, None), (1, Some(2)), (2, Some(1))].map(|it| leaks(it.0, it.1)),
        [true, false, true]
    );
}

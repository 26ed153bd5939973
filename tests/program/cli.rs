//! The command line as a person or a script meets it: what a bare word does, what is written where, what a shell is
//! offered.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

fn in_folder(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuptop"));
    command.current_dir(folder);
    // Nobody's own GPU.
    command.env("XDG_DATA_HOME", folder);
    command
}

fn cuptop(folder: &Path, args: &[&str]) -> Output {
    let output = in_folder(folder).args(args).output();
    output.expect("cuptop runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command printed, which must have gone well.
fn said(folder: &Path, args: &[&str]) -> String {
    let output = cuptop(folder, args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{args:?}: {out}{err}");
    out
}

fn trace(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces");
    path.join(name).display().to_string()
}

/// A profile that was calibrated here is found by a part of its GPU's name; the figures say which one was used.
#[test]
fn a_calibrated_gpu_is_known_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let profiles = at.join("cuptop").join("profiles");
    std::fs::create_dir_all(&profiles).expect("a folder");
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/profile/src/h200.toml");
    let bundled = std::fs::read_to_string(bundled).expect("the bundled profile");
    let slow = bundled
        .replacen("\"NVIDIA H200\"", "\"NVIDIA T4\"", 1)
        .replacen("h2d_gbps = 55.55", "h2d_gbps = 12.0", 1);
    std::fs::write(profiles.join("NVIDIA_T4.toml"), slow).expect("a profile");
    let rate = |more: &[&str]| {
        let run = [
            "run",
            "pipeline",
            "--backend",
            "sim",
            "--headless",
            "--json",
        ];
        // Expectations of an H200 need not hold.
        let output = cuptop(at, &[&run, more].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let device = &json["variants"][0]["devices"][0];
        (
            device["name"].as_str().expect("a name").to_owned(),
            device["h2d"]["gbps"].as_f64().expect("a rate"),
        )
    };
    let (name, gbps) = rate(&["--profile", "t4"]);
    assert_eq!(name, "NVIDIA T4");
    assert!((11.0..12.1).contains(&gbps), "{gbps}");
    assert_eq!(rate(&[]).0, "NVIDIA H200");
    let other = cuptop(at, &["run", "pipeline", "--profile", "b300", "--headless"]);
    let error = text(&other.stderr);
    assert_eq!(other.status.code(), Some(2), "{error}");
    assert!(
        error.contains("no profile is called `b300`") && error.contains("NVIDIA T4"),
        "{error}"
    );
}

/// A calibrated link that is no faster than the copies of pageable memory: to pin it cures nothing, in the report and in
/// what-if alike.
#[test]
fn whatif_predicts_the_cures_that_the_report_finds() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let profiles = at.join("cuptop").join("profiles");
    std::fs::create_dir_all(&profiles).expect("a folder");
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/profile/src/h200.toml");
    let bundled = std::fs::read_to_string(bundled).expect("the bundled profile");
    let slow = bundled
        .replacen("h2d_gbps = 55.55", "h2d_gbps = 1.0", 1)
        .replacen("d2h_gbps = 55.45", "d2h_gbps = 1.0", 1);
    std::fs::write(profiles.join("NVIDIA_H200.toml"), slow).expect("a profile");
    let edits = |command: &str, list: &str| -> Vec<String> {
        let text = said(at, &[command, &trace("pageable.json.gz"), "--json"]);
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let rows = json[list].as_array().expect("a list").iter();
        let edits = rows.filter_map(|it| it["edit"].as_str());
        edits.map(str::to_owned).collect()
    };
    let found = edits("report", "findings");
    assert!(!found.iter().any(|it| it.contains("pin")), "{found:?}");
    // Where the report has no edit what-if tries all: this one brings least.
    let predicted = edits("whatif", "predictions");
    assert_eq!(predicted.last().map(String::as_str), Some("pin"));
}

#[test]
fn a_scenario_or_a_trace_needs_no_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let options = ["--headless", "--backend", "sim"];
    let of = |word: &str| said(at, &[&[word], &options[..]].concat());
    let by_name = said(at, &["run", "transpose", "--headless", "--backend", "sim"]);
    assert!(by_name.starts_with("transpose\n"), "{by_name}");
    assert_eq!(of("transpose"), by_name);
    assert_eq!(of("transp"), by_name);
    said(at, &["new", "mine"]);
    // The first headline that an author sees is the lesson's: a measured variant goes before a bound.
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mine = words(of("mine.toml"));
    assert!(
        mine.contains("· streamed takes 1.63 ms (1.56× faster)"),
        "{mine}"
    );
    // That of a cold start is of the CPU's time before the GPU's work, not of 469 µs.
    let cold = words(of("warmup"));
    let first = "cold: cold start: 97.7 ms spent on making the context";
    assert!(
        cold.contains(first) && cold.contains("· warm takes"),
        "{cold}"
    );
    let picture = at.join("a.txt").display().to_string();
    said(
        at,
        &[
            "--ascii",
            &trace("copies.json.gz"),
            "--screenshot",
            &picture,
        ],
    );
    let picture = std::fs::read_to_string(picture).expect("a picture");
    assert!(
        picture.is_ascii() && picture.contains("copies.json.gz"),
        "{picture}"
    );
    for (word, help) in [
        ("piepline", "did you mean `pipeline`?"),
        ("tra", "did you mean `cuptop trace`?"),
        ("pi", "it could be `pipeline` or `pinned_vs_pageable`"),
        ("./none.json", "there is no file ./none.json"),
    ] {
        let output = cuptop(at, &[word]);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{word}: {err}");
        assert!(err.contains(help), "{word}: {err}");
    }
}

#[test]
fn a_copy_of_a_scenario_runs_as_the_scenario_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    said(at, &["new", "mine", "--from", "alloc_in_loop"]);
    let original = said(
        at,
        &["run", "alloc_in_loop", "--headless", "--backend", "sim"],
    );
    let copy = said(at, &["run", "mine.toml", "--headless", "--backend", "sim"]);
    let figures = |text: &str| -> Vec<String> { text.lines().skip(2).map(str::to_owned).collect() };
    assert_eq!(figures(&copy), figures(&original));
    // Never over a file that is there.
    let output = cuptop(at, &["new", "mine"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("is there already"));
    let output = cuptop(at, &["new", "other", "--from", "alocinloop"]);
    assert!(text(&output.stderr).contains("did you mean `alloc_in_loop`?"));
    assert!(!at.join("other.toml").exists());
}

#[test]
fn an_export_is_what_its_files_name_says_and_never_what_it_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let source = trace("pageable.json.gz");
    said(at, &["export", &source, "-o", "a.json.gz"]);
    let bytes = std::fs::read(at.join("a.json.gz")).expect("a file");
    assert_eq!(bytes[..2], [0x1f, 0x8b], "no gzip");
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut plain)
        .expect("gzip to its end");
    said(at, &["export", &source, "-o", "a.json"]);
    assert_eq!(
        plain,
        std::fs::read_to_string(at.join("a.json")).expect("a file")
    );
    // It reads back as what it was.
    let figures = |path: &str| {
        let json = said(at, &["report", path, "--json"]);
        let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        report["devices"][0]["busy_ns"].clone()
    };
    assert_eq!(figures("a.json.gz"), figures(&source));

    // A part of it is a trace of that length.
    let cut = cuptop(
        at,
        &[
            "export",
            &source,
            "--zoom",
            "first 100 us",
            "-o",
            "part.json",
        ],
    );
    assert!(
        text(&cut.stderr).contains("100 µs of it;"),
        "{}",
        text(&cut.stderr)
    );
    let part = said(at, &["report", "part.json", "--json"]);
    let part: serde_json::Value = serde_json::from_str(&part).expect("JSON");
    assert!(
        part["devices"][0]["span_ns"]
            .as_i64()
            .is_some_and(|it| it <= 100_000),
        "{part}"
    );

    let again = cuptop(at, &["export", &source, "-o", "a.json"]);
    assert!(text(&again.stderr).contains("over the file that was there"));
    let itself = cuptop(at, &["export", "a.json", "-o", "./a.json"]);
    assert_eq!(itself.status.code(), Some(2));
    assert!(text(&itself.stderr).contains("is what is read"));
    assert_eq!(
        plain,
        std::fs::read_to_string(at.join("a.json")).expect("a file")
    );
}

#[test]
fn the_command_that_new_proposes_runs_whatever_the_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a b", "-x", "x;id", "it's", "plain"] {
        let shown = said(folder.path(), &["new", "--", name]);
        let next = shown
            .lines()
            .find_map(|line| line.strip_prefix("next: cuptop "));
        let next = next
            .and_then(|it| it.split("    (").next())
            .expect("a command");
        let script = format!("\"$0\" {next} --backend sim --headless");
        let ran = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_cuptop")])
            .current_dir(folder.path())
            .output()
            .expect("a shell");
        assert!(ran.status.success(), "{next}: {ran:?}");
    }
    // On a full disk nothing stays that the next `new` would stumble over.
    let script = "ulimit -f 0; exec \"$0\" new full";
    let ran = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_cuptop")])
        .current_dir(folder.path())
        .output()
        .expect("a shell");
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(!folder.path().join("full.toml").exists());
}

/// A FIFO is not waited for, and a link to the folder itself or old runs put aside do not end the comparison.
#[test]
fn what_is_no_run_in_a_baseline_is_left_out_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = [
        "run",
        "pinned_vs_pageable",
        "--backend",
        "sim",
        "--headless",
    ];
    for _ in 0..2 {
        said(
            folder.path(),
            &[&run[..], &["--save-baseline", "base"]].concat(),
        );
    }
    said(folder.path(), &[&run[..], &["--save", "new"]].concat());
    let script = "mkfifo base/f1 base/f2.json; ln -s . base/loop; mkdir base/old; cp -r base/*.run base/old; ln -s nowhere base/gone";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder.path())
        .status();
    assert!(made.expect("a shell").success());
    let compared = cuptop(folder.path(), &["compare", "--baseline", "base", "new"]);
    assert_eq!(compared.status.code(), Some(0), "{compared:?}");
    let said = text(&compared.stderr);
    for name in ["f1", "f2.json", "loop", "old", "gone"] {
        let line = format!("base/{name} is left out of the baseline");
        assert!(said.contains(&line), "{name}: {said}");
    }
}

/// What an agent reads before it asks: small, of commands that there are, and without links that lead nowhere.
#[test]
fn the_skill_file_is_small_and_each_command_in_it_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let skill = said(folder.path(), &["skill"]);
    assert!(skill.starts_with("---\nname: cuptop\ndescription: "));
    assert!(skill.len() < 6 << 10, "{}", skill.len());
    assert!(skill.contains("What not to conclude") && skill.contains("never instructions"));
    assert!(!skill.contains("]("), "a link: {skill}");
    let mut commands: Vec<&str> = skill
        .split("`cuptop ")
        .skip(1)
        .filter_map(|rest| rest.split([' ', '`']).next())
        .collect();
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        let help = cuptop(folder.path(), &[command, "--help"]);
        assert!(help.status.success(), "{command}");
    }
}

#[test]
fn a_shell_is_offered_scenarios_files_and_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for name in ["pipes.toml", "pipes.json"] {
        std::fs::write(at.join(name), "").expect("written");
    }
    // As the script that `completions bash` prints asks.
    let offered = |words: &[&str]| -> Vec<String> {
        let output = in_folder(at)
            .args(["--", "cuptop"])
            .args(words)
            .env("CUPTOP_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
            .env("_CLAP_IFS", "\n")
            .output()
            .expect("cuptop runs");
        text(&output.stdout).lines().map(str::to_owned).collect()
    };
    assert_eq!(offered(&["run", "pip"]), ["pipeline", "pipes.toml"]);
    assert_eq!(
        offered(&["new", "x", "--from", "pin"]),
        ["pinned_vs_pageable"]
    );
    assert_eq!(offered(&["run", "x", "--back"]), ["--backend"]);
    assert_eq!(offered(&["run", "x", "--backend", "c"]), ["cuda"]);
    assert!(offered(&["pipel"]).contains(&"pipeline".to_owned()));
    assert_eq!(offered(&["whatif", "pipes.j"]), ["pipes.json"]);
    for shell in ["bash", "zsh", "fish"] {
        let script = said(at, &["completions", shell]);
        assert!(script.contains("CUPTOP_COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn every_command_has_a_page_and_the_documentation_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    said(at, &["man", "--output", "pages"]);
    let list = said(at, &["help"]);
    let mut commands = 0;
    let named = list.lines().skip_while(|line| *line != "Look:");
    for line in named.take_while(|line| *line != "Options:") {
        let Some(name) = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
        else {
            continue;
        };
        let name = name.split(' ').next().expect("a name");
        commands += 1;
        let page = std::fs::read_to_string(at.join(format!("pages/cuptop-{name}.1")));
        assert!(page.expect("a page").contains(".SH SYNOPSIS"), "{name}");
        assert_eq!(
            said(at, &["help", name]),
            said(at, &[name, "--help"]),
            "{name}"
        );
    }
    assert!(commands >= 15, "{list}");
    for (topic, file) in [
        ("scenarios", "SCENARIOS.md"),
        ("findings", "FINDINGS.md"),
        ("json", "REPORT.md"),
        ("scripts", "REPORT.md"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(file);
        let page = std::fs::read_to_string(path).expect("a page");
        assert_eq!(said(at, &["help", topic]), page, "{topic}");
    }
    let output = cuptop(at, &["help", "scenario"]);
    assert!(text(&output.stderr).contains("did you mean `scenarios`?"));
}

#[test]
fn the_environment_chooses_colours_where_the_command_line_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let source = trace("copies.json.gz");
    let open = ["open", &source, "--screenshot", "a.svg"];
    let picture = |theme: &str, options: &[&str]| {
        let mut command = in_folder(at);
        let output = command
            .args([&open, options].concat())
            .env("CUPTOP_THEME", theme)
            .output();
        let output = output.expect("cuptop runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        std::fs::read_to_string(at.join("a.svg")).expect("a picture")
    };
    let light = picture("light", &[]);
    assert_ne!(light, picture("dark", &[]));
    assert_eq!(light, picture("dark", &["--theme", "light"]));
    let wrong = in_folder(at).args(open).env("CUPTOP_THEME", "dim").output();
    let wrong = wrong.expect("cuptop runs");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("color-blind-light"));
}

#[test]
fn tables_have_as_many_rows_as_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace("copies.json.gz");
    let lines = |options: &[&str]| {
        let report = [&["report", &source, "--all"], options].concat();
        said(folder.path(), &report).lines().count()
    };
    assert!(lines(&["--rows", "1"]) < lines(&[]));
}

/// A trace of kernels that take so long, in us, one after the other.
fn kernels(path: &Path, lengths: impl Iterator<Item = u32>) {
    let mut at = 1_000;
    let events: Vec<String> = lengths
        .map(|length| {
            let event = format!(
                r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{at},"dur":{length},"args":{{"device":0,"stream":7}}}}"#
            );
            at += length + 10;
            event
        })
        .collect();
    let text = format!(
        r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#,
        events.join(",")
    );
    std::fs::write(path, text).expect("a file");
}

#[test]
fn a_regression_ends_with_1_and_what_is_not_decided_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let side = |name: &str, length: u32| {
        let paths = (0..6).map(|run| {
            let path = at.join(format!("{name}{run}.json"));
            kernels(&path, std::iter::repeat_n(length + run, 20));
            path.display().to_string()
        });
        paths.collect::<Vec<_>>().join(",")
    };
    let (a, slower) = (side("a", 1_000), side("b", 1_200));
    let compare = |a: &str, b: &str| {
        let output = cuptop(at, &["compare", a, b, "--fail-over", "5%"]);
        (output.status.code(), text(&output.stdout))
    };
    let (code, out) = compare(&a, &slower);
    assert!(
        code == Some(1) && out.starts_with("B is 1.2"),
        "{code:?} {out}"
    );
    assert_eq!(compare(&slower, &a).0, Some(0));
    assert_eq!(compare(&a, &a).0, Some(0));
    // One run a side is no evidence, however much slower it is.
    let one = |side: &str| side.split(',').next().unwrap_or_default().to_owned();
    let (code, out) = compare(&one(&a), &one(&slower));
    assert!(
        code == Some(0) && out.contains("undecided"),
        "{code:?} {out}"
    );
}

/// What a build keeps in a folder is what the next one is compared with. By hand: 20 kernels of 1,000 to 1,005 us and 19 gaps
/// of 10 us between them; A's runs lie 0.5 % apart.
#[test]
fn runs_kept_as_a_baseline_are_the_first_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let compare = |more: &[&str]| {
        let all = ["compare", "--baseline", "base", "--fail-over", "5%"];
        let output = cuptop(at, &[&all, more].concat());
        let code = output.status.code().expect("an exit");
        (code, text(&output.stdout), text(&output.stderr))
    };
    let new = |name: &str, length| kernels(&at.join(name), std::iter::repeat_n(length, 20));
    new("alike.json", 1_003);
    new("slower.json", 1_100);
    new("near.json", 1_053);
    let (code, _, err) = compare(&["alike.json"]);
    assert!(code == 2 && err.contains("base"), "{err}");
    std::fs::create_dir(at.join("base")).expect("a folder");
    let (code, _, err) = compare(&["alike.json"]);
    assert!(code == 2 && err.contains("--save-baseline"), "{err}");
    for run in 0..6 {
        new(&format!("base/{run}.json"), 1_000 + run);
    }
    let (code, out, _) = compare(&["slower.json"]);
    assert!(code == 1 && out.contains("n=6+1"), "{code} {out}");
    let (code, out, _) = compare(&["alike.json"]);
    assert!(
        code == 0 && out.contains("no regression of more than 5 %"),
        "{out}"
    );
    let (code, out, _) = compare(&["near.json"]);
    assert!(code == 0 && out.contains("(A has 6, B 1)"), "{out}");
    let (code, out, _) = compare(&["alike.json", "slower.json,near.json"]);
    assert!(code == 0 && out.contains("n=6+3"), "{code} {out}");
    // A run that failed spoils no later comparison, and what others put there neither.
    std::fs::create_dir(at.join("base/failed.run")).expect("a folder");
    std::fs::write(at.join("base/.hidden"), "x").expect("a file");
    std::fs::write(at.join("base/garbage.json"), "x").expect("a file");
    std::os::unix::fs::symlink("/dev/zero", at.join("base/endless.json")).expect("a link");
    let (code, out, err) = compare(&["slower.json"]);
    assert!(code == 1 && out.contains("n=6+1"), "{code} {out} {err}");
    for name in ["failed.run", "garbage.json", "endless.json"] {
        assert!(err.contains(name), "{err}");
    }
    assert!(!err.contains("hidden"), "{err}");
}

#[test]
fn each_run_of_a_scenario_is_kept_beside_the_others_of_a_baseline() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for _ in 0..2 {
        let run = ["run", "pipeline", "--backend", "sim", "--headless"];
        said(at, &[&run[..], &["--save-baseline", "base"]].concat());
    }
    let entries = std::fs::read_dir(at.join("base"))
        .expect("a folder")
        .flatten();
    let runs: Vec<String> = entries.map(|it| it.path().display().to_string()).collect();
    assert_eq!(runs.len(), 2, "{runs:?}");
    let out = said(at, &["compare", "--baseline", "base", &runs[0], &runs[1]]);
    assert!(
        out.starts_with("no difference shown") && out.contains("n=2"),
        "{out}"
    );
}

/// On 80 columns the heading has no room for all of it: it stands below.
#[test]
fn the_screen_of_two_traces_says_in_full_what_the_comparison_comes_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let paths = [("a.json", 1_000), ("b.json", 500)].map(|(name, length)| {
        kernels(&at.join(name), std::iter::repeat_n(length, 20));
        at.join(name).display().to_string()
    });
    let picture = at.join("a.txt").display().to_string();
    let [a, b] = &paths;
    said(at, &["compare", a, b, "--screenshot", &picture]);
    let picture = std::fs::read_to_string(picture).expect("a picture");
    // One operation again and again is no step: all of it is compared, 20 kernels and the 19 gaps of 10 us between them.
    let line = "makespan: A 20.2 ms, B 10.2 ms: B is 1.98× faster";
    assert!(picture.contains(line), "{picture}");
    // How to find one's way on a timeline is not said of a list.
    assert!(!picture.contains("n p an operation"), "{picture}");
}

/// A race is a warning, which a script can take for an error; where it is meant it is a note.
#[test]
fn a_check_that_denies_ends_with_1_at_a_race() {
    let folder = tempfile::tempdir().expect("a folder");
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/cross_stream_reuse.toml");
    let meant = std::fs::read_to_string(bundled).expect("the bundled race");
    assert!(meant.contains("race = true"), "{meant}");
    let unmeant = meant.replace("race = true", "race = false");
    std::fs::write(folder.path().join("race.toml"), unmeant).expect("a file");
    let code = |args: &[&str]| cuptop(folder.path(), args).status.code();
    assert_eq!(code(&["check", "race.toml"]), Some(0));
    assert_eq!(code(&["check", "--deny", "race.toml"]), Some(1));
    assert_eq!(
        code(&["check", "--deny", "cross_stream_reuse", "pipeline"]),
        Some(0)
    );
    let out = said(folder.path(), &["check", "race.toml"]);
    assert!(
        out.contains("it runs, with ") && !out.contains("fine"),
        "{out}"
    );
}

/// Nobody but NVRTC knows whether a kernel compiles: without it one line says which ones nobody tried.
#[test]
fn a_check_says_which_kernels_it_could_not_compile_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |nvrtc: &Path, args: &[&str]| {
        let mut check = in_folder(folder.path());
        let run = check.arg("check").args(args).env("CUPTOP_NVRTC", nvrtc);
        let run = run.output().expect("cuptop runs");
        (run.status.code(), text(&run.stdout))
    };
    let nowhere = Path::new("/nonexistent");
    let names = ["pipeline", "pinned_vs_pageable"];
    let (code, out) = check(nowhere, &names);
    let [with, without] = out.lines().collect::<Vec<_>>()[..] else {
        panic!("a line each: {out}");
    };
    let said = "pipeline.toml: fine; not compiled here: matmul: no usable libnvrtc: /nonexistent: ";
    assert!(code == Some(0) && with.starts_with(said), "{out}");
    assert_eq!(
        without, "pinned_vs_pageable.toml: fine",
        "it has no kernels"
    );
    let (_, json) = check(nowhere, &["--format", "json", "pipeline"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let verdict = json["files"][0]["verdict"].as_str();
    assert!(verdict.is_some_and(|it| it.starts_with(said)), "{json}");
    // With it, a kernel that it rejects is an error where the scenario has the kernel.
    let Some(nvrtc) = std::env::var_os("CUPTOP_TEST_NVRTC") else {
        return;
    };
    let file = scenario::template("t");
    std::fs::write(folder.path().join("t.toml"), &file).expect("a file");
    let (code, out) = check(Path::new(&nvrtc), &["t.toml"]);
    assert_eq!((code, &*out), (Some(0), "t.toml: fine\n"));
    let kernel = "extern \"C\" __global__ void add_one(float* x, int n) {\n  x[n] = y;\n}\n";
    std::fs::write(folder.path().join("add.cu"), kernel).expect("a file");
    let (code, out) = check(Path::new(&nvrtc), &["--format", "short", "t.toml"]);
    assert_eq!(code, Some(2), "{out}");
    assert!(
        out.starts_with("t.toml:") && out.contains("\"y\" is undefined"),
        "{out}"
    );
}

#[test]
fn a_check_says_what_is_wrong_in_a_line_each_and_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario::template("t").replace("{ h2d = \"batch[i]\"", "{ h2d = \"batsh[i]\"");
    std::fs::write(folder.path().join("t.toml"), &file).expect("a file");
    let line = 1 + file[..file.find("batsh").expect("it is there")]
        .matches('\n')
        .count();
    let check = |format: &str| {
        let run = cuptop(
            folder.path(),
            &["check", "--format", format, "t.toml", "pipelime"],
        );
        assert_eq!(run.status.code(), Some(2), "{format}");
        text(&run.stdout)
    };
    let short = check("short");
    let expected =
        format!("t.toml:{line}:14: error: there is no buffer `batsh` (did you mean `batch`?)");
    assert_eq!(short.lines().next(), Some(&*expected));
    assert_eq!(short.lines().count(), 2, "{short}");
    let json: serde_json::Value = serde_json::from_str(&check("json")).expect("JSON");
    let [known, unknown] = [0, 1].map(|at| &json["files"][at]["found"][0]);
    assert_eq!(
        (&json["schema"], &known["line"], &known["severity"]),
        (&1.into(), &line.into(), &"error".into())
    );
    let bytes = [&known["span"]["start"], &known["span"]["end"]]
        .map(|it| it.as_u64().expect("a byte") as usize);
    assert_eq!(&file[bytes[0]..bytes[1]], "batsh");
    assert!(unknown.to_string().contains("pipeline"), "{unknown}");
}

/// A script fails by a program's figures: 599 us of the 3.90 ms of this trace nothing ran, and no steps are in it.
#[test]
fn a_report_fails_where_a_condition_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = trace("pageable.json.gz");
    for (conditions, code, said) in [
        (&["idle > 30 %"][..], 0, "is fine: 15 %"),
        (&["idle > 30 %", "idle > 10 %"], 1, "fails: 15 %"),
        (&["step > 1 ms"], 3, "no steps were found"),
        (&["idel > 1 %"], 2, "there is no figure"),
    ] {
        let mut args = vec!["report", &path];
        args.extend(conditions.iter().flat_map(|it| ["--fail-if", it]));
        let output = cuptop(folder.path(), &args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{conditions:?}: {err}");
        assert!(err.contains(said) && !out.contains(said), "{err}");
        assert_eq!(out.contains("NVIDIA H200"), code != 2, "{out}");
    }
}

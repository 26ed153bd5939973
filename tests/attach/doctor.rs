//! `cuptop doctor` tries the injection for real, and names what stops it.

use std::process::Command;

use crate::harness::fakes;

/// What `doctor` says of the injection, with these variables more.
fn says(variables: &[(&str, &str)]) -> String {
    let made = fakes();
    let cache = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .arg("doctor")
        .env("LD_LIBRARY_PATH", made)
        .env("CUPTOP_CUPTI", made.join("libcupti.so.13"))
        .env("XDG_CACHE_HOME", cache.path())
        .envs(variables.iter().copied())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = text.find(" injection ").expect("it is spoken of");
    let end = text.find(" recordings ").expect("what comes next");
    text[text[..begin].rfind('\n').unwrap_or(0)..end].to_owned()
}

#[test]
fn what_records_is_said_to() {
    let text = says(&[]);
    assert!(
        text.contains("ok ") && text.contains("CUPTI 130001") && text.contains("can be sampled"),
        "{text}"
    );
    assert!(text.contains("/cuptop/inject-"), "{text}");
}

#[test]
fn what_stops_it_is_named() {
    for (variable, value, named) in [
        ("CUDA_INJECTION64_PATH", "/opt/other.so", "/opt/other.so"),
        (
            "CUPTOP_CUPTI",
            "/nonexistent",
            "no usable libcupti: /nonexistent",
        ),
        ("FAKE_TAKEN", "1", "another profiler (Some Other Profiler)"),
        ("FAKE_VERSION", "130000", "13.0.85 or later"),
        ("FAKE_PM_ENABLE", "26", "dcgmi profile --pause"),
        (
            "FAKE_VERSION",
            "130200",
            "not tried with CUPTI 130200 and driver 580",
        ),
        (
            "FAKE_PM_ENABLE",
            "35",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
    ] {
        let text = says(&[(variable, value)]);
        assert!(
            text.contains("missing") && text.contains(named),
            "{variable}: {text}"
        );
    }
}

#[test]
fn a_driver_that_does_not_start_and_a_cache_that_cannot_be_are_no_failures_of_the_library() {
    let text = says(&[("FAKE_CUINIT", "100"), ("XDG_CACHE_HOME", "/proc")]);
    assert!(text.contains("untried"), "{text}");
    assert!(text.contains("no CUDA device is visible"), "{text}");
    assert!(
        text.contains("in memory") && text.contains("/proc/cuptop"),
        "{text}"
    );
}

#[test]
fn a_preloaded_library_is_named() {
    // It is on every system, and does nothing.
    let text = says(&[
        ("LD_PRELOAD", "libm.so.6"),
        ("CUPTOP_CUPTI", "/nonexistent"),
    ]);
    assert!(text.contains("missing"), "{text}");
    assert!(text.contains("LD_PRELOAD is set: libm.so.6"), "{text}");
}

#[test]
fn as_json_it_has_the_same_parts() {
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuptop"));
        command.args(args).env("CUPTOP_NVRTC", "/nonexistent\u{9b}");
        command.output().expect("it runs")
    };
    let (text, json) = (run(&["doctor"]), run(&["doctor", "--json"]));
    assert_eq!(text.status, json.status);
    assert!(!String::from_utf8_lossy(&json.stdout).contains('\u{9b}'));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let parts = json["parts"].as_array().expect("a list");
    let missing = parts
        .iter()
        .find(|it| it["name"] == "NVRTC")
        .expect("NVRTC");
    assert_eq!(missing["state"], "missing");
    let cost = missing["without_it"].as_str().expect("a text");
    assert!(text.contains(&format!("without it: {cost}")), "{text}");
    // This test needs a Python of its own as little as a GPU: whichever there is, is told.
    assert!(parts.iter().any(|it| it["name"] == "Python"), "{text}");
    for part in parts {
        let line = format!(
            "  {:8} {:9} ",
            part["state"].as_str().expect("a text"),
            part["name"].as_str().expect("a text")
        );
        assert!(text.contains(&line), "{line}: {text}");
    }
}

#[test]
fn without_nvrtc_it_says_what_that_costs() {
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .arg("doctor")
        .env("CUPTOP_NVRTC", "/nonexistent")
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let at = text.find("missing  NVRTC").expect("it is missing");
    let said: String = text[at..].lines().take(2).collect();
    assert!(said.contains("/nonexistent"), "{said}");
    assert!(
        said.contains("scenarios with kernels cannot run on a GPU"),
        "{said}"
    );
}

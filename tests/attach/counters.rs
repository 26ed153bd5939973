//! Counters sampled beside a traced program: the whole way from CUPTI (a fake) to the report, and all that can go wrong there.

use crate::hardware::{metric, opened, traced_with, windows};

/// Traces for so many hundredths of a second with these variables; the report, and what is said of counters. On a machine too busy
/// for a look in that time, or for the end of the process that samples, it is tried again, three times as long.
fn sampled(
    variables: &[(&str, &str)],
    options: &[&str],
    launches: u32,
) -> (serde_json::Value, Vec<String>) {
    let is_late = |it: &String| it.contains("did not end within");
    for times in [1, 3] {
        let (report, said) = sampled_once(variables, options, launches * times);
        if mean(&report, "sm").is_some() && !said.iter().any(is_late) {
            return (report, said);
        }
    }
    sampled_once(variables, options, launches * 9)
}

fn sampled_once(
    variables: &[(&str, &str)],
    options: &[&str],
    launches: u32,
) -> (serde_json::Value, Vec<String>) {
    let (report, _directory) = traced_with(variables, options, &launches.to_string());
    let notes = report["hardware"]["notes"]
        .as_array()
        .expect("notes")
        .iter();
    let notes = notes.filter_map(|it| it.as_str());
    let said = notes.filter(|it| it.contains("ounters of GPU 01020304"));
    let said = said.map(str::to_owned).collect();
    (report, said)
}

fn mean(report: &serde_json::Value, name: &str) -> Option<f64> {
    metric(report, name)["mean"].as_f64()
}

#[test]
fn samples_reach_the_report_and_are_saved() {
    let (report, directory) = traced_with(&[], &["--counters", "on"], "200");
    // What the fake makes up, in our units.
    assert_eq!(mean(&report, "sm"), Some(0.5));
    assert_eq!(mean(&report, "dram"), Some(0.25));
    assert_eq!(mean(&report, "dram_read"), Some(1e9));
    let notes = report["hardware"]["notes"].as_array().expect("notes");
    let mut notes = notes.iter().filter_map(|it| it.as_str());
    let is_end = |it: &&str| it.contains("counters of GPU 01020304");
    let end = notes.find(is_end).expect("said");
    // Of twelve metrics NVLink's two are not there.
    assert!(
        end.contains("10 metrics, 20000 times a second for 10 ms, 4 times a second"),
        "{end}"
    );
    assert!(!end.contains("gap") && !end.contains("failed"), "{end}");
    let saved = opened(directory.path());
    assert_eq!(saved["hardware"]["devices"], report["hardware"]["devices"]);
    let lengths: Vec<i64> = windows(directory.path(), "issue", "share")
        .iter()
        .map(|it| it.length)
        .collect();
    // The first of each burst, which reaches back, is no sample: these are 50 µs long, 199 a burst.
    assert!(lengths.iter().all(|it| *it == 50_000), "{lengths:?}");
    assert!(lengths.len() > 150, "{}", lengths.len());
}

#[test]
fn a_rate_that_is_asked_for_is_kept_and_a_pass_that_holds_less_holds_what_tells_most() {
    let variables = [("FAKE_PM_ROOM", "3"), ("FAKE_PM_CYCLES", "1")];
    let (report, said) = sampled(&variables, &["--counters", "5000"], 150);
    assert!(
        said.last()
            .expect("an end")
            .contains("3 metrics, 5000 times a second"),
        "{said:?}"
    );
    assert_eq!(mean(&report, "dram"), Some(0.25));
    let metrics = report["hardware"]["devices"][0]["metrics"]
        .as_array()
        .expect("metrics");
    assert!(metrics.iter().all(|it| it["metric"] != "issue"));
}

#[test]
fn why_there_are_none_is_said() {
    for (variables, why) in [
        (("FAKE_PM_ENABLE", "26"), "another program has them"),
        (
            ("FAKE_PM_ENABLE", "35"),
            "`cuptop doctor` says what gives it",
        ),
        (("FAKE_PM_ENABLE", "33"), "virtual GPU"),
        (("FAKE_PM_ENABLE", "43"), "MIG"),
        (("FAKE_PM_ENABLE", "45"), "WSL"),
    ] {
        let (report, said) = sampled(&[variables], &["--counters", "on"], 100);
        assert!(said.len() == 1 && said[0].contains(why), "{why}: {said:?}");
        // NVML's are there all the same, and nothing is zero for want of a sample.
        assert!(
            mean(&report, "sm").is_some_and(|it| it > 0.0),
            "{:#}",
            report["hardware"]
        );
        let metrics = report["hardware"]["devices"][0]["metrics"]
            .as_array()
            .expect("metrics");
        assert!(metrics.iter().all(|it| it["metric"] != "dram_read"));
    }
    let (report, said) = sampled(&[], &["--counters", "off"], 60);
    assert!(said.is_empty() && mean(&report, "sm").is_some());
}

#[test]
fn what_is_lost_while_sampling_is_said() {
    let on = &["--counters", "on"][..];
    let (report, said) = sampled(&[("FAKE_PM_OVERFLOW", "1")], on, 200);
    assert!(
        said.iter().any(|it| it.contains("some are lost")),
        "{said:?}"
    );
    assert!(
        said.last()
            .expect("an end")
            .contains("1 overflow with samples lost"),
        "{said:?}"
    );
    assert_eq!(mean(&report, "sm"), Some(0.5));
    // The buffer grows until it suffices, and where it never does, that is said.
    let (report, said) = sampled(&[("FAKE_PM_LEAST", "1024")], on, 200);
    let end = said.last().expect("an end");
    assert!(end.contains("4 overflows with samples lost"), "{end}");
    assert_eq!(mean(&report, "dram"), Some(0.25));
    let (_, said) = sampled(&[("FAKE_PM_LEAST", "1025")], on, 200);
    let end = said.last().expect("an end");
    assert!(end.contains("before a sample can be fetched"), "{said:?}");
    let (_, said) = sampled(&[("FAKE_PM_DECODE", "999")], on, 200);
    assert!(
        said.iter().any(|it| it.contains("CUPTI says 999")),
        "{said:?}"
    );
    let (_, said) = sampled(&[("FAKE_PM_DIES", "1")], on, 200);
    assert!(
        said.iter().any(|it| it.contains("was ended by signal: 6")),
        "{said:?}"
    );
}

/// The number before these words.
fn figure(note: &str, after: &str) -> f64 {
    let before = note.split(after).next().expect("text").trim_end();
    let word = before.rsplit([' ', '(']).next().expect("a word");
    word.parse().unwrap_or_else(|_| panic!("{word}: {note}"))
}

#[test]
fn setting_up_costs_once_and_what_samples_cost_is_kept_to_a_tenth() {
    let on = &["--counters", "on"][..];
    let (_, said) = sampled(&[("FAKE_PM_SET_UP", "600")], on, 500);
    let end = said.last().expect("an end");
    assert!(
        end.ends_with(" s of a core") && end.contains("4 times a second"),
        "{end}"
    );
    assert!(figure(end, " s of a core") >= 0.6, "{end}");
    assert!(figure(end, " % of a core") < 10.0, "{end}");
    // 0.3 ms a sample are 60 ms a burst, and 90 ms are what a second has.
    let (_, said) = sampled(&[("FAKE_PM_COST", "300")], on, 600);
    let end = said.last().expect("an end");
    // Where a busy machine makes a burst cost more, they come seldomer still.
    let mut seldom = ["for 10 ms, each second;", "for 10 ms, every "].iter();
    assert!(seldom.any(|it| end.contains(it)), "{end}");
    assert!(figure(end, " % of a core") < 15.0, "{end}");
}

#[test]
fn what_comes_faster_than_it_is_fetched_ends_in_time_and_is_said() {
    let slow = [("FAKE_PM_COST", "400")];
    let (_, said) = sampled(&slow, &["--counters", "20000"], 600);
    let end = said.last().expect("an end");
    assert!(end.contains("3 metrics, 20000 times a second"), "{end}");
    assert!(end.contains("1 overflow with samples lost"), "{end}");
    let reached = end.split(" samples, ").nth(1).expect("what was reached");
    assert!(figure(reached, " a second;") < 2500.0, "{end}");
}

#[test]
fn a_library_that_hangs_holds_nobody_up() {
    let hangs = [("FAKE_PM_HANGS", "1")];
    // On a busy machine the program may end later than the process is waited for.
    let is_killed = |_| {
        let (_, said) = sampled_once(&hangs, &["--counters", "on"], 200);
        said.iter().any(|it| it.contains("did not end within 2 s"))
    };
    assert!((0..5).any(is_killed));
    let (report, said) = sampled(&hangs, &["--counters", "on"], 800);
    assert!(
        said.iter()
            .any(|it| it.contains("has not answered for 5 s")),
        "{said:?}"
    );
    assert_eq!(
        report["devices"][0]["kernels"].as_u64().map(|it| it > 700),
        Some(true)
    );
}

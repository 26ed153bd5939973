//! Figures and findings of real traces.
//!
//! The figures were printed by `tests/data/traces/oracle.py`, an independent implementation of their definitions.

use cuptop::bundled::LIBRARY;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::common::{load, real_traces, trace_folders};
use activity::feed::{Message, Outcome};
use cuptop::report::KnownGpus;
use cuptop::report::{Report, text};
use scenario::{Overrides, compile};
use serde_json::Value;
use sim::{Pace, Profile, run};
use trace::{SourceInfo, Trace};
use unicode_width::UnicodeWidthStr as _;

fn report(path: &Path) -> Report {
    let loaded = load(&[path.to_owned()]);
    assert_eq!(loaded.outcome, Outcome::Complete, "{}", path.display());
    Report::new(&loaded.trace, None, KnownGpus::default())
}

#[test]
fn figures_of_real_traces_are_those_of_the_reference() {
    for (path, expected) in real_traces() {
        let name = path.display();
        let found: Value =
            serde_json::from_str(&report(&path).json().expect("JSON")).expect("valid JSON");
        let (expected, found) = (&expected["devices"], &found["devices"]);
        let count = expected.as_array().expect("devices").len();
        assert_eq!(found.as_array().expect("devices").len(), count, "{name}");
        for device in 0..count {
            for (key, value) in expected[device].as_object().expect("figures") {
                assert_eq!(&found[device][key], value, "{name} device {device}: {key}");
            }
            let causes = found[device]["idle"].as_array().expect("causes");
            let sum: i64 = causes.iter().filter_map(|c| c["total_ns"].as_i64()).sum();
            assert_eq!(found[device]["idle_ns"], sum, "{name} device {device}");
        }
    }
}

/// The names of all fields within a value. Below some of them stand ids, reasons and figures, which have a page of their own.
fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields_of) => {
            for (name, inner) in fields_of {
                into.insert(name.clone());
                if !["streams", "rejected", "figures"].contains(&name.as_str()) {
                    fields(inner, into);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|it| fields(it, into)),
        _ => {}
    }
}

#[test]
fn the_docs_name_every_field_of_the_report() {
    let docs = include_str!("../../docs/REPORT.md");
    let code = docs.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> = code
        .flat_map(|it| it.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .collect();
    let mut found = BTreeSet::new();
    for (path, _) in real_traces() {
        let json = report(&path).json().expect("JSON");
        fields(
            &serde_json::from_str(&json).expect("valid JSON"),
            &mut found,
        );
    }
    assert!(found.len() > 120, "{} fields", found.len());
    let missing: Vec<_> = found
        .iter()
        .filter(|name| !named.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/REPORT.md lacks {missing:?}");
}

#[test]
fn rules_find_in_real_traces_what_is_known_of_them() {
    // What each trace is known to show, and what it is known not to.
    let cases: [(&str, &[&str], &[&str]); 9] = [
        (
            "pageable.json.gz",
            &["pageable-copy"],
            &["launch-bound", "tiny-copies"],
        ),
        ("copies.json.gz", &[], &["pageable-copy", "launch-bound"]),
        (
            "a100_launch_bound.json.gz",
            &["launch-bound"],
            &["tiny-copies"],
        ),
        // 44 % of its kernels are short, and its queue is up to 1022 deep.
        (
            "v100_gpu_bound.json.gz",
            &[],
            &["launch-bound", "sync-in-loop"],
        ),
        (
            "h200_first_sum.json.gz",
            &["tiny-copies", "sync-in-loop"],
            &["pageable-copy"],
        ),
        (
            "h200_nested_sin.json.gz",
            &["pageable-copy"],
            &["launch-bound", "tiny-copies"],
        ),
        (
            "h200_sequential.json.gz",
            &["no-overlap", "sync-in-loop"],
            &["pageable-copy"],
        ),
        (
            "h200_streamed.json.gz",
            &[],
            &["no-overlap", "sync-in-loop", "launch-bound"],
        ),
        (
            "h100_bert_small.json.gz",
            &["launch-bound"],
            &["no-overlap"],
        ),
    ];
    let mut seen = 0;
    for (name, there, absent) in cases {
        let Some(path) = trace_folders()
            .iter()
            .map(|f| f.join(name))
            .find(|p| p.exists())
        else {
            continue;
        };
        seen += 1;
        let report = report(&path);
        // Those that save only together are one finding, which names the others.
        let all = report.findings.iter();
        let found: Vec<_> = all
            .flat_map(|f| {
                [f.rule.name()]
                    .into_iter()
                    .chain(f.with.iter().map(|it| it.name()))
            })
            .collect();
        for rule in there {
            assert!(
                found.contains(rule),
                "{rule} is not among {found:?} in {name}"
            );
        }
        for rule in absent {
            assert!(!found.contains(rule), "{rule} is among {found:?} in {name}");
        }
    }
    assert!(seen >= 2, "{seen} traces were looked at");
}

/// Columns that a terminal has at least.
const COLUMNS: usize = 80;

fn too_wide(report: &Report) -> Option<String> {
    let options = text::Options {
        width: COLUMNS,
        ..text::Options::default()
    };
    let text = text::render(report, &options);
    // A path is not broken: it is there to be copied.
    let is_path = |line: &str| {
        let path = report.source.path.as_ref();
        path.is_some_and(|path| line.ends_with(&path.display().to_string()))
    };
    let mut wide = text.lines().filter(|line| line.width() > COLUMNS);
    wide.find(|line| !is_path(line)).map(str::to_owned)
}

#[test]
fn every_report_fits_eighty_columns() {
    for (path, _) in real_traces() {
        assert_eq!(too_wide(&report(&path)), None, "{}", path.display());
    }
    let mut runs = 0;
    for scenario in LIBRARY.scenarios {
        let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
        let plan = Arc::new(compiled.expect("bundled").plan);
        let feed = run(
            plan.clone(),
            &Profile::bundled(),
            Pace::AsFastAsPossible,
            None,
        );
        let feed = feed.expect("a thread");
        let mut trace = Trace::new(SourceInfo::default());
        for message in feed.receiver() {
            match message {
                Message::Batch(batch) => trace.apply(batch),
                Message::Finished(_) => break,
                _ => {}
            }
        }
        let report = Report::new(&trace, Some(&plan), KnownGpus::default());
        assert_eq!(too_wide(&report), None, "{}", scenario.name);
        // The name of every variant is there whole, and nothing is said of the harness's calls.
        let text = text::render(&report, &text::Options::default());
        for variant in &plan.variants {
            assert!(
                text.contains(&format!("  {}", variant.name)),
                "{}: {text}",
                variant.name
            );
        }
        assert!(!text.contains("CUDA calls"), "{text}");
        let brief = text::Options {
            parts: text::Parts::Summary,
            ..text::Options::default()
        };
        let brief = text::render(&report, &brief);
        assert!(brief.lines().count() <= 50, "{brief}");
        assert!(
            brief.len() <= text.len() && brief.contains("more: --all"),
            "{brief}"
        );
        runs += 1;
    }
    assert_eq!(runs, 16);
}

/// Kineto writes down what it estimates of each launch with NVIDIA's own `cuda_occupancy.h`: the warps that an SM can hold, or
/// those that the grid has for it where they are fewer.
#[test]
fn occupancy_of_real_launches_is_nvidias() {
    let mut compared = 0;
    for (path, _) in real_traces() {
        let path = path.display().to_string();
        if !path.ends_with(".json.gz") {
            continue;
        }
        let file = std::fs::File::open(&path).expect("a trace");
        let file = std::io::BufReader::new(flate2::read::GzDecoder::new(file));
        let json: Value = serde_json::from_reader(file).expect("JSON");
        let Some(sms) = json["deviceProperties"][0]["numSms"].as_f64() else {
            continue;
        };
        let most = json["deviceProperties"][0]["maxThreadsPerMultiprocessor"].as_f64();
        let warps = most.expect("an SM's threads") / 32.0;
        let key = |grid: &Value, block: &Value, registers: &Value, shared: &Value| {
            format!("{grid} {block} {registers} {shared}")
        };
        let events = json["traceEvents"].as_array().expect("events").iter();
        let said: std::collections::HashMap<String, f64> = events
            .filter_map(|event| {
                let it = &event["args"];
                // Older ones say 0 of a block with more shared memory than a block has without asking.
                let said = it["est. achieved occupancy %"]
                    .as_f64()
                    .filter(|it| *it > 0.0)?;
                let (registers, shared) = (&it["registers per thread"], &it["shared memory"]);
                Some((key(&it["grid"], &it["block"], registers, shared), said))
            })
            .collect();
        let report = serde_json::to_value(report(Path::new(&path))).expect("JSON");
        let kernels = report["kernels"].as_array().expect("kernels").iter();
        for it in kernels.flat_map(|it| it["shapes"].as_array().expect("shapes")) {
            let of = key(&it["grid"], &it["block"], &it["registers"], &it["shared"]);
            let Some(said) = said.get(&of) else { continue };
            let product = |of: &Value| -> f64 {
                let numbers = of.as_array().expect("three").iter();
                numbers.map(|it| it.as_f64().expect("a number")).product()
            };
            let per_block = (product(&it["block"]) / 32.0).ceil();
            let fit = it["occupancy"].as_f64().expect("known") * warps / per_block;
            let got = fit.min(product(&it["grid"]) / sms) * product(&it["block"]) / 32.0 / warps;
            assert!(
                (got * 100.0 - said).abs() <= 1.0,
                "{path} {of}: {got} {said}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn a_brief_report_has_room_for_its_rows_whatever_a_gpu_is_called() {
    let mut scene = trace::testing::Scene::new();
    scene.device(activity::DeviceInfo {
        name: "\u{202e}".repeat(9_000),
        ..trace::testing::h200()
    });
    scene.kernel(&"\u{1}".repeat(9_000), 1, 0, 1_000);
    let trace = scene.trace();
    let text = Report::new(&trace, None, KnownGpus::default())
        .brief()
        .expect("JSON");
    assert!(text.len() <= cuptop::report::brief::BYTES_MAX);
    let brief: Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(brief["devices"][0]["ops"], 1);
    assert_eq!(brief["kernels"][0]["count"], 1);
}

#[test]
fn a_brief_report_is_small_and_says_what_the_whole_one_says() {
    for (path, expected) in real_traces() {
        let report = report(&path);
        let text = report.brief().expect("JSON");
        assert!(text.len() <= cuptop::report::brief::BYTES_MAX);
        let brief: Value = serde_json::from_str(&text).expect("valid JSON");
        let ops = |of: &Value| -> i64 {
            let devices = of["devices"].as_array().expect("devices");
            devices.iter().filter_map(|it| it["ops"].as_i64()).sum()
        };
        assert_eq!(ops(&brief), ops(&expected), "{}", path.display());
        let devices = |of: &Value| of["devices"].as_array().expect("devices").clone();
        for (row, expected) in devices(&brief).iter().zip(devices(&expected)) {
            assert_eq!(row["span_ns"], expected["span_ns"], "{}", path.display());
            let rates = (row["h2d_gbps"].as_f64(), expected["h2d"]["gbps"].as_f64());
            // Both are rounded.
            let is_same = rates
                .0
                .zip(rates.1)
                .map_or(rates.0 == rates.1, |(a, b)| (a - b).abs() < 0.0011);
            assert!(is_same, "{}: {rates:?}", path.display());
        }
        let whole: Value = serde_json::from_str(&report.json().expect("JSON")).expect("valid");
        let rules = |of: &Value| -> Vec<String> {
            let rows = of["findings"].as_array().into_iter().flatten();
            rows.map(|it| it["rule"].to_string()).take(5).collect()
        };
        assert!(rules(&whole).starts_with(&rules(&brief)));
        let predicted = |of: &Value| -> Vec<Value> {
            let rows = of["findings"]
                .as_array()
                .into_iter()
                .flatten()
                .take(rules(&brief).len());
            rows.map(|it| it["predicted"]["low_ns"].clone()).collect()
        };
        assert_eq!(predicted(&brief), predicted(&whole), "{}", path.display());
        let left_out = brief["left_out"]["findings"].as_u64().unwrap_or(0) as usize;
        let all = whole["findings"].as_array().map_or(0, Vec::len);
        assert_eq!(rules(&brief).len() + left_out, all, "{}", path.display());
        for list in ["causes", "findings", "kernels", "devices"] {
            for row in brief[list].as_array().into_iter().flatten() {
                assert!(row["provenance"].is_string(), "{row}");
            }
        }
    }
}

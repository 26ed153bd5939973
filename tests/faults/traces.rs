//! Odd things in a timeline: many of them, long names, no length, impossible times, overlaps. The expected figures are
//! reckoned by hand from the events, which are written here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{run, stderr, stdout};

/// A Kineto trace of these events; times in microseconds.
fn kineto(events: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made.json");
    let text = format!("{{\"schemaVersion\":1,\"traceEvents\":[{events}]}}");
    std::fs::write(&path, text).expect("written");
    (folder, path)
}

fn kernel(name: &str, stream: u32, correlation: u32, ts: &str, dur: &str) -> String {
    format!(
        r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":{stream},"ts":{ts},"dur":{dur},"args":{{"device":0,"context":1,"stream":{stream},"correlation":{correlation},"grid":[1,1,1],"block":[32,1,1]}}}}"#
    )
}

fn launch(thread: u32, correlation: u32, ts: u64, dur: u64) -> String {
    format!(
        r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":{thread},"ts":{ts},"dur":{dur},"args":{{"correlation":{correlation}}}}}"#
    )
}

fn report(path: &Path) -> Value {
    let args = ["report".as_ref(), "--json".as_ref(), path.as_os_str()];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

/// Every way in which a trace leaves the program ends well.
fn leaves_every_way(path: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.json", "a.csv", "a.svg", "a.txt", "a.png"] {
        let out = folder.path().join(name);
        let args = [
            "export".as_ref(),
            path.as_os_str(),
            "-o".as_ref(),
            out.as_os_str(),
        ];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        assert!(out.metadata().is_ok_and(|it| it.len() > 0), "{name}");
    }
    let output = run(&["report".as_ref(), path.as_os_str()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// The idle time of a device is what its causes add up to.
fn idle_is_explained(device: &Value) {
    let causes = device["idle"].as_array().expect("causes");
    let sum: u64 = causes.iter().filter_map(|it| it["total_ns"].as_u64()).sum();
    assert_eq!(Some(sum), device["idle_ns"].as_u64(), "{device}");
}

#[test]
fn ten_thousand_streams_and_threads() {
    let mut events = String::new();
    for i in 1..=10_000_u32 {
        // Launched by a thread of its own, on a stream of its own: 5 us in every 10.
        let at = u64::from(i) * 10;
        let kernel = kernel("k", i, i, &(at + 4).to_string(), "5");
        let _ = write!(events, "{},{kernel},", launch(100_000 + i, i, at, 2));
    }
    let (_folder, path) = kineto(events.trim_end_matches(','));
    let report = report(&path);
    let device = &report["devices"][0];
    assert_eq!(device["ops"], 10_000);
    assert_eq!(device["busy_ns"], 50_000_000_u64);
    // From the first start to the last end: 9,999 times 10 us and 5 us.
    assert_eq!(device["span_ns"], 99_995_000_u64);
    assert_eq!(
        device["streams"].as_object().map(|it| it.len()),
        Some(10_000)
    );
    idle_is_explained(device);
    leaves_every_way(&path);
}

/// A thread that recurses: 3,000 functions inside each other around as many gaps. Who looks through all of them at each gap is busy for
/// minutes.
#[test]
fn functions_inside_each_other() {
    const MANY: u64 = 3000;
    let mut events = String::new();
    for i in 0..MANY {
        let at = 1_000_000 + i * 1000;
        events += &kernel("k", 7, i as u32 + 1, &at.to_string(), "10");
        events += ",";
        events += &launch(9, i as u32 + 1, at - 30, 5);
        events += ",";
        let (start, length) = (i * 10, 20_000_000 - i * 20);
        let _ = write!(
            events,
            r#"{{"ph":"X","cat":"python_function","name":"deep.py({i}): f","pid":9,"tid":9,"ts":{start},"dur":{length}}},"#
        );
    }
    let (_folder, path) = kineto(events.trim_end_matches(','));
    let begin = std::time::Instant::now();
    let device = &report(&path)["devices"][0];
    assert_eq!(device["idle_ns"], (MANY - 1) * 990_000);
    idle_is_explained(device);
    leaves_every_way(&path);
    let took = begin.elapsed();
    assert!(took.as_secs() < 60, "{took:?}");
}

#[test]
fn names_of_a_megabyte() {
    let long = "x".repeat(1 << 20);
    let events = [
        kernel(&format!("{long}1"), 7, 1, "10", "5"),
        kernel(&format!("{long}2"), 7, 2, "20", "5"),
    ];
    let (_folder, path) = kineto(&events.join(","));
    let report = report(&path);
    assert_eq!(report["devices"][0]["busy_ns"], 10_000);
    // Two names, though all that fits on a screen of them is equal.
    assert_eq!(report["kernels"].as_array().map(Vec::len), Some(2));
    leaves_every_way(&path);
}

#[test]
fn operations_without_length() {
    let events = [
        kernel("none", 7, 1, "10", "0"),
        kernel("none", 7, 2, "10", "0"),
        kernel("some", 7, 3, "20", "5"),
        kernel("none", 8, 4, "22", "0"),
    ];
    let (_folder, path) = kineto(&events.join(","));
    let report = report(&path);
    let device = &report["devices"][0];
    assert_eq!(device["ops"], 4);
    assert_eq!(device["busy_ns"], 5_000);
    assert_eq!(device["span_ns"], 15_000);
    idle_is_explained(device);
    leaves_every_way(&path);
}

#[test]
fn only_operations_without_length() {
    let (_folder, path) = kineto(&kernel("none", 7, 1, "10", "0"));
    let report = report(&path);
    let device = &report["devices"][0];
    assert_eq!(
        (&device["ops"], &device["busy_ns"], &device["span_ns"]),
        (&1.into(), &0.into(), &0.into())
    );
    leaves_every_way(&path);
}

#[test]
fn times_that_cannot_be() {
    // What is kept is what has a time; the rest is counted.
    let most = u64::MAX.to_string();
    let events = [
        kernel("zero", 7, 1, "0", "5"),
        kernel("last", 7, 2, &most, "5"),
        kernel("long", 7, 3, "1", &most),
        kernel("backwards", 7, 4, "50", "-20"),
        kernel("good", 7, 5, "100", "5"),
    ];
    let (_folder, path) = kineto(&events.join(","));
    let report = report(&path);
    let device = &report["devices"][0];
    let kept = device["ops"].as_u64().expect("a number");
    let health = &report["health"];
    let rejected = health["rejected"].as_object().expect("counters");
    let rejected: u64 = rejected.values().filter_map(Value::as_u64).sum();
    assert_eq!(kept + rejected, 5, "{health}");
    assert!(
        (2..=3).contains(&kept),
        "the first and the last are sound: {health}"
    );
    idle_is_explained(device);
    leaves_every_way(&path);
}

#[test]
fn operations_that_overlap_on_one_stream() {
    // 10 to 20 and 15 to 30 on one stream, 60 to 70 behind a gap of 30 in which nothing was launched.
    let events = [
        launch(1, 1, 1, 2),
        kernel("a", 7, 1, "10", "10"),
        launch(1, 2, 4, 2),
        kernel("b", 7, 2, "15", "15"),
        launch(1, 3, 50, 2),
        kernel("c", 7, 3, "60", "10"),
    ];
    let (_folder, path) = kineto(&events.join(","));
    let report = report(&path);
    let device = &report["devices"][0];
    assert_eq!(device["ops"], 3);
    assert_eq!(device["busy_ns"], 30_000, "a union, not a sum of 35");
    assert_eq!(device["idle_ns"], 30_000);
    assert_eq!(device["gaps"]["longest_ns"], 30_000);
    idle_is_explained(device);
    // Both are there, each with its own length.
    let names: Vec<(&str, u64)> = report["kernels"]
        .as_array()
        .expect("kernels")
        .iter()
        .filter_map(|it| Some((it["name"].as_str()?, it["total_ns"].as_u64()?)))
        .collect();
    assert_eq!(names, [("b", 15_000), ("a", 10_000), ("c", 10_000)]);
    leaves_every_way(&path);
}

#[test]
fn copies_of_no_bytes() {
    let copy = |ts: u32, bytes: u32| {
        format!(
            r#"{{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device)","pid":0,"tid":7,"ts":{ts},"dur":5,"args":{{"device":0,"context":1,"stream":7,"correlation":{ts},"bytes":{bytes}}}}}"#
        )
    };
    let (_folder, path) = kineto(&[copy(10, 0), copy(12, 1000), copy(30, 0)].join(","));
    let report = report(&path);
    let copies = &report["devices"][0]["h2d"];
    // 10 to 17 and 30 to 35.
    assert_eq!(
        (&copies["count"], &copies["bytes"], &copies["busy_ns"]),
        (&3.into(), &1000.into(), &12_000.into())
    );
    leaves_every_way(&path);
}

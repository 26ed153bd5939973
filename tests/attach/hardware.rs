//! The hardware beside a traced program: the whole way from NVML (a fake) to the report, and to what is opened later.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{fakes, has_python};

/// Traces the program as a user would, with these variables, and returns the report and the recording.
fn traced(variables: &[(&str, &str)], options: &[&str]) -> (serde_json::Value, tempfile::TempDir) {
    let options = [&["--counters", "off"], options].concat();
    traced_with(variables, &options, "60")
}

/// What an export says of a window of the hardware.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) length: i64,
    value: f64,
    held_down: Option<String>,
}

/// The windows of a metric that the export of a recording to SQL has.
pub(crate) fn windows(directory: &Path, metric: &str, unit: &str) -> Vec<Window> {
    let database = directory.join("hardware.sqlite");
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .arg("export")
        .arg(directory.join("run"))
        .arg("-o")
        .arg(&database)
        .output()
        .expect("runs");
    assert!(output.status.success(), "{output:?}");
    let database = rusqlite::Connection::open(database).expect("a database");
    let mut rows = database
        .prepare("SELECT end_ns - start_ns, value, held_down FROM hardware WHERE (metric, unit) = (?, ?)")
        .expect("SQL");
    let window = |row: &rusqlite::Row<'_>| {
        Ok(Window {
            length: row.get(0)?,
            value: row.get(1)?,
            held_down: row.get(2)?,
        })
    };
    let rows = rows.query_map([metric, unit], window).expect("rows");
    rows.map(|it| it.expect("a row")).collect()
}

/// The same for so many hundredths of a second.
pub(crate) fn traced_with(
    variables: &[(&str, &str)],
    options: &[&str],
    launches: &str,
) -> (serde_json::Value, tempfile::TempDir) {
    let made = fakes();
    let directory = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(["trace", "--headless", "--json", "--save"])
        .arg(directory.path().join("run"))
        .args(options)
        .arg("--")
        .arg(made.join("program"))
        .args(["device", launches])
        .env("LD_LIBRARY_PATH", made)
        .env("CUPTOP_CUPTI", made.join("libcupti.so.13"))
        .env("FAKE_NVML_OWN", directory.path().join("pid"))
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (report, directory)
}

pub(crate) fn opened(path: &Path) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(["report", "--json"])
        .arg(path.join("run"))
        .output()
        .expect("runs");
    serde_json::from_slice(&output.stdout).expect("a report")
}

pub(crate) fn metric<'a>(report: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let metrics = report["hardware"]["devices"][0]["metrics"].as_array();
    let mut metrics = metrics.expect("metrics").iter();
    metrics.find(|it| it["metric"] == name).expect("the metric")
}

fn rules(report: &serde_json::Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings");
    findings
        .iter()
        .filter_map(|it| it["rule"].as_str())
        .collect()
}

#[test]
fn counters_throttling_and_other_processes_reach_the_report_and_are_saved() {
    let (report, directory) = traced(
        &[
            ("FAKE_NVML_THROTTLE", "0x44"),
            ("FAKE_NVML_PIDS", "1,4000000"),
        ],
        &[],
    );
    for report in [&report, &opened(directory.path())] {
        let gpu = &report["hardware"]["devices"][0];
        // What the fake says, in units of the report: percent as shares, MiB/s as bytes per second.
        assert_eq!(metric(report, "sm")["mean"], 0.3f32 as f64, "{gpu:#}");
        assert_eq!(metric(report, "pcie_in")["max"], 1_073_741_824.0);
        assert_eq!(metric(report, "pcie_out")["max"], 536_870_912.0);
        assert_eq!(metric(report, "power")["mean"], 111.0);
        assert_eq!(metric(report, "power")["limit"], 700.0);
        assert_eq!(metric(report, "clock")["mean"], 1111.0);
        assert_eq!(metric(report, "memory")["mean"], 700_000.0);
        assert_eq!(metric(report, "nvlink_in")["lack"], "not on this GPU");
        assert_eq!(metric(report, "nvlink_in")["mean"], serde_json::Value::Null);
        assert_eq!(gpu["throttled_share"], 1.0);
        assert_eq!(
            gpu["throttled_by"][0]["reason"],
            "hardware thermal slowdown"
        );
        assert_eq!(gpu["throttled_by"][1]["reason"], "power cap");
        // The program's own process is listed too and is none of them.
        let others = gpu["others"].as_array().expect("others");
        assert_eq!(others.len(), 2, "{others:?}");
        assert_eq!(
            (&others[0]["pid"], &others[0]["memory"]),
            (&1.into(), &serde_json::Value::Null)
        );
        assert_eq!(others[1]["memory"], 4_096_000_000u64);
        assert!(rules(report).contains(&"machine"));
        let machine = report["hardware"]["machine"].as_str().expect("a line");
        assert!(
            machine.contains("clocks were held down") && machine.contains("also on this GPU"),
            "{machine}"
        );
        let share = report["hardware"]["watching"]["core_share"].as_f64();
        assert!(share.is_some_and(|it| it < 0.2), "{share:?}");
    }
}

#[test]
fn counters_are_exported() {
    let (_, directory) = traced(&[("FAKE_NVML_THROTTLE", "0x4")], &[]);
    let exported = |format: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
            .args(["export", "--to", format])
            .arg(directory.path().join("run"))
            .output()
            .expect("runs");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let power = windows(directory.path(), "power", "W");
    assert!(!power.is_empty());
    let held = |it: &Window| it.value == 111.0 && it.held_down.as_deref() == Some("power cap");
    assert!(power.iter().all(held), "{power:?}");
    assert!(windows(directory.path(), "nvlink_in", "bytes_per_s").is_empty());

    let chrome: serde_json::Value = serde_json::from_slice(&exported("chrome")).expect("JSON");
    let events = chrome["traceEvents"].as_array().expect("events");
    let clocks = events
        .iter()
        .filter(|it| it["name"] == "SM clock (hardware)");
    let values: Vec<&serde_json::Value> = clocks.map(|it| &it["args"]["MHz"]).collect();
    assert_eq!(values.len(), power.len());
    assert!(values.iter().all(|it| **it == 1111.0), "{values:?}");

    let held = events
        .iter()
        .filter(|it| it["name"] == "clocks held down (hardware)");
    let values: Vec<&serde_json::Value> = held.map(|it| &it["args"]["yes"]).collect();
    assert!(
        !values.is_empty() && values.iter().all(|it| **it == 1),
        "{values:?}"
    );
}

#[test]
fn without_being_asked_for_nothing_is_read() {
    let (report, directory) = traced(&[("FAKE_NVML_THROTTLE", "0x44")], &["--hardware", "off"]);
    assert_eq!(report.get("off_cpu"), None);
    let hardware = report.get("hardware").unwrap_or(&serde_json::Value::Null);
    let devices = hardware["devices"].as_array();
    assert!(devices.is_none_or(Vec::is_empty), "{hardware}");
    assert!(!hardware.to_string().contains("held down"), "{hardware}");
    let files = std::fs::read_dir(directory.path().join("run")).expect("read");
    assert_eq!(files.count(), 1);
}

#[test]
fn processes_of_another_namespace_are_nobodys() {
    // As in a container: the program's own id is not in the list.
    let (report, _directory) = traced(
        &[("FAKE_NVML_OWN", "/proc/none"), ("FAKE_NVML_PIDS", "70001")],
        &[],
    );
    let gpu = &report["hardware"]["devices"][0];
    assert_eq!(gpu["others"].as_array().map(Vec::len), Some(0));
    assert_eq!(gpu["unknown_processes"], 1);
    assert!(
        !report["hardware"]["machine"]
            .to_string()
            .contains("this GPU")
    );
    assert_eq!(gpu["throttled_ns"], 0);
}

/// Attaches to a process for some seconds, with the fake of NVML, which lists the process whose id is in `own`. Returns what was said
/// and the recording; nothing where this machine does not allow it.
fn attached(pid: u32, own: &Path) -> Option<(String, tempfile::TempDir)> {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args([
            "attach",
            "--stacks-only",
            &pid.to_string(),
            "--headless",
            "--duration",
            "4s",
            "--save",
        ])
        .arg(directory.path().join("run"))
        .env("LD_LIBRARY_PATH", fakes())
        .env("FAKE_NVML_OWN", own)
        .env("FAKE_NVML_PIDS", "4000000")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("may not be read") {
        eprintln!("left out: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some((said, directory))
}

#[test]
fn of_a_running_process_without_python_the_gpus_are_looked_at() {
    let mut sleep = Command::new("sleep").arg("60").spawn().expect("starts");
    let folder = tempfile::tempdir().expect("a directory");
    let own = folder.path().join("pid");
    std::fs::write(&own, sleep.id().to_string()).expect("written");
    let seen = attached(sleep.id(), &own);
    let unseen = attached(sleep.id(), &folder.path().join("none"));
    sleep.kill().expect("killed");
    sleep.wait().expect("ends");
    let (Some((said, seen)), Some((unsaid, _unseen))) = (seen, unseen) else {
        return;
    };
    assert!(said.contains("there is no Python in process"), "{said}");
    assert!(unsaid.contains("nothing was seen of process"), "{unsaid}");
    let report = opened(seen.path());
    assert_eq!(
        report["verdicts"][0]["text"],
        "cuptop watched this program from outside, so it recorded no kernels or copies"
    );
    let metrics = report["hardware"]["devices"][0]["metrics"].as_array();
    let power = metrics.and_then(|all| all.iter().find(|it| it["metric"] == "power"));
    // The fake says 111 W of the GPU on which it lists the process.
    assert_eq!(power.expect("power")["mean"], 111.0, "{report:#}");
}

#[test]
fn a_running_process_has_hardware_rows_of_the_gpu_that_nvml_lists_it_on() {
    if !has_python() {
        return;
    }
    let mut python = Command::new("python3")
        .args(["-c", "import time\nwhile True: time.sleep(0.01)"])
        .spawn()
        .expect("starts");
    let folder = tempfile::tempdir().expect("a directory");
    let own = folder.path().join("pid");
    std::fs::write(&own, python.id().to_string()).expect("written");
    let listed = attached(python.id(), &own);
    let unlisted = attached(python.id(), &folder.path().join("none"));
    python.kill().expect("killed");
    python.wait().expect("ends");
    let (Some((_, listed)), Some((said, _unlisted))) = (listed, unlisted) else {
        return;
    };
    assert!(said.contains("use no GPU so far"), "{said}");
    // The one of the two that is listed is the second of NVML, and the fake says 111 W of it. Of 4 s in looks 105 ms apart or more: on a
    // busy machine they are fewer.
    let power = windows(listed.path(), "power", "W");
    assert!((1..=39).contains(&power.len()), "{power:?}");
    assert!(power.iter().all(|it| it.value == 111.0), "{power:?}");
    let report = opened(listed.path());
    let device = &report["hardware"]["devices"][0];
    assert_eq!(
        device["others"][0]["pid"], 4_000_000,
        "{:#}",
        report["hardware"]
    );
    // The screen has rows of it, and no row of operations that nobody recorded.
    let path = listed.path().join("picture.txt");
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .arg("open")
        .arg(listed.path().join("run"))
        .arg("--screenshot")
        .arg(&path)
        .output()
        .expect("runs");
    let picture = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{output:?}"));
    let has_row = |name: &str| {
        picture
            .lines()
            .any(|it| it.starts_with(&format!(" {name} ")))
    };
    assert!(has_row("clock") && !has_row("GPU"), "{picture}");
}

//! What kernels wait for: the whole way from CUPTI (a fake) to the report, and when it is not sampled.

use std::collections::HashSet;
use std::process::Command;

use crate::hardware::{opened, traced_with};
use crate::harness::fakes;

/// What is said of the kernel of odd launches.
fn odd(report: &serde_json::Value) -> &serde_json::Value {
    let kernels = report["kernels"].as_array().expect("kernels");
    let mut odd = kernels.iter().filter(|it| it["name"] == "odd()");
    &odd.next().expect("it ran")["stalls"]
}

/// The notices of a trace for a second with these variables, and whether anything was sampled.
fn told(variables: &[(&str, &str)], options: &[&str]) -> (String, bool) {
    told_of("exec \"$0\" device 100", variables, options)
}

/// The same of a shell's command, in which `$0` is the program.
fn told_of(command: &str, variables: &[(&str, &str)], options: &[&str]) -> (String, bool) {
    let directory = tempfile::tempdir().expect("a directory");
    let made = fakes();
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(["trace", "--headless", "--stalls", "--save"])
        .arg(directory.path().join("run"))
        .args(options)
        .args(["--", "sh", "-c", command])
        .arg(made.join("program"))
        .env("LD_LIBRARY_PATH", made)
        .env("CUPTOP_CUPTI", made.join("libcupti.so.13"))
        .envs(variables.iter().copied())
        .output()
        .expect("runs");
    let has_some = output.status.success() && odd(&opened(directory.path())).is_object();
    let said = String::from_utf8_lossy(&output.stderr);
    (
        said.split_whitespace().collect::<Vec<_>>().join(" "),
        has_some,
    )
}

#[test]
fn samples_reach_the_report_and_are_saved() {
    let (report, directory) = traced_with(&[], &["--stalls", "on"], "150");
    let mix = odd(&report);
    let count = |name: &str| mix[name].as_u64().expect("a number");
    let samples = count("samples");
    assert!(samples >= 5000 && samples % 1000 == 0, "{mix}");
    // What the fake makes up, in thousandths.
    let parts = ["memory", "issued", "other", "sm"].map(|name| 1000 * count(name) / samples);
    assert_eq!(parts, [800, 120, 80, 0]);
    assert_eq!(odd(&opened(directory.path())), mix);
    // Counters never run beside it, and of too few samples nothing is said.
    let kernels = report["kernels"].as_array().expect("kernels").iter();
    assert!(
        kernels
            .filter(|it| it["name"] == "even()")
            .all(|it| it["stalls"].is_null())
    );
    let metrics = report["hardware"]["devices"][0]["metrics"].as_array();
    assert!(
        metrics
            .expect("metrics")
            .iter()
            .all(|it| it["metric"] != "dram_read")
    );
}

/// The cubin's code lies at these places (`readelf -SW`), and the fake's samples at lines that `readelf --debug-dump=decodedline` has.
#[test]
fn lines_reach_the_report_and_no_code_is_kept() {
    let cubin = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/crates/collector/src/cubin/waits.cubin"
    );
    let (report, directory) = traced_with(&[("FAKE_MODULE", cubin)], &["--stalls", "on"], "150");
    let lines = odd(&report)["lines"].as_array().expect("lines");
    let said = |it: &serde_json::Value| {
        let share = it["share"].as_f64().expect("a share");
        assert_eq!(it["file"], "/src/waits.cu");
        (
            it["line"].as_u64(),
            (100.0 * share).round(),
            it["does"].as_str().map(str::to_owned),
        )
    };
    let of = |line, share, does: &str| (Some(line), share, Some(does.to_owned()));
    let expected = [
        of(13, 62.0, "waits for memory"),
        of(7, 12.0, "issues"),
        of(11, 10.0, "waits for memory"),
    ];
    assert_eq!(lines[..3].iter().map(said).collect::<Vec<_>>(), expected);
    assert_eq!(lines.len(), 5);
    let code = std::fs::read(cubin).expect("readable");
    let mut files = 0;
    for it in directory
        .path()
        .join("run")
        .read_dir()
        .expect("a recording")
    {
        let kept = std::fs::read(it.expect("readable").path()).expect("readable");
        let kept: HashSet<&[u8]> = kept.windows(64).collect();
        assert!(!code[0x1a80..0x2180].windows(64).any(|it| kept.contains(it)));
        files += 1;
    }
    assert!(files > 1);
    let open = |options: &[&str]| {
        let run = directory.path().join("run");
        let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
            .args(options)
            .arg(run)
            .output();
        String::from_utf8_lossy(&output.expect("runs").stdout).into_owned()
    };
    let page = open(&["report", "--only", "kernels"]);
    assert!(page.contains("issues 12 %; 62 % at waits.cu:13"), "{page}");
    assert!(!open(&["report", "--json", "--anonymous"]).contains("/src/"));
}

#[test]
fn the_page_says_what_a_kernel_waits_for() {
    let (said, has_some) = told(&[], &["--only", "kernels"]);
    assert!(
        has_some && said.contains("waits for memory 80 %, issues 12 %"),
        "{said}"
    );
}

#[test]
fn it_is_refused_by_name_where_kernels_could_be_lost() {
    for (variable, why) in [
        (
            ("FAKE_PM_ENABLE", "26"),
            "another user may have the GPU's counters",
        ),
        (
            ("FAKE_VERSION", "130200"),
            "not tried with CUPTI 130200 and driver 580",
        ),
        (
            ("FAKE_PC_ENABLE", "43"),
            "CUPTI refuses to sample: not supported on a MIG slice",
        ),
    ] {
        let (said, has_some) = told(&[variable], &[]);
        assert!(!has_some && said.contains(why), "{why}: {said}");
    }
    let both = [
        "run",
        "transpose",
        "--headless",
        "--stalls",
        "--counters",
        "on",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(both)
        .output();
    assert_eq!(output.expect("runs").status.code(), Some(2));
    let (said, _) = told(&[], &["--counters", "on"]);
    assert!(said.contains("ask for one of them"), "{said}");
}

#[test]
fn where_it_ends_early_that_is_said() {
    let (said, _) = told(&[("FAKE_PC_DROPPED", "7")], &["--only", "hardware"]);
    assert!(
        said.contains("samples of what kernels wait for (--stalls) were lost"),
        "{said}"
    );
    let (said, _) = told(&[("FAKE_PC_DATA", "999")], &[]);
    assert!(said.contains("end here (CUPTI says 999)"), "{said}");
}

/// Of two programs on one GPU that were sampled, one crashed.
#[test]
fn one_process_of_a_gpu_is_sampled() {
    let command = "\"$0\" device 150 & \"$0\" device 150; wait";
    let (said, has_some) = told_of(command, &[], &[]);
    assert!(has_some, "{said}");
    for expected in [
        "stalls of GPU 0 are sampled",
        "no stalls of GPU 0: another process is sampled there",
    ] {
        assert_eq!(said.matches(expected).count(), 1, "{said}");
    }
}

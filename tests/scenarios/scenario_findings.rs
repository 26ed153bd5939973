//! What is found in each variant of the bundled scenarios: the mistake is, the cure is not.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Scenario, variant, rules that must fire at some point of a sweep; no other may at any, but those of `BESIDE`.
const EXPECTED: &[(&str, &str, &[&str])] = &[
    ("pipeline", "sequential", &["no-overlap"]),
    ("pipeline", "streamed", &[]),
    ("pinned_vs_pageable", "pinned_async", &[]),
    ("pinned_vs_pageable", "pinned_sync", &[]),
    ("pinned_vs_pageable", "pageable_async", &["pageable-copy"]),
    ("pinned_vs_pageable", "pageable_sync", &["pageable-copy"]),
    ("copy_engines", "uploads_one_stream", &[]),
    (
        "copy_engines",
        "uploads_two_streams",
        &["same-direction-streams"],
    ),
    ("copy_engines", "both_ways_one_stream", &["no-overlap"]),
    ("copy_engines", "both_ways_two_streams", &[]),
    ("tiny_copies", "copies", &["tiny-copies"]),
    ("tiny_copies", "kernels", &["launch-bound"]),
    ("tiny_copies", "graph", &[]),
    ("tiny_copies", "one_copy", &[]),
    ("tiny_copies", "reduction", &[]),
    ("fused_sin", "separate", &["unfused"]),
    ("fused_sin", "fused", &[]),
    ("warmup", "cold", &["cold-start"]),
    ("warmup", "first", &[]),
    ("warmup", "warm", &[]),
    ("cpu_or_gpu", "forgot_sync", &["forgot-sync"]),
    ("cpu_or_gpu", "gpu_matmul_alone", &[]),
    ("cpu_or_gpu", "gpu_sin_alone", &[]),
    ("roofline", "large", &[]),
    ("alloc_in_loop", "malloc_each", &["alloc-in-loop"]),
    ("alloc_in_loop", "pool", &[]),
    ("alloc_in_loop", "reuse", &[]),
    ("transpose", "row_by_row", &["launch-bound"]),
    ("transpose", "naive", &["below-roof"]),
    ("transpose", "tiled", &["bank-conflicts"]),
    ("transpose", "padded", &[]),
    ("sync_points", "device_sync", &["sync-in-loop"]),
    ("sync_points", "stream_sync", &["sync-in-loop"]),
    ("sync_points", "event_sync", &["sync-in-loop"]),
    ("sync_points", "no_sync", &[]),
    ("cuda_graph", "launches", &["launch-bound"]),
    ("cuda_graph", "graph", &[]),
    ("three_streams", "host_syncs", &["sync-in-loop"]),
    ("three_streams", "events", &[]),
    ("memory_peak", "sequential", &["no-overlap"]),
    ("memory_peak", "streamed", &[]),
    ("memory_peak", "ring", &[]),
    ("cross_stream_reuse", "race", &["race"]),
    ("cross_stream_reuse", "ordered", &["no-overlap"]),
    ("cross_stream_reuse", "two_buffers", &[]),
    ("two_gpus", "through_host", &["through-host"]),
    ("two_gpus", "peer", &[]),
    ("two_gpus", "on_one", &["idle-gpu"]),
    ("two_gpus", "on_two", &[]),
];

/// Found beside the lesson, and true: a small matrix fills no GPU, three streams that the host holds up do not overlap,
/// each of thousands of blocking copies is waited for, and a single graph leaves the GPU idle while it is launched.
const BESIDE: &[(&str, &str)] = &[
    ("warmup", "under-filled-gpu"),
    ("cpu_or_gpu", "under-filled-gpu"),
    ("three_streams", "no-overlap"),
    ("tiny_copies", "sync-in-loop"),
    ("tiny_copies", "no-cure"),
    // A remark: a graph's short nodes have gaps between them.
    ("tiny_copies", "graph-nodes"),
    ("cuda_graph", "graph-nodes"),
];

/// What bounds each kind of mistake, by scenario and variant.
const BOUND: &[(&str, &str, &str)] = &[
    ("pipeline", "sequential", "copy"),
    ("sync_points", "device_sync", "sync"),
    ("sync_points", "stream_sync", "sync"),
    ("sync_points", "event_sync", "sync"),
    ("sync_points", "no_sync", "compute"),
    ("cuda_graph", "launches", "launch"),
    ("transpose", "row_by_row", "launch"),
    ("copy_engines", "uploads_one_stream", "copy"),
    ("two_gpus", "peer", "peer"),
    ("tiny_copies", "copies", "sync"),
];

/// Mistakes whose finding says what its cure saves: scenario, mistake, rule, cure that ran. Of a sweep at every point.
const SAVINGS: &[(&str, &str, &str, &str)] = &[
    ("pipeline", "sequential", "no-overlap", "streamed"),
    (
        "pinned_vs_pageable",
        "pageable_async",
        "pageable-copy",
        "pinned_async",
    ),
    (
        "pinned_vs_pageable",
        "pageable_sync",
        "pageable-copy",
        "pinned_sync",
    ),
    (
        "copy_engines",
        "both_ways_one_stream",
        "no-overlap",
        "both_ways_two_streams",
    ),
    ("tiny_copies", "copies", "tiny-copies", "one_copy"),
    ("fused_sin", "separate", "unfused", "fused"),
    ("alloc_in_loop", "malloc_each", "alloc-in-loop", "reuse"),
    ("sync_points", "device_sync", "sync-in-loop", "no_sync"),
    ("sync_points", "stream_sync", "sync-in-loop", "no_sync"),
    ("sync_points", "event_sync", "sync-in-loop", "no_sync"),
    ("cuda_graph", "launches", "launch-bound", "graph"),
    ("three_streams", "host_syncs", "sync-in-loop", "events"),
    ("memory_peak", "sequential", "no-overlap", "streamed"),
];

/// A saving is off by no more than this part of what the mistake takes.
const OFF_MAX: f64 = 0.05;

/// What is wrong with what the findings of a scenario say they save.
fn wrong_savings(scenario: &str, variants: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    let ns = |v: &Value| v["makespan_ns"].as_i64().expect("a time");
    for (_, mistake, rule, cure) in SAVINGS.iter().filter(|s| s.0 == scenario) {
        let mut compared = 0;
        for of in variants.iter().filter(|v| v["name"] == *mistake) {
            let is_twin = |v: &&Value| v["name"] == *cure && v["point"] == of["point"];
            let twin = variants.iter().find(is_twin).expect("a cure");
            let findings = of["findings"].as_array().expect("findings");
            let Some(finding) = findings.iter().find(|f| f["rule"] == *rule) else {
                continue;
            };
            let saving = finding["saving_ns"].as_i64().unwrap_or(i64::MIN / 2);
            let off = (saving - (ns(of) - ns(twin))).abs() as f64 / ns(of) as f64;
            // What takes microseconds is lost in what a launch takes.
            if off > OFF_MAX && ns(of) > 50_000 {
                wrong.push(format!(
                    "{scenario} {mistake} @ {}: {rule} saves {saving} ns, {cure} {}",
                    of["point"],
                    ns(of) - ns(twin)
                ));
            }
            compared += 1;
        }
        if compared == 0 {
            wrong.push(format!("{scenario} {mistake}: no {rule} to compare"));
        }
    }
    // In any: no more than the bound, and together no more than what is looked at.
    for of in variants {
        let mut sum = 0;
        for finding in of["findings"].as_array().expect("findings") {
            let saving = finding["saving_ns"].as_i64().unwrap_or(0);
            sum += saving;
            if saving > finding["bound_ns"].as_i64().expect("a bound") {
                wrong.push(format!(
                    "{scenario} {}: above its bound: {finding}",
                    of["name"]
                ));
            }
        }
        if sum > ns(of) {
            wrong.push(format!(
                "{scenario} {}: {sum} ns of {} are saved",
                of["name"],
                ns(of)
            ));
        }
    }
    wrong
}

fn simulated(scenario: &str) -> Value {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/{scenario}.toml"));
    let run = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(["run", "--headless", "--json", "--backend", "sim"])
        .arg(file)
        .output()
        .expect("cuptop runs");
    serde_json::from_slice(&run.stdout).expect("json")
}

#[test]
fn mistakes_are_found_and_cures_are_not_blamed() {
    let mut scenarios: Vec<&str> = EXPECTED.iter().map(|e| e.0).collect();
    scenarios.dedup();
    assert_eq!(scenarios.len(), 16);
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let report = simulated(scenario);
        let variants = report["variants"].as_array().expect("variants");
        for (_, name, rules) in EXPECTED.iter().filter(|e| e.0 == scenario) {
            let mut found: Vec<&str> = variants
                .iter()
                .filter(|v| v["name"] == *name)
                .flat_map(|v| v["findings"].as_array().expect("findings"))
                .map(|f| f["rule"].as_str().expect("rule"))
                .collect();
            found.sort_unstable();
            found.dedup();
            let missing = rules.iter().filter(|r| !found.contains(r));
            wrong.extend(missing.map(|rule| format!("{scenario} {name}: no {rule}")));
            let surplus = found
                .iter()
                .filter(|r| !rules.contains(r) && !BESIDE.contains(&(scenario, r)));
            wrong.extend(surplus.map(|rule| format!("{scenario} {name}: {rule}")));
        }
        for (_, name, bound) in BOUND.iter().filter(|b| b.0 == scenario) {
            let variant = variants.iter().find(|v| v["name"] == *name);
            let verdict = &variant.expect("variant")["verdicts"][0];
            if verdict["bound_by"] != *bound {
                wrong.push(format!(
                    "{scenario} {name}: not {bound}: {}",
                    verdict["text"]
                ));
            }
        }
        wrong.extend(wrong_savings(scenario, variants));
        for variant in variants {
            let devices = variant["devices"].as_array().map_or(0, Vec::len);
            let verdicts = variant["verdicts"].as_array().map_or(0, Vec::len);
            if verdicts != devices + 1 {
                wrong.push(format!(
                    "{scenario}: {verdicts} verdicts on {devices} devices"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

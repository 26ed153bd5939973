//! The last thing that `cargo test` says: which tests this machine has nothing for, and what they need. Such tests
//! are marked as ignored, with what they need, so none of them passes without having run.

use std::path::Path;

/// What tests need beyond a compiler, how they are told of it, and whether they ran.
fn left_out() -> Vec<&'static str> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_beside = ["../shared/traces", "../../shared/traces"]
        .iter()
        .any(|folder| root.join(folder).join("expected.jsonl").is_file());
    let ran_ignored = std::env::args().any(|a| a == "--ignored" || a == "--include-ignored");
    let needs = [
        (ran_ignored, "libcupti (CUPTOP_TEST_CUPTI)"),
        (ran_ignored, "NVRTC (CUPTOP_TEST_NVRTC)"),
        (is_beside, "more real traces (../shared/traces)"),
        // No test of cargo's uses a GPU.
        (false, "a GPU (tests/gpu/run.sh)"),
    ];
    needs
        .into_iter()
        .filter_map(|(ran, what)| (!ran).then_some(what))
        .collect()
}

#[allow(clippy::print_stdout, reason = "it is all that this is for")]
fn main() {
    println!(
        "\nleft out, what needs: {} (libraries: `cargo test --workspace -- --ignored`)",
        left_out().join(", ")
    );
}

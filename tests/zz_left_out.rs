//! The last thing that `cargo test` says: which tests this machine has nothing for, and what they need. Such tests
//! are marked as ignored, with what they need, so none of them passes without having run.

/// What tests need beyond a compiler, how they are told of it, and whether they ran.
fn left_out() -> Vec<&'static str> {
    let has_traces = std::env::var_os("CUPTOP_TEST_TRACES").is_some();
    let ran_ignored = std::env::args().any(|a| a == "--ignored" || a == "--include-ignored");
    let needs = [
        (ran_ignored, "libcupti (CUPTOP_TEST_CUPTI)"),
        (ran_ignored, "NVRTC (CUPTOP_TEST_NVRTC)"),
        (
            has_traces,
            "more real traces (CUPTOP_TEST_TRACES; see tests/data/traces/README.md)",
        ),
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

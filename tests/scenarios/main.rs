//! Scenarios: their texts, their plans, and what the simulator makes of them.

#[path = "../common/program.rs"]
mod program;

mod scenario_findings;
mod scenario_fuzz;
mod scenario_invalid;
mod scenario_plan;
mod scenario_source;
mod scenarios;
mod scenarios_on_sim;
mod sim;
mod sim_against_h200;
mod sim_invariants;
mod sim_plan;
mod whatif_pairs;

/// A scenario of this text, in no file.
fn source_of(text: &str) -> scenario::Source {
    scenario::Source {
        name: "t.toml".to_owned(),
        path: None,
        text: text.into(),
        kernel_dir: None,
        library: cuptop::bundled::LIBRARY,
    }
}

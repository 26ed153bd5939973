//! Scenario files: TOML text to a validated [`plan::Plan`].

pub mod expect;
pub mod plan;

//! Scenario files: TOML text to a validated [`plan::Plan`].

pub mod bundled;
pub mod expect;
pub mod plan;

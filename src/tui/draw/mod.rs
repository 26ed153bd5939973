//! Parts of the screen that are prepared from the state and then drawn, one file each.

pub mod alert;
pub mod axis;
pub mod chart;
pub mod details;
pub mod gaps;
pub mod gpu;
pub mod header;
pub mod ink;
pub mod label;
pub mod lane;
pub mod layout;
mod measure;
pub mod panel;
pub mod pen;
pub mod prelude;
pub mod pulse;
mod range;
pub mod strip;
pub mod titles;
pub mod verdict;
pub mod versus;

//! Where activities come from: the simulator, the runner, a traced program, trace files.

mod gather;
mod kineto;
mod nsys;

pub mod file;
pub mod recording;
pub mod runner;
pub mod sim;

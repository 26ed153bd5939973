//! Where activities come from: the simulator, the runner, a traced program, trace files.

pub mod runner;
pub mod sim;

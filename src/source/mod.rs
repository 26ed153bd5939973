//! Where activities come from: the simulator, the runner, a traced program, trace files.

pub mod attach;
pub mod file;
mod gather;
mod hardware;
mod kineto;
mod looking;
mod nsys;
mod private;
pub mod python;
pub mod recording;
pub mod replay;
pub mod runner;
pub mod sim;
mod stream;

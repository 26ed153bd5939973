//! Where activities come from: the simulator, the runner, a traced program, trace files.

pub mod attach;
pub mod file;
mod folder;
mod gather;
mod hardware;
pub mod hosts;
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

/// Times that are further than this from zero (73 years) come from a broken clock: sums of them overflow.
const TIME_MAX: crate::activity::Ns = 1 << 61;

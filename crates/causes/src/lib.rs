//! Why a GPU is idle, told from what was recorded.
//!
//! [`graph`] holds what depended on what. [`idle`] cuts each gap into pieces and tells the cause of each: its names stand
//! at the root of the crate, [`Causes`] first. [`first_use`] finds calls that were slow because something happened for
//! the first time. [`late`] sums what comes before late launches. [`needs`] tells which copies the CPU works on,
//! [`nested`] which range of a thread is innermost, and [`stacks`] which line samples saw.
//! [`around`] names the ranges around a call, and [`asleep`] tells whether the CPU only sleeps.
//! [`evidence`] names the record that shows something. Nothing here needs more than the store.

pub mod around;
pub mod asleep;
pub mod evidence;
pub mod first_use;
pub mod graph;
mod idle;
pub mod late;
pub mod needs;
pub mod nested;
pub mod stacks;

pub use idle::{
    Bound, Cause, Causes, Certainty, Culprit, Explanation, Gap, Group, IdleCause, LAUNCH_GAP_MAX,
    LeftOut, Piece, Pieces, Ready, Shares, Turns, explain, is_loading, is_mpi, is_profilers,
    launched, profilers, sum_by,
};

#[cfg(any(test, feature = "testing"))]
pub mod testing;

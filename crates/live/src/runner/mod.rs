//! Scenarios on a real GPU.
//!
//! ```text
//!  cuptop (this process)                         cuptop run-plan (the runner process)
//!  ─────────────────────                         ────────────────────────────────────
//!  run() ── job, one line of JSON ─────stdin───► plan ─► NVRTC ─► collector ─► passes
//!    ◄───── events, JSON lines ───────stdout──── progress, counts, errors
//!    ◄═════ batches ═════════ recording ════════ CUPTI records, pass marks
//! ```
//!
//! This process loads no CUDA library but NVML, which only reads. Room by room: `parent` follows a run, `child` is a running
//! process and `protocol` what is said; `process` is the other side; `driver`, `device`, `nvrtc`
//! and `compile` are CUDA's libraries; `probe` says what a machine has.
//!
//! `unsafe` is for calls into CUDA's libraries and for memory that they allocate, nothing else.

mod child;
mod compile;
pub mod device;
mod driver;
mod fault;
mod found;
mod nvrtc;
mod parent;
mod probe;
mod process;
mod protocol;
mod tally;

pub use found::{Part, Probe, Rejected};
pub use parent::{RunRequest, run};
pub use probe::{compile, probe};
pub use process::process_main;

/// The hidden subcommand that is the runner process: its whole work is [`process_main`].
pub const PROCESS_COMMAND: &str = "run-plan";

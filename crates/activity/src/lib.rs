//! The one record that every source produces and everything behind it consumes, and its bytes in a recording.
//!
//! Nothing in here knows CUDA, CUPTI, Kineto, the simulator or the screen. The collector (inside a traced
//! program) writes these records, cuptop reads them, and every other source makes the same. Without the
//! features the crate has no dependencies: so it is loaded into other people's programs. With `feed` come the [`Batch`]es in
//! which records travel, the bounded channel that carries them ([`feed`]), and words and units for people ([`text`], [`units`]).
//!
//! Times are integer nanoseconds ([`Ns`]); a [`Span`] is half-open, `[start, end)`. Within one
//! timeline every source uses the same clock (for CUPTI that is `CLOCK_REALTIME`), so activities
//! of several processes can stand on one axis.

#![warn(missing_docs)]

#[cfg(feature = "feed")]
pub mod anonymous;
#[cfg(feature = "feed")]
pub mod batch;
mod code;
mod definitions;
#[cfg(feature = "door")]
pub mod door;
pub mod entry;
#[cfg(feature = "feed")]
pub mod feed;
pub mod hardware;
mod health;
#[cfg(feature = "feed")]
pub mod occupancy;
mod records;
pub mod samples;
#[cfg(feature = "feed")]
pub mod stats;
#[cfg(feature = "feed")]
pub mod text;
pub mod time;
#[cfg(feature = "feed")]
pub mod units;

#[cfg(feature = "feed")]
pub use batch::{Batch, Def};
pub use definitions::{Collective, DeviceInfo, LaunchShape, Mode, ProcessInfo, StreamInfo};
pub use hardware::{
    GpuIdentity, GpuLimits, GroupWindow, Hardware, Metric, MetricUnit, Occupant, OffCpu, Owner,
    Reading, SLOWDOWNS, SLOWED, StallSamples, ThreadWindow, Uuid, WatchCost, uuid_of, uuid_text,
};
pub use health::Health;
pub use records::*;
pub use samples::{Frame, SampleDef, SampledThread, Samples, Sampling, StackId, StackSample};
pub use time::{Ns, Span};

/// Times that are further than this from zero (73 years) come from a broken clock: sums of them overflow.
pub const TIME_MAX: Ns = 1 << 61;

/// A string that was defined before it is used; local to one process.
pub type NameId = u32;
/// A launch configuration that was defined before it is used; local to one process.
pub type ShapeId = u32;
/// Joins a GPU operation with the host call that caused it, within one process. 0 means none.
pub type Correlation = u32;

//! The one record that every source produces and everything behind the channel consumes.
//!
//! A source (the runner's recording, a traced program's recording, the simulator, a trace file) turns what it
//! has into [`Activity`] values, groups them in a [`Batch`] and sends them over a bounded channel
//! ([`feed`]); the trace store takes them from there. The records themselves are those of the crate
//! [`activity`], which the collector shares.

pub mod anonymous;
pub mod batch;
pub mod feed;
pub mod hardware;
pub mod samples;
pub mod units;

pub use ::activity::*;
pub use batch::{Batch, Def};
pub use hardware::{
    GpuIdentity, GpuLimits, GroupWindow, Hardware, Metric, MetricUnit, Occupant, OffCpu, Owner,
    Reading, SLOWDOWNS, SLOWED, ThreadWindow, Uuid, WatchCost,
};
pub use samples::{Frame, Look, SampleDef, Samples, Sampling, Seen, StackId};

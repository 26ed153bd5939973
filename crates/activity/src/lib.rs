//! The one record that every source produces and everything behind it consumes, and its bytes in a recording.
//!
//! Nothing in here knows CUDA, CUPTI, Kineto, the simulator or the screen. The collector (inside a traced
//! program) writes these records, cuptop reads them, and every other source makes the same. The crate has no
//! dependencies, as it is loaded into other people's programs.
//!
//! Times are integer nanoseconds ([`Ns`]); a [`Span`] is half-open, `[start, end)`. Within one
//! timeline every source uses the same clock (for CUPTI that is `CLOCK_REALTIME`), so activities
//! of several processes can stand on one axis.

mod code;
mod definitions;
pub mod entry;
mod health;
mod records;
pub mod time;

pub use definitions::{Collective, DeviceInfo, LaunchShape, Mode, ProcessInfo, StreamInfo};
pub use health::Health;
pub use records::*;
pub use time::{Ns, Span};

/// A string that was defined before it is used; local to one process.
pub type NameId = u32;
/// A launch configuration that was defined before it is used; local to one process.
pub type ShapeId = u32;
/// Joins a GPU operation with the host call that caused it, within one process. 0 means none.
pub type Correlation = u32;

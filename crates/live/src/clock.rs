//! The clocks of the operating system.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What a clock shows.
pub(crate) fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

//! The clocks of the operating system.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// What a clock shows.
pub(crate) fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Whether there is something to read, or the end of it, within a time.
pub(crate) fn is_readable_within(time: Duration, input: impl AsFd) -> bool {
    let mut watched = [PollFd::new(&input, PollFlags::IN)];
    let time = Timespec::try_from(time).unwrap_or_default();
    matches!(poll(&mut watched, Some(&time)), Ok(1..))
}

//! How a process ended.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Its exit code, or 128 and the signal that ended it.
pub(crate) fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| Some(128 + status.signal()?))
}

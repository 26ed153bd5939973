//! How a process ended.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Its exit code, or 128 and the signal that ended it.
pub(crate) fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| Some(128 + status.signal()?))
}

/// How a process ended within `patience`, or as an error how it did when it was killed then.
pub(crate) fn await_end(
    process: &mut Child,
    patience: Duration,
    mut meanwhile: impl FnMut(),
) -> Result<ExitStatus, Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        match process.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if begun.elapsed() < patience => {
                meanwhile();
                std::thread::sleep(Duration::from_millis(2));
            }
            _ => {
                let _ = process.kill();
                return Err(process.wait().ok());
            }
        }
    }
}

//! The one way in which a recording is written. Its writes, in the order in which they are made, are the protocol that
//! a follower relies on. A test sees them here, as they are made (`tests`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Writes all of `bytes` at `offset`. What it has returned from is seen by every read that begins later.
pub(super) fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)?;
    #[cfg(test)]
    super::tests::seen::note(file, bytes, offset);
    Ok(())
}

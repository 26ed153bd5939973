//! Where a recording lies that nobody asked to keep.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The places for it, best first. In memory where there is such a place, since a recording that is only followed need
/// not touch a disk.
pub fn places() -> impl Iterator<Item = PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    [runtime, Some("/dev/shm".into()), Some(std::env::temp_dir())]
        .into_iter()
        .flatten()
        .filter(|place| place.is_absolute() && place.is_dir())
}

/// Makes a private directory (0700) that is removed with all it holds when the value is dropped.
///
/// # Errors
/// When none of the places takes one; the last place's error.
pub fn directory() -> io::Result<tempfile::TempDir> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no temporary directory");
    for place in places() {
        match private(&place) {
            Ok(made) => return Ok(made),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Bytes that each process may record there: a sixteenth of the free room, from 16 MiB to 512 MiB. At 10^6 records a second
/// the latter are 8 s, by which whoever follows it may be behind.
#[must_use]
pub fn limit(directory: &Path) -> u64 {
    const LEAST: u64 = 16 << 20;
    const MOST: u64 = 512 << 20;
    match rustix::fs::statvfs(directory) {
        Ok(found) => (found.f_bavail.saturating_mul(found.f_frsize) / 16).clamp(LEAST, MOST),
        Err(_) => LEAST,
    }
}

fn private(place: &Path) -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix("cuptop-")
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_and_goes_when_dropped() {
        let made = directory().expect("a directory");
        let path = made.path().to_owned();
        let mode = std::fs::metadata(&path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(made);
        assert!(!path.exists());
    }
}

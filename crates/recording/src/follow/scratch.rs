//! Where a recording lies that nobody asked to keep.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use activity::door;

/// How its name begins.
const PREFIX: &str = "cuptop-scratch-";

/// A private directory (0700) that is removed with all it holds when the value is dropped; where that was killed, by the next
/// [`directory`].
pub struct Scratch {
    folder: TempDir,
    /// Locked as long as its owner lives.
    _lock: File,
}

impl Scratch {
    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The places for it, best first. In memory where there is such a place, since a recording that is only followed need
/// not touch a disk.
pub fn places() -> impl Iterator<Item = PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    [runtime, Some("/dev/shm".into()), Some(std::env::temp_dir())]
        .into_iter()
        .flatten()
        .filter(|place| place.is_absolute() && place.is_dir())
}

/// Makes a directory, and removes those of owners that are dead.
///
/// # Errors
/// When none of the places takes one; the last place's error.
pub fn directory() -> io::Result<Scratch> {
    places().for_each(|place| sweep(&place));
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
pub fn limit(directory: &Path) -> u64 {
    const LEAST: u64 = 16 << 20;
    const MOST: u64 = 512 << 20;
    match rustix::fs::statvfs(directory) {
        Ok(found) => (found.f_bavail.saturating_mul(found.f_frsize) / 16).clamp(LEAST, MOST),
        Err(_) => LEAST,
    }
}

fn private(place: &Path) -> io::Result<Scratch> {
    loop {
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(place)?;
        let lock = File::open(folder.path())?;
        match lock.try_lock() {
            Err(TryLockError::Error(error)) => return Err(error),
            // Another cuptop met it before it was locked, and removes it.
            Err(TryLockError::WouldBlock) => {}
            Ok(()) if !folder.path().exists() => {}
            Ok(()) => {
                return Ok(Scratch {
                    folder,
                    _lock: lock,
                });
            }
        }
    }
}

/// Removes what cuptops left that were killed. A recording that a program still writes to stays until that ends.
fn sweep(place: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let mut options = File::options();
        let folder = options.custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
        let Ok(lock) = folder.read(true).open(&path) else {
            continue;
        };
        if lock.metadata().is_ok_and(|it| it.uid() != me) {
            continue;
        }
        let is_written =
            |file: PathBuf| door::open(&file).is_ok_and(|file| file.try_lock_shared().is_err());
        let files = super::files::all_of(&path).unwrap_or_default();
        if lock.try_lock().is_ok() && !files.into_iter().any(is_written) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
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

    #[test]
    fn what_a_dead_owner_left_is_swept_once_nobody_writes_there() {
        let place = tempfile::tempdir().expect("a place");
        let living = private(place.path()).expect("a directory");
        let left = |name: &str| {
            let folder = place.path().join(format!("{PREFIX}{name}"));
            std::fs::create_dir(&folder).expect("made");
            folder
        };
        let (dead, written) = (left("dead"), left("written"));
        std::fs::write(dead.join("1-a.cuptop"), "of a process that ended").expect("written");
        let writer = File::create(written.join("2-b.cuptop")).expect("made");
        writer.lock().expect("locked");
        let other = place.path().join("cuptop-0.1.0");
        std::fs::create_dir(&other).expect("made");

        sweep(place.path());
        assert!(!dead.exists() && written.exists() && other.exists());
        assert!(living.path().exists(), "its owner lives");
        drop(writer);
        sweep(place.path());
        assert!(!written.exists());
    }
}

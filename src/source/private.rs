//! Folders from which cuptop takes what it loads: the user's own, that nobody else can write to.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt};
use std::path::Path;

use rustix::process::geteuid;

/// Makes such a folder (its parents as they come), or makes sure that the one that is there is one: a directory and no link, the
/// user's own. Rights of others are taken away.
///
/// # Errors
/// When it cannot be made, or is another user's.
pub fn folder(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    check(path)
}

/// As [`folder`], for one that is there.
///
/// # Errors
/// When it is not there, or another user's.
pub fn check(path: &Path) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the cache directory is not the user's own",
        ));
    }
    if found.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("exists").permissions().mode() & 0o777
    }

    #[test]
    fn what_others_could_write_to_is_closed_and_a_link_refused() {
        let root = tempfile::tempdir().expect("a directory");
        let open = root.path().join("deep/open");
        folder(&open).expect("made");
        assert_eq!(mode(&open), 0o700);
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).expect("set");
        folder(&open).expect("closed");
        assert_eq!(mode(&open), 0o700);
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&open, &link).expect("made");
        assert!(folder(&link).is_err());
        // The system's, whoever runs this: either not the user's, or not to be made.
        assert!(geteuid().is_root() || folder(Path::new("/usr")).is_err());
        assert!(folder(Path::new("/proc/cuptop")).is_err());
    }
}

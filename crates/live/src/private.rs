//! Folders from which cuptop takes what it loads: the user's own, that nobody else can write to.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;

/// Rights of the group and of others to write.
const OTHERS: u32 = 0o022;
/// Who may write to a folder with this may not move what is another's in it.
const STICKY: u32 = 0o1000;

/// `$XDG_CACHE_HOME/cuptop`, or `~/.cache/cuptop`.
pub(crate) fn cache() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.cache_dir().join("cuptop"))
}

/// A folder of the user's cache, made where it is not there; none where others can put something into it.
pub fn cache_folder(name: &str) -> Option<PathBuf> {
    let ours = cache()?;
    let made = ours.join(name);
    folder(&ours).and(folder(&made)).ok()?;
    Some(made)
}

/// Makes such a folder: its parents as they come, the user's alone whatever the umask. Or it makes sure that the one that is there
/// is one: a directory and no link, the user's own. Rights of others are taken away.
///
/// # Errors
/// When it cannot be made, is another user's, or lies where another user could put another in its place.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
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
/// When it is not there, another user's, or lies where another user could put another in its place.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    // What was looked at is what is changed, whatever is put in its place meanwhile.
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = match open(path, flags, Mode::empty()) {
        Ok(folder) => File::from(folder),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return refuse("the cache directory is not the user's own, but a link or a file");
        }
        Err(error) => return Err(error.into()),
    };
    let found = folder.metadata()?;
    if found.uid() != geteuid().as_raw() {
        return refuse("the cache directory is not the user's own");
    }
    if found.mode() & 0o077 != 0 {
        folder.set_permissions(PermissionsExt::from_mode(0o700))?;
    }
    for above in path.canonicalize()?.ancestors().skip(1) {
        let found = above.metadata()?;
        let is_ours = [0, geteuid().as_raw()].contains(&found.uid());
        if !is_ours || (found.mode() & OTHERS != 0 && found.mode() & STICKY == 0) {
            return refuse(&format!(
                "the cache directory lies in {}, which others may write to",
                above.display()
            ));
        }
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
        let file = root.path().join("file");
        std::fs::write(&file, "").expect("written");
        assert!(folder(&file).is_err());
        // The system's, whoever runs this: either not the user's, or not to be made.
        assert!(geteuid().is_root() || folder(Path::new("/usr")).is_err());
        assert!(folder(Path::new("/proc/cuptop")).is_err());
    }
    #[test]
    fn where_others_may_write_nothing_is_ones_own() {
        let root = tempfile::tempdir().expect("a directory");
        let open = root.path().join("open");
        let ours = open.join("cuptop");
        folder(&ours).expect("made");
        assert_eq!(mode(&open), 0o700, "parents that were made are the user's");
        let set = |bits| {
            std::fs::set_permissions(&open, PermissionsExt::from_mode(bits)).expect("set");
        };
        for bits in [0o777, 0o775, 0o2775] {
            set(bits);
            let refused = folder(&ours).expect_err("refused").to_string();
            assert!(refused.contains("others may write"), "{refused}");
        }
        // As /tmp is: nobody may move what is another's.
        set(0o1777);
        folder(&ours).expect("safe");
        // Its owner may, whatever its rights are. Only root can give it away.
        if geteuid().is_root() {
            set(0o755);
            std::os::unix::fs::chown(&open, Some(65534), None).expect("given away");
            let refused = folder(&ours).expect_err("refused").to_string();
            assert!(refused.contains("others may write"), "{refused}");
        }
    }
}

//! Unpacking the collector's shared library from this binary.
//!
//! It goes into a cache directory that belongs to the user alone, under a name that its content decides. A file that
//! lies there already is compared byte by byte: what is loaded into the user's programs is what this binary holds. Where
//! the cache cannot hold programs (a `noexec` mount, no home), it lives in memory instead.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, StatVfsMountFlags, memfd_create, statvfs};
use rustix::process::geteuid;

use activity::door;

use crate::private;

/// The unpacked library.
pub(super) struct Library {
    pub(super) path: PathBuf,
    /// Why it is not a file in the cache.
    pub(super) not_cached: Option<String>,
    /// Keeps the library alive where it is not a file.
    _memory: Option<OwnedFd>,
}

impl Library {
    /// Unpacks it, unless it lies there already.
    pub(super) fn unpack(content: &[u8]) -> io::Result<Library> {
        if content.is_empty() {
            let why = "this build of cuptop holds no library for traced programs";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let not_cached = match private::cache() {
            None => "neither XDG_CACHE_HOME nor HOME names a folder".to_owned(),
            Some(cache) => match unpack_into(&cache, content) {
                Ok(path) => {
                    return Ok(Library {
                        path,
                        not_cached: None,
                        _memory: None,
                    });
                }
                Err(error) => format!("{}: {error}", cache.display()),
            },
        };
        in_memory(content, not_cached)
    }
}

fn unpack_into(cache: &Path, content: &[u8]) -> io::Result<PathBuf> {
    private::folder(cache)?;
    check_executable(cache)?;
    let print = activity::text::fingerprint(content);
    let path = cache.join(format!("inject-{print:016x}.so"));
    if is_intact(&path, content) {
        return Ok(path);
    }
    // Written aside and renamed into place: another cuptop may be loading it this very moment.
    let aside = cache.join(format!(".inject-{}-{print:016x}", std::process::id()));
    let _ = std::fs::remove_file(&aside);
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o700)
        .open(&aside)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| std::fs::rename(&aside, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    written.map(|()| path)
}

/// The loader cannot map programs from a file system that is mounted `noexec`.
fn check_executable(directory: &Path) -> io::Result<()> {
    let flags = statvfs(directory)?.f_flag;
    if flags.contains(StatVfsMountFlags::NOEXEC) {
        let why = "the cache directory is mounted noexec";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

fn is_intact(path: &Path, content: &[u8]) -> bool {
    let Ok(file) = door::open_no_link(path) else {
        return false;
    };
    let is_ours = |it: std::fs::Metadata| it.uid() == geteuid().as_raw();
    let mut bytes = Vec::with_capacity(content.len() + 1);
    file.metadata().is_ok_and(is_ours)
        && file
            .take(content.len() as u64 + 1)
            .read_to_end(&mut bytes)
            .is_ok_and(|_| bytes == content)
}

/// In memory, under a name that every descendant of ours can open as long as we live, whatever descriptors it closes.
fn in_memory(content: &[u8], not_cached: String) -> io::Result<Library> {
    let memory = memfd_create("cuptop-inject", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(memory);
    file.write_all(content)?;
    let memory = OwnedFd::from(file);
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    Ok(Library {
        path: path.into(),
        not_cached: Some(not_cached),
        _memory: Some(memory),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("exists").permissions().mode() & 0o777
    }

    #[test]
    fn it_is_unpacked_once_for_its_owner_alone() {
        let root = tempfile::tempdir().expect("a directory");
        let cache = root.path().join("deep/cuptop");
        let path = unpack_into(&cache, b"content").expect("unpacked");
        assert_eq!((mode(&cache), mode(&path)), (0o700, 0o700));
        assert_eq!(std::fs::read(&path).expect("readable"), b"content");
        let first = path.metadata().expect("exists").ino();
        assert_eq!(
            unpack_into(&cache, b"content").expect("there already"),
            path
        );
        assert_eq!(path.metadata().expect("exists").ino(), first);
        assert_ne!(unpack_into(&cache, b"another").expect("unpacked"), path);
    }

    #[test]
    fn a_file_that_was_tampered_with_is_replaced() {
        let root = tempfile::tempdir().expect("a directory");
        let path = unpack_into(root.path(), b"content").expect("unpacked");
        std::fs::write(&path, b"c0ntent").expect("written");
        unpack_into(root.path(), b"content").expect("unpacked");
        assert_eq!(std::fs::read(&path).expect("readable"), b"content");
    }

    #[test]
    fn in_memory_it_can_be_read_by_its_name() {
        let library = in_memory(b"content", String::new()).expect("unpacked");
        assert_eq!(std::fs::read(&library.path).expect("readable"), b"content");
    }
}

//! Watching one file for changes of its content.
//!
//! The file is looked at ten times a second by its name: editors replace files (write another, rename it over). One save
//! can be several writes. So a change counts when two looks find the same file, and only when its content is another.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use activity::door;

/// What lies between two looks.
const PERIOD: Duration = Duration::from_millis(100);

/// What is another after each write: the file itself, its length, and when it changed.
type Stamp = (u64, u64, i64, i64);

#[derive(Debug)]
pub struct FileWatch {
    pub path: PathBuf,
    content: Option<Vec<u8>>,
    /// The file at the last look, and when its content was read.
    seen: Option<Stamp>,
    read: Option<Stamp>,
    /// When to ask [`FileWatch::has_changed`] next.
    pub due: Instant,
}

impl FileWatch {
    /// Watches `path` from now on.
    pub fn new(path: &Path) -> Self {
        let seen = stamp(path);
        FileWatch {
            path: path.to_owned(),
            content: read(path).ok(),
            seen,
            read: seen,
            due: Instant::now() + PERIOD,
        }
    }

    /// Has the content read anew at the next look: an editor has closed the file.
    pub fn touch(&mut self) {
        self.read = None;
    }

    /// Whether the file has settled with another content than before; `None` when nothing has settled.
    pub fn has_changed(&mut self, now: Instant) -> Option<bool> {
        if now < self.due {
            return None;
        }
        self.due = now + PERIOD;
        // Between removal and rename there is no file.
        let stamp = stamp(&self.path)?;
        let is_settled = self.seen.replace(stamp) == Some(stamp);
        if !is_settled || self.read == Some(stamp) {
            return None;
        }
        let content = match read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            content => content.ok(),
        };
        self.read = Some(stamp);
        let is_changed = self.content != content;
        self.content = content;
        Some(is_changed)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let it = std::fs::metadata(path).ok()?;
    Some((it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    door::read(path, door::TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_counts_once_it_has_settled_and_a_touch_does_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.toml");
        std::fs::write(&path, "one").expect("a file");
        let mut watch = FileWatch::new(&path);
        assert_eq!(watch.has_changed(Instant::now()), None, "it is not time");
        let look = |watch: &mut FileWatch| watch.has_changed(watch.due);
        for (content, is_changed) in [("two", true), ("two", false), ("three", true)] {
            let swap = dir.path().join("swap");
            std::fs::write(&swap, content).expect("a file");
            std::fs::rename(&swap, &path).expect("a rename");
            assert_eq!(look(&mut watch), None, "it has not settled");
            assert_eq!(look(&mut watch), Some(is_changed), "{content}");
            assert_eq!(look(&mut watch), None, "only once");
        }
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(look(&mut watch), None);
        // An editor that writes in place, in two goes.
        std::fs::write(&path, "th").expect("a file");
        assert_eq!(look(&mut watch), None);
        std::fs::write(&path, "three and four").expect("a file");
        assert_eq!(look(&mut watch), None, "it was still being written");
        assert_eq!(look(&mut watch), Some(true));
        watch.touch();
        assert_eq!(look(&mut watch), Some(false), "closed without a change");
    }
}

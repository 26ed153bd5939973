//! Watching one file for changes of its content.
//!
//! Editors replace files (write another, rename it over), which ends a watch of the file itself; so its directory is
//! watched. Reading the file makes events too (access), which do not count. One save can be several events. So a change
//! counts when the file has been quiet for 60 ms, and only when its content is another.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use activity::door;

use super::input::Input;

/// How long a file must be quiet before it is read.
const SETTLE: Duration = Duration::from_millis(60);

#[derive(Debug)]
pub struct Watch {
    pub path: PathBuf,
    content: Option<Vec<u8>>,
    /// When to ask [`Watch::has_changed`] next.
    pub due: Option<Instant>,
    /// Kept for its drop, which ends the watch.
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Watches `path`; touches go to `inputs`, and back into [`Watch::touch`].
    ///
    /// # Errors
    /// When the system gives no watch, or there is no such directory.
    pub fn new(path: &Path, inputs: Sender<Input>) -> notify::Result<Self> {
        let name = path.file_name().map(ToOwned::to_owned);
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                let is_ours = event.is_ok_and(|event| {
                    !matches!(event.kind, EventKind::Access(_))
                        && event.paths.iter().any(|p| p.file_name() == name.as_deref())
                });
                if is_ours {
                    // When the queue is full there is a touch in it or the screen is on its way out.
                    let _ = inputs.try_send(Input::Touched);
                }
            })?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        watcher.watch(parent, RecursiveMode::NonRecursive)?;
        Ok(Watch {
            path: path.to_owned(),
            content: read(path).ok(),
            due: None,
            _watcher: watcher,
        })
    }

    /// Something happened to the file.
    pub fn touch(&mut self, now: Instant) {
        self.due = Some(now + SETTLE);
    }

    /// Whether the file has settled with another content than before; `None` when nothing has settled.
    pub fn has_changed(&mut self, now: Instant) -> Option<bool> {
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        self.due = None;
        let content = match read(&self.path) {
            // Between removal and rename there is no file: the rename makes another event.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            content => content.ok(),
        };
        let is_changed = self.content != content;
        self.content = content;
        Some(is_changed)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    door::read(path, door::TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for_touch(inputs: &crossbeam_channel::Receiver<Input>) {
        let touched = inputs.recv_timeout(Duration::from_secs(10));
        assert!(matches!(touched, Ok(Input::Touched)), "{touched:?}");
    }

    #[test]
    fn a_save_by_renaming_counts_and_a_touch_does_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.toml");
        std::fs::write(&path, "one").expect("a file");
        let (sender, inputs) = crossbeam_channel::unbounded();
        let mut watch = Watch::new(&path, sender).expect("a watch");
        let later = || Instant::now() + 2 * SETTLE;

        for (content, is_changed) in [("two", true), ("two", false), ("three", true)] {
            let swap = dir.path().join("swap");
            std::fs::write(&swap, content).expect("a file");
            std::fs::rename(&swap, &path).expect("a rename");
            wait_for_touch(&inputs);
            watch.touch(Instant::now());
            assert_ne!(
                Some(true),
                watch.has_changed(Instant::now()),
                "it has not settled"
            );
            assert_eq!(watch.has_changed(later()), Some(is_changed), "{content}");
            assert_ne!(Some(true), watch.has_changed(later()), "only once");
            while inputs.try_recv().is_ok() {}
        }
    }
}

//! Mirrors another machine's files into files here, which readers open as if they had been written here.
//!
//! It does not trust what comes. A name becomes a path only if it cannot lead anywhere else. Bytes must come in order.
//! What has been read is given back to the file system; what nobody reads has a limit.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

use super::frame::{PAGE, Response, TEXT};
use activity::door;
use recording::files;

/// Files that one machine may send.
const MOST_FILES: usize = 16_384;
/// It gives back what has been read in pieces of at least this.
const STEP: u64 = 1 << 20;
/// The most bytes that may wait for a reader: beyond it, no request goes out.
pub(super) const MOST_UNREAD: u64 = 64 << 20;

/// Files of one place on another machine.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    root: PathBuf,
    files: HashMap<String, MirroredFile>,
    /// Names by the ids of the present link.
    ids: HashMap<u32, String>,
}

#[derive(Debug, Default)]
struct MirroredFile {
    path: PathBuf,
    /// Made with the first bytes. It is locked as long as its writer there may live.
    file: Option<File>,
    /// How far it has arrived, was read, and was given back.
    arrived: u64,
    read: u64,
    given: u64,
    /// Whether somebody reads it.
    is_read: bool,
    /// Whether nobody does: then its bytes are dropped.
    is_left: bool,
}

/// Why something received is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("a file called \"{0:.TEXT$}\"")]
    Name(String),
    #[error("more than {MOST_FILES} files")]
    TooMany,
    #[error("bytes of a file that it has not named")]
    Unknown,
    #[error("bytes of a file that do not follow what came before")]
    Order,
    #[error("it cannot be kept here: {0}")]
    Io(#[from] io::Error),
}

impl Mirror {
    /// Makes a mirror in a folder that exists.
    pub(super) fn new(root: PathBuf) -> Mirror {
        Mirror {
            root,
            ..Mirror::default()
        }
    }

    /// Begins with another link. Returns what has arrived until now, to be sent there.
    pub(super) fn have(&mut self) -> Vec<(String, u64)> {
        self.ids.clear();
        let files = self.files.iter();
        files.map(|(name, it)| (name.clone(), it.arrived)).collect()
    }

    /// Takes in a response about files; it ignores other responses.
    pub(super) fn take(&mut self, response: Response) -> Result<(), Refusal> {
        match response {
            Response::File { id, name } => self.file(id, name),
            Response::Page { id, page } => self.page(id, &page),
            Response::Data { id, offset, bytes } => self.data(id, offset, &bytes),
            Response::Life { id, lives } => self.life(id, lives),
            Response::End { .. } | Response::Trouble { .. } => Ok(()),
        }
    }

    /// Takes in a file's name.
    fn file(&mut self, id: u32, name: String) -> Result<(), Refusal> {
        let Some(place) = place_of(&name) else {
            return Err(Refusal::Name(name));
        };
        let is_new = !self.files.contains_key(&name);
        // The far side numbers its files from 0 on.
        if id as usize >= MOST_FILES || is_new && self.files.len() >= MOST_FILES {
            return Err(Refusal::TooMany);
        }
        if is_new {
            let mirrored = MirroredFile {
                path: self.root.join(place),
                arrived: PAGE as u64,
                read: PAGE as u64,
                given: PAGE as u64,
                ..MirroredFile::default()
            };
            self.files.insert(name.clone(), mirrored);
        }
        self.ids.insert(id, name);
        Ok(())
    }

    fn file_by_id(&mut self, id: u32) -> Result<&mut MirroredFile, Refusal> {
        let name = self.ids.get(&id).ok_or(Refusal::Unknown)?;
        self.files.get_mut(name).ok_or(Refusal::Unknown)
    }

    /// Takes in a recording's header page as it is now.
    fn page(&mut self, id: u32, page: &[u8]) -> Result<(), Refusal> {
        if page.len() != PAGE {
            return Err(Refusal::Order);
        }
        Ok(self.file_by_id(id)?.opened()?.write_all_at(page, 0)?)
    }

    /// Takes in a file's bytes from `offset` on.
    fn data(&mut self, id: u32, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let it = self.file_by_id(id)?;
        // A recording's page comes first.
        if offset != it.arrived || it.file.is_none() {
            return Err(Refusal::Order);
        }
        if !it.is_left {
            it.opened()?.write_all_at(bytes, offset)?;
        }
        it.arrived += bytes.len() as u64;
        Ok(())
    }

    /// Takes in whether its writer there lives. While that is unknown, readers wait.
    fn life(&mut self, id: u32, lives: Option<bool>) -> Result<(), Refusal> {
        let it = self.file_by_id(id)?;
        if let Some(file) = &it.file {
            // The file is ours, in a folder of ours: nobody else can hold its lock.
            let _ = match lives {
                Some(false) => file.unlock().is_ok(),
                _ => file.try_lock().is_ok(),
            };
        }
        Ok(())
    }

    /// A file was read up to `position`: nothing before that is needed here any more.
    pub(super) fn was_read(&mut self, path: &Path, position: u64) {
        let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let Some(it) = name.and_then(|name| self.files.get_mut(name)) else {
            return;
        };
        it.is_read = true;
        it.read = it.read.max(position.min(it.arrived));
        let end = it.read - it.read % PAGE as u64;
        if end >= it.given + STEP
            && let Some(file) = &it.file
        {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // A file system that cannot keeps everything.
            let _ = rustix::fs::fallocate(file, flags, it.given, end - it.given);
            it.given = end;
        }
    }

    /// Bytes that have arrived in all.
    pub(super) fn arrived(&self) -> u64 {
        self.files.values().map(|it| it.arrived).sum()
    }

    /// Bytes that have arrived and were not read.
    pub(super) fn unread(&self) -> u64 {
        let files = self.files.values().filter(|it| !it.is_left);
        files.map(|it| it.arrived - it.read).sum()
    }

    /// Gives up files that nobody reads: what else comes of them is dropped. Returns the names of new ones.
    pub(super) fn leave_unread(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        for (name, it) in &mut self.files {
            if !it.is_read && !it.is_left && it.file.is_some() && it.arrived > it.read {
                it.is_left = true;
                left.push(name.clone());
            }
        }
        left
    }
}

impl MirroredFile {
    fn opened(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            if let Some(folder) = self.path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let file = door::create(&self.path)?;
            // Until it is known that its writer is dead.
            let _ = file.try_lock();
            self.file = Some(file);
        }
        self.file
            .as_ref()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The path of a file of this name: in the folder, or in a rank's folder within it. `None` for a name that no recording has.
fn place_of(name: &str) -> Option<PathBuf> {
    let is_plain = |part: &str| {
        let mut bytes = part.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric() || b"-_".contains(&first))
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if name.len() > TEXT.min(250) {
        return None;
    }
    let (folder, file) = match name.split_once('/') {
        Some((folder, file)) => (Some(folder), file),
        None => (None, name),
    };
    let is_folder = |folder: &str| is_plain(folder) && files::is_run(Path::new(folder));
    let is_sound =
        is_plain(file) && files::is_known(Path::new(file)) && folder.is_none_or(is_folder);
    is_sound.then(|| PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_recordings_become_paths() {
        for name in [
            "12-1a.cuptop",
            "12-1a.3.cuptop",
            "gpu01-77.run/12-1a.outside.cuptop",
            "train-20261122.cuptop",
        ] {
            assert_eq!(place_of(name), Some(PathBuf::from(name)), "{name}");
        }
        for name in [
            "",
            "..",
            "../12-1a.cuptop",
            "/etc/12-1a.cuptop",
            "a.run/../12-1a.cuptop",
            "../a.run/12-1a.cuptop",
            "a.run/b.run/12-1a.cuptop",
            "a/12-1a.cuptop",
            "a.run//12-1a.cuptop",
            ".cuptop",
            ".a.cuptop",
            "..run/1.cuptop",
            "12-1a.so",
            "control",
            "12-1a.cuptop\0",
            "12 1a.cuptop",
            "ü.cuptop",
        ] {
            assert_eq!(place_of(name), None, "{name}");
        }
        assert_eq!(place_of(&format!("{}.cuptop", "a".repeat(300))), None);
    }

    #[test]
    fn bytes_come_once_and_in_order_and_are_given_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut mirror = Mirror::new(folder.path().to_owned());
        let name = "12-1a.cuptop".to_owned();
        assert!(matches!(mirror.data(3, 4_096, b"x"), Err(Refusal::Unknown)));
        mirror.file(3, name.clone()).expect("a name");
        assert!(
            matches!(mirror.data(3, 4_096, b"x"), Err(Refusal::Order)),
            "before its page"
        );
        mirror.page(3, &[1; PAGE]).expect("a page");
        let piece = vec![7; 1 << 20];
        for at in 0..8 {
            mirror
                .data(3, 4_096 + (at << 20), &piece)
                .expect("in order");
        }
        for offset in [0, 4_096, 4_096 + (9 << 20)] {
            assert!(matches!(mirror.data(3, offset, b"x"), Err(Refusal::Order)));
        }
        assert!(matches!(
            mirror.file(1 << 20, name.clone()),
            Err(Refusal::TooMany)
        ));
        // Another link has other ids, and goes on from there.
        assert_eq!(mirror.have(), [(name.clone(), 4_096 + (8 << 20))]);
        assert!(matches!(
            mirror.data(3, 4_096 + (8 << 20), b"x"),
            Err(Refusal::Unknown)
        ));
        mirror.file(0, name).expect("the same name");
        mirror.data(0, 4_096 + (8 << 20), b"x").expect("in order");

        assert_eq!(mirror.unread(), (8 << 20) + 1);
        let path = folder.path().join("12-1a.cuptop");
        mirror.was_read(&path, 4_096 + (6 << 20));
        assert_eq!(mirror.unread(), (2 << 20) + 1);
        let about = rustix::fs::stat(&path).expect("there");
        assert!(
            about.st_blocks * 512 < 4 << 20,
            "{} blocks",
            about.st_blocks
        );
        assert_eq!(about.st_size, 4_096 + (8 << 20) + 1);
        let file = std::fs::read(&path).expect("readable");
        assert!(file[..4_096].iter().all(|byte| *byte == 1) && file[file.len() - 1] == b'x');
        // A lock says that its writer there may live.
        let other = File::open(&path).expect("there");
        assert!(other.try_lock_shared().is_err());
        mirror.life(0, Some(false)).expect("a file");
        assert!(other.try_lock_shared().is_ok());
    }
}

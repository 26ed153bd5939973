//! The control page: how whoever follows a recording asks for less or more of it while the program runs.
//!
//! A file of 32 bytes called [`FILE`] in the recording directory. One process writes it, every collector in that directory
//! looks at it once in a flush period. A collector that finds none does what its options say; one that loses it, or meets it half
//! written, goes on as it was. Nobody waits for anybody.
//!
//! | at | what |
//! |---|---|
//! | 0 | `b"cuptopc\n"` |
//! | 8 | u32 version: 1 |
//! | 12 | u8 whether to record |
//! | 13 | u8 wait records: 0 off, 1 on, 2 for short whiles |
//! | 14 | zeros |
//! | 28 | u32 CRC-32 of the 28 bytes before it |

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::options::Waits;

/// The name of the page's file.
pub const FILE: &str = "control";
const MAGIC: [u8; 8] = *b"cuptopc\n";
const VERSION: u32 = 1;
const LENGTH: usize = 32;
const SUMMED: usize = 28;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whether to record at all.
    pub recording: bool,
    /// Whether to record what streams and threads wait for.
    pub waits: Waits,
}

impl Wanted {
    fn encode(self) -> [u8; LENGTH] {
        let mut page = [0; LENGTH];
        page[..8].copy_from_slice(&MAGIC);
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        page[12] = u8::from(self.recording);
        page[13] = match self.waits {
            Waits::Off => 0,
            Waits::On => 1,
            Waits::Auto => 2,
        };
        let sum = crc32fast::hash(&page[..SUMMED]);
        page[SUMMED..].copy_from_slice(&sum.to_le_bytes());
        page
    }

    fn decode(page: &[u8; LENGTH]) -> Option<Wanted> {
        let sum = crc32fast::hash(&page[..SUMMED]).to_le_bytes();
        let is_sound = page[..8] == MAGIC && page[8..12] == VERSION.to_le_bytes();
        if !is_sound || page[SUMMED..] != sum {
            return None;
        }
        Some(Wanted {
            recording: page[12] != 0,
            waits: match page[13] {
                0 => Waits::Off,
                1 => Waits::On,
                2 => Waits::Auto,
                _ => return None,
            },
        })
    }
}

/// The writer's end. The file goes when it is dropped.
#[derive(Debug)]
pub struct ControlPage {
    file: File,
    path: PathBuf,
    wanted: Wanted,
}

impl ControlPage {
    /// Makes the page of a recording directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(directory: &Path, wanted: Wanted) -> io::Result<ControlPage> {
        let path = directory.join(FILE);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)?;
        file.write_all_at(&wanted.encode(), 0)?;
        Ok(ControlPage { file, path, wanted })
    }

    /// What was asked for last.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// Asks for something else. It happens within a flush period, and the recording says when.
    ///
    /// # Errors
    /// When the page cannot be written.
    pub fn ask(&mut self, wanted: Wanted) -> io::Result<()> {
        self.file.write_all_at(&wanted.encode(), 0)?;
        self.wanted = wanted;
        Ok(())
    }
}

impl Drop for ControlPage {
    fn drop(&mut self) {
        // Somebody else may have removed it: that is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The collector's end.
#[derive(Debug)]
pub(crate) struct Control(File);

impl Control {
    /// Opens the page of a directory, where there is one that this user wrote.
    pub(crate) fn open(directory: &Path) -> Option<Control> {
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(directory.join(FILE))
            .ok()?;
        let found = file.metadata().ok()?;
        // SAFETY: has no preconditions.
        let own = unsafe { libc::geteuid() };
        (found.is_file() && found.uid() == own).then_some(Control(file))
    }

    /// What is asked for; `None` while nothing sound can be read.
    pub(crate) fn read(&self) -> Option<Wanted> {
        let mut page = [0; LENGTH];
        self.0.read_exact_at(&mut page, 0).ok()?;
        Wanted::decode(&page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_arrives_and_a_torn_page_says_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(Control::open(directory.path()).is_none());
        let first = Wanted {
            recording: false,
            waits: Waits::Auto,
        };
        let mut page = ControlPage::create(directory.path(), first).expect("a page");
        let control = Control::open(directory.path()).expect("is there");
        assert_eq!(control.read(), Some(first));
        let second = Wanted {
            recording: true,
            waits: Waits::On,
        };
        page.ask(second).expect("written");
        assert_eq!(control.read(), Some(second));
        // One byte of another state, and it is none.
        page.file.write_all_at(&[0], 12).expect("written");
        assert_eq!(control.read(), None);
        drop(page);
        assert!(!directory.path().join(FILE).exists());
    }

    #[test]
    fn a_link_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = tempfile::tempdir().expect("a directory");
        let wanted = Wanted {
            recording: true,
            waits: Waits::Off,
        };
        let _page = ControlPage::create(real.path(), wanted).expect("a page");
        std::os::unix::fs::symlink(real.path().join(FILE), directory.path().join(FILE))
            .expect("a link");
        assert!(Control::open(directory.path()).is_none());
    }
}

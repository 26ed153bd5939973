//! The control page: how whoever follows a recording switches it off and on while the program runs.
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
//! | 13 | zeros |
//! | 28 | u32 CRC-32 of the 28 bytes before it |

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use activity::door;

/// The name of the page's file.
pub use recording::file::CONTROL as FILE;
const MAGIC: [u8; 8] = *b"cuptopc\n";
const VERSION: u32 = 1;
const LENGTH: usize = 32;
const SUMMED: usize = 28;

fn encode(recording: bool) -> [u8; LENGTH] {
    let mut page = [0; LENGTH];
    page[..8].copy_from_slice(&MAGIC);
    page[8..12].copy_from_slice(&VERSION.to_le_bytes());
    page[12] = u8::from(recording);
    let sum = crc32fast::hash(&page[..SUMMED]);
    page[SUMMED..].copy_from_slice(&sum.to_le_bytes());
    page
}

fn decode(page: &[u8; LENGTH]) -> Option<bool> {
    let sum = crc32fast::hash(&page[..SUMMED]).to_le_bytes();
    let is_sound = page[..8] == MAGIC && page[8..12] == VERSION.to_le_bytes();
    (is_sound && page[SUMMED..] == sum).then(|| page[12] != 0)
}

/// The writer's end. The file goes when it is dropped.
#[derive(Debug)]
pub struct ControlPage {
    file: File,
    path: PathBuf,
    /// Whether to record, as it was said last.
    pub recording: bool,
}

impl ControlPage {
    /// Makes the page of a recording directory, which says whether to record.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(directory: &Path, recording: bool) -> io::Result<ControlPage> {
        let path = directory.join(FILE);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = door::create(&path)?;
        file.write_all_at(&encode(recording), 0)?;
        Ok(ControlPage {
            file,
            path,
            recording,
        })
    }

    /// Says whether to record. It happens within a flush period, and the recording says when.
    ///
    /// # Errors
    /// When the page cannot be written.
    pub fn ask(&mut self, recording: bool) -> io::Result<()> {
        self.file.write_all_at(&encode(recording), 0)?;
        self.recording = recording;
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

    /// Whether to record; `None` while nothing sound can be read.
    pub(crate) fn read(&self) -> Option<bool> {
        let mut page = [0; LENGTH];
        self.0.read_exact_at(&mut page, 0).ok()?;
        decode(&page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_arrives_and_a_torn_page_says_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(Control::open(directory.path()).is_none());
        let mut page = ControlPage::create(directory.path(), false).expect("a page");
        let control = Control::open(directory.path()).expect("is there");
        assert_eq!(control.read(), Some(false));
        page.ask(true).expect("written");
        assert_eq!(control.read(), Some(true));
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
        let _page = ControlPage::create(real.path(), true).expect("a page");
        std::os::unix::fs::symlink(real.path().join(FILE), directory.path().join(FILE))
            .expect("a link");
        assert!(Control::open(directory.path()).is_none());
    }
}

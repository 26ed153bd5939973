//! Appending to a file beside a recording.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{HEAD, HEADER, Header, LONGEST, head, is_kind};

/// Writes one file beside a recording.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    end: u64,
    max_bytes: u64,
    /// A block, put together.
    block: Vec<u8>,
}

impl Writer {
    /// Creates a file (mode 0600) in `directory`, which must exist, for the process `pid` (0: the whole machine), begun at
    /// `start`, in nanoseconds of `CLOCK_REALTIME`. `max_bytes` limits the file; 0 means no limit.
    ///
    /// # Errors
    /// When the file cannot be created or its header cannot be written, or `kind` is not 1 to 16 lower case letters.
    pub fn create(
        directory: &Path,
        kind: &str,
        version: u32,
        pid: u32,
        start: i64,
        max_bytes: u64,
    ) -> io::Result<Writer> {
        if !is_kind(kind) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut header = Header {
            kind: kind.to_owned(),
            version,
            pid,
            start,
            locked: false,
        };
        // The start is only moved when two files of a kind began within one tick of the clock.
        for _ in 0..1000 {
            let path = directory.join(format!("{pid}-{:x}.{kind}", header.start));
            let file = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&path);
            match file {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => header.start += 1,
                Err(error) => return Err(error),
                Ok(file) => {
                    header.locked = file.try_lock().is_ok();
                    file.write_all_at(&header.encode(), 0)?;
                    return Ok(Writer {
                        file,
                        path,
                        end: HEADER as u64,
                        max_bytes: if max_bytes == 0 { u64::MAX } else { max_bytes },
                        block: Vec::new(),
                    });
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length, in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.end
    }

    /// Appends a block. An empty one is left out.
    ///
    /// # Errors
    /// When it is longer than [`LONGEST`] (`InvalidInput`), would pass the limit (`FileTooLarge`), the file was deleted
    /// (`NotFound`), or it cannot be written. The file is then as it was before; a later block may be appended.
    pub fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        if payload.is_empty() {
            return Ok(());
        }
        if payload.len() > LONGEST {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let length = HEAD + payload.len().next_multiple_of(HEAD);
        if self.end + length as u64 > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.file.metadata()?.nlink() == 0 {
            // Nobody can open it any more.
            return Err(io::ErrorKind::NotFound.into());
        }
        self.block.clear();
        self.block.extend_from_slice(&head(payload));
        self.block.extend_from_slice(payload);
        self.block.resize(length, 0);
        if let Err(error) = self.file.write_all_at(&self.block, self.end) {
            // Half a block would hide those after it from nobody, but it would count as damage.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += length as u64;
        Ok(())
    }
}

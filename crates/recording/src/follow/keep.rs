//! Keeping a recording that would go: a copy of what it holds by now, also while it is being written.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use activity::door;

use crate::file::{EXTENSION, HEADER, Reader, create_directory};

/// Copies the recordings of a directory, and what lies beside them, into a new one. Returns how many bytes that were. A recording
/// that is still being written is copied up to what is complete, and reads as one whose process did not
/// close it.
///
/// # Errors
/// When something cannot be read or written, or `to` exists. What was copied until then is left.
pub fn keep(directory: &Path, to: &Path) -> io::Result<u64> {
    super::must_be_new(to)?;
    create_directory(to)?;
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let (from, name) = (entry.path(), entry.file_name());
        if !entry.file_type().is_ok_and(|it| it.is_file()) || name == crate::file::CONTROL {
            continue;
        }
        let copied = match from.extension() {
            Some(extension) if extension == EXTENSION => copy_recording(&from, &to.join(name)),
            _ => door::open(&from).and_then(|file| copy(file, &to.join(name))),
        };
        bytes += match copied {
            // An old part that has just been let go.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            other => other?,
        };
    }
    Ok(bytes)
}

/// The header is read before the rest: so it never promises more than what is copied.
fn copy_recording(from: &Path, to: &Path) -> io::Result<u64> {
    let mut file = door::open(from)?;
    let mut header = vec![0; HEADER];
    file.read_exact(&mut header)?;
    let published = match Reader::open(from) {
        Ok(reader) => reader.status.published,
        Err(error) => return Err(io::Error::other(error)),
    };
    let rest = published.saturating_sub(HEADER as u64);
    copy(header.as_slice().chain(file.take(rest)), to)
}

fn copy(mut from: impl Read, to: &Path) -> io::Result<u64> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let bytes = io::copy(&mut from, &mut file)?;
    file.flush()?;
    Ok(bytes)
}

//! Keeping a recording that would go: a copy of what it holds by now, also while it is being written.

use std::fs::File;
use std::io::{self, Read, Write};
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
        let place = to.join(name);
        let copied = door::open(&from).and_then(|file| match from.extension() {
            Some(extension) if extension == EXTENSION => copy_recording(file, &from, &place),
            _ => copy(file, &place),
        });
        bytes += match copied {
            // An old part that has just been let go.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            other => other?,
        };
    }
    Ok(bytes)
}

/// The header is read before the rest: so it never promises more than what is copied. The file may be let go meanwhile.
fn copy_recording(mut file: File, from: &Path, to: &Path) -> io::Result<u64> {
    let mut header = vec![0; HEADER];
    file.read_exact(&mut header)?;
    let reader = Reader::from_file(file.try_clone()?, from).map_err(io::Error::other)?;
    let rest = reader.status.published.saturating_sub(HEADER as u64);
    copy(header.as_slice().chain(file.take(rest)), to)
}

fn copy(mut from: impl Read, to: &Path) -> io::Result<u64> {
    let mut file = door::create(to)?;
    let bytes = io::copy(&mut from, &mut file)?;
    file.flush()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Clocks, Writer};

    #[test]
    fn a_part_that_is_let_go_while_it_is_copied_is_copied() {
        let folder = tempfile::tempdir().expect("a directory");
        let to = folder.path().join("copy");
        let mut writer = Writer::outside(folder.path(), 7, Clocks::default()).expect("a file");
        writer.flush().expect("written");
        let path = writer.path().to_path_buf();
        let file = door::open(&path).expect("there");
        std::fs::remove_file(&path).expect("let go");
        let bytes = copy_recording(file, &path, &to).expect("copied");
        let copy = Reader::open(&to).expect("a recording");
        assert_eq!((copy.identity.pid, copy.status.published), (7, bytes));
    }
}

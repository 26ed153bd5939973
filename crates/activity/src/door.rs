//! The one door for files that others may have made: it never waits, and only plain files come through.
//!
//! Opened in the ordinary way, a FIFO is waited for inside the system, a terminal answers when somebody types, and a device may
//! never end. Which of these a path names is only sure once it is open, since it may change before.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes that a text of one's own may have: a scenario, the configuration, a profile of a GPU.
pub const TEXT: u64 = 256 << 10;

/// Opens a plain file for reading; a link is followed.
///
/// # Errors
/// When the system does not allow it, or it is something else than a plain file.
pub fn open(path: &Path) -> io::Result<File> {
    plain(open_any(path)?)
}

/// As [`open`], but a link is refused.
///
/// # Errors
/// As [`open`], and when it is a link.
pub fn open_no_link(path: &Path) -> io::Result<File> {
    plain(open_with(path, libc::O_NOFOLLOW)?)
}

fn plain(file: File) -> io::Result<File> {
    let why = "not a plain file";
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
    }
}

/// Makes a new file that nobody else may read. What lies there already, be it a link, is left alone.
///
/// # Errors
/// When something lies there, or the system does not allow it.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Opens whatever lies there for reading, without waiting for it.
///
/// # Errors
/// When the system does not allow it.
pub fn open_any(path: &Path) -> io::Result<File> {
    open_with(path, 0)
}

fn open_with(path: &Path, flags: i32) -> io::Result<File> {
    // The standard library closes it in children by itself.
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().read(true).custom_flags(flags).open(path)
}

/// The whole of a plain file that has at most `most` bytes; of a larger one nothing is read.
///
/// # Errors
/// As [`open`], and when it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    // Its length is a promise that the file need not keep.
    if file.metadata()?.len() <= most {
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= most {
            return Ok(bytes);
        }
    }
    let error = format!("it has more than {} KiB", most >> 10);
    Err(io::Error::new(io::ErrorKind::FileTooLarge, error))
}

/// As [`read`], as text.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// The folder in which a file lies, as its path names it: "." for a name alone.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_of_the_size_come_through_and_nothing_is_waited_for() {
        let folder = std::env::temp_dir().join(format!("cuptop-door-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let (plain, fifo) = (folder.join("plain"), folder.join("fifo"));
        std::fs::write(&plain, [b'x'; 1024]).expect("written");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.expect("mkfifo").success());
        let sparse = folder.join("sparse");
        let made = File::create(&sparse).and_then(|file| file.set_len(1 << 40));
        made.expect("a sparse file");

        let link = folder.join("link");
        std::os::unix::fs::symlink(&plain, &link).expect("a link");
        assert!(open(&link).is_ok() && open_no_link(&plain).is_ok());
        assert!(open_no_link(&link).is_err() && open_no_link(&fifo).is_err());
        assert_eq!(read(&plain, 1024).expect("it fits"), [b'x'; 1024]);
        let kind = |path: &Path, most| read(path, most).expect_err("refused").kind();
        assert_eq!(kind(&plain, 1023), io::ErrorKind::FileTooLarge);
        assert_eq!(kind(&sparse, 1 << 20), io::ErrorKind::FileTooLarge);
        for other in [
            &fifo,
            Path::new("/dev/zero"),
            Path::new("/dev/null"),
            &folder,
        ] {
            assert_eq!(kind(other, 1024), io::ErrorKind::InvalidInput, "{other:?}");
        }
        // It says that it is empty, and is not.
        assert!(
            !read(Path::new("/proc/self/status"), 1 << 16)
                .expect("read")
                .is_empty()
        );
        assert_eq!(
            kind(Path::new("/proc/self/status"), 10),
            io::ErrorKind::FileTooLarge
        );
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

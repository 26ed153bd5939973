//! The recording: the file that carries what one process did to whoever watches.
//!
//! One file for each process, in one directory for each run. A [`Writer`] appends to it and publishes
//! the valid length; a [`Reader`] follows it live or opens it later. The writer never waits for a
//! reader, and a killed process leaves a readable file. Nothing in here knows CUDA, so that a
//! simulator's timeline is saved in the same form.
//!
//! # The file, version 2
//!
//! All numbers are little-endian. The file is named `PID-START.cuptop` (START in hexadecimal nanoseconds),
//! mode 0600 in a directory of mode 0700. A process that keeps only the last of its recording writes it in parts,
//! each a whole file: `PID-START.PART.cuptop`, with a PART from 1; part 0 has the plain name. A file is a header page of 4096 bytes and then blocks of entries, each at a
//! multiple of 64 bytes. Times are nanoseconds of `CLOCK_REALTIME` (a simulator: nanoseconds from its start).
//!
//! ## Header page
//!
//! | at | what |
//! |---|---|
//! | 0 | `b"cuptop\x1a\n"` |
//! | 8 | u32 version of the format: 2 |
//! | 12 | u32 length of this page: 4096 |
//! | 16 | u32 process id |
//! | 20 | u32 flags: 1 simulated, 2 the writer holds `flock` on the file as long as it lives, 4 written by another process, from outside |
//! | 24 | i64 `CLOCK_REALTIME` at the start, then `CLOCK_MONOTONIC`, then `CLOCK_MONOTONIC_RAW` |
//! | 48 | u32 part |
//! | 56 | u64 records received before this part |
//! | 64 | u32 CRC-32 of the 64 bytes before it |
//! | 512 | status slot A |
//! | 1024 | status slot B |
//!
//! The two slots are written in turn. The valid one with the higher sequence number counts. A reader that meets a
//! half-written slot, or a machine that dies in the middle, still has the other.
//!
//! ## Status slot, 160 bytes
//!
//! | at | what |
//! |---|---|
//! | 0 | u64 sequence number, from 1 |
//! | 8 | u64 published length of the file: all before it is complete |
//! | 16 | u32 state: 0 running, 1 closed in good order, 2 could not trace (a notice says why), 3 goes on in the next part |
//! | 20 | u32 write error: 0 none, 1 no space left, 2 size limit reached, 3 the file was deleted, 4 another error |
//! | 24 | u64 records received, dropped by the collecting library, lost in writing, without time stamp, ended before they started, outside the clock, of unknown kind |
//! | 80 | i64 start of the oldest operation known to be open; 0 none |
//! | 88 | i64 the three clocks, as in the header, at the time of this slot |
//! | 112 | u64 records in this part |
//! | 120 | zeros |
//! | 152 | u64 FNV-1a of the 152 bytes before it |
//!
//! ## Blocks
//!
//! What is written at a time. A block's first unit says:
//!
//! | at | what |
//! |---|---|
//! | 0 | u8 tag 96, u16@2 length in units: 1 |
//! | 4 | u32 bytes of the entries behind it |
//! | 8 | u64 where in the file it stands |
//! | 16 | u64 records in this part before it, then u32 names and u32 shapes defined before it |
//! | 32 | u32 frames and u32 stacks defined before it |
//! | 40 | zeros |
//! | 56 | u32 CRC-32 of the entries |
//! | 60 | u32 CRC-32 of the 60 bytes before it |
//!
//! A reader that meets bytes that are no block, or a block whose checksum is another, goes on at the next unit that is
//! one. It tells where that was and how many bytes it skipped. The next block, or the status, tells it how many records
//! were among them. Records that refer to a name or a shape that was lost so are lost too.
//!
//! ## Entries
//!
//! Byte 0 is the tag, bytes 2 to 3 the length in units of 64 bytes (1 to 1024). A reader skips tags that it does not
//! know by their length, and counts those below 64 as unknown records. [`activity::entry`] lists the fields of each.
//! Names and launch shapes, and frames and stacks, are defined before they are used. Their ids count up from 1 (0 is
//! never used) in each part.
//!
//! ## Files of others
//!
//! What others see of a process (stack samples, hardware, threads off their processors) lies in files of this same
//! format beside it. They are named `PID-START.outside.cuptop`, where START is when that file was begun; flag 4 says so
//! too. Such a file may also be of a process without a recording (a worker that loads data), or (process id 0) of the
//! machine. Any of its entries may stand in a process's own recording as well: so they do in copies.
//!
//! The one file that is of no process is the control page ([`CONTROL`]).

mod block;
pub mod header;
mod intern;
mod parts;
mod reader;
mod stacks;
mod steps;
#[cfg(test)]
mod tests;
mod writer;

pub use activity::entry::{Entry, UNIT, shortened};
pub use header::{
    Clocks, Identity, MAGIC, OpenError, State, Status, WriteError, boot_time, wall_time,
};
pub use reader::{Damage, Reader, Wait};
pub use stacks::StackLog;
pub use writer::Writer;

use std::io;
use std::path::Path;

/// The end of a recording's file name.
pub const EXTENSION: &str = "cuptop";
/// What stands before it in the name of one that was written from outside.
pub(crate) const OUTSIDE: &str = "outside";
/// The name of the one file in a recording directory that is of no process: what the collectors are asked to do.
pub const CONTROL: &str = "control";
/// Length of the header page.
pub const HEADER: usize = 4096;

/// Creates a recording directory that only its owner may read (with its parents, into which nobody else may write). Or
/// takes the one that is there, if nobody else can put files into it.
///
/// # Errors
/// When it cannot be created, is another user's, or others may write to it. They name it.
pub fn create_directory(path: &Path) -> io::Result<()> {
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt;
    refuse_foreign_links(path)?;
    let above = path.parent().map_or(Ok(()), |parent| {
        DirBuilder::new().recursive(true).mode(0o755).create(parent)
    });
    let made = above.and_then(|()| DirBuilder::new().mode(0o700).create(path));
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => check(path),
        Err(error) => {
            let text = format!("{}: {error}", path.display());
            Err(io::Error::new(error.kind(), text))
        }
        Ok(()) => Ok(()),
    }
}

/// Refuses a path on which lies another user's link, in a folder where others may leave one, be it that user's or not. The
/// system refuses to follow those of `/tmp` for a write of its own (`fs.protected_symlinks`), but not to rename to where they lead.
///
/// # Errors
/// When there is one, which it names, or so many links that the system follows them no more.
pub fn refuse_foreign_links(path: &Path) -> io::Result<()> {
    refuse_among(path, &mut 40)
}

fn refuse_among(path: &Path, left: &mut u32) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    // A slash at the end would have the system look behind the link.
    let path: std::path::PathBuf = path.components().collect();
    for at in path.ancestors() {
        let above = activity::door::folder_of(at);
        let (Ok(link), Ok(folder)) = (at.symlink_metadata(), above.metadata()) else {
            continue;
        };
        let is_shared = folder.mode() & 0o022 != 0;
        if !link.is_symlink() {
            continue;
        }
        if is_shared && ![user, 0].contains(&link.uid()) {
            let text = format!("{} is another user's link", at.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        // One's own may lead to another's.
        *left = (left.checked_sub(1)).ok_or(rustix::io::Errno::LOOP)?;
        if let Ok(to) = at.read_link() {
            refuse_among(&above.join(to), left)?;
        }
    }
    Ok(())
}

fn check(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let found = directory.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    let refuse = |why: &str| {
        let text = format!("{} {why}", directory.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    };
    if found.uid() != user {
        return refuse("is another user's directory: recordings go into one of your own");
    }
    if found.mode() & 0o022 != 0 {
        return refuse(
            "can be written to by others: chmod go-w it, or name one that does not exist",
        );
    }
    Ok(())
}

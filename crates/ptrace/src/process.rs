//! What a process is, from what the kernel tells of it, and whether a library can be loaded into its kind.

use std::fs;
use std::io::{self, Read};
use std::ops::Range;

use crate::arch;
use crate::refused::Refused;

/// What is known of a process that can be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// System calls of it are filtered: one that the filter does not know fails, or ends it.
    pub has_seccomp: bool,
    /// The user and group whose rights it has on files.
    pub owner: (u32, u32),
}

/// A piece of a process's address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// "r-xp"
    pub rights: String,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file, or what the kernel calls it (`[stack]`); empty where it has no name.
    pub path: String,
}

impl Mapping {
    /// The name of what is mapped, without its folder.
    pub fn file(&self) -> &str {
        let path = self.path.trim_end_matches(" (deleted)");
        path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it holds machine code.
    pub fn is_code(&self) -> bool {
        self.rights.contains('x')
    }

    /// A library called "NAME.so…" or, as up to glibc 2.33, "NAME-2.33.so".
    fn is_library(&self, name: &str) -> bool {
        let rest = self.file().strip_prefix(name);
        rest.is_some_and(|it| {
            it.starts_with(".so") || (it.starts_with("-2.") && it.ends_with(".so"))
        })
    }

    pub(crate) fn is_libc(&self) -> bool {
        self.is_library("libc")
    }

    pub(crate) fn is_libdl(&self) -> bool {
        self.is_library("libdl")
    }

    pub(crate) fn is_loader(&self) -> bool {
        self.file().starts_with("ld-linux-") || self.is_library("ld")
    }

    /// Of an allocator that takes the place of libc's.
    pub(crate) fn is_allocator(&self) -> bool {
        let known = ["libjemalloc", "libtcmalloc", "libmimalloc", "libhoard"];
        known.iter().any(|it| self.file().starts_with(it))
    }
}

/// The address space of a process.
///
/// # Errors
/// When there is no such process, or it may not be looked at.
pub fn maps(pid: u32) -> io::Result<Vec<Mapping>> {
    let text = fs::read(format!("/proc/{pid}/maps"))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(mapping).collect())
}

fn mapping(line: &str) -> Option<Mapping> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?.to_owned();
    let offset = number(words.next()?)?;
    let path = words.nth(2).unwrap_or_default().trim_start().to_owned();
    Some(Mapping {
        range: number(start)?..number(end)?,
        rights,
        offset,
        path,
    })
}

/// A field of a `status` file of /proc.
pub(crate) fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let found = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_default().trim()
}

/// The size of its address space in pages (`proc_pid_statm(5)`): whoever maps a library into it changes that.
pub(crate) fn size(pid: u32) -> Option<String> {
    let sizes = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    sizes.split(' ').next().map(str::to_owned)
}

/// Who traces a thread, if somebody does.
pub(crate) fn traced(pid: u32, tid: i32) -> Option<Refused> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let by = field(&status, "TracerPid").parse::<u32>().ok();
    let by = by.filter(|by| *by != 0)?;
    let name = fs::read_to_string(format!("/proc/{by}/comm")).unwrap_or_default();
    let name = name.trim().to_owned();
    Some(Refused::Traced { pid, by, name })
}

/// Whether a library could be loaded into a process. Changes nothing.
///
/// # Errors
/// Why not.
pub fn check(pid: u32) -> Result<Seen, Refused> {
    let unfit = |why| Refused::Unfit { pid, why };
    let not_permitted = |error| Refused::NotPermitted { pid, error };
    let status =
        fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| Refused::None(pid))?;
    match field(&status, "State").chars().next() {
        Some('Z' | 'X') => return Err(Refused::Ending(pid)),
        Some('T') => return Err(Refused::Stopped(pid)),
        _ => {}
    }
    if let Some(traced) = threads(pid).into_iter().find_map(|tid| traced(pid, tid)) {
        return Err(traced);
    }
    let mut head = [0; 20];
    let read =
        fs::File::open(format!("/proc/{pid}/exe")).and_then(|mut it| it.read_exact(&mut head));
    match read {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(not_permitted(error));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(unfit("is a thread of the kernel, or is ending"));
        }
        Err(error) => return Err(Refused::failed("its program cannot be read")(error)),
        Ok(()) => {}
    }
    // EI_CLASS and e_machine.
    if head[4] != 2 {
        return Err(unfit("is a 32-bit program"));
    }
    if u16::from_le_bytes([head[18], head[19]]) != arch::MACHINE {
        return Err(unfit("is a program for another processor"));
    }
    if field(&status, "x86_Thread_features").contains("shstk") {
        return Err(unfit(
            "has a shadow stack, which only its own calls may change",
        ));
    }
    let maps = maps(pid).map_err(not_permitted)?;
    if maps.iter().any(|it| it.file().starts_with("ld-musl-")) {
        return Err(unfit(
            "uses musl, which loads nothing that was built for glibc",
        ));
    }
    if !maps.iter().any(|it| it.is_libc()) {
        return Err(unfit("is linked statically: there is no loader in it"));
    }
    // Effective ids: saved and file system's are the same in all but the oddest programs.
    let id = |name| {
        let ids = field(&status, name).split_whitespace();
        ids.last().and_then(|it| it.parse().ok()).unwrap_or(0)
    };
    Ok(Seen {
        has_seccomp: field(&status, "Seccomp") != "0",
        owner: (id("Uid"), id("Gid")),
    })
}

/// Whether this process may read another's memory, which takes the rights that entering it takes. Nothing is read.
///
/// # Errors
/// The system's no.
pub fn may_read(pid: u32) -> io::Result<()> {
    let mut byte = 0_u8;
    let here = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // Rights are asked for before the address, which no process has.
    let there = libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 1,
    };
    // SAFETY: one byte of ours would be written, which lives until the call returns.
    let read = unsafe {
        libc::process_vm_readv(
            pid.cast_signed(),
            &raw const here,
            1,
            &raw const there,
            1,
            0,
        )
    };
    match io::Error::last_os_error() {
        error if read < 0 && error.raw_os_error() != Some(libc::EFAULT) => Err(error),
        _ => Ok(()),
    }
}

/// The threads of a process.
pub(crate) fn threads(pid: u32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|it| it.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_read() {
        let line = "7f00a000-7f00b000 r-xp 00001000 08:01 42                         /usr/lib/x y/libc.so.6";
        let it = mapping(line).expect("a mapping");
        assert_eq!(
            (it.range.clone(), it.offset),
            (0x7f00_a000..0x7f00_b000, 0x1000)
        );
        assert!(it.is_code() && it.is_libc() && !it.is_loader());
        let named = |path: &str| Mapping {
            path: path.to_owned(),
            ..it.clone()
        };
        assert!(named("/lib/libc-2.31.so").is_libc());
        assert!(!named("/lib/libcrypt.so.1").is_libc());
        assert!(!named("/lib/libcuda.so.1").is_libc());
        assert!(named("/lib64/ld-linux-x86-64.so.2").is_loader());
        assert!(named("/lib/ld-2.31.so").is_loader());
        assert!(named("/opt/libjemalloc.so.2").is_allocator());
        assert_eq!(
            mapping("7f00a000-7f00b000 rw-p 00000000 00:00 0 ").map(|it| it.path),
            Some(String::new())
        );
    }

    #[test]
    fn what_is_not_there_is_refused() {
        assert!(matches!(check(u32::MAX >> 1), Err(Refused::None(_))));
        assert!(check(std::process::id()).is_ok());
        assert!(may_read(std::process::id()).is_ok());
        let none = may_read(u32::MAX >> 1).expect_err("there is none");
        assert_eq!(none.raw_os_error(), Some(libc::ESRCH));
    }
}

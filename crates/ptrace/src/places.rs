//! What is asked for, and where in the process lies what it takes.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::arch;
use crate::elf::Library;
use crate::memory::Memory;
use crate::process::Mapping;

/// A library to be loaded, and what it gets.
pub struct Request<'a> {
    /// The process.
    pub pid: u32,
    /// The library, a `memfd`.
    pub library: BorrowedFd<'a>,
    /// How the library's mapping is called where it is loaded already ("/memfd:NAME").
    pub mapping: &'a str,
    /// Its function `int (int socket, int passed, int library, void *area)`, which is called in the stopped thread and has to return at once.
    /// `library` is -1 where it was loaded before.
    pub symbol: &'a str,
    /// A variable of it, eight bytes, in which that function keeps `area` for the next call.
    pub area: &'a str,
    /// What it gets as `passed`.
    pub passed: BorrowedFd<'a>,
    /// How long a thread is waited for, unless whoever asked gives up.
    pub limit: Duration,
    /// Whether they have.
    pub given_up: &'a AtomicBool,
}

/// What is found in the process before it is touched.
pub(super) struct Places {
    /// Code that makes a system call and returns, and code that calls `rt_sigreturn`.
    pub(super) syscall: u64,
    pub(super) sigreturn: u64,
    pub(super) dlopen: u64,
    pub(super) dlsym: u64,
    pub(super) dlerror: u64,
    pub(super) errno_location: u64,
    /// The function, where the library is loaded already, and the memory of its last call.
    pub(super) entry: u64,
    pub(super) area: u64,
}

impl Places {
    pub(super) fn find(
        request: &Request<'_>,
        maps: &[Mapping],
        memory: &Memory,
        libc: &Library,
    ) -> io::Result<Places> {
        let missing =
            |what: &str| io::Error::new(io::ErrorKind::NotFound, format!("it has no {what}"));
        let dl = maps.iter().find(|it| it.is_libdl());
        let dl = dl
            .map(|it| Library::read(memory, it.range.start))
            .transpose()?;
        let function = |name: &str| -> io::Result<u64> {
            for library in [Some(libc), dl.as_ref()].into_iter().flatten() {
                if let Some(found) = library.symbol(memory, name)? {
                    return Ok(found.start);
                }
            }
            Err(missing(name))
        };
        let code = |is_it: fn(&Mapping) -> bool, pattern: &[u8]| -> io::Result<u64> {
            for mapping in maps.iter().filter(|it| it.is_code() && is_it(it)) {
                let length = (mapping.range.end - mapping.range.start) as usize;
                let bytes = memory.bytes(mapping.range.start, length)?;
                let mut windows = bytes.windows(pattern.len());
                if let Some(at) = windows.position(|it| it == pattern) {
                    return Ok(mapping.range.start + at as u64);
                }
            }
            Err(missing("code to return from signals"))
        };
        let (mut entry, mut area) = (0, 0);
        let is_it = |it: &&Mapping| it.offset == 0 && it.path.starts_with(request.mapping);
        if let Some(loaded) = maps.iter().find(is_it) {
            let loaded = Library::read(memory, loaded.range.start)?;
            let symbol = loaded.symbol(memory, request.symbol)?;
            let other =
                || io::Error::other("the library of another version of cuptop is loaded there");
            entry = symbol.ok_or_else(other)?.start;
            if let Some(variable) = loaded.symbol(memory, request.area)? {
                area = memory.number::<8>(variable.start)?;
            }
        }
        let vdso: fn(&Mapping) -> bool = |it| it.path == "[vdso]";
        let sigreturn_in = if arch::SIGRETURN_IN_LIBC {
            Mapping::is_libc
        } else {
            vdso
        };
        Ok(Places {
            syscall: code(Mapping::is_libc, arch::SYSCALL)?,
            sigreturn: code(sigreturn_in, arch::SIGRETURN)?,
            dlopen: function("dlopen")?,
            dlsym: function("dlsym")?,
            dlerror: function("dlerror")?,
            errno_location: function("__errno_location")?,
            entry,
            area,
        })
    }
}

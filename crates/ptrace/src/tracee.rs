//! The requests of ptrace, for one thread each. All of a thread's come from the same thread of ours.

use std::io;

use crate::arch::{self, Registers};
use crate::steps;

/// Ordinary registers: NT_PRSTATUS.
const GENERAL: i32 = 1;
/// More than any processor's vectors take.
const LONGEST: usize = 64 * 1024;

/// A thread that was seized. Whatever becomes of us, the kernel lets it go on.
pub(crate) struct Tracee {
    pub(crate) tid: i32,
}

/// Why a thread stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was asked to, or its process is stopped by a signal.
    Asked,
    /// Its process became another program.
    Exec,
    /// It is about to make a system call.
    Entry,
    /// A system call has ended.
    Exit,
    /// A signal is about to be delivered.
    Signal(i32),
    /// It has ended.
    Gone,
}

impl Tracee {
    /// Begins to trace a thread, which runs on, and asks it to stop.
    pub(crate) fn seize(tid: i32) -> io::Result<Tracee> {
        let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEEXEC;
        let it = Tracee { tid };
        it.request(libc::PTRACE_SEIZE, 0, options as usize)?;
        it.interrupt()?;
        Ok(it)
    }

    /// Asks it to stop.
    pub(crate) fn interrupt(&self) -> io::Result<()> {
        self.request(libc::PTRACE_INTERRUPT, 0, 0).map(drop)
    }

    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> io::Result<i64> {
        steps::note();
        // SAFETY: the requests made here take numbers, or addresses of memory of ours that live until they return.
        let result = unsafe { libc::ptrace(request, self.tid, address, data) };
        if result == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(result)
    }

    /// Lets it run until the next entry or end of a system call.
    pub(crate) fn go_on(&self, signal: i32) -> io::Result<()> {
        let signal = usize::try_from(signal).unwrap_or(0);
        self.request(libc::PTRACE_SYSCALL, 0, signal).map(drop)
    }

    /// Lets it run as if nobody had traced it.
    pub(crate) fn detach(self) -> io::Result<()> {
        self.request(libc::PTRACE_DETACH, 0, 0).map(drop)
    }

    fn set(&self, request: libc::c_uint, kind: i32, bytes: &mut [u8]) -> io::Result<usize> {
        let mut vector = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let kind = usize::try_from(kind).unwrap_or(0);
        self.request(request, kind, &raw mut vector as usize)?;
        Ok(vector.iov_len)
    }

    pub(crate) fn registers(&self) -> io::Result<Registers> {
        let mut bytes = [0; size_of::<Registers>()];
        self.set(libc::PTRACE_GETREGSET, GENERAL, &mut bytes)?;
        // SAFETY: registers are numbers, for which any bytes will do.
        Ok(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
    }

    pub(crate) fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        let mut bytes = arch::bytes_of(registers).to_vec();
        self.set(libc::PTRACE_SETREGSET, GENERAL, &mut bytes)
            .map(drop)
    }

    /// The vectors, as the kernel gives them.
    pub(crate) fn vectors(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; LONGEST];
        let length = self.set(libc::PTRACE_GETREGSET, arch::VECTORS, &mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// The signals that it blocks.
    pub(crate) fn mask(&self) -> io::Result<u64> {
        let mut mask = 0_u64;
        let at = &raw mut mask as usize;
        self.request(libc::PTRACE_GETSIGMASK, size_of::<u64>(), at)?;
        Ok(mask)
    }

    pub(crate) fn set_mask(&self, mut mask: u64) -> io::Result<()> {
        let at = &raw mut mask as usize;
        self.request(libc::PTRACE_SETSIGMASK, size_of::<u64>(), at)
            .map(drop)
    }

    /// Why it stands still; nothing while it runs. With `waits`, does not come back before it stands.
    pub(crate) fn stop(&self, waits: bool) -> Option<Stop> {
        let mut status = 0;
        let flags = libc::__WALL | if waits { 0 } else { libc::WNOHANG };
        // SAFETY: writes one int.
        match unsafe { libc::waitpid(self.tid, &raw mut status, flags) } {
            0 => return None,
            found if found == self.tid => {}
            _ => return Some(Stop::Gone),
        }
        if !libc::WIFSTOPPED(status) {
            return Some(Stop::Gone);
        }
        let signal = libc::WSTOPSIG(status);
        Some(match status >> 16 {
            libc::PTRACE_EVENT_EXEC => Stop::Exec,
            libc::PTRACE_EVENT_STOP => Stop::Asked,
            _ if signal == libc::SIGTRAP | 0x80 => self.side().unwrap_or(Stop::Gone),
            _ => Stop::Signal(signal),
        })
    }

    /// On which side of a system call it stands.
    fn side(&self) -> io::Result<Stop> {
        // The first byte is what is asked for; the rest is cut off.
        let mut operation = 0_u8;
        let at = &raw mut operation as usize;
        self.request(libc::PTRACE_GET_SYSCALL_INFO, 1, at)?;
        Ok(if operation == libc::PTRACE_SYSCALL_INFO_ENTRY {
            Stop::Entry
        } else {
            Stop::Exit
        })
    }
}

//! A stopped thread as our hands in its process: memory and descriptors by system calls that it makes, then the call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::arch::{self, Block, MESSAGE, Registers};
use crate::memory::Memory;
use crate::places::{Places, Request};
use crate::refused::Refused;
use crate::search::Found;
use crate::tracee::{Stop, Tracee};

/// The memory that is made in the process: code, then data, then a stack.
pub(super) const CODE: u64 = 64 * 1024;
const DATA: u64 = 64 * 1024;
const STACK: u64 = 512 * 1024;
/// Where in the data what lies.
pub(super) const BLOCK: u64 = 0;
const SOCKETS: u64 = 0x400;
const MESSAGE_HEADER: u64 = 0x410;
const VECTOR: u64 = 0x450;
const BYTE: u64 = 0x460;
const CONTROL: u64 = 0x470;
const CONTROL_LENGTH: usize = 64;
/// Where the kernel writes the numbers of the descriptors that come, behind a header of 16 bytes.
const PASSED: u64 = CONTROL + 16;
// The code of the call counts on it.
const _: () = assert!(CODE + SOCKETS == 0x1_0400 && PASSED - SOCKETS == 0x80 && BLOCK == 0);
const SYMBOL: u64 = 0x500;
const PATH: u64 = 0x600;
/// The end of the frame.
const FRAME: u64 = DATA;

/// All but those by which the processor reports what an instruction did.
const BLOCKED: u64 = {
    let kept = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGTRAP,
        libc::SIGSYS,
    ];
    let (mut mask, mut at) = (u64::MAX, 0);
    while at < kept.len() {
        mask &= !(1 << (kept[at] - 1));
        at += 1;
    }
    mask
};

const SHARING: &str = "descriptors cannot be shared with the process";

/// The descriptor that a system call gave.
pub(super) fn owned(result: i64) -> io::Result<OwnedFd> {
    let number = RawFd::try_from(result).ok().filter(|it| *it >= 0);
    let number = number.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel made it just now, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A stopped thread that does what it is asked to, and in any case comes back to where it was.
pub(super) struct Guest<'a> {
    tracee: Tracee,
    memory: &'a Memory,
    places: &'a Places,
    /// What it has when it comes back.
    back: Registers,
    vectors: Vec<u8>,
    mask: u64,
    /// The frame that brings it back, and the code that takes it up.
    frame: u64,
    to_frame: u64,
    pub(super) area: u64,
    /// What it has now.
    now: Registers,
}

impl<'a> Guest<'a> {
    pub(super) fn enter(
        found: Found,
        memory: &'a Memory,
        places: &'a Places,
    ) -> Result<Guest<'a>, Refused> {
        let Found {
            tracee,
            registers,
            back,
            room,
            ..
        } = found;
        let read = || -> io::Result<_> { Ok((tracee.vectors()?, tracee.mask()?)) };
        let (vectors, mask) = read().map_err(Refused::failed("its registers cannot be read"))?;
        let (frame, bytes) = arch::frame(&back, &vectors, mask, places.sigreturn, room.end);
        let unused = || Refused::failed("the thread that was stopped cannot be used");
        if frame < room.start {
            let error = io::Error::other("its stack has no room for a frame");
            return Err(unused()(error));
        }
        let mut guest = Guest {
            back,
            vectors,
            mask,
            frame,
            to_frame: places.sigreturn,
            area: places.area,
            now: registers,
            tracee,
            memory,
            places,
        };
        guest.begin_from(&bytes).map_err(unused())?;
        Ok(guest)
    }

    /// From the second request on all that the thread can do leads back by the frame.
    fn begin_from(&mut self, frame: &[u8]) -> io::Result<()> {
        self.memory.write(self.frame, frame)?;
        let neutral = arch::neutral(
            &self.now,
            self.places.syscall,
            self.frame,
            self.places.sigreturn,
        );
        self.tracee.set_registers(&neutral)?;
        // The frame puts the mask back.
        self.tracee.set_mask(BLOCKED)?;
        self.until_exit()
    }

    fn until_exit(&mut self) -> io::Result<()> {
        let mut signal = 0;
        loop {
            self.tracee.go_on(std::mem::take(&mut signal))?;
            match self.tracee.stop(true) {
                Some(Stop::Exit) => break,
                Some(Stop::Signal(came)) => signal = came,
                Some(Stop::Gone | Stop::Exec) | None => {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                _ => {}
            }
        }
        self.now = self.tracee.registers()?;
        Ok(())
    }

    /// Has it make a system call.
    fn call(
        &mut self,
        what: &'static str,
        number: i64,
        arguments: [u64; 6],
    ) -> Result<u64, Refused> {
        let places = self.places;
        let calling = arch::calling(
            &self.now,
            number,
            arguments,
            places.syscall,
            self.frame,
            self.to_frame,
        );
        let made = self.tracee.set_registers(&calling);
        made.and_then(|()| self.until_exit())
            .map_err(Refused::failed(what))?;
        match arch::result(&self.now) {
            error @ -4095..0 => {
                let error = io::Error::from_raw_os_error(i32::try_from(-error).unwrap_or(0));
                Err(Refused::failed(what)(error))
            }
            result => Ok(result.cast_unsigned()),
        }
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Refused> {
        let write = self.memory.write(at, bytes);
        write.map_err(Refused::failed("its memory cannot be written"))
    }

    /// Makes all that the call needs. Returns our end of its socket.
    pub(super) fn prepare(
        &mut self,
        request: &Request<'_>,
        process: &OwnedFd,
    ) -> Result<OwnedFd, Refused> {
        let stage = self.area + CODE + std::mem::offset_of!(Block, stage) as u64;
        // It may be of another version of this code.
        let code = self.memory.bytes(self.area, arch::code().len());
        let is_used = (self.memory.number::<8>(stage)).is_ok_and(|it| it >= arch::DONE);
        if !is_used || code.is_ok_and(|it| it != arch::code()) {
            self.make_area()?;
        }
        self.descriptors(request, process)
    }

    fn make_area(&mut self) -> Result<(), Refused> {
        let what = "memory cannot be made in the process";
        let length = CODE + DATA + STACK;
        let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
        let nowhere = u64::MAX;
        self.area = self.call(what, libc::SYS_mmap, [0, length, both, flags, nowhere, 0])?;
        self.write(self.area, arch::code())?;
        let run = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        let protect = [self.area, CODE, run, 0, 0, 0];
        let what = "code cannot be run in the process";
        self.call(what, libc::SYS_mprotect, protect).map(drop)
    }

    /// A socket between the two of us, and through it the descriptors that the call gets.
    fn descriptors(
        &mut self,
        request: &Request<'_>,
        process: &OwnedFd,
    ) -> Result<OwnedFd, Refused> {
        let data = self.area + CODE;
        // From here on its own code closes what was made, whoever of us is killed: there is nothing yet.
        self.write(data + SOCKETS, &[0xff; 8])?;
        self.write(data + PASSED, &[0xff; 8])?;
        self.to_frame = self.area + arch::giving_up();
        self.write(self.frame, &self.to_frame.to_le_bytes())?;
        let kind = (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC) as u64;
        let family = libc::AF_UNIX as u64;
        let pair = [family, kind, 0, data + SOCKETS, 0, 0];
        self.call(SHARING, libc::SYS_socketpair, pair)?;
        let failed = || Refused::failed(SHARING);
        let number = |at| self.memory.number::<4>(data + SOCKETS + at);
        let (theirs, ours) = (number(0).map_err(failed())?, number(4).map_err(failed())?);
        // The call closes it there: it lives on in us alone, so that its end is seen.
        let socket = self.take_over(request, process, ours)?;
        let passed = self.receive(theirs)?;
        self.write_block(request, theirs, &passed)?;
        Ok(socket)
    }

    /// Takes over the other process's end of the socket, and sends the descriptors through it.
    fn take_over(
        &self,
        request: &Request<'_>,
        process: &OwnedFd,
        number: u64,
    ) -> Result<OwnedFd, Refused> {
        let failed = || Refused::failed(SHARING);
        // SAFETY: takes numbers.
        let taken =
            owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) });
        let socket = taken.map_err(failed())?;
        let mut passed = vec![request.passed];
        if self.places.entry == 0 {
            passed.push(request.library);
        }
        send(&socket, &passed).map_err(failed())?;
        Ok(socket)
    }

    /// Has the thread receive them. Returns their numbers there.
    fn receive(&mut self, socket: u64) -> Result<Vec<i32>, Refused> {
        let data = self.area + CODE;
        // SAFETY: plain old data, for which zeros are valid.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = (data + VECTOR) as *mut libc::iovec;
        header.msg_iovlen = 1;
        header.msg_control = (data + CONTROL) as *mut libc::c_void;
        header.msg_controllen = CONTROL_LENGTH as _;
        self.write(data + MESSAGE_HEADER, arch::bytes_of(&header))?;
        let vector = [data + BYTE, 1];
        self.write(data + VECTOR, arch::bytes_of(&vector))?;
        let flags = libc::MSG_CMSG_CLOEXEC as u64;
        let arguments = [socket, data + MESSAGE_HEADER, flags, 0, 0, 0];
        self.call(SHARING, libc::SYS_recvmsg, arguments)?;
        let control = self.memory.bytes(data + CONTROL, CONTROL_LENGTH);
        let control = control.map_err(Refused::failed(SHARING))?;
        let count = if self.places.entry == 0 { 2 } else { 1 };
        // It begins with its length.
        let length = control
            .first_chunk()
            .map_or(0, |it| usize::from_le_bytes(*it));
        if length != 16 + 4 * count {
            let error = io::Error::other("they did not arrive");
            return Err(Refused::failed(SHARING)(error));
        }
        let numbers = control[16..length].as_chunks::<4>().0;
        Ok(numbers.iter().map(|it| i32::from_le_bytes(*it)).collect())
    }

    fn write_block(
        &self,
        request: &Request<'_>,
        socket: u64,
        passed: &[i32],
    ) -> Result<(), Refused> {
        let data = self.area + CODE;
        let places = self.places;
        let top = data + FRAME;
        let (frame, bytes) =
            arch::frame(&self.back, &self.vectors, self.mask, places.sigreturn, top);
        self.write(frame, &bytes)?;
        let library = passed.get(1).copied().unwrap_or(-1);
        // A path that nobody else writes this way: the loader takes libraries of one name for the same.
        let path = format!("/proc/./self/fd/{library}\0");
        self.write(data + PATH, path.as_bytes())?;
        self.write(data + SYMBOL, format!("{}\0", request.symbol).as_bytes())?;
        let number = |fd: i32| i64::from(fd).cast_unsigned();
        let first = passed.first().copied().unwrap_or(-1);
        let block = Block {
            dlopen: places.dlopen,
            dlsym: places.dlsym,
            dlerror: places.dlerror,
            errno_location: places.errno_location,
            entry: places.entry,
            path: data + PATH,
            flags: (libc::RTLD_NOW | libc::RTLD_LOCAL) as u64,
            symbol: data + SYMBOL,
            arguments: [socket, number(first), number(library), self.area],
            stage: 0,
            result: 0,
            errno: 0,
            errno_at: 0,
            leave: arch::leave(frame),
            message: [0; MESSAGE],
        };
        self.write(data + BLOCK, arch::bytes_of(&block))
    }

    /// Lets it make the call. From here on it is on its own.
    pub(super) fn begin(self) -> io::Result<()> {
        let data = self.area + CODE;
        let entering = arch::entering(&self.now, self.area, data + BLOCK, data + DATA + STACK);
        self.tracee.set_registers(&entering)?;
        self.tracee.detach()
    }

    /// Lets it go back.
    pub(super) fn leave(self) {
        // It stands behind a system call, and the next instructions are those that take up the frame.
        let _ = self.tracee.detach();
    }
}

/// Sends descriptors through a socket, with one byte.
fn send(socket: &OwnedFd, passed: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut byte = [0_u8];
    let mut vector = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0_u64; CONTROL_LENGTH / 8];
    let numbers: Vec<i32> = passed.iter().map(AsRawFd::as_raw_fd).collect();
    let length = 16 + 4 * numbers.len();
    control[0] = length as u64;
    control[1] = (libc::SOL_SOCKET as u64) | (libc::SCM_RIGHTS as u64) << 32;
    for (index, number) in numbers.iter().enumerate() {
        control[2 + index / 2] |= u64::from(number.cast_unsigned()) << (32 * (index % 2));
    }
    // SAFETY: plain old data, for which zeros are valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = length as _;
    // SAFETY: the header and all that it names live until the call returns.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    if sent == 1 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

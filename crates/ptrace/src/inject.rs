//! The way in, from the first look at the process to the end of the call, which runs without us.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::arch::{self, Block, MESSAGE};
use crate::elf::Library;
use crate::guest::{BLOCK, CODE, Guest, owned};
use crate::memory::Memory;
use crate::places::{Places, Request};
use crate::process::{Mapping, check, maps};
use crate::refused::Refused;
use crate::search::{Locks, Search};

/// How the thread is called that is a process's tracer for the moment.
pub const TRACER: &str = "cuptop-ptrace";

/// A call that has begun.
#[derive(Debug)]
pub struct Loaded {
    /// The other end of the function's socket (`SOCK_SEQPACKET`).
    pub socket: OwnedFd,
    /// The call.
    pub call: Call,
    /// The thread that makes it.
    pub thread: i32,
    /// How long it stood still before.
    pub still: Duration,
}

/// The call in the other process.
#[derive(Debug)]
pub struct Call {
    memory: Memory,
    block: u64,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallState {
    /// It has not come back.
    Running,
    /// What the function returned.
    Done(i32),
    /// The library was not loaded: the loader's words.
    Failed(String),
    /// The process has ended, or become another program.
    Gone,
}

impl Call {
    /// How far it is.
    pub fn state(&self) -> CallState {
        let Ok(block) = self.read() else {
            return CallState::Gone;
        };
        match block.stage {
            arch::DONE => CallState::Done(block.result as i32),
            arch::NOT_LOADED => {
                let length = block.message.iter().position(|it| *it == 0);
                let text = &block.message[..length.unwrap_or(MESSAGE)];
                CallState::Failed(String::from_utf8_lossy(text).into_owned())
            }
            arch::NO_SYMBOL => CallState::Failed("the library lacks its function".to_owned()),
            _ => CallState::Running,
        }
    }

    /// Waits until it has come back, or for so long.
    pub fn wait(&self, limit: Duration) -> CallState {
        let begun = Instant::now();
        loop {
            let state = self.state();
            if state != CallState::Running || begun.elapsed() > limit {
                return state;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn read(&self) -> io::Result<Block> {
        let mut bytes = [0; size_of::<Block>()];
        self.memory.read(self.block, &mut bytes)?;
        // SAFETY: a block is numbers, for which any bytes will do.
        Ok(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
    }
}

/// Loads a library into a process and calls its function there. Comes back when the call has begun.
///
/// # Errors
/// Why it could not be. The process goes on as it was.
pub fn load(request: &Request<'_>) -> Result<Loaded, Refused> {
    check(request.pid)?;
    // When a thread ends the kernel lets go of all that it traces, without stopping any of it.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(TRACER.to_owned())
            .spawn_scoped(scope, || way_in(request))
            .map_err(Refused::failed("no thread can be started"))?;
        thread.join().unwrap_or_else(|_| {
            let error = io::Error::other("a panic");
            Err(Refused::failed("the way in ended early")(error))
        })
    })
    // A step fails when the process ends meanwhile. Our thread may still count as its tracer.
    .map_err(|refused| match (check(request.pid), &refused) {
        (Err(Refused::Traced { .. }) | Ok(_), _) => refused,
        (Err(why), Refused::Failed { .. }) => why,
        _ => refused,
    })
}

fn way_in(request: &Request<'_>) -> Result<Loaded, Refused> {
    let pid = request.pid;
    let not_permitted = |error| Refused::NotPermitted { pid, error };
    let memory = Memory::open(pid).map_err(not_permitted)?;
    let size = crate::process::size(pid);
    let maps = maps(pid).map_err(not_permitted)?;
    let unread = || Refused::failed("its libraries cannot be read");
    let libc = maps.iter().find(|it| it.is_libc() && it.offset == 0);
    let libc = libc.ok_or(Refused::Ending(pid))?;
    let libc = Library::read(&memory, libc.range.start).map_err(unread())?;
    let places = Places::find(request, &maps, &memory, &libc).map_err(unread())?;
    let locks = Locks::find(&maps, &memory, &libc).map_err(unread())?;
    wait_for_others(pid, &maps, &memory, request.limit)?;
    let handle = process(pid).map_err(Refused::failed(
        "Linux 5.6 or later is needed, which can share descriptors",
    ))?;
    let found = Search::new(pid, &memory, &maps, &locks).run(request)?;
    let has_library = |maps: &[Mapping]| maps.iter().any(|it| it.path.starts_with(request.mapping));
    // The thread stands still by now, and to read all maps of a large program takes longer than that may.
    if arch::AT_ENTRY && !has_library(&maps) && crate::process::size(pid) != size {
        // Who came first may have brought it meanwhile, or be about to. A call that was ended goes on by our hand alone.
        let now = crate::process::maps(pid).map_err(not_permitted)?;
        wait_for_others(pid, &now, &memory, Duration::ZERO)?;
        if has_library(&now) {
            return Err(Refused::Entered(pid));
        }
    }
    let (thread, since) = (found.tracee.tid, found.since);
    let mut guest = Guest::enter(found, &memory, &places)?;
    match guest.prepare(request, &handle) {
        Ok(socket) => {
            let block = guest.area + CODE + BLOCK;
            guest
                .begin()
                .map_err(Refused::failed("the call cannot begin"))?;
            let still = since.elapsed();
            let call = Call { memory, block };
            Ok(Loaded {
                socket,
                call,
                thread,
                still,
            })
        }
        Err(refused) => {
            guest.leave();
            Err(refused)
        }
    }
}

/// Waits until calls of others into the process have come back: who made them may have left meanwhile. Beside a call that loads a library
/// no other is made. Their memory is told by the code in it.
fn wait_for_others(
    pid: u32,
    maps: &[Mapping],
    memory: &Memory,
    limit: Duration,
) -> Result<(), Refused> {
    let code = arch::code();
    let is_ours = |it: &&Mapping| {
        let is_alike = it.is_code() && it.path.is_empty() && it.range.end - it.range.start >= CODE;
        is_alike
            && memory
                .bytes(it.range.start, code.len())
                .is_ok_and(|it| it == code)
    };
    let stage = std::mem::offset_of!(Block, stage) as u64;
    for area in maps.iter().filter(is_ours) {
        let at = area.range.start + CODE + BLOCK + stage;
        let begun = Instant::now();
        // 0 is of one that never began: who made it was killed.
        while memory.number::<8>(at).is_ok_and(|it| it == BEGUN) {
            if begun.elapsed() > limit {
                return Err(Refused::Entered(pid));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// What [`Block::stage`] is while the call is under way.
const BEGUN: u64 = 1;

fn process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

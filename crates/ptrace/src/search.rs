//! Finding a thread at a place where it may be given something else to do.

use std::fs;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::arch::{self, Registers};
use crate::elf::Library;
use crate::memory::Memory;
use crate::places::Request;
use crate::process::{Mapping, maps, threads, traced};
use crate::refused::Refused;
use crate::tracee::{Stop, Tracee};

/// Threads that are looked at at a time: one of a few is soon at a good place, and the others are better left alone.
const FIRST: usize = 6;
const LATER: usize = 24;
/// When more threads are looked at, and when waits for a length of time may begin anew. Where all threads sleep nobody comes by a call
/// soon, and that is done at once.
const SECOND_LOOK: Duration = Duration::from_millis(300);
const LAST_RESORT: Duration = Duration::from_millis(900);
/// Who has had so little of a core (ticks of the kernel) and waits for one is looked at so many times as long. So is who waited for one
/// for a quarter of the time. The same holds where the thread that looks has waited so.
const TICKS: u64 = 10;
const STARVED: u32 = 5;
const WAITED: u32 = 4;
/// Between two looks at threads that run.
const PAUSE: Duration = Duration::from_micros(50);
/// How far up a stack is looked for return addresses.
const DEEPEST: u64 = 64 * 1024;
/// With so many bytes left of a stack it matters whether it has grown meanwhile.
const ROOM: u64 = 64 * 1024;

/// Code in which a thread may hold a lock that loading a library takes.
pub(crate) struct Locks(Vec<Range<u64>>);

impl Locks {
    /// The code of the loader and of the allocators.
    pub(crate) fn find(maps: &[Mapping], memory: &Memory, libc: &Library) -> io::Result<Locks> {
        const ALLOCATOR: &str = "malloc free calloc realloc memalign aligned_alloc posix_memalign valloc pvalloc \
            malloc_trim malloc_usable_size mallopt mallinfo malloc_stats malloc_info";
        let mut found = Vec::new();
        for name in ALLOCATOR.split(' ') {
            found.extend(libc.symbol(memory, name)?);
        }
        // What lies between its public functions are its private ones.
        let first = found.iter().map(|it| it.start).min().unwrap_or(0);
        let last = found.iter().map(|it| it.end).max().unwrap_or(0);
        let foreign = |it: &&Mapping| it.is_code() && (it.is_loader() || it.is_allocator());
        let foreign = maps.iter().filter(foreign);
        let mut all: Vec<_> = foreign.map(|it| it.range.clone()).collect();
        all.push(first..last);
        Ok(Locks(all))
    }

    fn contain(&self, address: u64) -> bool {
        self.0.iter().any(|it| it.contains(&address))
    }

    /// Whether a return address into them lies on a stack; some that do are left from calls that are over.
    fn are_on(&self, stack: Range<u64>, memory: &Memory) -> io::Result<bool> {
        let words = memory.bytes(stack.start, (stack.end - stack.start) as usize)?;
        for word in words.as_chunks::<8>().0 {
            let address = u64::from_le_bytes(*word) & arch::ADDRESS;
            if self.contain(address) {
                let mut before = [0; 8];
                // Nothing lies before the first address of a library, which is on the stack of a program's first thread.
                let is_read = memory.read(address - 8, &mut before).is_ok();
                if is_read && arch::is_after_call(&before) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// A thread that stands at a good place.
pub(crate) struct Found {
    pub(crate) tracee: Tracee,
    /// What it has now, and when it comes back.
    pub(crate) registers: Registers,
    pub(crate) back: Registers,
    /// The memory below its stack pointer that is its stack's.
    pub(crate) room: Range<u64>,
    pub(crate) since: Instant,
}

/// One that is looked at.
struct Candidate {
    tracee: Tracee,
    /// What the kernel said of its system call before it was stopped.
    before: String,
    /// The call that it was in when it was stopped.
    interrupted: Option<i64>,
}

/// Looks at the threads of a process until one stands at the entry of a harmless call.
pub(crate) struct Search<'a> {
    pub(crate) pid: u32,
    pub(crate) memory: &'a Memory,
    pub(crate) maps: &'a [Mapping],
    pub(crate) locks: &'a Locks,
    candidates: Vec<Candidate>,
    begun: Instant,
    /// Whether a wait for a length of time may begin anew.
    may_wait_anew: bool,
    /// What the last thread that was passed over did.
    passed: String,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        pid: u32,
        memory: &'a Memory,
        maps: &'a [Mapping],
        locks: &'a Locks,
    ) -> Search<'a> {
        Search {
            pid,
            memory,
            maps,
            locks,
            candidates: Vec::new(),
            begun: Instant::now(),
            may_wait_anew: false,
            passed: "they run and call nothing".to_owned(),
        }
    }

    /// Other threads that were looked at are let go when the thread of ours that calls this ends.
    pub(crate) fn run(mut self, request: &Request<'_>) -> Result<Found, Refused> {
        let limit = request.limit;
        self.add(FIRST)?;
        let (mut is_widened, mut is_last) = (false, false);
        let (ran, waited, mut until) = (self.ran(), self.waited(), limit);
        while self.begun.elapsed() < until {
            if request.given_up.load(Ordering::Relaxed) {
                let error = io::ErrorKind::Interrupted.into();
                return Err(Refused::failed("it was given up")(error));
            }
            if !is_widened && (self.begun.elapsed() > SECOND_LOOK || self.candidates.is_empty()) {
                is_widened = true;
                self.add(LATER)?;
            }
            if !is_last
                && (self.begun.elapsed() > LAST_RESORT
                    || self.begun.elapsed() > SECOND_LOOK && self.all_sleep())
            {
                is_last = true;
                self.may_wait_anew = true;
                // Those that sleep come by the entry of their call once more.
                self.candidates.retain(|it| it.tracee.interrupt().is_ok());
            }
            if let Some(found) = self.round()? {
                return Ok(found);
            }
            std::thread::sleep(PAUSE);
            let is_over = self.begun.elapsed() >= until;
            let has_waited = || self.waited().saturating_sub(waited) > until / WAITED;
            if is_over && until < STARVED * limit && (self.is_starved(ran) || has_waited()) {
                until += limit;
            }
        }
        self.say_what_they_do(ran);
        Err(Refused::NoPlace {
            pid: self.pid,
            waited: until.as_secs_f64(),
            why: self.passed,
        })
    }

    fn add(&mut self, most: usize) -> Result<(), Refused> {
        let mut tids: Vec<(u32, i32, String)> = threads(self.pid)
            .into_iter()
            .filter(|tid| self.candidates.iter().all(|it| it.tracee.tid != *tid))
            .map(|tid| (tid, call(self.pid, tid)))
            .map(|(tid, before)| (order(&before), tid, before))
            .collect();
        tids.sort_unstable();
        for (_, tid, before) in tids.into_iter().take(most) {
            let mut seized = Tracee::seize(tid);
            if (seized.as_ref()).is_err_and(|it| it.raw_os_error() == Some(libc::EPERM)) {
                // Somebody else may just be at it, or have been.
                match traced(self.pid, tid) {
                    Some(traced) => return Err(traced),
                    None => seized = Tracee::seize(tid),
                }
            }
            match seized {
                Ok(tracee) => self.candidates.push(Candidate {
                    tracee,
                    before,
                    interrupted: None,
                }),
                // It has just ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                // One of the kernel's own, as io_uring has them.
                Err(_) if !self.candidates.is_empty() => {}
                Err(error) => {
                    let pid = self.pid;
                    return Err(Refused::NotPermitted { pid, error });
                }
            }
        }
        Ok(())
    }

    /// Looks at each thread once.
    fn round(&mut self) -> Result<Option<Found>, Refused> {
        let mut at = 0;
        while at < self.candidates.len() {
            let Some(stop) = self.candidates[at].tracee.stop(false) else {
                at += 1;
                continue;
            };
            let since = Instant::now();
            let goes_on = match stop {
                Stop::Gone if self.is_exec() => return Err(Refused::Exec(self.pid)),
                Stop::Gone => false,
                Stop::Exec => {
                    let gone = self.candidates.swap_remove(at);
                    let _ = gone.tracee.detach();
                    return Err(Refused::Exec(self.pid));
                }
                Stop::Asked => self.asked(at).is_ok(),
                Stop::Signal(signal) => self.candidates[at].tracee.go_on(signal).is_ok(),
                Stop::Exit => self.candidates[at].tracee.go_on(0).is_ok(),
                Stop::Entry => {
                    if let Ok(Some((registers, back, room))) = self.at_entry(at) {
                        let Candidate { tracee, .. } = self.candidates.swap_remove(at);
                        return Ok(Some(Found {
                            tracee,
                            registers,
                            back,
                            room,
                            since,
                        }));
                    }
                    self.candidates[at].tracee.go_on(0).is_ok()
                }
            };
            if goes_on {
                at += 1;
            } else {
                self.candidates.swap_remove(at);
            }
        }
        if self.candidates.is_empty() && threads(self.pid).is_empty() {
            return Err(Refused::Ending(self.pid));
        }
        Ok(None)
    }

    /// Whether a thread that is gone has taken the first one's place with another program.
    fn is_exec(&self) -> bool {
        let first = self.pid.cast_signed();
        let is_looked_at = self.candidates.iter().any(|it| it.tracee.tid == first);
        !is_looked_at && Tracee { tid: first }.stop(false) == Some(Stop::Exec)
    }

    fn asked(&mut self, at: usize) -> io::Result<()> {
        let it = &mut self.candidates[at];
        let registers = it.tracee.registers()?;
        let cut = arch::interrupted(&registers).filter(|it| *it != arch::RESTART);
        it.interrupted = cut.or(it.interrupted);
        if let Some(again) = arch::repeated(&registers, &it.before)
            && !has_signal(self.pid, it.tracee.tid)
        {
            it.tracee.set_registers(&again)?;
        }
        it.tracee.go_on(0)
    }

    /// What a thread has that may be given something else to do, what it comes back with, and the room on its stack.
    fn at_entry(&mut self, at: usize) -> io::Result<Option<(Registers, Registers, Range<u64>)>> {
        let it = &mut self.candidates[at];
        let registers = it.tracee.registers()?;
        let mut number = arch::number(&registers);
        if number == arch::RESTART {
            let Some(cut) = it.interrupted else {
                return Ok(None);
            };
            if arch::waits_anew(cut, &registers) && !self.may_wait_anew {
                return Ok(None);
            }
            number = cut;
        }
        it.interrupted = None;
        let is_waiting = arch::WAITING.contains(&number);
        if !is_waiting && !arch::HARMLESS.contains(&number)
            || arch::places(&registers).any(|it| self.locks.contain(it))
        {
            self.passed = format!("one was in system call {number}");
            return Ok(None);
        }
        let pointer = arch::stack(&registers);
        // A thread stands still here: what was read before will do, but for threads that are new, and for a stack that may have grown.
        let known = stack(self.maps, pointer);
        let is_near = |it: &Range<u64>| pointer.saturating_sub(it.start) < ROOM;
        let found = match known {
            Some(known) if !is_near(&known) => Some(known),
            known => maps(self.pid).map_or(known, |it| stack(&it, pointer)),
        };
        let Some(stack) = found else {
            "one was on a stack of its own making".clone_into(&mut self.passed);
            return Ok(None);
        };
        let above = pointer..stack.end.min(pointer + DEEPEST) & !7;
        if is_waiting && self.locks.are_on(above, self.memory)? {
            "one may have been inside the allocator or the loader".clone_into(&mut self.passed);
            return Ok(None);
        }
        let now = settle(&it.tracee)?;
        let back = arch::back(&registers, number, &now);
        Ok(Some((now, back, stack.start..pointer)))
    }

    /// The letters by which the kernel names what the threads do.
    fn states(&self) -> Vec<String> {
        let tids = threads(self.pid).into_iter();
        let stats = tids.filter_map(|tid| {
            fs::read_to_string(format!("/proc/{}/task/{tid}/stat", self.pid)).ok()
        });
        let states = stats.filter_map(|stat| Some(stat.rsplit_once(") ")?.1.get(..1)?.to_owned()));
        states.collect()
    }

    fn all_sleep(&self) -> bool {
        self.states().iter().all(|it| it == "S")
    }

    /// Ticks of processor time that the process has had.
    fn ran(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        let used = fields.split(' ').skip(11).take(2);
        used.filter_map(|it| it.parse::<u64>().ok()).sum()
    }

    /// For how long its threads and the one that looks at them have waited for a core.
    fn waited(&self) -> Duration {
        let threads = threads(self.pid).into_iter();
        let theirs = threads.map(|tid| format!("{}/task/{tid}", self.pid));
        let told = theirs.chain(["thread-self".to_owned()]).filter_map(|it| {
            let text = fs::read_to_string(format!("/proc/{it}/schedstat")).ok()?;
            text.split(' ').nth(1)?.parse::<u64>().ok()
        });
        Duration::from_nanos(told.sum())
    }

    /// Whether a thread waits for a core, of which the process has had next to nothing since it `ran` so long.
    fn is_starved(&self, ran: u64) -> bool {
        let is_ready = self.states().iter().any(|it| it == "R");
        is_ready && self.ran().saturating_sub(ran) < TICKS
    }

    fn say_what_they_do(&mut self, ran: u64) {
        let states = self.states();
        if !states.is_empty() && states.iter().all(|it| it == "D") {
            "all wait for a device or a disk".clone_into(&mut self.passed);
        } else if self.is_starved(ran) {
            "they got next to nothing of a core".clone_into(&mut self.passed);
        }
    }
}

/// Has a thread's call end at once, where the registers can be seen only then. Each stop takes back what asks for the next.
fn settle(tracee: &Tracee) -> io::Result<Registers> {
    let (mut stop, begun) = (Some(Stop::Entry), Instant::now());
    while !arch::AT_ENTRY && stop != Some(Stop::Asked) && begun.elapsed() < SECOND_LOOK {
        if stop.is_some() {
            tracee.interrupt()?;
            tracee.go_on(0)?;
        }
        std::thread::sleep(PAUSE);
        stop = tracee.stop(false);
    }
    tracee.registers()
}

/// What the kernel says of a thread's system call: number, arguments, stack pointer and place.
fn call(pid: u32, tid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap_or_default()
}

/// Threads that wait for another come first: nobody misses them. Those that the kernel ends waiting for when they are
/// stopped come last.
fn order(call: &str) -> u32 {
    let number: Option<i64> = call.split(' ').next().and_then(|it| it.parse().ok());
    match number {
        Some(libc::SYS_futex) => 0,
        // It runs.
        None => 1,
        Some(number) if arch::CUT_SHORT.contains(&number) => 4,
        Some(number) if arch::HARMLESS.contains(&number) => 2,
        Some(_) => 3,
    }
}

/// Whether a signal waits to be delivered to a thread.
fn has_signal(pid: u32, tid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let set = |name| u64::from_str_radix(crate::process::field(&status, name), 16).unwrap_or(0);
    (set("SigPnd") | set("ShdPnd")) & !set("SigBlk") != 0
}

/// The mapping of the stack that this pointer is of: the main thread's, or one with a page below it that nobody may touch. Others
/// (coroutines, Go) may have something else below.
fn stack(maps: &[Mapping], pointer: u64) -> Option<Range<u64>> {
    let at = maps.iter().position(|it| it.range.contains(&pointer))?;
    let it = &maps[at];
    let is_guarded = at
        .checked_sub(1)
        .map(|below| &maps[below])
        .is_some_and(|below| below.range.end == it.range.start && below.rights.starts_with("---"));
    let is_stack = it.rights.starts_with("rw") && (it.path == "[stack]" || is_guarded);
    is_stack.then(|| it.range.clone())
}

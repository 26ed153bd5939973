//! A process at a look, and what several looks at it show.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, sched_yield};
use rustix::time::ClockId;

use super::interpreter::Interpreter;
use super::native::{DEEPEST, Libraries, Native};
use super::{Doing, STILL, ThreadSeen, is_on};
use crate::clock;
use crate::python;
use crate::rights::{Stat, numbers, threads, told};
use activity::Frame;

/// Threads of a process that are looked at, the main one and those of Python first.
const MOST: usize = 256;
/// The kernel's ticks a second (`USER_HZ`) on x86-64 and aarch64.
const TICKS: f64 = 100.0;
/// Between two looks at Python's lines: these take some 0.5 ms.
const GLANCE: Duration = Duration::from_millis(15);

/// A thread at a look.
#[derive(Clone, Debug, Default)]
struct At {
    state: char,
    /// When it was looked at, in ms.
    seen: f64,
    /// The processor that it ran on last.
    processor: usize,
    /// When it last ran, in ms of that one's clock; nothing where the kernel does not tell.
    ran: Option<f64>,
    /// For how long it has run, in ms.
    spent: Option<f64>,
    /// The system call that it is in, its stack pointer and its place; nothing while it runs.
    call: Option<Call>,
    python: Vec<Frame>,
    /// The main thread's stack while it runs.
    stack: Vec<u8>,
}

/// What a thread has asked of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) number: i64,
    pub(super) first: u64,
    pointer: u64,
    place: u64,
}

/// The part of its time that a thread runs at most which sleeps but for moments: to look for workers takes less than a step.
const MOMENTS: f64 = 0.001;

impl At {
    /// Whether it sleeps where it slept at an earlier look, in the same wait. Python's lines are looked at between, others' are not.
    fn is_back_at(&self, earlier: &At) -> bool {
        let place = |it: &At| it.call.map(|it| (it.number, it.place));
        let sleeps = self.state == 'S' && earlier.state == 'S';
        sleeps
            && place(self).is_some()
            && place(self) == place(earlier)
            && self.python == earlier.python
            && !self.python.is_empty()
    }

    /// For how long it has slept but for moments since an earlier look; nothing where it ran for longer.
    fn slept(&self, since: &At) -> Option<Duration> {
        let long = self.seen - since.seen;
        let is_brief = self.spent? - since.spent? <= long * MOMENTS;
        is_brief.then(|| Duration::from_secs_f64(long.max(0.0) / 1e3))
    }
}

/// A thread as it was at all looks.
#[derive(Debug, Default)]
struct Thread {
    name: String,
    looks: Vec<At>,
    /// The first look since which it has been back in the same wait at each one, whatever woke it.
    first: At,
    /// Whether it was at another line between two looks.
    has_moved: bool,
}

impl Thread {
    fn keep(&mut self, at: At) {
        let is_back = self.looks.last().is_some_and(|it| at.is_back_at(it));
        if self.has_moved || !is_back || at.slept(&self.first).is_none() {
            self.first = at.clone();
        }
        self.looks.push(at);
    }
}

/// A process that is looked at.
pub(super) struct Watched {
    pid: u32,
    interpreter: Option<Interpreter>,
    native: Option<Native>,
    threads: BTreeMap<u32, Thread>,
    /// Numbers of its threads within its own process namespace, where that is another.
    inner: BTreeMap<u32, u32>,
    /// Processor time and bytes read and written, with those of its helpers, at each look.
    spent: Vec<(Instant, u64, u64)>,
    pub(super) helpers: Vec<u32>,
    /// Why its stacks cannot be read.
    pub(super) lacks: Option<String>,
}

impl Watched {
    /// Opens a process for reading. What may not be read is said in `lacks`.
    pub(super) fn open(pid: u32, libraries: &Libraries) -> Watched {
        let native = Native::open(pid, libraries);
        let mut lacks = native.as_ref().err().map(io::Error::to_string);
        let interpreter = python::has_python(pid).then(|| Interpreter::open(pid));
        let interpreter = interpreter.and_then(|it| it.map_err(|why| lacks = Some(why)).ok());
        Watched {
            pid,
            interpreter,
            native: native.ok(),
            threads: BTreeMap::new(),
            inner: BTreeMap::new(),
            spent: Vec::new(),
            helpers: Vec::new(),
            lacks,
        }
    }

    /// Looks once: at all threads, or at those alone that tell how the program is.
    pub(super) fn observe(&mut self, all: bool) {
        let tids = match self.threads.is_empty() {
            true => self.tids(),
            false => self.threads.keys().copied().collect(),
        };
        let mut pythons = self.pythons();
        for tid in tids {
            let python = pythons.remove(&tid).unwrap_or_default();
            let is_telling = tid == self.pid || !python.is_empty() || self.interpreter.is_none();
            if all || is_telling {
                let (name, mut at) = self.at(tid);
                at.python = python;
                let thread = self.threads.entry(tid).or_default();
                thread.name = name;
                thread.keep(at);
            }
        }
        let mine = std::iter::once(self.pid).chain(self.helpers.iter().copied());
        let all = mine
            .map(spent)
            .fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        self.spent.push((Instant::now(), all.0, all.1));
    }

    /// Looks at Python's lines alone, many times until then: a program that waits for its GPU in each step is elsewhere for moments.
    pub(super) fn glance(&mut self, until: Instant, stopped: &Receiver<()>) {
        while Instant::now() < until {
            for (tid, python) in self.pythons() {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    let last = thread.looks.last();
                    thread.has_moved |= last.is_some_and(|it| it.python != python);
                }
            }
            let pause = if self.interpreter.is_some() {
                GLANCE
            } else {
                until.saturating_duration_since(Instant::now())
            };
            let pause = pause.min(until.saturating_duration_since(Instant::now()));
            if !is_on(stopped, pause) {
                return;
            }
        }
    }

    /// Keeps of each thread the last look alone, to which the next ones are held.
    pub(super) fn begin_anew(&mut self) {
        for thread in self.threads.values_mut() {
            thread.looks.drain(..thread.looks.len().saturating_sub(1));
            thread.has_moved = false;
        }
        self.spent.drain(..self.spent.len().saturating_sub(1));
    }

    fn tids(&mut self) -> Vec<u32> {
        let tids: Vec<u32> = threads(self.pid).take(MOST).collect();
        for &tid in &tids {
            let status = told(format!("{}/task/{tid}", self.pid), "status");
            if let [_, .., inner] = numbers(&status, "NSpid")[..] {
                self.inner.insert(inner, tid);
            }
        }
        tids
    }

    /// The frames of Python's threads, innermost first.
    fn pythons(&mut self) -> BTreeMap<u32, Vec<Frame>> {
        let told = self.interpreter.as_ref().map(Interpreter::threads);
        let traces = told.unwrap_or(Ok(Vec::new())).unwrap_or_else(|why| {
            (self.interpreter, self.lacks) = (None, Some(why));
            Vec::new()
        });
        let of = |it: py_spy::StackTrace| {
            let is_main = it.thread_name.as_deref() == Some("MainThread");
            let own = it.os_thread_id.and_then(|id| u32::try_from(id).ok());
            let tid = match is_main {
                true => self.pid,
                false => self.inner.get(&own?).copied().or(own)?,
            };
            Some((tid, it.frames.iter().map(python::frame_of).collect()))
        };
        traces.into_iter().filter_map(of).collect()
    }

    fn at(&self, tid: u32) -> (String, At) {
        let read = |name: &str| told(format!("{}/task/{tid}", self.pid), name);
        let (stat, sched) = (read("stat"), read("sched"));
        let (head, rest) = stat.rsplit_once(')').unwrap_or_default();
        let name = head.split_once('(').map_or("", |it| it.1).to_owned();
        let call = call(&read("syscall"));
        let is_main = tid == self.pid;
        let stack = self.native.as_ref().filter(|_| is_main && call.is_none());
        let at = At {
            state: rest.trim_start().chars().next().unwrap_or('X'),
            seen: clock::read(ClockId::Monotonic).as_secs_f64() * 1e3,
            processor: processor(rest).unwrap_or(usize::MAX),
            ran: in_sched(&sched, "se.exec_start"),
            spent: in_sched(&sched, "se.sum_exec_runtime"),
            call,
            python: Vec::new(),
            stack: stack.map_or_else(Vec::new, |it| it.bytes(top(&it.stack))),
        };
        (name, at)
    }

    /// What the looks show of each thread.
    pub(super) fn seen(&self) -> Vec<ThreadSeen> {
        let (mut clocks, threads) = (BTreeMap::new(), self.threads.iter());
        let of = |(tid, it): (&u32, &Thread)| {
            let at = it.looks.last().map_or(usize::MAX, |it| it.processor);
            let now = *clocks.entry(at).or_insert_with(|| now(at));
            self.thread(*tid, it, now)
        };
        let mut all: Vec<ThreadSeen> = threads.map(of).collect();
        all.sort_by_key(|it| (it.tid != self.pid, it.python.is_empty(), it.tid));
        all
    }

    fn thread(&self, tid: u32, thread: &Thread, now: Option<f64>) -> ThreadSeen {
        let last = thread.looks.last().cloned().unwrap_or_default();
        let native = self.native.as_ref().and_then(|native| match last.call {
            Some(call) => {
                let end = call.pointer.saturating_add(DEEPEST as u64);
                native.function(call.place, &native.bytes(call.pointer..end))
            }
            None => native.function(0, unchanged(&thread.looks)),
        });
        ThreadSeen {
            tid,
            name: thread.name.clone(),
            is_main: tid == self.pid,
            doing: match thread.has_moved {
                true => Doing::Moves,
                false => doing(&thread.looks, &thread.first, now),
            },
            native,
            call: last.call.map(|it| (it.number, it.first)),
            python: last.python,
        }
    }

    /// The share of a processor that it and its helpers used, and what they read and wrote, in bytes.
    pub(super) fn work(&self) -> (f64, u64) {
        let [first, .., last] = &self.spent[..] else {
            return (0.0, 0);
        };
        let ticks = last.1.saturating_sub(first.1) as f64;
        let seconds = (last.0 - first.0).as_secs_f64().max(1e-3);
        (ticks / TICKS / seconds, last.2.saturating_sub(first.2))
    }
}

/// What is read of a stack, its end.
fn top(stack: &std::ops::Range<u64>) -> std::ops::Range<u64> {
    stack.start.max(stack.end.saturating_sub(1 << 20))..stack.end
}

/// Of the stack of a thread that runs at all looks: what lies above the highest word that changed. What runs there changes words of
/// its own, so all above is of those who called it.
fn unchanged(looks: &[At]) -> &[u8] {
    let Some(last) = looks.last().filter(|_| looks.len() > 1) else {
        return &[];
    };
    let changed = looks.windows(2).filter_map(|two| {
        let (a, b) = (&two[0].stack, &two[1].stack);
        let pairs = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
        let at = pairs.rev().position(|(a, b)| a != b);
        (a.len() == b.len()).then_some(at?)
    });
    let above = changed.min().unwrap_or(0) * 8;
    &last.stack[last.stack.len().saturating_sub(above.min(DEEPEST))..]
}

fn doing(looks: &[At], first: &At, now: Option<f64>) -> Doing {
    let Some(last) = looks.last() else {
        return Doing::Moves;
    };
    let same = |is: fn(&At, &At) -> bool| looks.windows(2).all(|two| is(&two[0], &two[1]));
    if looks.iter().all(|it| matches!(it.state, 'T' | 't')) {
        return Doing::Stopped;
    }
    let has_not_run = same(|a, b| a.ran.is_some() && a.ran == b.ran);
    let is_same_call = same(|a, b| a.call.is_some() && a.call == b.call);
    let long = last.ran.filter(|ran| has_not_run && *ran > 0.0).zip(now);
    let long = long.map(|(ran, now)| Duration::from_secs_f64((now - ran).max(0.0) / 1e3));
    if looks.iter().all(|it| it.state == 'D') && is_same_call {
        return Doing::InDevice(long);
    }
    let slept = last.slept(first).filter(|_| last.is_back_at(first));
    // One long sleep proves more than several short ones.
    let is_woken = slept.is_some() && first.ran != last.ran && long.is_none_or(|it| it < STILL);
    let sleeps = looks.iter().all(|it| it.state == 'S') && is_same_call;
    if sleeps && (has_not_run || last.ran.is_none()) && !is_woken {
        return Doing::Asleep(long);
    }
    match same(|a, b| a.python == b.python)
        && (!last.python.is_empty() || looks.len() == 1 || is_same_call)
    {
        true => Doing::Stays(slept),
        false => Doing::Moves,
    }
}

/// `number arguments sp pc` of `/proc/PID/task/T/syscall`, "-1 sp pc" outside of calls; nothing of one that runs.
fn call(text: &str) -> Option<Call> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (place, pointer) = (hex(words.last()?)?, hex(words.iter().rev().nth(1)?)?);
    Some(Call {
        number: words.first()?.parse().ok()?,
        first: words
            .get(1)
            .filter(|_| words.len() > 3)
            .and_then(|it| hex(it))
            .unwrap_or(0),
        pointer,
        place,
    })
}

/// A time of `/proc/PID/task/T/sched`, in ms.
fn in_sched(sched: &str, name: &str) -> Option<f64> {
    let line = sched.lines().find_map(|it| it.strip_prefix(name))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

/// The processor of a thread, in what follows its name in `/proc/PID/task/T/stat`.
fn processor(stat: &str) -> Option<usize> {
    stat.split_ascii_whitespace().nth(36)?.parse().ok()
}

/// The scheduler's clock of a processor: each has its own, and those of a virtual machine were 11 s apart. A thread that has just come to
/// it has it.
fn now(processor: usize) -> Option<f64> {
    let mut there = CpuSet::new();
    if processor >= CpuSet::MAX_CPU {
        return None;
    }
    there.set(processor);
    let before = sched_getaffinity(None).ok()?;
    sched_setaffinity(None, &there).ok()?;
    sched_yield();
    let now = in_sched(&told("thread-self", "sched"), "se.exec_start");
    // It was allowed before.
    let _ = sched_setaffinity(None, &before);
    now
}

/// A process's time on processors, in ticks, and bytes that it read and wrote.
fn spent(pid: u32) -> (u64, u64) {
    let (stat, io) = (Stat::of(pid), told(pid, "io"));
    let bytes = io
        .lines()
        .filter_map(|it| it.strip_prefix("rchar: ").or(it.strip_prefix("wchar: ")));
    (
        stat.map_or(0, |it| it.ran),
        bytes.filter_map(|it| it.parse::<u64>().ok()).sum(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(state: char, ran: f64, call: Option<&str>) -> At {
        At {
            state,
            ran: Some(ran),
            call: call.and_then(super::call),
            ..At::default()
        }
    }

    /// Lines as Linux 6.8 writes them.
    #[test]
    fn what_proc_says_of_a_thread_is_read() {
        let futex = "202 0x7f10 0x189 0x0 0x0 0x0 0xffffffff 0x7ffc00001000 0x7f2200000100\n";
        let found = call(futex).expect("a call");
        assert_eq!((found.number, found.first), (202, 0x7f10));
        assert_eq!(
            (found.pointer, found.place),
            (0x7ffc_0000_1000, 0x7f22_0000_0100)
        );
        assert_eq!(
            call("-1 0x7ffc00001000 0x7f2200000100").map(|it| it.number),
            Some(-1)
        );
        assert_eq!(
            (call("running\n"), call(""), call("x y z")),
            (None, None, None)
        );
        let sched = "python (7, #threads: 3)\n---\nse.exec_start      :   12232424.786032\nse.vruntime : 1\n";
        assert_eq!(in_sched(sched, "se.exec_start"), Some(12_232_424.786_032));
        assert_eq!(in_sched("nothing", "se.exec_start"), None);
    }

    #[test]
    fn a_thread_sleeps_stays_or_moves() {
        const READ: &str = "0 0x5 0x1 0x2 0x3 0x4 0x5 0x7ff0 0x1000";
        const OTHER: &str = "0 0x5 0x1 0x2 0x3 0x4 0x5 0x7fe0 0x1000";
        let five = |it: &At| vec![it.clone(); 5];
        let doing = |looks: &[At], now| doing(looks, &looks[0], now);
        let asleep = five(&at('S', 1_000.0, Some(READ)));
        assert_eq!(
            doing(&asleep, Some(13_000.0)),
            Doing::Asleep(Some(Duration::from_secs(12)))
        );
        let mut woken = asleep.clone();
        woken[3].ran = Some(1_500.0);
        assert_eq!(doing(&woken, Some(13_000.0)), Doing::Stays(None));
        let mut elsewhere = asleep;
        elsewhere[3] = at('S', 1_500.0, Some(OTHER));
        assert_eq!(doing(&elsewhere, Some(13_000.0)), Doing::Moves);
        // A kernel whose scheduler tells nothing, or sets the time back when it moves a thread.
        let untold = At {
            ran: None,
            ..at('S', 0.0, Some(READ))
        };
        assert_eq!(doing(&five(&untold), Some(9e3)), Doing::Asleep(None));
        assert_eq!(
            doing(&five(&at('S', 0.0, Some(READ))), Some(9e3)),
            Doing::Asleep(None)
        );
        assert_eq!(
            doing(&five(&at('D', 1_000.0, Some(READ))), Some(3e3)),
            Doing::InDevice(Some(Duration::from_secs(2)))
        );
        assert_eq!(
            doing(&five(&at('T', 1_000.0, Some(READ))), Some(3e3)),
            Doing::Stopped
        );
        // One that runs without Python is not known to stay.
        assert_eq!(
            doing(&five(&at('R', 1_000.0, None)), Some(3e3)),
            Doing::Moves
        );
        let line = |line| {
            vec![Frame {
                line,
                ..Frame::default()
            }]
        };
        let spins = At {
            python: line(9),
            ..at('R', 1_000.0, None)
        };
        assert_eq!(doing(&five(&spins), Some(3e3)), Doing::Stays(None));
        let mut goes_on = five(&spins);
        goes_on[4].python = line(10);
        assert_eq!(doing(&goes_on, Some(3e3)), Doing::Moves);
    }

    /// PyTorch's loader waits for a batch 5 s long, looks for its workers and waits again. Its twin takes batches meanwhile, each of which
    /// takes more of a processor.
    #[test]
    fn who_comes_back_to_the_same_wait_again_and_again_has_not_gone_on() {
        const POLL: &str = "7 0x7f01 0x1 0x1388 0x0 0x0 0x0 0x7ff0 0x1000";
        const READ: &str = "0 0x5 0x1 0x2 0x3 0x4 0x5 0x7ff0 0x1000";
        let after = |spent: f64, call| {
            let mut thread = Thread::default();
            // Woken at 5, 10, 15 and 20 s, and looked at each 350 ms from 6 s on.
            for look in 0..42 {
                let wakes = ((6_000.0 + 350.0 * f64::from(look)) / 5_000.0_f64).floor();
                let call = if look == 20 { call } else { POLL };
                thread.keep(At {
                    seen: 6_000.0 + 350.0 * f64::from(look),
                    spent: Some(wakes * spent),
                    python: vec![Frame::default()],
                    ..at('S', wakes * 5_000.0, Some(call))
                });
            }
            thread.looks.drain(..37);
            doing(&thread.looks, &thread.first, Some(20_400.0))
        };
        let stays = |ms| Doing::Stays(Some(Duration::from_millis(ms)));
        assert_eq!(after(0.2, POLL), stays(14_350));
        assert_eq!(after(6.0, POLL), stays(350));
        // At one look it took a message: it is known to be back from the next one on.
        assert_eq!(after(0.2, READ), stays(7_000));
    }

    /// On whichever processor a program sleeps, it has not slept for longer than it is there.
    #[test]
    fn nobody_has_slept_for_longer_than_he_lives() {
        let all = sched_getaffinity(None).expect("its own");
        for processor in (0..CpuSet::MAX_CPU).filter(|it| all.is_set(*it)) {
            let mut there = CpuSet::new();
            there.set(processor);
            sched_setaffinity(None, &there).expect("allowed");
            let begun = Instant::now();
            let mut child = std::process::Command::new("sleep").arg("60").spawn();
            let child = child.as_mut().expect("starts");
            sched_setaffinity(None, &all).expect("allowed");
            while !told(child.id(), "stat").contains(") S ") {
                std::thread::yield_now();
            }
            let stat = told(child.id(), "stat");
            let at = super::processor(stat.rsplit_once(')').expect("a name").1);
            let ran = in_sched(&told(child.id(), "sched"), "se.exec_start");
            // Where the kernel does not tell, nothing is said.
            if let Some((now, ran)) = at.and_then(now).zip(ran) {
                let lived = begun.elapsed().as_secs_f64() * 1e3;
                assert!(
                    now - ran <= lived + 20.0,
                    "{processor}: {now} {ran} {lived}"
                );
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    #[test]
    fn callers_lie_above_the_highest_word_that_changed() {
        let look = |words: [u64; 4]| At {
            stack: words.iter().flat_map(|it| it.to_le_bytes()).collect(),
            ..At::default()
        };
        let bytes = |words: &[u64]| {
            words
                .iter()
                .flat_map(|it| it.to_le_bytes())
                .collect::<Vec<_>>()
        };
        let looks = [look([1, 2, 7, 8]), look([1, 3, 7, 8]), look([9, 3, 7, 8])];
        assert_eq!(unchanged(&looks), bytes(&[7, 8]));
        // Nothing changed: nothing is known of where it is.
        assert!(unchanged(&[look([1, 2, 3, 4]), look([1, 2, 3, 4])]).is_empty());
        assert!(unchanged(&looks[..1]).is_empty());
    }
}

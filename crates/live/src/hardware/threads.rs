//! The launching threads of one process: on a core, waiting for one, or asleep.

use std::collections::BTreeMap;
use std::path::PathBuf;

use recording::file::Clocks;

use super::cgroup::Group;
use activity::{Ns, OffCpu, Span, ThreadWindow};

/// Threads of a process that are looked at. A launching thread beyond is left out, which is said.
const MOST: usize = 64;

/// What the scheduler has counted of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadTimes {
    running: Ns,
    waiting: Ns,
    slices: u64,
}

/// A process whose threads are looked at.
pub(super) struct ProcessThreads {
    pid: u32,
    threads: BTreeMap<u32, Option<(Ns, ThreadTimes)>>,
    group: Group,
    left_out: bool,
    said: Vec<OffCpu>,
    has_told_lack: bool,
}

impl ProcessThreads {
    pub(super) fn new(pid: u32) -> ProcessThreads {
        ProcessThreads {
            pid,
            threads: BTreeMap::new(),
            group: Group::of(pid),
            left_out: false,
            said: Vec::new(),
            has_told_lack: false,
        }
    }

    /// Looks at a thread too.
    pub(super) fn watch(&mut self, thread: u32) {
        if self.threads.contains_key(&thread) {
            return;
        }
        if self.threads.len() < MOST {
            self.threads.insert(thread, None);
        } else if !std::mem::replace(&mut self.left_out, true) {
            self.said.push(OffCpu::Note(format!(
                "process {}: only the first {MOST} threads that launched are looked at for what they did off the processor",
                self.pid
            )));
        }
    }

    /// A look at all of them.
    pub(super) fn read(&mut self) -> Vec<OffCpu> {
        let mut said = std::mem::take(&mut self.said);
        for (&thread, before) in &mut self.threads {
            let path: PathBuf = format!("/proc/{}/task/{thread}/schedstat", self.pid).into();
            let Ok(text) = std::fs::read_to_string(&path) else {
                // Ended; or its id is of another process namespace, as a container's.
                *before = None;
                continue;
            };
            let Some(counted) = parse(&text) else {
                if !std::mem::replace(&mut self.has_told_lack, true) {
                    said.push(OffCpu::Note(format!(
                        "process {}: this kernel does not count how long threads wait for a core (schedstat)",
                        self.pid
                    )));
                }
                continue;
            };
            let now = Clocks::now().realtime;
            if let Some((then, was)) = before.replace((now, counted))
                && let Some(window) = window(thread, Span::new(then, now), was, counted)
            {
                said.push(OffCpu::Thread(window));
            }
        }
        said.extend(self.group.read().map(OffCpu::Group));
        said
    }
}

/// What was counted between two looks. `None` where time stood still, or the id is another thread's by now.
fn window(thread: u32, span: Span, was: ThreadTimes, is: ThreadTimes) -> Option<ThreadWindow> {
    if span.is_empty() || is.running < was.running || is.waiting < was.waiting {
        return None;
    }
    // The counters are brought up to date when the scheduler looks, some milliseconds late: what is more than the
    // window belongs to the one before.
    let running = (is.running - was.running).min(span.len());
    let waiting = (is.waiting - was.waiting).min(span.len() - running);
    Some(ThreadWindow {
        thread,
        span,
        running,
        waiting,
    })
}

/// `<ns on a core> <ns waiting for one> <slices>` (Documentation/scheduler/sched-stats.rst). `None` when the kernel
/// leaves them at zero.
fn parse(text: &str) -> Option<ThreadTimes> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (running, waiting, slices) = (next()?, next()?, next()?);
    let counted = ThreadTimes {
        running: Ns::try_from(running).ok()?,
        waiting: Ns::try_from(waiting).ok()?,
        slices,
    };
    (counted.slices > 0 || counted.running > 0).then_some(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scheduler_counts_becomes_windows() {
        let (was, is) = (parse("1000 50 3\n"), parse("61000 30050 4\n"));
        let (was, is) = (was.expect("counted"), is.expect("counted"));
        let span = Span::new(0, 100_000);
        let found = window(7, span, was, is).expect("a window");
        assert_eq!((found.running, found.waiting), (60_000, 30_000));
        // Never more than the window has.
        let found = window(7, Span::new(0, 70_000), was, is).expect("a window");
        assert_eq!((found.running, found.waiting), (60_000, 10_000));
        assert_eq!(window(7, span, is, was), None);
        assert_eq!(parse("0 0 0"), None);
        assert_eq!(parse("1 2"), None);
    }

    #[test]
    fn a_thread_that_works_runs_and_one_that_sleeps_does_not() {
        let own = std::process::id();
        let Ok(text) = std::fs::read_to_string("/proc/thread-self/schedstat") else {
            return;
        };
        if parse(&text).is_none() {
            return;
        }
        let thread = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        let mut process = ProcessThreads::new(own);
        process.watch(thread);
        let look = |process: &mut ProcessThreads| {
            process.read().into_iter().find_map(|it| match it {
                OffCpu::Thread(window) => Some(window),
                _ => None,
            })
        };
        // The kernel's other count of the same: however loaded the machine is, or however often it stands still as a whole.
        let on_a_core = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            time.tv_sec * 1_000_000_000 + time.tv_nsec
        };
        // Sleeping makes the scheduler bring its counters up to date.
        let sleep = || std::thread::sleep(std::time::Duration::from_millis(5));
        sleep();
        let before = on_a_core();
        assert_eq!(look(&mut process), None);
        // The look itself works too, and its counters may have been read before or after that.
        let start = on_a_core();
        while on_a_core() < start + 60_000_000 {}
        sleep();
        let busy = look(&mut process).expect("a window");
        let after = on_a_core();
        assert!(busy.running >= 60_000_000, "{busy:?}");
        // What ran since the counters were last brought up to date, before the first look, is in the window too.
        assert!(busy.running <= after - before + 5_000_000, "{busy:?}");
        sleep();
        let asleep = look(&mut process).expect("a window");
        assert!(
            asleep.running <= on_a_core() - after + 5_000_000,
            "{asleep:?}"
        );
    }
}

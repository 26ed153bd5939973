//! What the looks at a job say of the whole: it moves, it waits for requests, some wait for others, or nothing moves at all.
//!
//! A rank waits where the thread that leads it stays in a call of CUDA or NCCL, or in PyTorch's collectives. Ranks that do not wait
//! while others do are those that are waited for. That nothing moves is said of what is proved: threads that have not run for long,
//! processes that are stopped or gone.

use std::time::Duration;

use super::{Doing, Job, Life, Process, ThreadSeen};

#[cfg(test)]
mod tests;

/// Threads that have not run for this long stand still, where no GPU works.
pub const STILL: Duration = Duration::from_secs(5);
/// The same where a GPU is busy, and for threads that were only seen at one place: a step may take as long.
pub const LONG: Duration = Duration::from_secs(30);
/// A GPU that is this busy, in percent, works.
const BUSY: u32 = 10;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Something in it goes on.
    Moves,
    /// Nobody has asked it for anything.
    WaitsForRequests,
    /// Some ranks wait, and who they wait for works, or has not stood still for long.
    WaitsForRanks,
    /// Each thread that tells was at one place, which proves nothing yet.
    SamePlace,
    /// It stands still.
    Still,
}

/// What the looks say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub state: State,
    /// For how long nothing has moved, as far as it is proved.
    pub since: Option<Duration>,
    /// The ranks that others wait for, by their place among the job's.
    pub behind: Vec<usize>,
    /// Those that wait.
    pub waiting: Vec<usize>,
}

impl State {
    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            State::Moves => "moves",
            State::WaitsForRequests => "waits-for-requests",
            State::WaitsForRanks => "waits-for-ranks",
            State::SamePlace => "same-place",
            State::Still => "still",
        }
    }
}

impl Job {
    /// What the looks say of it.
    pub fn verdict(&self) -> Verdict {
        let at = |is: &dyn Fn(&Process) -> bool| -> Vec<usize> {
            (0..self.ranks.len())
                .filter(|it| is(&self.ranks[*it]))
                .collect()
        };
        let verdict = |state, since, behind: &[usize], waiting: &[usize]| Verdict {
            state,
            since,
            behind: behind.to_vec(),
            waiting: waiting.to_vec(),
        };
        let held = at(&|it| it.life != Life::Lives);
        let waiting = at(&|it| it.life == Life::Lives && it.waits());
        let went_on = at(&Process::has_waited);
        let others = at(&|it| it.life == Life::Lives && !it.waits() && !it.has_waited());
        let stand = went_on.is_empty() && others.iter().all(|it| !self.ranks[*it].moves());
        if !held.is_empty() && stand {
            return verdict(State::Still, None, &held, &waiting);
        }
        if waiting.is_empty() {
            let (state, since) = self.of_none_that_waits();
            return verdict(state, since, &[], &[]);
        }
        if others.is_empty() {
            let slept = at(&|_| true).into_iter().map(|it| self.ranks[it].asleep());
            let (since, least) = (least(slept), if self.is_busy() { LONG } else { STILL });
            let long = since
                .filter(|it| *it >= least)
                .or(Some(self.looked).filter(|it| *it >= LONG));
            return match long {
                _ if !went_on.is_empty() || self.ranks.iter().any(|it| it.works) => {
                    verdict(State::Moves, None, &[], &waiting)
                }
                Some(_) => verdict(State::Still, long, &[], &waiting),
                None => verdict(State::SamePlace, since, &[], &waiting),
            };
        }
        if others.iter().all(|it| self.ranks[*it].takes_requests()) && !self.is_busy() {
            return verdict(State::WaitsForRequests, None, &[], &waiting);
        }
        let proved = others.iter().map(|it| self.ranks[*it].stands());
        match least(proved).filter(|it| *it >= STILL) {
            Some(since) => verdict(State::Still, Some(since), &others, &waiting),
            None => verdict(State::WaitsForRanks, None, &others, &waiting),
        }
    }

    /// Of a job in which nobody waits for a GPU or a rank.
    fn of_none_that_waits(&self) -> (State, Option<Duration>) {
        let all = |is: fn(&Process) -> bool| self.ranks.iter().all(is);
        let any = |is: fn(&Process) -> bool| self.ranks.iter().any(is);
        let locked = least(self.ranks.iter().map(Process::locked));
        let (state, since) = match locked {
            _ if any(Process::moves) => (State::Moves, None),
            _ if any(Process::takes_requests) && !self.is_busy() => (State::WaitsForRequests, None),
            _ if all(Process::takes_input) && !self.is_busy() => (State::WaitsForRequests, None),
            Some(long) if long >= STILL => (State::Still, locked),
            _ => (
                State::SamePlace,
                least(self.ranks.iter().map(Process::asleep)),
            ),
        };
        (state, since)
    }

    fn is_busy(&self) -> bool {
        self.ranks
            .iter()
            .any(|it| it.gpu.is_some_and(|it| it >= BUSY))
    }
}

/// The least of all, where all are known.
fn least(all: impl Iterator<Item = Option<Duration>>) -> Option<Duration> {
    all.collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// Files of Python's own in which a thread waits for other threads, processes or messages.
const POOLS: &str = "/threading.py /queue.py /selectors.py /subprocess.py /asyncio/ /concurrent/futures/ \
    /multiprocessing/ /socketserver.py";

impl Process {
    /// The thread that tells what the process does: the main one, or where that waits for others one that does not.
    pub fn leading(&self) -> Option<&ThreadSeen> {
        let main = self.threads.iter().find(|it| it.is_main)?;
        if !main.waits_for_threads() {
            return Some(main);
        }
        let pythons = || self.threads.iter().filter(|it| !it.python.is_empty());
        let waits = pythons().find(|it| it.waits());
        waits
            .or_else(|| pythons().find(|it| !it.waits_for_threads()))
            .or(Some(main))
    }

    /// Whether it waits for its GPU or for another rank.
    pub fn waits(&self) -> bool {
        self.leading().is_some_and(ThreadSeen::waits) && !self.works
    }

    /// Whether it went on where it waits: nobody waits for that one.
    fn has_waited(&self) -> bool {
        let goes_on = |it: &ThreadSeen| it.doing == Doing::Moves && it.is_at_wait();
        self.leading().is_some_and(goes_on) && !self.works
    }

    /// The threads that say how it stands.
    fn telling(&self) -> impl Iterator<Item = &ThreadSeen> {
        let all = self.threads.iter();
        all.filter(|it| it.is_main || !it.python.is_empty())
    }

    /// Whether it goes on.
    fn moves(&self) -> bool {
        self.life == Life::Lives
            && (self.works || self.telling().any(|it| it.doing == Doing::Moves))
    }

    /// For how long it has stood still.
    fn stands(&self) -> Option<Duration> {
        match self.life {
            Life::Lives if self.works => None,
            // Who wakes up by a timeout and waits for the same again does not go on.
            _ => match self.leading()?.doing {
                Doing::Stays(long) => long,
                _ => self.asleep(),
            },
        }
    }

    fn asleep(&self) -> Option<Duration> {
        match self.leading()?.doing {
            Doing::Asleep(long) | Doing::InDevice(long) => long,
            _ => None,
        }
    }

    /// For how long all of its threads that tell have waited for locks.
    fn locked(&self) -> Option<Duration> {
        least(self.telling().map(|it| match (it.doing, it.call) {
            (Doing::Asleep(long), Some((libc::SYS_futex, _))) => long,
            _ => None,
        }))
    }

    /// Whether its main thread waits for messages, or for a key.
    fn takes_input(&self) -> bool {
        let asleep = |it: &ThreadSeen| matches!(it.doing, Doing::Asleep(_) | Doing::Stays(_));
        let waits = |it: &ThreadSeen| asleep(it) && it.takes_input();
        !self.works && self.leading().is_some_and(waits)
    }

    /// Whether it waits for somebody who asks it.
    fn takes_requests(&self) -> bool {
        let in_lock = |it: &ThreadSeen| it.call.is_some_and(|it| it.0 == libc::SYS_futex);
        let waits = |it: &ThreadSeen| it.takes_input() || in_lock(it);
        self.listens
            && !self.moves()
            && self.threads.iter().any(ThreadSeen::takes_input)
            && self.leading().is_some_and(waits)
    }
}

/// System calls that wait for messages.
const INPUT: &[i64] = &[
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// System calls in few words.
const CALLS: &[(i64, &str)] = &[
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_recvfrom, "recv"),
    (libc::SYS_recvmsg, "recv"),
    (libc::SYS_sendto, "send"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_ppoll, "poll"),
    (libc::SYS_pselect6, "select"),
    (libc::SYS_epoll_pwait, "epoll"),
    (libc::SYS_futex, "a lock"),
    (libc::SYS_nanosleep, "sleep"),
    (libc::SYS_clock_nanosleep, "sleep"),
    (libc::SYS_wait4, "wait for a process"),
    (libc::SYS_waitid, "wait for a process"),
    (libc::SYS_flock, "a file's lock"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_ioctl, "ioctl"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "poll"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, "select"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, "epoll"),
];

/// Parts of the names of CUDA's functions that may wait for the GPU. Others compile and load, which takes long, too.
const CUDA: [&str; 5] = ["Synchronize", "Memcpy", "Launch", "Malloc", "Free"];

impl ThreadSeen {
    /// Whether it stays in a call that waits for a GPU or a rank.
    pub fn waits(&self) -> bool {
        self.doing != Doing::Moves && self.is_at_wait()
    }

    /// Whether it waits for messages.
    fn takes_input(&self) -> bool {
        self.call.is_some_and(|it| INPUT.contains(&it.0))
    }

    fn is_at_wait(&self) -> bool {
        let collective = |file: &str| file.contains("/torch/distributed/");
        let own = self.python.iter().take_while(|it| !it.is_own());
        let in_python = own.clone().any(|it| {
            collective(&it.file)
                || (it.file.contains("/torch/cuda/") && it.function.ends_with("synchronize"))
        });
        let in_native = self.native.as_deref().is_some_and(|it| {
            let is_cuda = it.starts_with("cu") && CUDA.iter().any(|part| it.contains(part));
            is_cuda
                || ["nccl", "pnccl", "c10d::"]
                    .iter()
                    .any(|by| it.starts_with(by))
        });
        in_python || in_native
    }

    fn waits_for_threads(&self) -> bool {
        let innermost = self.python.first();
        innermost.is_some_and(|it| POOLS.split(' ').any(|part| it.file.contains(part)))
    }

    /// The system call that it waits in, in a word or two.
    pub fn call_word(&self) -> Option<&'static str> {
        let number = self.call?.0;
        CALLS.iter().find(|it| it.0 == number).map(|it| it.1)
    }
}

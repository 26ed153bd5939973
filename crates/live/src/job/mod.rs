//! A job as it stands: what the threads of its ranks on this machine do, for how long, and who waits for whom.
//!
//! ```text
//! members  which processes are ranks of one job
//! threads  a process at some looks: its threads' places, and for how long they have not run
//! interpreter  Python's frames, by a thread of its own
//! native   functions of CUDA, NCCL and PyTorch by their addresses
//! sockets  who listens on which port
//! judge    what the looks say of the whole
//! ras      what NCCL's own service says of collectives
//! watch    looks again and again, for a screen
//! xid      errors of GPUs
//! ```
//!
//! Nothing is entered and nothing stands still for it. Python's frames and return addresses are read from memory, the rest is
//! `/proc`'s.

mod interpreter;
mod judge;
mod members;
mod native;
pub mod ras;
mod sockets;
mod threads;
mod watch;
pub(crate) mod xid;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, never};

use crate::at_once;
use crate::attach::Refused;
use crate::hardware::finder;
use crate::nvml::{self, Nvml};
use activity::Frame;
pub use judge::{LONG, STILL, State, Verdict};
use members::Member;
use native::Libraries;
use threads::Watched;
pub use watch::Watch;
pub use xid::Xid;
use xid::Xids;

/// Looks at each process, and the time in which they lie.
const LOOKS: u32 = 5;
/// The first answer comes after this.
pub const FIRST: Duration = Duration::from_millis(1400);

/// Long enough to tell a thread that sleeps from one that runs.
const MOMENT: Duration = Duration::from_millis(100);

/// A job, as far as it runs on this machine.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// What started it, or the command of its only process.
    pub command: String,
    /// In order of rank, else of process.
    pub ranks: Vec<Process>,
    /// For how long it was looked at.
    pub looked: Duration,
    /// What NCCL's service said, or why it said nothing; nothing before it was asked.
    pub ras: Option<Result<ras::Answer, String>>,
    /// Errors of this machine's GPUs since it is looked at, or why NVML tells none; nothing before that is known.
    pub xids: Option<Result<Vec<Xid>, String>>,
}

/// A rank, or a program of one process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub pid: u32,
    /// Its number within its own process namespace, where that is another.
    pub inner: Option<u32>,
    pub rank: Option<u32>,
    pub life: Life,
    /// The main thread first, then those with Python in them.
    pub threads: Vec<ThreadSeen>,
    /// Whether it, or a process that it started, computes beside the threads that stay where they are, reads or writes.
    pub works: bool,
    /// Whether it, or a process that it started, listens on a port.
    pub listens: bool,
    /// How busy its GPUs are, in percent: the busiest; nothing where NVML does not tell.
    pub gpu: Option<u32>,
    /// Why its stacks cannot be read.
    pub lacks: Option<String>,
}

/// Whether a process is there at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    #[default]
    Lives,
    /// A signal or a debugger holds it.
    Stopped,
    /// It has ended, or a rank of this number was never seen.
    Gone,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadSeen {
    pub tid: u32,
    pub name: String,
    pub is_main: bool,
    /// Innermost first; empty without Python.
    pub python: Vec<Frame>,
    /// The innermost function of CUDA, NCCL or PyTorch that it is likely in.
    pub native: Option<String>,
    /// The system call that it is in, by number, and its first argument; -1 outside of one.
    pub call: Option<(i64, u64)>,
    pub doing: Doing,
}

/// What a thread did while it was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// It was at several places.
    #[default]
    Moves,
    /// It ran or was woken, and was at the same place at each look: for so long it has only slept there but for moments.
    Stays(Option<Duration>),
    /// It has not run for so long, as far as the kernel tells.
    Asleep(Option<Duration>),
    /// The same within a driver or file system, where no signal ends it.
    InDevice(Option<Duration>),
    /// A signal or a debugger holds it.
    Stopped,
}

/// The jobs of this machine: that of a process, or all that use CUDA.
///
/// # Errors
/// When there is no such process, or none that uses CUDA.
pub fn find(pid: Option<u32>) -> Result<Vec<Looked>, Refused> {
    let mut all = open_jobs(pid)?;
    let xids = Xids::watch(Nvml::load).ok().map(Arc::new);
    all.iter_mut().for_each(|it| it.xids.clone_from(&xids));
    Ok(all)
}

fn open_jobs(pid: Option<u32>) -> Result<Vec<Looked>, Refused> {
    let found = members::find(pid)?;
    let libraries = Libraries::default();
    let open = |(command, members): members::Found| Looked {
        command,
        begun: Instant::now(),
        watched: open_all(&members, &libraries),
        members,
        stopped: never(),
        xids: None,
    };
    Ok(found.into_iter().map(open).collect())
}

/// A job that is looked at.
pub struct Looked {
    command: String,
    members: Vec<Member>,
    watched: Vec<Watched>,
    begun: Instant,
    /// Looks end early when its other end is gone.
    stopped: Receiver<()>,
    /// Who watches the GPUs beside it.
    xids: Option<Arc<Xids>>,
}

/// Looks at all of them at once, as [`Looked::observe`] does.
pub fn observe_all(all: &mut [Looked], time: Duration) -> Vec<Job> {
    at_once(all, |it| it.observe(time))
}

/// Waits so long; whether nobody has ended it then.
fn is_on(stopped: &Receiver<()>, time: Duration) -> bool {
    stopped.recv_timeout(time) != Err(RecvTimeoutError::Disconnected)
}

/// Whether the job of a process stands still, as far as a moment's look tells.
pub fn is_still(pid: u32) -> bool {
    open_jobs(Some(pid)).is_ok_and(|mut all| {
        let jobs = observe_all(&mut all, MOMENT);
        jobs.iter().any(|it| it.verdict().state == State::Still)
    })
}

fn open_all(members: &[Member], libraries: &Libraries) -> Vec<Watched> {
    let open = |member: &Member| {
        let mut watched = Watched::open(member.pid, libraries);
        watched.helpers.clone_from(&member.helpers);
        watched
    };
    at_once(members, open)
}

impl Looked {
    /// Looks some times more, spread over this long, and says what all looks show.
    pub fn observe(&mut self, time: Duration) -> Job {
        let pause = time / (LOOKS - 1);
        let stopped = &self.stopped;
        at_once(&mut self.watched, |watched| {
            for look in 0..LOOKS {
                watched.observe(look == 0 || look + 1 == LOOKS);
                if look + 1 < LOOKS {
                    watched.glance(Instant::now() + pause, stopped);
                }
            }
        });
        let gpus = gpus(&self.members);
        let ranks = self.members.iter().zip(&self.watched).zip(gpus);
        let job = Job {
            command: self.command.clone(),
            ranks: ranks
                .map(|((member, watched), gpu)| process(member, watched, gpu))
                .collect(),
            looked: self.begun.elapsed(),
            ras: None,
            xids: self.xids.as_ref().and_then(|it| it.seen()),
        };
        if job.verdict().state == State::Moves {
            // What stands from here on has not stood before.
            self.begun = Instant::now();
        }
        self.watched.iter_mut().for_each(Watched::begin_anew);
        job
    }

    /// Asks NCCL's service once, where that is safe and tells something. It may take 12 s.
    pub fn ask(&self, job: &Job, asking: ras::Asking) -> Result<ras::Answer, String> {
        ras::ask(job, &self.members, asking, &self.stopped)
    }
}

/// More of a processor than what waits uses beside the threads that are known to stay: NCCL's, CUDA's and PyTorch's own poll.
const WORKS: f64 = 0.3;
/// Bytes read and written that are work.
const MOVED: u64 = 4 << 20;

fn process(member: &Member, watched: &Watched, gpu: Option<u32>) -> Process {
    let threads = watched.seen();
    let (processor, bytes) = watched.work();
    let spinning = threads
        .iter()
        .filter(|it| matches!(it.doing, Doing::Stays(_)) && it.call.is_none())
        .count();
    let life = match threads.first().map(|it| it.doing) {
        _ if !member.is_there() => Life::Gone,
        Some(Doing::Stopped) => Life::Stopped,
        _ => Life::Lives,
    };
    let family = || std::iter::once(member.pid).chain(member.helpers.iter().copied());
    Process {
        pid: member.pid,
        inner: member.inner,
        rank: member.rank,
        life,
        works: processor - spinning as f64 > WORKS || bytes > MOVED,
        listens: family().any(|pid| !sockets::listeners(pid).is_empty()),
        gpu,
        lacks: watched.lacks.clone().filter(|_| life != Life::Gone),
        threads: if life == Life::Gone {
            Vec::new()
        } else {
            threads
        },
    }
}

/// How busy the busiest GPU of each is.
fn gpus(members: &[Member]) -> Vec<Option<u32>> {
    let of = || {
        let nvml = Nvml::load().ok()?;
        let devices = nvml.devices().ok()?;
        let users = finder::users(members.iter().map(|it| it.pid), &devices);
        let busy: Vec<_> = devices.iter().map(nvml::busy).collect();
        let busiest =
            |(_, gpus): &(bool, Vec<usize>)| gpus.iter().filter_map(|at| *busy.get(*at)?).max();
        Some(users.iter().map(busiest).collect())
    };
    of().unwrap_or_else(|| vec![None; members.len()])
}

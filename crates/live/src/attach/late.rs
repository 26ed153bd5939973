//! Collectors in programs that run already: loaded, spoken to, left.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use collector::hand::{self, Said};
use ptrace::{Call, CallState};
use rustix::fs::{Gid, MemfdFlags, Uid, memfd_create};

use super::environment::{self, Collect};
use super::refused::{Refused, no_process, permitted};
use crate::python;
use crate::rights::{numbers, threads, told};

/// How long a thread at a safe place is waited for, and then the call with the collector's word. Who takes longer is left to end by itself:
/// the library finds its socket closed and leaves.
const LIMIT: Duration = Duration::from_millis(1200);
const WORD: Duration = Duration::from_secs(1);
/// How its mapping is called in the program.
const MAPPING: &str = "cuptop-collector";

/// The hand on a collector in another process.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) pid: u32,
    call: Call,
    /// Its kind is another, and sends and receives all the same.
    socket: UnixDatagram,
    /// How long a thread of it stood still.
    still: Duration,
    has_seccomp: bool,
    /// The other end of the socket is closed.
    is_over: bool,
    /// What it said last.
    said: Option<Said>,
}

impl Hand {
    /// Loads the collector into a process, to record into `directory`. Nothing where another cuptop is attached: beside it nobody enters.
    ///
    /// # Errors
    /// Why not, and what helps. The process goes on.
    pub(super) fn enter(
        pid: u32,
        directory: &Path,
        collect: &Collect,
        given_up: &AtomicBool,
    ) -> Result<Option<Hand>, Refused> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| Refused::new(format!("{what}: {error}"), "")
        };
        let Some(seen) = unless_held(pid, ptrace::check(pid))?.filter(|_| !is_held(pid)) else {
            return Ok(None);
        };
        if python::has_mapped(pid, b"/cuptop/inject-") {
            let why =
                format!("process {pid} is recorded already: it was started under `cuptop trace`");
            return Err(Refused::new(why, "open that recording with `cuptop open`"));
        }
        hand_over(directory, seen.owner).map_err(failed("the recording cannot be handed over"))?;
        let library = memfd_create(MAPPING, MemfdFlags::CLOEXEC).map(File::from);
        let library = library.map_err(io::Error::from).and_then(|mut file| {
            file.write_all(collect.library)?;
            Ok(file)
        });
        let library = library.map_err(failed("there is no memory for the library"))?;
        let folder = File::open(directory).map_err(failed("the recording cannot be opened"))?;
        let loaded = ptrace::load(&ptrace::Request {
            pid,
            library: library.as_fd(),
            mapping: &format!("/memfd:{MAPPING}"),
            symbol: hand::ENTRY,
            area: hand::AREA,
            passed: folder.as_fd(),
            limit: LIMIT,
            given_up,
        });
        let Some(loaded) = unless_held(pid, loaded)? else {
            return Ok(None);
        };
        let mut text = String::new();
        for (name, value) in environment::options(collect) {
            let _ = writeln!(text, "{name}={}", value.to_string_lossy());
        }
        let socket = UnixDatagram::from(loaded.socket);
        // One that is gone is noticed below.
        let _ = socket.send(text.as_bytes());
        let waits_for_none = socket.set_nonblocking(true);
        waits_for_none.map_err(failed("the socket cannot be used"))?;
        let mut hand = Hand {
            pid,
            call: loaded.call,
            socket,
            still: loaded.still,
            has_seccomp: seen.has_seccomp,
            is_over: false,
            said: None,
        };
        let begun = Instant::now();
        if !hand.wait_for_call()? {
            return Ok(None);
        }
        hand.wait_for_word(begun);
        match hand.said.take() {
            Some(Said::Refused(why, help)) => {
                Err(Refused::new(format!("process {pid}: {why}"), help))
            }
            said => Ok(Some(Hand { said, ..hand })),
        }
    }

    /// Whether the call did its work, or is left to do it. False where another one came first.
    fn wait_for_call(&self) -> Result<bool, Refused> {
        let pid = self.pid;
        let (why, help) = match self.call.wait(WORD) {
            // It comes back some time: until then it is waited for.
            CallState::Running | CallState::Done(0) => return Ok(true),
            CallState::Done(hand::BUSY) => return Ok(false),
            CallState::Gone => (format!("process {pid} has just ended"), ""),
            CallState::Failed(text) => (
                format!("process {pid} cannot load cuptop's library: {text}"),
                "it takes glibc 2.17 or later, and a /proc that the process can see",
            ),
            CallState::Done(hand::CHILD) => (
                format!("process {pid} was forked from one that cuptop was attached to"),
                "attach to that one, or start this one anew",
            ),
            CallState::Done(_) => (
                format!("process {pid} can start no thread"),
                "see its limits (ulimit -u)",
            ),
        };
        Err(Refused::new(why, help))
    }

    fn wait_for_word(&mut self, begun: Instant) {
        while self.said.is_none() && begun.elapsed() < WORD && !self.is_over && self.is_there() {
            self.said = self.hear();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_there(&self) -> bool {
        python::is_there(self.pid)
    }

    /// What has been said since; nothing where nothing was.
    fn hear(&mut self) -> Option<Said> {
        let mut text = vec![0; hand::LONGEST];
        let length = self.socket.recv(&mut text).ok()?;
        self.is_over |= length == 0;
        Said::decode(&String::from_utf8_lossy(&text[..length]))
    }

    /// What is to be told now: whether it limits what is seen, and in words.
    pub(super) fn news(&mut self) -> Option<(bool, String)> {
        let said = self.said.take().or_else(|| self.hear())?;
        let pid = self.pid;
        let is_warning = matches!(said, Said::Refused(..));
        let text = match said {
            Said::Waits => {
                format!("process {pid} does not use CUDA yet: it is recorded from when it does")
            }
            Said::Records(with) => {
                let still = self.still.as_secs_f64() * 1e3;
                let filtered = if self.has_seccomp {
                    "; its system calls are filtered (seccomp)"
                } else {
                    ""
                };
                format!(
                    "recording process {pid} by {with}; one thread stood still for {still:.1} ms{filtered}"
                )
            }
            Said::Refused(why, help) => format!("process {pid} is not recorded: {why}; {help}"),
            Said::Left => format!("left process {pid}, which goes on"),
        };
        Some((is_warning, text))
    }

    /// Asks the collector to let go.
    pub(super) fn leave(&self) {
        // One that is gone has.
        let _ = self.socket.send(b"leave");
    }

    /// Whether it has let go, or its process is gone.
    pub(super) fn has_left(&mut self) -> bool {
        if let Some(said) = self.hear() {
            self.said = Some(said);
        }
        self.said == Some(Said::Left) || self.is_over || !self.is_there()
    }
}

/// Lets another user's process write into a folder of ours. Only root has to, and can.
fn hand_over(directory: &Path, owner: (u32, u32)) -> io::Result<()> {
    if rustix::process::geteuid().as_raw() == owner.0 {
        return Ok(());
    }
    let page: PathBuf = directory.join(collector::control::FILE);
    for path in [directory, &page] {
        let (user, group) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
        rustix::fs::chown(path, Some(user), Some(group))?;
    }
    Ok(())
}

/// The process and those that it started which have the CUDA driver in them.
pub(super) fn users_of_cuda(root: u32) -> Vec<u32> {
    let mut all = python::family(root);
    all.retain(|pid| python::has_mapped(*pid, b"/libcuda.so."));
    all
}

/// Whether another cuptop is attached: its library is in the process, and the thread that serves it.
fn is_held(pid: u32) -> bool {
    let serves = |thread: u32| {
        let told = |name| told(format!("{pid}/task/{thread}"), name);
        // Its number as the process itself sees it, which may live in a container.
        let number = numbers(&told("status"), "NSpid").pop().unwrap_or(thread);
        told("comm").trim() == hand::thread_name(number)
    };
    python::has_mapped(pid, MAPPING.as_bytes()) && threads(pid).any(serves)
}

/// What came of a step, nothing where another cuptop is just entering the process.
///
/// # Errors
/// Why not, in words for whoever asked, with what helps.
fn unless_held<T>(pid: u32, done: Result<T, ptrace::Refused>) -> Result<Option<T>, Refused> {
    use ptrace::Refused as Why;
    let why = match done {
        Ok(done) => return Ok(Some(done)),
        Err(Why::Entered(_)) => return Ok(None),
        // One without a name is gone by now.
        Err(Why::Traced { name, .. }) if [ptrace::TRACER, ""].contains(&&*name) => return Ok(None),
        Err(why) => why,
    };
    let help = match &why {
        Why::None(_) => return Err(no_process(pid)),
        Why::NotPermitted { .. } => permitted(pid),
        Why::Traced { .. } => "end the debugger, or look from outside: cuptop attach --stacks-only".to_owned(),
        Why::Unfit { .. } => {
            "from outside it can be looked at: cuptop attach --stacks-only; started anew under `cuptop trace -- CMD` it is recorded".to_owned()
        }
        Why::NoPlace { .. } => "try again; without entering it: cuptop attach --stacks-only".to_owned(),
        _ => String::new(),
    };
    Err(Refused::new(why.to_string(), help))
}

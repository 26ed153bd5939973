//! Python stacks of a program's processes, read from outside while they run.
//!
//! ```text
//! tree     the processes of the program, and which of them have Python in them
//! watched  one process: attached to, looked at, written to PID-START.outside.cuptop
//! ```
//!
//! A thread of ours reads the interpreters' memory (`process_vm_readv`, by the library `py-spy`) some hundred times a second.
//! The times are jittered, so that it does not keep step with the program. Nothing is stopped and nothing is put into the
//! program. A sample may be torn, because the program goes on meanwhile: such samples are counted and left out. All sampling
//! together stays under a tenth of one core; it becomes rarer where that needs more time. While nobody wants it
//! ([`Pause`]), nothing is read at all, and the timeline knows that nobody looked.

pub(crate) mod bounded;
mod tree;
mod watched;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use rustc_hash::FxHashMap;
use rustix::time::ClockId;

use crate::clock;
use activity::Ns;
use activity::feed::{Message, Pause};
pub use collector::pythons;
use tree::Tree;
pub(super) use tree::{began, family, has_mapped, has_python};
use watched::{Lack, SampleResult, SampledProcess};
pub(super) use watched::{attach, frame_of};

/// Looks a second, unless somebody asks for another number.
pub const HZ: u32 = 100;
/// The most looks a second that can be asked for.
pub const MOST_HZ: u32 = 1000;
/// Looking may take this part of one core: one in so many.
const SHARE: u32 = 10;
/// How soon it is noticed that looking is wanted again.
const PAUSE: Duration = Duration::from_millis(20);
/// Notices that may wait. Each kind of them comes once, so there are never more.
const NOTICES: usize = 8;

/// How long a look is waited for at the end, and how much of a core one may take. It takes some 0.5 ms, and a thousand times that of
/// threads that go round in a ring.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

/// Samples a program's Python processes until it is dropped.
pub struct Sampler {
    notices: Receiver<Message>,
    /// Asks it to end, and says when it has.
    running: Option<(Sender<()>, Receiver<()>)>,
}

impl Sampler {
    /// Samples the process `root` and all its descendants, `hz` times a second while that is wanted, into files in
    /// `directory`.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(super) fn start(
        root: u32,
        directory: &Path,
        hz: u32,
        looking: Pause,
    ) -> io::Result<Sampler> {
        let (stop, stopped) = bounded(0);
        let (notices, received) = bounded(NOTICES);
        let mut work = Work {
            directory: directory.to_path_buf(),
            hz: hz.clamp(1, MOST_HZ),
            looking,
            tree: Tree::new(root),
            watched: FxHashMap::default(),
            notices,
            told: Vec::new(),
            random: u64::from(root) << 32 | 0x9e37_79b9,
        };
        let (over, ended) = bounded(0);
        let thread = std::thread::Builder::new().name("cuptop-python".to_owned());
        thread.spawn(move || {
            let _over: Sender<()> = over;
            work.run(&stopped);
        })?;
        Ok(Sampler {
            notices: received,
            running: Some((stop, ended)),
        })
    }

    /// What it has to say.
    pub fn notices(&self) -> impl Iterator<Item = Message> + '_ {
        self.notices.try_iter()
    }

    /// Ends it, after its files were written to their end. A look that takes too long ends alone.
    pub fn stop(&mut self) {
        if let Some((stop, ended)) = self.running.take() {
            drop(stop);
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether a process is there, and not one that has ended and waits for its parent.
pub(super) fn is_there(pid: u32) -> bool {
    began(pid).is_some()
}

/// Whether a process or a descendant of it has Python in it, or gets it within some time.
pub(super) fn is_in(pid: u32, within: Duration) -> bool {
    let (mut tree, begin) = (Tree::new(pid), Instant::now());
    loop {
        tree.search(Instant::now());
        if !tree.pythons().is_empty() {
            return true;
        }
        if begin.elapsed() >= within || !is_there(pid) {
            return false;
        }
        std::thread::sleep(tree.pause);
    }
}

/// The version of `python3` ("3.12").
pub fn version() -> Option<String> {
    let said = Command::new("python3")
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    let said = String::from_utf8_lossy(&said.ok()?.stdout).into_owned();
    let (version, _patch) = said.strip_prefix("Python ")?.rsplit_once('.')?;
    Some(version.to_owned())
}

struct Work {
    directory: PathBuf,
    hz: u32,
    looking: Pause,
    tree: Tree,
    watched: FxHashMap<u32, SampledProcess>,
    notices: Sender<Message>,
    told: Vec<Lack>,
    random: u64,
}

impl Work {
    fn run(&mut self, stopped: &Receiver<()>) {
        let mut next_search = Instant::now();
        let mut is_paused = false;
        let mut wait = Duration::ZERO;
        while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            if self.looking.is_held() {
                if !std::mem::replace(&mut is_paused, true) {
                    self.watched.values_mut().for_each(SampledProcess::pause);
                }
                wait = PAUSE;
                continue;
            }
            is_paused = false;
            let now = Instant::now();
            if now >= next_search {
                self.tree.search(now);
                next_search = now + self.tree.pause;
                self.begin(now);
            }
            let begin = cpu_time();
            let hz = self.hz_now();
            let looked = self.sample_all(now, hz);
            let spent = Duration::from_nanos((cpu_time() - begin).cast_unsigned());
            let pause = if looked {
                self.jittered().max(spent * (SHARE - 1))
            } else {
                Duration::MAX
            };
            // Processes that are waited for say themselves when it is time.
            let due = self.watched.values().filter_map(SampledProcess::due).min();
            let wake = [Some(next_search), due].into_iter().flatten().min();
            let until = wake.map_or(pause, |at| at.saturating_duration_since(Instant::now()));
            wait = pause.min(until.max(Duration::from_micros(200)));
        }
        for watched in self.watched.values_mut() {
            watched.finish();
        }
    }

    /// Takes on what has appeared, lets go of what is gone.
    fn begin(&mut self, now: Instant) {
        for pid in self.tree.pythons() {
            self.watched
                .entry(pid)
                .or_insert_with(|| SampledProcess::new(pid, now));
        }
        let tree = &self.tree;
        self.watched.retain(|pid, watched| {
            let is_there = tree.has(*pid);
            if !is_there {
                watched.finish();
            }
            is_there
        });
    }

    /// Samples every process once. Returns whether there was one.
    fn sample_all(&mut self, now: Instant, hz: u32) -> bool {
        let mut looked = false;
        for watched in self.watched.values_mut() {
            match watched.sample(now, hz, &self.directory) {
                SampleResult::Taken => looked = true,
                SampleResult::NotYet => {}
                SampleResult::Lacks(lack, text) => {
                    if !self.told.contains(&lack) {
                        self.told.push(lack);
                        let is_warning = true;
                        // There is room for each kind.
                        let _ = self.notices.try_send(Message::Notice { is_warning, text });
                    }
                }
            }
        }
        looked
    }

    /// Looks a second at present: fewer than asked for where looking takes long.
    fn hz_now(&self) -> u32 {
        let cost: Ns = self.watched.values().map(|it| it.cost).sum();
        let most = 1_000_000_000 / (cost.max(1) * Ns::from(SHARE));
        u32::try_from(most).unwrap_or(u32::MAX).clamp(1, self.hz)
    }

    /// The pause between two looks: three to five quarters of the even one.
    fn jittered(&mut self) -> Duration {
        // xorshift64: any sequence that keeps no step with the program does.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let even = 1_000_000_000 / u64::from(self.hz);
        Duration::from_nanos(even * 3 / 4 + self.random % (even / 2).max(1))
    }
}

/// Time that this thread has used, in ns.
fn cpu_time() -> Ns {
    let time = clock::read(ClockId::ThreadCPUTime);
    Ns::try_from(time.as_nanos()).unwrap_or(Ns::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{BufRead, BufReader, Lines, Write};
    use std::process::{Child, ChildStdin, ChildStdout};

    use super::*;

    /// A Python program with 900 frames, whose list of threads goes round from some moment on.
    pub(crate) struct Deep {
        pub(crate) child: Child,
        keys: ChildStdin,
        lines: Lines<BufReader<ChildStdout>>,
    }

    impl Deep {
        /// Nothing without Python.
        pub(crate) fn start() -> Option<Deep> {
            const PROGRAM: &str = r#"
import ctypes, sys
get = ctypes.pythonapi.PyThreadState_Get
get.restype = ctypes.c_void_p
def deep(n):
    if n: return deep(n - 1)
    print("ready", flush=True)
    sys.stdin.readline()
    ctypes.c_void_p.from_address(get() + 8).value = get()
    print("round", flush=True)
    sys.stdin.readline()
deep(900)
"#;
            let mut python = Command::new("python3");
            let piped = python.args(["-c", PROGRAM]).stdin(Stdio::piped());
            let mut child = piped.stdout(Stdio::piped()).spawn().ok()?;
            let mut deep = Deep {
                keys: child.stdin.take()?,
                lines: BufReader::new(child.stdout.take()?).lines(),
                child,
            };
            deep.lines.next().map(|_| deep)
        }

        pub(crate) fn go_round(&mut self) {
            self.keys.write_all(b"\n").expect("the pipe");
            assert!(self.lines.next().is_some());
        }
    }

    impl Drop for Deep {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// One look takes some 10 s of a core.
    #[test]
    fn threads_in_a_ring_keep_no_recording_from_its_end() {
        let Some(mut deep) = Deep::start() else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let looking = Pause::default();
        let sampler = Sampler::start(deep.child.id(), folder.path(), HZ, looking);
        // Until it looks, and until it looks at the ring.
        std::thread::sleep(Duration::from_secs(1));
        deep.go_round();
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        drop(sampler.expect("a thread"));
        assert!(begun.elapsed() < 2 * PATIENCE, "{:?}", begun.elapsed());
    }
}

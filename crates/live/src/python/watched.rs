//! One process with Python in it.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use py_spy::config::LockingStrategy;
use py_spy::{Config, PythonSpy, StackTrace};
use recording::file::{Clocks, StackLog, Writer, wall_time};
use rustc_hash::FxHashMap;

use super::bounded;
use super::cpu_time;
use super::tree::began;
use crate::rights::command;
use activity::entry::Entry;
use activity::{Frame, Ns, ProcessInfo, SampledThread, Sampling};

/// How soon an interpreter that is not there yet is tried again, at first and at most.
const SOON: Duration = Duration::from_millis(10);
const LATE: Duration = Duration::from_millis(500);
/// How long it is tried.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a refusal must last to be one.
const FORBIDDEN: Duration = Duration::from_secs(1);
/// Looks that may fail one after the other before the interpreter is looked for anew.
const TORN_IN_A_ROW: u32 = 100;
/// Looks are published together this often.
const PERIOD: Duration = Duration::from_millis(500);
/// Threads whose id the operating system's is not known of have ids from here on, which no thread has.
const UNKNOWN: u32 = 1 << 30;

/// What a sample came to.
pub(super) enum SampleResult {
    /// Its stacks were taken.
    Taken,
    /// The interpreter is not there yet, or will not be tried again.
    NotYet,
    /// It is not sampled any more, and why.
    Lacks(Lack, String),
}

/// What is lacking. Each is told once.
#[derive(PartialEq, Eq)]
pub(super) enum Lack {
    /// The process's memory may not be read.
    Right,
    /// They could not be read for long.
    Stacks,
    /// They cannot be written.
    Room,
}

/// A look took more of a core than threads that are there can take.
#[derive(Debug, thiserror::Error)]
#[error("a look takes more than 4 s")]
struct TooLong;

const TOO_LONG: Ns = super::PATIENCE.as_nanos() as Ns;

/// As [`attach`], where that takes no more than a look may.
fn attach_soon(pid: u32) -> anyhow::Result<PythonSpy> {
    let begin = cpu_time();
    let spy = attach(pid);
    match cpu_time() - begin > TOO_LONG {
        true => Err(TooLong.into()),
        false => spy,
    }
}

impl SampleResult {
    fn unread(pid: u32, why: &dyn std::fmt::Display) -> SampleResult {
        let text = format!("the Python stacks of process {pid} cannot be read: {why}");
        SampleResult::Lacks(Lack::Stacks, text)
    }

    fn unwritten(error: &io::Error) -> SampleResult {
        let text = format!("Python stacks are not recorded any more: {error}");
        SampleResult::Lacks(Lack::Room, text)
    }
}

/// A process with Python in it.
pub(super) struct SampledProcess {
    pid: u32,
    state: SamplingState,
    /// Mean time that a look takes, in ns of one core.
    pub(super) cost: Ns,
}

enum SamplingState {
    Waiting {
        since: Instant,
        next: Instant,
        wait: Duration,
    },
    Attached(Box<SampledInterpreter>),
    Over,
}

struct SampledInterpreter {
    spy: PythonSpy,
    log: StackLog,
    writer: Writer,
    written: Instant,
    totals: Sampling,
    torn_in_a_row: u32,
    named: FxHashMap<u32, String>,
    /// Ids of threads that the operating system's is not known of.
    unknown: FxHashMap<u64, u32>,
    /// Whether it was said that a profiler runs in it.
    told_profiler: bool,
}

impl SampledProcess {
    pub(super) fn new(pid: u32, now: Instant) -> SampledProcess {
        SampledProcess {
            pid,
            state: SamplingState::Waiting {
                since: now,
                next: now,
                wait: SOON,
            },
            cost: 0,
        }
    }

    /// When the interpreter is to be looked for again.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.state {
            SamplingState::Waiting { next, .. } => Some(next),
            _ => None,
        }
    }

    /// Samples it, `hz` times a second at present.
    pub(super) fn sample(&mut self, at: Instant, hz: u32, directory: &Path) -> SampleResult {
        match &mut self.state {
            SamplingState::Over => SampleResult::NotYet,
            SamplingState::Waiting { next, .. } if at < *next => SampleResult::NotYet,
            SamplingState::Waiting { since, next, wait } => match attach_soon(self.pid) {
                Ok(spy) => match SampledInterpreter::begin(spy, self.pid, directory) {
                    Ok(attached) => {
                        self.state = SamplingState::Attached(Box::new(attached));
                        SampleResult::NotYet
                    }
                    Err(error) => {
                        self.state = SamplingState::Over;
                        SampleResult::unwritten(&error)
                    }
                },
                // While a program starts another, nobody may read it for a moment.
                Err(error) if is_forbidden(&error) && since.elapsed() > FORBIDDEN => {
                    self.state = SamplingState::Over;
                    let text = format!(
                        "the Python stacks of process {} may not be read (process_vm_readv): what the program did on the host is shown without \
                         source lines. In a container, --cap-add SYS_PTRACE allows it; elsewhere kernel.yama.ptrace_scope below 2, or the same user",
                        self.pid
                    );
                    SampleResult::Lacks(Lack::Right, text)
                }
                Err(error) if since.elapsed() > PATIENCE || error.is::<TooLong>() => {
                    self.state = SamplingState::Over;
                    SampleResult::unread(self.pid, &error)
                }
                Err(_) => {
                    *next = Instant::now() + *wait;
                    *wait = (*wait * 2).min(LATE);
                    SampleResult::NotYet
                }
            },
            SamplingState::Attached(attached) => {
                let begin = cpu_time();
                let result = attached.sample(hz);
                let spent = cpu_time() - begin;
                attached.totals.cost_ns += spent.cast_unsigned();
                if spent > TOO_LONG {
                    self.finish();
                    return SampleResult::unread(self.pid, &TooLong);
                }
                // Imports make single looks a hundred times as long; they should not slow down all others.
                self.cost += (spent - self.cost) / 16;
                if let Err(error) = result {
                    self.state = SamplingState::Over;
                    return SampleResult::unwritten(&error);
                }
                if attached.torn_in_a_row > TORN_IN_A_ROW {
                    self.finish();
                    *self = SampledProcess::new(self.pid, at);
                    return SampleResult::NotYet;
                }
                SampleResult::Taken
            }
        }
    }

    /// Nobody will look for a while: what was seen until now is written.
    pub(super) fn pause(&mut self) {
        if let SamplingState::Attached(attached) = &mut self.state {
            // What cannot be written is said at the next look, which cannot be written either.
            let _ = attached.write();
        }
    }

    /// The process has ended, or sampling does.
    pub(super) fn finish(&mut self) {
        if let SamplingState::Attached(attached) =
            std::mem::replace(&mut self.state, SamplingState::Over)
        {
            attached.finish();
        }
    }
}

/// Opens a process's interpreter for looks at its stacks.
///
/// # Errors
/// When it may not be read, or has no interpreter yet.
pub(crate) fn attach(pid: u32) -> anyhow::Result<PythonSpy> {
    let config = Config {
        blocking: LockingStrategy::NonBlocking,
        // Shortening them, which nobody here asks for, looks for packages in the file system.
        full_filenames: true,
        ..Config::default()
    };
    if !bounded::has_sound_interpreter(pid) {
        anyhow::bail!("its interpreter claims more than one has");
    }
    let mut spy = PythonSpy::new(pid.cast_signed(), &config)?;
    // An interpreter that has just begun has none to show.
    spy.get_stack_traces()?;
    Ok(spy)
}

/// A frame as py-spy has it.
pub(crate) fn frame_of(it: &py_spy::Frame) -> Frame {
    Frame {
        file: it.filename.clone(),
        function: it.name.clone(),
        line: u32::try_from(it.line).unwrap_or(0),
    }
}

/// Whether an error is the operating system's no.
fn is_forbidden(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let as_io = cause.downcast_ref::<io::Error>();
        let words = cause.to_string();
        as_io.is_some_and(|it| it.kind() == io::ErrorKind::PermissionDenied)
            || ["Permission denied", "Operation not permitted"]
                .iter()
                .any(|it| words.contains(it))
    })
}

impl SampledInterpreter {
    fn begin(spy: PythonSpy, pid: u32, directory: &Path) -> io::Result<SampledInterpreter> {
        let mut writer = Writer::outside(directory, pid, Clocks::now())?;
        writer.add(&Entry::Process(ProcessInfo {
            pid,
            command: command(pid).unwrap_or_default(),
            ..ProcessInfo::default()
        }));
        Ok(SampledInterpreter {
            spy,
            log: StackLog::default(),
            writer,
            written: Instant::now(),
            totals: Sampling::default(),
            torn_in_a_row: 0,
            named: FxHashMap::default(),
            unknown: FxHashMap::default(),
            told_profiler: false,
        })
    }

    fn sample(&mut self, hz: u32) -> io::Result<()> {
        self.totals.hz = hz;
        let before = wall_time();
        let traces = self.spy.get_stack_traces();
        // It was some time in between.
        let time = before + (wall_time() - before) / 2;
        match traces {
            Ok(traces) => {
                self.torn_in_a_row = 0;
                self.take(time, &traces);
            }
            // It has ended: what is read of it then is no torn look.
            Err(_) if began(self.spy.pid.cast_unsigned()).is_none() => {}
            Err(_) => {
                self.torn_in_a_row += 1;
                self.totals.torn += 1;
            }
        }
        if self.written.elapsed() >= PERIOD {
            self.write()?;
        }
        Ok(())
    }

    fn take(&mut self, time: Ns, traces: &[StackTrace]) {
        let mut seen = Vec::with_capacity(traces.len());
        for trace in traces {
            let thread = self.thread_of(trace);
            let mut stack = 0;
            // The innermost comes first.
            for frame in trace.frames.iter().rev() {
                let frame = frame_of(frame);
                if is_profiler(&frame) && !std::mem::replace(&mut self.told_profiler, true) {
                    self.writer.notice(true, PROFILER);
                }
                stack = self.log.deeper(&mut self.writer, stack, &frame);
            }
            if stack != 0 && seen.iter().all(|it: &SampledThread| it.thread != thread) {
                seen.push(SampledThread {
                    thread,
                    stack,
                    is_running: trace.active,
                });
            }
        }
        self.log.add_look(&mut self.writer, time, &seen);
    }

    /// The operating system's id of a thread, whose name is told when it is new.
    fn thread_of(&mut self, trace: &StackTrace) -> u32 {
        let name = trace.thread_name.as_deref().unwrap_or_default();
        let is_main = name == "MainThread";
        let pid = self.spy.pid.cast_unsigned();
        let known = trace.os_thread_id.and_then(|id| u32::try_from(id).ok());
        // In another PID namespace the interpreter's own ids are others than ours.
        let thread = match known {
            _ if is_main => pid,
            Some(thread) => thread,
            None => {
                let next = UNKNOWN + self.unknown.len() as u32;
                *self.unknown.entry(trace.thread_id).or_insert(next)
            }
        };
        let is_new = !name.is_empty() && self.named.get(&thread).is_none_or(|it| it != name);
        // The main thread is called so anyway.
        if is_new && !is_main {
            self.named.insert(thread, name.to_owned());
            self.writer.add(&Entry::Thread(thread, name.as_bytes()));
        }
        thread
    }

    fn write(&mut self) -> io::Result<()> {
        self.written = Instant::now();
        self.writer.add(&Entry::Sampling(self.totals));
        self.writer.flush()
    }

    /// Says that no thread is there any more, and writes what waits.
    fn finish(mut self) {
        self.log.add_look(&mut self.writer, wall_time(), &[]);
        self.writer.add(&Entry::Sampling(self.totals));
        self.writer.finish();
    }
}

/// What a program's own profiler loses. It is refused in the program, and no other process sees that.
const PROFILER: &str = "CUPTI serves one tool at a time: while cuptop records, the program's own torch.profiler sees no GPU work";

/// Whether a function is one of PyTorch's users of CUPTI at work. Bodies of modules and classes run when they are imported.
fn is_profiler(frame: &Frame) -> bool {
    let is_in = frame.file.ends_with("/torch/profiler/profiler.py")
        || frame.file.contains("/torch/profiler/_cupti/");
    // "Profile.start" from Python 3.11 on.
    let name = frame.function.rsplit('.').next().unwrap_or_default();
    let name = name.trim_start_matches('_');
    is_in && name.starts_with(|c: char| c.is_ascii_lowercase())
}

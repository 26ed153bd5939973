//! The collector of a process: start, speak to, finish.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use activity::{Health, Place, RangeKind};
use crossbeam_channel::{Receiver, Sender, bounded};
use cupti_sys::api::SUCCESS;
use cupti_sys::{Cupti, LoadError};

use crate::buffers::{self, Pool};
use crate::command::Command;
use crate::decode::Decoder;
use crate::fork;
use crate::gate;
use crate::nodes::{self, NodeLog};
use crate::options::{BUFFERS, Caller, Ending, Graphs, Lines, MOST_BUFFERS, Options};
use crate::process::this_process;
use crate::ranges::{RangeWatch, Ranges};
use crate::setup::{Callbacks, StartError, Subscription, enable, release, subscribe};
use crate::stalls::StallThread;
use crate::switch::Switch;
use crate::threads::{Counts, DecodeThread, Flusher, start};
use recording::file::{Clocks, Entry, Identity, State, Writer};

/// Commands that may wait for the decode thread. A program sends a few for each pass of a scenario.
const COMMANDS: usize = 1024;
/// How long a program waits for its recording to be closed.
const PATIENCE: Duration = Duration::from_secs(15);

static HAS_ONE: AtomicBool = AtomicBool::new(false);

/// Collects this process's GPU activity. There is one at a time: CUPTI's callbacks know no owner.
///
/// Dropping it finishes it ([`Ending::Exit`]).
#[derive(Debug)]
pub struct Collector {
    /// Which libcupti is used.
    pub cupti: Cupti,
    commands: Option<Sender<Command>>,
    flushes: Sender<Sender<()>>,
    stop: Sender<Ending>,
    closed: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
    stalls: Option<StallThread>,
}

impl Collector {
    /// Starts collecting into a recording in `options.dir`. Call it before CUDA is used for anything else.
    ///
    /// # Errors
    /// When nothing can be collected. The reason is left in the recording too, where one could be made.
    pub fn start(options: Options) -> Result<Collector, StartError> {
        Collector::start_with(options, Cupti::load)
    }

    /// As [`Collector::start`], with a libcupti that `load` chooses.
    ///
    /// # Errors
    /// As [`Collector::start`].
    pub fn start_with(
        options: Options,
        load: impl FnOnce(cupti_sys::Caller) -> Result<Cupti, LoadError>,
    ) -> Result<Collector, StartError> {
        if HAS_ONE.swap(true, Ordering::AcqRel) {
            return Err(StartError::Again);
        }
        let identity = Identity {
            pid: std::process::id(),
            start: Clocks::now(),
            ..Identity::default()
        };
        let writer = Writer::create(&options.dir, identity, options.max_bytes);
        let mut writer = writer.map_err(|error| {
            HAS_ONE.store(false, Ordering::Release);
            StartError::Recording(error)
        })?;
        if let Some(age) = options.keep {
            writer.keep_last(age);
        }
        let mut process = this_process();
        writer.add(&Entry::Process(process.clone()));
        writer.publish(&Health::default());
        fork::watch(writer.descriptor());

        match Prepared::load(&options, load) {
            Ok(prepared) => {
                process.versions = prepared.cupti.describe();
                writer.add(&Entry::Process(process));
                prepared.run(&options, writer)
            }
            Err(error) => {
                writer.notice(true, &refusal(&error));
                fork::forget();
                writer.close(&Health::default(), State::Refused);
                HAS_ONE.store(false, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Records a phase of the calling thread.
    /// Times are nanoseconds of `CLOCK_REALTIME`.
    pub fn range(&self, kind: RangeKind, name: &str, index: u32, start_ns: i64, end_ns: i64) {
        // By number: a C library before 2.30 has no function for it.
        // SAFETY: has no preconditions.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        self.send(Command::Range {
            kind,
            name: name.to_owned(),
            index,
            // Thread ids are ints.
            thread: thread as u32,
            start: start_ns,
            end: end_ns,
        });
    }

    /// Names a stream. Takes CUDA's own handles (`CUcontext`, `CUstream`); does nothing where the library cannot tell
    /// its ids for them.
    ///
    /// # Safety
    /// Both must be live handles of this process.
    pub unsafe fn name_stream(&self, context: *mut c_void, stream: *mut c_void, name: &str) {
        let api = &self.cupti.api;
        let (Some(context_id), Some(device_id), Some(stream_id)) =
            (api.context_id, api.device_id, api.stream_id)
        else {
            return;
        };
        let mut place = Place::default();
        // SAFETY: live handles, by the caller's promise; each call writes one number.
        let codes = unsafe {
            [
                context_id(context, &raw mut place.context),
                device_id(context, &raw mut place.device),
                stream_id(context, stream, 0, &raw mut place.stream),
            ]
        };
        if codes == [SUCCESS; 3] {
            self.send(Command::Stream {
                place,
                name: name.to_owned(),
            });
        }
    }

    /// Leaves a message for the user in the recording.
    pub fn notice(&self, is_warning: bool, text: &str) {
        self.send(Command::Notice {
            is_warning,
            text: text.to_owned(),
        });
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // Waits when a thousand are waiting already: none is dropped, and no launch path calls this.
            let _ = commands.send(command);
        }
    }

    /// Makes everything that is complete visible in the recording. Not for a measured stretch of a program.
    pub fn flush(&self) {
        for _ in 0..2 {
            let (done, wait) = bounded(1);
            if self.flushes.send(done).is_err() || wait.recv_timeout(PATIENCE).is_err() {
                return;
            }
        }
        let (done, wait) = bounded(1);
        self.send(Command::Flush(done));
        let _ = wait.recv_timeout(PATIENCE);
    }

    /// Flushes, writes the rest, closes the recording and joins the threads. Returns whether all of that was done in time.
    pub fn finish(mut self, ending: Ending) -> bool {
        self.end(ending)
    }

    fn end(&mut self, ending: Ending) -> bool {
        let threads = std::mem::take(&mut self.threads);
        if threads.is_empty() || fork::is_child() {
            // In a forked child these threads do not exist.
            threads.into_iter().for_each(std::mem::forget);
            std::mem::forget(self.stalls.take());
            return false;
        }
        if let Some(stalls) = self.stalls.take() {
            stalls.end(ending);
        }
        let _ = self.stop.send(ending);
        drop(self.commands.take());
        // The decode thread drops its end when it is done. A CUPTI that hangs must not hang the program's exit.
        let in_time = self.closed.recv_timeout(PATIENCE)
            == Err(crossbeam_channel::RecvTimeoutError::Disconnected);
        if in_time {
            for thread in threads {
                let _ = thread.join();
            }
            if ending == Ending::Release {
                HAS_ONE.store(false, Ordering::Release);
            }
        }
        in_time
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.end(Ending::Exit);
    }
}

/// A libcupti that records into buffers of ours, before anybody reads them.
struct Prepared {
    cupti: Cupti,
    subscription: Subscription,
    pool: &'static Pool,
    decoder: Decoder,
    switch: Switch,
    /// What is lacking, in sentences.
    lacks: Vec<String>,
}

impl Prepared {
    fn load(
        options: &Options,
        load: impl FnOnce(cupti_sys::Caller) -> Result<Cupti, LoadError>,
    ) -> Result<Prepared, StartError> {
        let cupti = load(options.caller)?;
        let subscription = subscribe(&cupti, gate::called)?;
        match set_up(&cupti, options) {
            Ok((pool, decoder, switch, lacks)) => Ok(Prepared {
                cupti,
                subscription,
                pool,
                decoder,
                switch,
                lacks,
            }),
            Err(error) => {
                release(&cupti, subscription);
                Err(error)
            }
        }
    }

    /// Says in the recording how it begins, and starts the threads.
    fn run(mut self, options: &Options, mut writer: Writer) -> Result<Collector, StartError> {
        let (commands, received) = bounded(COMMANDS);
        let (mode, more) = self.switch.begin(&self.cupti, commands.clone());
        writer.add(&Entry::Mode(mode));
        self.lacks.extend(more);
        let mut log = NodeLog::default();
        let of_launches = options.lines == Lines::Launches;
        if of_launches || (options.lines != Lines::Off && options.graphs == Graphs::Nodes) {
            let set = |it: Callbacks| it.set(&self.cupti, &self.subscription, true);
            let are_told = set(Callbacks::Nodes);
            log.tells_changes = are_told && set(Callbacks::ChangedNodes);
            let lack = "this CUPTI does not tell of nodes of CUDA graphs: they get no names";
            self.lacks.extend((!are_told).then(|| lack.to_owned()));
        }
        let are_told = of_launches.then(nodes::begin_launches);
        let are_told = are_told.unwrap_or(Ok(false)).unwrap_or_else(|why| {
            self.lacks.push(format!("launches get no lines: {why}"));
            false
        });
        gate::keep_noticed(&self.cupti, &self.subscription, are_told);
        if options.stalls {
            Callbacks::Modules.set(&self.cupti, &self.subscription, true);
        }
        self.lacks.extend(self.cupti.fault().map(str::to_owned));
        for lack in self.lacks.iter().chain(&self.decoder.sizes.surprises) {
            writer.notice(true, lack);
        }
        writer.publish(&Health::default());

        let counts = Arc::new(Counts::default());
        let flusher = Flusher {
            cupti: self.cupti.clone(),
            pool: self.pool,
            period: options.flush_period,
            counts: Arc::clone(&counts),
            subscription: self.subscription,
            is_late: options.caller == Caller::Attached,
        };
        let decode_thread = DecodeThread {
            pool: self.pool,
            decoder: self.decoder,
            writer,
            counts,
            nodes: log,
            told: false,
            told_timeless: false,
        };
        let (flushes, asked) = bounded(16);
        let (stop, stopped) = bounded(1);
        let (flushed, flusher_gone) = bounded(1);
        let (closing, closed) = bounded::<()>(1);
        let decode = start("cuptop-decode", move || {
            decode_thread.run(&received, &flusher_gone);
            drop(closing);
        })
        .map_err(StartError::Thread)?;
        let flush = start("cuptop-flush", move || {
            flusher.run(self.switch, &stopped, &asked);
            drop(flushed);
        })
        .map_err(StartError::Thread)?;
        let stalls = options
            .stalls
            .then(|| StallThread::start(&self.cupti, commands.clone()));
        let stalls = stalls.transpose().map_err(StartError::Thread)?.flatten();
        Ok(Collector {
            cupti: self.cupti,
            commands: Some(commands),
            stalls,
            flushes,
            stop,
            closed,
            threads: vec![flush, decode],
        })
    }
}

/// What a subscription is set up with, and what is lacking, in sentences.
fn set_up(
    cupti: &Cupti,
    options: &Options,
) -> Result<(&'static Pool, Decoder, Switch, Vec<String>), StartError> {
    let pool = buffers::install(BUFFERS, MOST_BUFFERS, cupti.may_decline_buffers());
    let pool = pool.ok_or(StartError::Memory)?;
    let ranges = options
        .range
        .clone()
        .map(|name| Arc::new(Ranges::called(name)));
    let decoder = Decoder::new(cupti, ranges.clone().map(RangeWatch::new));
    let lacks = enable(cupti, options)?;
    let switch = Switch::new(&options.dir, options, ranges);
    Ok((pool, decoder, switch, lacks))
}

fn refusal(error: &StartError) -> String {
    match error.help() {
        "" => format!("this process runs untraced: {error}"),
        help => format!("this process runs untraced: {error}; {help}"),
    }
}

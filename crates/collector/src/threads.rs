//! The two threads: one makes CUPTI hand out what is complete, one decodes and writes it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use activity::{Activity, Hardware, Health, Overhead, Range, Span, StreamInfo, What};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, never, select};
use cupti_sys::api::SUCCESS;
use cupti_sys::{Cupti, kinds};

use crate::buffers::{self, Pool};
use crate::command::Command;
use crate::decode::Decoder;
use crate::gate;
use crate::nodes::{self, NodeLog};
use crate::options::Ending;
use crate::setup::{Callbacks, Subscription, release};
use crate::switch::Switch;
use recording::file::{Clocks, Entry, State, Writer};

/// Starts a named thread in which all signals are blocked. The program's handlers must not run on it. A
/// file size limit must be an error of the write instead of a signal that ends the program.
pub(crate) fn start(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    // SAFETY: plain old data, filled by the calls that follow.
    let (mut all, mut before) = unsafe { std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>() };
    // SAFETY: both sets are valid places. A new thread inherits the mask of the one that starts it.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body);
    // SAFETY: the mask of before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    thread
}

/// What the flush thread works with.
#[derive(Debug)]
pub(crate) struct Flusher {
    pub(crate) cupti: Cupti,
    pub(crate) pool: &'static Pool,
    pub(crate) period: Duration,
    pub(crate) counts: Arc<Counts>,
    pub(crate) subscription: Subscription,
    /// Whether the program has used CUDA before: then contexts and streams exist that nobody saw made.
    pub(crate) is_late: bool,
}

/// What the flush thread learns and the decode thread publishes.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Records that CUPTI says it dropped.
    dropped: AtomicU64,
    /// Since when records are withheld because something is unfinished; 0 for none.
    oldest_open: AtomicI64,
}

impl Flusher {
    /// Flushes until the end. A sender on `requests` asks for a flush out of turn and is answered when it is done.
    /// `cuptiActivityFlushPeriod` is no substitute: it hands out full buffers only.
    pub(crate) fn run(
        self,
        mut switch: Switch,
        stop: &Receiver<Ending>,
        requests: &Receiver<Sender<()>>,
    ) {
        let mut requests = requests.clone();
        let mut times = FlushTimes::default();
        times.note(1);
        let mut asked = false;
        let ending = loop {
            let ask = select! {
                recv(stop) -> ending => break ending.unwrap_or(Ending::Exit),
                recv(requests) -> ask => match ask {
                    Ok(ask) => Some(ask),
                    Err(_) => { requests = never(); None }
                },
                default(switch.due(self.period)) => None,
            };
            times.note(self.pool.begin_flush());
            buffers::note_flush();
            self.ask_for_devices(&mut asked);
            self.flush(0);
            switch.apply_requests(&self.cupti, || self.hold());
            if nodes::has_just_ended() {
                for callbacks in [Callbacks::Nodes, Callbacks::ChangedNodes] {
                    callbacks.set(&self.cupti, &self.subscription, false);
                }
            }
            self.pool.top_up();
            let oldest = self
                .pool
                .oldest_withheld()
                .and_then(|flush| times.time_of(flush));
            self.counts
                .oldest_open
                .store(oldest.unwrap_or(0), Ordering::Relaxed);
            if let Some(ask) = ask {
                let _ = ask.send(());
            }
        };
        if ending == Ending::Release {
            // What was launched until here is still delivered as it ends.
            switch.end(&self.cupti, || self.hold());
        }
        self.ask_for_devices(&mut asked);
        self.last_flush(ending);
        if ending == Ending::Release {
            release(&self.cupti, self.subscription);
        }
    }

    /// Has CUPTI describe the devices, once. The driver knows them before anything can be enabled, so
    /// enabling their kind alone brings no record. Before the first buffer it is too early to ask.
    fn ask_for_devices(&self, asked: &mut bool) {
        if *asked || !self.pool.was_used() {
            return;
        }
        *asked = true;
        let made_before: &[u32] = if self.is_late {
            &[kinds::CONTEXT, kinds::STREAM]
        } else {
            &[]
        };
        if let Some(enable_and_dump) = self.cupti.api.enable_and_dump {
            for kind in made_before.iter().chain(&[kinds::DEVICE]) {
                // SAFETY: takes a number; this thread is not one of CUPTI's callbacks.
                unsafe { enable_and_dump(*kind) };
            }
        }
    }

    fn flush(&self, flags: u32) {
        // Before the first buffer there is nothing to flush, and in a process that never came to use its GPU
        // the call can hang.
        if !self.pool.was_used() {
            return;
        }
        // SAFETY: this thread is not one of CUPTI's callbacks, and only this thread flushes.
        unsafe { (self.cupti.api.flush_all)(flags) };
        let mut dropped = 0;
        // SAFETY: writes one number; no lock of ours is held.
        let code =
            unsafe { (self.cupti.api.num_dropped)(std::ptr::null_mut(), 0, &raw mut dropped) };
        if code == SUCCESS {
            // Reading it resets it.
            self.counts
                .dropped
                .fetch_add(dropped as u64, Ordering::Relaxed);
        }
    }

    /// Holds the program's launches, and waits until those under way are recorded.
    fn hold(&self) -> gate::Held<'_> {
        const LONGEST: Duration = Duration::from_millis(150);
        let held = gate::hold(&self.cupti, &self.subscription);
        self.drain(LONGEST);
        held
    }

    /// Flushes until nothing is withheld, or for so long.
    fn drain(&self, longest: Duration) {
        let begin = Instant::now();
        self.flush(0);
        while self.pool.unread() > 0 && begin.elapsed() < longest {
            std::thread::sleep(Duration::from_millis(1));
            self.flush(0);
        }
    }

    /// Everything that is complete, then the rest as it is; waits a while for buffers that come back late, and until
    /// they are read. Where the program goes on, first waits a while for the rest to be complete.
    fn last_flush(&self, ending: Ending) {
        const QUIET: Duration = Duration::from_millis(100);
        const LONGEST: Duration = Duration::from_secs(2);
        self.flush(0);
        if ending == Ending::Release {
            self.drain(LONGEST / 2);
        }
        self.flush(kinds::FLUSH_FORCED);
        let begin = Instant::now();
        let (mut last, mut since) = (self.pool.unread(), begin);
        while last > 0 && since.elapsed() < QUIET && begin.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(1));
            let now = self.pool.unread();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        self.counts.oldest_open.store(0, Ordering::Relaxed);
    }
}

/// When the last flushes began. A buffer that CUPTI took after the n-th flush holds nothing older than that flush.
/// So a launch pays for reading a counter, not a clock.
#[derive(Debug, Default)]
struct FlushTimes {
    times: VecDeque<i64>,
    /// The number of the newest.
    newest: u64,
}

impl FlushTimes {
    /// As far back as is told apart: with 20 ms between flushes some minutes.
    const MOST: usize = 1 << 14;

    fn note(&mut self, flush: u64) {
        self.times.push_back(Clocks::now().realtime);
        if self.times.len() > Self::MOST {
            self.times.pop_front();
        }
        self.newest = flush;
    }

    /// The time of a flush that has another one behind it; of one too long ago, the oldest known.
    fn time_of(&self, flush: u64) -> Option<i64> {
        let back = usize::try_from(self.newest.checked_sub(flush)?).ok()?;
        if back == 0 {
            return None;
        }
        let at = self.times.len().saturating_sub(1 + back);
        self.times.get(at).copied()
    }
}

/// What the decode thread works with.
#[derive(Debug)]
pub(crate) struct DecodeThread {
    pub(crate) pool: &'static Pool,
    pub(crate) decoder: Decoder,
    pub(crate) writer: Writer,
    pub(crate) counts: Arc<Counts>,
    pub(crate) nodes: NodeLog,
    /// Whether the user knows that buffers ran out.
    pub(crate) told: bool,
    /// Whether the user knows that CUPTI loses the times of graphs.
    pub(crate) told_timeless: bool,
}

/// Kernels of graphs without times that are no accident. CUPTI 13.0 with driver 580 made them after some 10^6 to 10^7
/// kernels, and from there on of all.
const TIMELESS: u64 = 100;
/// Times between two counters in the header while nothing happens: a reader sees that the process lives.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Times between two looks at what the flush thread counted while no buffer comes.
const TICK: Duration = Duration::from_millis(50);

impl DecodeThread {
    /// Decodes until the program is done talking and the flush thread is gone.
    pub(crate) fn run(mut self, commands: &Receiver<Command>, flusher_gone: &Receiver<()>) {
        let mut published = Health::default();
        let mut last = Instant::now();
        let mut ending = false;
        loop {
            let mut waiting = None;
            let mut busy = true;
            select! {
                recv(self.pool.done.receiver()) -> completed => if let Ok(completed) = completed {
                    self.buffer(&completed);
                },
                recv(commands) -> command => match command {
                    Ok(command) => waiting = self.command(command),
                    Err(_) => ending = true,
                },
                recv(flusher_gone) -> _ => ending = true,
                default(TICK) => busy = false,
            }
            self.drain();
            while let Ok(command) = commands.try_recv() {
                waiting = self.command(command).or(waiting);
            }
            self.count();
            self.decoder.check_clocks(&mut self.writer);
            self.nodes.write(&mut self.writer);
            if busy || self.decoder.health != published || last.elapsed() >= HEARTBEAT {
                self.writer.publish(&self.decoder.health);
                // A new part of the recording is another file.
                crate::fork::watch(self.writer.descriptor());
                published = self.decoder.health;
                last = Instant::now();
            }
            if let Some(waiting) = waiting {
                let _ = waiting.send(());
            }
            if ending {
                let gone = flusher_gone.recv_timeout(Duration::from_secs(10));
                if gone == Err(RecvTimeoutError::Timeout) {
                    let text = "CUPTI did not come back from its last flush";
                    self.writer.notice(true, text);
                } else {
                    self.drain();
                }
                break;
            }
        }
        let unread = self.pool.unread() as u64;
        if unread > 0 {
            let text = format!("CUPTI did not give back {unread} buffers with records");
            self.writer.notice(true, &text);
            // At least one in each: how many there are nobody knows.
            self.decoder.health.lost += unread;
        }
        let watch = self.decoder.marks.watch.as_ref();
        if let Some(text) = watch.and_then(|it| it.ranges.summary()) {
            self.writer.notice(true, &text);
        }
        self.nodes.write(&mut self.writer);
        nodes::end();
        self.decoder.end(&mut self.writer);
        self.count();
        crate::fork::forget();
        self.writer.close(&self.decoder.health, State::Closed);
    }

    /// Decodes what is there by now.
    fn drain(&mut self) {
        while let Some(completed) = self.pool.done.take() {
            self.buffer(&completed);
        }
    }

    fn buffer(&mut self, completed: &crate::buffers::Completed) {
        let (decoder, writer) = (&mut self.decoder, &mut self.writer);
        self.pool
            .consume(completed, |bytes| decoder.buffer(bytes, writer));
        if self.writer.is_part_full() {
            // Before the next buffer: a recording must not outgrow its limit between two rounds.
            self.writer.publish(&self.decoder.health);
            crate::fork::watch(self.writer.descriptor());
        }
    }

    /// Takes over what the other threads counted.
    fn count(&mut self) {
        if self.pool.take_declined() > 0 && !self.told {
            self.told = true;
            self.writer.notice(
                true,
                "more records wait for unfinished work than there are buffers for: CUPTI drops some",
            );
        }
        let health = &mut self.decoder.health;
        if self.decoder.timeless_nodes >= TIMELESS && !self.told_timeless {
            self.told_timeless = true;
            self.writer.notice(
                true,
                "CUPTI delivers kernels of CUDA graphs without times: it is known to lose them in long runs of graphs; \
                 they are counted and not shown",
            );
        }
        // Of a discarded buffer only the bytes are known: records are of about this length.
        health.lost += self.pool.take_discarded().div_ceil(128);
        health.dropped = self.counts.dropped.load(Ordering::Relaxed);
        let oldest = self.counts.oldest_open.load(Ordering::Relaxed);
        health.oldest_open = Some(oldest).filter(|time| *time != 0);
    }

    fn command(&mut self, command: Command) -> Option<Sender<()>> {
        match command {
            Command::Range {
                kind,
                name,
                index,
                thread,
                start,
                end,
            } => {
                let name = self.writer.name(name.as_bytes());
                let range = Range {
                    kind,
                    name,
                    thread,
                    index,
                };
                self.record(Span::new(start, end), What::Range(range));
            }
            Command::Overhead { name, span } => {
                let name = self.writer.name(name.as_bytes());
                self.record(span, What::Overhead(Overhead { name, thread: 0 }));
            }
            Command::Stream { place, name } => self.writer.add(&Entry::Stream(StreamInfo {
                name,
                ..StreamInfo::at(place)
            })),
            Command::Mode(mode) => self.writer.add(&Entry::Mode(mode)),
            Command::Notice { is_warning, text } => self.writer.notice(is_warning, &text),
            Command::Stalls(it) => self.writer.add(&Entry::Hardware(Hardware::Stalls(it))),
            Command::Flush(done) => return Some(done),
        }
        None
    }

    fn record(&mut self, span: Span, what: What) {
        self.decoder.health.received += 1;
        self.writer.record(&Activity::new(span, 0, what));
    }
}

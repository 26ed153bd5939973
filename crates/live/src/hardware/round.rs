//! The thread: a round of looks, then a pause.

use std::collections::{HashMap, hash_map};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use recording::file::{Clocks, Writer};
use rustix::time::ClockId;

use super::finder::Finder;
use super::gpu::WatchedGpu;
use super::sampled::SampledGpus;
use super::threads::ProcessThreads;
use super::{BUDGET, LONGEST, PERIOD, Wanted};
use crate::clock::read;
use crate::counters::Counters;
use crate::nvml::Nvml;
use activity::entry::Entry;
use activity::feed::Pause;
use activity::{Hardware, Uuid, WatchCost};

/// How soon it is noticed that looking is wanted again.
const PAUSE: Duration = Duration::from_millis(20);
/// Time between two accounts of what it took.
const ACCOUNT: Duration = Duration::from_secs(1);

/// The state of the thread.
pub(super) struct Rounds {
    pub(super) directory: PathBuf,
    pub(super) wanted: Arc<Mutex<Wanted>>,
    pub(super) looking: Pause,
    pub(super) counters: Counters,
    pub(super) settled: Arc<AtomicUsize>,
    pub(super) begin: Clocks,
}

/// What the thread has open. Not everything of it may go from thread to thread.
struct Open {
    directory: PathBuf,
    begin: Clocks,
    nvml: Option<Nvml>,
    has_tried: bool,
    finder: Option<Finder>,
    gpus: HashMap<Uuid, Option<WatchedGpu>>,
    processes: HashMap<u32, ProcessThreads>,
    /// By process; of the machine under 0. They are made when there is something to write.
    files: HashMap<u32, Writer>,
    cost: WatchCost,
    sampled: SampledGpus,
}

impl Rounds {
    /// Looks until `stopped` says that nobody wants it any more.
    pub(super) fn run(self, stopped: &Receiver<()>) {
        let sampled = SampledGpus::new(&self.directory, self.counters);
        let mut open = Open {
            directory: self.directory,
            begin: self.begin,
            nvml: None,
            has_tried: false,
            finder: None,
            gpus: HashMap::new(),
            processes: HashMap::new(),
            files: HashMap::new(),
            cost: WatchCost::default(),
            sampled,
        };
        let mut pace = Pace::new();
        let mut next = pace.began + PERIOD;
        loop {
            let turn = Instant::now();
            let wait = next.saturating_duration_since(turn);
            match stopped.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => break,
            }
            if self.looking.is_held() {
                next = Instant::now() + PAUSE;
                pace.paused += turn.elapsed();
                open.sampled.pause();
                continue;
            }
            let mut wanted = self
                .wanted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            if wanted == Wanted::default() {
                next = Instant::now() + PERIOD;
                continue;
            }
            let found = open.find(&mut wanted);
            let opening = found.into_iter().chain(open.open(&wanted)).collect();
            let before = read(ClockId::ThreadCPUTime);
            let is_due = pace.accounted.elapsed() >= ACCOUNT;
            if is_due {
                pace.account(&mut open.cost, before);
            }
            open.read_all(&wanted, opening, is_due);
            self.settled
                .store(open.sampled.settled(), Ordering::Relaxed);
            let took = read(ClockId::ThreadCPUTime).saturating_sub(before);
            next = Instant::now() + pace.pause_after(took);
        }
        let killed = open.sampled.end().into_iter().map(Hardware::Note);
        open.write(0, killed.map(Entry::Hardware));
        pace.account(&mut open.cost, read(ClockId::ThreadCPUTime));
        if open.cost.rounds > 0 {
            open.write(0, [Entry::Hardware(Hardware::Cost(open.cost))]);
        }
        for file in open.files.into_values() {
            file.finish();
        }
    }
}

/// What rounds take.
struct Pace {
    began: Instant,
    accounted: Instant,
    /// Time in which nobody wanted a look: it counts in no share.
    paused: Duration,
    /// Seconds of one round, as a mean that forgets.
    usual: f64,
}

impl Pace {
    fn new() -> Pace {
        let began = Instant::now();
        Pace {
            began,
            accounted: began,
            paused: Duration::ZERO,
            usual: 0.0,
        }
    }

    fn account(&mut self, cost: &mut WatchCost, spent: Duration) {
        self.accounted = Instant::now();
        cost.cpu_ns = as_ns(spent);
        cost.wall_ns = as_ns(self.began.elapsed().saturating_sub(self.paused));
    }

    /// How long to wait after a round that took so much, so that all of them stay within the budget.
    fn pause_after(&mut self, took: Duration) -> Duration {
        let took = took.as_secs_f64();
        self.usual = match self.usual {
            0.0 => took,
            usual => 0.8 * usual + 0.2 * took,
        };
        Duration::from_secs_f64(self.usual / BUDGET).clamp(PERIOD, LONGEST)
    }
}

fn as_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Open {
    /// Adds the GPUs of a process that records nothing. What is to be said comes back.
    fn find(&mut self, wanted: &mut Wanted) -> Vec<Hardware> {
        let Some(root) = wanted.root else {
            return Vec::new();
        };
        let mut said = self.load();
        let finder = self.finder.get_or_insert_with(|| Finder::new(root));
        if let Some(nvml) = self.nvml {
            said.extend(finder.find(nvml, Instant::now()));
        }
        wanted.gpus.extend(&finder.gpus);
        wanted.processes.extend(&finder.processes);
        said
    }

    /// Loads NVML, once. Why it cannot be comes back.
    fn load(&mut self) -> Vec<Hardware> {
        if std::mem::replace(&mut self.has_tried, true) {
            return Vec::new();
        }
        match Nvml::load() {
            Ok(nvml) => {
                self.nvml = Some(nvml);
                Vec::new()
            }
            Err(error) => vec![Hardware::Note(format!(
                "no hardware rows: {error}; in a container, NVIDIA_DRIVER_CAPABILITIES needs utility"
            ))],
        }
    }

    /// Opens what is newly wanted, which takes long and is none of a round's time. What is to be said comes back.
    fn open(&mut self, wanted: &Wanted) -> Vec<Hardware> {
        let mut said = Vec::new();
        if !wanted.gpus.is_empty() {
            said = self.load();
        }
        let Some(nvml) = self.nvml else {
            return said;
        };
        for uuid in &wanted.gpus {
            if self.gpus.contains_key(uuid) {
                continue;
            }
            let found = WatchedGpu::open(nvml, *uuid);
            if let Err(text) = &found {
                said.push(Hardware::Note(text.clone()));
            }
            self.gpus.insert(*uuid, found.ok());
        }
        said
    }

    /// One round.
    fn read_all(&mut self, wanted: &Wanted, mut said: Vec<Hardware>, with_cost: bool) {
        self.cost.rounds += 1;
        for gpu in self.gpus.values_mut().flatten() {
            said.extend(gpu.read(&wanted.processes, &self.sampled.ids()));
        }
        for uuid in &wanted.gpus {
            let gpu = self.gpus.get(uuid).and_then(Option::as_ref);
            said.extend(self.sampled.follow(*uuid, gpu).map(Hardware::Note));
        }
        if with_cost {
            said.push(Hardware::Cost(self.cost));
        }
        self.write(0, said.into_iter().map(Entry::Hardware));
        for &(pid, thread) in &wanted.threads {
            let process = self
                .processes
                .entry(pid)
                .or_insert_with(|| ProcessThreads::new(pid));
            process.watch(thread);
        }
        let mut processes = std::mem::take(&mut self.processes);
        for (&pid, process) in &mut processes {
            self.write(pid, process.read().into_iter().map(Entry::OffCpu));
        }
        self.processes = processes;
    }

    /// Writes what was seen. What cannot be written is counted.
    fn write<'a>(&mut self, pid: u32, said: impl IntoIterator<Item = Entry<'a>>) {
        let mut said = said.into_iter().peekable();
        if said.peek().is_none() {
            return;
        }
        let made = match self.files.entry(pid) {
            hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            hash_map::Entry::Vacant(entry) => {
                Writer::outside(&self.directory, pid, self.begin).map(|it| entry.insert(it))
            }
        };
        let Ok(file) = made else {
            self.cost.lost += 1;
            return;
        };
        said.for_each(|it| file.add(&it));
        self.cost.lost += u64::from(file.flush().is_err());
    }
}

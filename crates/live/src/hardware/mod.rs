//! Watching the machine while a program runs: its GPUs through NVML, its launching threads through /proc.
//!
//! One thread, about ten rounds a second, seldomer where they would take more than [`BUDGET`] of one core. What it reads goes to
//! recordings from outside, beside the program's own, so that it comes to the timeline the way everything else does. The records
//! that pass by tell which GPUs and threads are worth reading ([`HardwareWatch::note`]). A program that never comes to use CUDA costs
//! nothing. Of a program that runs already there are none: its GPUs are looked for (`finder`).

mod cgroup;
pub(crate) mod finder;
mod gpu;
mod occupants;
mod round;
mod sampled;
mod threads;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use recording::file::Clocks;

use crate::counters::Counters;
use crate::nvml::Nvml;
use activity::feed::{Gone, Joined, Message, Outlet, Pause};
use activity::{Batch, Def, Hardware, OffCpu, Owner, Uuid, What};

/// The least time between two looks. NVML's counters are refreshed every 100 ms, and two samples that lie nearer to each
/// other may tell nothing (nvml.h).
const PERIOD: Duration = Duration::from_millis(105);
/// The most time between two looks.
const LONGEST: Duration = Duration::from_secs(5);
/// The part of one core that looking may take.
const BUDGET: f64 = 0.02;
/// Records of a batch that are looked at for devices and threads. Those that are missed come again.
const GLANCE: usize = 16;

/// What the thread is to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// A process that records nothing, whose GPUs are to be found.
    root: Option<u32>,
    gpus: BTreeSet<Uuid>,
    /// Process and thread.
    threads: BTreeSet<(u32, u32)>,
    /// Every process that recorded something.
    processes: BTreeSet<u32>,
}

/// A process, as its records tell of it.
#[derive(Debug, Default)]
struct SeenProcess {
    pid: u32,
    /// What it may use.
    devices: HashMap<u32, Uuid>,
    /// Whether one of them is known to be used.
    has_gpu: bool,
}

/// The thread that looks. Dropping it ends it.
pub(super) struct HardwareWatch {
    wanted: Arc<Mutex<Wanted>>,
    /// The same, without the lock.
    known: Wanted,
    /// GPUs whose counters are sampled, or cannot be: their number.
    settled: Arc<AtomicUsize>,
    seen: HashMap<u32, SeenProcess>,
    /// Processes of the program that NVML listed on a GPU, by id.
    listed: BTreeMap<u32, String>,
    _thread: Joined,
}

impl HardwareWatch {
    /// Starts it; its files go to `directory`, which must exist. It looks while that is wanted. The GPUs of `root`, a process that
    /// records nothing, and of what it started are found from outside.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(
        directory: &Path,
        looking: Pause,
        counters: Counters,
        root: Option<u32>,
    ) -> io::Result<HardwareWatch> {
        let known = Wanted {
            root,
            ..Wanted::default()
        };
        let wanted = Arc::new(Mutex::new(known.clone()));
        let settled = Arc::new(AtomicUsize::new(0));
        let rounds = round::Rounds {
            directory: directory.to_path_buf(),
            wanted: Arc::clone(&wanted),
            looking,
            counters,
            settled: Arc::clone(&settled),
            begin: Clocks::now(),
        };
        Ok(HardwareWatch {
            wanted,
            known,
            settled,
            seen: HashMap::new(),
            listed: BTreeMap::new(),
            _thread: Joined::until_dropped("cuptop-hardware", |stopped| rounds.run(stopped))?,
        })
    }

    /// Samples these GPUs before anything is recorded of them.
    pub(super) fn sample(&mut self, gpus: Vec<Uuid>) {
        let gpus = gpus.into_iter().collect();
        self.learn(Wanted {
            gpus,
            ..Wanted::default()
        });
    }

    /// Whether the counters of every known GPU are sampled, or cannot be.
    pub(super) fn has_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed) >= self.known.gpus.len()
    }

    /// Learns from a message that passes by what is worth a look. What is to be said about watching comes back.
    fn note(&mut self, message: &Message) -> Option<String> {
        let Message::Batch(batch) = message else {
            return None;
        };
        let seen = self.seen.entry(batch.process).or_default();
        for def in &batch.defs {
            match def {
                Def::Process(info) => seen.pid = info.pid,
                Def::Device(info) => {
                    if let Some(uuid) = info.uuid {
                        seen.devices.insert(info.id, uuid);
                    }
                }
                _ => {}
            }
        }
        let mut found = Wanted::default();
        if seen.pid != 0 {
            found.processes.insert(seen.pid);
        }
        // CUPTI keeps a buffer while one of its kernels runs: the first operation may lie among calls, the next come seconds later.
        let step = if seen.has_gpu {
            batch.items.len() / GLANCE + 1
        } else {
            1
        };
        let only = seen
            .devices
            .values()
            .next()
            .filter(|_| seen.devices.len() == 1);
        for item in batch.items.iter().step_by(step) {
            if let What::Call(call) = item.what
                && seen.pid != 0
            {
                found.threads.insert((seen.pid, call.thread));
                found.gpus.extend(only);
            }
            let place = item.place();
            found
                .gpus
                .extend(place.and_then(|it| seen.devices.get(&it.device)));
        }
        seen.has_gpu |= !found.gpus.is_empty();
        self.learn(found);
        for it in &batch.hardware {
            if let Hardware::Occupants { all, .. } = it {
                let programs = all.iter().filter(|it| it.owner == Owner::Program);
                self.listed
                    .extend(programs.map(|it| (it.pid, it.name.clone())));
            }
        }
        note_of(batch)
    }

    /// The processes of the program that were seen on a GPU: their ids and names.
    pub(super) fn listed(&self) -> Vec<(u32, String)> {
        self.listed.clone().into_iter().collect()
    }

    fn learn(&mut self, found: Wanted) {
        let is_known = found.gpus.is_subset(&self.known.gpus)
            && found.threads.is_subset(&self.known.threads)
            && found.processes.is_subset(&self.known.processes);
        if is_known {
            return;
        }
        self.known.gpus.extend(found.gpus);
        self.known.threads.extend(found.threads);
        self.known.processes.extend(found.processes);
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = self.known.clone();
    }
}

/// Whether this machine's NVML can be asked.
///
/// # Errors
/// Why not.
pub(super) fn is_readable() -> Result<(), String> {
    Nvml::load().map(drop)
}

/// Sends a message on to whoever shows the timeline, and learns from it what to watch.
///
/// # Errors
/// When nobody reads any more.
pub(super) fn pass_on(
    watch: &mut Option<HardwareWatch>,
    message: Message,
    outlet: &Outlet,
) -> Result<(), Gone> {
    let note = watch.as_mut().and_then(|watch| watch.note(&message));
    outlet.send(message)?;
    note.map_or(Ok(()), |text| outlet.notice(false, text))
}

/// What the watching thread has to say, on its way through the recording.
fn note_of(batch: &Batch) -> Option<String> {
    let hardware = batch.hardware.iter().filter_map(|it| match it {
        Hardware::Note(text) => Some(text),
        _ => None,
    });
    let off_cpu = batch.off_cpu.iter().filter_map(|it| match it {
        OffCpu::Note(text) => Some(text),
        _ => None,
    });
    hardware.chain(off_cpu).next().cloned()
}

#[cfg(test)]
mod tests;

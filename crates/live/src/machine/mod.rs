//! What this machine's GPUs do now, and who uses them: what there is to see before anything is recorded.
//!
//! A thread asks NVML twice a second, and /proc what is known of the processes that NVML names.

mod process;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::hardware::finder::{self, Known};
use crate::nvml::{self, Device, Nvml};
use crate::rights::processes;
use activity::feed::Joined;
use process::{Proc, is_own_namespace_the_drivers};
pub use process::{Seen, Sight};

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(500);
/// Looks that are remembered: a minute.
pub const PAST: usize = 120;
/// How old a sample of a process's share may be.
const RECENT: Duration = Duration::from_secs(2);
/// Looks between two searches among all processes' open files.
const SEARCHES: usize = 4;

/// The GPUs of this machine, in NVML's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub gpus: Vec<GpuLoad>,
}

impl Machine {
    /// A process and its GPU, by NVML's number.
    pub fn process(&self, gpu: u32, pid: u32) -> Option<(&GpuLoad, &ProcessLoad)> {
        let gpu = self.gpus.iter().find(|it| it.index == gpu)?;
        let process = gpu.processes.iter().find(|it| it.pid == pid)?;
        Some((gpu, process))
    }
}

/// A GPU, as far as NVML tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuLoad {
    /// NVML's number.
    pub index: u32,
    pub name: String,
    /// Percent of the last sample period in which a kernel ran.
    pub busy: Option<u32>,
    /// Bytes in use, and all.
    pub memory: Option<(u64, u64)>,
    /// Milliwatts.
    pub power: Option<u32>,
    /// `busy` at the last looks, the newest last, [`PAST`] at most; `None` where nobody looked.
    pub past: Vec<Option<u32>>,
    pub processes: Vec<ProcessLoad>,
}

/// A process on a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessLoad {
    /// As NVML numbers it, or as this process namespace does where `is_listed` is false.
    pub pid: u32,
    pub sight: Sight,
    /// Bytes of the GPU's memory.
    pub memory: Option<u64>,
    /// Percent of the multiprocessors' time.
    pub share: Option<u32>,
    /// Whether it draws and does not compute.
    pub draws: bool,
    /// Whether NVML lists it; else its open device files say that it may use the GPU.
    pub is_listed: bool,
}

impl ProcessLoad {
    /// When it began, where that is known.
    pub fn began(&self) -> Option<u64> {
        match &self.sight {
            Sight::Seen(seen) => Some(seen.began),
            _ => None,
        }
    }

    /// The right to attach to it, or what is in the way and helps.
    ///
    /// # Errors
    /// Why it cannot be attached to.
    pub fn right(&self) -> Result<&str, &str> {
        match &self.sight {
            Sight::Seen(seen) => seen.right.as_deref().map_err(String::as_str),
            Sight::Hidden => Err("/proc hides it from you. As root you see it: sudo cuptop"),
            Sight::Elsewhere => Err(
                "It is not in /proc here: it ended, or runs in another container or on the host. Run cuptop there.",
            ),
        }
    }
}

/// The thread that looks. Dropping it ends it.
pub struct MachineWatch {
    /// What it saw. As long as nobody takes it the thread does not look again.
    pub machines: Receiver<Machine>,
    _thread: Joined,
}

/// Begins to watcher. Without NVML or a GPU nothing ever comes, and the channel closes.
///
/// # Errors
/// When the system gives no thread.
pub fn watch() -> io::Result<MachineWatch> {
    let (sender, machines) = bounded(1);
    let follow = move |stopped: &Receiver<()>| follow(&sender, stopped);
    let _thread = Joined::until_dropped("cuptop-machine", follow)?;
    Ok(MachineWatch { machines, _thread })
}

fn follow(machines: &Sender<Machine>, stopped: &Receiver<()>) {
    let Ok(nvml) = Nvml::load() else {
        return;
    };
    let mut watcher = Watcher::open(nvml);
    let mut next = Instant::now();
    while !watcher.gpus.is_empty() {
        if machines.is_full() {
            watcher.remember(&[]);
        } else if machines.try_send(watcher.machine()).is_err() {
            return;
        }
        next = (next + PERIOD).max(Instant::now());
        match stopped.recv_deadline(next) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// What the thread has open. Not everything of it may go from thread to thread.
struct Watcher {
    gpus: Vec<(Known, Device)>,
    /// How busy each was at the last looks.
    past: Vec<VecDeque<Option<u32>>>,
    proc: Proc,
    /// Whether the ids that NVML gives are those of /proc here.
    has_drivers_ids: bool,
    /// Where they are not: who has the device files of which GPUs open.
    local: Vec<(u32, BTreeSet<u32>)>,
    looks: usize,
}

impl Watcher {
    fn open(nvml: Nvml) -> Watcher {
        let devices = nvml.devices().unwrap_or_default();
        let gpus = (0..).zip(devices);
        let gpus = gpus.filter_map(|(i, device)| Some((finder::known((i, &device))?, device)));
        Watcher {
            gpus: gpus.collect(),
            past: Vec::new(),
            proc: Proc::open(),
            has_drivers_ids: is_own_namespace_the_drivers(),
            local: Vec::new(),
            looks: 0,
        }
    }

    /// Adds to the past of each GPU; where nothing is given, that nobody looked.
    fn remember(&mut self, busy: &[Option<u32>]) {
        self.past.resize_with(self.gpus.len(), VecDeque::new);
        for (i, past) in self.past.iter_mut().enumerate() {
            past.push_back(busy.get(i).copied().flatten());
            past.drain(..past.len().saturating_sub(PAST));
        }
    }

    fn machine(&mut self) -> Machine {
        if !self.has_drivers_ids && self.looks.is_multiple_of(SEARCHES) {
            let known: Vec<Known> = self.gpus.iter().map(|it| it.0.clone()).collect();
            self.local = users_by_files(&known);
        }
        self.looks += 1;
        self.proc.refresh();
        let busy: Vec<_> = self.gpus.iter().map(|it| nvml::busy(&it.1)).collect();
        self.remember(&busy);
        let gpus = self.gpus.iter().zip(&self.past).zip(busy);
        let gpus = gpus.map(|(((known, device), past), busy)| GpuLoad {
            index: known.identity.index,
            name: known.identity.name.clone(),
            busy,
            memory: device.memory_info().ok().map(|it| (it.used, it.total)),
            power: device.power_usage().ok(),
            past: past.iter().copied().collect(),
            processes: self.processes(known, device),
        });
        Machine {
            gpus: gpus.collect(),
        }
    }

    fn processes(&self, known: &Known, device: &Device) -> Vec<ProcessLoad> {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let since = since.saturating_sub(RECENT).as_micros();
        let shares = nvml::process_shares(device, since as u64);
        let local = self.local.iter();
        let local = local.filter(|it| it.1.contains(&known.identity.index));
        let local: Vec<u32> = local.map(|it| it.0).collect();
        let mut all: Vec<ProcessLoad> = Vec::new();
        let computes = nvml::processes(device).unwrap_or_default();
        let lists = [computes, nvml::graphics_processes(device)];
        for (list, draws) in lists.into_iter().zip([false, true]) {
            for it in list {
                // A number that has the GPU's files open here is ours, whatever the namespace.
                let is_ours = self.has_drivers_ids || local.contains(&it.pid);
                let share = |all: &BTreeMap<_, _>| all.get(&it.pid).copied().unwrap_or(0);
                all.push(ProcessLoad {
                    pid: it.pid,
                    sight: match is_ours {
                        true => self.proc.sight(it.pid),
                        false => Sight::Elsewhere,
                    },
                    memory: it.memory,
                    share: shares.as_ref().map(share),
                    draws,
                    is_listed: true,
                });
            }
        }
        all.extend(local.into_iter().map(|pid| ProcessLoad {
            pid,
            sight: self.proc.sight(pid),
            ..ProcessLoad::default()
        }));
        // Who computes and draws is one; what NVML says goes first.
        all.sort_by_key(|it| (it.pid, !it.is_listed, it.draws));
        all.dedup_by_key(|it| it.pid);
        all.sort_by_key(|it| (!it.is_listed, it.draws, it.pid));
        all
    }
}

/// The processes here that may use CUDA on GPUs by the files that they have open, and which.
fn users_by_files(known: &[Known]) -> Vec<(u32, BTreeSet<u32>)> {
    let mut found: Vec<(u32, BTreeSet<u32>)> = processes()
        .map(|pid| {
            let open = finder::opened_by(pid, known);
            (pid, open.iter().map(|it| it.identity.index).collect())
        })
        .collect();
    found.retain(|it| !it.1.is_empty());
    found.sort_unstable();
    found
}

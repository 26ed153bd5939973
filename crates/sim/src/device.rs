//! One device: its copy engines, its multiprocessors, and how fast what runs on them proceeds.
//!
//! Operations are fluid: each has work left and a rate, and all rates are set anew when something starts or ends. A
//! copy engine serves one copy at a time. Kernels share the multiprocessors: the one that started first takes the share
//! that it can fill, the next takes from the rest. A kernel that got less than it can fill runs slower until more is
//! free. When together they want more memory bandwidth than there is, those that depend on it slow down.

use std::collections::{BTreeMap, VecDeque};

use super::meter::{Levels, Meter};
use super::program::{Engine, Operation};
use activity::{Correlation, Ns, Span, What};
use profile::Profile;

/// Shares below this are rounding errors.
const NO_SHARE: f64 = 1e-6;
/// Work below this is done (nanoseconds).
const NO_WORK: f64 = 1e-6;

/// An operation on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    /// What runs.
    pub op: Operation,
    /// Whose it is.
    pub owner: Owner,
    /// The call that caused it.
    pub correlation: Correlation,
    /// When it started; 0 while it waits.
    pub start: Ns,
    /// Nanoseconds of work left at full speed.
    left: f64,
    /// Work done in a nanosecond.
    rate: f64,
    /// The share of the multiprocessors it has.
    share: f64,
}

/// Who learns of an operation's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The stream at whose head it stands.
    pub stream: u32,
    /// The node, when the head is a graph.
    pub node: Option<u32>,
}

/// A copy engine and the copies that wait for it.
#[derive(Debug, Default)]
struct CopyEngine {
    waiting: VecDeque<Active>,
    is_busy: bool,
    /// The engine is not ready before.
    free_at: Ns,
}

/// One device.
#[derive(Debug, Default)]
pub(super) struct Device {
    running: Vec<Active>,
    /// H2D, D2H, D2D, Peer.
    engines: [CopyEngine; 4],
    /// Kernels that wait for room, by priority and then by age.
    kernels: BTreeMap<(i32, u64), Active>,
    age: u64,
    /// Work left is as of this time.
    updated: Ns,
    /// Pause of an engine between two copies.
    copy_gap: Ns,
    /// Rate of a copy from the host while one to the host runs, and the reverse.
    h2d_shared: f64,
    d2h_shared: f64,
    concurrent: usize,
    /// Bytes of its memory in a nanosecond, at most.
    memory_gbps: f64,
    /// Its counters, where they are sampled.
    pub meter: Option<Meter>,
    /// A turn that was requested under an older number is out of date.
    pub generation: u64,
}

impl Device {
    pub(super) fn new(profile: &Profile) -> Device {
        let c = &profile.copy;
        Device {
            copy_gap: profile.latency.copy_to_copy_ns,
            h2d_shared: (c.h2d_shared_gbps / c.h2d_gbps).min(1.0),
            d2h_shared: (c.d2h_shared_gbps / c.d2h_gbps).min(1.0),
            concurrent: profile.kernel.concurrent as usize,
            memory_gbps: profile.device.memory_gbps,
            ..Device::default()
        }
    }

    /// Queues an operation whose stream lets it run. It starts in this or a later [`Device::turn`].
    pub(super) fn request(
        &mut self,
        op: Operation,
        owner: Owner,
        correlation: Correlation,
        priority: i32,
    ) {
        let active = Active {
            op,
            owner,
            correlation,
            start: 0,
            left: op.ns.max(1) as f64,
            rate: 0.0,
            share: 0.0,
        };
        match engine_index(op.engine) {
            Some(index) => self.engines[index].waiting.push_back(active),
            None => {
                self.kernels.insert((priority, self.age), active);
                self.age += 1;
            }
        }
    }

    /// Brings the device to `now`: what is done moves to `done`, what can start starts. Returns when the
    /// next turn is due if nothing else happens.
    pub(super) fn turn(&mut self, now: Ns, done: &mut Vec<Active>) -> Option<Ns> {
        self.generation += 1;
        self.progress(now, done);
        self.start_copies(now);
        self.start_kernels(now);
        self.set_rates();
        self.next_turn(now)
    }

    fn progress(&mut self, now: Ns, done: &mut Vec<Active>) {
        let levels = self.meter.as_ref().map(|_| self.levels());
        if let (Some(meter), Some(levels)) = (&mut self.meter, levels) {
            meter.count(Span::new(self.updated, now), levels);
        }
        let passed = (now - self.updated) as f64;
        self.updated = now;
        for active in &mut self.running {
            active.left -= passed * active.rate;
        }
        let (engines, gap) = (&mut self.engines, self.copy_gap);
        self.running.retain(|active| {
            if active.left > NO_WORK {
                return true;
            }
            if let Some(index) = engine_index(active.op.engine) {
                engines[index].is_busy = false;
                engines[index].free_at = now + gap;
            }
            done.push(*active);
            false
        });
    }

    /// What counters see of all that runs.
    fn levels(&self) -> Levels {
        let [mut sm, mut issue, mut dram, mut from_host, mut to_host] = [0.0; 5];
        for active in &self.running {
            if let Engine::Compute { share, load, .. } = active.op.engine {
                sm += load.sm * active.share / share;
                issue += load.issue * active.rate;
                dram += load.dram * active.rate;
            }
            let What::Copy(copy) = active.op.what else {
                continue;
            };
            let gbps = copy.bytes as f64 / active.op.ns.max(1) as f64 * active.rate;
            match active.op.engine {
                Engine::H2D => from_host += gbps * 1e9,
                Engine::D2H => to_host += gbps * 1e9,
                _ => {}
            }
            // A copy within the device reads what it writes.
            let times = if active.op.engine == Engine::D2D {
                2.0
            } else {
                1.0
            };
            dram += times * gbps / self.memory_gbps;
        }
        let share = |it: f64| it.min(1.0);
        [
            share(sm),
            share(issue),
            0.0,
            share(dram),
            from_host,
            to_host,
        ]
    }

    fn start_copies(&mut self, now: Ns) {
        for engine in &mut self.engines {
            if engine.is_busy || engine.free_at > now {
                continue;
            }
            if let Some(mut active) = engine.waiting.pop_front() {
                engine.is_busy = true;
                active.start = now;
                self.running.push(active);
            }
        }
    }

    fn start_kernels(&mut self, now: Ns) {
        let mut count = 0;
        let mut free = 1.0;
        for active in &mut self.running {
            if let Engine::Compute { share, .. } = active.op.engine {
                count += 1;
                active.share = share.min(free);
                free -= active.share;
            }
        }
        while free > NO_SHARE && count < self.concurrent {
            let Some((_, mut active)) = self.kernels.pop_first() else {
                break;
            };
            if let Engine::Compute { share, .. } = active.op.engine {
                active.share = share.min(free);
            }
            active.start = now;
            free -= active.share;
            count += 1;
            self.running.push(active);
        }
    }

    fn set_rates(&mut self) {
        let is_running = |engine| self.running.iter().any(|a| a.op.engine == engine);
        let beside = |other, share| if is_running(other) { share } else { 1.0 };
        let h2d = beside(Engine::D2H, self.h2d_shared);
        let d2h = beside(Engine::H2D, self.d2h_shared);
        let demand: f64 = (self.running.iter())
            .map(|a| match a.op.engine {
                Engine::Compute { share, memory, .. } => memory * a.share / share,
                Engine::D2D => 1.0,
                Engine::H2D | Engine::D2H | Engine::Peer => 0.0,
            })
            .sum();
        let supply = if demand > 1.0 { 1.0 / demand } else { 1.0 };
        for active in &mut self.running {
            active.rate = match active.op.engine {
                // The part of a kernel's time that is memory traffic stretches, the rest does not.
                Engine::Compute { share, memory, .. } => {
                    active.share / share * (1.0 - memory * (1.0 - supply))
                }
                Engine::D2D => supply,
                Engine::H2D => h2d,
                Engine::D2H => d2h,
                Engine::Peer => 1.0,
            };
        }
    }

    fn next_turn(&self, now: Ns) -> Option<Ns> {
        let ends = (self.running.iter())
            .filter(|a| a.rate > 0.0)
            .map(|a| now + ((a.left / a.rate - NO_WORK).ceil() as Ns).max(1));
        let starts = (self.engines.iter())
            .filter(|e| !e.is_busy && !e.waiting.is_empty())
            .map(|e| e.free_at);
        ends.chain(starts).min()
    }
}

/// The copy engine that serves it; `None` for the multiprocessors.
fn engine_index(engine: Engine) -> Option<usize> {
    match engine {
        Engine::Compute { .. } => None,
        Engine::H2D => Some(0),
        Engine::D2H => Some(1),
        Engine::D2D => Some(2),
        Engine::Peer => Some(3),
    }
}

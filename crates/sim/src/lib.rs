//! A model of a GPU and its host, which runs a plan where there is no GPU.
//!
//! ```text
//! plan ─ lower ─► steps ─ machine (streams, devices) ─► activities ─ feed ─► trace store
//!                   ▲              ▲
//!                   └─── cost ◄─ profile (h200.toml, or what `cuptop calibrate` wrote)
//! ```
//!
//! The model knows no scenarios ([`program`]); only `lower` does. It is deterministic: with [`Pace::AsFastAsPossible`] the
//! same plan and profile give the same activities to the nanosecond. It does not model which data is in the L2 cache: it
//! assumes that what fits is there. It ignores clock and power limits, other processes on the GPU, and a kernel's tail, in
//! which the next kernel could already start. `docs/SIMULATOR.md` tells how well it agrees with an H200.

mod cost;
mod device;
mod lower;
pub mod machine;
mod meter;
pub mod program;
mod stream;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, UNIX_EPOCH};

use self::lower::Lowering;
use self::machine::Machine;
use activity::feed::{Feed, Gone, Message, Outcome, Outlet};
use activity::{Batch, Def, Hardware, Health, Ns, StallSamples};
pub use profile::Profile;
use scenario::plan::Plan;

/// How simulated time relates to the clock on the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Nanosecond for nanosecond, as a live source; the timeline starts at the present time.
    RealTime,
    /// As fast as it can be computed and consumed; the timeline starts at a fixed time.
    AsFastAsPossible,
}

/// A batch every so often of simulated time: what the collector's flush thread does.
const FLUSH: Ns = 20_000_000;
/// The longest sleep, after which a request to stop is seen.
const NAP: Duration = Duration::from_millis(5);
/// Where timelines start that do not follow the clock: 2025-01-01 00:00:00 UTC.
const FIXED_START: Ns = 1_735_689_600_000_000_000;
/// The one simulated process.
const PROCESS: u32 = 0;

/// What is said of counters that nobody counted.
const NOTE: &str =
    "the counters are the simulator's own, from the work that kernels declare: no GPU was sampled";

/// Runs a plan on the model, with its counters sampled so many times a second, if at all.
///
/// # Errors
/// When the operating system gives no thread.
pub fn run(plan: Arc<Plan>, profile: &Profile, pace: Pace, hz: Option<u32>) -> io::Result<Feed> {
    let profile = Arc::new(profile.clone());
    Feed::spawn("cuptop-sim", move |outlet| {
        simulate(plan, &profile, pace, hz, outlet)
    })
}

fn simulate(
    plan: Arc<Plan>,
    profile: &Arc<Profile>,
    pace: Pace,
    hz: Option<u32>,
    outlet: &Outlet,
) -> Outcome {
    let devices = Lowering::devices(&plan);
    let start = match pace {
        Pace::RealTime => now(),
        Pace::AsFastAsPossible => FIXED_START,
    };
    let kernels = plan.variants.iter().flat_map(|it| &it.kernels);
    let stalls = kernels.filter_map(|it| {
        Some(Hardware::Stalls(StallSamples {
            kernel: it.entry.clone(),
            reasons: profile.entry.get(&it.entry)?.stalls.clone(),
            ..StallSamples::default()
        }))
    });
    let stalls = stalls.collect();
    let failure = Arc::new(OnceLock::new());
    let steps = Lowering::new(plan, profile.clone(), failure.clone());
    let mut sender = Sender {
        machine: Machine::new(profile, devices, steps, start),
        outlet,
        health: Health::default(),
        is_sampled: hz.is_some(),
        stalls,
    };
    if let Some(hz) = hz {
        sender.machine.sample(hz);
    }
    let result = match pace {
        Pace::RealTime => sender.in_step(start),
        Pace::AsFastAsPossible => sender.at_once(),
    };
    match result {
        Ok(true) => match failure.get() {
            Some(failure) => Outcome::Failed(failure.clone()),
            None => Outcome::Complete,
        },
        Ok(false) | Err(Gone) => Outcome::Stopped,
    }
}

/// The model and the channel that it feeds.
struct Sender<'a> {
    machine: Machine,
    outlet: &'a Outlet,
    health: Health,
    is_sampled: bool,
    /// What the profile knows of kernels, for the first batch.
    stalls: Vec<Hardware>,
}

impl Sender<'_> {
    /// Runs to the end, or until asked to stop. Returns whether the end was reached.
    fn at_once(&mut self) -> Result<bool, Gone> {
        while let Some(next) = self.machine.next_time() {
            if self.outlet.stop.is_stopped() {
                return Ok(false);
            }
            // Long host work would otherwise mean many empty batches.
            self.machine.advance(next + FLUSH);
            self.flush()?;
        }
        Ok(true)
    }

    /// The same in step with the clock.
    fn in_step(&mut self, start: Ns) -> Result<bool, Gone> {
        let began = Instant::now();
        let mut due = start;
        while self.machine.next_time().is_some() {
            due += FLUSH;
            loop {
                if self.outlet.stop.is_stopped() {
                    return Ok(false);
                }
                // The monotonic clock: a step of the wall clock must not stop the simulation.
                let elapsed = Ns::try_from(began.elapsed().as_nanos()).unwrap_or(Ns::MAX);
                let left = due - start - elapsed;
                if left <= 0 {
                    break;
                }
                std::thread::sleep(NAP.min(Duration::from_nanos(left.unsigned_abs())));
            }
            self.machine.advance(due);
            self.flush()?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), Gone> {
        let (mut defs, items) = self.machine.take();
        let mut hardware = self.machine.take_samples();
        if defs.is_empty() && items.is_empty() && hardware.is_empty() {
            return Ok(());
        }
        if self.is_sampled {
            let devices = defs.iter_mut().filter_map(|it| match it {
                Def::Device(device) => Some(device),
                _ => None,
            });
            for device in devices {
                device.uuid = Some(meter::uuid(device.id));
                hardware.push(Hardware::Note(NOTE.to_owned()));
            }
        }
        hardware.append(&mut self.stalls);
        self.health.received += items.len() as u64;
        let health = Some(self.health);
        self.outlet.send(Message::Batch(Batch {
            process: PROCESS,
            defs,
            items,
            health,
            hardware,
            ..Batch::default()
        }))
    }
}

/// `CLOCK_REALTIME`, as CUPTI has it.
fn now() -> Ns {
    (UNIX_EPOCH.elapsed().ok())
        .and_then(|d| Ns::try_from(d.as_nanos()).ok())
        .unwrap_or(FIXED_START)
}

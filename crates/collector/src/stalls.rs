//! What kernels wait for: the thread that samples it, from the moment on in which the program has made a GPU's primary context.
//!
//! It is asked for (`--stalls on`), and never beside another user of the GPU's counters. Together with one, CUPTI 13.0 records no kernel
//! at all, and says no error. Whoever asks has looked before whether they are free.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use activity::entry::shortened;
use activity::{Span, StallSamples};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use cupti_sys::stalls::{self, Samples, StallSampler};
use cupti_sys::{Cupti, driver};

use crate::command::Command;
use crate::cubin::{self, Module, ModuleLines};
use crate::options::Ending;
use crate::threads;
use recording::file::Clocks;

/// How soon a new context is noticed.
const LOOK: Duration = Duration::from_millis(5);
/// Time between two fetches: CUPTI's own thread reads the hardware as often.
const PERIOD: Duration = Duration::from_millis(100);
/// Time between two lots that are written.
const WRITTEN: Duration = Duration::from_secs(1);
/// Bytes of names in one lot: what does not fit is lost, and counted.
const LOT: usize = 1 << 19;
/// How long the last fetch may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// The thread, as its owner has it.
#[derive(Debug)]
pub(crate) struct StallThread {
    stop: Sender<Ending>,
    gone: Receiver<()>,
    thread: JoinHandle<()>,
}

impl StallThread {
    /// Starts it, or says in the recording why not.
    pub(crate) fn start(
        cupti: &Cupti,
        commands: Sender<Command>,
    ) -> io::Result<Option<StallThread>> {
        if let Some(why) = stalls::untried(cupti.version, driver::branch()) {
            notice(&commands, true, format!("no stalls: {why}"));
            return Ok(None);
        }
        let ((stop, stopped), (going, gone)) = (bounded(1), bounded(0));
        let mut sampling = StallSampling {
            cupti: cupti.clone(),
            commands,
            modules: cubin::begin(&cupti.api),
            lines: ModuleLines::default(),
            gpus: Vec::new(),
            ended: Vec::new(),
        };
        let thread = threads::start("cuptop-stalls", move || {
            sampling.run(&stopped);
            drop(going);
        })?;
        Ok(Some(StallThread { stop, gone, thread }))
    }

    /// Has it write the rest and end. One that hangs in CUPTI is left there.
    pub(crate) fn end(self, ending: Ending) {
        let _ = self.stop.send(ending);
        if self.gone.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Disconnected) {
            let _ = self.thread.join();
        }
    }
}

/// What is sampled of one GPU, by its number.
struct SampledGpu {
    device: i32,
    sampler: StallSampler,
    samples: Samples,
    lost: u64,
}

struct StallSampling {
    cupti: Cupti,
    commands: Sender<Command>,
    modules: Receiver<Module>,
    lines: ModuleLines,
    gpus: Vec<SampledGpu>,
    /// GPUs that are not tried again.
    ended: Vec<i32>,
}

impl StallSampling {
    fn run(&mut self, stop: &Receiver<Ending>) {
        let mut written = Instant::now();
        let ending = loop {
            let period = if self.gpus.is_empty() { LOOK } else { PERIOD };
            match stop.recv_timeout(period) {
                Err(RecvTimeoutError::Timeout) => {}
                ending => break ending.unwrap_or(Ending::Exit),
            }
            self.find();
            self.fetch();
            if written.elapsed() >= WRITTEN {
                self.gpus
                    .iter_mut()
                    .for_each(|it| write(it, &self.commands));
                written = Instant::now();
            }
        };
        self.fetch();
        for mut gpu in std::mem::take(&mut self.gpus) {
            write(&mut gpu, &self.commands);
            if ending == Ending::Release {
                let text = format!(
                    "this program keeps the counters of GPU {} until it ends: no other tool can sample them, and CUPTI records nothing of it again",
                    gpu.device
                );
                notice(&self.commands, true, text);
            }
            gpu.sampler.leave();
        }
    }

    /// Begins with GPUs that have come into use.
    fn find(&mut self) {
        for device in 0..StallSampler::devices() {
            if self.ended.contains(&device) || self.gpus.iter().any(|it| it.device == device) {
                continue;
            }
            let begun = Clocks::now().realtime;
            match StallSampler::start(&self.cupti.path, device) {
                Ok(Some(sampler)) => {
                    // Launches wait meanwhile.
                    let span = Span::new(begun, Clocks::now().realtime);
                    let name = "switching on the sampling of stalls";
                    let _ = self.commands.send(Command::Overhead { name, span });
                    let took = span.len() / 1_000_000;
                    let text = format!(
                        "stalls of GPU {device} are sampled: switching on took {took} ms; lines are known of code loaded since recording began"
                    );
                    notice(&self.commands, false, text);
                    self.gpus.push(SampledGpu {
                        device,
                        sampler,
                        samples: Samples::new(),
                        lost: 0,
                    });
                }
                Ok(None) => {}
                Err(why) => {
                    self.ended.push(device);
                    let text = format!("no stalls of GPU {device}: {why}");
                    notice(&self.commands, true, text);
                }
            }
        }
    }

    /// Takes what was sampled. What CUPTI refuses while the program goes on ends it for that GPU.
    fn fetch(&mut self) {
        self.modules.try_iter().for_each(|it| self.lines.add(it));
        for mut gpu in std::mem::take(&mut self.gpus) {
            let line = |module, function: &[u8], at| self.lines.at(module, function, at);
            match gpu.sampler.fetch(&mut gpu.samples, line) {
                Ok(lost) => {
                    gpu.lost += lost;
                    self.gpus.push(gpu);
                }
                Err(code) => {
                    let text = format!(
                        "stalls of GPU {} end here (CUPTI says {code}): if another user of its counters came, this program's kernels are \
                         not recorded from here on",
                        gpu.device
                    );
                    notice(&self.commands, true, text);
                    self.ended.push(gpu.device);
                    write(&mut gpu, &self.commands);
                    gpu.sampler.leave();
                }
            }
        }
    }
}

/// Writes what was sampled of a GPU since the last time.
fn write(gpu: &mut SampledGpu, commands: &Sender<Command>) {
    let mut room = LOT;
    for (kernel, lines) in gpu.samples.drain() {
        let kernel = String::from_utf8_lossy(&shortened(&kernel)).into_owned();
        for (line, counts) in lines {
            let (file, line) = line.map_or_else(Default::default, |it| (it.0.to_string(), it.1));
            let Some(left) = room.checked_sub(kernel.len() + file.len()) else {
                gpu.lost += counts.iter().sum::<u64>();
                continue;
            };
            room = left;
            let reasons = gpu.sampler.reasons.iter().cloned().zip(counts);
            let samples = StallSamples {
                kernel: kernel.clone(),
                lost: std::mem::take(&mut gpu.lost),
                reasons: reasons.filter(|it| it.1 > 0).collect(),
                file,
                line,
            };
            let _ = commands.send(Command::Stalls(samples));
        }
    }
}

fn notice(commands: &Sender<Command>, is_warning: bool, text: String) {
    let _ = commands.send(Command::Notice { is_warning, text });
}

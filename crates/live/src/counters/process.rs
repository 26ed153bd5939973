//! The process that samples one GPU, until its standard input ends.

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cupti_sys::api::{Code, INSUFFICIENT_PRIVILEGES, describe};
use cupti_sys::pm::{self, Choice, Decoded, HARDWARE_BUSY, PmApi, Sample, Sampling, Trigger};
use cupti_sys::{Caller, Cupti};
use recording::file::{Clocks, Writer};
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::metrics::{WANTED, names};
use super::rhythm::Rhythm;
use crate::clock;
use activity::entry::Entry;
use activity::text::plural;
use activity::{Hardware, Ns, Reading, Span, Uuid};

/// What the process is told, as one line of JSON.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SamplingJob {
    /// Where its file goes.
    pub(super) directory: PathBuf,
    /// The GPU: the only one that the process sees.
    pub(super) uuid: Uuid,
    /// What to call it.
    pub(super) name: String,
    /// Samples a second that were asked for.
    pub(super) hz: Option<u32>,
}

/// How long what was counted last may take: the parent waits for 2 s.
const LAST: Duration = Duration::from_secs(1);
/// The most samples that it writes, each in 128 bytes: almost three hours at the rate that nobody asked to change.
const MOST: u64 = (1 << 30) / 128;
/// Cycles of the system's clock in a ns, for chips that cannot tell samples by time: it varies, so the rate is about right.
const CYCLES: f64 = 1.4;

/// What tells the parent that this process is not stuck.
pub(super) const BEAT: u8 = b'.';

/// The process: samples until its standard input ends, and writes why not where it cannot.
pub fn process_main() -> ExitCode {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line).is_err() {
        return ExitCode::from(2);
    }
    let Ok(job) = serde_json::from_str::<SamplingJob>(&line) else {
        return ExitCode::from(2);
    };
    let Ok(writer) = Writer::outside(&job.directory, 0, Clocks::now()) else {
        return ExitCode::from(2);
    };
    let mut file = Out { writer, failed: 0 };
    let code = match sample(&job, &mut file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Whoever only tries whether it can be done hears all of it.
            let _ = io::stdout().lock().write_all(why.as_bytes());
            let why = if why == NO_RIGHT {
                "this user has no right to them; `cuptop doctor` says what gives it"
            } else {
                &why
            };
            file.note(format!("no counters of {}: {why}", job.name));
            ExitCode::from(3)
        }
    };
    file.writer.finish();
    code
}

/// The file.
struct Out {
    writer: Writer,
    /// How often it could not be written.
    failed: u64,
}

impl Out {
    fn write(&mut self, all: Vec<Hardware>) {
        for it in all {
            self.writer.add(&Entry::Hardware(it));
        }
        self.failed += u64::from(self.writer.flush().is_err());
    }

    fn note(&mut self, text: String) {
        self.write(vec![Hardware::Note(text)]);
    }
}

/// Samples; the error is why nothing is sampled, in words.
fn sample(job: &SamplingJob, file: &mut Out) -> Result<(), String> {
    let began = Instant::now();
    let cupti = Cupti::load(Caller::Program).map_err(|error| error.to_string())?;
    let api = PmApi::open(&cupti.path)?;
    api.initialize().map_err(lack)?;
    // The environment shows this process no other.
    let (chip, availability) = pm::chip(&api, 0).map_err(lack)?;
    let mut sampler = BurstSampler {
        job,
        file,
        metrics: Vec::new(),
        rhythm: Rhythm::new(job.hz),
        last: None,
        tally: SampleTally::default(),
        at_overflow: 0,
        began,
        set_up: None,
        spent: Duration::ZERO,
    };
    loop {
        let wanted = names(job.hz);
        let choice = Choice::of(api, &chip, Some(&availability), &wanted).map_err(lack)?;
        sampler.metrics = choice.metrics.iter().map(|it| it.0).collect();
        let config = choice.config.image;
        let mut sampling = Sampling::enable(choice.host, config, 0).map_err(lack)?;
        match sampler.run(&mut sampling) {
            // Full hardware takes no start (CUPTI 13.0 on an H100): all begins anew, with more room.
            Ok(BurstEnd::Full) if sampler.has_hope() => {}
            end => {
                sampler.conclude();
                return match end {
                    Ok(BurstEnd::Full) => {
                        Err("the GPU's buffer is full before a sample can be fetched".to_owned())
                    }
                    end => end.map(drop).map_err(lack),
                };
            }
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
struct SampleTally {
    samples: u64,
    overflows: u64,
    gaps: u64,
    unread: u64,
}

struct BurstSampler<'a> {
    job: &'a SamplingJob,
    file: &'a mut Out,
    /// For each value of a sample, its place in [`WANTED`].
    metrics: Vec<usize>,
    rhythm: Rhythm,
    /// The end of the last sample of this burst; `None` before its first, which reaches back to the one before.
    last: Option<u64>,
    tally: SampleTally,
    /// Samples at the last overflow.
    at_overflow: u64,
    began: Instant,
    /// When samples began to come, and what processor time had been spent by then: setting up costs once.
    set_up: Option<(Instant, Duration)>,
    /// Processor time that sampling has taken.
    spent: Duration,
}

/// How a burst ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BurstEnd {
    /// In its time.
    Burst,
    /// The hardware's buffer is full: it takes no more.
    Full,
    /// Nobody wants more.
    Input,
}

impl BurstSampler<'_> {
    /// Samples until nobody wants more, or the hardware takes no more.
    fn run(&mut self, sampling: &mut Sampling) -> Result<BurstEnd, Code> {
        self.set(sampling)?;
        loop {
            let spent = self.spent;
            self.switch(|| sampling.start())?;
            let end = self.until_end(sampling)?;
            if end == BurstEnd::Full {
                return Ok(end);
            }
            self.switch(|| sampling.stop())?;
            // The parent does not wait for ever.
            let fetched = self.fetch(sampling, LAST)?;
            if fetched.has_more {
                self.lose();
            }
            self.rhythm.keep_to(self.spent - spent);
            let pause = self.rhythm.pause();
            if end == BurstEnd::Input || self.is_enough() || self.has_ended_in(pause) {
                return Ok(BurstEnd::Input);
            }
            if fetched.overflow {
                return Ok(BurstEnd::Full);
            }
        }
    }

    /// Takes more room after an overflow. Whether that can help: there is more, or samples came since the last one.
    fn has_hope(&mut self) -> bool {
        let known = std::mem::replace(&mut self.at_overflow, self.tally.samples);
        self.rhythm.grow() || self.tally.samples > known
    }

    /// Sets the rate and the room. That costs once, as much as the room is large.
    fn set(&mut self, sampling: &mut Sampling) -> Result<(), Code> {
        let interval = interval(self.rhythm.hz);
        let cycles = Trigger::Cycles((interval as f64 * CYCLES) as u64);
        let (room, at_once) = (self.rhythm.room(), self.rhythm.at_once());
        if let Err(code) = sampling.set(Trigger::Nanoseconds(interval), room, at_once) {
            // Turing and GA100 cannot; whoever cannot do this either has another reason.
            sampling.set(cycles, room, at_once).map_err(|_| code)?;
        }
        self.set_up
            .get_or_insert_with(|| (Instant::now(), cpu_time()));
        Ok(())
    }

    fn switch(&mut self, call: impl FnOnce() -> Result<(), Code>) -> Result<(), Code> {
        let before = cpu_time();
        let result = call();
        self.spent += cpu_time().saturating_sub(before);
        result
    }

    /// Waits so long. Whether nobody wants more.
    fn has_ended_in(&self, pause: Duration) -> bool {
        const BEATS: Duration = Duration::from_millis(500);
        let begun = Instant::now();
        loop {
            beat();
            let left = pause.saturating_sub(begun.elapsed());
            if has_input_ended(left.min(BEATS)) {
                return true;
            }
            if left <= BEATS {
                return false;
            }
        }
    }

    fn until_end(&mut self, sampling: &mut Sampling) -> Result<BurstEnd, Code> {
        self.last = None;
        if let Some(length) = self.rhythm.length() {
            // What came is fetched when it has stopped.
            let has_ended = self.has_ended_in(length);
            return Ok(if has_ended {
                BurstEnd::Input
            } else {
                BurstEnd::Burst
            });
        }
        let (period, mut is_behind) = (self.rhythm.period(), false);
        loop {
            if self.has_ended_in(if is_behind { Duration::ZERO } else { period }) {
                return Ok(BurstEnd::Input);
            }
            let fetched = self.fetch(sampling, period)?;
            if fetched.overflow {
                return Ok(BurstEnd::Full);
            }
            is_behind = fetched.has_more;
            if self.is_enough() {
                return Ok(BurstEnd::Input);
            }
        }
    }

    /// Whether as much is written as may be, which is said.
    fn is_enough(&mut self) -> bool {
        let is_enough = self.tally.samples >= MOST;
        if is_enough {
            let name = &self.job.name;
            let text = format!("counters of {name} end here: {MOST} samples are kept");
            self.file.note(text);
        }
        is_enough
    }

    /// Writes what was counted since the last time, as far as this time suffices.
    fn fetch(&mut self, sampling: &mut Sampling, limit: Duration) -> Result<Decoded, Code> {
        let at = Instant::now();
        loop {
            let before = cpu_time();
            let decoded = sampling.decode()?;
            self.read(sampling, decoded.samples)?;
            sampling.clear()?;
            self.spent += cpu_time().saturating_sub(before);
            if decoded.overflow {
                self.lose();
            }
            let is_last = decoded.overflow || !decoded.has_more || decoded.samples == 0;
            if is_last || at.elapsed() > limit {
                return Ok(decoded);
            }
        }
    }

    fn lose(&mut self) {
        self.tally.overflows += 1;
        if self.tally.overflows == 1 {
            let name = &self.job.name;
            self.file.note(format!(
                "counters of {name}: samples came faster than they could be fetched: some are lost"
            ));
        }
    }

    fn read(&mut self, sampling: &Sampling, count: usize) -> Result<(), Code> {
        let (mut taken, mut sample) = (Vec::with_capacity(count), Sample::default());
        let interval = interval(self.rhythm.hz);
        for index in 0..count {
            sampling.read(index, &mut sample)?;
            let Some(before) = self.last.replace(sample.end) else {
                continue;
            };
            self.tally.gaps += u64::from(sample.start > before + interval);
            match reading(self.job.uuid, &self.metrics, &sample) {
                Some(it) => taken.push(Hardware::Sample(it)),
                None => self.tally.unread += 1,
            }
        }
        self.tally.samples += taken.len() as u64;
        if !taken.is_empty() {
            self.file.write(taken);
        }
        Ok(())
    }

    /// Says what was reached, and what is not there.
    fn conclude(&mut self) {
        let (from, before) = self.set_up.unwrap_or_else(|| (Instant::now(), cpu_time()));
        let wall = from.elapsed().as_secs_f64().max(1e-9);
        let tally = self.tally;
        let mut text = format!(
            "counters of {}: {} metrics, {}; {}, {:.0} a second; {:.1} % of a core, \
             after {:.2} s of setting up that took {:.2} s of a core",
            self.job.name,
            self.metrics.len(),
            self.rhythm.describe(),
            plural(tally.samples, "sample"),
            tally.samples as f64 / wall,
            cpu_time().saturating_sub(before).as_secs_f64() / wall * 100.0,
            (from - self.began).as_secs_f64(),
            before.as_secs_f64(),
        );
        for (count, name, what) in [
            (tally.overflows, "overflow", "with samples lost"),
            (tally.gaps, "gap", "between samples"),
            (tally.unread, "sample", "without a time or a value"),
            (self.file.failed, "write", "failed"),
        ] {
            if count > 0 {
                text.push_str(&format!("; {} {what}", plural(count, name)));
            }
        }
        self.file.note(text);
    }
}

/// What is aimed at, in ns.
fn interval(hz: u32) -> u64 {
    1_000_000_000 / u64::from(hz.max(1))
}

/// A sample in our numbers; `None` for one without a time or a value.
fn reading(uuid: Uuid, metrics: &[usize], sample: &Sample) -> Option<Reading> {
    let start = Ns::try_from(sample.start).ok().filter(|it| *it > 0)?;
    let end = Ns::try_from(sample.end).ok().filter(|it| *it > start)?;
    let values: Vec<_> = metrics
        .iter()
        .zip(&sample.values)
        .filter(|(_, value)| value.is_finite() && **value >= 0.0)
        .map(|(&place, value)| (WANTED[place].metric, value * WANTED[place].scale))
        .collect();
    (!values.is_empty()).then_some(Reading {
        uuid,
        span: Span::new(start, end),
        values,
        reasons: 0,
    })
}

/// What is said where another program samples counters.
pub const HELD: &str = "another program has them (DCGM's profiling, Nsight, another cuptop)";
/// What gives the right to counters, in one line.
const NO_RIGHT: &str = "this user has no right to them. As root: echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 \
    > /etc/modprobe.d/nvidia-counters.conf, then a reboot; or run cuptop as root, or with CAP_PERFMON";

/// What a code means for whoever wants counters.
fn lack(code: Code) -> String {
    match code {
        HARDWARE_BUSY => HELD.to_owned(),
        INSUFFICIENT_PRIVILEGES => NO_RIGHT.to_owned(),
        code => format!("{} (CUPTI says {code})", describe(code)),
    }
}

/// Waits so long for the end of the input.
fn has_input_ended(wait: Duration) -> bool {
    // Nothing comes after the job: what is to be read is its end.
    clock::is_readable_within(wait, io::stdin())
}

fn beat() {
    let mut out = io::stdout().lock();
    let _ = out.write_all(&[BEAT]).and_then(|()| out.flush());
}

/// Processor time of the process.
fn cpu_time() -> Duration {
    clock::read(ClockId::ProcessCPUTime)
}

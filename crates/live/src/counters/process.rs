//! The process that samples one GPU, until its standard input ends.

use std::io::{self, BufRead as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cupti_sys::api::{Code, INSUFFICIENT_PRIVILEGES, describe};
use cupti_sys::pm::{self, Choice, HARDWARE_BUSY, PmApi, Sample, Sampling, Trigger};
use cupti_sys::{Caller, Cupti};
use recording::file::{Clocks, Writer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use super::metrics::{NAMES, WANTED};
use super::rhythm::{Rhythm, Stretch};
use activity::entry::Entry;
use activity::text::plural;
use activity::{Hardware, Ns, Reading, Span, Uuid};

/// What the process is told, as one line of JSON.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Job {
    /// Where its file goes.
    pub(super) directory: PathBuf,
    /// The GPU: the only one that the process sees.
    pub(super) uuid: Uuid,
    /// What to call it.
    pub(super) name: String,
    /// Samples a second that were asked for.
    pub(super) hz: Option<u32>,
}

/// Room for samples in the hardware, in bytes. A sample takes 4 to 7 KB; what does not fit is lost.
const BUFFER: usize = 128 << 20;
/// Samples that are decoded at once: each costs 30 to 40 KB, which are cleared for every decode.
const AT_ONCE: u32 = 128;
/// Time between two decodes.
const PERIOD: Duration = Duration::from_millis(50);
/// Time between two looks at what it cost.
const ACCOUNT: Duration = Duration::from_secs(2);
/// The most samples that it writes, each in 128 bytes: two hours and more at the rate that nobody asked to change.
const MOST: u64 = (1 << 30) / 128;
/// Cycles of the system's clock in a ns, for chips that cannot tell samples by time: it varies, so the rate is about right.
const CYCLES: f64 = 1.4;

/// What tells the parent that this process is not stuck.
pub(super) const BEAT: u8 = b'.';

/// Why nothing is sampled, in words.
#[derive(Debug)]
struct Lack(String);

/// The process: samples until its standard input ends, and writes why not where it cannot.
#[must_use]
pub fn process_main() -> ExitCode {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line).is_err() {
        return ExitCode::from(2);
    }
    let Ok(job) = serde_json::from_str::<Job>(&line) else {
        return ExitCode::from(2);
    };
    let Ok(writer) = Writer::outside(&job.directory, 0, Clocks::now()) else {
        return ExitCode::from(2);
    };
    let mut file = Out { writer, failed: 0 };
    let code = match sample(&job, &mut file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Lack(why)) => {
            // Whoever only tries whether it can be done hears it, too.
            let _ = io::stdout().lock().write_all(why.as_bytes());
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

fn sample(job: &Job, file: &mut Out) -> Result<(), Lack> {
    let cupti = Cupti::load(Caller::Program).map_err(|error| Lack(error.to_string()))?;
    let api = PmApi::open(&cupti.path).map_err(Lack)?;
    api.initialize().map_err(lack)?;
    // The environment shows this process no other.
    let (chip, availability) = pm::chip(&api, 0).map_err(lack)?;
    let mut sampler = Sampler {
        job,
        file,
        metrics: Vec::new(),
        rhythm: Rhythm::new(job.hz),
        has_time: true,
        interval: 0,
        last: None,
        tally: Tally::default(),
        began: Instant::now(),
        accounted: Instant::now(),
        spent: cpu_time(),
    };
    loop {
        let choice = Choice::of(api, &chip, Some(&availability), &NAMES).map_err(lack)?;
        sampler.metrics = choice.metrics.iter().map(|it| it.0).collect();
        let config = choice.config.image;
        let mut sampling = Sampling::enable(choice.host, config, 0).map_err(lack)?;
        let end = sampler.run(&mut sampling);
        match end {
            // A driver that lets nothing be changed once it has begun is left at one rate.
            Err(code) if sampler.tally.samples > 0 && sampler.rhythm.refuse_fast() => {
                let name = &job.name;
                sampler.file.note(format!(
                    "counters of {name} began anew, at one rate: {} (CUPTI said {code})",
                    describe(code)
                ));
            }
            end => {
                sampler.conclude();
                return end.map_err(lack);
            }
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    samples: u64,
    overflows: u64,
    gaps: u64,
    unread: u64,
}

struct Sampler<'a> {
    job: &'a Job,
    file: &'a mut Out,
    /// For each value of a sample, its place in [`WANTED`].
    metrics: Vec<usize>,
    rhythm: Rhythm,
    /// Whether samples are told by time.
    has_time: bool,
    /// What is aimed at, in ns.
    interval: u64,
    /// The end of the last sample of this stretch; `None` before its first, which reaches back to the stretch before.
    last: Option<u64>,
    tally: Tally,
    began: Instant,
    /// When it was last seen what it costs, and what had been spent by then.
    accounted: Instant,
    spent: Duration,
}

/// How a stretch ended.
enum End {
    /// In its time, or because less is to be taken.
    Stretch,
    /// Nobody wants more.
    Input,
}

impl Sampler<'_> {
    fn run(&mut self, sampling: &mut Sampling) -> Result<(), Code> {
        loop {
            let stretch = self.rhythm.next();
            self.begin(sampling, stretch)?;
            let end = self.until_end(sampling, stretch)?;
            sampling.stop()?;
            self.fetch(sampling)?;
            if let End::Input = end {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, sampling: &mut Sampling, stretch: Stretch) -> Result<(), Code> {
        self.interval = 1_000_000_000 / u64::from(stretch.hz.max(1));
        let cycles = Trigger::Cycles((self.interval as f64 * CYCLES) as u64);
        let mut set = |trigger| sampling.set(trigger, BUFFER, AT_ONCE);
        if !self.has_time {
            set(cycles)?;
        } else if let Err(code) = set(Trigger::Nanoseconds(self.interval)) {
            // Turing and GA100 cannot; whoever cannot do this either has another reason.
            set(cycles).map_err(|_| code)?;
            self.has_time = false;
        }
        self.last = None;
        sampling.start()
    }

    fn until_end(&mut self, sampling: &mut Sampling, stretch: Stretch) -> Result<End, Code> {
        let begun = Instant::now();
        loop {
            let left = stretch.length.map(|it| it.saturating_sub(begun.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(End::Stretch);
            }
            if has_input_ended(left.map_or(PERIOD, |it| it.min(PERIOD))) {
                return Ok(End::Input);
            }
            if self.fetch(sampling)? {
                self.tally.overflows += 1;
                if self.tally.overflows == 1 {
                    let name = &self.job.name;
                    self.file.note(format!(
                        "counters of {name}: more samples than the GPU could hold until they were fetched: some are lost"
                    ));
                }
                // It takes no more until it is started anew.
                return Ok(End::Stretch);
            }
            beat();
            if self.tally.samples >= MOST {
                let name = &self.job.name;
                let text = format!("counters of {name} end here: {MOST} samples are kept");
                self.file.note(text);
                return Ok(End::Input);
            }
            if self.tally.samples == 0 {
                // Setting up costs once.
                (self.accounted, self.spent) = (Instant::now(), cpu_time());
            }
            let since = self.accounted.elapsed();
            if since >= ACCOUNT {
                let took = cpu_time().saturating_sub(self.spent);
                let share = took.as_secs_f64() / since.as_secs_f64();
                (self.accounted, self.spent) = (Instant::now(), cpu_time());
                if self.rhythm.spend(share) {
                    return Ok(End::Stretch);
                }
            }
        }
    }

    /// Writes what was counted since the last time. Whether the hardware had no room for all.
    fn fetch(&mut self, sampling: &mut Sampling) -> Result<bool, Code> {
        let mut overflow = false;
        loop {
            let mut taken = Vec::new();
            let (last, tally, interval) = (&mut self.last, &mut self.tally, self.interval);
            let (metrics, uuid) = (&self.metrics, self.job.uuid);
            let decoded = sampling.decode(|sample| {
                let Some(before) = last.replace(sample.end) else {
                    return;
                };
                if sample.start > before + interval {
                    tally.gaps += 1;
                }
                match reading(uuid, metrics, sample) {
                    Some(it) => taken.push(Hardware::Sample(it)),
                    None => tally.unread += 1,
                }
            })?;
            self.tally.samples += taken.len() as u64;
            if !taken.is_empty() {
                self.file.write(taken);
            }
            overflow |= decoded.overflow;
            if !decoded.has_more || decoded.samples == 0 {
                return Ok(overflow);
            }
        }
    }

    /// Says what was reached, and what is not there.
    fn conclude(&mut self) {
        let wall = self.began.elapsed().as_secs_f64().max(1e-9);
        let share = cpu_time().as_secs_f64() / wall * 100.0;
        let Tally {
            samples,
            overflows,
            gaps,
            unread,
        } = self.tally;
        let mut text = format!(
            "counters of {}: {} metrics, {}; {}, {share:.1} % of a core",
            self.job.name,
            self.metrics.len(),
            self.rhythm.words(),
            plural(samples, "sample"),
        );
        for (count, what) in [
            (overflows, "time the GPU's room was full"),
            (gaps, "gap between samples"),
            (unread, "sample without a time or a value"),
            (self.file.failed, "time that they could not be written"),
        ] {
            if count > 0 {
                text.push_str(&format!("; {} {what}", count));
            }
        }
        self.file.note(text);
    }
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

/// What a code means for whoever wants counters.
fn lack(code: Code) -> Lack {
    Lack(match code {
        HARDWARE_BUSY => "another program has them (DCGM's profiling, Nsight, another cuptop)".to_owned(),
        INSUFFICIENT_PRIVILEGES => "this user has no right to them. As root: echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 \
            > /etc/modprobe.d/nvidia-counters.conf, then a reboot; or run cuptop as root, or with CAP_PERFMON"
            .to_owned(),
        code => format!("{} (CUPTI says {code})", describe(code)),
    })
}

/// Waits so long for the end of the input.
fn has_input_ended(wait: Duration) -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(wait.subsec_nanos()),
    };
    // Nothing comes after the job: what is to be read is its end.
    poll(&mut fds, Some(&wait)).is_ok_and(|ready| ready > 0)
}

fn beat() {
    let mut out = io::stdout().lock();
    let _ = out.write_all(&[BEAT]).and_then(|()| out.flush());
}

/// Processor time of the process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

//! Figures for people (text) and programs (JSON).
//!
//! A [`Report`] holds everything that is said about a timeline; [`Report::json`] and [`text::render`]
//! are its two forms, [`compare`] sets two of them side by side. The JSON field names are a contract:
//! add, don't rename.

pub mod brief;
pub mod compare;
mod evicted;
pub mod expect;
pub mod gates;
mod gpus;
mod hardware;
mod idle;
pub mod lines;
mod offsets;
pub mod operations;
mod page;
mod pairs;
pub mod ranks;
pub mod recording;
pub mod runs;
pub mod standing;
pub mod steps;
pub mod table;
pub mod text;
mod verdicts;
pub mod whatif;

pub use gpus::{KnownGpu, KnownGpus};

use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::json;

use activity::text::plain_json;
use activity::{Health, Ns, Span};
use advice::verdict::Verdict;
use advice::{Facts, JudgedPart, Judgement};
use figures::hardware::HardwareFigures;
use figures::launches::{self, LaunchDelay, QueueDepth};
use figures::lines::{DeviceLines, Worker};
use figures::nodes;
use figures::off_cpu::{self, OffCpuFigures};
use figures::serving::Serving;
use figures::tables::{self, NameRow};
use figures::variants::measure::{self, Speedup};
use figures::variants::work::{self, Work};
use figures::watching::WatchingCost;
use figures::{DeviceFigures, Peaks, VariantFigures};
use findings::Finding;
use scenario::plan::Plan;
use trace::{Trace, parallel};

pub use expect::Checked;

/// Which meaning the JSON's fields have: up by one when that of an old field changes. New fields alone
/// leave it as it is.
pub const SCHEMA: u32 = 7;

/// Everything that is said about a timeline.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of the program that said it.
    pub cuptop: &'static str,
    pub schema: u32,
    pub source: Source,
    /// When the timeline's first record began, in its own time; what `start_offset_ns` counts from.
    pub origin_ns: Ns,
    /// What bounds the whole, then each device.
    pub verdicts: Vec<Verdict>,
    /// Figures of every device that has an operation.
    pub devices: Vec<DeviceFigures>,
    /// How operations followed their host calls, for the same devices in the same order.
    pub launches: Vec<Launches>,
    /// Kernels by name, most time first.
    pub kernels: Vec<NameRow>,
    /// What CUDA graphs did by source line, most time first; absent where nobody saw one being captured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub graph_lines: Vec<NameRow>,
    /// What the GPUs did by the line that launched it, or asked for it in a CUDA graph, most time first. Absent without lines of launches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub launch_lines: Vec<NameRow>,
    /// Host calls by name, most time first.
    pub calls: Vec<NameRow>,
    /// Time for which the host waited for the GPU.
    pub sync_ns: Ns,
    /// The most device memory in use at one time; absent when no allocation was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// The steps of each process that has some, an entry a kind of them, the main one first.
    pub steps: Vec<steps::StepsReport>,
    /// From the first operation to the first steady step, of the process whose steps take longest; null without steps.
    pub start_up: Option<StartUp>,
    /// What each GPU did in all steady steps; absent without steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steady: Vec<steps::SteadyFigures>,
    /// What servers of language models do; absent where none is seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub serving: Vec<Serving>,
    /// What GPUs' counters and sensors said, and what describes the machine; absent when nobody asked them, and nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareFigures>,
    /// What launching threads did on and off their processors; absent when nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_cpu: Option<OffCpuFigures>,
    /// What recording may have cost; absent for what cuptop did not record on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watching: Option<WatchingCost>,
    /// The ranks of a job; absent when no two processes share a collective.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<ranks::RankReport>,
    /// What they do together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<ranks::JobReport>,
    /// The source lines that devices waited for, where stacks were sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<DeviceLines>,
    /// The processes that load data, where stacks were sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Worker>,
    /// How Python stacks were sampled, by process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sampling: Vec<lines::SamplingReport>,
    /// What was received and what was not.
    pub health: HealthReport,
    /// Records that were let go to stay within a budget of memory; absent when none were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub let_go: Option<evicted::EvictedRecords>,
    /// Processes of which not all was recorded all the time; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recording: Vec<recording::Recording>,
    /// What could be better: of a program with steps, in its steady ones.
    pub findings: Vec<Finding>,
    /// Of a program with steps: what its start takes beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_up_findings: Option<Vec<Finding>>,
    /// What could be better in what a run does around its measured passes (filling buffers, warm-up): no matter
    /// of the scenario's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness_findings: Option<Vec<Finding>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variants: Option<Vec<VariantReport>>,
    /// The mistakes of the run and their cures; absent when its scenario names none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<pairs::PairReport>,
    /// What the scenario expects of its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expectations: Option<Vec<Checked>>,
    /// The peaks that rates are compared with.
    #[serde(skip)]
    pub peaks: Peaks,
}

/// Where a timeline is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The kind of source ("kineto").
    pub kind: &'static str,
    pub title: String,
    /// The file or directory, where there is one.
    pub path: Option<PathBuf>,
    /// Whether no GPU was involved.
    pub simulated: bool,
}

/// What lies before the steady steps, from the first GPU operation on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StartUp {
    /// In the timeline's own time.
    pub start_ns: Ns,
    pub end_ns: Ns,
    pub time_ns: Ns,
}

/// How the operations of one device followed their host calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Launches {
    /// The device's id.
    pub device: u32,
    /// Start of the host call to start of the operation.
    pub delay: LaunchDelay,
    /// Operations that were called for and had not begun.
    pub queue: QueueDepth,
}

/// What was received and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthReport {
    /// The source's counters.
    pub source: Health,
    /// Records that arrived after one that started later; they stand where they belong.
    pub late: u64,
}

impl Serialize for HealthReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let h = &self.source;
        let rejected = json!({
            "bad_clock": h.bad_clock, "end_before_start": h.end_before_start, "no_timestamp": h.no_timestamp,
        });
        json!({
            "received": h.received, "dropped": h.dropped, "late": self.late, "lost": h.lost, "unknown": h.unknown,
            "rejected": rejected,
        })
        .serialize(serializer)
    }
}

/// One variant of a run (at one value of the sweep), as its median repeat was.
#[derive(Clone, Debug, Serialize)]
pub struct VariantReport {
    #[serde(flatten)]
    pub figures: VariantFigures,
    /// How much faster it is than the variant it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Speedup>,
    /// What kernels declare beside what counters saw; absent where none does, or nobody sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<Work>,
    /// What bounds the whole, then each device.
    pub verdicts: Vec<Verdict>,
    pub findings: Vec<Finding>,
}

impl VariantReport {
    /// Its findings under its name and its label.
    fn named(&self) -> (&str, String, &[Finding]) {
        let of = &self.figures;
        (of.variant.name.as_str(), of.label(), &self.findings)
    }
}

impl Report {
    /// Works out everything that is said about a timeline. That of a run includes its variants, which the
    /// ranges in it tell; with the plan also what the scenario expects of them.
    pub fn new(trace: &Trace, plan: Option<&Plan>, gpus: KnownGpus) -> Report {
        Report::from(&facts(trace, plan, gpus))
    }

    /// The report as JSON, on several lines.
    ///
    /// # Errors
    /// Never for a report that [`Report::new`] made; the serializer's signature has it.
    pub fn json(&self) -> serde_json::Result<String> {
        let json = serde_json::to_string_pretty(self)?;
        Ok(plain_json(offsets::with(&json, self.origin_ns)))
    }

    /// Whether no expectation failed; also when there is none.
    pub fn is_as_expected(&self) -> bool {
        let mut all = self.expectations.iter().flatten();
        all.all(|e| e.ok || e.not_judged)
    }

    /// Whether it is known of every expectation whether it holds.
    pub fn is_judged(&self) -> bool {
        self.expectations.iter().flatten().all(|e| !e.not_judged)
    }
}

/// What is known of a timeline on such devices.
pub fn facts<'t>(trace: &'t Trace, plan: Option<&'t Plan>, gpus: KnownGpus) -> Facts<'t> {
    Facts::new(trace).of_run(plan, gpus.peaks(trace), gpus.rates(trace))
}

impl Source {
    fn of(trace: &Trace) -> Source {
        let source = &trace.source;
        Source {
            kind: source.kind.label(),
            title: source.title.clone(),
            path: source.path.clone(),
            simulated: source.simulated,
        }
    }
}

impl Launches {
    fn list(facts: &Facts<'_>) -> Vec<Launches> {
        // Nothing is known of a launch's delay then.
        if facts.graph().clocks_apart().is_some() {
            return Vec::new();
        }
        let of = |f: &DeviceFigures| {
            let (delay, queue) = launches::of_device(facts.trace, facts.calls(), f.index, None);
            Launches {
                device: f.device,
                delay,
                queue,
            }
        };
        parallel::map(facts.graph().ops.len(), facts.devices(), of)
    }
}

impl From<&Facts<'_>> for Report {
    fn from(facts: &Facts<'_>) -> Report {
        facts.prepare();
        let (trace, peaks, records) = (facts.trace, facts.peaks, facts.graph().ops.len());
        let tables = || (tables::kernels(trace, None), tables::calls(trace, None));
        let (devices, (kernels, calls)) = parallel::join(records, || facts.devices(), tables);
        let judge = || facts.judgement(JudgedPart::Whole).unwrap_or_default();
        let (judged, launches) = parallel::join(records, judge, || Launches::list(facts));
        let (causes, steps) = (facts.causes(), facts.steps());
        let of_steps = |of: &_| steps::StepsReport::list(trace, &causes, of);
        let expected = |plan| expect::check(plan, facts.variants(), peaks);
        let is_run = facts.plan.is_some() || !facts.variants().is_empty();
        let job = facts.ranks();
        let job = job.map(|job| ranks::report(facts, job, peaks.p2p));
        let (ranks, job) = job.map_or_else(Default::default, |(ranks, job)| (ranks, Some(job)));
        // The last moment belongs to it, too.
        let extent = trace.extent().map(|of| Span::new(of.start, of.end + 1));
        let extent = extent.unwrap_or_default();
        Report {
            cuptop: env!("CARGO_PKG_VERSION"),
            schema: SCHEMA,
            source: Source::of(trace),
            origin_ns: extent.start,
            launches,
            kernels,
            graph_lines: nodes::by_line(trace),
            launch_lines: nodes::by_launch(trace, facts.calls()),
            calls,
            sync_ns: tables::sync_time(trace, None),
            peak_memory: facts.memory().peak(extent),
            verdicts: judged.verdicts,
            steps: parallel::map(records, steps, of_steps).concat(),
            start_up: figures::steps::main(steps).map(|of| StartUp {
                start_ns: of.start_up.start,
                end_ns: of.start_up.end,
                time_ns: of.start_up.len(),
            }),
            steady: steps::SteadyFigures::list(trace, steps),
            serving: steps
                .iter()
                .filter_map(|of| Serving::of(trace, &causes, of))
                .collect(),
            ranks,
            job,
            lines: facts.lines(),
            workers: figures::lines::workers(trace),
            sampling: lines::sampling(trace),
            health: HealthReport {
                source: trace.health(),
                late: trace.late(),
            },
            let_go: evicted::find(trace),
            watching: judged.watching,
            hardware: hardware::of_machine(trace, devices, judged.machine),
            off_cpu: off_cpu::sum(trace, &causes, devices),
            recording: recording::find(trace),
            findings: judged.findings,
            start_up_findings: judged.start_up,
            harness_findings: judged.around,
            variants: is_run.then(|| reports(facts, judged.variants)),
            pairs: pairs::list(facts),
            expectations: facts.plan.map(expected),
            devices: devices.to_vec(),
            peaks,
        }
    }
}

fn reports(facts: &Facts<'_>, judged: Vec<Judgement>) -> Vec<VariantReport> {
    let variants = facts.variants();
    let run = measure::Run {
        plan: facts.plan,
        variants,
        peaks: facts.peaks,
    };
    let report = |(of, judged): (&VariantFigures, Judgement)| {
        let mut figures = of.clone();
        if facts.trace.source.simulated {
            work::classify(&run, &mut figures);
        }
        VariantReport {
            speedup: measure::speedup(facts.passes(), of, variants),
            work: work::of_variant(&run, of),
            verdicts: judged.verdicts,
            findings: judged.findings,
            figures,
        }
    };
    variants.iter().zip(judged).map(report).collect()
}

#[cfg(test)]
mod tests;

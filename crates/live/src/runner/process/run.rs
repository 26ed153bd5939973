//! One scenario, from its text to a recording.

use std::time::Duration;

use collector::{ApiCalls, Collector, Ending, Graphs, Options, StartError};

use scenario::plan::Plan;
use scenario::{Overrides, Source};

use super::super::compile::Compiler;
use super::super::driver::Driver;
use super::super::fault::Fault;
use super::super::found::Rejected;
use super::super::nvrtc::{self, Nvrtc};
use super::super::protocol::{Event, Issued, RunJob};
use super::Parent;
use super::engine::Mark;
use super::kernels::{Images, capability};
use super::session::Session;
use crate::private::cache_folder;

/// The compute capability of the GPU that the simulator is a model of.
const MODEL: u32 = 90;

/// Runs a scenario under the collector.
pub(super) fn run(job: &RunJob, say: &dyn Fn(&Event), parent: &Parent) -> Result<Issued, Fault> {
    let plan = planned(&job.source, &job.overrides)?;
    let located = |fault: Fault| fault.located(&job.source.name, &plan.sites);
    execute(job, &plan, say, parent).map_err(located)
}

fn planned(source: &Source, overrides: &Overrides) -> Result<Plan, Fault> {
    let compiled = scenario::compile(source, overrides);
    let wrong = compiled.map_err(|wrong| Fault::input(wrong.render(false), ""));
    Ok(wrong?.plan)
}

/// Compiles a scenario's kernels. Returns those that the compiler rejects.
pub(super) fn rejected(source: &Source, overrides: &Overrides) -> Result<Vec<Rejected>, Fault> {
    let plan = planned(source, overrides)?;
    let mut compilers = match Driver::start(None) {
        Ok(driver) => compilers(&plan, &driver)?,
        Err(_) => Vec::new(),
    };
    if compilers.is_empty() {
        compilers.push((MODEL, compiler(nvrtc::NEWEST, MODEL)?));
    }
    let mut rejected = Vec::new();
    let include = source.kernel_dir.as_deref();
    let reject = |fault: Fault, capability| {
        let mut lines = fault.message.lines();
        let what = lines.next().unwrap_or_default();
        let error = lines.find(|it| it.contains("error")).unwrap_or_default();
        rejected.push(Rejected {
            site: fault.site.unwrap_or_default(),
            error: format!("for sm_{capability}, {what} {error}"),
            help: fault.help,
        });
        Ok(())
    };
    Images::compile(&plan, include, &compilers, |_, _| {}, reject)?;
    Ok(rejected)
}

fn execute(
    job: &RunJob,
    plan: &Plan,
    say: &dyn Fn(&Event),
    parent: &Parent,
) -> Result<Issued, Fault> {
    let driver = Driver::start(None)?;
    let images = compile(job, plan, &driver, say)?;
    let options = Options {
        flush_period: job.flush.max(Duration::from_millis(1)),
        api: ApiCalls::Driver,
        stalls: job.stalls,
        graphs: if job.has_whole_graphs {
            Graphs::Whole
        } else {
            Graphs::Nodes
        },
        ..Options::new(job.dir.clone())
    };
    let collector = Collector::start(options).map_err(|error| refused(&error))?;
    let result = Session {
        driver: &driver,
        plan,
        has_whole_graphs: job.has_whole_graphs,
        images: &images,
        mark: &|mark| record(&collector, mark),
        say,
        awaits_counters: job.awaits_counters,
        parent,
    }
    .run();
    if !collector.finish(Ending::Exit) {
        say(&Event::Notice {
            is_warning: true,
            text: "the recording could not be closed in time: its last records may be missing"
                .to_owned(),
        });
    }
    result
}

/// Writes a name into the recording.
#[expect(unsafe_code, reason = "hands on CUDA's handles")]
fn record(collector: &Collector, mark: Mark<'_>) {
    match mark {
        Mark::Range(kind, name, index, span) => {
            collector.range(kind, name, index, span.start, span.end);
        }
        // SAFETY: the handles are those of an engine that is alive.
        Mark::Stream(context, stream, name) => unsafe {
            collector.name_stream(context.cast(), stream.cast(), name);
        },
    }
}

fn compile(
    job: &RunJob,
    plan: &Plan,
    driver: &Driver,
    say: &dyn Fn(&Event),
) -> Result<Images, Fault> {
    if plan.variants.iter().all(|v| v.kernels.is_empty()) {
        return Ok(Images::default());
    }
    let compilers = compilers(plan, driver)?;
    let progress = |done, total| {
        say(&Event::Progress {
            what: "compiling kernels".to_owned(),
            done,
            total,
        });
    };
    let include = job.source.kernel_dir.as_deref();
    Images::compile(plan, include, &compilers, progress, |fault, _| Err(fault))
}

/// A compiler for each kind of GPU that a plan uses.
fn compilers(plan: &Plan, driver: &Driver) -> Result<Vec<(u32, Compiler)>, Fault> {
    let asking = |e| Fault::cuda("asking the driver for its GPUs", &e);
    let (major, _) = driver.version().map_err(asking)?;
    let there = driver.device_count().map_err(asking)?;
    let needed = plan.variants.iter().map(|v| v.devices.max(1)).max();
    let mut compilers: Vec<(u32, Compiler)> = Vec::new();
    for device in 0..needed.unwrap_or(1).min(there) {
        let capability = capability(driver, device)?;
        if compilers.iter().all(|(known, _)| *known != capability) {
            compilers.push((capability, compiler(major, capability)?));
        }
    }
    Ok(compilers)
}

fn compiler(major: u32, capability: u32) -> Result<Compiler, Fault> {
    let nvrtc = Nvrtc::find(major);
    let nvrtc = nvrtc.map_err(|e| Fault::machine(e.to_string(), e.wanted.help))?;
    Ok(Compiler::new(nvrtc, capability, cache_folder("kernels")))
}

fn refused(error: &StartError) -> Fault {
    Fault::machine(
        format!("GPU activity cannot be recorded: {error}"),
        error.help(),
    )
}

//! One scenario, from its text to a recording.

use std::time::Duration;

use collector::{ApiCalls, Collector, Ending, Graphs, Options, StartError};

use scenario::plan::Plan;

use super::super::compile::Compiler;
use super::super::driver::Driver;
use super::super::fault::Fault;
use super::super::nvrtc::Nvrtc;
use super::super::protocol::{Event, Issued, RunJob};
use super::Parent;
use super::engine::Mark;
use super::kernels::{Images, capability};
use super::session::Session;
use crate::private::cache_folder;

/// Runs a scenario under the collector.
pub(super) fn run(job: &RunJob, say: &dyn Fn(&Event), parent: &Parent) -> Result<Issued, Fault> {
    let compiled = scenario::compile(&job.source, &job.overrides);
    let plan = compiled
        .map_err(|wrong| Fault::input(wrong.render(false), ""))?
        .plan;
    let located = |fault: Fault| fault.located(&job.source.name, &plan.sites);
    execute(job, &plan, say, parent).map_err(located)
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
    let asking = |e| Fault::cuda("asking the driver for its GPUs", &e);
    let (major, _) = driver.version().map_err(asking)?;
    let there = driver.device_count().map_err(asking)?;
    let needed = plan.variants.iter().map(|v| v.devices.max(1)).max();
    let mut compilers: Vec<(u32, Compiler)> = Vec::new();
    for device in 0..needed.unwrap_or(1).min(there) {
        let capability = capability(driver, device)?;
        if compilers.iter().all(|(known, _)| *known != capability) {
            let nvrtc =
                Nvrtc::find(major).map_err(|e| Fault::machine(e.to_string(), e.wanted.help))?;
            compilers.push((
                capability,
                Compiler::new(nvrtc, capability, cache_folder("kernels")),
            ));
        }
    }
    Images::compile(
        plan,
        job.source.kernel_dir.as_deref(),
        &compilers,
        |done, total| {
            say(&Event::Progress {
                what: "compiling kernels".to_owned(),
                done,
                total,
            });
        },
    )
}

fn refused(error: &StartError) -> Fault {
    Fault::machine(
        format!("GPU activity cannot be recorded: {error}"),
        error.help(),
    )
}

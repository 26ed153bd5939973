//! One scenario, from its text to a recording.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use collector::{ApiCalls, Collector, Ending, Graphs, Options, StartError};

use crate::activity::{Ns, RangeKind};
use crate::scenario::plan::Plan;
use crate::scenario::{self, Overrides, Source};

use super::super::compile::{Compiler, cache_folder};
use super::super::driver::Driver;
use super::super::fault::Fault;
use super::super::nvrtc::Nvrtc;
use super::super::protocol::{Event, Issued, RunJob};
use super::bare::Bare;
use super::kernels::{Images, capability};
use super::marks::Marks;
use super::session::Session;

/// Runs a scenario under the collector.
pub(super) fn run(job: &RunJob, say: &dyn Fn(&Event), stop: &AtomicBool) -> Result<Issued, Fault> {
    let plan = plan(job)?;
    execute(job, &plan, say, stop).map_err(|fault| fault.located(&job.name, &plan.sites))
}

/// Runs a scenario with nothing recorded: CUPTI is not even loaded.
pub(super) fn bare(job: &RunJob, say: &dyn Fn(&Event), stop: &AtomicBool) -> Result<Issued, Fault> {
    let plan = plan(job)?;
    let marks = Bare::default();
    let run = || {
        let driver = Driver::start(None)?;
        let images = compile(job, &plan, &driver, say)?;
        Session {
            driver: &driver,
            plan: &plan,
            has_whole_graphs: job.has_whole_graphs,
            images: &images,
            marks: &marks,
            say,
            stop,
        }
        .run()
    };
    let issued = run().map_err(|fault: Fault| fault.located(&job.name, &plan.sites))?;
    say(&Event::Unwatched {
        variants: marks.into_inner(),
    });
    Ok(issued)
}

fn plan(job: &RunJob) -> Result<Plan, Fault> {
    let source = Source {
        name: job.name.clone(),
        path: job.path.clone(),
        text: Arc::from(job.text.as_str()),
        kernel_dir: job.kernel_dir.clone(),
    };
    let overrides = Overrides {
        set: job.set.clone(),
        variant: job.variant.clone(),
    };
    scenario::compile(&source, &overrides)
        .map(|compiled| compiled.plan)
        .map_err(|wrong| Fault::input(wrong.render(false), ""))
}

fn execute(
    job: &RunJob,
    plan: &Plan,
    say: &dyn Fn(&Event),
    stop: &AtomicBool,
) -> Result<Issued, Fault> {
    let driver = Driver::start(None)?;
    let images = compile(job, plan, &driver, say)?;
    let options = Options {
        flush_period: Duration::from_millis(job.flush_ms.max(1)),
        api: ApiCalls::Driver,
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
        marks: &collector,
        say,
        stop,
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
            compilers.push((capability, Compiler::new(nvrtc, capability, cache_folder())));
        }
    }
    Images::compile(
        plan,
        job.kernel_dir.as_deref(),
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

impl Marks for Collector {
    fn range(&self, kind: RangeKind, name: &str, index: u32, start: Ns, end: Ns) {
        Collector::range(self, kind, name, index, start, end);
    }

    #[expect(unsafe_code, reason = "hands on CUDA's handles")]
    unsafe fn name_stream(&self, context: *mut c_void, stream: *mut c_void, name: &str) {
        // SAFETY: the caller vouches for the handles.
        unsafe { Collector::name_stream(self, context, stream, name) }
    }
}

//! The runner process: `cuptop run-plan`, which cuptop starts for whatever needs CUDA.
//!
//! It reads one job from stdin, does it on its main thread, and says on stdout what happens (see
//! [`super::protocol`]). A kernel that writes out of bounds, a driver that crashes or a launch that hangs
//! ends this process and nothing else.

mod context;
mod engine;
mod host;
mod kernels;
mod memory;
mod ops;
mod quiet;
mod run;
mod session;
mod steps;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scenario::bundled::Library;

use super::fault::Fault;
use super::probe;
use super::protocol::{Event, EventWriter, Issued, RunnerJob};

/// How long the job may go on after the parent wants an end, before the process ends anyway.
const GRACE: Duration = Duration::from_millis(400);

/// The whole life of a runner process. Returns its exit code: 0 done, 2 the scenario is wrong, 3 the
/// machine cannot do it, 4 it ran and failed.
pub fn process_main(library: Library) -> ExitCode {
    let writer = Arc::new(EventWriter::new(io::stdout()));
    let say = |event: &Event| writer.say(event);
    let result = read_job().and_then(|job| {
        let parent = Arc::new(Parent::default());
        watch_parent(Arc::clone(&parent))?;
        work(job, library, &say, &parent)
    });
    match result {
        Ok(issued) => {
            say(&Event::Done { issued });
            ExitCode::SUCCESS
        }
        Err(fault) => {
            writer.fail(&fault);
            ExitCode::from(fault.kind.code())
        }
    }
}

fn read_job() -> Result<RunnerJob, Fault> {
    let mut line = String::new();
    io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|e| Fault::input(format!("the job cannot be read: {e}"), ""))?;
    serde_json::from_str(&line).map_err(|e| {
        let help = "this command is for cuptop itself; use `cuptop run`";
        Fault::input(format!("no job on stdin: {e}"), help)
    })
}

/// What the parent has said.
#[derive(Debug, Default)]
pub(crate) struct Parent {
    ready: AtomicBool,
    end: AtomicBool,
}

impl Parent {
    /// Whether it has written a line: what the first pass waits for is there.
    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Whether it wants an end: no further pass starts.
    fn wants_end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }
}

/// Ends the process when the parent closes its end of stdin, or is gone. It first asks the job to stop
/// after its current pass. Then it ends at once, because that pass may hang. The thread is not joined:
/// it waits for the parent for as long as the process lives.
fn watch_parent(parent: Arc<Parent>) -> Result<(), Fault> {
    std::thread::Builder::new()
        .name("runner-parent".to_owned())
        .spawn(move || {
            for line in io::stdin().lock().lines() {
                parent.ready.store(line.is_ok(), Ordering::Relaxed);
                if line.is_err() {
                    break;
                }
            }
            parent.end.store(true, Ordering::Relaxed);
            std::thread::sleep(GRACE);
            exit_now();
        })
        .map(drop)
        .map_err(|e| Fault::machine(format!("no thread can be started: {e}"), ""))
}

/// Ends the process without exit handlers: those of CUDA would wait for what hangs. What was collected
/// is in the recording already.
#[expect(unsafe_code, reason = "std's exit runs handlers, which can hang")]
fn exit_now() -> ! {
    // SAFETY: ends the process; nothing runs after it.
    unsafe { libc::_exit(130) }
}

fn work(
    job: RunnerJob,
    library: Library,
    say: &dyn Fn(&Event),
    parent: &Parent,
) -> Result<Issued, Fault> {
    match job {
        RunnerJob::Run(mut job) => {
            job.source.library = library;
            run::run(&job, say, parent)
        }
        RunnerJob::Probe => {
            say(&Event::Probe(Box::new(probe::run())));
            Ok(Issued::default())
        }
        RunnerJob::Compile {
            mut source,
            overrides,
        } => {
            source.library = library;
            let rejected = run::rejected(&source, &overrides)?;
            say(&Event::Compiled { rejected });
            Ok(Issued::default())
        }
    }
}

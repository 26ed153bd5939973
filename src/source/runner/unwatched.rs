//! A scenario on the GPU with nothing recorded and nothing read, for what it takes then.

use std::path::PathBuf;
use std::time::Duration;

use super::child::{Child, ChildEvent};
use super::parent::RunRequest;
use super::protocol::{Event, Job, RunJob, Unwatched};
use crate::activity::feed::{Failure, FailureKind};

/// How often it is looked whether there is something to hear.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs a scenario in a process of its own, without CUPTI, and waits for its end. The host's time of each repeat comes back, by variant
/// in the scenario's order.
///
/// # Errors
/// When no process can be had, or what failed in it.
pub fn unwatched(request: &RunRequest) -> Result<Vec<Unwatched>, Failure> {
    let job = Job::Bare(RunJob::of(request, PathBuf::new()));
    let program = |message: String| Failure {
        kind: FailureKind::Machine,
        message,
        help: String::new(),
    };
    let mut child = Child::start(&job)
        .map_err(|error| program(format!("the runner process cannot be started: {error}")))?;
    let mut found = None;
    loop {
        match child.recv(PATIENCE) {
            ChildEvent::Event(event) => match *event {
                Event::Unwatched { variants } => found = Some(variants),
                Event::Error {
                    kind,
                    message,
                    help,
                } => {
                    return Err(Failure {
                        kind: kind.into(),
                        message,
                        help,
                    });
                }
                _ => {}
            },
            ChildEvent::Output { .. } | ChildEvent::Nothing => {}
            ChildEvent::End => break,
        }
    }
    let end = child.end();
    found.ok_or_else(|| {
        program(format!(
            "the runner process ended without a word: {}",
            end.describe()
        ))
    })
}

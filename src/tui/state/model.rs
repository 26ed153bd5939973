//! What is known: the run, and what was found out about it.

use trace::Clock;

use super::analyst::Analyst;
use super::answers::Answers;
use super::idle::Idle;
use super::job::Job;
use super::measuring::Measuring;
use super::messages::Messages;
use super::pulse::Pulse;
use super::rounds::Rounds;
use super::scope::OnScreen;
use super::troubles::{self, Trouble};
use super::{Run, ViewNeeds};
use crate::board::Entry;
use crate::report::standing::Standing;
use live::machine::{GpuLoad, Machine, ProcessLoad};

/// A process that may be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The GPU that it is on, by NVML's number.
    pub gpu: u32,
    pub pid: u32,
    /// When it began: a later process may have its number.
    pub began: Option<u64>,
}

/// The run, and what was found out about it. What is on screen comes from outside, as a value.
#[derive(Debug, Default)]
pub struct Model {
    pub run: Run,
    /// What this machine's GPUs do, for the picker.
    pub machine: Machine,
    /// The traces of this folder, newest first, for the picker.
    pub board: Vec<Entry>,
    /// How the jobs stand that are looked at, or why that cannot be told; nothing before they were.
    pub seen_jobs: Option<Result<Vec<Standing>, String>>,
    /// Who answers what takes long.
    pub analyst: Analyst,
    /// Who keeps up the figures of the variants.
    measuring: Measuring,
    /// What bounds what is on screen, and what could be better in it.
    pub answers: Answers,
    /// How it goes on, while it does.
    pub pulse: Pulse,
    /// Why the devices were idle.
    pub idle: Idle,
    /// How the ranks of a job stand to each other.
    pub job: Job,
    /// Which rounds the nodes of graphs are in.
    pub rounds: Rounds,
    /// What is wrong with what is on screen, the worst first.
    pub troubles: Vec<Trouble>,
}

impl Model {
    /// A process and its GPU, as long as it is there.
    pub fn target(&self, target: Target) -> Option<(&GpuLoad, &ProcessLoad)> {
        let (gpu, process) = self.machine.process(target.gpu, target.pid)?;
        (process.began() == target.began).then_some((gpu, process))
    }

    /// Takes what was found out about the ranks of a job, and asks anew.
    pub(super) fn ask_ranks(&mut self, needs: ViewNeeds) {
        let (run, facts) = (&self.run, &self.answers.facts);
        self.job.prepare(&self.analyst, run, facts, needs.ranks);
        self.run.awaits_clocks = self.job.is_to_tell_clocks(&self.analyst, &self.run);
    }

    /// Sets the clocks of the run's processes. Returns whether one of them moved.
    pub(super) fn set_clocks(&mut self, clocks: &[Clock]) -> bool {
        let is_moved = self.run.set_clocks(clocks);
        if is_moved {
            self.job.clocks_set(&self.run);
        }
        is_moved
    }

    /// Brings passes and their figures up to date with the timeline.
    pub(super) fn find_passes(&mut self) {
        self.run.find_passes();
        self.measuring.prepare(&self.analyst, &mut self.run);
    }

    /// Takes what was found out about what is on screen, and asks anew when it has changed.
    pub(super) fn ask(&mut self, on_screen: OnScreen, needs: ViewNeeds, messages: &Messages) {
        let (run, analyst, scope) = (&self.run, &self.analyst, on_screen.scope);
        self.answers.prepare(analyst, run, on_screen, needs.answers);
        if run.is_running() && !on_screen.is_held {
            let answer = self.answers.get(run, scope);
            let steps = answer.and_then(|it| it.step_list.as_deref());
            let tokens = steps.and_then(|it| it.tokens_per_s);
            self.pulse.beat(run, steps.map(|it| it.median), tokens);
        }
        if needs.timeline {
            self.idle
                .prepare(analyst, run, on_screen, &self.answers.facts);
            self.rounds.prepare(analyst, run);
        }
        self.troubles = troubles::find(run, messages, &self.answers, scope);
    }
}

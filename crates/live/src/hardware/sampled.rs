//! The processes that sample GPUs' counters: which GPUs have one, and what becomes of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::gpu::WatchedGpu;
use crate::counters::{CounterProcess, Counters, name_of};
use activity::Uuid;

/// Of each GPU that the program uses, its process.
pub(super) struct SampledGpus {
    directory: PathBuf,
    counters: Counters,
    /// `None` of a GPU whose process ended, or that must not have one.
    processes: HashMap<Uuid, Option<CounterProcess>>,
}

impl SampledGpus {
    pub(super) fn new(directory: &Path, counters: Counters) -> SampledGpus {
        SampledGpus {
            directory: directory.to_path_buf(),
            counters,
            processes: HashMap::new(),
        }
    }

    /// Starts the process of a GPU, or looks after it. What is to be said comes back.
    pub(super) fn follow(&mut self, uuid: Uuid, gpu: Option<&WatchedGpu>) -> Option<String> {
        if self.counters == Counters::Off {
            return None;
        }
        let name = name_of(&uuid);
        // Where NVML cannot tell who is there, nobody is known to be disturbed.
        let is_shared = gpu.map_or(Some(false), WatchedGpu::is_shared);
        let is_meant = self.counters != Counters::Auto || is_shared == Some(false);
        let Some(known) = self.processes.get_mut(&uuid) else {
            if is_meant {
                let started = CounterProcess::start(&self.directory, Some(uuid), self.counters);
                let failed = started.as_ref().err().map(ToString::to_string);
                self.processes.insert(uuid, started.ok());
                return failed.map(|why| format!("no counters of {name}: {why}"));
            }
            is_shared?;
            self.processes.insert(uuid, None);
            return Some(format!(
                "no counters of {name}: another user has a process on it; --counters on samples it all the same, and keeps others \
                 from it meanwhile"
            ));
        };
        let process = known.as_mut()?;
        if !is_meant && is_shared.is_some() {
            *known = None;
            return Some(format!(
                "counters of {name} end here: another user has a process on it now; --counters on goes on all the same"
            ));
        }
        let end = process.check().err()?;
        *known = None;
        end
    }

    /// Ends all that run; they begin anew at the next look.
    pub(super) fn pause(&mut self) {
        self.processes.retain(|_, it| it.is_none());
    }

    /// Ends all that run, for good. What is to be said of those that had to be killed.
    pub(super) fn end(&mut self) -> Vec<String> {
        let running = self.processes.drain().filter_map(|(_, it)| it);
        running.filter_map(CounterProcess::end).collect()
    }

    /// How many GPUs are sampled, or cannot be.
    pub(super) fn settled(&self) -> usize {
        let settled =
            |it: &&Option<CounterProcess>| it.as_ref().is_none_or(CounterProcess::has_begun);
        self.processes.values().filter(settled).count()
    }

    /// Their ids.
    pub(super) fn ids(&self) -> Vec<u32> {
        let running = self.processes.values().flatten();
        running.map(CounterProcess::id).collect()
    }
}

//! Starts a scenario: it finds, compiles, chooses where, and runs it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cli::args::{Backend, RunArgs, Switch, counters_beside};
use crate::cli::exit::Ending;
use crate::cli::profile;
use crate::report::KnownGpus;
use crate::tui::{NextRun, Running, StartNotice};
use activity::feed::Feed;
use live::runner::{self, RunRequest};
use recording;
use scenario::plan::Plan;
use scenario::{Diagnostics, Overrides, Severity, Source, compile};
use sim::{self, Pace, Profile};
use trace::{Clocks, SourceInfo, SourceKind};

/// Where scenarios run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RunTarget {
    /// A real GPU: its name, where all visible ones have the same.
    Gpu(Option<String>),
    /// The simulator, and why, where the user did not ask for it.
    Simulator(Option<String>),
}

impl RunTarget {
    /// Why it is the simulator, where nobody asked for it.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            RunTarget::Simulator(reason) => reason.as_deref(),
            RunTarget::Gpu(_) => None,
        }
    }
}

/// Decides where to run. Asking the driver takes a process of its own, and a moment when there is a GPU.
pub(super) fn choose_target(backend: Backend) -> Result<RunTarget, Ending> {
    if backend == Backend::Sim {
        return Ok(RunTarget::Simulator(None));
    }
    let probe = runner::probe();
    if probe.can_run() {
        let mut names = probe.gpus.iter().map(|gpu| &gpu.name);
        let first = names.next();
        let is_one = names.all(|name| Some(name) == first);
        return Ok(RunTarget::Gpu(first.filter(|_| is_one).cloned()));
    }
    let (text, help) = match probe.obstacle() {
        Some(part) => (part.text.clone(), part.help.clone()),
        None => (
            "the driver sees no GPU".to_owned(),
            "check CUDA_VISIBLE_DEVICES and nvidia-smi".to_owned(),
        ),
    };
    match backend {
        Backend::Cuda => Err(Ending::machine(format!("cannot run on a GPU: {text}")).help(help)),
        _ => Ok(RunTarget::Simulator(Some(text))),
    }
}

/// A run in progress.
pub(super) struct StartedRun {
    pub(super) feed: Feed,
    pub(super) plan: Arc<Plan>,
    pub(super) info: SourceInfo,
    pub(super) warnings: Diagnostics,
    path: Option<PathBuf>,
}

/// Starts scenarios, again and again.
pub(super) struct Runner<'a> {
    args: &'a RunArgs,
    /// The path or name of the scenario that runs.
    pub(super) current: String,
    place: RunTarget,
    pace: Pace,
    pub(super) profile: Profile,
    runs: usize,
}

impl<'a> Runner<'a> {
    pub(super) fn new(args: &'a RunArgs, place: RunTarget, pace: Pace) -> Result<Self, Ending> {
        let gpu = match &place {
            RunTarget::Gpu(name) => name.as_deref(),
            RunTarget::Simulator(_) => None,
        };
        let profile = profile::choose(args.profile.as_deref(), gpu)?;
        Ok(Runner {
            args,
            current: args.scenario.clone(),
            place,
            pace,
            profile,
            runs: 0,
        })
    }

    fn overrides(&self) -> Overrides {
        Overrides {
            set: self.args.set.clone(),
            variant: self.args.variant.clone(),
            repeat: self.args.repeat,
        }
    }

    /// Finds a scenario by path or name.
    pub(super) fn find(name: &str) -> Result<Source, Ending> {
        Source::find(name, crate::bundled::LIBRARY).map_err(Ending::input)
    }

    /// What is known of the GPUs that it runs on.
    pub(super) fn gpus(&self) -> KnownGpus {
        KnownGpus::from_iter([(&self.profile).into()])
    }

    /// Compiles a scenario as it is now and starts it. Its diagnostics have colours if `color` is set.
    pub(super) fn start(&mut self, name: &str, color: bool) -> Result<StartedRun, Ending> {
        let source = Runner::find(name)?;
        let compiled = compile(&source, &self.overrides())
            .map_err(|diagnostics| Ending::diagnostics(diagnostics.render(color)))?;
        let plan = Arc::new(compiled.plan);
        let feed = self
            .feed(&source, &plan)
            .map_err(|error| Ending::machine(format!("cannot start {}: {error}", source.name)))?;
        self.runs += 1;
        Ok(StartedRun {
            feed,
            plan,
            info: self.info(&source),
            warnings: compiled.warnings,
            path: source.path,
        })
    }

    /// The same for the screen, which shows diagnostics without colours of their own.
    pub(super) fn start_for_screen(&mut self, wanted: &NextRun) -> Result<Running, Ending> {
        if let NextRun::Scenario(name) = wanted {
            self.current.clone_from(name);
        }
        let name = self.current.clone();
        let file = || Runner::find(&name).ok().and_then(|source| source.path);
        let started = self.start(&name, false).map_err(|ending| Ending {
            file: file(),
            ..ending
        })?;
        // A missing GPU needs no warning: SIMULATED stands in the header.
        let simulating = self.place.reason().map(|why| StartNotice {
            is_warning: false,
            is_race: false,
            text: format!("simulating: {why}"),
        });
        let diagnostics = started
            .warnings
            .each()
            .map(|(diagnostic, text)| StartNotice {
                is_warning: diagnostic.severity != Severity::Note,
                is_race: diagnostic.is_race,
                text,
            });
        let warnings = simulating.into_iter().chain(diagnostics).collect();
        Ok(Running {
            plan: Some(started.plan),
            gpus: self.gpus(),
            warnings,
            file: started.path.filter(|_| !self.args.no_watch),
            ..Running::new(started.feed, started.info)
        })
    }

    fn feed(&self, source: &Source, plan: &Arc<Plan>) -> std::io::Result<Feed> {
        let (args, is_read) = (
            self.args.recorded,
            self.args.recorded.hardware == Switch::On,
        );
        let save = match (&self.args.save_baseline, &self.args.save) {
            (Some(dir), _) => Some(recording::folder_in(dir)?),
            (None, save) => save
                .as_deref()
                .map(|dir| crate::cli::numbered(dir, self.runs)),
        };
        match self.place {
            RunTarget::Gpu(_) => runner::run(RunRequest {
                source: source.clone(),
                overrides: self.overrides(),
                save,
                flush: Duration::from_millis(args.flush),
                graphs: args.graphs.into(),
                hardware: is_read,
                counters: counters_beside(self.args.stalls, args.counters).unwrap_or_default(),
                stalls: self.args.stalls == Switch::On,
            }),
            RunTarget::Simulator(_) => {
                let hz = args.counters.simulated_hz();
                let hz = hz.filter(|_| is_read);
                let feed = sim::run(plan.clone(), &self.profile, self.pace, hz)?;
                match save {
                    Some(directory) => recording::tee(feed, &directory),
                    None => Ok(feed),
                }
            }
        }
    }

    fn info(&self, source: &Source) -> SourceInfo {
        let is_simulated = matches!(self.place, RunTarget::Simulator(_));
        let title = Path::new(&source.name)
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        SourceInfo {
            kind: if is_simulated {
                SourceKind::Simulator
            } else {
                SourceKind::Cuda
            },
            title: title.unwrap_or_else(|| source.name.clone()),
            path: source.path.clone(),
            simulated: is_simulated,
            clocks: Clocks::default(),
        }
    }
}

//! `cuptop run`: a scenario, on the GPU or on the simulator, with a screen or without.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::args::{Backend, Run};
use super::drain::drain;
use super::exit::{self, Ending};
use super::print;
use crate::activity::feed::{Feed, Outcome};
use crate::analysis::figures::Peaks;
use crate::report::{Report, text};
use crate::scenario::plan::Plan;
use crate::scenario::{Compiled, Overrides, Source, compile};
use crate::source::runner::{self, IssuedLog, RunRequest};
use crate::source::sim::{self, Pace, Profile};
use crate::trace::{SourceInfo, SourceKind, Trace};

/// Where a scenario will run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A real GPU.
    Gpu,
    /// The simulator, and why, where the user did not ask for it.
    Simulator(Option<String>),
}

/// `cuptop run --headless`.
pub(super) fn headless(args: &Run) -> Result<u8, Ending> {
    let source = find(&args.scenario)?;
    let overrides = overrides(args);
    let compiled = compiled(&source, &overrides)?;
    let profile = profile(args.profile.as_deref())?;
    let place = place(args.backend)?;
    if let Place::Simulator(Some(why)) = &place {
        eprint(&format!("cuptop: simulating: {why}\n"));
    }
    let plan = Arc::new(compiled.plan);
    let issued = IssuedLog::default();
    let pace = Pace::AsFastAsPossible;
    let feed = start(&Start {
        source: &source,
        overrides: &overrides,
        plan: &plan,
        profile: &profile,
        place: &place,
        pace,
        save: args.save.as_deref(),
        flush: Duration::from_millis(args.flush),
        issued: issued.clone(),
    })?;
    let mut trace = Trace::new(source_info(&source, &place));
    let outcome = drain(&feed, &mut trace);
    drop(feed);
    let report = Report::new(&trace, Some(&plan), peaks(&profile));
    if args.json {
        print(&json(&report)?)?;
    } else {
        print(&text::render(&report, &super::text_options()))?;
    }
    match outcome {
        Outcome::Complete if report.is_as_expected() => Ok(exit::FINE),
        Outcome::Complete => Ok(exit::EXPECTATION),
        Outcome::Stopped => Err(Ending::input("stopped before the end")),
        Outcome::Failed(failure) => Err(failure.into()),
    }
}

/// Everything that starting a run takes.
pub(super) struct Start<'a> {
    pub(super) source: &'a Source,
    pub(super) overrides: &'a Overrides,
    pub(super) plan: &'a Arc<Plan>,
    pub(super) profile: &'a Profile,
    pub(super) place: &'a Place,
    /// For the simulator; a GPU has its own.
    pub(super) pace: Pace,
    pub(super) save: Option<&'a Path>,
    pub(super) flush: Duration,
    pub(super) issued: IssuedLog,
}

/// Starts a run.
pub(super) fn start(run: &Start<'_>) -> Result<Feed, Ending> {
    let feed = match run.place {
        Place::Gpu => runner::run(RunRequest {
            source: run.source.clone(),
            overrides: run.overrides.clone(),
            save: run.save.map(Path::to_path_buf),
            flush: run.flush,
            issued: run.issued.clone(),
        }),
        Place::Simulator(_) => {
            sim::run(run.plan.clone(), run.profile, run.pace).and_then(|feed| saved(feed, run.save))
        }
    };
    feed.map_err(|error| Ending::machine(format!("cannot start {}: {error}", run.source.name)))
}

/// The same feed, written to a recording on its way.
fn saved(feed: Feed, save: Option<&Path>) -> io::Result<Feed> {
    match save {
        None => Ok(feed),
        Some(directory) => crate::source::recording::tee(feed, directory, true),
    }
}

/// Finds a scenario by path or name.
pub(super) fn find(name: &str) -> Result<Source, Ending> {
    Source::find(name).map_err(Ending::input)
}

/// What the command line changes of a scenario.
pub(super) fn overrides(args: &Run) -> Overrides {
    Overrides {
        set: args.set.clone(),
        variant: args.variant.clone(),
    }
}

/// Compiles a scenario; warnings go to standard error.
pub(super) fn compiled(source: &Source, overrides: &Overrides) -> Result<Compiled, Ending> {
    let color = super::stderr_has_color();
    match compile(source, overrides) {
        Ok(compiled) => {
            if !compiled.warnings.is_empty() {
                eprint(&compiled.warnings.render(color));
            }
            Ok(compiled)
        }
        Err(diagnostics) => Err(Ending {
            code: exit::INPUT,
            message: diagnostics.render(color),
            help: String::new(),
        }),
    }
}

/// The profile that was asked for, or the bundled one.
pub(super) fn profile(path: Option<&Path>) -> Result<Profile, Ending> {
    match path {
        None => Ok(Profile::bundled()),
        Some(path) => Profile::load(path).map_err(Ending::input),
    }
}

/// Decides where to run. Asking the driver takes a moment and a process of its own.
pub(super) fn place(backend: Backend) -> Result<Place, Ending> {
    if backend == Backend::Sim {
        return Ok(Place::Simulator(None));
    }
    let probe = runner::probe();
    if probe.can_run() {
        return Ok(Place::Gpu);
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
        _ => Ok(Place::Simulator(Some(text))),
    }
}

/// How the timeline is labelled.
pub(super) fn source_info(source: &Source, place: &Place) -> SourceInfo {
    let is_simulated = matches!(place, Place::Simulator(_));
    SourceInfo {
        kind: if is_simulated {
            SourceKind::Simulator
        } else {
            SourceKind::Cuda
        },
        title: source.name.trim_end_matches(".toml").to_owned(),
        path: source.path.clone(),
        simulated: is_simulated,
    }
}

/// The peaks that rates are compared with: the profile's, which describes one model of GPU. On another
/// GPU only what was calibrated there would be true.
pub(super) fn peaks(profile: &Profile) -> Peaks {
    Peaks {
        h2d: Some(profile.copy.h2d_gbps),
        d2h: Some(profile.copy.d2h_gbps),
        d2d: Some(profile.copy.d2d_gbps),
        p2p: Some(profile.copy.p2p_gbps),
    }
}

/// A report as JSON with a line end.
pub(super) fn json(report: &Report) -> Result<String, Ending> {
    let mut text = report.json().map_err(Ending::input)?;
    text.push('\n');
    Ok(text)
}

fn eprint(text: &str) {
    use std::io::Write as _;
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

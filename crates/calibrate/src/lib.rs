//! `cuptop calibrate`: measures a GPU by running a scenario made for it, and turns the recording into a
//! profile.
//!
//! The simulator deals in what CUPTI records say: how long a copy ran, how long a call took, what lay
//! between two operations. So that is what is measured, the same way that every other run takes. Figures
//! that cannot be measured on this machine stay those of the bundled profile and are named.
//!
//! The scenario is run in several processes, one after the other. Where a machine is shared, the same calls take half as long
//! again in one process as in the next. Pageable memory is staged at 9 or at 17 GB/s, depending on where it was allocated. So
//! the profile holds the middle of each figure.

mod copies;
mod figures;
mod middle;
mod observe;

use std::fmt::Write as _;
use std::time::Duration;

use activity::feed::{Failure, FailureKind, Feed, Message, Outcome, Progress};
use live::attach::Graphs;
use live::counters::Counters;
use live::runner::{RunRequest, run};
use profile::Profile;
use scenario::bundled::Library;
use scenario::plan::Plan;
use scenario::{self, Overrides, Source};
use trace::{SourceInfo, Trace};

use figures::ProfileBuilder;
use middle::{Measured, middle};
use observe::Observed;

/// The scenario that is run.
const SCENARIO: &str = include_str!("calibration.toml");

/// How many processes run it: with five the middle holds where two of them had bad luck.
const RUNS: u64 = 5;

/// What a calibration found.
#[derive(Clone, Debug)]
pub struct Calibration {
    pub profile: Profile,
    /// Figures in it that were not measured, as "table.key".
    pub missing: Vec<&'static str>,
    /// Driver, CUPTI and CUDA, in words.
    pub versions: String,
}

impl Calibration {
    /// The middle of several runs.
    fn of(runs: &[Measured], versions: String) -> Calibration {
        let missing = runs.first().map_or_else(Vec::new, |first| {
            let is_nowhere = |name: &&&str| runs.iter().all(|run| run.missing.contains(*name));
            first.missing.iter().filter(is_nowhere).copied().collect()
        });
        Calibration {
            profile: middle(runs).unwrap_or_else(Profile::bundled),
            missing,
            versions,
        }
    }

    /// The profile as the file that [`Profile::load`] reads, with a comment that says where it comes from.
    ///
    /// # Errors
    /// Never for what a calibration makes.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let name = &self.profile.device.name;
        let mut text = format!("# {name}: measured by `cuptop calibrate`.\n");
        if !self.versions.is_empty() {
            let _ = writeln!(text, "# {}", self.versions);
        }
        text += "# The limits of the device are the driver's; fp32_tflops is its SMs, lanes and clock.\n";
        let _ = writeln!(
            text,
            "# Each other number is the middle of {RUNS} processes."
        );
        if !self.missing.is_empty() {
            text += "# Not measured here, and taken from the profile of an H200:\n";
            for names in self.missing.chunks(5) {
                let _ = writeln!(text, "#   {}", names.join(", "));
            }
        }
        text.push('\n');
        text += &self.profile.to_toml()?;
        Ok(text)
    }
}

/// Measures GPU 0. Takes half a minute or so, and a gigabyte of memory on either side.
///
/// # Errors
/// When the machine cannot run it, or a run of it fails.
pub fn calibrate(
    library: Library,
    mut progress: impl FnMut(&Progress),
) -> Result<Calibration, Failure> {
    let (source, plan) = scenario(library)?;
    let mut runs = Vec::new();
    let mut versions = String::new();
    for number in 1..=RUNS {
        let feed = start(source.clone())?;
        let (measured, found) = evaluate(&feed, &plan, |done| {
            progress(&Progress {
                what: format!("run {number} of {RUNS}: {}", done.what),
                ..done.clone()
            });
        })?;
        runs.push(measured);
        versions = found;
    }
    Ok(Calibration::of(&runs, versions))
}

fn start(source: Source) -> Result<Feed, Failure> {
    run(RunRequest {
        source,
        overrides: Overrides::default(),
        save: None,
        flush: Duration::from_millis(20),
        graphs: Graphs::Nodes,
        // What is measured shall be the GPU alone.
        hardware: false,
        stalls: false,
        counters: Counters::Off,
    })
    .map_err(|error| Failure::machine(format!("the calibration cannot be started: {error}")))
}

fn scenario(library: Library) -> Result<(Source, Plan), Failure> {
    let source = Source {
        name: "calibration.toml".to_owned(),
        path: None,
        text: SCENARIO.into(),
        kernel_dir: None,
        library,
    };
    match scenario::compile(&source, &Overrides::default()) {
        Ok(compiled) => Ok((source, compiled.plan)),
        Err(wrong) => Err(Failure::new(FailureKind::Input, wrong.render(false), "")),
    }
}

/// Takes a run of the scenario in, to its end: what it measured, and driver, CUPTI and CUDA in words.
fn evaluate(
    feed: &Feed,
    plan: &Plan,
    mut progress: impl FnMut(&Progress),
) -> Result<(Measured, String), Failure> {
    let mut trace = Trace::new(SourceInfo::default());
    for message in feed.receiver() {
        match message {
            Message::Progress(done) => progress(&done),
            Message::Finished(Outcome::Failed(failure)) => return Err(failure),
            Message::Finished(_) => break,
            Message::Batch(batch) => trace.apply(batch),
            _ => {}
        }
    }
    let observed = Observed::new(trace);
    let mut builder = ProfileBuilder::new(&observed, Profile::bundled());
    builder.measure(plan);
    let measured = Measured {
        profile: builder.profile,
        missing: builder.missing,
    };
    Ok((measured, observed.versions()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Pace;
    use std::sync::Arc;

    /// A GPU that is no H200: what is measured on a model of it must be what the model was made with.
    fn other_gpu() -> Profile {
        let mut p = Profile::bundled();
        p.copy.h2d_gbps = 24.0;
        p.copy.d2h_gbps = 20.0;
        p.copy.h2d_shared_gbps = 18.0;
        p.copy.d2h_shared_gbps = 16.0;
        p.copy.h2d_fixed_ns = 2_500;
        p.copy.d2h_fixed_ns = 2_000;
        p.copy.d2d_gbps = 700.0;
        p.kernel.fixed_ns = 1_700;
        p.kernel.memset_gbps = 900.0;
        p.api.launch_ns = 5_000;
        p.api.copy_ns = 4_000;
        p.api.sync_ns = 1_100;
        p.latency.launch_ns = 3_100;
        p.latency.kernel_to_kernel_ns = 1_900;
        p.latency.copy_to_kernel_ns = 5_100;
        p.latency.poll_ns = 0;
        p.copy.h2d_ramp_ns = 2_400;
        p.api.graph_upload_node_ns = 2_000;
        p.latency.wake_ns = 6_000;
        p.latency.graph_node_ns = 700;
        if let Some(entry) = p.entry.get_mut("matmul_tiled") {
            entry.compute_share = Some(0.33);
        }
        p
    }

    #[test]
    fn a_model_of_a_gpu_is_measured_as_what_it_is() {
        let (_, plan) = scenario(scenario::testing::library()).expect("the scenario is valid");
        let plan = Arc::new(plan);
        let truth = other_gpu();
        let feed =
            sim::run(Arc::clone(&plan), &truth, Pace::AsFastAsPossible, None).expect("a thread");
        let (found, _) = evaluate(&feed, &plan, |_| {}).expect("it runs");
        let found = found.profile;
        let pairs = [
            ("h2d", found.copy.h2d_gbps, truth.copy.h2d_gbps),
            ("d2h", found.copy.d2h_gbps, truth.copy.d2h_gbps),
            (
                "h2d shared",
                found.copy.h2d_shared_gbps,
                truth.copy.h2d_shared_gbps,
            ),
            (
                "d2h shared",
                found.copy.d2h_shared_gbps,
                truth.copy.d2h_shared_gbps,
            ),
            ("d2d", found.copy.d2d_gbps, truth.copy.d2d_gbps),
            ("memset", found.kernel.memset_gbps, truth.kernel.memset_gbps),
            (
                "tiled",
                found.entry["matmul_tiled"].compute_share.expect("measured"),
                0.33,
            ),
        ];
        for (what, found, truth) in pairs {
            assert!(
                (found / truth - 1.0).abs() < 0.02,
                "{what}: {found} for {truth}"
            );
        }
        let times = [
            ("h2d", found.copy.h2d_fixed_ns, truth.copy.h2d_fixed_ns),
            ("d2h", found.copy.d2h_fixed_ns, truth.copy.d2h_fixed_ns),
            ("kernel", found.kernel.fixed_ns, truth.kernel.fixed_ns),
            ("ramp", found.copy.h2d_ramp_ns, truth.copy.h2d_ramp_ns),
            (
                "upload",
                found.api.graph_upload_node_ns,
                truth.api.graph_upload_node_ns,
            ),
            ("launch", found.api.launch_ns, truth.api.launch_ns),
            ("copy", found.api.copy_ns, truth.api.copy_ns),
            ("sync", found.api.sync_ns, truth.api.sync_ns),
            ("latency", found.latency.launch_ns, truth.latency.launch_ns),
            (
                "kernel to kernel",
                found.latency.kernel_to_kernel_ns,
                truth.latency.kernel_to_kernel_ns,
            ),
            (
                "copy to kernel",
                found.latency.copy_to_kernel_ns,
                truth.latency.copy_to_kernel_ns,
            ),
            ("wake", found.latency.wake_ns, truth.latency.wake_ns),
            (
                "node",
                found.latency.graph_node_ns,
                truth.latency.graph_node_ns,
            ),
        ];
        for (what, found, truth) in times {
            assert!(
                (found - truth).abs() <= truth / 50 + 2,
                "{what}: {found} for {truth} ns"
            );
        }
    }

    #[test]
    fn the_file_it_writes_is_a_profile() {
        let calibration = Calibration {
            profile: other_gpu(),
            missing: vec!["copy.p2p_gbps"],
            versions: "CUPTI 130001".to_owned(),
        };
        let text = calibration.to_toml().expect("TOML");
        assert!(text.contains("# CUPTI 130001\n") && text.contains("copy.p2p_gbps"));
        let read = Profile::parse(&text, "test").expect("a profile");
        assert_eq!(read, calibration.profile);
    }
}

//! What could be better: one rule a file, registered in [`RULES`].
//!
//! A rule checks a timeline, or one pass of it, and finds nothing or makes one [`Finding`]. That says what the rule
//! saw, where, how much time it could cost at most, and what to do about it. Thresholds and
//! exceptions are rows of the table of cases, each with the inputs that ask for it, or stand in [`cases::thresholds`].
//! `docs/FINDINGS.md` has a row of each rule for readers.

mod alloc_loop;
mod asleep;
mod attention;
mod below_roof;
mod blocked_launches;
mod coalescing;
mod cold_start;
mod configs;
mod copy_bound;
mod copying;
mod declared;
mod default_stream;
mod device_copies;
mod double;
mod exchanges;
mod exposed_collectives;
mod failed;
pub mod fold;
mod gap;
mod graph_launch;
mod graphs_anew;
mod host_bound;
mod idle_gpu;
mod late_rank;
mod launch_bound;
mod limits;
pub mod lost_records;
mod low_bandwidth;
mod machine;
mod matrix_vector;
mod memset_bound;
mod migrations;
mod no_core;
pub mod no_cure;
mod no_overlap;
mod offload;
mod one_by_one;
mod one_engine;
mod optimizer;
mod optimizer_passes;
mod own_kernels;
mod pageable;
mod program;
mod queries;
mod queue_full;
mod race;
mod recomputing;
mod round_trips;
mod saving;
mod scope;
mod shared_gpu;
mod stalled;
mod sync_loop;
mod tensor_cores;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod throttled;
mod through_host;
mod tiny_copies;
mod training_mode;
mod tuning;
mod turns;
mod under_filled;
mod unfused;
mod unwaited;
mod watched;
mod wide_data;
mod words;

use cases::thresholds;
use serde::{Serialize, Serializer};

pub use self::program::HOST_FUNCTION;
pub use ::program::cures::KEEP_WORKERS;
pub use ::program::{Change, at_lines};
use causes::Bound;
use causes::evidence::{EVIDENCE_MAX, Evidence};
pub use cold_start::COMPILING;
pub use machine::check as machine;
pub use saving::{Per, Predicted};
use scope::{At, Copied, longest_first};
pub use scope::{Occurrence, Scope};
pub use watched::distorts;

use activity::Ns;
use activity::feed::Stop;
use activity::units::share;
use figures::DeviceFigures;
use replay::whatif::WhatIf;
use scenario::edit::EditSet;
use trace::parallel;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    #[default]
    Info,
    /// Worth a change.
    Warning,
}

impl Severity {
    /// A warning where something holds.
    fn warn_where(holds: bool) -> Severity {
        [Severity::Info, Severity::Warning][usize::from(holds)]
    }

    /// The same where something holds, and else a remark.
    fn keep_where(self, holds: bool) -> Severity {
        if holds { self } else { Severity::Info }
    }
}

/// Something that could be better.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// The rule that found it.
    pub rule: Rule,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen, in a line.
    pub title: String,
    /// Where, most telling first; at most [`EVIDENCE_MAX`].
    pub evidence: Vec<Evidence>,
    /// How many places there are in all.
    pub count: u64,
    /// The change that would cure it, as `cuptop whatif --edit` takes it; `None` where no edit describes it.
    pub edit: Option<EditSet>,
    /// All edits that would, the one that takes least for granted first.
    #[serde(skip)]
    pub cures: Vec<EditSet>,
    /// What the edit is predicted to save of all the time examined, on top of the findings above it. It is 0 where they
    /// leave nothing to save; `None` where nothing was predicted.
    pub saving_ns: Option<Ns>,
    /// What the edit alone is predicted to save.
    pub alone_ns: Option<Ns>,
    /// The prediction of the edit alone.
    pub predicted: Option<Predicted>,
    /// Why nothing was predicted, where an edit describes the cure.
    pub refused: Option<String>,
    /// The most time that could be saved, within the span examined (a cold start apart). It is 0 where time does not
    /// matter.
    pub bound_ns: Ns,
    /// What to do about it, in a sentence.
    pub advice: String,
    /// The calls to change for that, as far as they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<Change>,
    /// Where it was seen, of several devices or points of a sweep. The title is that with the greatest bound.
    pub places: Vec<String>,
    /// Whether it is of the start-up, beside the steps.
    #[serde(skip)]
    pub is_of_start_up: bool,
    /// The steps that were looked at.
    #[serde(skip)]
    pub step: Option<OfSteps>,
    /// What a headline says where this comes first.
    #[serde(skip)]
    pub says: Option<Says>,
    /// Rules that tell less of the same.
    #[serde(skip)]
    pub instead_of: &'static [Rule],
    /// What the one gap ends with that holds nearly all that it tells of: " before globalMM".
    #[serde(skip)]
    pub ends_with: String,
    /// What would save more than its cure: no bound is above what that saves.
    #[serde(skip)]
    pub at_most: Option<EditSet>,
    /// Whether the bound is all that its sentence names, or work that stays as well: it bounds next to nothing.
    #[serde(skip)]
    pub is_all: bool,
    /// What of the bound lies in the time looked at, where that is not all of it.
    #[serde(skip)]
    pub inside_ns: Option<Ns>,
    /// What lies beside what its bound is of, and may go with it: copies and pauses between the same two kernels.
    #[serde(skip)]
    pub beside_ns: Ns,
    /// What its cure saves at most of the time looked at, whatever a replay says; `None` where nothing is known.
    #[serde(skip)]
    pub cap_ns: Option<Ns>,
    /// What its cure saves at least and at most of the time looked at, where that is estimated by rates of the card.
    #[serde(rename = "estimated_ns", skip_serializing_if = "Option::is_none")]
    pub estimated: Option<[Ns; 2]>,
    /// The most of it by what is tried first: all of it takes further changes.
    #[serde(skip)]
    pub tried_first: Option<Ns>,
    /// Whether it tells of pauses in which something else than the CPU's own work held it up.
    #[serde(skip)]
    pub is_of_pauses: bool,
    /// What its cure brings, where its rule says that itself.
    #[serde(skip)]
    pub gain: Option<String>,
    /// What another variant of the same work saves, as measured, where nothing is predicted: "peer saves 2.24 ms".
    #[serde(skip)]
    pub tried: Option<String>,
    /// What its cure is called in a headline ("pinning").
    #[serde(skip)]
    pub cure: &'static str,
    /// What to do next, at the end of a headline, where no cure is known.
    #[serde(skip)]
    pub next: &'static str,
    /// An edit that the advice takes for granted: where that is refused, so is the prediction.
    #[serde(skip)]
    pub premise: Option<EditSet>,
    /// Rules whose findings are part of this one, because the edits save something only together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<Rule>,
}

/// Steps that a finding is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfSteps {
    /// What one takes: at the median, of uneven ones in the mean.
    pub one: Ns,
    /// What all of them take.
    pub all: Ns,
    pub count: usize,
    /// Steps of their kind.
    pub of: usize,
    /// Which of all steps that were found is the first of them.
    pub first: usize,
    pub found: usize,
    /// Whether they are uneven.
    pub is_mean: bool,
}

/// A headline's words of a cause that is known by its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Says {
    /// What that bounds.
    pub bound: Bound,
    /// Its part of the time.
    pub part: f64,
    /// Why, for the end of the sentence.
    pub why: String,
}

impl Says {
    /// Of what kernels take.
    fn of_kernels(f: &DeviceFigures, why: String) -> Says {
        Says {
            bound: Bound::Compute,
            part: f.part(f.compute_ns),
            why,
        }
    }
}

impl Finding {
    /// Whether it says that something is wrong rather than slow, or that something is without effect.
    pub fn is_no_matter_of_time(&self) -> bool {
        self.bound_ns == 0
    }

    /// The title with where it was seen.
    pub fn headline(&self) -> String {
        match self.places.as_slice() {
            [] => self.title.clone(),
            [one] => format!("{one}: {}", self.title),
            [first, between @ .., last] => {
                // "GPU 0 to GPU 1" would be the way of a copy.
                let is_device = first.starts_with("GPU ");
                let first = match is_device {
                    true => first.replacen("GPU ", "GPUs ", 1),
                    false => first.clone(),
                };
                let last = ["at ", "GPU "]
                    .iter()
                    .find_map(|word| last.strip_prefix(word))
                    .unwrap_or(last);
                let last = last.split_once('=').map_or(last, |(_, value)| value);
                let and = if between.is_empty() { "and" } else { "to" };
                format!(
                    "{first} {and} {last} (figures from the worst of them): {}",
                    self.title
                )
            }
        }
    }
}

/// A rule's row: what checks, and what cures what it finds.
#[derive(Clone, Copy, Debug)]
pub struct RuleRow {
    /// What its findings are called.
    pub rule: Rule,
    check: Check,
    /// The edits that cure what it finds, the one that takes least for granted first.
    cures: &'static [&'static str],
    /// What its cure is called in a headline ("pinning"); empty where none is known.
    cure: &'static str,
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(self.name())
    }
}

/// Where a rule looks.
#[derive(Clone, Copy, Debug)]
enum Check {
    /// At each device that has an operation.
    Device(fn(&Scope, &DeviceFigures) -> Option<Finding>),
    /// At the whole timeline.
    Timeline(fn(&Scope) -> Option<Finding>),
}

impl Check {
    /// What it finds, each under its place.
    fn findings(&self, scope: &Scope) -> Vec<Finding> {
        match self {
            Check::Device(check) => {
                let of_device = |f: &DeviceFigures| {
                    let mut finding = check(scope, f)?;
                    if scope.devices.len() > 1 {
                        finding.places = vec![format!("GPU {}", f.device)];
                    }
                    Some(finding)
                };
                scope.devices.iter().filter_map(of_device).collect()
            }
            Check::Timeline(check) => check(scope).into_iter().collect(),
        }
    }
}

impl Rule {
    /// Whether it looks at the whole run, whatever steps others are counted in.
    pub fn is_of_run(self) -> bool {
        matches!(self, Rule::Machine | Rule::FailedCalls | Rule::LostRecords)
    }

    /// Whether its cure makes kernels shorter.
    pub fn speeds_kernels(self) -> bool {
        use Rule::*;
        matches!(
            self,
            Attention
                | BelowRoof
                | DoublePrecision
                | FewWarps
                | IdleTensorCores
                | LatencyBound
                | Layout
                | MatrixVector
                | MemoryChain
                | MemsetBound
                | OversizedGrid
        ) || matches!(self, MemoryBound | TailWave | UnderFilledGpu | Unfused)
            || matches!(self, BankConflicts | Barriers | CodeFetch)
    }

    /// Whether its cure makes copies fewer or shorter, or hides them.
    pub fn saves_copies(self) -> bool {
        use Rule::*;
        matches!(
            self,
            CopyBound | DeviceCopies | HostExchange | LowBandwidth | NoOverlap | Offloading
        ) || matches!(
            self,
            PageMigration | PageableCopy | RoundTrips | ThroughHost | TinyCopies
        )
    }
}

impl RuleRow {
    /// What it finds.
    fn findings(&self, scope: &Scope) -> Vec<Finding> {
        let mut findings = self.check.findings(scope);
        for finding in &mut findings {
            let cures = self.cures.iter().filter_map(|cure| cure.parse().ok());
            finding.rule = self.rule;
            if finding.cure.is_empty() {
                finding.cure = self.cure;
            }
            finding.cures.extend(cures);
            finding.edit = finding.cures.first().cloned();
        }
        findings
    }
}

macro_rules! rules {
    ($($rule:ident $name:literal $look:ident($check:path) [$($edit:literal)*] $cure:literal;)*) => {
        /// Which rule found something.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $name] $rule,)*
            /// Odd steps that cost much.
            OddSteps,
            /// The next batch was not ready.
            NextBatch,
            /// The CPU is at work where memory is managed.
            ManagedMemory,
            /// What no other rule tells of.
            #[default]
            NoCure,
        }

        impl Rule {
            /// What programs and people know it by ("pageable-copy").
            pub fn name(self) -> &'static str {
                match self {
                    $(Rule::$rule => $name,)*
                    Rule::NoCure => "no-cure",
                    Rule::OddSteps => "odd-steps",
                    Rule::NextBatch => "next-batch",
                    Rule::ManagedMemory => "managed-memory",
                }
            }
        }

        /// All rules, in the order in which findings of equal weight are shown.
        pub const RULES: &[RuleRow] = &[$(RuleRow {
            rule: Rule::$rule,
            check: Check::$look($check),
            cures: &[$($edit),*],
            cure: $cure,
        },)*];
    };
}

rules! {
    PageableCopy "pageable-copy" Device(pageable::check) ["pin"] "pinning";
    TinyCopies "tiny-copies" Device(tiny_copies::check) ["merge-copies"] "batching small copies";
    SyncInLoop "sync-in-loop" Device(sync_loop::check) ["no-sync"] "removing the syncs";
    AllocInLoop "alloc-in-loop" Timeline(alloc_loop::check) ["reuse"] "reusing memory";
    LaunchBound "launch-bound" Device(launch_bound::check) ["graph"] "using a CUDA graph";
    BlockedLaunches "blocked-launches" Device(blocked_launches::check) [] "letting launches return at once";
    GraphsAnew "graphs-anew" Device(graphs_anew::check) [] "making each graph once";
    Queries "queries" Device(queries::check) [] "asking once";
    GraphNodes "graph-nodes" Device(graph_launch::nodes) [] "fusing nodes of the graph";
    BesideGraphs "beside-graphs" Device(graph_launch::rest) [] "capturing the whole step";
    GraphLaunch "graph-launch" Device(graph_launch::check) [] "calling cudaGraphLaunch before the sync";
    // A host that waits for every batch launches the next one too late, whatever its stream.
    NoOverlap "no-overlap" Device(no_overlap::check) ["own-stream" "no-sync" "no-sync+own-stream"] "overlapping";
    ColdStart "cold-start" Timeline(cold_start::check) [] "warming up";
    UnderFilledGpu "under-filled-gpu" Device(under_filled::check) [] "launching larger grids";
    TailWave "tail-wave" Device(limits::tail) [] "filling the last wave";
    LatencyBound "latency-bound" Device(limits::latency) [] "reaching its roofline limit";
    MemoryBound "memory-bound" Device(limits::memory) [] "fewer bytes";
    MemoryChain "memory-chain" Device(limits::chain) [] "fusing kernels";
    Attention "attention" Device(attention::check) [] "fusing attention";
    LowBandwidth "low-bandwidth" Device(low_bandwidth::check) [] "full link speed";
    Race "race" Timeline(race::check) [] "";
    FailedCalls "failed-calls" Timeline(failed::check) [] "";
    DefaultStream "default-stream" Device(default_stream::check) [] "using non-blocking streams";
    Offloading "offloading" Device(offload::check) [] "working in chunks";
    OptimizerLaunches "optimizer-launches" Device(optimizer::check) [] "a fused optimizer";
    OptimizerKernels "optimizer-kernels" Device(optimizer_passes::check) [] "a fused optimizer";
    Tuning "tuning" Device(tuning::check) [] "tuning once";
    Turns "turns" Device(turns::check) [] "launching from processes";
    LostRecords "lost-records" Timeline(lost_records::check) [] "";
    Asleep "asleep" Device(asleep::check) [] "";
    HostBound "host-bound" Device(host_bound::check) [] "preparing work ahead";
    RoundTrips "round-trips" Device(round_trips::check) [] "keeping arrays on the GPU";
    CopyBound "copy-bound" Device(copy_bound::check) [] "copying less";
    MemsetBound "memset-bound" Device(memset_bound::check) [] "setting less memory";
    DeviceCopies "device-copies" Device(device_copies::check) [] "swapping pointers";
    CopyKernels "copy-kernels" Device(copying::check) [] "copying less";
    MatrixVector "matrix-vector" Device(matrix_vector::check) [] "batching or quantising";
    OwnKernels "own-kernels" Device(own_kernels::check) [] "a library's kernel";
    Coalescing "coalescing" Device(coalescing::check) [] "coalescing once";
    Recomputing "recomputing" Device(recomputing::check) [] "a KV cache";
    Checkpointing "checkpointing" Device(recomputing::checkpointed) [] "keeping activations";
    TrainingMode "training-mode" Device(training_mode::check) [] "";
    ExposedCommunication "exposed-communication" Device(exposed_collectives::check) [] "overlapping communication";
    PageMigration "page-migration" Device(migrations::check) [] "prefetching pages";
    SameDirectionStreams "same-direction-streams" Device(one_engine::check) [] "";
    HostExchange "host-exchange" Device(exchanges::check) [] "sending from GPU to GPU";
    ThroughHost "through-host" Timeline(through_host::check) [] "copying directly between GPUs";
    IdleGpu "idle-gpu" Timeline(idle_gpu::check) [] "using both GPUs";
    Unfused "unfused" Device(unfused::check) ["fuse:once"] "fusing kernels";
    BelowRoof "below-roof" Device(below_roof::check) [] "coalescing memory access";
    QueueFull "queue-full" Device(queue_full::check) [] "";
    FewWarps "few-warps" Device(limits::few_warps) [] "";
    OversizedGrid "oversized-grid" Device(limits::oversized) [] "fewer, larger blocks";
    IdleTensorCores "idle-tensor-cores" Device(tensor_cores::no_tensor) [] "using tensor cores";
    DoublePrecision "double-precision" Device(double::check) [] "float in place of double";
    Layout "layout" Device(tensor_cores::layout) [] "channels_last";
    ForgotSync "forgot-sync" Timeline(unwaited::check) [] "";
    NoCpu "no-cpu" Timeline(no_core::check) [] "freeing a CPU core";
    Machine "machine" Timeline(machine::check) [] "";
    BankConflicts "bank-conflicts" Device(stalled::banks) [] "avoiding bank conflicts";
    Barriers "barriers" Device(stalled::barriers) [] "fewer waits at barriers";
    CodeFetch "code-fetch" Device(stalled::fetch) [] "smaller code";
    LateRank "late-rank" Timeline(late_rank::check) [] "";
}

/// Everything that the rules find with what it saves, in order: warnings first, then what saves most. `whatif`
/// makes the same stretch ready to be replayed, beside the rules. It is given up, between two rules or two replays, once
/// it is told to stop.
pub fn weighed<'a>(
    scope: &Scope,
    whatif: impl Fn() -> Result<WhatIf<'a>, String> + Sync,
    stop: &Stop,
) -> Vec<Finding> {
    let is_whole = scope.devices.iter().all(|f| f.not_recorded_ns == 0);
    let whatif = || match is_whole {
        true => whatif(),
        false => Err("recording was off for part of the time".to_owned()),
    };
    let records = scope.causes.graph().ops.len();
    // Nearly every long timeline has a finding with an edit. What rules need for a while, replays need again, so both
    // take it on this thread.
    let (mut findings, ready) = match parallel::is_worth(records) {
        true => parallel::join(records, || find(scope, stop), || Some(whatif())),
        false => (find(scope, stop), None),
    };
    if !stop.is_stopped() && findings.iter().any(|f| f.edit.is_some()) {
        let whatif = ready.unwrap_or_else(whatif);
        saving::predict(&mut findings, whatif.as_ref().map_err(String::as_str), stop);
    }
    findings
}

/// Puts an estimated saving before what saves less than that at most.
pub fn put_surest_first(findings: &mut [Finding]) {
    let least = |it: &Finding| it.estimated.map_or(0, |it| it[0]);
    let all = findings.iter().enumerate();
    let surest = all.max_by_key(|it| least(it.1)).map(|it| it.0);
    if let Some(at) = surest.filter(|at| least(&findings[*at]) > findings[0].weight()) {
        findings[..=at].rotate_right(1);
    }
}

/// What steps do not show of the start of a program: a cold start, and data that take long to come.
pub fn of_start_up(scope: &Scope) -> Vec<Finding> {
    let rules = [Rule::PageableCopy, Rule::PageMigration, Rule::ColdStart];
    let rules = RULES.iter().filter(|it| rules.contains(&it.rule));
    let whole: Ns = scope.devices.iter().map(|f| f.span_ns).max().unwrap_or(0);
    let is_told = |it: &Finding| match it.rule {
        Rule::ColdStart => true,
        Rule::PageableCopy => cases::WARNING_SHARE.is_reached_by(share(it.bound_ns, whole)),
        _ => cases::LARGE_SHARE.is_reached_by(share(it.bound_ns, whole)),
    };
    let found = rules.flat_map(|rule| rule.findings(scope));
    let mut found: Vec<Finding> = found.filter(is_told).collect();
    found.sort_by_key(Finding::order);
    found
}

/// Everything that the rules find, warnings first, then the greatest possible saving. Given up between two rules once it is told to stop: what was found until then.
pub fn find(scope: &Scope, stop: &Stop) -> Vec<Finding> {
    let records = scope.causes.graph().ops.len();
    let found = parallel::map(records, RULES, |rule| match stop.is_stopped() {
        true => Vec::new(),
        false => rule.findings(scope),
    });
    let mut findings: Vec<Finding> = found.into_iter().flatten().collect();
    findings.retain(|f| f.bound_ns >= thresholds::WORTH_NS || f.is_no_matter_of_time());
    let told: Vec<Rule> = findings
        .iter()
        .flat_map(|it| it.instead_of)
        .copied()
        .collect();
    findings.retain(|it| !told.contains(&it.rule));
    let uncured = scope.devices.iter();
    let uncured: Vec<Finding> = uncured
        .filter_map(|f| no_cure::check(scope, f, &findings))
        .collect();
    findings.extend(uncured);
    findings.extend(gap::beside(scope, &findings));
    let has = |rule| findings.iter().any(|f| f.rule == rule);
    let failed = || figures::failed::Failed::of(scope.trace, scope.causes.graph());
    if has(Rule::FailedCalls) && failed().is_some_and(|failed| failed.is_all()) {
        // There is no other work to speak of.
        findings.retain(|f| f.rule == Rule::FailedCalls);
    }
    let is_program = scope.window.is_none() && scope.planned.is_none();
    if is_program && figures::failed::ended_early(scope.trace, scope.devices).is_some() {
        findings.retain(Finding::is_no_matter_of_time);
    }
    if findings.iter().any(|f| f.rule == Rule::LostRecords) {
        // Nothing holds of what ran without a record. What was done before, and copies, have theirs.
        findings.retain(|f| {
            matches!(f.rule, Rule::ColdStart | Rule::PageableCopy)
                || matches!(f.rule, Rule::FailedCalls | Rule::LostRecords)
        });
        for it in findings.iter_mut().filter(|it| it.has_bound()) {
            (it.severity, it.edit, it.at_most, it.beside_ns) = (Severity::Info, None, None, 0);
            it.cures.clear();
        }
    }
    let mut findings = fold::devices(findings);
    findings.sort_by_key(Finding::order);
    findings
}

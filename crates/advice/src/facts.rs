//! What is known of a timeline: each fact of the whole is made by whoever asks first, and never twice.
//!
//! Reports, comparisons, predictions, exports and the screen ask [`Facts`] instead of making graph, causes and steps
//! themselves. [`LastFacts`] keeps those of the state of a run that was asked about last.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use activity::feed::Stop;
use activity::{Ns, Span};
use causes::graph::Graph;
use causes::{Causes, Group, IdleCause, Ready};
use figures::lines::{self, DeviceLines};
use figures::memory::MemoryUse;
use figures::passes::Passes;
use figures::steps::{self, BehindWarmUp, Steps};
use figures::variants::{self, VariantFigures};
use figures::{DeviceFigures, Peaks};
use jobs::{Alignment, JobAnalysis, MatchedCollectives};
use replay::program::GpuRates;
use replay::whatif::{Basis, WhatIf};
use scenario::plan::Plan;
use trace::{CallIndex, Clock, Lane, Trace, parallel};

/// A graph that takes more bytes is not kept for the next question.
const KEPT_MAX: usize = 512 << 20;

/// What was made. `None` inside is known, too: it is no job.
#[derive(Debug, Default)]
struct FactCells {
    calls: OnceLock<CallIndex>,
    graph: OnceLock<Graph>,
    causes: OnceLock<Arc<Ready>>,
    steps: OnceLock<Arc<Vec<Steps>>>,
    behind_warm_up: OnceLock<Option<BehindWarmUp>>,
    /// Until it is judged: collectives take as much as a part of the timeline.
    matched: Mutex<Option<MatchedCollectives>>,
    aligned: OnceLock<Option<Arc<Alignment>>>,
    ranks: OnceLock<Option<Arc<JobAnalysis>>>,
    /// The figures of all of it, before and after it is known why nothing ran.
    counted: OnceLock<Vec<DeviceFigures>>,
    devices: OnceLock<Vec<DeviceFigures>>,
    passes: OnceLock<Passes>,
    memory: OnceLock<MemoryUse>,
    variants: OnceLock<Vec<VariantFigures>>,
}

impl FactCells {
    /// The same without what is large.
    fn without_graph(&self) -> FactCells {
        FactCells {
            steps: self.steps.clone(),
            aligned: self.aligned.clone(),
            ranks: self.ranks.clone(),
            ..FactCells::default()
        }
    }
}

/// What is known of a timeline as it is now, or of a part of it.
#[derive(Debug)]
pub struct Facts<'t> {
    pub trace: &'t Trace,
    /// The plan of the run, where there is one.
    pub plan: Option<&'t Plan>,
    /// What the devices can do, where a profile says.
    pub peaks: Peaks,
    /// What predictions know beside the timeline.
    pub known: GpuRates,
    /// Once it is told to, long work is given up.
    pub stop: Stop,
    around: Option<Span>,
    made: Arc<FactCells>,
    last: Option<&'t LastFacts>,
}

impl<'t> Facts<'t> {
    /// Of all of a timeline.
    pub fn new(trace: &'t Trace) -> Self {
        Facts {
            trace,
            plan: None,
            peaks: Peaks::default(),
            known: GpuRates::default(),
            stop: Stop::default(),
            around: None,
            made: Arc::default(),
            last: None,
        }
    }

    /// Of what was called for or ran within a stretch: graph and calls hold nothing else.
    pub fn within(trace: &'t Trace, around: Span) -> Self {
        let mut facts = Facts::new(trace);
        facts.around = Some(around);
        facts
    }

    /// The same of a run with this plan, on devices of which so much is known.
    pub fn of_run(mut self, plan: Option<&'t Plan>, peaks: Peaks, known: GpuRates) -> Self {
        (self.plan, self.peaks, self.known) = (plan, peaks, known);
        self
    }

    /// Makes what rests on the records alone beside the graph.
    pub fn prepare(&self) {
        let records = self.trace.lanes().iter().map(Lane::len).sum();
        let beside = || {
            let _ = (self.counted(), self.steps(), self.aligned());
        };
        parallel::join(records, || _ = self.graph(), beside);
    }

    /// Which call is behind which operation.
    pub fn calls(&self) -> &CallIndex {
        self.made.calls.get_or_init(|| match self.around {
            Some(around) => CallIndex::within(self.trace, around),
            None => CallIndex::new(self.trace),
        })
    }

    /// What depended on what.
    pub fn graph(&self) -> &Graph {
        self.made.graph.get_or_init(|| match self.around {
            Some(around) => Graph::within(self.trace, around),
            None => Graph::new(self.trace),
        })
    }

    pub fn causes(&self) -> Causes<'_> {
        let graph = self.graph();
        let make = || Arc::new(Ready::new(self.trace, graph));
        Causes::ready(self.trace, graph, self.made.causes.get_or_init(make))
    }

    /// The steps of all of it.
    pub fn steps(&self) -> &[Steps] {
        let make = || Arc::new(steps::find(self.trace, None));
        self.made.steps.get_or_init(make)
    }

    /// What it does behind its warm-up, where there is one.
    pub fn behind_warm_up(&self) -> Option<&BehindWarmUp> {
        let find = || steps::behind_warm_up(self.trace);
        self.made.behind_warm_up.get_or_init(find).as_ref()
    }

    /// What its collectives tell of a job; `None` for what is none.
    pub fn aligned(&self) -> Option<&Arc<Alignment>> {
        let make = || {
            let matched = self.matched().take();
            let matched = matched.or_else(|| MatchedCollectives::align(self.trace));
            let matched = matched?.split(self.trace);
            let aligned = Arc::clone(&matched.aligned);
            *self.matched() = Some(matched);
            Some(aligned)
        };
        self.made.aligned.get_or_init(make).as_ref()
    }

    /// What clocks are to be set to, where one is to move by more than `least` ns, with how well they are known.
    pub fn clocks_to_set(&self, least: Ns) -> Option<(Arc<Alignment>, Vec<Clock>)> {
        let Some(found) = MatchedCollectives::align(self.trace) else {
            let _ = self.made.aligned.set(None);
            return None;
        };
        let job = Arc::clone(&found.aligned);
        *self.matched() = Some(found);
        let clocks = job.to_set(self.trace, least)?;
        Some((job, clocks))
    }

    fn matched(&self) -> std::sync::MutexGuard<'_, Option<MatchedCollectives>> {
        // A panic of another holder was said by its hook; what it left is whole.
        let matched = self.made.matched.lock();
        matched.unwrap_or_else(PoisonError::into_inner)
    }

    /// With who is late. `None` for what is no job.
    pub fn ranks(&self) -> Option<&Arc<JobAnalysis>> {
        let make = || {
            let aligned = Arc::clone(self.aligned()?);
            // Where only the graph was let go, the collectives were, too.
            let matched = self.matched().take();
            let mut matched = matched.or_else(|| MatchedCollectives::align(self.trace))?;
            matched.aligned = aligned;
            let causes = self.causes();
            let ranks = matched.judge(self.trace, Some(&causes), self.steps());
            Some(Arc::new(ranks))
        };
        self.made.ranks.get_or_init(make).as_ref()
    }

    /// What predictions rest on.
    pub fn basis(&self) -> Basis<'_> {
        Basis {
            trace: self.trace,
            graph: self.graph(),
            known: &self.known,
        }
    }

    /// What predictions are made of: a variant of a scenario's run, the steady steps of a program, or all of it.
    ///
    /// # Errors
    /// When there is nothing to measure, or several variants and none of this name.
    pub fn whatif(&self, variant: Option<&str>) -> Result<WhatIf<'_>, String> {
        let steps = || steps::main(self.steps());
        WhatIf::new(self.basis(), self.passes(), steps, variant)
    }

    fn counted(&self) -> &[DeviceFigures] {
        let make = || figures::count(self.trace, Some(self.calls()), None);
        self.made.counted.get_or_init(make)
    }

    /// The figures of all devices, with why they were idle.
    pub fn devices(&self) -> &[DeviceFigures] {
        self.made.devices.get_or_init(|| {
            let mut devices = self.counted().to_vec();
            let causes = self.causes();
            let records = causes.graph().ops.len();
            let indices: Vec<usize> = devices.iter().map(|it| it.index).collect();
            let idle = parallel::map_chunks(records, &indices, |some| causes.idle_of_each(some));
            for (device, idle) in devices.iter_mut().zip(idle) {
                device.idle = idle;
            }
            devices
        })
    }

    /// Why a device (index into [`Trace::devices`]) was idle.
    pub fn idle_of(&self, device: usize) -> &[IdleCause] {
        let of = self.devices().iter().find(|it| it.index == device);
        of.map_or(&[], |it| &it.idle)
    }

    /// The source lines that devices waited for, and whether those are why.
    pub fn lines(&self) -> Vec<DeviceLines> {
        let mut all = lines::find(self.trace, self.calls(), self.steps());
        for it in &mut all {
            let idle = self.idle_of(it.index);
            let sum = |of: &[&IdleCause]| of.iter().map(|it| it.total_ns).sum::<Ns>();
            let others: Vec<_> = idle
                .iter()
                .filter(|it| it.group == Group::Process)
                .collect();
            let others = sum(&others);
            it.is_others = others > 0 && 2 * others >= sum(&idle.iter().collect::<Vec<_>>());
        }
        all
    }

    /// The figures of what starts within `window`, made anew, or of all of it.
    pub fn figures(&self, window: Option<Span>) -> Cow<'_, [DeviceFigures]> {
        match window {
            None => Cow::Borrowed(self.devices()),
            Some(_) => Cow::Owned(figures::count(self.trace, Some(self.calls()), window)),
        }
    }

    /// The passes of a scenario's run.
    pub fn passes(&self) -> &Passes {
        let make = || Passes::of_trace(self.trace, self.plan);
        self.made.passes.get_or_init(make)
    }

    /// The device memory in use.
    pub fn memory(&self) -> &MemoryUse {
        let make = || MemoryUse::of(self.trace, None);
        self.made.memory.get_or_init(make)
    }

    /// The figures of a run's variants.
    pub fn variants(&self) -> &[VariantFigures] {
        let make = || {
            let (passes, memory) = (self.passes(), self.memory());
            let known = (Some(self.calls()), Some(&self.causes()));
            variants::of_passes(self.trace, passes, self.plan, known, memory)
        };
        self.made.variants.get_or_init(make)
    }
}

impl Drop for Facts<'_> {
    fn drop(&mut self) {
        let graph = self.made.graph.get();
        let is_large = graph.is_some_and(|it| it.memory() > KEPT_MAX);
        if let Some(last) = self.last.filter(|_| is_large) {
            last.lock().made = Arc::new(self.made.without_graph());
        }
    }
}

#[derive(Debug, Default)]
struct Last {
    run: u64,
    revision: u64,
    made: Arc<FactCells>,
}

/// The facts of the state of a run that was asked about last: several questions rest on them.
#[derive(Debug, Default)]
pub struct LastFacts(Mutex<Last>);

impl LastFacts {
    fn lock(&self) -> std::sync::MutexGuard<'_, Last> {
        // A panic of another holder was said by its hook; what it left is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of a timeline as it is now, of the run with this number.
    pub fn facts<'t>(&'t self, run: u64, trace: &'t Trace) -> Facts<'t> {
        let mut last = self.lock();
        let revision = trace.revision();
        if (last.run, last.revision) != (run, revision) {
            *last = Last {
                run,
                revision,
                made: Arc::default(),
            };
        }
        let mut facts = Facts::new(trace);
        facts.made = Arc::clone(&last.made);
        facts.last = Some(self);
        facts
    }
}

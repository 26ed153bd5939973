//! All variants of a plan, pass by pass, with the marks that say on the timeline which pass is which.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use activity::feed::FailureKind;
use activity::{Ns, RangeKind, Span};
use recording::file::wall_time;
use scenario::plan::{LaunchId, Op, OpKind, Plan, VariantPlan};

use super::super::driver::Driver;
use super::super::fault::Fault;
use super::super::protocol::{Event, Issued};
use super::Parent;
use super::context::Contexts;
use super::engine::{Engine, Mark, PassFailed, Phase};
use super::kernels::Images;
use super::ops::issued;
use super::quiet::Quiet;

/// What one pass took and issued.
type PassDone = (Ns, Ns, Vec<Phase>);

/// A plan about to run.
pub(crate) struct Session<'a> {
    pub(crate) driver: &'a Driver,
    pub(crate) plan: &'a Plan,
    /// Whether a launch of a graph leaves one record.
    pub(crate) has_whole_graphs: bool,
    pub(crate) images: &'a Images,
    /// Takes what goes into the recording.
    pub(crate) mark: &'a dyn Fn(Mark<'_>),
    /// Tells the parent.
    pub(crate) say: &'a dyn Fn(&Event),
    /// Whether the first pass waits until the parent has counters sampled.
    pub(crate) awaits_counters: bool,
    pub(crate) parent: &'a Parent,
}

/// How long the parent may take for that: whoever samples has 20 s for his beginning.
const PATIENCE: Duration = Duration::from_secs(25);

impl Session<'_> {
    /// Runs every variant. Returns what was issued in all.
    pub(crate) fn run(&self) -> Result<Issued, Fault> {
        let devices = self.plan.variants.iter().map(|v| v.devices.max(1));
        let devices = devices.max().unwrap_or(1);
        self.check_devices(devices)?;
        self.await_counters(devices);
        let mut total = Issued::default();
        let mut primary: Option<Contexts> = None;
        let mut quiet = Quiet::find();
        if let Some(text) = quiet.as_ref().and_then(Quiet::describe) {
            let is_warning = false;
            (self.say)(&Event::Notice { is_warning, text });
        }
        for (index, variant) in self.plan.variants.iter().enumerate() {
            if self.parent.wants_end() {
                break;
            }
            let start = wall_time();
            if variant.cold {
                self.cold(variant, &mut quiet, &mut total)?;
            } else {
                let contexts = match &primary {
                    Some(contexts) => contexts,
                    None => {
                        primary.insert(self.set_up(Contexts::make(self.driver, devices, true)?)?)
                    }
                };
                self.warm(variant, contexts, &mut quiet, &mut total)?;
            }
            self.range(
                RangeKind::Variant,
                &variant.name,
                index as u32,
                (start, wall_time()),
            );
        }
        Ok(total)
    }

    /// Tells the parent what to sample, and waits until it does.
    fn await_counters(&self, devices: u32) {
        if !self.awaits_counters {
            return;
        }
        let uuids: Vec<_> = (0..devices).filter_map(|it| self.driver.uuid(it)).collect();
        if uuids.len() < devices as usize {
            self.warn(
                "no counters of a GPU without a UUID: drivers since 11.4 give one".to_owned(),
            );
        }
        (self.say)(&Event::Gpus { uuids });
        let begun = Instant::now();
        while !self.parent.is_ready() && !self.parent.wants_end() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        if begun.elapsed() >= PATIENCE {
            let seconds = PATIENCE.as_secs();
            self.warn(format!(
                "no counters were sampled within {seconds} s: the first repeats run without them"
            ));
        }
    }

    fn warn(&self, text: String) {
        (self.say)(&Event::Notice {
            is_warning: true,
            text,
        });
    }

    fn check_devices(&self, needed: u32) -> Result<(), Fault> {
        let there = self
            .driver
            .device_count()
            .map_err(|e| Fault::cuda("cuDeviceGetCount", &e))?;
        if there < needed {
            let plural = if there == 1 { "" } else { "s" };
            return Err(Fault::machine(
                format!(
                    "the scenario needs {needed} GPUs and this process sees {there} GPU{plural}"
                ),
                "look at CUDA_VISIBLE_DEVICES, or run it on the model with --backend sim",
            ));
        }
        Ok(())
    }

    /// What contexts need before work starts in them.
    fn set_up(&self, contexts: Contexts) -> Result<Contexts, Fault> {
        if contexts.len() > 1 {
            for (a, b) in contexts.enable_peers()? {
                self.warn(format!(
                        "device {a} cannot reach the memory of device {b}: such copies go through the host"
                    ));
            }
        }
        if self.plan.variants.iter().any(super::ops::uses_pool) {
            contexts.keep_pools()?;
        }
        Ok(contexts)
    }

    /// A variant whose passes find everything prepared.
    fn warm(
        &self,
        variant: &VariantPlan,
        contexts: &Contexts,
        quiet: &mut Option<Quiet>,
        total: &mut Issued,
    ) -> Result<(), Fault> {
        let mut engine = Engine::new(self.driver, contexts, variant, self.images)?;
        engine.name_streams(self.mark);
        total.add(&engine.buffers.issued);
        let mut times = Vec::new();
        for pass in 0..variant.warmup + variant.repeat {
            if self.parent.wants_end() || variant.is_enough(&times) {
                break;
            }
            quiet.iter_mut().for_each(Quiet::settle);
            let start = wall_time();
            let result = engine.pass();
            let end = wall_time();
            result.map_err(|failed| self.explain(&engine, variant, failed))?;
            if pass >= variant.warmup {
                times.push((end - start) as f64);
            }
            let done = (start, end, engine.phases.clone());
            engine.buffers.free_leftovers();
            self.passed(variant, pass, done, total);
        }
        Ok(())
    }

    /// A variant whose passes each make a context, allocate and load their code.
    fn cold(
        &self,
        variant: &VariantPlan,
        quiet: &mut Option<Quiet>,
        total: &mut Issued,
    ) -> Result<(), Fault> {
        let mut times = Vec::new();
        for pass in 0..variant.repeat {
            if self.parent.wants_end() || variant.is_enough(&times) {
                break;
            }
            quiet.iter_mut().for_each(Quiet::settle);
            let start = wall_time();
            let contexts =
                self.set_up(Contexts::make(self.driver, variant.devices.max(1), false)?)?;
            let made = wall_time();
            let mut engine = Engine::new(self.driver, &contexts, variant, self.images)?;
            let prepared = wall_time();
            let result = engine.pass();
            let end = wall_time();
            times.push((end - start) as f64);
            result.map_err(|failed| self.explain(&engine, variant, failed))?;
            engine.name_streams(self.mark);
            total.add(&engine.buffers.issued);
            let done = (start, end, engine.phases.clone());
            drop(engine);
            let phase = |name, span| self.range(RangeKind::Phase, name, pass, span);
            phase("make the context", (start, made));
            phase("allocate and load", (made, prepared));
            self.passed(variant, pass, done, total);
        }
        Ok(())
    }

    /// Marks a pass that ended well and tells what it issued.
    fn passed(
        &self,
        variant: &VariantPlan,
        pass: u32,
        (start, end, phases): PassDone,
        total: &mut Issued,
    ) {
        let (kind, number) = match pass.checked_sub(variant.warmup) {
            None => (RangeKind::Warmup, pass),
            Some(number) => (RangeKind::Repeat, number),
        };
        self.range(kind, &variant.name, number, (start, end));
        let mut counts = vec![0; variant.phases.len()];
        for Phase { phase, start, end } in phases {
            let name = &variant.phases[phase];
            self.range(RangeKind::Phase, name, counts[phase], (start, end));
            counts[phase] += 1;
        }
        total.add(&issued(variant, self.has_whole_graphs));
        (self.say)(&Event::Progress {
            what: format!("running {}", variant.name),
            done: u64::from(pass + 1),
            total: u64::from(variant.warmup + variant.repeat),
        });
    }

    fn range(&self, kind: RangeKind, name: &str, index: u32, (start, end): (Ns, Ns)) {
        (self.mark)(Mark::Range(kind, name, index, Span::new(start, end)));
    }

    /// Says which operation failed; for an error that a kernel caused earlier, which kernels it can be.
    fn explain(&self, engine: &Engine<'_>, variant: &VariantPlan, failed: PassFailed) -> Fault {
        let (op, code) = match failed {
            PassFailed::Op(failed) => (Some(failed.op), failed.code),
            PassFailed::End(code) => (None, code),
        };
        if let Some(Op {
            kind: OpKind::Alloc { buffer, .. },
            site,
        }) = op
        {
            let fault = engine.buffers.no_memory(buffer, "device", code);
            return fault.placed_at(site);
        }
        let error = self.driver.error(code);
        let doing = match &op {
            Some(op) => op.kind.describe(variant),
            None => "waiting for the GPU at the end of a pass".to_owned(),
        };
        let mut fault = Fault::cuda(&format!("variant `{}`: {doing}", variant.name), &error);
        if let Some(op) = op {
            fault = fault.placed_at(op.site);
        }
        if error.is_asynchronous() {
            let launched = launched_before(variant, op.as_ref());
            if !launched.is_empty() {
                let names: Vec<String> = launched
                    .iter()
                    .map(|&(launch, op)| {
                        let kernel = &variant.kernels[variant.launches[launch].kernel];
                        let line = self.plan.sites.get(op.site as usize).map_or(0, |s| s.line);
                        format!("`{}` (line {line})", kernel.name)
                    })
                    .collect();
                let cause = match launched.as_slice() {
                    [(_, op)] => {
                        fault.site = Some(op.site);
                        "caused by kernel"
                    }
                    _ => "caused by one of the kernels",
                };
                fault.message += &format!(", {cause} {}", names.join(", "));
            }
        }
        fault.kind = FailureKind::Program { code: 4 };
        fault
    }
}

/// The distinct launches up to an operation (or all), each with its first use.
fn launched_before<'a>(variant: &'a VariantPlan, until: Option<&Op>) -> Vec<(LaunchId, &'a Op)> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let end = until
        .and_then(|op| variant.ops.iter().rposition(|o| o == op))
        .map_or(variant.ops.len(), |at| at + 1);
    for op in variant.unrolled(&variant.ops[..end]) {
        if let OpKind::Launch { launch, .. } = op.kind
            && seen.insert(variant.launches[launch].kernel)
        {
            found.push((launch, op));
        }
    }
    found
}

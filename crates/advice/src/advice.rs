//! What is said of a timeline or of a part of it: what bounds it, and what could be better with what that saves. Reports
//! and the screen ask the same question here, so they cannot disagree.

use crate::counted::{counted_in, longest_alike, replayed};
use crate::facts::Facts;
use crate::verdict::{self, Answered, Verdict};
use activity::units::{self, bytes, duration, share};
use activity::{Ns, Span};
use causes::{Bound, Causes};
use figures::class::Class;
use figures::lost::Silent;
use figures::passes::Pass;
use figures::steps::{self, Steps};
use figures::variants::measure::{self, Run};
use figures::variants::work;
use figures::watching::{self, WatchingCost};
use figures::{DeviceFigures, VariantFigures};
use findings::lost_records;
use findings::{Finding, Rule, Scope, fold};
use replay::whatif::WhatIf;
use trace::parallel;

/// What of a timeline is judged.
#[derive(Clone, Copy, Debug)]
pub enum JudgedPart<'s> {
    /// All of it: a job as a job, a run of a scenario by its variants.
    Whole,
    /// A pass of a scenario's run: index into [`figures::passes::Passes::list`].
    Pass(usize),
    /// What was done last while it goes on, with the steps found there. Of a pass under way not all has come that its plan
    /// says, nor any that it could be compared with.
    Last(Span, &'s [Steps]),
}

/// What is said of a part of a timeline.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// What bounds the whole, then each device.
    pub verdicts: Vec<Verdict>,
    /// What could be better: in steady steps, where there are some; of a run in all of its variants.
    pub findings: Vec<Finding>,
    /// What the start takes beside the steps; `None` where there are none.
    pub start_up: Option<Vec<Finding>>,
    /// What could be better in what a run does around its measured passes; `None` of what is no run.
    pub around: Option<Vec<Finding>>,
    /// Of a run: what is said of each variant's median pass, in the order of [`Facts::variants`].
    pub variants: Vec<Judgement>,
    /// What recording it may have cost; `None` of a pass by itself.
    pub watching: Option<WatchingCost>,
    /// What describes the machine and the recording, in a line.
    pub machine: Option<String>,
}

impl Judgement {
    /// All findings in one list, the start-up last and named so.
    pub fn in_one(self) -> Vec<Finding> {
        let start_up = self.start_up.into_iter().flatten().map(|finding| Finding {
            places: vec!["start-up".to_owned()],
            is_of_start_up: true,
            ..finding
        });
        self.findings.into_iter().chain(start_up).collect()
    }
}

impl Facts<'_> {
    /// What is said of a part of it; `None` when it was told to stop.
    pub fn judgement(&self, part: JudgedPart<'_>) -> Option<Judgement> {
        let advice = Advice {
            facts: self,
            causes: self.causes(),
        };
        match part {
            JudgedPart::Whole => advice.of_whole(),
            JudgedPart::Pass(pass) => {
                let window = Some(self.passes().list.get(pass)?.span);
                let devices = self.figures(window);
                let watching = watching::measure(self.trace, &advice.causes, &devices, window);
                let judged = advice.of_pass(pass, &devices)?;
                Some(Judgement { watching, ..judged })
            }
            JudgedPart::Last(window, steps) => advice.of_part(window, steps),
        }
    }
}

/// A variant that is so many times as fast as another one is worth a word.
const FASTER: f64 = 1.05;

/// Who tells what could be better.
#[derive(Debug)]
struct Advice<'a> {
    facts: &'a Facts<'a>,
    causes: Causes<'a>,
}

/// What stands beside a variant: another one of the same work.
struct Beside {
    takes: Ns,
    /// "streamed takes 1.63 ms (1.56× faster)"
    words: String,
    /// Whether the GPU's time tells: else what a cure leaves of it says nothing.
    is_told: bool,
    /// "streamed saves 912 µs"
    saves: Option<String>,
    /// " · streamed takes 256 MiB, not 32 MiB"; empty where both take about as much.
    memory: String,
    /// "streamed: A stream for each batch."; empty where its file does not say.
    does: String,
}

/// Before every record, and not so far that sums of times overflow.
const LONG_AGO: Ns = Ns::MIN / 4;

/// What lies before a moment, measured against the whole.
fn before<'a>(whole: &Scope<'a>, until: Ns) -> Scope<'a> {
    let start = match whole.ranks {
        // Clocks that are hours off have begun hours earlier on that of all.
        Some(_) => LONG_AGO,
        None => whole
            .window
            .or(whole.trace.extent())
            .map_or(until, |of| of.start),
    };
    whole.within(Some(Span::new(start.min(until), until)), whole.devices)
}

impl<'a> Advice<'a> {
    /// Where rules look: at what starts within `window`, or at everything. `devices` are the figures of that.
    fn scope<'s>(&'s self, window: Option<Span>, devices: &'s [DeviceFigures]) -> Scope<'s> {
        Scope::new(
            self.facts.trace,
            &self.causes,
            window,
            devices,
            self.facts.peaks,
        )
    }

    /// The verdicts beside what `find` finds there, with what the first finding promises.
    fn judge(
        &self,
        scope: &Scope<'_>,
        steps: &[Steps],
        find: impl FnOnce(&Scope<'_>) -> Judgement,
    ) -> Option<Judgement> {
        let (trace, stop) = (self.facts.trace, &self.facts.stop);
        if stop.is_stopped() {
            return None;
        }
        let looked = (scope.window, scope.devices);
        let is_all = scope.window.is_none() && steps.is_empty();
        let verdicts = || {
            let behind = is_all.then(|| self.facts.behind_warm_up()).flatten();
            verdict::find(trace, &self.causes, looked, (steps, behind), scope.ranks)
        };
        // What findings save takes longer than everything else.
        let records = self.causes.graph().ops.len();
        let (mut found, mut verdicts) = parallel::join(records, || find(scope), verdicts);
        verdict::promise(&mut verdicts, &found.findings);
        if scope.window.is_none() {
            verdict::fail(&mut verdicts, trace, &self.causes);
        }
        findings::put_surest_first(&mut found.findings);
        if let Some((whole, odd)) = verdicts.first().and_then(|it| Some((it, it.odd.as_ref()?))) {
            let is_first = whole.scope.of == Answered::OddSteps;
            let at = if is_first { 0 } else { found.findings.len() };
            found.findings.insert(at, odd.finding(scope));
        }
        // What holds a thread up for milliseconds is not what records its functions.
        let is_paused = found.findings.iter().any(|it| it.is_of_pauses);
        let distorts = || findings::distorts(scope).filter(|_| !is_paused);
        verdict::distort(&mut verdicts, distorts);
        let judged = Judgement { verdicts, ..found };
        (!stop.is_stopped()).then_some(judged)
    }

    /// Of a part of a program, with the steps found there.
    fn of_part(&self, window: Span, steps: &[Steps]) -> Option<Judgement> {
        let window = Some(window);
        let devices = self.facts.figures(window);
        let watching = watching::measure(self.facts.trace, &self.causes, &devices, window);
        let mut scope = self.scope(window, &devices);
        scope.watching = watching.as_ref();
        let found = |scope: &Scope<'_>| self.of_program(scope, steps);
        let judged = self.judge(&scope, steps, found)?;
        Some(Judgement { watching, ..judged })
    }

    /// Of what is recorded whole, where a thread's records end long before the others.
    fn of_recorded(&self, silent: &Silent) -> Option<Judgement> {
        let steps = steps::find(self.facts.trace, Some(silent.before));
        let mut judged = self.of_part(silent.before, &steps)?;
        judged.findings.insert(0, lost_records::of_silent(silent));
        Some(judged)
    }

    /// Of all of it: a job by all that its ranks did.
    fn of_whole(&self) -> Option<Judgement> {
        let (facts, devices, steps) = (self.facts, self.facts.devices(), self.facts.steps());
        let figures = facts.variants().iter();
        let variants = figures.map(|of| {
            let pass = facts.passes().representative(of.position)?;
            self.of_pass(pass, &of.devices)
        });
        let variants: Vec<Judgement> = variants.collect::<Option<_>>()?;
        let is_one = variants.is_empty() && facts.ranks().is_none();
        if let Some(silent) = is_one.then(|| Silent::of(facts.trace)).flatten() {
            return self.of_recorded(&silent);
        }
        let watching = watching::measure(facts.trace, &self.causes, devices, None);
        let mut scope = self.scope(None, devices);
        scope.ranks = facts.ranks().map(|it| &**it);
        scope.watching = watching.as_ref();
        let is_program = variants.is_empty() && steps.is_empty() && scope.ranks.is_none();
        let mut judged = self.judge(&scope, steps, |scope| match variants.is_empty() {
            true => self.of_program(scope, steps),
            false => Judgement {
                findings: self.of_variants(&variants),
                around: Some(findings::find(scope, &facts.stop)),
                ..Judgement::default()
            },
        });
        if let Some(judged) = &mut judged {
            if is_one {
                let found = judged
                    .findings
                    .iter()
                    .chain(judged.start_up.iter().flatten());
                let found: Vec<&Finding> = found.collect();
                verdict::lead(&mut judged.verdicts, (facts.trace, &self.causes), &found);
            }
            // Rules looked at all of a program, at what describes the machine, too.
            let is_known = is_program && self.causes.graph().capture(None).is_none();
            let found = judged.findings.iter().find(|it| it.rule == Rule::Machine);
            judged.machine = match is_known {
                true => found.map(Finding::headline),
                false => findings::machine(&scope).map(|it| it.headline()),
            };
            if is_program {
                let behind = self.behind_warm_up(&scope, &judged.findings);
                judged.findings.extend(behind);
            } else if is_one {
                let after = self.after_steps(&scope, steps, &judged.findings);
                judged.findings.extend(after);
            }
        }
        judged.map(|judged| Judgement {
            variants,
            watching,
            ..judged
        })
    }

    /// What could be better behind the steps, where that is a part of its own, and is not found in them.
    fn after_steps(&self, whole: &Scope<'_>, steps: &[Steps], known: &[Finding]) -> Vec<Finding> {
        let [one] = steps else { return Vec::new() };
        if !verdict::has_tail(one) || self.causes.graph().capture(None).is_some() {
            return Vec::new();
        }
        let part = Some(one.tail);
        let devices = self.facts.figures(part);
        let whatif = || replayed(self.facts, None, part);
        let scope = whole.within(part, &devices);
        let mut found = findings::weighed(&scope, whatif, &self.facts.stop);
        let is_much = |it: &Finding| {
            cases::LARGE_SHARE.is_reached_by(share(it.weight(), one.start_up.hull(one.tail).len()))
        };
        found.retain(|it| {
            let is_larger = |of: &Finding| of.rule != it.rule || 2 * of.weight() < it.weight();
            let is_new = known.iter().all(is_larger);
            is_new && is_much(it) && !it.rule.is_of_run() && it.rule != Rule::ColdStart
        });
        for it in &mut found {
            it.places = vec!["after the steps".to_owned()];
        }
        found
    }

    /// What could be better behind a warm-up, and is not found in all of it.
    fn behind_warm_up(&self, whole: &Scope<'_>, known: &[Finding]) -> Vec<Finding> {
        let is_capture = self.causes.graph().capture(None).is_some();
        let Some(behind) = self.facts.behind_warm_up().filter(|_| !is_capture) else {
            return Vec::new();
        };
        let part = Some(behind.span);
        let devices = self.facts.figures(part);
        let whatif = || replayed(self.facts, None, part);
        let scope = whole.within(part, &devices);
        let mut found = findings::weighed(&scope, whatif, &self.facts.stop);
        let is_beside =
            |it: &Finding| matches!(it.rule, Rule::ColdStart | Rule::NextBatch | Rule::NoCure);
        found.retain(|it| {
            let is_new = known.iter().all(|of| of.rule != it.rule);
            is_new && !it.rule.is_of_run() && !is_beside(it)
        });
        for it in &mut found {
            it.places = vec![format!("behind {}", behind.which)];
        }
        found
    }

    /// Of one pass of a variant, by what its measured passes would save. `devices` are the pass's figures.
    fn of_pass(&self, pass: usize, devices: &[DeviceFigures]) -> Option<Judgement> {
        let passes = self.facts.passes();
        let of = passes.list[pass];
        let variant = &passes.variants[of.variant];
        let plan = self.facts.plan;
        let planned = plan.and_then(|plan| plan.variants.get(variant.index));
        let mut scope = self.scope(Some(of.span), devices);
        scope.planned = planned.filter(|planned| planned.name == variant.name);
        let whatif = || WhatIf::of_repeats(self.facts.basis(), passes, of.variant);
        let mut judged = self.judge(&scope, &[], |scope| Judgement {
            findings: findings::weighed(scope, whatif, &self.facts.stop),
            ..Judgement::default()
        })?;
        let beside = self.beside(of.variant);
        let saves = beside.as_ref().and_then(|it| it.saves.clone());
        if let Some(first) = judged
            .findings
            .first_mut()
            .filter(|it| it.saving_ns.is_none())
        {
            let how = match self.facts.trace.source.simulated {
                true => "simulated",
                false => "measured",
            };
            let saves = saves.filter(|_| first.has_bound());
            first.tried = saves.map(|it| format!("{it}, {how}"));
            // What it does goes before what else would help.
            if let Some((_, beside)) = first.tried.as_ref().zip(beside.as_ref()) {
                first.advice.insert_str(0, &beside.does);
            }
        }
        let first = judged.findings.first();
        let verdicts = judged.verdicts.iter_mut();
        for verdict in verdicts.take(if devices.len() == 1 { 2 } else { 1 }) {
            // What the CPU does before it is no part of the GPU's time, and all there is to say where it takes more.
            if let Some(cold) =
                first.filter(|it| it.rule == Rule::ColdStart && it.bound_ns > verdict.span_ns)
            {
                verdict.text.clone_from(&cold.title);
                verdict.cost_ns = cold.bound_ns;
            }
            if verdict.bound_by == Bound::Compute {
                let class = self.declared(of.variant).unwrap_or_default();
                verdict.text.push_str(&class);
            }
            // What was measured goes before a bound, and before a cure that leaves over twice as much.
            let left = first.and_then(|it| Some(verdict.span_ns - it.saving_ns?));
            let told = beside
                .as_ref()
                .filter(|it| !it.is_told || left.is_none_or(|left| 2 * it.takes < left));
            verdict.gain = told.map(|it| it.words.clone()).or(verdict.gain.take());
            if let Some((gain, it)) = verdict.gain.as_mut().zip(beside.as_ref()) {
                gain.push_str(&it.memory);
            }
            verdict.beside.splice(0..0, self.making_graphs(&of));
        }
        Some(judged)
    }

    /// How long a pass makes CUDA graphs before its first operation, where that is much: kept, they are launched again without it.
    fn making_graphs(&self, of: &Pass) -> Option<String> {
        let before = Span::new(of.span.start, of.operations?.start);
        let time = self.causes.graph().making_graphs(before);
        let (making, kept) = (duration(time), duration(of.makespan()));
        cases::LARGE_SHARE
            .is_reached_by(share(time, of.wall()))
            .then(|| {
                format!("making the CUDA graph takes {making} before it; kept, it runs in {kept}")
            })
    }

    /// What the kernels of a variant are near by the work that they declare: ", compute-bound at 88 % of the peak". Counters say it themselves.
    fn declared(&self, position: usize) -> Option<String> {
        let variants = self.facts.variants();
        let run = Run {
            plan: self.facts.plan,
            variants,
            peaks: self.facts.peaks,
        };
        let mut of = variants.iter().find(|it| it.position == position)?.clone();
        work::classify(&run, &mut of);
        let most = of.kernels.first()?.shapes.first()?;
        let is_near = matches!(most.class, Class::Memory | Class::Compute);
        let is_told = is_near && !self.facts.trace.is_sampled();
        let (_, near) = most.limit.rsplit_once(" at ").filter(|_| is_told)?;
        Some(format!(", {}-bound at {near}", most.class.label()))
    }

    /// The variant of the same work that takes least, where it takes clearly less; else how much faster this one is than their common
    /// baseline. One that copies nothing does not do what others copy for.
    fn beside(&self, position: usize) -> Option<Beside> {
        let (all, passes) = (self.facts.variants(), self.facts.passes());
        let one = all.iter().find(|it| it.position == position)?;
        let base = |of: usize| passes.baseline(of).unwrap_or(of);
        let copies = |it: &VariantFigures| it.devices.iter().any(|f| f.copy_ns > 0);
        let is_alike = |it: &&VariantFigures| {
            base(it.position) == base(position)
                && (copies(it) || it.devices.is_empty() || !copies(one))
        };
        let group = all.iter().filter(is_alike);
        let is_told = group.clone().all(VariantFigures::is_explained);
        let time = |it: &VariantFigures| if is_told { it.makespan_ns } else { it.wall_ns };
        let best = group.clone().min_by_key(|it| time(it))?;
        let times =
            |of: &VariantFigures, to: &VariantFigures| time(of) as f64 / time(to).max(1) as f64;
        let clock = if is_told { "" } else { " by the CPU's time" };
        let factor = times(one, best);
        if factor < FASTER {
            let faster = measure::speedup(passes, one, all)?;
            return (faster.factor >= FASTER).then(|| Beside {
                takes: Ns::MAX / 4,
                is_told: true,
                words: faster.words(),
                saves: None,
                does: String::new(),
                memory: String::new(),
            });
        }
        // The first step of several to the best, where that is not far from it.
        let next = group.skip_while(|it| it.position != position).nth(1);
        let next =
            next.filter(|it| times(one, it) >= FASTER && (2.0..100.0).contains(&times(it, best)));
        let takes =
            |it: &VariantFigures| format!("{} takes {}", it.variant.name, duration(time(it)));
        let next = next.map_or_else(String::new, |it| takes(it) + ", ");
        let memory = match (one.peak_memory, best.peak_memory) {
            (Some(a), Some(b)) if a.max(b) * 2 > a.min(b) * 3 => {
                format!(
                    " · {} takes {}, not {}",
                    best.variant.name,
                    bytes(b),
                    bytes(a)
                )
            }
            _ => String::new(),
        };
        let plan = self.facts.plan;
        let does = plan.and_then(|it| Some(it.variants.get(best.variant.index)?.about.trim()));
        let does = does.filter(|it| !it.is_empty());
        let does = does.map(|it| format!("{}: {it} ", best.variant.name));
        Some(Beside {
            takes: time(best),
            is_told,
            memory,
            does: does.unwrap_or_default(),
            words: format!(
                "{next}{} ({} faster{clock})",
                takes(best),
                units::factor(factor)
            ),
            saves: Some(format!(
                "{} saves {}",
                best.variant.name,
                duration(time(one) - time(best))
            )),
        })
    }

    /// The findings of all variants in one list, each under its variant's name; points of a sweep in one line.
    fn of_variants(&self, judged: &[Judgement]) -> Vec<Finding> {
        let named = self.facts.variants().iter().zip(judged);
        let named = named.map(|(of, judged)| {
            let label = of.label();
            (of.variant.name.as_str(), label, judged.findings.as_slice())
        });
        let mut all: Vec<Finding> = fold::variants(named)
            .into_iter()
            .flat_map(|(name, findings)| {
                findings.into_iter().map(move |mut finding| {
                    finding.title = format!("{name}: {}", finding.headline());
                    finding.places.clear();
                    finding
                })
            })
            .collect();
        all.sort_by_key(Finding::order);
        all
    }

    /// What could be better where there are no steps: since each device's first work, where all is looked at.
    fn without_steps<'w>(
        &self,
        whole: &Scope<'_>,
        whatif: impl Fn() -> Result<WhatIf<'w>, String> + Sync,
    ) -> Vec<Finding> {
        let stop = &self.facts.stop;
        if whole.window.is_some() || whole.ranks.is_some() {
            return findings::weighed(whole, whatif, stop);
        }
        let begins = |f: &DeviceFigures| steps::begins(self.facts.trace, f.index);
        let since = |f: &DeviceFigures| f.clone().since(begins(f));
        let devices: Vec<_> = whole.devices.iter().map(since).collect();
        findings::weighed(&whole.within(None, &devices), whatif, stop)
    }

    /// In what is no run of a scenario. `whole` looks at all of it, or at what is asked about.
    fn of_program(&self, whole: &Scope<'_>, steps: &[Steps]) -> Judgement {
        let stop = &self.facts.stop;
        if self.causes.graph().capture(whole.window).is_some() {
            return Judgement::default();
        }
        let alike = match steps {
            [one] if whole.ranks.is_none() => longest_alike(one),
            _ => None,
        };
        let kind = steps::main(steps).map_or(0, |it| it.main().steps.len());
        let begins = alike.as_ref().map(|_| steps[0].steady_span().start);
        let (steps, replay) = match &alike {
            Some(one) => (std::slice::from_ref(one), Some(one.steady_span())),
            None => (steps, whole.window),
        };
        let whatif = || replayed(self.facts, steps::main(steps), replay);
        // On the clock of all, where it is known.
        let aligned = |steps: &Steps| match whole.ranks {
            Some(ranks) => ranks.on_all(steps.process, steps.steady_span()),
            None => steps.steady_span(),
        };
        let Some(window) = steps.iter().map(aligned).reduce(Span::hull) else {
            return Judgement {
                findings: self.without_steps(whole, whatif),
                ..Judgement::default()
            };
        };
        let of_all = whole.within(Some(window), &[]);
        let devices = figures::of_each(self.facts.trace, None, &|device| of_all.window_on(device));
        let with_pause = |f: DeviceFigures| {
            let steps = of_all.window_on(f.index);
            let pause = steps.map_or(0, |steps| self.causes.pause_behind(f.index, steps));
            f.with_idle(0, pause)
        };
        let devices: Vec<_> = devices.into_iter().map(with_pause).collect();
        let mut steady = whole.within(Some(window), &devices);
        steady.steps = steps::main(steps).map_or(0, |it| it.steady.len());
        let mut findings = findings::weighed(&steady, whatif, stop);
        // What costs steps nothing is told of the start-up.
        let is_worth =
            |it: &Finding| cases::WORTH_SHARE.is_reached_by(share(it.weight(), window.len()));
        findings.retain(|it| it.rule != Rule::ColdStart || is_worth(it));
        if let Some(rate) = steps::main(steps).and_then(Steps::pace) {
            findings::no_cure::paced(&steady, rate, &mut findings);
        }
        let step = steps::main(steps).map(|of| counted_in(of, window, kind));
        for it in &mut findings {
            // Not of the steps that others are counted in.
            let is_of_run = whole.window.is_none() && it.rule.is_of_run();
            it.step = step.filter(|_| !is_of_run);
            if is_of_run {
                it.places = vec!["whole run".to_owned()];
                let machine = Some(whole).filter(|_| it.rule == Rule::Machine);
                let of_all = machine.and_then(findings::machine);
                it.title = of_all.map_or_else(|| it.title.clone(), |it| it.title);
            }
        }
        Judgement {
            findings,
            start_up: Some(findings::of_start_up(&before(
                whole,
                begins.unwrap_or(window.start),
            ))),
            ..Judgement::default()
        }
    }
}

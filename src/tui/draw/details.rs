//! What is selected, in words; without a selection, what to look for.

mod device;
mod flow;

use super::{gaps, label};
use crate::tui::state::analyst::Question;
use crate::tui::state::{Item, Journal, RowKind, State};
use crate::tui::theme::Role;
use activity::feed::Stop;
use activity::text::printable;
use activity::{Activity, LaunchShape, Ns, Range, RangeKind, Span, What, occupancy, units};
use advice::verdict::Answered;
use causes::stacks::LaunchLine;
use causes::{Cause, Explanation};
use figures::fill::Fill;
use figures::shapes::ShapeRow;
use figures::tables::{self, NameRow};
use figures::{class, communication, nodes, stalls};
use trace::{LaneId, Trace, describe};

/// The details, ready to be drawn: a name in its colour and facts, set apart by dots.
#[derive(Debug, Default)]
pub struct Details {
    /// Whole: what is too long for the first line goes on in the next ones.
    name: Option<(String, Role)>,
    /// Whether the name alone says what is selected.
    is_record: bool,
    facts: Vec<String>,
    /// Running text in place of facts.
    prose: String,
    /// What limits kernels, where their counters were sampled.
    limits: Question<(), Vec<NameRow>>,
    /// What a node of a CUDA graph is called.
    node: Question<(usize, u64), Option<String>>,
}

impl Details {
    /// Prepares them; a list says what is under its cursor `in_full`.
    pub fn prepare(&mut self, state: &State, in_full: Option<&str>) {
        self.name = None;
        self.is_record = false;
        self.facts.clear();
        self.prose.clear();
        if let Some(text) = in_full {
            self.prose.push_str(text);
            return;
        }
        if state.focus.marks.is_in_details(state.focus.selection)
            && let Some((name, facts)) = super::measure::words(state)
        {
            self.name = Some((name, Role::Accent));
            self.facts = facts;
            return;
        }
        match (state.focus.selection.row, state.focus.selection.item) {
            (Some(kind), Item::Record { row, .. }) => {
                if let Some(id) = kind.lane() {
                    self.record(state, id, row);
                }
            }
            // What has left the view is told of no more: "this gap" would be one of another step.
            (Some(kind), Item::Gap(gap)) if state.focus.camera.viewport.window.overlaps(gap) => {
                self.gap(state, kind, gap);
            }
            (Some(RowKind::Gpu(device)), Item::None)
                if !state.used(device).contains(state.focus.selection.cursor)
                    && state.focus.selection.cursor != 0 =>
            {
                self.unused(state, device, state.focus.selection.cursor);
            }
            (Some(kind), Item::None) if kind.device().is_some() => self.device_row(state, kind),
            _ => self.prose = prose(state),
        }
    }

    fn record(&mut self, state: &State, id: LaneId, row: usize) {
        let trace = &state.model.run.trace;
        if !trace.lanes()[id].holds(row) {
            return;
        }
        let activity = trace.activity(id, row);
        let process = trace.lanes()[id].key().process;
        let name = describe::whole(trace, &activity.what);
        self.name = Some((name, label::role(trace, &activity.what)));
        self.is_record = true;
        if let Some(place) = activity.place() {
            self.say(describe::stream_at(trace, process, place));
        }
        self.say(label::times(activity.span, state.zero()));
        match activity.what {
            What::Kernel(k) => {
                if let Some((time, rank)) = state.model.job.waited(&state.model.run, id, row, activity.span) {
                    let time = units::duration(time);
                    self.say(format!("waits {time} of it for {rank}"));
                }
                self.limit(state, trace.shape(k.shape), k.place.device);
                self.kernel(trace, trace.shape(k.shape), k.place.device);
            }
            What::Copy(c) => {
                self.say(units::bytes(c.bytes));
                if let Some(rate) = units::gb_per_s(c.bytes, activity.span.len()) {
                    self.say(format!("{} GB/s", units::rate(rate)));
                }
                self.say(format!("{} → {}", c.from.label(), c.to.label()));
                self.say(if c.is_async { "async" } else { "synchronous" });
            }
            What::Memset(m) => self.say(units::bytes(m.bytes)),
            What::Call(c) if c.code != 0 => self.say(format!("returned error {}", c.code)),
            What::Range(r) if r.kind == RangeKind::Python => self.facts.extend(
                trace.processes().get(process).and_then(|it| it.sampled.words()),
            ),
            What::Range(r) if r.kind == RangeKind::CpuOp => self.say("CPU op"),
            What::Range(r) if r.kind == RangeKind::Function => self.say("Python function, recorded by the program's profiler; its number is the line where it begins"),
            What::Range(r) if r.index == Range::OPEN => {
                self.say("its end was not recorded");
            }
            What::Range(r) => self.say(format!("number {}", r.index + 1)),
            _ => {}
        }
        self.graph(state, process, activity.what);
        self.cause(trace, process, &activity);
        self.own_clock(trace, process, activity.span);
    }

    fn say(&mut self, fact: impl Into<String>) {
        self.facts.push(fact.into());
    }

    /// When its process's own clock had it, where the timeline is on another.
    fn own_clock(&mut self, trace: &Trace, process: usize, span: Span) {
        let recorded = trace.as_recorded(process, span).start;
        let by = recorded - span.start;
        if by != 0 {
            let word = if by > 0 { "later" } else { "earlier" };
            let by = units::duration(by.abs());
            self.say(format!("{by} {word} by its own clock"));
        }
    }

    /// What limits a kernel of this configuration; without counters what its launch leaves unused.
    fn limit(&mut self, state: &State, shape: LaunchShape, device: u32) {
        let run = &state.model.run;
        if let Some(it) = stalls::of_kernel(&run.trace, shape.name, u64::MAX, 0) {
            self.facts.extend(it.sentence());
            self.say(it.mix.bar());
        }
        if !run.trace.is_sampled() {
            let info = run.trace.devices().get(device as usize).map(|it| &it.info);
            let name = run.trace.names().full(shape.name);
            let info = info.filter(|_| !communication::is_communication(name));
            let waste =
                info.and_then(|info| class::waste(&Fill::of(&shape, info), info.multiprocessors));
            let waste = waste.map(|it| format!("{it} (by its launch)"));
            return self.facts.extend(waste);
        }
        let find = |trace: &Trace, _: &Stop| tables::kernels(trace, None);
        self.limits.ask(&state.model.analyst, run, (), find);
        let mut rows = self.limits.answer_to(run, ()).into_iter().flatten();
        let row = rows.find(|it| it.id == shape.name);
        let is_it = |it: &&ShapeRow| (it.grid, it.block) == (shape.grid, shape.block);
        let row = row.and_then(|it| it.shapes.iter().find(is_it));
        self.facts.extend(row.map(ShapeRow::sentence));
    }

    fn kernel(&mut self, trace: &Trace, shape: LaunchShape, device: u32) {
        let (grid, block) = (dimensions(shape.grid), dimensions(shape.block));
        self.say(format!("grid {grid} block {block}"));
        let info = trace.devices().get(device as usize).map(|d| &d.info);
        if let Some(found) = info.and_then(|info| occupancy::theoretical(&shape, info)) {
            self.say(format!("occupancy {}", units::percent(found.share)));
        }
        let shared = u64::from(shape.static_shared) + u64::from(shape.dynamic_shared);
        if shared > 0 {
            self.say(format!("{} shared", units::bytes(shared)));
        }
        if shape.registers > 0 {
            self.say(format!("{} registers", shape.registers));
        }
    }

    /// Which CUDA graph it was a node of, and who asked for that node.
    fn graph(&mut self, state: &State, process: usize, what: What) {
        if what.graph() == 0 || matches!(what, What::Graph(_)) {
            return;
        }
        self.say(format!("in CUDA graph {}", what.graph()));
        let (run, about) = (&state.model.run, (process, what.node()));
        let find = move |trace: &Trace, _: &Stop| nodes::of_operation(trace, process, &what);
        self.node.ask(&state.model.analyst, run, about, find);
        let name = self.node.answer_to(run, about).cloned().flatten();
        self.facts
            .extend(name.map(|it| format!("asked for at {it}")));
    }

    /// Which call launched it and how long before; of a call, what it launched.
    fn cause(&mut self, trace: &Trace, process: usize, activity: &Activity) {
        if activity.is_operation() {
            match trace.call(process, activity.correlation) {
                Some((lane, row)) => {
                    let call = trace.lanes()[lane].span(row);
                    let before = units::duration(activity.span.start - call.start);
                    let from = Some((lane, row));
                    let from = LaunchLine::of(trace, process, activity.correlation, from);
                    let at = from.map_or_else(String::new, |it| format!(" {}", it.at()));
                    self.say(format!("launched {before} earlier{at}"));
                }
                None => self.say("no host call known"),
            }
        } else if let What::Call(_) = activity.what
            && let Some((lane, row)) = trace.operation(process, activity.correlation)
        {
            let operation = trace.activity(lane, row);
            let name = describe::activity(trace, &operation.what);
            let after = units::duration(operation.span.start - activity.span.start);
            self.say(format!("its {name} starts {after} later"));
            let own = trace.launch_stack(process, activity.correlation);
            let own = own.and_then(|stack| LaunchLine::own(trace, stack));
            self.facts.extend(own.map(|it| it.at()));
        }
    }

    fn gap(&mut self, state: &State, kind: RowKind, gap: Span) {
        let run = &state.model.run;
        if let RowKind::Gpu(device) = kind
            && !run.is_none()
            && !state.used(device).overlaps(gap)
        {
            return self.unused(state, device, gap.start);
        }
        let word = match (kind.lane(), kind.device()) {
            (Some(id), _) if matches!(kind, RowKind::Stream(_)) => gaps::word(&run.trace, id, gap),
            (None, Some(_)) => "GPU idle",
            _ => "between calls",
        };
        let length = units::duration(gap.len());
        let why = state.why();
        let of = why.map_or_else(String::new, |why| format!(": {}", why.label()));
        self.name = Some((format!("{word} {length}{of}"), Role::Warning));
        if kind.device().is_some() || matches!(kind, RowKind::Stream(_)) {
            let why = why.map_or("computing why …", |why| &why.sentence);
            self.say(printable(why));
        }
        let device = kind.device();
        let part = device.and_then(|it| state.part_of_idle(it, gap));
        let cure = device.and_then(|_| state.cure_of(gap));
        // Which finding tells of it fits where what to do does not.
        let [see, advice] = cure.map_or([None, None], |it| it.map(Some));
        let advice = advice.filter(|_| state.size.width >= 100);
        let told: Vec<String> = part.into_iter().chain(see).collect();
        if !told.is_empty() {
            self.say(told.join("; "));
        }
        self.facts.extend(advice);
    }
}

impl Details {
    /// Says that a time is no idle one: before the first operation of a GPU, or after its last one.
    fn unused(&mut self, state: &State, device: usize, time: Ns) {
        let used = state.used(device);
        let gpu = describe::device_id(&state.model.run.trace, device);
        let (word, at) = match time < used.start {
            true => ("has no work before", used.start),
            false => ("has no work after", used.end),
        };
        let at = units::duration(at - state.zero());
        // Its first operation may have been launched long ago.
        let is_wait =
            |it: &Explanation| matches!(it.cause, Cause::Event | Cause::Stream | Cause::Engine);
        if let Some(why) = state.why().filter(|it| time < used.start && is_wait(it)) {
            self.name = Some((
                format!("{gpu} begins at {at}: {}", why.cause.label()),
                Role::Warning,
            ));
            self.facts = vec![why.sentence.clone()];
            return;
        }
        self.name = Some((format!("{gpu} {word} {at}"), Role::Text));
        let other = state.rows.gpus().nth(1);
        let other = other.map_or("", |_| "only other GPUs have work: ");
        self.facts = vec![format!("{other}not counted as idle")];
    }
}

/// The latest lines of what a watched program printed, the newest first: there may be room for one.
fn latest(journal: &Journal, count: usize) -> String {
    let lines = journal.printed().take(count);
    let lines: Vec<&str> = lines.map(|line| line.text.as_str()).collect();
    format!("Output: {}", lines.join("\n        "))
}

/// What is said where nothing is selected.
pub fn prose(state: &State) -> String {
    match &state.model.run.plan {
        _ if state.is_bare => String::new(),
        Some(plan) if !plan.look_for.is_empty() => {
            let look_for = plan.look_for.trim();
            let shown = state
                .variant()
                .map(|it| &state.model.run.passes.variants[it].name);
            // What is to be seen in other variants is not to be looked for in this one.
            let is_of_others = |name: &String| {
                look_for.contains("In `") && !look_for.contains(&format!("`{name}`"))
            };
            let of_shown = plan.variants.iter().find(|it| Some(&it.name) == shown);
            let about = of_shown.filter(|it| is_of_others(&it.name) && !it.about.is_empty());
            printable(&match about {
                Some(it) => format!("{}: {}", it.name, it.about.trim()),
                None => format!("Look for: {look_for}"),
            })
        }
        None if state.messages.log.printed().next().is_some() => latest(&state.messages.log, 4),
        _ => way_on(state),
    }
}

/// What there is to do first, in what has room: a sentence less says more than a part of one.
fn way_on(state: &State) -> String {
    let is_wide = state.size.width >= 100;
    if state.step_in_view().is_some() {
        let keys = "L shows the longest gap in view, ] [ steps, 0 the run; j k select a row.";
        let is_found = state.steps().is_some_and(|it| it.is_found);
        let what = match is_found {
            true => {
                " No range marks steps: one is what repeats, from an operation to where it comes again."
            }
            false => " A step lasts from its first operation on the GPU to the next step's.",
        };
        return format!("{keys}{}", if is_wide { what } else { "" });
    }
    let mut text = "j k selects a row, n p an operation".to_owned();
    if state.rows.gpus().next().is_some() {
        text.push_str(", g the next gap of the GPU, L the longest");
    }
    let verdict = state.answer().and_then(|it| it.verdicts.first());
    if is_wide && verdict.is_some_and(|it| it.scope.of == Answered::Marked) {
        text.push_str(". The marked step is shown up to its last operation on the GPU");
    }
    text
}

/// "128×128", without trailing ones.
fn dimensions(d: [u32; 3]) -> String {
    match d {
        [x, 0 | 1, 0 | 1] => x.to_string(),
        [x, y, 0 | 1] => format!("{x}×{y}"),
        [x, y, z] => format!("{x}×{y}×{z}"),
    }
}

impl Details {
    /// What they say, to be copied: of a record its whole name.
    pub fn copied(&self) -> Option<String> {
        let (name, _) = self.name.as_ref()?;
        if self.is_record {
            return Some(name.clone());
        }
        let parts = std::iter::once(name).chain(&self.facts);
        Some(parts.map(String::as_str).collect::<Vec<_>>().join(" · "))
    }
}

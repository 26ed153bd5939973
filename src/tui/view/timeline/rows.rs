//! What stands on a row of the timeline.

use super::cell::{RowContent, fit};
use super::counters;
use crate::tui::draw::gpu::{GpuPlot, cells};
use crate::tui::draw::lane::{LaneRow, Plot};
use crate::tui::draw::layout::{FIGURE, Layout};
use crate::tui::draw::strip::{Strip, StripInput};
use crate::tui::draw::{label, pen};
use crate::tui::state::job::Waits;
use crate::tui::state::nest::{self, Level};
use crate::tui::state::rows::counters::Counters;
use crate::tui::state::{Item, Row, RowKind, State};
use crate::tui::theme::Role;
use crate::tui::time_scale::TimeScale;
use activity::text::printable;
use activity::{Direction, Ns, Span, units};
use causes::{Cause, Group, Shares};
use figures::breakdown::Breakdown;
use trace::{LaneId, LaneKind, Measure, Trace, describe};

#[cfg(test)]
mod tests;

/// GB/s of each column over all of its time, and the greatest while copies ran.
type Rate = (Vec<f64>, f64);

/// What rows on screen ask of each other, worked out once a frame: the rates of directions, and which ranges lie in which.
#[derive(Debug, Default)]
pub(super) struct Shared {
    rates: Vec<((usize, Direction), Rate)>,
    levels: Vec<(LaneId, Option<Vec<Level>>)>,
}

impl Shared {
    fn rate(
        &mut self,
        trace: &Trace,
        device: usize,
        direction: Direction,
        scale: TimeScale,
    ) -> &Rate {
        let key = (device, direction);
        let known = self.rates.iter().position(|(known, _)| *known == key);
        let at = known.unwrap_or_else(|| {
            self.rates
                .push((key, rates(trace, device, direction, scale)));
            self.rates.len() - 1
        });
        &self.rates[at].1
    }

    fn levels(&mut self, trace: &Trace, lane: LaneId, window: Span) -> Option<&[Level]> {
        let known = self.levels.iter().position(|(known, _)| *known == lane);
        let at = known.unwrap_or_else(|| {
            let levels = nest::levels(trace, lane, window, nest::DEEPEST);
            self.levels.push((lane, levels));
            self.levels.len() - 1
        });
        self.levels[at].1.as_deref()
    }

    /// Whether a row has nothing to show, and is not selected. Such are those under the first of a stack, and those of a
    /// counter without two samples. So are streams and threads that do nothing in a step.
    pub(super) fn is_blank(&mut self, state: &State, row: &Row) -> bool {
        let (lane, depth) = match row.kind {
            RowKind::Range(lane, depth @ 1..) => (lane, depth),
            RowKind::Bandwidth(device, direction) => {
                let usage = &state.model.run.trace.devices()[device].usage;
                let window = state.focus.camera.viewport.window;
                return state.step_in_view().is_some()
                    && usage.time(Measure::Direction(direction), window) == 0
                    && state.focus.selection.row != Some(row.kind);
            }
            RowKind::Counter(device, metric) if state.rows.counters == Counters::Few => {
                return counters::is_blank(state, device, metric)
                    && state.focus.selection.row != Some(row.kind);
            }
            RowKind::Stream(lane) | RowKind::Thread(lane) | RowKind::Range(lane, _) => {
                let is_step = state.step_in_view().is_some();
                let lane = &state.model.run.trace.lanes()[lane];
                return is_step
                    && lane.rows(state.focus.camera.viewport.window).is_empty()
                    && state.focus.selection.row != Some(row.kind);
            }
            _ => return false,
        };
        let window = state.focus.camera.viewport.window;
        let levels = self.levels(&state.model.run.trace, lane, window);
        let level = levels.and_then(|it| it.get(depth)).into_iter().flatten();
        let is_empty = !{ level }.any(|(_, span)| span.overlaps(window));
        is_empty && state.focus.selection.row != Some(row.kind)
    }
}

pub(super) fn make(
    state: &State,
    layout: &Layout,
    scale: TimeScale,
    shared: &mut Shared,
    row: &Row,
) -> RowContent {
    let room = usize::from(layout.side.saturating_sub(2));
    let content = match row.kind {
        RowKind::Title => return RowContent::Title(row.label.clone()),
        RowKind::Folded(_) => {
            let is_selected = state.focus.selection.row == Some(row.kind);
            return RowContent::Folded(row.label.clone(), is_selected);
        }
        RowKind::Bandwidth(device, direction) => {
            let has_figure = layout.gutter >= FIGURE;
            bandwidth(
                state,
                (device, direction),
                scale,
                shared,
                (room, has_figure),
            )
        }
        RowKind::Gpu(device) => gpu(state, device, scale, room),
        RowKind::Overlap(device) => overlap(state, device, scale, room),
        RowKind::Memory(device) => memory(state, device, scale, room),
        RowKind::Counter(device, metric) => counters::make(state, device, metric, scale, room),
        RowKind::Stream(_) | RowKind::Thread(_) | RowKind::Range(..) | RowKind::Overhead(_) => {
            lane(state, row, scale, shared, room)
        }
        RowKind::Predicted(lane) => predicted(state, lane, scale),
        RowKind::Bound => bound(state, scale),
    };
    RowContent::Lane(LaneRow {
        label: row.label.clone(),
        is_selected: state.focus.selection.row == Some(row.kind),
        is_hit: is_hit(state, row),
        gutter: layout.gutter,
        side_columns: layout.side,
        ..content
    })
}

/// Whether the name of a row is what is looked for.
fn is_hit(state: &State, row: &Row) -> bool {
    let needle = state.focus.search.needle();
    needle.is_some_and(|needle| needle.is_in(&row.label))
}

fn gpu(state: &State, device: usize, scale: TimeScale, room: usize) -> LaneRow {
    let (run, usage) = (
        &state.model.run,
        &state.model.run.trace.devices()[device].usage,
    );
    let window = state.figures_span();
    let side = if window.is_empty() || state.is_early() {
        String::new()
    } else {
        let parts = Breakdown::of_device(&run.trace, device, window);
        let busy = units::percent(parts.share(parts.busy));
        fit(room, [format!("busy {busy}"), busy])
    };
    let plot = GpuPlot::new(usage, scale, state.used(device), |cell| {
        state.model.idle.idle_within(run, device, cell)
    });
    let selected = state.focus.selection;
    let is_here = selected.row.and_then(RowKind::device) == Some(device);
    let plot = match selected.item {
        Item::Gap(gap) if is_here => plot.select(gap, scale, gap_forms(state, gap)),
        _ => plot,
    };
    LaneRow::new(Role::Text, Plot::Gpu(plot), side)
}

/// What stands in the selected gap, the longest first: "15.7 ms: unflatten_dense_tensors", "15.7 ms: CPU work", "15.7 ms".
fn gap_forms(state: &State, gap: Span) -> Vec<String> {
    let length = units::duration(gap.len());
    let mut forms = Vec::new();
    if let Some(why) = state.why() {
        let who = describe::host_label(&why.who);
        let who = printable(label::bare(&who));
        // A function is told without its place where there is no room for that.
        let of = who.split(" at ").next().unwrap_or_default();
        // Who launches is no cause of its own.
        let is_launching = (why.group, why.cause) == (Group::Launch, Cause::Host);
        let who = [&who, of].into_iter().filter(|_| !is_launching);
        let all = who.chain([why.label()]);
        forms = all.map(|it| format!("{length}: {it}")).collect();
    }
    forms.push(length);
    forms
}

/// What has no room for words of its own.
const OTHER: &str = "other";

/// A part of the time in view: its colour, what it is, and for how long.
type TimePart = (Role, &'static str, Ns);

/// How the GPUs on screen spent the time in view: what ran, and each cause of idle time, the greatest first. The time of
/// all of them stands beside it. What is less than a thousandth of the time is left out, and what is half of no column of `room`.
fn parts(state: &State, devices: &[usize], room: usize) -> (Vec<TimePart>, Ns) {
    let run = &state.model.run;
    let window = state.figures_span();
    let mut sum = Shares::default();
    let (mut kernels, mut copies, mut busy, mut unused, mut untold) = (0, 0, 0, 0, 0);
    for &device in devices {
        let usage = &run.trace.devices()[device].usage;
        kernels += usage.time(Measure::Compute, window);
        copies += usage.time(Measure::Copy, window) - usage.time(Measure::Overlap, window);
        busy += usage.time(Measure::Busy, window);
        let used = window.intersect(state.used(device));
        unused += window.len() - used.len().min(window.len());
        let (idle, rest) = state.model.idle.told_within(run, device, used);
        untold += rest;
        for (sum, ns) in sum.iter_mut().zip(idle) {
            *sum += ns;
        }
    }
    let count = devices.len() as Ns;
    let whole = (window.len() * count).max(1);
    let least = (whole - 1) / (2 * room as Ns * count).max(1_000);
    let alone = match busy - kernels - copies > whole / 200 {
        true => "copies and memsets alone",
        false => "copies alone",
    };
    let ran = [
        (Role::Good, "kernels", kernels),
        (Role::H2D, alone, busy - kernels),
    ];
    let ran = ran.into_iter().filter(|(.., ns)| *ns > least);
    let idle = Group::most(sum, least).into_iter();
    let idle = idle.map(|(group, ns)| (Role::Cause(group as u8), group.label(), ns));
    // Other GPUs work when one is not used.
    // What less of it has no cause is due to rounding.
    let untold = if untold > whole / 200 { untold } else { 0 };
    let untold = (Role::Dim, state.model.idle.untold(run), untold);
    let rest = [untold, (Role::Dim, "not used", unused)];
    let rest = rest.into_iter().filter(|it| it.2 > least);
    (ran.chain(idle).chain(rest).collect(), whole)
}

/// Whether a part of the time is of what ran.
fn has_run(part: &TimePart) -> bool {
    matches!(part.0, Role::Good | Role::H2D)
}

/// What is never told as "other": the greatest cause in view, and that of the selected gap.
fn focus(state: &State, parts: &[TimePart]) -> [Role; 2] {
    let is_cause = |it: &&TimePart| matches!(it.0, Role::Cause(_));
    let greatest = parts.iter().find(is_cause);
    let greatest = greatest.map_or(Role::Text, |it| it.0);
    let here = state.why().map(|why| Role::Cause(why.group as u8));
    [greatest, here.unwrap_or(greatest)]
}

/// Each part with its share of `whole`, where that is told; of causes that take less than `least` the word alone. What others took
/// comes last.
fn told(parts: &[TimePart], (least, others): (Ns, Ns), whole: Option<Ns>) -> Vec<(Role, String)> {
    let words = |words: &str, ns: Ns, least: Ns| match whole {
        Some(whole) if ns >= least => {
            format!("{words} {}", units::percent(ns as f64 / whole as f64))
        }
        _ => words.to_owned(),
    };
    let each = parts.iter().map(|it| {
        let least = if has_run(it) { 0 } else { least };
        (it.0, words(it.1, it.2, least))
    });
    // A hundredth is not missed: a word without its figure is a riddle.
    let is_told = others > 0 && others >= whole.unwrap_or(0) / 100;
    let has_cause = parts.iter().any(|it| matches!(it.0, Role::Cause(_)));
    let other = if has_cause { OTHER } else { "idle" };
    let others = is_told.then(|| (Role::Text, words(other, others, 0)));
    each.chain(others).collect()
}

/// What the colours of the rows of GPUs mean, with the share of the time in view that each has.
pub(super) fn legend(state: &State, room: usize) -> Vec<(Role, String)> {
    let devices: Vec<usize> = state.rows.gpus().collect();
    let (mut parts, whole) = parts(state, &devices, room);
    let is_early = state.is_early();
    let of_whole = (!is_early).then_some(whole);
    // It stands under the first GPU's row, and is of all.
    let on = match devices.len() {
        0 | 1 => String::new(),
        many => format!(" on {many} GPUs"),
    };
    let of = format!(" of {}", units::duration(state.figures_span().len()));
    // Where that is not what the axis shows it is said in any case.
    let is_less = state.figures_span() != state.focus.camera.viewport.window;
    let mut base = pen::width(&of) * usize::from(is_less && !is_early);
    let width = |all: &[(Role, String)]| {
        let each = all.iter().map(|it| pen::width(&it.1) + 4);
        on.len() + "idle: ".len() + each.sum::<usize>()
    };
    let fits = |all: &[(Role, String)], base| width(all) + base <= room + 2;
    // Where not all have room, little goes without its share. Else those that take least go together, without marks: a
    // letter without a word is a riddle.
    let mut legend = told(&parts, (0, 0), of_whole);
    if !fits(&legend, base) {
        legend = told(&parts, (whole / 20, 0), of_whole);
    }
    let focus = focus(state, &parts);
    let mut others = 0;
    while !fits(&legend, base) {
        // Behind "idle:" stands no time in which something ran: that has a word of its own.
        let ran = parts.iter().filter(|it| has_run(it)).count();
        let goes = |i: &usize| match has_run(&parts[*i]) {
            true => ran > 1,
            // Hardly any idle time is worth less than what ran instead.
            false => !focus.contains(&parts[*i].0) || parts[*i].2 < whole / 20,
        };
        let goes = (0..parts.len()).filter(goes);
        let Some(least) = goes.min_by_key(|&i| parts[i].2) else {
            break;
        };
        // What takes much is worth more than the length of what is in view.
        if base > 0 && parts[least].2 >= whole / 20 {
            base = 0;
            continue;
        }
        let least = parts.remove(least);
        match has_run(&least) {
            true => parts[0] = (Role::Good, "busy", parts[0].2 + least.2),
            false => others += least.2,
        }
        legend = told(&parts, (0, others), of_whole);
    }
    // The headline's shares are of whole steps, these of what is in view: said where there is room.
    let has_room = width(&legend) + pen::width(&of) <= room + 2 && !is_early;
    if let Some(first) = legend.first_mut() {
        first.1.push_str(if has_room { &of } else { "" });
        first.1.push_str(&on);
    }
    legend
}

fn rates(trace: &Trace, device: usize, direction: Direction, scale: TimeScale) -> Rate {
    let usage = &trace.devices()[device].usage;
    let measure = Measure::Direction(direction);
    if usage.total(measure) == 0 {
        return (vec![0.0; usize::from(scale.columns)], 0.0);
    }
    let edges = scale.edges();
    let moved = trace.bytes_moved_each(device, direction, &edges);
    let busy = usage.times(measure, &edges);
    let mut greatest = 0.0f64;
    let in_cell = cells(&edges)
        .zip(busy)
        .zip(moved)
        .map(|((cell, busy), bytes)| {
            if busy == 0 {
                return 0.0;
            }
            greatest = greatest.max(bytes / busy as f64);
            bytes / cell.len().max(1) as f64
        });
    let in_cell = in_cell.collect();
    (in_cell, greatest)
}

/// "54.9 GB/s", "2.4 MB/s": a rate with the unit that leaves digits to read.
fn rate_with_unit(gb_per_s: f64) -> String {
    match gb_per_s {
        r if r >= 0.1 => format!("{} GB/s", units::rate(r)),
        r if r >= 1e-4 => format!("{} MB/s", units::rate(r * 1e3)),
        r => format!("{} kB/s", units::rate(r * 1e6)),
    }
}

/// The same in few columns: what moved is never 0.
fn short_rate(gb_per_s: f64) -> String {
    match gb_per_s {
        r if r >= 1.0 => format!("{r:.0} GB/s"),
        r if r >= 1e-3 => format!("{:.0} MB/s", r * 1e3),
        r => format!("{:.0} kB/s", r * 1e6),
    }
}

fn bandwidth(
    state: &State,
    (device, direction): (usize, Direction),
    scale: TimeScale,
    shared: &mut Shared,
    (room, has_figure): (usize, bool),
) -> LaneRow {
    let trace = &state.model.run.trace;
    let usage = &trace.devices()[device].usage;
    let (in_cell, greatest) = shared.rate(trace, device, direction, scale).clone();
    let known = state.model.run.gpus.peaks(trace).rate(direction);
    // Of a link without known peak the faster direction is the scale of both: a few bytes are no wall.
    let full = known.unwrap_or_else(|| {
        let others = [Direction::H2D, Direction::D2H, Direction::P2P];
        let others = others.into_iter().filter(|d| *d != direction);
        let others = others.map(|d| shared.rate(trace, device, d, scale).1);
        others.fold(greatest, f64::max)
    });
    let full = full.max(f64::MIN_POSITIVE);
    let role = label::direction_role(direction);
    let plot = Plot::meter(in_cell.iter().map(|rate| rate / full), role);
    let window = state.figures_span();
    let busy = usage.time(Measure::Direction(direction), window);
    if busy == 0 {
        return LaneRow::new(role, plot, "");
    }
    let average = trace.bytes_moved(device, direction, window) / busy as f64;
    let figure = rate_with_unit(average);
    let side = match known {
        // Without room for a figure with its unit beside the name it stands here.
        _ if !has_figure => fit(room, [figure.clone(), short_rate(average)]),
        Some(peak) if average >= 0.01 * peak => {
            let share = units::percent(average / peak);
            let of = format!("{share} of {} GB/s", units::rate(peak));
            fit(room, [of, format!("{share} of max"), share])
        }
        Some(peak) => fit(room, [format!("of {} GB/s", units::rate(peak))]),
        None => {
            let most = rate_with_unit(greatest.max(average));
            fit(room, [format!("fastest {most}")])
        }
    };
    LaneRow {
        figure,
        ..LaneRow::new(role, plot, side)
    }
}

/// How long two engines or more were at work at once, whichever they are: a kernel and a copy, or copies of
/// both directions.
fn overlap(state: &State, device: usize, scale: TimeScale, room: usize) -> LaneRow {
    let usage = &state.model.run.trace.devices()[device].usage;
    let edges = scale.edges();
    let shares = cells(&edges)
        .zip(usage.times(Measure::Concurrent, &edges))
        .map(|(cell, both)| both as f64 / cell.len().max(1) as f64);
    let plot = Plot::meter(shares, Role::Overlap);
    let window = state.figures_span();
    let side = if window.is_empty() {
        String::new()
    } else {
        let both = usage.time(Measure::Concurrent, window);
        let share = units::percent(both as f64 / window.len() as f64);
        fit(room, [format!("2+ engines {share}"), share])
    };
    LaneRow::new(Role::Overlap, plot, side)
}

/// The most memory in use within each column, against the most within the scope.
fn memory(state: &State, device: usize, scale: TimeScale, room: usize) -> LaneRow {
    let scope = state.scope_span().unwrap_or_default();
    let memory = state.rows.memory.get(device);
    let in_use = |window: Span| memory.and_then(|m| m.peak(window)).unwrap_or(0);
    let most = in_use(scope);
    let shares = (0..scale.columns).map(|x| {
        let cell = scale.cell(x).intersect(scope);
        in_use(cell) as f64 / most.max(1) as f64
    });
    let most = units::bytes(most);
    if counters::is_flat(shares.clone()) {
        let words = format!("{most} all along");
        return LaneRow::new(Role::Memset, Plot::Words(words), "");
    }
    let side = fit(room, [format!("at most {most}"), most]);
    LaneRow::new(Role::Memset, Plot::meter(shares, Role::Memset), side)
}

/// A stream of the predicted timeline.
fn predicted(state: &State, lane: LaneId, scale: TimeScale) -> LaneRow {
    let input = StripInput {
        scale,
        scope: state.scope_span().unwrap_or_default(),
        ..StripInput::default()
    };
    let (run, prediction) = (&state.model.run, &state.focus.prediction);
    let trace = prediction.trace(run, state.scope());
    let strip = trace.map_or_else(Strip::default, |trace| Strip::new(trace, lane, &input));
    LaneRow::new(Role::Dim, Plot::Strip(strip), "")
}

/// What a cure leaves at the least of what was on screen, and what it saves at most.
fn bound(state: &State, scale: TimeScale) -> LaneRow {
    let parts = state
        .focus
        .prediction
        .bound(&state.model.run, state.scope());
    // Of what was asked of much more than is in view no bar shows what it saves: it is said in words.
    let window = state.focus.camera.viewport.window;
    let plot = parts.map_or_else(Plot::default, |parts| {
        let part = |span: Span, words| {
            let length = units::duration(span.len());
            (scale.columns_of(span), format!("{words} {length}"))
        };
        let told = [part(parts[0], "at least"), part(parts[1], "saves up to")];
        let whole = parts[0].hull(parts[1]).len();
        match whole > 2 * window.len() {
            true => {
                let whole = units::duration(whole);
                Plot::Words(format!("{} of {whole}, {}", told[0].1, told[1].1))
            }
            false => Plot::Bound(told),
        }
    });
    LaneRow::new(Role::Dim, plot, "")
}

fn lane(state: &State, row: &Row, scale: TimeScale, shared: &mut Shared, room: usize) -> LaneRow {
    let Some(id) = row.kind.lane() else {
        return LaneRow::default();
    };
    let trace = &state.model.run.trace;
    let selection = state.focus.selection;
    // A range that was stepped to may stand on another of its lane's rows.
    let item = match selection.row.and_then(RowKind::lane) == Some(id) {
        true => selection.item,
        false => Item::None,
    };
    let is_stream = matches!(row.kind, RowKind::Stream(_));
    // A lane that has the name itself stays as it is.
    let found = state.focus.search.lit(&state.model.run);
    let waits = state.model.job.waits(&state.model.run, id);
    let rounds = state.model.rounds.known(&state.model.run);
    let input = StripInput {
        scale,
        scope: state.scope_span().unwrap_or_default(),
        record: match item {
            Item::Record { row, .. } => Some(row),
            _ => None,
        },
        gap: match item {
            Item::Gap(gap) => Some(gap),
            _ => None,
        },
        has_gaps: is_stream,
        found: found.filter(|_| !is_hit(state, row)),
        waits: waits.filter(|_| is_stream),
        rounds: rounds.filter(|_| is_stream),
    };
    let strip = match row.kind {
        RowKind::Range(_, depth) => {
            let levels = shared.levels(trace, id, scale.window);
            Strip::nested(trace, id, levels, depth, &input)
        }
        _ => Strip::new(trace, id, &input),
    };
    let side = is_stream.then(|| busy_words(state, id, input.waits, room));
    LaneRow::new(Role::Text, Plot::Strip(strip), side.unwrap_or_default())
}

/// The share of the time in view in which a stream was busy, and in which it waited inside collectives.
fn busy_words(state: &State, stream: LaneId, waits: Option<&Waits>, room: usize) -> String {
    let (trace, window) = (&state.model.run.trace, state.figures_span());
    if window.is_empty() {
        return String::new();
    }
    let lane = &trace.lanes()[stream];
    let off = match lane.key().kind {
        LaneKind::Stream { device, .. } => Breakdown::of_device(trace, device, window).not_recorded,
        _ => 0,
    };
    let share = |time: Ns| units::percent(time as f64 / (window.len() - off).max(1) as f64);
    let waits = waits.map_or(0, |waits| waits.time_within(window));
    let (busy, waits) = (share(lane.busy(window)), (waits > 0).then(|| share(waits)));
    let both = waits.map(|waits| format!("busy {busy}, waits {waits}"));
    fit(room, both.into_iter().chain([format!("busy {busy}"), busy]))
}

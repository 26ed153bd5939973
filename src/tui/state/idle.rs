//! Why each device was idle over the window that is on screen: its causes by time, in groups.
//!
//! The pieces of every gap around the window are summed in cells much finer than columns, off the drawing thread. A
//! ladder of zooms gives the stretch, so that small steps ask nothing anew.

use std::sync::Arc;
use std::time::Duration;

use super::analyst::{Analyst, Question};
use super::run::Run;
use super::scope::{OnScreen, Scope};
use activity::feed::Stop;
use activity::{Ns, Span};
use advice::Facts;
use advice::facts::LastFacts;
use causes::{Group, Shares};
use figures::breakdown::Breakdown;
use figures::steps;
use trace::{Measure, Trace};

/// Cells that a stretch is cut into: at least five to a column of the widest screens. More GPUs than these share as many.
const CELLS: usize = 4_096;
const GPUS: usize = 64;

/// Operations of a stretch up to which it is looked at: about a second's work.
const MOST: usize = 1_000_000;

/// Operations up to which that takes less than two frames.
const FEW: usize = 20_000;

/// What was done this long before a stretch is looked at too: it may be what the first gaps waited for.
const BEFORE: Ns = 50_000_000;

/// Records of a run up to which each question rests on all of them.
const WHOLE: usize = 2_000_000;

/// While a program runs, answers are at least this far apart.
const PACE: Duration = Duration::from_secs(1);

/// The idle time of each device over a stretch, cell by cell.
#[derive(Clone, Debug, Default)]
pub struct IdleMap {
    stretch: Span,
    /// Whether the run went on then: what came later is not in it.
    goes_on: bool,
    cells: usize,
    /// By device: the sums of all cells before each one, and of all; empty for one without operations in the stretch.
    sums: Vec<Vec<Shares>>,
}

impl IdleMap {
    /// That of a stretch that is looked at while it is drawn; of a long one nothing is known.
    pub fn at_once(trace: &Trace, stretch: Span) -> IdleMap {
        let is_short = operations(trace, stretch) <= FEW;
        let map = is_short.then(|| IdleMap::of(&near(trace, stretch), stretch, &Stop::default()));
        map.flatten().unwrap_or_default()
    }

    /// That of any stretch. `None` when it is stopped.
    pub(super) fn of(facts: &Facts<'_>, stretch: Span, stop: &Stop) -> Option<IdleMap> {
        let trace = facts.trace;
        let mut map = IdleMap {
            stretch,
            cells: CELLS * GPUS / trace.devices().len().max(GPUS),
            ..IdleMap::default()
        };
        if operations(trace, stretch) > MOST || stretch.is_empty() {
            return Some(map);
        }
        let mut cells = vec![Vec::new(); trace.devices().len()];
        pieces(facts, stretch, stop, |device, span, group| {
            cells[device].resize(map.cells, Shares::default());
            map.add(&mut cells[device], span, group);
        })?;
        map.sums = cells.into_iter().map(sums).collect();
        Some(map)
    }

    /// That of any stretch, on its basis or by what lies around it; nothing when it is stopped.
    pub(super) fn on(basis: &Basis, trace: &Trace, stretch: Span, stop: &Stop) -> IdleMap {
        let facts = basis.facts(trace);
        let facts = facts.unwrap_or_else(|| near(trace, stretch));
        IdleMap::of(&facts, stretch, stop).unwrap_or_default()
    }

    /// All idle time of a device by group; `None` where there are too many operations.
    pub(super) fn all_of(&self, device: usize) -> Option<Shares> {
        (!self.sums.is_empty()).then(|| self.idle_within(device, self.stretch))
    }

    /// Where a cell begins.
    fn edge(&self, cell: usize) -> Ns {
        let offset = i128::from(self.stretch.len()) * cell as i128 / self.cells as i128;
        self.stretch.start + offset as Ns
    }

    /// The cell that `time` lies in, or the one beside it: edges are rounded.
    fn cell(&self, time: Ns) -> usize {
        let offset = i128::from(time - self.stretch.start) * self.cells as i128;
        (offset / i128::from(self.stretch.len().max(1))) as usize
    }

    /// The cells that a span touches.
    fn touched(&self, span: Span) -> std::ops::Range<usize> {
        let (from, to) = (self.cell(span.start), self.cell(span.end - 1));
        from.saturating_sub(1)..(to + 2).min(self.cells)
    }

    fn add(&self, cells: &mut [Shares], span: Span, group: Group) {
        for cell in self.touched(span) {
            let of_cell = Span::new(self.edge(cell), self.edge(cell + 1));
            cells[cell][group as usize] += span.intersect(of_cell).len();
        }
    }

    /// The idle time within `window`, cells in proportion.
    pub fn idle_within(&self, device: usize, window: Span) -> Shares {
        let window = window.intersect(self.stretch);
        let sums = self.sums.get(device).filter(|it| !it.is_empty());
        let Some(sums) = sums.filter(|_| !window.is_empty()) else {
            return Shares::default();
        };
        let [before, until] = [window.start, window.end].map(|at| self.until(sums, at));
        std::array::from_fn(|i| until[i] - before[i])
    }

    /// The idle time before `time`, which lies in the stretch, of sums up to each cell.
    fn until(&self, sums: &[Shares], time: Ns) -> Shares {
        let cell = (self.cell(time)).min(self.cells - 1);
        // Edges are rounded: the one found may be the next one's.
        let cell = cell - usize::from(cell > 0 && self.edge(cell) > time);
        let of_cell = Span::new(self.edge(cell), self.edge(cell + 1));
        let part = (time - of_cell.start) as f64 / of_cell.len().max(1) as f64;
        std::array::from_fn(|i| {
            let in_cell = sums[cell + 1][i] - sums[cell][i];
            sums[cell][i] + (in_cell as f64 * part.clamp(0.0, 1.0)).round() as Ns
        })
    }
}

/// The sums of all cells before each one, and of all.
fn sums(cells: Vec<Shares>) -> Vec<Shares> {
    if cells.is_empty() {
        return Vec::new();
    }
    let mut sums = vec![Shares::default()];
    for (at, cell) in cells.into_iter().enumerate() {
        sums.push(std::array::from_fn(|i| sums[at][i] + cell[i]));
    }
    sums
}

/// Operations of a stretch.
pub fn operations(trace: &Trace, stretch: Span) -> usize {
    let streams = trace.streams();
    streams.map(|(_, lane)| lane.rows(stretch).len()).sum()
}

/// Hands on the pieces of the gaps of all devices, as far as they lie within `stretch`. `None` when it is stopped.
fn pieces(
    facts: &Facts<'_>,
    stretch: Span,
    stop: &Stop,
    mut each: impl FnMut(usize, Span, Group),
) -> Option<()> {
    let (around, causes) = (around(facts.trace, stretch), facts.causes());
    for (device, of) in facts.trace.devices().iter().enumerate() {
        let usage = &of.usage;
        // A step that is marked begins before its first operation.
        let begins = usage.span().and_then(|used| {
            let begins = steps::begins(facts.trace, device).filter(|it| stretch.start <= *it)?;
            (begins < used.start).then_some(Span::new(begins, used.start))
        });
        let lead = begins.and_then(|lead| causes.gaps_over(device, None, lead).next());
        let gaps = causes.gaps_with_pieces(device, Some(around));
        for (gap, pieces) in lead.into_iter().chain(gaps) {
            if stop.is_stopped() {
                return None;
            }
            // What began long before the stretch may have run all the while.
            let is_idle = usage.time(Measure::Busy, gap.span) == 0;
            for piece in pieces.iter().filter(|_| is_idle) {
                let part = piece.span.intersect(stretch);
                if !part.is_empty() {
                    each(device, part, causes.group(gap, piece));
                }
            }
        }
    }
    Some(())
}

/// The question, and its last answer.
#[derive(Debug, Default)]
pub struct Idle {
    pub question: Question<(Span, bool), IdleMap>,
}

impl Idle {
    /// Takes the answer that has come, and asks when the window has left the stretch of the last one.
    pub fn prepare(
        &mut self,
        analyst: &Analyst,
        run: &Run,
        on_screen: OnScreen,
        last: &Arc<LastFacts>,
    ) {
        self.question.paced(|_, _, _| PACE).poll();
        let Some(scope) = run.scope_span(on_screen.scope).filter(|_| !run.is_none()) else {
            return;
        };
        let stretch = stretch(on_screen.window, scope, on_screen.scope);
        let (basis, goes_on) = (Basis::of(run, last, stretch), run.is_running());
        self.question
            .ask(analyst, run, (stretch, goes_on), move |trace, stop| {
                let found = IdleMap::on(&basis, trace, stretch, stop);
                IdleMap { goes_on, ..found }
            });
    }

    /// The idle time of a device within `window` by group, as far as it is known. Of a run that has ended that is all or
    /// nothing: shares of a part would be read as those of the whole.
    pub fn idle_within(&self, run: &Run, device: usize, window: Span) -> Shares {
        let is_whole = |map: &&IdleMap| {
            let is_now = !map.goes_on && self.question.is_of(run);
            run.is_running() || (is_now && map.stretch.hull(window) == map.stretch)
        };
        let map = self.question.last(run).filter(is_whole);
        map.map_or_else(Shares::default, |map| map.idle_within(device, window))
    }

    /// The same, and the idle time whose cause is not known (yet).
    pub fn told_within(&self, run: &Run, device: usize, window: Span) -> (Shares, Ns) {
        let told = self.idle_within(run, device, window);
        let parts = Breakdown::of_device(&run.trace, device, window);
        (told, parts.idle() - told.iter().sum::<Ns>())
    }

    /// What stands for that.
    pub fn untold(&self, run: &Run) -> &'static str {
        match run.is_running() || self.question.is_open() {
            true => "computing why",
            false => "not looked into",
        }
    }
}

/// The facts of all of a run that has ended, on which rests what is said of a stretch, as in a report. Nothing where a long run
/// is asked about a part.
#[derive(Clone, Debug)]
pub(super) struct Basis(Option<(Arc<LastFacts>, u64)>);

impl Basis {
    pub(super) fn of(run: &Run, last: &Arc<LastFacts>, stretch: Span) -> Basis {
        let all = run.trace.operations_extent();
        let is_all = all.is_some_and(|all| stretch.hull(all) == stretch);
        let rests = !run.is_running() && (is_all || run.records() <= WHOLE);
        Basis(rests.then(|| (Arc::clone(last), run.number)))
    }

    pub(super) fn facts<'t>(&'t self, trace: &'t Trace) -> Option<Facts<'t>> {
        let (last, number) = self.0.as_ref()?;
        Some(last.facts(*number, trace))
    }
}

/// What is known of a stretch and of what explains its gaps.
fn near(trace: &Trace, stretch: Span) -> Facts<'_> {
    Facts::within(trace, around(trace, stretch))
}

/// The stretch with what explains its gaps: the operations that end those at its edges, and earlier ones.
fn around(trace: &Trace, stretch: Span) -> Span {
    let at_edges = trace.devices().iter().flat_map(|device| {
        let gap = |time| device.usage.gap_at(time);
        [gap(stretch.start), gap(stretch.end)]
    });
    let hull = at_edges.flatten().fold(stretch, Span::hull);
    Span::new(
        hull.start.saturating_sub(BEFORE),
        hull.end.saturating_add(1),
    )
}

/// The stretch around a window: twice to four times a power of two that holds it, or all of a scope
/// that is no longer.
fn stretch(window: Span, scope: Span, of: Scope) -> Span {
    let step = (window.len().max(1) as u64).next_power_of_two() as Ns;
    let start = window.start.div_euclid(step) * step;
    let around = Span::new(start, start.saturating_add(step.saturating_mul(2)));
    match of {
        // A pass is short enough to be looked at once.
        Scope::Pass(_) if scope.len() / 4 <= step => scope,
        _ => around.intersect(scope),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::KnownGpus;
    use crate::tui::fixture;
    use crate::tui::state::Status;
    use crate::tui::state::camera::Camera;

    #[test]
    fn what_the_cells_hold_is_the_idle_time_of_the_devices() {
        let trace = fixture::trace();
        let whole = trace.operations_extent().expect("operations");
        let map = IdleMap::of(&Facts::new(&trace), whole, &Stop::default()).expect("an answer");
        let idle = whole.len() - trace.devices()[0].usage.time(Measure::Busy, whole);
        let found: Ns = map.idle_within(0, whole).iter().sum();
        // In proportion: a nanosecond may be lost where a window cuts a cell.
        assert!((found - idle).abs() <= 2, "{found} of {idle}");
        // Sequential waits 100 us before each batch; the host launches and waits all the time.
        let first = map.idle_within(0, Span::new(whole.start, whole.start + 4_300_000));
        assert!(
            (first.iter().sum::<Ns>() - 300_000).abs() <= 2 * 4_096,
            "{first:?}"
        );
    }

    #[test]
    fn a_run_that_has_ended_has_all_causes_of_a_window_or_none() {
        let gpus = KnownGpus::default();
        let mut run = Run::new(fixture::trace(), None, gpus, Status::Running);
        let whole = run.trace.operations_extent().expect("operations");
        let mut camera = Camera::default();
        camera.fit(&run);
        camera.viewport.zoom(camera.viewport.window.start, 0.1);
        let (mut idle, analyst, last) = (Idle::default(), Analyst::default(), Arc::default());
        let known = |idle: &Idle, run: &Run, of| idle.idle_within(run, 0, of).iter().sum::<Ns>();
        idle.prepare(&analyst, &run, camera.on_screen(), &last);
        let part = known(&idle, &run, whole);
        assert!(part > 0, "while it runs, what is known so far");
        run.status = Status::Ended(activity::feed::Outcome::Complete);
        assert_eq!(known(&idle, &run, whole), 0);
        idle.prepare(&analyst, &run, camera.on_screen(), &last);
        let near = camera.viewport.window.intersect(whole);
        assert!(known(&idle, &run, near) > 0);
        assert_eq!(
            known(&idle, &run, whole),
            0,
            "of a part nobody tells the whole"
        );
        camera.fit(&run);
        idle.prepare(&analyst, &run, camera.on_screen(), &last);
        assert!(known(&idle, &run, whole) > part);
    }

    #[test]
    fn a_step_of_the_window_asks_nothing_anew() {
        let run = Run::new(
            fixture::trace(),
            None,
            KnownGpus::default(),
            Status::Ended(activity::feed::Outcome::Complete),
        );
        let mut camera = Camera::default();
        camera.fit(&run);
        let (mut idle, analyst) = (Idle::default(), Analyst::default());
        let last = Arc::default();
        idle.prepare(&analyst, &run, camera.on_screen(), &last);
        assert_eq!(idle.question.version, 1);
        camera.viewport.zoom(camera.viewport.window.start, 0.9);
        idle.prepare(&analyst, &run, camera.on_screen(), &last);
        assert_eq!(idle.question.version, 1, "within the same stretch");
        camera.viewport.zoom(camera.viewport.window.start, 0.1);
        idle.prepare(&analyst, &run, camera.on_screen(), &last);
        assert_eq!(idle.question.version, 2);
    }
}

//! A job's ranks: what each does with its time, and who the others wait for.

use super::list::{Cell, Filter, List};
use super::table::TableLayout;
use super::{Place, Request, View};
use crate::report::ranks::{self as report, Means, RankReport};
use crate::tui::draw::prelude::*;
use crate::tui::state::job::LateRanks;
use crate::tui::state::{RowKind, State};
use activity::Span;
use trace::{LaneId, Trace, describe};

/// What the table can be ordered by; `host` folds each host into one line.
const ORDERS: [&str; 4] = ["rank", "late max", "waiting", "host"];
/// Ranks that are late and have a sentence above the others.
const TOLD: usize = 2;

#[derive(Clone, Debug, PartialEq)]
enum RankRow {
    /// How the clocks were aligned.
    Clocks,
    /// Who is late: index into the job's list.
    Late(usize),
    /// A rank.
    Rank(usize),
    /// The ranks of a host, in the mean.
    Host(Vec<usize>),
}

#[derive(Debug, Default)]
pub(super) struct RanksView {
    lines: Vec<RankRow>,
}

impl View for RanksView {
    fn orders(&self) -> &'static [&'static str] {
        &ORDERS
    }

    fn shows_ranks(&self) -> bool {
        true
    }

    fn has_content(&self, state: &State) -> bool {
        state.model.job.is_one(&state.model.run)
    }

    fn prepare(&mut self, list: &mut List, state: &State, area: Rect) {
        let empty = "no two processes share a collective";
        list.say(state.model.job.is_open(), "no rank has this", empty);
        let found = state.model.job.judged(&state.model.run);
        let mut columns = report::columns();
        if ORDERS[list.order] == "host" {
            columns[0].heading = "host";
        }
        let layout = TableLayout::new(columns, area.width);
        self.lines = found.map_or_else(Vec::new, |job| lines(job, list.order, &mut list.filter));
        list.heading = layout.heading(ORDERS[list.order]);
        let lines = &self.lines;
        list.fill(area, lines.len(), |i| {
            found.map_or_else(Vec::new, |job| cells(job, &lines[i], &layout))
        });
        let in_full = match (found, self.lines.get(list.cursor)) {
            (Some(job), Some(RankRow::Late(i))) => job.job.late[*i].text.clone(),
            (Some(job), Some(RankRow::Clocks)) => clocks(job),
            (Some(job), Some(RankRow::Rank(i))) => job.idle[*i].clone(),
            _ => String::new(),
        };
        list.in_full = Some(in_full);
    }

    /// Where the rank under the cursor was latest with what its GPU waited for before, of a host its latest.
    fn choose(&mut self, at: usize, state: &State) -> Option<Request> {
        let job = state.model.job.judged(&state.model.run)?;
        let rank = match self.lines.get(at)? {
            RankRow::Clocks => return None,
            RankRow::Late(i) => {
                let name = &job.job.late[*i].name;
                job.ranks.iter().find(|rank| rank.name == *name)?
            }
            RankRow::Rank(i) => &job.ranks[*i],
            RankRow::Host(of) => {
                let ranks = of.iter().map(|&i| &job.ranks[i]);
                ranks.max_by_key(|rank| rank.latest_ns)?
            }
        };
        // Where it was latest, else where it waited longest.
        let (lane, row) = rank.place?;
        let lanes = state.model.run.trace.lanes();
        let of = lanes.get(lane).filter(|lane| lane.holds(row))?;
        let place = Place {
            row: Some(RowKind::Stream(lane)),
            record: Some(row),
            span: of.span(row),
        };
        let device = rank.device_index;
        let Some(gap) = idle_before(&state.model.run.trace, device, (lane, row)) else {
            return Some(Request::Place(place));
        };
        let shown = Span::new(gap.start, place.span.end);
        Some(match rank.latest_ns {
            // Whoever waits is looked at where it waits, and the late rank where it became late.
            0 => Request::PlaceIn(place, shown),
            _ => Request::PlaceIn(Place::new(Some(RowKind::Gpu(device)), None, gap), shown),
        })
    }
}

/// Operations before a collective among which the one before it is looked for.
const BETWEEN: usize = 10_000;

/// The longest time in which a device was idle between a collective and the one of its name before it.
pub(super) fn idle_before(
    trace: &Trace,
    device: usize,
    (lane, row): (LaneId, usize),
) -> Option<Span> {
    let of = &trace.lanes()[lane];
    let name = |row: usize| describe::operation_name(trace, &trace.activity(lane, row).what);
    let (start, own) = (of.span(row).start, name(row));
    let earlier = std::iter::successors(Some(row), |&row| of.previous(of.span(row).start));
    let mut earlier = earlier.skip(1).take(BETWEEN);
    let before = earlier.find(|&row| name(row) == own);
    let since = before.map_or(start - of.span(row).len(), |row| of.span(row).end);
    let usage = &trace.devices().get(device)?.usage;
    usage.longest_gap(Span::new(since.min(start), start), Trace::GAP_MIN)
}

/// The lines that the filter leaves. Ranks match by their names and hosts, hosts also by a rank of theirs, sentences by
/// their words. How the clocks were aligned holds for all of them.
fn lines(job: &LateRanks, order: usize, filter: &mut Filter) -> Vec<RankRow> {
    let mut lines: Vec<RankRow> = (0..job.job.late.len().min(TOLD))
        .map(RankRow::Late)
        .collect();
    lines.retain(|line| matches!(line, RankRow::Late(i) if filter.lets([&job.job.late[*i].text])));
    let ranks = ordered(job, order);
    let all = ranks.len();
    let of = |line: &RankRow| match line {
        RankRow::Rank(i) => vec![job.ranks[*i].called()],
        RankRow::Host(of) => of.iter().map(|&i| job.ranks[i].called()).collect(),
        RankRow::Clocks | RankRow::Late(_) => Vec::new(),
    };
    let shown: Vec<RankRow> = ranks.into_iter().filter(|it| filter.lets(of(it))).collect();
    filter.count(shown.len(), all);
    // Who is late comes first, so that the cursor stands on it and its whole sentence below the list.
    if !lines.is_empty() || !shown.is_empty() || !filter.is_on() {
        lines.push(RankRow::Clocks);
    }
    lines.extend(shown);
    lines
}

/// A line for each rank, or for each host.
fn ordered(job: &LateRanks, order: usize) -> Vec<RankRow> {
    let mut ranks: Vec<usize> = (0..job.ranks.len()).collect();
    match ORDERS[order] {
        "late max" => ranks.sort_by_key(|&i| std::cmp::Reverse(job.ranks[i].latest_ns)),
        "waiting" => ranks.sort_by_key(|&i| std::cmp::Reverse(job.ranks[i].exposed_wait_ns)),
        "host" => {
            ranks.sort_by(|&a, &b| (&job.ranks[a].host, a).cmp(&(&job.ranks[b].host, b)));
            let same = |a: &usize, b: &usize| job.ranks[*a].host == job.ranks[*b].host;
            let hosts = ranks.chunk_by(same);
            return hosts.map(|host| RankRow::Host(host.to_vec())).collect();
        }
        _ => {}
    }
    ranks.into_iter().map(RankRow::Rank).collect()
}

/// How the clocks were aligned, who is not here, and what is not judged.
fn clocks(job: &LateRanks) -> String {
    let mut said = vec![job.job.clocks_line()];
    said.extend(report::absent(&job.job));
    said.extend(report::unjudged(&job.ranks));
    said.join(" · ")
}

fn cells<'a>(job: &'a LateRanks, line: &RankRow, layout: &TableLayout<Means<'a>>) -> Vec<Cell> {
    let means = match line {
        RankRow::Clocks => return vec![Cell::rest(clocks(job), Role::Dim)],
        RankRow::Late(i) => return vec![Cell::rest(&job.job.late[*i].text, Role::Warning)],
        RankRow::Rank(i) => Means::one(&job.ranks[*i]),
        RankRow::Host(of) => {
            let ranks: Vec<&RankReport> = of.iter().map(|&i| &job.ranks[i]).collect();
            let name = match ranks.first().map_or("", |rank| rank.host.as_str()) {
                "" => "host unknown",
                host => host,
            };
            let name = format!("{name} ({})", ranks.len());
            Means { name, ranks }
        }
    };
    let mut cells = layout.cells(&means, |it| (it == "waiting").then_some(Role::Warning));
    cells.pop();
    cells.push(Cell::rest(means.because(layout.room()), Role::Dim));
    cells
}

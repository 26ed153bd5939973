//! The operations in scope, grouped by name: what took the time.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::list::List;
use super::table::TableLayout;
use super::{Place, Request, View};
use crate::report::operations as report;
use crate::report::table::Column;
use crate::tui::draw::label;

use crate::tui::draw::prelude::*;
use crate::tui::state::analyst::Question;
use crate::tui::state::{RowKind, Scope, State};
use activity::feed::Stop;
use activity::units::share;
use activity::{Direction, NameId, Ns, Span, What};
use figures::tables::{self, NameRow};
use trace::{Evicted, LaneId, Trace, describe};

/// OperationsView of one name, as far as they lie in scope.
#[derive(Clone, Debug, PartialEq)]
struct OperationGroup {
    /// Under the kernel's name, the copy's direction, "memset"; of one across an edge of the scope, its bytes in
    /// proportion.
    all: report::Operations,
    /// The whole of a kernel's name.
    full: String,
    role: Role,
    /// Where the longest one is.
    longest: (LaneId, usize, Span),
}

/// What the table can be ordered by.
const ORDERS: [&str; 4] = ["total", "count", "mean", "max"];

/// Rows between two looks at whether to go on.
const STRIDE: usize = 65_536;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OperationKind {
    Kernel(NameId),
    Copy(Direction),
    Memset,
    /// Any other operation, by its kind and its graph.
    Other(&'static str, u32),
}

/// What has been counted of a run that goes on: rows that come later are added to it.
#[derive(Debug, Default)]
struct Counted {
    groups: FxHashMap<OperationKind, OperationGroup>,
    /// The first row of each lane that has not been.
    rows: FxHashMap<LaneId, usize>,
    /// What it is of. Late records, and those let go, move rows.
    of: Option<(u64, Ns, u64, Option<Evicted>, bool)>,
}

/// All groups of `scope`, the ones that took most first; what there is so far when it is stopped.
fn groups(
    trace: &Trace,
    (run, scope): (u64, Span),
    counted: &mut Counted,
    stop: &Stop,
) -> Vec<OperationGroup> {
    let (late, gone) = (trace.late(), trace.evicted());
    let of = Some((run, scope.start, late, gone, trace.is_on_one_clock()));
    let is_whole = trace.extent().is_some_and(|it| scope.hull(it) == scope);
    if counted.of != of || !is_whole {
        *counted = Counted::default();
    }
    counted.of = of.filter(|_| is_whole);
    let groups = &mut counted.groups;
    for (id, lane) in trace.streams() {
        let rows = lane.rows(scope);
        let first = counted.rows.insert(id, rows.end).unwrap_or(0);
        for row in rows.start.max(first)..rows.end {
            if row % STRIDE == 0 && stop.is_stopped() {
                counted.of = None;
                break;
            }
            let activity = trace.activity(id, row);
            let span = activity.span;
            let (kind, bytes) = match activity.what {
                What::Kernel(k) => (OperationKind::Kernel(trace.shape(k.shape).name), 0),
                What::Copy(c) => (OperationKind::Copy(c.direction), c.bytes),
                What::Memset(m) => (OperationKind::Memset, m.bytes),
                what => match describe::operation_kind(&what) {
                    Some(kind) => (OperationKind::Other(kind, what.graph()), 0),
                    None => continue,
                },
            };
            // Among the rows there may be some that ended before the scope.
            if !span.overlaps(scope) && !scope.contains(span.start) {
                continue;
            }
            let new = || OperationGroup::new(trace, &activity.what, (id, row, span));
            let group = groups.entry(kind).or_insert_with(new);
            group.add((id, row, span), span.intersect(scope).len(), bytes);
        }
    }
    let mut groups = groups.clone();
    name_kernels(trace, &mut groups);
    if trace.is_sampled() && !stop.is_stopped() {
        for row in tables::kernels(trace, Some(scope)) {
            if let Some(group) = groups.get_mut(&OperationKind::Kernel(row.id)) {
                group.all.times.shapes = row.shapes;
            }
        }
    }
    let mut groups: Vec<OperationGroup> = groups.into_values().collect();
    let all: Ns = groups.iter().map(|group| group.all.times.total_ns).sum();
    for group in &mut groups {
        let times = &mut group.all.times;
        times.mean_ns = times.total_ns / times.count.max(1) as Ns;
        times.share = share(times.total_ns, all);
    }
    groups
}

impl OperationGroup {
    fn new(trace: &Trace, what: &What, first: (LaneId, usize, Span)) -> Self {
        let times = NameRow {
            name: describe::activity(trace, what),
            min_ns: Ns::MAX,
            ..NameRow::default()
        };
        OperationGroup {
            all: report::Operations { times, bytes: 0.0 },
            full: describe::whole(trace, what),
            role: label::role(trace, what),
            longest: first,
        }
    }

    /// Counts an operation of so many bytes, of which so much lies in scope.
    fn add(&mut self, operation: (LaneId, usize, Span), length: Ns, bytes: u64) {
        let whole = operation.2.len().max(1);
        self.all.bytes += bytes as f64 * (length as f64 / whole as f64).min(1.0);
        let times = &mut self.all.times;
        times.count += 1;
        times.total_ns += length;
        times.min_ns = times.min_ns.min(length);
        if length > times.max_ns {
            times.max_ns = length;
            self.longest = operation;
        }
    }
}

/// Gives kernels the short names that tell them apart.
fn name_kernels(trace: &Trace, groups: &mut FxHashMap<OperationKind, OperationGroup>) {
    let kernel = |kind: &OperationKind| match kind {
        OperationKind::Kernel(name) => Some(*name),
        _ => None,
    };
    let kernels: Vec<NameId> = groups.keys().filter_map(kernel).collect();
    for (&id, name) in kernels.iter().zip(trace.names().short_unique(&kernels)) {
        if let Some(group) = groups.get_mut(&OperationKind::Kernel(id)) {
            group.all.times.name = name;
        }
    }
}

fn sort(groups: &mut [OperationGroup], by: &str) {
    let columns = report::Operations::columns();
    let Some(column) = columns.iter().find(|column| column.heading == by) else {
        return;
    };
    let order = |it: &OperationGroup| (Reverse((column.key)(&it.all)), it.all.times.name.clone());
    groups.sort_by_cached_key(order);
}

/// What operations are called where the screen is about steps, and these are not.
const WHOLE: &str = "operation, whole run";

#[derive(Debug, Default)]
pub(super) struct OperationsView {
    question: Question<Scope, Vec<OperationGroup>>,
    counted: Arc<Mutex<Counted>>,
    /// The answer in order, without what the filter leaves out.
    groups: Vec<OperationGroup>,
    /// As wide as those ask for.
    columns: Vec<Column<report::Operations>>,
    /// The run, the scope and the order that the groups are of.
    of: Option<(u64, Scope, usize, String)>,
}

impl View for OperationsView {
    fn orders(&self) -> &'static [&'static str] {
        &ORDERS
    }

    fn prepare(&mut self, list: &mut List, state: &State, area: Rect) {
        let (run, about) = (&state.model.run, state.scope());
        let scope = state.scope_span().unwrap_or_default();
        let (counted, of) = (Arc::clone(&self.counted), (run.number, scope));
        let is_new = self
            .question
            .ask(&state.model.analyst, run, about, move |trace, stop| {
                let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
                groups(trace, of, &mut counted, stop)
            });
        let filter = list.filter.text.to_owned();
        let of = Some((run.number, about, list.order, filter));
        if is_new || self.of != of {
            self.of = of;
            let found = self.question.answer_to(run, about);
            let all: &[OperationGroup] = found.map_or(&[], Vec::as_slice);
            let is_shown = |g: &&OperationGroup| list.filter.lets([&g.all.times.name, &g.full]);
            self.groups = all.iter().filter(is_shown).cloned().collect();
            list.filter.count(self.groups.len(), all.len());
            sort(&mut self.groups, ORDERS[list.order]);
            self.columns = report::Operations::columns();
            Column::fit(&mut self.columns, self.groups.iter().map(|it| &it.all));
        }
        let is_open = self.question.is_open();
        list.say(
            is_open,
            "no operation has this name",
            "no operation in scope",
        );
        let mut columns = self.columns.clone();
        // Beside a headline of steps, what the start-up did is no part of one.
        if let (Some(name), true) = (columns.first_mut(), state.steps().is_some()) {
            name.heading = WHOLE;
        }
        let layout = TableLayout::new(columns, area.width);
        list.heading = layout.heading(ORDERS[list.order]);
        list.fill(area, self.groups.len(), |i| {
            let it = &self.groups[i];
            layout.cells(&it.all, |column| {
                ["operation", WHOLE].contains(&column).then_some(it.role)
            })
        });
        let group = self.groups.get(list.cursor);
        list.in_full = group.map(|group| group.full.clone());
    }

    /// The longest operation of the line.
    fn choose(&mut self, at: usize, _state: &State) -> Option<Request> {
        let (lane, row, span) = self.groups.get(at)?.longest;
        Some(Request::Place(Place::new(
            Some(RowKind::Stream(lane)),
            Some(row),
            span,
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::{Activity, Batch, Copy, MemoryKind, Place};

    fn copy(start: Ns, end: Ns, bytes: u64) -> Activity {
        Activity {
            span: Span::new(start, end),
            correlation: 0,
            what: What::Copy(Copy {
                place: Place::default(),
                direction: Direction::H2D,
                from: MemoryKind::Pinned,
                to: MemoryKind::Device,
                is_async: true,
                bytes,
                peer: 0,
                graph: 0,
                node: 0,
            }),
        }
    }

    #[test]
    fn only_what_lies_in_scope_counts() {
        let mut trace = Trace::default();
        trace.apply(Batch {
            // The long one makes the lane keep the short one behind it among the rows of the scope.
            items: vec![
                copy(0, 2_000, 8_000),
                copy(100, 200, 500),
                copy(1_500, 1_800, 300),
                copy(4_900, 5_100, 600),
                copy(6_000, 7_000, 900),
            ],
            ..Batch::default()
        });
        let scope = (1, Span::new(1_000, 5_000));
        let found = groups(&trace, scope, &mut Counted::default(), &Stop::default());
        assert_eq!(found.len(), 1);
        let g = &found[0];
        // 1000 of the first, the third whole, half of the fourth.
        let times = &g.all.times;
        assert_eq!((times.count, times.total_ns), (3, 1_000 + 300 + 100));
        assert_eq!((times.min_ns, times.max_ns), (100, 1_000));
        assert_eq!((times.mean_ns, times.share), (1_400 / 3, 1.0));
        assert!((g.all.bytes - (4_000.0 + 300.0 + 300.0)).abs() < 1e-6);
        assert_eq!(g.longest, (0, 0, Span::new(0, 2_000)));
    }

    #[test]
    fn what_comes_is_added_to_what_was_counted_and_late_records_count_all_anew() {
        let mut trace = Trace::default();
        let mut counted = Counted::default();
        let mut add = |items: Vec<Activity>, counted: &mut Counted| {
            trace.apply(Batch {
                items,
                ..Batch::default()
            });
            let scope = (1, trace.extent().expect("copies"));
            let found = groups(&trace, scope, counted, &Stop::default());
            (found[0].all.times.count, found[0].all.times.total_ns)
        };
        let first = (0..10).map(|n| copy(n * 10, n * 10 + 4, 1)).collect();
        assert_eq!(add(first, &mut counted), (10, 40));
        // Only a row that is not counted again keeps this.
        let groups = counted.groups.values_mut();
        groups.for_each(|group| group.all.times.count += 1_000);
        assert_eq!(add(vec![copy(200, 203, 1)], &mut counted), (1_011, 43));
        assert_eq!(add(vec![copy(102, 107, 1)], &mut counted), (12, 48));
    }
}

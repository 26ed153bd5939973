//! The operations in scope, grouped by name: what took the time.

use std::cmp::Reverse;

use ratatui::layout::Rect;
use rustc_hash::FxHashMap;

use super::list::{Cell, List};
use super::{Place, Request, View};
use crate::tui::action::Action;
use crate::tui::draw::label;
use crate::tui::state::analyst::{Question, Weight};
use crate::tui::state::rows::RowKind;
use crate::tui::state::{Scope, State};
use crate::tui::theme::Role;
use activity::feed::Stop;
use activity::{Direction, NameId, Ns, Span, What, units};
use trace::{LaneId, LaneKind, Trace, describe};

/// Operations of one name, as far as they lie in scope.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    /// The kernel's name, the copy's direction, "memset".
    name: String,
    /// The whole of a kernel's name.
    full: String,
    role: Role,
    count: u64,
    /// Sum of their times.
    total: Ns,
    least: Ns,
    most: Ns,
    /// Bytes moved, for copies and memsets; of one across an edge of the scope, in proportion.
    bytes: f64,
    /// Where the longest one is.
    longest: (LaneId, usize, Span),
}

/// What the table can be ordered by.
const ORDERS: [&str; 4] = ["total", "count", "average", "longest"];

/// Rows between two looks at whether to go on.
const STRIDE: usize = 65_536;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Kernel(NameId),
    Copy(Direction),
    Memset,
    /// Any other operation, by its kind and its graph.
    Other(&'static str, u32),
}

/// All groups of `scope`, the ones that took most first; what there is so far when it is stopped.
fn groups(trace: &Trace, scope: Span, stop: &Stop) -> Vec<Group> {
    let mut groups: FxHashMap<Kind, Group> = FxHashMap::default();
    for (id, lane) in trace.lanes().iter().enumerate() {
        if !matches!(lane.key().kind, LaneKind::Stream { .. }) {
            continue;
        }
        for row in lane.rows(scope) {
            if row % STRIDE == 0 && stop.is_stopped() {
                break;
            }
            let activity = trace.activity(id, row);
            let span = activity.span;
            let (kind, bytes) = match activity.what {
                What::Kernel(k) => (Kind::Kernel(trace.shape(k.shape).name), 0),
                What::Copy(c) => (Kind::Copy(c.direction), c.bytes),
                What::Memset(m) => (Kind::Memset, m.bytes),
                what => match describe::operation_kind(&what) {
                    Some(kind) => (Kind::Other(kind, what.graph()), 0),
                    None => continue,
                },
            };
            // Among the rows there may be some that ended before the scope.
            if !span.overlaps(scope) && !scope.contains(span.start) {
                continue;
            }
            let length = span.intersect(scope).len();
            let group = groups.entry(kind).or_insert_with(|| Group {
                name: describe::activity(trace, &activity.what),
                full: describe::whole(trace, &activity.what),
                role: label::role(trace, &activity.what),
                count: 0,
                total: 0,
                least: Ns::MAX,
                most: 0,
                bytes: 0.0,
                longest: (id, row, span),
            });
            group.count += 1;
            group.total += length;
            group.bytes += bytes as f64 * (length as f64 / span.len().max(1) as f64).min(1.0);
            group.least = group.least.min(length);
            if length > group.most {
                group.most = length;
                group.longest = (id, row, span);
            }
        }
    }
    let kernels: Vec<NameId> = groups
        .keys()
        .filter_map(|kind| match kind {
            Kind::Kernel(name) => Some(*name),
            _ => None,
        })
        .collect();
    for (&id, name) in kernels.iter().zip(trace.names().short_unique(&kernels)) {
        if let Some(group) = groups.get_mut(&Kind::Kernel(id)) {
            group.name = name;
        }
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    sort(&mut groups, 0);
    groups
}

fn sort(groups: &mut [Group], order: usize) {
    groups.sort_by(|a, b| {
        let key = |g: &Group| match order {
            0 => g.total,
            1 => g.count as Ns,
            2 => g.total / g.count.max(1) as Ns,
            _ => g.most,
        };
        (Reverse(key(a)), &a.name).cmp(&(Reverse(key(b)), &b.name))
    });
}

/// The view.
#[derive(Debug)]
pub(super) struct Operations {
    question: Question<Scope, Vec<Group>>,
    /// The answer in order, without what the filter leaves out.
    groups: Vec<Group>,
    /// The time of all groups, also of those that are left out.
    total: Ns,
    order: usize,
    /// The run, the scope and the order that the groups are of.
    of: Option<(u64, Scope, usize, String)>,
    list: List,
}

impl Default for Operations {
    fn default() -> Self {
        Operations {
            question: Question::new("operations", Weight::Heavy),
            groups: Vec::new(),
            total: 0,
            order: 0,
            of: None,
            list: List::default(),
        }
    }
}

impl View for Operations {
    fn offers(&self, _action: Action) -> bool {
        true
    }

    fn prepare(&mut self, state: &State, area: Rect, is_on_screen: bool) {
        if !is_on_screen {
            return;
        }
        let (run, about) = (&state.run, state.camera.scope);
        let scope = state.camera.scope_span(run).unwrap_or_default();
        let is_new = self
            .question
            .ask(&state.analyst, run, about, move |trace, stop| {
                groups(trace, scope, stop)
            });
        let filter = self.list.filter.text().to_owned();
        let of = Some((run.number, about, self.order, filter));
        if is_new || self.of != of {
            self.of = of;
            let found = self.question.about(run, about);
            let all: &[Group] = found.map_or(&[], Vec::as_slice);
            let is_shown = |g: &&Group| self.list.filter.lets([&g.name, &g.full]);
            self.groups = all.iter().filter(is_shown).cloned().collect();
            self.total = all.iter().map(|g| g.total).sum();
            self.list.filter.count(self.groups.len(), all.len());
            sort(&mut self.groups, self.order);
        }
        self.list.empty = if self.question.is_open() {
            "computing …"
        } else if self.list.filter.is_on() {
            "no operation has this name"
        } else {
            "no operation in scope"
        };
        self.fill(area);
        let group = self.groups.get(self.list.cursor);
        self.list.in_full = group.map(|group| group.full.clone());
    }

    fn list(&self) -> Option<&List> {
        Some(&self.list)
    }

    fn list_mut(&mut self) -> Option<&mut List> {
        Some(&mut self.list)
    }

    /// The longest operation of the line.
    fn choose(&mut self, _state: &State) -> Option<Request> {
        let (lane, row, span) = self.groups.get(self.list.cursor)?.longest;
        Some(Request::Place(Place {
            row: Some(RowKind::Stream(lane)),
            record: Some(row),
            span,
        }))
    }

    fn act(&mut self, action: Action, _state: &mut State) {
        if action == Action::Sort {
            self.order = (self.order + 1) % ORDERS.len();
        }
    }
}

impl Operations {
    fn fill(&mut self, area: Rect) {
        let (text, dim) = (Role::Text, Role::Dim);
        let is_wide = area.width >= 100;
        let name = area
            .width
            .saturating_sub(if is_wide { 87 } else { 58 })
            .max(10);
        let head = |column: &str, columns: u16| {
            if ORDERS[self.order] == column {
                Cell::right(column, columns, Role::Accent).bold()
            } else {
                Cell::right(column, columns, dim)
            }
        };
        let mut heading = vec![
            Cell::left("operation", name, dim),
            head("count", 9),
            head("total", 9),
            Cell::right("share", 6, dim),
            head("average", 9),
        ];
        if is_wide {
            heading.push(Cell::right("shortest", 9, dim));
        }
        heading.push(head("longest", 9));
        if is_wide {
            heading.push(Cell::right("moved", 10, dim));
            heading.push(Cell::right("GB/s", 7, dim));
        }
        self.list.heading = heading;
        let all = self.total;
        self.list.fill(area, self.groups.len(), |i| {
            let g = &self.groups[i];
            let average = g.total / g.count.max(1) as Ns;
            let mut cells = vec![
                Cell::left(&g.name, name, g.role),
                Cell::right(units::count(g.count), 9, text),
                Cell::right(units::duration(g.total), 9, text),
                Cell::right(units::percent(g.total as f64 / all.max(1) as f64), 6, dim),
                Cell::right(units::duration(average), 9, text),
            ];
            if is_wide {
                cells.push(Cell::right(units::duration(g.least), 9, dim));
            }
            cells.push(Cell::right(units::duration(g.most), 9, text));
            if is_wide {
                let bytes = g.bytes.round() as u64;
                let (moved, rate) = match bytes {
                    0 => (String::new(), None),
                    bytes => (units::bytes(bytes), units::gb_per_s(bytes, g.total)),
                };
                cells.push(Cell::right(moved, 10, dim));
                cells.push(Cell::right(
                    rate.map_or_else(String::new, units::rate),
                    7,
                    text,
                ));
            }
            cells
        });
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
        let found = groups(&trace, Span::new(1_000, 5_000), &Stop::default());
        assert_eq!(found.len(), 1);
        let g = &found[0];
        // 1000 of the first, the third whole, half of the fourth.
        assert_eq!((g.count, g.total), (3, 1_000 + 300 + 100));
        assert_eq!((g.least, g.most), (100, 1_000));
        assert!((g.bytes - (4_000.0 + 300.0 + 300.0)).abs() < 1e-6);
        assert_eq!(g.longest, (0, 0, Span::new(0, 2_000)));
    }
}

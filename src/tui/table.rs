//! The operations in scope, grouped by name: what took the time.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::app::App;
use super::draw::label;
use super::theme::Role;
use crate::activity::{Direction, NameId, Ns, What};
use crate::trace::{LaneId, LaneKind, describe};

/// Operations of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The kernel's name, the copy's direction, "memset".
    pub name: String,
    /// Its colour.
    pub role: Role,
    /// How many.
    pub count: u64,
    /// Sum of their durations.
    pub total: Ns,
    /// The shortest.
    pub least: Ns,
    /// The longest duration.
    pub most: Ns,
    /// Bytes moved, for copies and memsets.
    pub bytes: u64,
    /// Where the longest one is.
    pub longest: (LaneId, usize),
}

/// What the table can be ordered by.
pub const ORDERS: [&str; 4] = ["total", "count", "average", "longest"];

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Kernel(NameId),
    Copy(Direction),
    Memset,
    /// Any other operation, by its kind and its graph.
    Other(&'static str, u32),
}

/// Operations that a table looks at at most: beyond that a frame would take too long, and the table
/// says that it is over a part.
pub const LIMIT: usize = 2_000_000;

/// The table of the operations in scope, ordered by the app's choice, largest first.
#[must_use]
pub fn table(app: &App) -> Vec<Group> {
    let trace = &app.trace;
    let scope = app.scope_span().unwrap_or_default();
    let mut groups: FxHashMap<Kind, Group> = FxHashMap::default();
    let mut left = LIMIT;
    for (id, lane) in trace.lanes().iter().enumerate() {
        if !matches!(lane.key().kind, LaneKind::Stream { .. }) {
            continue;
        }
        for row in lane.rows(scope).take(left) {
            left -= 1;
            let activity = trace.activity(id, row);
            let (kind, bytes) = match activity.what {
                What::Kernel(k) => (Kind::Kernel(trace.shape(k.shape).name), 0),
                What::Copy(c) => (Kind::Copy(c.direction), c.bytes),
                What::Memset(m) => (Kind::Memset, m.bytes),
                what => match describe::operation_kind(&what) {
                    Some(kind) => (Kind::Other(kind, what.graph()), 0),
                    None => continue,
                },
            };
            let length = activity.span.len();
            let group = groups.entry(kind).or_insert_with(|| Group {
                name: describe::activity(trace, &activity.what),
                role: label::role(trace, &activity.what),
                count: 0,
                total: 0,
                least: Ns::MAX,
                most: 0,
                bytes: 0,
                longest: (id, row),
            });
            group.count += 1;
            group.total += length;
            group.bytes += bytes;
            group.least = group.least.min(length);
            if length > group.most {
                group.most = length;
                group.longest = (id, row);
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
    let order = app.sort % ORDERS.len();
    groups.sort_by(|a, b| {
        let key = |g: &Group| match order {
            0 => g.total,
            1 => g.count as Ns,
            2 => g.total / g.count.max(1) as Ns,
            _ => g.most,
        };
        (Reverse(key(a)), &a.name).cmp(&(Reverse(key(b)), &b.name))
    });
    groups
}

//! Operations by name whose number or time is not the same on both sides.

use rustc_hash::FxHashMap;

use super::OperationChange;
use crate::report::table::Table;
use activity::Ns;
use activity::units::{count, duration};
use trace::short;

/// The differences, the greatest change of time first.
pub(super) fn between(
    a: &FxHashMap<String, (u64, Ns)>,
    b: &FxHashMap<String, (u64, Ns)>,
) -> Vec<OperationChange> {
    let only_b = b.keys().filter(|name| !a.contains_key(*name));
    let of = |side: &FxHashMap<String, (u64, Ns)>, name: &String| {
        side.get(name).copied().unwrap_or_default()
    };
    let mut changes: Vec<OperationChange> = a
        .keys()
        .chain(only_b)
        .map(|name| (name, of(a, name), of(b, name)))
        .filter(|(_, a, b)| a != b)
        .map(|(name, a, b)| OperationChange {
            name: name.clone(),
            count_a: a.0,
            count_b: b.0,
            total_a_ns: a.1,
            total_b_ns: b.1,
            change_ns: b.1 - a.1,
        })
        .collect();
    changes.sort_by(|x, y| (y.change_ns.abs(), &x.name).cmp(&(x.change_ns.abs(), &y.name)));
    changes
}

/// At most `rows` of them.
pub(super) fn table(changes: &[OperationChange], rows: usize) -> Table {
    let mut table = Table::new(["", "count A", "count B", "time A", "time B", "change"]);
    let names: Vec<&str> = changes.iter().map(|o| o.name.as_str()).collect();
    let shown = short::unique(&names);
    for (o, name) in changes.iter().zip(shown).take(rows) {
        table.row([
            name,
            count(o.count_a),
            count(o.count_b),
            duration(o.total_a_ns),
            duration(o.total_b_ns),
            signed(o.change_ns),
        ]);
    }
    table
}

/// "+1.20 ms", "-30 ns".
pub(super) fn signed(ns: Ns) -> String {
    if ns > 0 {
        format!("+{}", duration(ns))
    } else {
        duration(ns)
    }
}

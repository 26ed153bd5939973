//! Operations by name whose number or time is not the same on both sides.

use rustc_hash::FxHashMap;

use super::OperationChange;
use crate::report::page::Page;
use crate::report::table::Column;
use activity::Ns;
use activity::units::{count, duration};
use trace::short;

/// The differences, the greatest change of time first.
pub(super) fn find(
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

/// A table of them.
#[rustfmt::skip]
pub(super) fn section(page: &mut Page, changes: &[OperationChange]) {
    let column = Column::<(&OperationChange, String)>::new;
    let columns = [
        column("", 0, |(_, name)| name.clone()),
        column("count A", 0, |(it, _)| count(it.count_a)),
        column("count B", 0, |(it, _)| count(it.count_b)),
        column("time A", 0, |(it, _)| duration(it.total_a_ns)),
        column("time B", 0, |(it, _)| duration(it.total_b_ns)),
        column("change", 0, |(it, _)| signed(it.change_ns)),
    ];
    let names: Vec<&str> = changes.iter().map(|o| o.name.as_str()).collect();
    page.rows(&columns, changes.iter().zip(short::unique(&names)));
}

/// "+1.20 ms", "-30 ns".
pub(super) fn signed(ns: Ns) -> String {
    if ns > 0 {
        format!("+{}", duration(ns))
    } else {
        duration(ns)
    }
}

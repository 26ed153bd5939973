//! Why a device was idle, as a table.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::page::Page;
use super::table::Table;
use activity::Ns;
use activity::text::plural;
use activity::units::{count, duration, percent, share};
use causes::IdleCause;
use causes::stacks::LineShare;
use figures::DeviceFigures;

/// The source line of rows that are shown as one.
enum Lines {
    /// No line is told by so many samples.
    Unknown(u64),
    One(LineShare),
    /// Rows differ: none speaks for all.
    Several,
}

impl Lines {
    fn of(piece: &IdleCause) -> Lines {
        match &piece.line {
            Some(line) => Lines::One(line.clone()),
            None => Lines::Unknown(piece.seen.all),
        }
    }

    fn add(&mut self, piece: &IdleCause) {
        *self = match (std::mem::replace(self, Lines::Several), &piece.line) {
            (Lines::One(known), Some(it)) if known.at() == it.at() => Lines::One(LineShare {
                samples: known.samples + it.samples,
                of: known.of + it.of,
                ..known
            }),
            (Lines::One(known), None) => Lines::One(LineShare {
                of: known.of + piece.seen.all,
                ..known
            }),
            (Lines::Unknown(samples), Some(it)) => Lines::One(LineShare {
                of: it.of + samples,
                ..it.clone()
            }),
            (Lines::Unknown(samples), None) => Lines::Unknown(samples + piece.seen.all),
            (Lines::One(_) | Lines::Several, _) => Lines::Several,
        };
    }

    fn words(&self) -> String {
        match self {
            Lines::One(it) if it.is_telling() => format!(
                ", at {} ({} of {})",
                it.place,
                count(it.samples),
                plural(it.of, "sample")
            ),
            _ => String::new(),
        }
    }
}

/// Idle time for one reason.
struct IdleRow {
    what: String,
    count: u64,
    total: Ns,
    lines: Lines,
}

/// The reasons, each once.
fn reasons(f: &DeviceFigures) -> Vec<IdleRow> {
    let mut rows: Vec<IdleRow> = Vec::new();
    // A row each for thousands of culprits is no reason to look through all of them again and again.
    let mut row_of = FxHashMap::<String, usize>::default();
    for piece in &f.idle {
        let mut what = piece.words();
        if let Some(culprit) = &piece.culprit {
            what.push_str(": ");
            what.push_str(culprit);
        }
        if piece.certainty == "likely" {
            what.push_str(", likely");
        }
        match row_of.entry(what.clone()) {
            Entry::Occupied(at) => {
                let row = &mut rows[*at.get()];
                row.count += piece.count;
                row.total += piece.total_ns;
                row.lines.add(piece);
            }
            Entry::Vacant(free) => {
                free.insert(rows.len());
                rows.push(IdleRow {
                    what,
                    count: piece.count,
                    total: piece.total_ns,
                    lines: Lines::of(piece),
                });
            }
        }
    }
    rows
}

/// The syncs that idle time comes of, with how much of it.
fn roots(f: &DeviceFigures) -> Vec<(&str, Ns)> {
    let mut roots: Vec<(&str, Ns)> = Vec::new();
    let mut root_of = FxHashMap::<&str, usize>::default();
    for piece in &f.idle {
        let Some(root) = piece.root.as_deref() else {
            continue;
        };
        let at = *root_of.entry(root).or_insert(roots.len());
        match roots.get_mut(at) {
            Some(sum) => sum.1 += piece.total_ns,
            None => roots.push((root, piece.total_ns)),
        }
    }
    roots
}

/// Why the device was idle: what is a hundredth of it or more, whatever came before it; and what came before.
pub(super) fn table(page: &mut Page, f: &DeviceFigures) {
    let of_idle = |ns: Ns| share(ns, f.idle_ns);
    let mut rows = reasons(f);
    rows.retain(|row| of_idle(row.total) >= 0.01);
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.total));
    let mut table = Table::new(["idle because", "count", "total", "share"]);
    for row in rows.into_iter().take(page.rows) {
        table.row([
            row.what + &row.lines.words(),
            count(row.count),
            duration(row.total),
            percent(of_idle(row.total)),
        ]);
    }
    page.table(&table);
    let mut roots = roots(f);
    roots.retain(|root| of_idle(root.1) >= 0.1);
    roots.sort_by_key(|root| std::cmp::Reverse(root.1));
    let roots: Vec<String> = roots
        .iter()
        .take(3)
        .map(|(root, ns)| format!("{root} {}", percent(of_idle(*ns))))
        .collect();
    if !roots.is_empty() {
        let line = format!(
            "a sync kept work from being queued for this part of the idle time: {}",
            roots.join(", ")
        );
        page.wrapped(&line);
    }
}

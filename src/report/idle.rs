//! Why a device was idle, as a table.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::page::Page;

use activity::Ns;
use activity::text::plural;
use activity::units::{count, duration, percent, share};
use causes::stacks::LineShare;
use causes::{IdleCause, sum_by};
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

/// Why the device was idle: what is a hundredth of it or more, whatever came before it; and what came before.
pub(super) fn table(page: &mut Page, f: &DeviceFigures) {
    let of_idle = |ns: Ns| share(ns, f.idle_ns);
    let mut rows = reasons(f);
    rows.retain(|row| of_idle(row.total) >= 0.01);
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.total));
    let rows = rows.into_iter().take(page.rows).map(|row| {
        let (time, share) = (duration(row.total), percent(of_idle(row.total)));
        [row.what + &row.lines.words(), count(row.count), time, share]
    });
    page.cells(["idle because", "count", "total", "share"], rows);
    let roots = f
        .idle
        .iter()
        .filter_map(|it| Some((it.root.as_deref()?, it.total_ns)));
    let mut roots = sum_by(roots);
    roots.retain(|root| of_idle(root.1) >= 0.1);

    let roots = roots.iter().take(3);
    let roots = roots.map(|(root, ns)| format!("{root} {}", percent(of_idle(*ns))));
    let roots = roots.collect::<Vec<_>>().join(", ");
    if !roots.is_empty() {
        page.wrapped(&format!(
            "a sync kept work from being queued for this part of the idle time: {roots}"
        ));
    }
}

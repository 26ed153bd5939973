//! Takes rows out of the table for the whole process, and says which of them decided.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::ROWS;

/// The row that is out; no row has the greatest number.
static OUT: AtomicUsize = AtomicUsize::new(usize::MAX);

static DECIDED: [AtomicBool; ROWS.len()] = [const { AtomicBool::new(false) }; ROWS.len()];

/// Takes a row out, and puts back the one that was.
pub fn take_out(row: Option<usize>) {
    OUT.store(row.unwrap_or(usize::MAX), Relaxed);
}

/// The rows that decided something since the last time.
pub fn decided() -> Vec<usize> {
    let rows = DECIDED.iter().enumerate();
    let rows = rows.filter(|(_, decided)| decided.swap(false, Relaxed));
    rows.map(|(row, _)| row).collect()
}

/// Whether a row is out, which has just been asked, and whose answer rests on its being there.
pub(crate) fn is_out(row: usize, decides: bool) -> bool {
    if decides {
        DECIDED[row].store(true, Relaxed);
    }
    OUT.load(Relaxed) == row
}

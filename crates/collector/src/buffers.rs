//! Activity buffers, and the two callbacks in which CUPTI takes and returns them.
//!
//! ```text
//!            requested()                        completed()
//!  free ───────────────────► CUPTI fills ─────────────────────► done
//!   ▲                                                             │
//!   └────────── zeroed by ◄── decode thread ◄─────────────────────┘
//! ```
//!
//! `requested` runs inside the program's own launches, so it does nothing but take a pointer out of a
//! lock-free queue; `completed` runs on CUPTI's worker or on our flush thread, and does nothing but put one
//! in. Both queues have room for every buffer that can ever exist, so putting one in cannot fail and never waits.
//!
//! `pool` is what the threads do with buffers, `memory` what a buffer is, `sync` what passes it from one thread to the
//! next. `tests::model` compiles the very same `pool` over the memory and the passing of a model checker.

mod memory;
mod pool;
mod sync;
#[cfg(test)]
mod tests;

use std::ffi::c_void;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use memory::Buffer;
pub(crate) use pool::{Completed, Pool};

use crate::options::{BUFFER, FEW, SMALL};

static POOL: OnceLock<Pool> = OnceLock::new();

/// Buffers handed out since the last flush.
static RECENT: AtomicUsize = AtomicUsize::new(0);

/// Counts buffers anew: a flush begins.
pub(crate) fn note_flush() {
    RECENT.store(0, Ordering::Relaxed);
}

pub(crate) fn the_pool() -> Option<&'static Pool> {
    POOL.get()
}

/// Makes the pool of this process, never freed. One that is there from a collector before is used again: CUPTI may still hold some
/// of its buffers. `None` when there is no memory.
pub(crate) fn install(buffers: usize, most: usize, may_decline: bool) -> Option<&'static Pool> {
    if let Some(pool) = the_pool() {
        // What came too late for the recording before is nothing of the next.
        while let Some(old) = pool.done.take() {
            pool.consume(&old, |_| {});
        }
        return Some(pool);
    }
    POOL.set(Pool::new(most.max(buffers), may_decline)?).ok()?;
    let pool = the_pool()?;
    pool.grow(buffers);
    Some(pool)
}

/// CUPTI asks for an empty buffer.
pub(crate) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
) {
    let given = catch_unwind(|| the_pool()?.request()).unwrap_or(None);
    // SAFETY: CUPTI passes three valid places.
    unsafe {
        *max_records = 0;
        match given {
            Some(taken) => {
                *buffer = taken.address();
                *size = match RECENT.fetch_add(1, Ordering::Relaxed) {
                    0..FEW => SMALL,
                    _ => BUFFER,
                };
            }
            None => {
                *buffer = std::ptr::null_mut();
                *size = 0;
            }
        }
    }
}

/// CUPTI gives a buffer back.
pub(crate) unsafe extern "C" fn completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    let _ = catch_unwind(|| {
        if let Some(pool) = the_pool()
            && !buffer.is_null()
        {
            pool.complete(Buffer::at(buffer), valid);
        }
    });
}

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

use std::alloc::{Layout, alloc_zeroed};
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::options::BUFFER;

/// A buffer of [`BUFFER`] bytes, with a page before it that is ours ([`Page`]). Never freed: CUPTI may hold on to
/// one for the rest of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer(*mut u8);

// SAFETY: whoever holds a Buffer owns its memory; the queues hand it from one thread to the next.
unsafe impl Send for Buffer {}
// SAFETY: a shared Buffer is only compared; its memory is reached by whoever took it out of a queue.
unsafe impl Sync for Buffer {}

/// The page before a buffer.
const PAGE: usize = 4096;

/// What is noted about a buffer, in front of it: found from its address without a search.
#[derive(Debug)]
struct Page {
    /// The flush after which CUPTI took it (counted from 1); 0 while CUPTI does not hold it.
    taken: AtomicU64,
}

impl Buffer {
    fn page(&self) -> &'static Page {
        // SAFETY: every buffer of ours has its page before it, made with it and never freed; zeros are a valid Page.
        unsafe { &*self.0.sub(PAGE).cast::<Page>() }
    }

    /// Whether CUPTI has begun to write into it: a record begins with its kind, which is never 0.
    fn is_begun(&self) -> bool {
        // SAFETY: the buffer is never freed. CUPTI may be writing this very number: either value will do.
        unsafe { self.0.cast::<u32>().read_volatile() != 0 }
    }
}

/// A buffer with records.
#[derive(Debug)]
pub(crate) struct Completed {
    buffer: Buffer,
    valid: usize,
}

/// What the callbacks and the threads share. There is one for the whole process, never freed.
#[derive(Debug)]
pub(crate) struct Pool {
    free: (Sender<Buffer>, Receiver<Buffer>),
    done: (Sender<Completed>, Receiver<Completed>),
    made: AtomicUsize,
    /// All of them, for our threads to look through. Locked when one is made, and by them.
    all: Mutex<Vec<Buffer>>,
    most: usize,
    /// Flushes so far, from 1.
    flushes: AtomicU64,
    /// Buffers ever handed out.
    requested: AtomicU64,
    /// Requests that found no buffer.
    declined: AtomicU64,
    /// Bytes of records that could not be kept.
    discarded: AtomicU64,
    /// Given out where CUPTI does not bear a refusal; what is written to it is thrown away.
    discard: Buffer,
    may_decline: bool,
    /// No more buffers are given out: this is a forked child.
    closed: AtomicBool,
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

pub(crate) fn the_pool() -> Option<&'static Pool> {
    // SAFETY: null or a leaked Pool.
    unsafe { POOL.load(Ordering::Acquire).as_ref() }
}

impl Pool {
    /// Makes the pool of this process; `None` when there is one already.
    pub(crate) fn install(buffers: usize, most: usize, may_decline: bool) -> Option<&'static Pool> {
        let most = most.max(buffers).max(1);
        let pool = Box::new(Pool {
            free: bounded(most),
            done: bounded(most),
            made: AtomicUsize::new(0),
            all: Mutex::new(Vec::with_capacity(most)),
            most,
            flushes: AtomicU64::new(1),
            requested: AtomicU64::new(0),
            declined: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            discard: allocate()?,
            may_decline,
            closed: AtomicBool::new(false),
        });
        let pool = Box::into_raw(pool);
        let installed = POOL.compare_exchange(
            std::ptr::null_mut(),
            pool,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        // SAFETY: `pool` came from a Box a moment ago.
        let pool = unsafe { &*pool };
        if installed.is_err() {
            return None;
        }
        pool.grow(buffers);
        Some(pool)
    }

    /// Makes `count` more buffers, as far as allowed, and faults them in: a page fault inside a launch would
    /// show on the timeline.
    fn grow(&self, count: usize) {
        for _ in 0..count {
            let Some(buffer) = self.make() else { return };
            for page in (0..BUFFER).step_by(4096) {
                // SAFETY: inside the buffer, which nobody else has.
                unsafe { buffer.0.add(page).write_volatile(0) };
            }
            let _ = self.free.0.try_send(buffer);
        }
    }

    /// Keeps a stock of free buffers, so that `requested` need not make one. Called by the flush thread.
    pub(crate) fn top_up(&self) {
        const STOCK: usize = 8;
        let free = self.free.1.len();
        if free < STOCK {
            self.grow(2 * STOCK - free);
        }
    }

    fn make(&self) -> Option<Buffer> {
        self.made
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |made| {
                (made < self.most).then_some(made + 1)
            })
            .ok()?;
        let buffer = allocate()?;
        if let Ok(mut all) = self.all.lock() {
            all.push(buffer);
        }
        Some(buffer)
    }

    /// A buffer for CUPTI; `None` when there is none left.
    fn take(&self) -> Option<Buffer> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        self.free.1.try_recv().ok().or_else(|| self.make())
    }

    /// Buffers with records, for the decode thread.
    pub(crate) fn done(&self) -> &Receiver<Completed> {
        &self.done.1
    }

    /// Lets `read` see the records of a buffer, then makes the buffer available again.
    pub(crate) fn consume(&self, completed: &Completed, read: impl FnOnce(&[u8])) {
        let ours = self
            .all
            .lock()
            .is_ok_and(|all| all.contains(&completed.buffer));
        if !ours {
            // Left over from a tool that registered before us: its memory is not ours to read or to clear.
            self.discarded
                .fetch_add(completed.valid as u64, Ordering::Relaxed);
            return;
        }
        let length = completed.valid.min(BUFFER);
        // SAFETY: CUPTI gave the buffer back, so it is ours alone.
        let bytes = unsafe { std::slice::from_raw_parts_mut(completed.buffer.0, length) };
        read(bytes);
        // CUPTI was told that buffers come zeroed: else it would do this in the program's own thread.
        bytes.fill(0);
        completed.buffer.page().taken.store(0, Ordering::Relaxed);
        let _ = self.free.0.try_send(completed.buffer);
    }

    /// Whether CUPTI has ever asked for a buffer. A flush before that has nothing to flush.
    pub(crate) fn was_used(&self) -> bool {
        self.requested.load(Ordering::Relaxed) > 0
    }

    /// Counts a flush that is about to begin.
    pub(crate) fn begin_flush(&self) -> u64 {
        self.flushes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The oldest flush after which CUPTI took a buffer that it has written to and still holds: with a flush behind it,
    /// such a buffer is withheld because something in it is unfinished. (CUPTI says nothing about what runs.)
    pub(crate) fn oldest_withheld(&self) -> Option<u64> {
        let all = self.all.lock().ok()?;
        all.iter()
            .filter(|buffer| buffer.is_begun())
            .map(|buffer| buffer.page().taken.load(Ordering::Relaxed))
            .filter(|flush| *flush != 0)
            .min()
    }

    /// Buffers with records that have not been read: CUPTI holds them, or they wait to be read. (An empty one it may keep
    /// for good.)
    pub(crate) fn unread(&self) -> usize {
        self.all.lock().map_or(0, |all| {
            all.iter()
                .filter(|buffer| {
                    buffer.page().taken.load(Ordering::Relaxed) != 0 && buffer.is_begun()
                })
                .count()
        })
    }

    /// Requests that found no buffer since the last call.
    pub(crate) fn take_declined(&self) -> u64 {
        self.declined.swap(0, Ordering::Relaxed)
    }

    /// Bytes of records that could not be kept since the last call.
    pub(crate) fn take_discarded(&self) -> u64 {
        self.discarded.swap(0, Ordering::Relaxed)
    }

    /// Gives out no more buffers. Async-signal-safe: called in forked children.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

fn allocate() -> Option<Buffer> {
    let layout = Layout::from_size_align(PAGE + BUFFER, PAGE).ok()?;
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) };
    // SAFETY: inside the allocation.
    (!memory.is_null()).then(|| Buffer(unsafe { memory.add(PAGE) }))
}

/// CUPTI asks for an empty buffer.
pub(crate) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
) {
    let given = catch_unwind(|| {
        let pool = the_pool()?;
        match pool.take() {
            Some(taken) => {
                pool.requested.fetch_add(1, Ordering::Relaxed);
                let flush = pool.flushes.load(Ordering::Relaxed);
                taken.page().taken.store(flush, Ordering::Relaxed);
                Some(taken)
            }
            None => {
                pool.declined.fetch_add(1, Ordering::Relaxed);
                (!pool.may_decline).then_some(pool.discard)
            }
        }
    })
    .unwrap_or(None);
    // SAFETY: CUPTI passes three valid places.
    unsafe {
        *max_records = 0;
        match given {
            Some(Buffer(memory)) => {
                *buffer = memory;
                *size = BUFFER;
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
        let Some(pool) = the_pool() else { return };
        let buffer = Buffer(buffer);
        if buffer.0.is_null() {
            return;
        }
        if buffer == pool.discard {
            pool.discarded.fetch_add(valid as u64, Ordering::Relaxed);
            return;
        }
        if pool.done.0.try_send(Completed { buffer, valid }).is_err() {
            // Cannot happen with buffers of ours, of which there are no more than the queue has room for.
            pool.discarded.fetch_add(valid as u64, Ordering::Relaxed);
        }
    });
}

#[cfg(test)]
mod tests;

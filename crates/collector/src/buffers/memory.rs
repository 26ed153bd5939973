//! What a buffer is: memory of its own that is never freed, because CUPTI may hold on to it for the rest of the process.

use std::alloc::{Layout, alloc_zeroed};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::options::BUFFER;

/// A buffer of [`BUFFER`] bytes, with a page before it that is ours ([`Page`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer(*mut u8);

// SAFETY: whoever holds a Buffer owns its memory; the queues hand it from one thread to the next.
unsafe impl Send for Buffer {}
// SAFETY: a shared Buffer is only compared, and asked for what is noted about it. Its memory is reached by whoever took it
// out of a queue.
unsafe impl Sync for Buffer {}

/// The page before a buffer.
const PAGE: usize = 4096;

/// What is noted about a buffer, in front of it: found from its address without a search.
#[derive(Debug)]
struct Page {
    taken: AtomicU64,
}

impl Buffer {
    /// A new one, empty. `None` when there is no memory.
    pub(super) fn allocate() -> Option<Buffer> {
        let layout = Layout::from_size_align(PAGE + BUFFER, PAGE).ok()?;
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        // SAFETY: inside the allocation.
        (!memory.is_null()).then(|| Buffer(unsafe { memory.add(PAGE) }))
    }

    /// What CUPTI calls a buffer: one of ours, or of a tool before us. Nothing but its address may be asked for until it is
    /// known to be ours.
    pub(super) fn at(address: *mut u8) -> Buffer {
        Buffer(address)
    }

    pub(super) fn address(self) -> *mut u8 {
        self.0
    }

    /// Touches every page of a new one: a page fault inside a launch would show on the timeline.
    pub(super) fn fault_in(self) {
        for page in (0..BUFFER).step_by(4096) {
            // SAFETY: inside the buffer, which nobody else has.
            unsafe { self.0.add(page).write_volatile(0) };
        }
    }

    fn page(&self) -> &'static Page {
        // SAFETY: every buffer of ours has its page before it, made with it and never freed; zeros are a valid Page.
        unsafe { &*self.0.sub(PAGE).cast::<Page>() }
    }

    /// The flush after which CUPTI took it (counted from 1); 0 while CUPTI does not hold it and nobody has to read it.
    pub(super) fn taken(&self) -> u64 {
        self.page().taken.load(Ordering::Relaxed)
    }

    pub(super) fn set_taken(&self, flush: u64) {
        self.page().taken.store(flush, Ordering::Relaxed);
    }

    /// Whether CUPTI has begun to write into it: a record begins with its kind, which is never 0.
    pub(super) fn is_begun(&self) -> bool {
        // SAFETY: the buffer is never freed. CUPTI may be writing this very number: either value will do.
        unsafe { self.0.cast::<u32>().read_volatile() != 0 }
    }

    /// Lets `read` see the first `length` bytes, then clears them.
    ///
    /// The buffer must be one of ours, and nobody else's at the moment.
    pub(super) fn read_and_clear(self, length: usize, read: impl FnOnce(&[u8])) {
        // SAFETY: CUPTI gave the buffer back, so it is ours alone (`pool`, which `model` checks); no more than it is long.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.0, length.min(BUFFER)) };
        read(bytes);
        bytes.fill(0);
    }
}

//! What the threads do with buffers. Names nothing of `std::sync` itself, so that a model checker's can stand in for it.

use super::memory::Buffer;
use super::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Queue};

/// A buffer with records.
#[derive(Debug)]
pub(crate) struct Completed {
    buffer: Buffer,
    valid: usize,
}

/// What the callbacks and the threads share. There is one for the whole process.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Queue<Buffer>,
    pub(crate) done: Queue<Completed>,
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

impl Pool {
    /// A pool without buffers that may have up to `most`; `None` when there is no memory.
    pub(super) fn new(most: usize, may_decline: bool) -> Option<Pool> {
        let most = most.max(1);
        Some(Pool {
            free: Queue::new(most),
            done: Queue::new(most),
            made: AtomicUsize::new(0),
            all: Mutex::new(Vec::with_capacity(most)),
            most,
            flushes: AtomicU64::new(1),
            requested: AtomicU64::new(0),
            declined: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            discard: Buffer::allocate()?,
            may_decline,
            closed: AtomicBool::new(false),
        })
    }

    /// Makes `count` more buffers, as far as allowed, and faults them in.
    pub(super) fn grow(&self, count: usize) {
        for _ in 0..count {
            let Some(buffer) = self.make() else { return };
            buffer.fault_in();
            self.free.put(buffer);
        }
    }

    /// Keeps a stock of free buffers, so that [`Pool::request`] need not make one. Called by the flush thread.
    pub(crate) fn top_up(&self) {
        const STOCK: usize = 16;
        let free = self.free.len();
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
        let buffer = Buffer::allocate()?;
        if let Ok(mut all) = self.all.lock() {
            all.push(buffer);
        }
        Some(buffer)
    }

    /// A buffer for CUPTI: none, or one whose contents are thrown away, when there is none left.
    pub(super) fn request(&self) -> Option<Buffer> {
        let taken = if self.closed.load(Ordering::Relaxed) {
            None
        } else {
            self.free.take().or_else(|| self.make())
        };
        match taken {
            Some(taken) => {
                self.requested.fetch_add(1, Ordering::Relaxed);
                taken.set_taken(self.flushes.load(Ordering::Relaxed));
                Some(taken)
            }
            None => {
                self.declined.fetch_add(1, Ordering::Relaxed);
                (!self.may_decline).then_some(self.discard)
            }
        }
    }

    /// CUPTI gives a buffer back, with so many bytes of records.
    pub(super) fn complete(&self, buffer: Buffer, valid: usize) {
        // Putting it in cannot fail with buffers of ours, of which there are no more than the queue has room for.
        if buffer == self.discard || !self.done.put(Completed { buffer, valid }) {
            self.discarded.fetch_add(valid as u64, Ordering::Relaxed);
        }
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
        // CUPTI was told that buffers come zeroed: else it would do this in the program's own thread.
        completed.buffer.read_and_clear(completed.valid, read);
        completed.buffer.set_taken(0);
        self.free.put(completed.buffer);
    }

    /// Whether CUPTI has ever asked for a buffer. A flush before that has nothing to flush.
    pub(crate) fn was_used(&self) -> bool {
        self.requested.load(Ordering::Relaxed) > 0
    }

    /// Counts a flush that is about to begin.
    pub(crate) fn begin_flush(&self) -> u64 {
        self.flushes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The oldest flush after which CUPTI took a buffer that it has written to and still holds. With a flush behind it,
    /// such a buffer is withheld because something in it is unfinished. (CUPTI says nothing about what runs.)
    pub(crate) fn oldest_withheld(&self) -> Option<u64> {
        let all = self.all.lock().ok()?;
        let begun = all.iter().filter(|buffer| buffer.is_begun());
        begun.map(Buffer::taken).filter(|flush| *flush != 0).min()
    }

    /// Buffers with records that have not been read: CUPTI holds them, or they wait to be read. (An empty one it may keep
    /// for good.)
    pub(crate) fn unread(&self) -> usize {
        self.all.lock().map_or(0, |all| {
            all.iter()
                .filter(|buffer| buffer.taken() != 0 && buffer.is_begun())
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

    /// Buffers made, and how many of them are free.
    #[cfg(test)]
    pub(super) fn made_and_free(&self) -> (usize, usize) {
        (self.made.load(Ordering::Relaxed), self.free.len())
    }
}

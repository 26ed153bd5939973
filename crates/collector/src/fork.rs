//! A forked child is not its parent: CUDA and CUPTI do not work in it, our threads do not exist in it, and it
//! must not hold the recording open.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::buffers::Pool;

static WATCH: Once = Once::new();
static IS_CHILD: AtomicBool = AtomicBool::new(false);
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

/// Runs in a forked child, where only async-signal-safe functions may be called.
extern "C" fn in_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    if let Some(pool) = crate::buffers::the_pool() {
        Pool::close(pool);
    }
    let descriptor = DESCRIPTOR.swap(-1, Ordering::Relaxed);
    if descriptor >= 0 {
        // The lock on the file belongs to the open file, which parent and child share. As long as the child had it,
        // a reader would take the parent for alive.
        // SAFETY: the thread that owns the file does not exist in the child, so nobody uses or closes it here.
        unsafe { libc::close(descriptor) };
    }
}

/// Makes forked children let go of the recording with this descriptor.
pub(crate) fn watch(descriptor: i32) {
    DESCRIPTOR.store(descriptor, Ordering::Relaxed);
    WATCH.call_once(|| {
        // SAFETY: the handler calls only async-signal-safe functions.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// The recording is closed: its number may be another file's from now on.
pub(crate) fn forget() {
    DESCRIPTOR.store(-1, Ordering::Relaxed);
}

/// Whether this process was forked from the one that started the collector.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

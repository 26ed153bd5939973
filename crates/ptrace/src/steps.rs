//! Every request that a tracee or its memory could notice passes here, so that a test can end the tracer between any two.

/// A request is about to be made.
pub(crate) fn note() {
    #[cfg(test)]
    die::count();
}

#[cfg(test)]
pub(crate) mod die {
    use std::sync::atomic::{AtomicI64, Ordering};

    /// Requests left until this process kills itself; below zero it never does.
    static LEFT: AtomicI64 = AtomicI64::new(-1);

    pub(crate) fn die_after(requests: i64) {
        LEFT.store(requests, Ordering::Relaxed);
    }

    pub(super) fn count() {
        if LEFT.load(Ordering::Relaxed) >= 0 && LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
            // SAFETY: a process may end itself.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            std::thread::park();
        }
    }
}

//! Whether a running program is to be looked at from outside just now: its Python stacks, its hardware.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A switch between whoever decides and the threads that look. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Looking(Arc<AtomicBool>);

impl Looking {
    pub(super) fn new(is_wanted: bool) -> Looking {
        Looking(Arc::new(AtomicBool::new(is_wanted)))
    }

    /// Whether to look.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Has the threads look from now on, or not. They notice within some 20 ms.
    pub(super) fn want(&self, is_wanted: bool) {
        self.0.store(is_wanted, Ordering::Relaxed);
    }
}

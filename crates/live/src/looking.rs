//! Whether a running program is to be looked at from outside just now: its Python stacks, its hardware. SIGUSR2 to cuptop pauses
//! that, and goes on with it at the next one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use signal_hook::SigId;

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

/// Listens for a signal until it is dropped.
pub(super) struct Switch {
    came: Arc<AtomicBool>,
    id: SigId,
}

impl Switch {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the operating system takes no handler.
    pub(super) fn listen(signal: Signal) -> io::Result<Switch> {
        let came = Arc::new(AtomicBool::new(false));
        let id = signal_hook::flag::register(signal.as_raw(), Arc::clone(&came))?;
        Ok(Switch { came, id })
    }

    /// Whether the signal has come since this was asked last.
    pub(super) fn has_come(&self) -> bool {
        self.came.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.id);
    }
}

//! SIGUSR2 to cuptop: looking at a running program from outside, at its Python stacks and its hardware, pauses, and goes on at
//! the next one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use signal_hook::SigId;

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

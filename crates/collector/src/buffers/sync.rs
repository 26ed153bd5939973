//! What the threads share buffers through.

pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};

/// A queue of bounded length without locks.
#[derive(Debug)]
pub(crate) struct Queue<T>(Sender<T>, Receiver<T>);

impl<T> Queue<T> {
    pub(super) fn new(most: usize) -> Queue<T> {
        let (sender, receiver) = bounded(most);
        Queue(sender, receiver)
    }

    /// Puts one in, unless it is full. Never waits. Whether it was put in.
    pub(super) fn put(&self, it: T) -> bool {
        self.0.try_send(it).is_ok()
    }

    /// Takes one out, unless it is empty. Never waits.
    pub(crate) fn take(&self) -> Option<T> {
        self.1.try_recv().ok()
    }

    pub(super) fn len(&self) -> usize {
        self.1.len()
    }

    /// To wait for what comes.
    pub(crate) fn receiver(&self) -> &Receiver<T> {
        &self.1
    }
}

//! A run that nobody records: only the host's time around each repeat is kept.

use std::cell::RefCell;
use std::ffi::c_void;

use super::super::protocol::Unwatched;
use super::marks::Marks;
use crate::activity::{Ns, RangeKind};

/// The repeats of the variants so far, in their order.
#[derive(Debug, Default)]
pub(super) struct Bare {
    done: RefCell<Vec<Unwatched>>,
    /// Of the variant that runs.
    walls: RefCell<Vec<Ns>>,
}

impl Bare {
    /// What was seen.
    pub(super) fn into_inner(self) -> Vec<Unwatched> {
        self.done.into_inner()
    }
}

impl Marks for Bare {
    fn range(&self, kind: RangeKind, name: &str, _index: u32, start: Ns, end: Ns) {
        match kind {
            RangeKind::Repeat => self.walls.borrow_mut().push(end - start),
            // It comes when all of its repeats are over.
            RangeKind::Variant => self.done.borrow_mut().push(Unwatched {
                variant: name.to_owned(),
                walls_ns: self.walls.take(),
            }),
            _ => {}
        }
    }

    #[expect(unsafe_code, reason = "the trait's signature")]
    unsafe fn name_stream(&self, _context: *mut c_void, _stream: *mut c_void, _name: &str) {}
}

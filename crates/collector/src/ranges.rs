//! Recording only inside NVTX ranges of some name.
//!
//! Their two ends are records like all others: the decode thread sees them at the next flush, and the flush thread acts on
//! it. So recording begins up to a flush period after the range does, and ends after it. Ranges that are shorter than that
//! are missed, and counted. Nothing runs in the program's own threads.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of the ranges that are asked for.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    name: String,
    is_open: AtomicBool,
    /// Whether recording is on.
    is_recorded: AtomicBool,
    seen: AtomicU64,
    missed: AtomicU64,
}

impl Ranges {
    /// Ranges of this name, or, if that ends in `*`, of those that begin so.
    pub(crate) fn called(name: String) -> Ranges {
        Ranges {
            name,
            ..Ranges::default()
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Recording went on or off.
    pub(crate) fn set_recorded(&self, on: bool) {
        self.is_recorded.store(on, Ordering::Relaxed);
    }

    fn is_called(&self, name: &[u8]) -> bool {
        match self.name.strip_suffix('*') {
            Some(begin) => name.starts_with(begin.as_bytes()),
            None => name == self.name.as_bytes(),
        }
    }

    /// What the user should know at the end.
    pub(crate) fn summary(&self) -> Option<String> {
        let (seen, missed) = (
            self.seen.load(Ordering::Relaxed),
            self.missed.load(Ordering::Relaxed),
        );
        let name = &self.name;
        match (seen, missed) {
            (0, _) => Some(format!(
                "no NVTX range called \"{name}\" began: nothing was recorded (ranges of torch.profiler are NVTX ranges \
                 only under torch.autograd.profiler.emit_nvtx)"
            )),
            (_, 0) => None,
            _ => Some(format!(
                "{missed} of {seen} NVTX ranges called \"{name}\" ended before recording had begun: it begins up to a flush \
                 period after a range does"
            )),
        }
    }
}

/// The ranges that are open, as the decode thread sees them.
#[derive(Debug)]
pub(crate) struct RangeWatch {
    pub(crate) ranges: std::sync::Arc<Ranges>,
    /// Ids of those that are open.
    open: HashSet<u32>,
}

impl RangeWatch {
    pub(crate) fn new(ranges: std::sync::Arc<Ranges>) -> RangeWatch {
        RangeWatch {
            ranges,
            open: HashSet::new(),
        }
    }

    pub(crate) fn begin(&mut self, id: u32, name: &[u8]) {
        if self.ranges.is_called(name) && self.open.insert(id) {
            self.ranges.seen.fetch_add(1, Ordering::Relaxed);
            self.ranges.is_open.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn end(&mut self, id: u32) {
        if self.open.remove(&id) {
            if !self.ranges.is_recorded.load(Ordering::Relaxed) {
                self.ranges.missed.fetch_add(1, Ordering::Relaxed);
            }
            self.ranges
                .is_open
                .store(!self.open.is_empty(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn open_while_one_of_them_is_and_short_ones_are_counted() {
        let ranges = Arc::new(Ranges::called("step*".to_owned()));
        let mut watch = RangeWatch::new(Arc::clone(&ranges));
        watch.begin(1, b"a step");
        assert!(!ranges.is_open());
        watch.begin(2, b"step 1");
        watch.begin(3, b"step 2");
        ranges.set_recorded(true);
        watch.end(2);
        assert!(ranges.is_open());
        watch.end(3);
        watch.end(1);
        assert!(!ranges.is_open());
        assert_eq!(ranges.summary(), None);
        ranges.set_recorded(false);
        watch.begin(4, b"step 3");
        watch.end(4);
        assert!(
            ranges
                .summary()
                .is_some_and(|text| text.starts_with("1 of 3 "))
        );
        let none = Ranges::called("forward".to_owned());
        assert!(none.is_called(b"forward") && !none.is_called(b"forward 1"));
        assert!(
            none.summary()
                .is_some_and(|text| text.contains("nothing was recorded"))
        );
    }
}

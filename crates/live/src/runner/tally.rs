//! Every operation that was issued must come back as exactly one record: the count that shows it.

use activity::{Batch, What};

use super::protocol::Issued;

/// Records by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally(Issued);

impl Tally {
    /// Counts a batch's operations.
    pub(super) fn count(&mut self, batch: &Batch) {
        for item in &batch.items {
            match item.what {
                What::Kernel(_) => self.0.kernels(1),
                What::Memset(_) => self.0.memsets(1),
                What::Graph(_) => self.0.graphs(1),
                What::Copy(copy) => self.0.copies(copy.direction, 1),
                _ => {}
            }
        }
    }

    /// Compares with what was issued. Returns whether that calls for a warning, and a sentence.
    pub(super) fn compare(&self, issued: &Issued) -> (bool, String) {
        let counts = issued.0.into_iter().zip(self.0.0).zip(Issued::NAMES);
        let unequal: Vec<String> = counts
            .filter(|((issued, recorded), _)| issued != recorded)
            .map(|((issued, recorded), what)| {
                format!("{what}: {issued} issued, {recorded} recorded")
            })
            .collect();
        if unequal.is_empty() {
            let total = activity::units::count(issued.total());
            let text = format!("{total} operations were issued and {total} recorded");
            return (false, text);
        }
        let unequal = unequal.join("; ");
        let text = format!("not every operation has one record ({unequal})");
        (true, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::Direction;
    use activity::{Activity, Copy, Kernel, MemoryKind, Place, Span};

    #[test]
    fn a_lost_and_a_doubled_record_are_both_named() {
        let item = |what| Activity {
            span: Span::new(0, 1),
            correlation: 0,
            what,
        };
        let kernel = item(What::Kernel(Kernel {
            place: Place::default(),
            shape: 0,
            graph: 0,
            node: 0,
        }));
        let copy = item(What::Copy(Copy {
            place: Place::default(),
            direction: Direction::D2H,
            from: MemoryKind::Device,
            to: MemoryKind::Pinned,
            is_async: true,
            bytes: 4,
            peer: 0,
            graph: 0,
            node: 0,
        }));
        let mut tally = Tally::default();
        tally.count(&Batch {
            items: vec![kernel, copy, copy],
            ..Batch::default()
        });
        let mut issued = Issued([1, 0, 2, 0, 0, 0, 0]);
        let (is_warning, text) = tally.compare(&issued);
        assert!(!is_warning);
        assert_eq!(text, "3 operations were issued and 3 recorded");
        issued = Issued([2, 0, 1, 0, 0, 0, 0]);
        let (is_warning, text) = tally.compare(&issued);
        assert!(is_warning);
        assert!(text.contains("kernels: 2 issued, 1 recorded"), "{text}");
        assert!(text.contains("D2H: 1 issued, 2 recorded"), "{text}");
    }
}

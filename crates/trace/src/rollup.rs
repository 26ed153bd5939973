//! The sum over an evicted span. Of a part of the span it is in proportion.

use activity::{Ns, Span};

/// A sum that grows with time.
pub(super) trait Sum: Copy {
    /// The value `part` of `whole` ns on the way from nothing to this.
    fn share(self, part: Ns, whole: Ns) -> Self;
}

impl Sum for Ns {
    fn share(self, part: Ns, whole: Ns) -> Ns {
        (i128::from(self) * i128::from(part) / i128::from(whole.max(1))) as Ns
    }
}

impl Sum for f64 {
    fn share(self, part: Ns, whole: Ns) -> f64 {
        self * part as f64 / whole.max(1) as f64
    }
}

impl<T: Sum, const N: usize> Sum for [T; N] {
    fn share(self, part: Ns, whole: Ns) -> Self {
        self.map(|it| it.share(part, whole))
    }
}

/// The evicted span, and the sum over it; nothing before anything was evicted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rollup<T>(Option<(Span, T)>);

impl<T: Sum> Rollup<T> {
    /// The evicted span has become this one, and the sum over it this.
    pub(super) fn set(&mut self, span: Span, sum: T) {
        self.0 = Some((span, sum));
    }

    /// Moves the span in time.
    pub(super) fn retime(&mut self, to: impl Fn(Ns) -> Ns) {
        if let Some((span, _)) = &mut self.0 {
            *span = Span::new(to(span.start), to(span.end));
        }
    }

    /// The evicted span.
    pub(super) fn span(&self) -> Option<Span> {
        self.0.map(|(span, _)| span)
    }

    /// The sum up to `time`; `None` for a time behind the span.
    pub(super) fn until(&self, time: Ns) -> Option<T> {
        let (span, sum) = self.0.filter(|(span, _)| time <= span.end)?;
        Some(sum.share((time - span.start).max(0), span.len()))
    }
}

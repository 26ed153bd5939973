//! Windows of time, in order, that do not overlap. Each holds what was measured within it.

use super::series::{Chunk, Series};
use activity::{Ns, Span};

/// What was measured within a window of time.
pub(super) trait Window: Copy + Default + std::fmt::Debug {
    /// Sums over the windows of a chunk, so that a long stretch is a walk over chunks, not over windows.
    type Sums: Clone + std::fmt::Debug + Default;

    fn span(&self) -> Span;

    fn set_span(&mut self, span: Span);

    fn add_to(&self, sums: &mut Self::Sums);
}

/// Some windows.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece<W: Window> {
    pub(super) sums: W::Sums,
    windows: Vec<W>,
}

impl<W: Window> Chunk for Piece<W> {
    /// Half a minute of a GPU's windows.
    const CAPACITY: usize = 256;

    type Entry = W;
    type Key = Ns;
    type Head = ();

    fn key(window: &W) -> Ns {
        window.span().start
    }

    fn push(&mut self, window: W) {
        window.add_to(&mut self.sums);
        self.windows.push(window);
    }

    fn entry(&self, row: usize) -> W {
        self.windows[row]
    }

    fn len(&self) -> usize {
        self.windows.len()
    }

    fn first(&self) -> Ns {
        self.windows[0].span().start
    }

    fn leave(&self, (): ()) {}
}

impl<W: Window> Piece<W> {
    /// Whether all its windows lie in `scope`.
    pub(super) fn is_within(&self, scope: Span) -> bool {
        let last = self.windows.last().map_or(Ns::MIN, |it| it.span().end);
        scope.start <= self.first() && last <= scope.end
    }

    /// The windows that share time with `scope`, each with how much.
    pub(super) fn within(&self, scope: Span) -> impl Iterator<Item = (&W, Ns)> {
        let ended = |it: &W| it.span().end <= scope.start;
        let windows = &self.windows[self.windows.partition_point(ended)..];
        let begun = windows
            .iter()
            .take_while(move |it| it.span().start < scope.end);
        begun.map(move |it| (it, it.span().intersect(scope).len()))
    }
}

/// Windows in order.
pub(super) type Windows<W> = Series<Piece<W>>;

impl<W: Window> Windows<W> {
    /// Adds a window, unless it overlaps one that is there.
    pub(super) fn add(&mut self, window: W) {
        let span = window.span();
        if self.within(span).next().is_none() {
            self.merge(&[window]);
        }
    }

    /// The pieces that may share time with `scope`, in order.
    pub(super) fn pieces(&self, scope: Span) -> impl Iterator<Item = &Piece<W>> {
        let pieces = self.chunks().skip(self.old(scope.start));
        pieces.take_while(move |piece| piece.first() < scope.end)
    }

    /// The windows that share time with `scope`, each with how much.
    pub(super) fn within(&self, scope: Span) -> impl Iterator<Item = (&W, Ns)> {
        self.pieces(scope)
            .flat_map(move |piece| piece.within(scope))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &W> {
        self.chunks().flat_map(|piece| &piece.windows)
    }

    /// The first start to the last end.
    pub(super) fn span(&self) -> Option<Span> {
        let last = self.last()?.windows.last()?;
        Some(Span::new(self.first()?, last.span().end))
    }

    /// Evicts whole pieces before `time`, but never the last.
    pub(super) fn evict_before(&mut self, time: Ns) {
        self.forget(self.old(time));
    }

    /// Moves all windows in time.
    pub(super) fn retime(&mut self, to: impl Fn(Span) -> Span) {
        self.map((), |mut window| {
            window.set_span(to(window.span()));
            window
        });
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.iter().count() * size_of::<W>() + self.overhead()
    }
}

//! Which stretch of time is on screen, and how it moves.

use activity::{Ns, Span};

/// The shortest window: finer than the GPU's clock there is nothing to see.
pub const SHORTEST: Ns = 64;

/// A window that stays within bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Viewport {
    pub window: Span,
    /// Beyond what it cannot be moved.
    pub bounds: Span,
}

impl Viewport {
    /// Puts `window` on screen, cut or moved so that it lies within the bounds.
    pub fn show(&mut self, window: Span) {
        let room = self.bounds.len().max(SHORTEST);
        let length = window.len().clamp(SHORTEST, room);
        let latest = self.bounds.start + (room - length);
        let start = window.start.clamp(self.bounds.start, latest);
        self.window = Span::new(start, start + length);
    }

    /// Changes the bounds, and keeps the window where it can stay.
    pub fn bound(&mut self, bounds: Span) {
        self.bounds = bounds;
        self.show(self.window);
    }

    /// Zooms by `factor` (below 1: in) so that `fixed` stays where it is on screen.
    pub fn zoom(&mut self, fixed: Ns, factor: f64) {
        let fixed = fixed.clamp(self.window.start, self.window.end);
        let before = (fixed - self.window.start) as f64;
        let room = self.bounds.len().max(SHORTEST) as f64;
        let length = (self.window.len() as f64 * factor).clamp(SHORTEST as f64, room);
        let share = before / self.window.len().max(1) as f64;
        let start = fixed - (length * share).round() as Ns;
        self.show(Span::new(start, start + length.round() as Ns));
    }

    /// Moves by a share of the window's length; below 0 towards the start.
    pub fn pan(&mut self, share: f64) {
        let by = (self.window.len() as f64 * share).round() as Ns;
        self.show(Span::new(self.window.start + by, self.window.end + by));
    }

    /// Puts `span` into the middle, at a zoom that shows it: an eighth of the window at least, and all of it.
    pub fn focus(&mut self, span: Span) {
        let (length, least) = (self.window.len(), span.len().max(1));
        let length = match least {
            _ if least.saturating_mul(24) < length => least * 8,
            _ if least > length => least + least / 2,
            _ => length,
        };
        let start = span.start + span.len() / 2 - length / 2;
        self.show(Span::new(start, start + length));
    }

    /// Moves the least that brings `span` on screen, with some room around it. A span that is longer than the window
    /// comes in by its start.
    pub fn reveal(&mut self, span: Span) {
        let length = self.window.len();
        if span.start >= self.window.start && span.end <= self.window.end {
            return;
        }
        let margin = length / 10;
        let start = if span.len() + 2 * margin > length || span.start < self.window.start {
            span.start - margin
        } else {
            span.end + margin - length
        };
        self.show(Span::new(start, start + length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(start: Ns, end: Ns) -> Viewport {
        Viewport {
            window: Span::new(start, end),
            bounds: Span::new(0, 10_000),
        }
    }

    #[test]
    fn zooming_keeps_the_moment_under_the_cursor() {
        let mut v = view(1_000, 2_000);
        v.zoom(1_250, 0.5);
        assert_eq!(v.window, Span::new(1_125, 1_625));
        v.zoom(1_250, 2.0);
        assert_eq!(v.window, Span::new(1_000, 2_000));
    }

    #[test]
    fn it_never_leaves_its_bounds() {
        let mut v = view(1_000, 2_000);
        v.pan(-5.0);
        assert_eq!(v.window, Span::new(0, 1_000));
        v.pan(50.0);
        assert_eq!(v.window, Span::new(9_000, 10_000));
        v.zoom(9_500, 1e9);
        assert_eq!(v.window, v.bounds);
        v.zoom(0, 1e-9);
        assert_eq!(v.window, Span::new(0, SHORTEST));
    }

    #[test]
    fn focusing_shows_what_would_be_too_short_or_too_long() {
        let mut v = view(0, 10_000);
        v.focus(Span::new(4_000, 4_100));
        assert_eq!(v.window, Span::new(3_650, 4_450));
        // Wide enough: the zoom stays.
        v.focus(Span::new(5_000, 5_200));
        assert_eq!(v.window, Span::new(4_700, 5_500));
        v.focus(Span::new(2_000, 4_000));
        assert_eq!(v.window, Span::new(1_500, 4_500));
    }

    #[test]
    fn revealing_moves_no_more_than_needed() {
        let mut v = view(1_000, 2_000);
        v.reveal(Span::new(1_100, 1_900));
        assert_eq!(v.window, Span::new(1_000, 2_000));
        v.reveal(Span::new(2_400, 2_500));
        assert_eq!(v.window, Span::new(1_600, 2_600));
        v.reveal(Span::new(500, 9_000));
        assert_eq!(v.window, Span::new(400, 1_400));
    }
}

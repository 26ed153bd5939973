//! The clock that a process's times are read on, and how it lies to that of the timeline.

use super::Trace;
use activity::{Batch, Def, Ns, OffCpu, Span};

/// What is added to a clock's time: `offset` at the moment `at`, and `drift` for each ns since. [`Clock::default`] changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// By the clock's own time, ns.
    pub at: Ns,
    /// ns.
    pub offset: Ns,
    /// A rate: 1e-6 is 1 us in each second.
    pub drift: f64,
}

impl Clock {
    /// Whether it shows the other clock's time.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.offset == 0 && self.drift == 0.0
    }

    /// The time on the other clock. Of two moments the later never becomes the earlier.
    #[must_use]
    pub fn apply(&self, time: Ns) -> Ns {
        let since = time.saturating_sub(self.at) as f64;
        time.saturating_add(self.offset)
            .saturating_add((self.drift * since).round() as Ns)
    }

    /// A stretch on the other clock: both of its ends, so what follows, touches or lies within another still does. Its length
    /// changes by the drift.
    #[must_use]
    pub fn span(&self, span: Span) -> Span {
        let start = self.apply(span.start);
        Span::new(start, self.apply(span.end))
    }

    /// The time on this clock when the other shows `time`.
    #[must_use]
    pub fn invert(&self, time: Ns) -> Ns {
        let since = time.saturating_sub(self.offset).saturating_sub(self.at) as f64;
        time.saturating_sub(self.offset)
            .saturating_sub((since * self.drift / (1.0 + self.drift)).round() as Ns)
    }

    /// The first time on this clock at which the other shows no less than `time`: of what [`Clock::apply`] makes of a moment no later one.
    #[must_use]
    pub fn first(&self, time: Ns) -> Ns {
        let mut at = self.invert(time);
        // Rounding takes it a nanosecond or two off.
        for _ in 0..4 {
            at = if self.apply(at) < time {
                at.saturating_add(1)
            } else if self.apply(at.saturating_sub(1)) >= time {
                at.saturating_sub(1)
            } else {
                break;
            };
        }
        at
    }

    /// From the other clock to this one.
    #[must_use]
    pub fn inverse(&self) -> Clock {
        Clock {
            at: self.at.saturating_add(self.offset),
            offset: self.offset.saturating_neg(),
            drift: 1.0 / (1.0 + self.drift) - 1.0,
        }
    }

    /// By how much it moves a stretch of its own time at most, ns.
    #[must_use]
    pub fn most(&self, span: Span) -> Ns {
        let by = |time: Ns| self.apply(time).saturating_sub(time).saturating_abs();
        by(span.start).max(by(span.end))
    }

    /// This one, and then `next`.
    #[must_use]
    pub fn then(&self, next: &Clock) -> Clock {
        if self.is_same() {
            return *next;
        }
        let moved = self.at.saturating_add(self.offset);
        Clock {
            at: self.at,
            offset: next.apply(moved).saturating_sub(self.at),
            drift: (1.0 + self.drift) * (1.0 + next.drift) - 1.0,
        }
    }
}

/// On which clocks a timeline's times are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Clocks {
    /// On one, as soon as something tells how they lie to each other.
    #[default]
    Unknown,
    /// On those on which they were recorded, whatever is found out.
    AsRecorded,
    /// On these: each process's, at its index.
    Set(Vec<Clock>),
}

impl Trace {
    /// From a process's times as they were recorded to those of the timeline.
    #[must_use]
    pub fn clock(&self, process: usize) -> Clock {
        self.processes
            .get(process)
            .map_or_else(Clock::default, |it| it.clock)
    }

    /// A stretch of a process as it was recorded, of one of the timeline: to the nanosecond or two that rounding takes.
    #[must_use]
    pub fn as_recorded(&self, process: usize, span: Span) -> Span {
        let clock = self.clock(process);
        if clock.is_same() {
            return span;
        }
        let start = clock.first(span.start);
        Span::new(start, clock.first(span.end))
    }

    /// The stretch that holds what each process recorded in one of the timeline.
    #[must_use]
    pub fn recorded_hull(&self, span: Span) -> Span {
        let all = (0..self.processes.len()).map(|process| self.as_recorded(process, span));
        all.reduce(Span::hull).unwrap_or(span)
    }

    /// Whether its clocks have been looked at: it is on one clock, as far as is known ([`Trace::retime`]).
    #[must_use]
    pub fn is_on_one_clock(&self) -> bool {
        self.is_on_one_clock
    }
}

/// A batch as a clock shows it, but for what GPUs' counters said: those have clocks of their own.
pub(super) fn shown(batch: &mut Batch, clock: &Clock) {
    for item in &mut batch.items {
        item.span = clock.span(item.span);
    }
    for def in &mut batch.defs {
        if let Def::Mode(mode) = def {
            mode.from = clock.apply(mode.from);
        }
    }
    for it in &mut batch.off_cpu {
        match it {
            OffCpu::Thread(window) => window.span = clock.span(window.span),
            OffCpu::Group(window) => window.span = clock.span(window.span),
            OffCpu::Note(_) => {}
        }
    }
    for look in batch.samples.iter_mut().flat_map(|it| &mut it.looks) {
        look.time = clock.apply(look.time);
    }
}

//! The clock that a process's times are read on, and its offset and drift against the timeline's clock.

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
    pub fn is_same(&self) -> bool {
        self.offset == 0 && self.drift == 0.0
    }

    /// The time on the other clock. It never swaps the order of two moments.
    pub fn apply(&self, time: Ns) -> Ns {
        let since = time.saturating_sub(self.at) as f64;
        time.saturating_add(self.offset)
            .saturating_add((self.drift * since).round() as Ns)
    }

    /// A span on the other clock. Both ends move, so spans still follow, touch or hold each other. The drift changes
    /// the length.
    pub fn span(&self, span: Span) -> Span {
        let start = self.apply(span.start);
        Span::new(start, self.apply(span.end))
    }

    /// The time on this clock when the other shows `time`.
    pub fn invert(&self, time: Ns) -> Ns {
        let since = time.saturating_sub(self.offset).saturating_sub(self.at) as f64;
        time.saturating_sub(self.offset)
            .saturating_sub((since * self.drift / (1.0 + self.drift)).round() as Ns)
    }

    /// The first time on this clock at which the other shows at least `time`.
    pub fn first(&self, time: Ns) -> Ns {
        if self.is_same() {
            return time;
        }
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
    pub fn inverse(&self) -> Clock {
        Clock {
            at: self.at.saturating_add(self.offset),
            offset: self.offset.saturating_neg(),
            drift: 1.0 / (1.0 + self.drift) - 1.0,
        }
    }

    /// The most by which it moves a span of its own time, ns.
    pub fn most(&self, span: Span) -> Ns {
        let by = |time: Ns| self.apply(time).saturating_sub(time).saturating_abs();
        by(span.start).max(by(span.end))
    }

    /// This clock, and then `next`.
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

/// Which clocks show a timeline's times.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Clocks {
    /// On one clock, as soon as something tells how the processes' clocks differ.
    #[default]
    Unknown,
    /// As they are: what one program recorded of all processes is on its one clock.
    One,
    /// On these clocks: one for each process, by its index.
    Set(Vec<Clock>),
}

impl Trace {
    /// Converts a process's times, as recorded, to those of the timeline.
    pub fn clock(&self, process: usize) -> Clock {
        self.processes
            .get(process)
            .map_or_else(Clock::default, |it| it.clock)
    }

    /// Converts a span of the timeline to a process's own times, as recorded. Rounding takes it a nanosecond or two off.
    pub fn as_recorded(&self, process: usize, span: Span) -> Span {
        let clock = self.clock(process);
        let start = clock.first(span.start);
        Span::new(start, clock.first(span.end))
    }

    /// The span that holds what each process recorded during a span of the timeline.
    pub fn recorded_hull(&self, span: Span) -> Span {
        let all = (0..self.processes.len()).map(|process| self.as_recorded(process, span));
        all.reduce(Span::hull).unwrap_or(span)
    }

    /// Whether alignment has run: the timeline is on one clock, as far as clocks are known ([`Trace::retime`]).
    pub fn is_on_one_clock(&self) -> bool {
        self.is_on_one_clock
    }
}

/// Moves a batch to a clock. The readings of GPUs' counters stay: they have clocks of their own.
pub(super) fn retime_batch(batch: &mut Batch, clock: &Clock) {
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

//! What a stretch of the timeline went to, cut at its edges: a pass, a step, what is on screen.

use activity::units::share;
use activity::{Ns, Span};
use trace::{Measure, Trace};

/// What a stretch of time went to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// What the times are parts of: the stretch without what was not recorded.
    pub whole: Ns,
    /// Anything ran.
    pub busy: Ns,
    /// A kernel ran.
    pub compute: Ns,
    /// A copy ran.
    pub copy: Ns,
    /// A kernel and a copy ran.
    pub overlap: Ns,
    /// Nothing was seen to run, and recording was off: it may have run.
    pub not_recorded: Ns,
}

impl Breakdown {
    /// Of one device (index into [`Trace::devices`]).
    pub fn of_device(trace: &Trace, device: usize, span: Span) -> Self {
        let usage = &trace.devices()[device].usage;
        let not_recorded = trace.unrecorded(device, span).iter().map(|s| s.len()).sum();
        Breakdown {
            whole: span.len() - not_recorded,
            busy: usage.time(Measure::Busy, span),
            compute: usage.time(Measure::Compute, span),
            copy: usage.time(Measure::Copy, span),
            overlap: usage.time(Measure::Overlap, span),
            not_recorded,
        }
    }

    /// The devices together: idle is when nothing ran on any of them, as in the figure `idle`. Looks at
    /// every stretch of work where there are several devices.
    pub fn together(trace: &Trace, span: Span) -> Self {
        let devices = trace.devices();
        let used = |it: &usize| devices[*it].usage.time(Measure::Busy, span) > 0;
        let mut used = (0..devices.len()).filter(used);
        if let (Some(device), None) = (used.next(), used.next())
            && (devices.len() == 1 || !trace.has_unrecorded())
        {
            return Self::of_device(trace, device, span);
        }
        let spans = |measure: Measure| -> Vec<Span> {
            let usages = devices.iter().map(|it| &it.usage);
            usages.flat_map(|it| it.stretches(measure, span)).collect()
        };
        let (compute, copy) = (spans(Measure::Compute), spans(Measure::Copy));
        let either = Span::union_len([&compute[..], &copy[..]].concat());
        let (compute, copy) = (Span::union_len(compute), Span::union_len(copy));
        let off = (0..devices.len()).flat_map(|it| trace.unrecorded(it, span));
        let busy = spans(Measure::Busy);
        let seen = Span::union_len(busy.iter().copied().chain(off).collect());
        let busy = Span::union_len(busy);
        Breakdown {
            whole: span.len() - (seen - busy),
            busy,
            compute,
            copy,
            overlap: compute + copy - either,
            not_recorded: seen - busy,
        }
    }

    /// Nothing ran.
    pub fn idle(&self) -> Ns {
        self.whole - self.busy
    }

    /// Nothing but memsets, or whole graphs, ran.
    pub fn memset(&self) -> Ns {
        self.busy - (self.compute + self.copy - self.overlap)
    }

    /// A part of the whole, from 0 to 1.
    pub fn share(&self, time: Ns) -> f64 {
        share(time, self.whole)
    }
}

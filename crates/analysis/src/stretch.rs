//! How the devices spent a stretch of the timeline that need not be a pass: what is on screen.

use super::figures::share;
use activity::{Ns, Span};
use trace::{Measure, Trace};

/// How the devices spent a window, cut at its edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// What the times are parts of: the window's length without what was not recorded, times the devices in use where they are counted
    /// each by itself.
    pub whole: Ns,
    /// Nothing ran.
    pub idle: Ns,
    /// A kernel ran.
    pub compute: Ns,
    /// A copy ran.
    pub copy: Ns,
    /// Devices in use that were counted each by itself; 1 when they were taken together.
    pub devices: usize,
}

impl Stretch {
    /// The devices together: idle is when nothing ran on any of them, as in the figure `idle`. Looks at
    /// every stretch of work where there are several devices.
    #[must_use]
    pub fn together(trace: &Trace, window: Span) -> Self {
        let of = |measure| union(trace, measure, window);
        let busy = of(Measure::Busy);
        let whole = window.len() - unrecorded(trace, window).min(window.len() - busy);
        Stretch {
            whole,
            idle: whole - busy,
            compute: of(Measure::Compute),
            copy: of(Measure::Copy),
            devices: 1,
        }
    }

    /// Each device by itself, their times summed; devices that do nothing in the window do not count.
    #[must_use]
    pub fn each(trace: &Trace, window: Span) -> Self {
        let mut sum = Stretch::default();
        for (index, device) in trace.devices().iter().enumerate() {
            let busy = device.usage.time(Measure::Busy, window);
            if busy > 0 {
                sum.devices += 1;
                let off: Ns = trace
                    .unrecorded(index, window)
                    .iter()
                    .map(|s| s.len())
                    .sum();
                sum.whole += window.len() - off;
                sum.idle += window.len() - off - busy;
                sum.compute += device.usage.time(Measure::Compute, window);
                sum.copy += device.usage.time(Measure::Copy, window);
            }
        }
        sum
    }

    /// A part of the whole, from 0 to 1.
    #[must_use]
    pub fn share(&self, time: Ns) -> f64 {
        share(time, self.whole)
    }
}

/// Time within `window` that is not recorded of any of the devices in use: what is recorded of one tells whether that one
/// was idle.
fn unrecorded(trace: &Trace, window: Span) -> Ns {
    if !trace.has_unrecorded() {
        return 0;
    }
    let used = |device: &usize| trace.devices()[*device].usage.time(Measure::Busy, window) > 0;
    let mut devices = (0..trace.devices().len()).filter(used);
    let Some(first) = devices.next() else {
        return 0;
    };
    let mut common = trace.unrecorded(first, window);
    for device in devices {
        common = in_both(&common, &trace.unrecorded(device, window));
    }
    common.iter().map(|span| span.len()).sum()
}

/// What two lists of spans, each in order and apart, have in common.
fn in_both(mut a: &[Span], mut b: &[Span]) -> Vec<Span> {
    let mut common = Vec::new();
    while let ([first, rest_a @ ..], [second, rest_b @ ..]) = (a, b) {
        if first.overlaps(*second) {
            common.push(first.intersect(*second));
        }
        if first.end <= second.end {
            a = rest_a;
        } else {
            b = rest_b;
        }
    }
    common
}

/// Time within `window` during which at least one device is in a state.
fn union(trace: &Trace, measure: Measure, window: Span) -> Ns {
    let mut active = trace
        .devices()
        .iter()
        .filter(|device| device.usage.time(Measure::Busy, window) > 0);
    let (Some(first), second) = (active.next(), active.next()) else {
        return 0;
    };
    let Some(second) = second else {
        return first.usage.time(measure, window);
    };
    let spans = [first, second]
        .into_iter()
        .chain(active)
        .flat_map(|device| device.usage.stretches(measure, window))
        .map(|span| span.intersect(window));
    super::tables::union(spans.collect())
}

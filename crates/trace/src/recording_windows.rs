//! When a process was recorded, and when its recording held what streams wait for.
//!
//! Recording can be off for a while, at the start, or for good. Nobody knows what ran then. What was launched then may
//! run on afterwards without a record. So where a device runs no operation and such a while touches that stretch, all
//! of it is *not recorded*. It is not idle, and has no cause.

use super::Trace;
use activity::{Mode, Ns, Span};

/// When a process was recorded, and when its waits were.
#[derive(Clone, Debug, Default)]
pub struct RecordingWindows {
    /// What holds now; `None` where no record tells it, and all is recorded.
    now: Option<Mode>,
    /// Windows in which nothing was recorded, in order and apart. An open last one ends at [`Ns::MAX`].
    off: Vec<Span>,
    /// Windows in which waits were recorded, likewise.
    waits: Vec<Span>,
}

impl RecordingWindows {
    pub(super) fn take(&mut self, mode: Mode) {
        if self.now.is_some_and(|now| mode.from <= now.from) {
            // Each part of a recording repeats at its beginning what holds.
            return;
        }
        go_on(&mut self.off, mode.from, !mode.recording);
        go_on(&mut self.waits, mode.from, mode.waits);
        self.now = Some(mode);
    }

    /// Moves all windows in time.
    pub(super) fn retime(&mut self, to: impl Fn(Ns) -> Ns) {
        if let Some(now) = &mut self.now {
            now.from = to(now.from);
        }
        for span in self.off.iter_mut().chain(&mut self.waits) {
            span.start = to(span.start);
            // An open window stays open.
            if span.end != Ns::MAX {
                span.end = to(span.end);
            }
        }
    }

    /// Whether recording is on.
    pub fn is_on(&self) -> bool {
        self.now.is_none_or(|now| now.recording)
    }

    /// Whether recording was off somewhere in `span`.
    pub fn misses(&self, span: Span) -> bool {
        within(&self.off, span).next().is_some()
    }

    /// The windows in which nothing was recorded and that share time with `window`, in order.
    pub fn off(&self, window: Span) -> impl Iterator<Item = Span> + '_ {
        within(&self.off, window)
    }

    /// Whether all waits between two moments were recorded. Then a wait without a record did not happen.
    pub fn knows_waits(&self, from: Ns, until: Ns) -> bool {
        self.now.is_none()
            || within(&self.waits, Span::new(from, from.saturating_add(1)))
                .any(|span| span.start <= from && span.end >= until)
    }
}

/// Opens or closes the last window at `time`.
fn go_on(whiles: &mut Vec<Span>, time: Ns, is_so: bool) {
    match (whiles.last_mut(), is_so) {
        (Some(last), true) if last.end == Ns::MAX => {}
        (_, true) => whiles.push(Span::new(time, Ns::MAX)),
        (Some(last), false) if last.end == Ns::MAX => last.end = time,
        (_, false) => {}
    }
}

fn within(whiles: &[Span], window: Span) -> impl Iterator<Item = Span> + '_ {
    let from = whiles.partition_point(|span| span.end <= window.start);
    let behind = whiles[from..].iter().copied();
    behind.take_while(move |span| span.start < window.end)
}

impl Trace {
    /// When a process was recorded.
    pub fn recorded(&self, process: usize) -> &RecordingWindows {
        static ALL: RecordingWindows = RecordingWindows {
            now: None,
            off: Vec::new(),
            waits: Vec::new(),
        };
        self.processes
            .get(process)
            .map_or(&ALL, |process| &process.recorded)
    }

    /// Whether recording of some process was off for a while.
    pub fn has_unrecorded(&self) -> bool {
        self.processes.iter().any(|p| !p.recorded.off.is_empty())
    }

    /// Whether an idle-looking stretch of a device (index into [`Trace::devices`]), or of one of its streams, is not
    /// recorded. It is when recording of one of the device's processes was off for some of it.
    pub fn is_unrecorded(&self, device: usize, gap: Span) -> bool {
        self.devices.get(device).is_some_and(|device| {
            let off = device.off.get_or_init(|| {
                let all = device.processes.iter();
                let all = all.flat_map(|&it| &self.recorded(it).off);
                Span::merged(all.copied().collect())
            });
            within(off, gap).next().is_some()
        })
    }

    /// The not recorded stretches of a device without an operation, cut to `window`, in order and apart. Before the
    /// first operation and after the last one, they are the windows in which recording was off.
    pub fn unrecorded(&self, device: usize, window: Span) -> Vec<Span> {
        let Some(on) = self.devices.get(device).filter(|_| !window.is_empty()) else {
            return Vec::new();
        };
        let usage = &on.usage;
        let used = usage.span().unwrap_or(Span::at(window.end));
        let mut found: Vec<Span> = [window.start, window.end - 1]
            .into_iter()
            .filter_map(|time| usage.gap_at(time))
            .filter(|gap| self.is_unrecorded(device, *gap))
            .collect();
        for &process in &on.processes {
            for off in self.recorded(process).off(window) {
                found.push(Span::new(off.start, off.end.min(used.start).max(off.start)));
                found.push(Span::new(off.start.max(used.end).min(off.end), off.end));
                let mut at = off.start.max(window.start).max(used.start);
                let end = off.end.min(window.end).min(used.end);
                while at < end {
                    let gap = usage.gap_at(at).or_else(|| usage.next_gap(at, 1));
                    let Some(gap) = gap.filter(|gap| gap.start < end) else {
                        break;
                    };
                    found.push(gap);
                    at = gap.end.max(at + 1);
                }
            }
        }
        let found = found.into_iter().map(|span| span.intersect(window));
        Span::merged(found.filter(|span| !span.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(from: Ns, recording: bool, waits: bool) -> Mode {
        Mode {
            from,
            recording,
            waits,
        }
    }

    #[test]
    fn a_gap_that_a_while_touches_is_not_recorded_as_a_whole() {
        use activity::{Activity, Batch, Def, Kernel, Place, What};
        let mut trace = Trace::default();
        let kernel = |(start, end)| Activity {
            span: Span::new(start, end),
            correlation: 0,
            what: What::Kernel(Kernel {
                place: Place::default(),
                shape: 0,
                graph: 0,
                node: 0,
            }),
        };
        trace.apply(Batch {
            defs: [
                (0, true),
                (40, false),
                (60, true),
                (105, false),
                (107, true),
                (150, false),
            ]
            .map(|(from, on)| Def::Mode(mode(from, on, false)))
            .to_vec(),
            items: [(0, 10), (20, 30), (100, 110), (120, 130)]
                .map(kernel)
                .to_vec(),
            ..Batch::default()
        });
        let unrecorded = |start, end| trace.unrecorded(0, Span::new(start, end));
        // 30 to 100 holds the first while; the second lies in an operation; the last behind all of them.
        assert_eq!(
            unrecorded(0, 200),
            [Span::new(30, 100), Span::new(150, 200)]
        );
        assert_eq!(unrecorded(70, 90), [Span::new(70, 90)]);
        assert_eq!(unrecorded(0, 25), []);
        assert_eq!(unrecorded(140, 160), [Span::new(150, 160)]);
        assert!(trace.is_unrecorded(0, Span::new(30, 100)));
        assert!(!trace.is_unrecorded(0, Span::new(10, 20)));
    }

    #[test]
    fn whiles_follow_what_was_said() {
        let mut it = RecordingWindows::default();
        let all = Span::new(0, 1_000);
        assert!(it.is_on() && it.knows_waits(0, 1_000) && !it.misses(all));
        it.take(mode(10, false, false));
        it.take(mode(100, true, false));
        it.take(mode(200, true, true));
        it.take(mode(220, true, false));
        // A later part says it again.
        it.take(mode(220, true, false));
        it.take(mode(300, false, false));
        assert!(!it.is_on());
        assert_eq!(
            it.off(all).collect::<Vec<_>>(),
            [Span::new(10, 100), Span::new(300, Ns::MAX)]
        );
        assert!(it.misses(Span::new(99, 101)) && !it.misses(Span::new(100, 300)));
        assert!(it.knows_waits(200, 220) && it.knows_waits(205, 210));
        assert!(!it.knows_waits(199, 210) && !it.knows_waits(205, 221));
    }
}

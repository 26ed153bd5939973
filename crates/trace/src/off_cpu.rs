//! When launching threads were on and off their processors, by process and thread.

use rustc_hash::FxHashMap;

use super::hardware::note;
use super::windows::{Window, Windows};
use activity::{GroupWindow, Ns, OffCpu, Span, ThreadWindow};

impl Window for ThreadWindow {
    type Sums = ();

    fn span(&self) -> Span {
        self.span
    }

    fn set_span(&mut self, span: Span) {
        self.span = span;
    }

    fn add_to(&self, (): &mut ()) {}
}

/// Time of a thread, in ns. It is an estimate: a share of the windows that some span overlaps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadTime {
    /// On a core.
    pub running: f64,
    /// Ready, with no core free.
    pub waiting: f64,
    /// Neither: it slept, or waited for a file, a lock, the GPU.
    pub sleeping: f64,
}

impl ThreadTime {
    /// All of it.
    pub fn sum(&self) -> f64 {
        self.running + self.waiting + self.sleeping
    }

    /// Adds another span's time.
    pub fn add(&mut self, other: ThreadTime) {
        self.running += other.running;
        self.waiting += other.waiting;
        self.sleeping += other.sleeping;
    }
}

/// What the limit on CPU time did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttling {
    /// Periods of the limit that passed.
    pub periods: u64,
    /// Periods in which the limit stopped the process's group.
    pub throttled_periods: u64,
    /// How long, in ns, added up over processors.
    pub throttled: Ns,
    /// CPU time that the group may use, in processors; 0 where unknown.
    pub cores: f64,
    /// The span in which the limit stopped it longest.
    pub worst: Option<Span>,
    worst_throttled: Ns,
}

/// The off-CPU time of one process.
#[derive(Clone, Debug, Default)]
pub struct ProcessOffCpu {
    threads: FxHashMap<u32, Windows<ThreadWindow>>,
    /// What its control group's limit did.
    pub throttling: Throttling,
    /// Why something is missing, each reason once.
    pub notes: Vec<String>,
}

impl ProcessOffCpu {
    pub(super) fn take(&mut self, it: OffCpu) {
        match it {
            OffCpu::Thread(window) => self.add(window),
            OffCpu::Group(window) => self.throttling.add(window),
            OffCpu::Note(text) => note(&mut self.notes, &text),
        }
    }

    /// Windows come in order. One out of order is of a thread whose id was used again, and begins anew behind.
    fn add(&mut self, window: ThreadWindow) {
        let windows = self.threads.entry(window.thread).or_default();
        if windows
            .span()
            .is_none_or(|span| span.end <= window.span.start)
        {
            windows.add(window);
        }
    }

    /// Evicts windows before `time`, but never a thread's last ones.
    pub(super) fn evict_before(&mut self, time: Ns) {
        for windows in self.threads.values_mut() {
            windows.evict_before(time);
        }
    }

    /// Moves all windows in time.
    pub(super) fn retime(&mut self, to: impl Fn(Span) -> Span) {
        for windows in self.threads.values_mut() {
            windows.retime(&to);
        }
        self.throttling.worst = self.throttling.worst.map(to);
    }

    /// Bytes that windows take.
    pub(super) fn memory(&self) -> usize {
        self.threads.values().map(Windows::memory).sum()
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.throttling.periods == 0 && self.notes.is_empty()
    }

    /// The threads that somebody read, in order of their ids.
    pub fn threads(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.threads.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// What a thread did within `scope`: each window counts by the part that lies in it. `None` where nobody read it.
    pub fn of_thread(&self, thread: u32, scope: Span) -> Option<ThreadTime> {
        let mut sum = ThreadTime::default();
        for (window, seen) in self.threads.get(&thread)?.within(scope) {
            let part = seen as f64 / window.span.len().max(1) as f64;
            let (running, waiting) = (window.running as f64, window.waiting as f64);
            // Its clock is read a little before or after the window's.
            let most = (window.span.len() as f64 / (running + waiting)).min(1.0);
            let (running, waiting) = (running * most, waiting * most);
            let sleeping = (window.span.len() as f64 - running - waiting).max(0.0);
            sum.add(ThreadTime {
                running: running * part,
                waiting: waiting * part,
                sleeping: sleeping * part,
            });
        }
        (sum.sum() > 0.0).then_some(sum)
    }
}

impl Throttling {
    fn add(&mut self, window: GroupWindow) {
        self.periods = self.periods.saturating_add(window.periods);
        let throttled = window.throttled_periods;
        self.throttled_periods = self.throttled_periods.saturating_add(throttled);
        self.throttled = self.throttled.saturating_add(window.throttled);
        self.cores = window.cores;
        if window.throttled > self.worst_throttled {
            self.worst_throttled = window.throttled;
            self.worst = Some(window.span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: Ns, running: Ns, waiting: Ns) -> OffCpu {
        OffCpu::Thread(ThreadWindow {
            thread: 7,
            span: Span::new(start, start + 100),
            running,
            waiting,
        })
    }

    #[test]
    fn a_stretch_has_its_part_of_each_window() {
        let mut process = ProcessOffCpu::default();
        // More than a chunk of windows that sleep, then one half running, half waiting.
        for at in 0..600 {
            process.take(window(at * 100, 0, 0));
        }
        process.take(window(60_000, 50, 50));
        let found = process
            .of_thread(7, Span::new(59_900, 60_050))
            .expect("seen");
        assert_eq!(
            (found.running, found.waiting, found.sleeping),
            (25.0, 25.0, 100.0)
        );
        assert_eq!(process.of_thread(7, Span::new(60_100, 60_200)), None);
        assert_eq!(process.of_thread(8, Span::new(0, 100)), None);
        let all = process.of_thread(7, Span::new(0, 100_000)).expect("seen");
        assert_eq!(all.sum(), 60_100.0);
    }

    #[test]
    fn throttling_adds_up() {
        let mut process = ProcessOffCpu::default();
        for (start, throttled) in [(0, 10), (100, 70), (200, 20)] {
            process.take(OffCpu::Group(GroupWindow {
                span: Span::new(start, start + 100),
                periods: 1,
                throttled_periods: 1,
                throttled,
                cores: 2.0,
            }));
        }
        let it = process.throttling;
        assert_eq!(
            (it.periods, it.throttled, it.worst),
            (3, 100, Some(Span::new(100, 200)))
        );
    }
}

//! Whether the thread that launches is asleep, or waits for input, while the device waits for it.

use super::stacks::{self, StackCounts};
use super::{Cause, Causes, Gap, Group, Piece, Pieces};
use activity::{Ns, Span};

/// Functions that sleep, or wait for somebody from outside, as profilers name them.
const NAMES: [&str; 7] = [
    "built-in function sleep",
    "nanosleep",
    "usleep",
    "epoll_wait",
    "built-in method select",
    "built-in method poll",
    "built-in method accept",
];

/// Calls of the C library that wait for somebody who types, whole.
const TYPED: [&str; 6] = ["getc", "fgetc", "getchar", "fgets", "getline", "scanf"];

/// Whether a call of the system only sleeps.
pub fn is_sleep(name: &str) -> bool {
    name.ends_with("sleep")
}

/// Whether it sleeps, or waits for somebody from outside.
pub fn is_quiet(name: &str) -> bool {
    TYPED.contains(&name) || NAMES.iter().any(|it| name.contains(it))
}

/// What is known of the CPU's own time while a device waits for it.
#[derive(Debug, Default)]
pub struct Slept {
    /// What lies in calls that sleep, of one of these names.
    pub named: Ns,
    pub name: Option<String>,
    /// Time without such a name, and how many samples of it saw the thread quiet, of how many.
    pub other: Ns,
    pub quiet: StackCounts,
    pub samples: u64,
    /// The same of the time in which the device works.
    pub meanwhile: StackCounts,
    pub busy_samples: u64,
    /// The gaps that it is of, with how long it lasts there.
    pub at: Vec<(Ns, Span)>,
}

impl Slept {
    /// Looks at gaps of one device from `start` on, which come in order of time.
    pub fn of(causes: &Causes, start: Ns, gaps: impl Iterator<Item = (Gap, Pieces)>) -> Slept {
        let (mut slept, mut worked) = (Slept::default(), start);
        for (gap, pieces) in gaps {
            let works = Span::new(worked, gap.span.start.max(worked));
            worked = gap.span.end;
            if let Some((process, thread)) = causes.launcher(gap.next) {
                let at = (process, thread, works);
                slept.busy_samples += stacks::add_quiet(causes.trace, at, &mut slept.meanwhile);
            }
            let here = pieces.iter().map(|it| slept.add(causes, &gap, it)).sum();
            if here > 0 {
                slept.at.push((here, gap.span));
            }
        }
        slept
    }

    /// Adds a piece of a gap where it is the CPU's own time, and returns how long that is.
    fn add(&mut self, causes: &Causes, gap: &Gap, piece: &Piece) -> Ns {
        if piece.cause != Cause::Host || causes.group(*gap, piece) != Group::Host {
            return 0;
        }
        let (trace, time) = (causes.trace, piece.span.len());
        let name = causes.host_name(piece.culprit);
        let name = name.map(|id| trace.names().full(id));
        if let Some(name) = name.filter(|it| is_quiet(it)) {
            self.named += time;
            self.name.get_or_insert_with(|| name.to_owned());
            return time;
        }
        self.other += time;
        if let Some((process, thread)) = causes.launcher(gap.next) {
            let at = (process, thread, piece.span);
            self.samples += stacks::add_quiet(trace, at, &mut self.quiet);
        }
        time
    }

    /// How long it sleeps or waits, by names and samples.
    pub fn time(&self) -> Ns {
        let part = self.quiet.all as f64 / self.samples.max(1) as f64;
        self.named + (part * self.other as f64) as Ns
    }

    /// Whether that is most of what is seen.
    pub fn is_most(&self) -> bool {
        self.named > 0 || 2 * self.quiet.all >= self.samples
    }
}

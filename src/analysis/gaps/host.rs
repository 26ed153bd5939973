//! What the host did while the GPU had nothing to do.

use super::{At, Cause, Explanation, Question};
use crate::activity::units::duration;
use crate::activity::{Ns, Span, What};
use crate::analysis::figures::share;
use crate::analysis::tables;
use crate::trace::describe;
use crate::trace::{LaneKind, Trace};

/// What the host did instead of launching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostWork {
    /// Took or gave back memory.
    Allocating,
    /// Loaded or compiled GPU code.
    Loading,
    /// Was in another CUDA call.
    Calling,
    /// Was outside CUDA.
    Elsewhere,
}

/// What a record of the host says it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostTime {
    /// Waited for the GPU.
    Waiting,
    /// Worked.
    Working(HostWork),
    /// The profiler took the time.
    Profiling,
}

/// What a host call spends its time on, by its name.
#[must_use]
pub(crate) fn work_of(name: &str) -> HostWork {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&[
        "Malloc",
        "Free",
        "MemAlloc",
        "HostAlloc",
        "HostRegister",
        "HostUnregister",
        "MemPool",
    ]) {
        HostWork::Allocating
    } else if has(&[
        "ModuleLoad",
        "LibraryLoad",
        "LinkComplete",
        "FuncLoad",
        "nvrtc",
    ]) {
        HostWork::Loading
    } else {
        HostWork::Calling
    }
}

/// Whether an overhead is the profiler's own, rather than the driver's.
fn is_profilers(name: &str) -> bool {
    let name = name.to_lowercase();
    [
        "buffer flush",
        "buffer request",
        "instrumentation",
        "resource",
    ]
    .iter()
    .any(|part| name.contains(part))
}

/// Whether an overhead is the driver's for loading or compiling GPU code.
pub(crate) fn driver_overhead(name: &str) -> bool {
    !is_profilers(name) && !is_queue_full(name)
}

/// The launch waited for room in the queue, which is the GPU's business.
fn is_queue_full(name: &str) -> bool {
    name.to_lowercase().contains("command buffer full")
}

/// A part of the host's time, with the record that shows it.
struct Part {
    time: HostTime,
    span: Span,
    at: At,
}

impl Question<'_> {
    /// The host launched the next operation only after the gap had begun: what it did until then.
    pub(super) fn host(&self, next: At, call: Option<At>) -> Option<Explanation> {
        let launched = match call {
            Some(call) => self.span(call).start,
            // A host call that is not there says nothing, a wait that filled the gap still does.
            None => self.gap.end,
        };
        let late = Span::new(self.gap.start, launched.min(self.gap.end));
        if late.is_empty() {
            return None;
        }
        let parts = self.parts(next, call, late);
        let sum = |time: HostTime| {
            let spans = parts.iter().filter(|p| p.time == time);
            tables::union(spans.map(|p| p.span.intersect(late)).collect())
        };
        let longest = |time: HostTime| {
            let of = parts.iter().filter(|p| p.time == time);
            of.max_by_key(|p| p.span.intersect(late).len())
                .map(|p| p.at)
        };
        // A wait that the program asked for rather than a copy that blocks, where both are there.
        let waited = parts
            .iter()
            .filter(|p| p.time == HostTime::Waiting)
            .max_by_key(|p| {
                let what = self.trace.activity(p.at.0, p.at.1).what;
                (describe::is_host_wait(self.trace, &what), p.span.len())
            })
            .map(|p| self.evidence(p.at));
        let waiting = sum(HostTime::Waiting);
        let profiling = sum(HostTime::Profiling);
        let all = tables::union(parts.iter().map(|p| p.span.intersect(late)).collect());
        let mut works: Vec<(Ns, HostWork)> =
            [HostWork::Allocating, HostWork::Loading, HostWork::Calling]
                .into_iter()
                .map(|work| (sum(HostTime::Working(work)), work))
                .collect();
        if call.is_some() {
            works.push((late.len() - all, HostWork::Elsewhere));
        }
        works.sort_by_key(|&(ns, _)| std::cmp::Reverse(ns));
        let (most, work) = works[0];

        let blocked = parts
            .iter()
            .filter(|p| p.time == HostTime::Waiting)
            .find(|p| p.span.start <= late.start && late.start < p.span.end);
        let is_mostly = |ns: Ns| share(ns, self.gap.len()) >= 0.5;
        if is_mostly(waiting) || (blocked.is_some() && !is_mostly(most) && !is_mostly(profiling)) {
            let wait = blocked
                .map(|p| p.at)
                .or_else(|| longest(HostTime::Waiting))?;
            let until = self.span(wait).end - self.gap.start;
            let sentence = format!(
                "The host was blocked in {} for the first {} of the gap, and launched {} after that.",
                self.name(wait),
                duration(until.min(self.gap.len())),
                self.name(next),
            );
            let mut evidence = vec![wait];
            evidence.extend(call);
            return Some(Explanation {
                wait: waited,
                ..self.explain(Cause::Blocked, sentence, evidence)
            });
        }
        if is_mostly(profiling) {
            let at = longest(HostTime::Profiling)?;
            return Some(self.profilers(at, profiling));
        }
        // Where the launch itself took longer than the host was late, the host is not to blame.
        let call = call.filter(|_| is_mostly(late.len()))?;
        let shows = longest(HostTime::Working(work));
        let did = match (work, shows) {
            (HostWork::Allocating | HostWork::Calling, Some(at)) => {
                format!("it was in {} for {}", self.name(at), duration(most))
            }
            (HostWork::Loading, Some(_)) => format!("it loaded GPU code for {}", duration(most)),
            _ => format!("it did something outside CUDA for {}", duration(most)),
        };
        let sentence = format!("The host had not launched {} yet: {did}.", self.name(next));
        let mut evidence = vec![call];
        if let Some(at) = shows {
            evidence.insert(0, at);
        }
        Some(Explanation {
            wait: waited,
            ..self.explain(Cause::Host(work), sentence, evidence)
        })
    }

    /// The profiler's own overheads cover half of the gap.
    pub(super) fn profiler(&self) -> Option<Explanation> {
        let process = self.process(self.next?);
        let lane = self.lane(process, |kind| kind == LaneKind::Overhead)?;
        let rows = self.trace.lanes()[lane].rows(self.gap);
        let mine: Vec<At> = rows
            .map(|row| (lane, row))
            .filter(|&at| self.host_time(at) == Some(HostTime::Profiling))
            .collect();
        let spans = mine.iter().map(|&at| self.span(at).intersect(self.gap));
        let sum = tables::union(spans.collect());
        let longest = mine.into_iter().max_by_key(|&at| self.span(at).len())?;
        (share(sum, self.gap.len()) >= 0.5).then(|| self.profilers(longest, sum))
    }

    fn profilers(&self, at: At, sum: Ns) -> Explanation {
        let sentence = format!(
            "The profiler spent {} of the gap on itself ({}).",
            duration(sum),
            self.name(at)
        );
        self.explain(Cause::Profiler, sentence, vec![at])
    }

    /// The records that show what the launching thread did in `late`. Without a call, those of all
    /// threads of the process, as far as they are waits.
    fn parts(&self, next: At, call: Option<At>, late: Span) -> Vec<Part> {
        let process = self.process(next);
        let thread = call.map(|(lane, _)| lane);
        let mut parts = Vec::new();
        for (id, lane) in self.trace.lanes().iter().enumerate() {
            let key = lane.key();
            let is_asked = match key.kind {
                LaneKind::Thread { .. } => thread.is_none_or(|t| t == id),
                LaneKind::Sync | LaneKind::Overhead => true,
                _ => false,
            };
            if key.process != process || !is_asked {
                continue;
            }
            for row in lane.rows(late) {
                let (at, span) = ((id, row), lane.span(row));
                if !span.overlaps(late) || Some(at) == call {
                    continue;
                }
                // A wait's record has no thread; its host call has.
                let is_elsewhere = key.kind == LaneKind::Sync
                    && thread.is_some()
                    && self
                        .call_of(at)
                        .is_some_and(|(lane, _)| thread != Some(lane));
                if let Some(time) = self.host_time(at).filter(|_| !is_elsewhere) {
                    parts.push(Part { time, span, at });
                }
            }
        }
        // A copy that blocks its caller is a wait: its call lasts until its operation has ended.
        if let Some(previous) = self.previous
            && let Some(at) = self.call_of(previous)
            && let Some(part) = parts.iter_mut().find(|p| p.at == at)
            && part.span.end >= self.span(previous).end
        {
            part.time = HostTime::Waiting;
        }
        parts
    }

    fn host_time(&self, (lane, row): At) -> Option<HostTime> {
        let trace: &Trace = self.trace;
        match trace.activity(lane, row).what {
            what if describe::is_host_wait(trace, &what) => Some(HostTime::Waiting),
            What::Call(call) => {
                let name = trace.names().full(call.name);
                Some(HostTime::Working(work_of(name)))
            }
            What::Overhead(overhead) => {
                let name = trace.names().full(overhead.name);
                if is_profilers(name) {
                    Some(HostTime::Profiling)
                } else if is_queue_full(name) {
                    Some(HostTime::Waiting)
                } else {
                    Some(HostTime::Working(HostWork::Loading))
                }
            }
            _ => None,
        }
    }
}

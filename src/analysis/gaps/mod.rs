//! Why nothing ran: the cause of a gap, told from the records around it.
//!
//! The operation that ends the gap is asked why it did not start earlier, in this order of evidence:
//!
//! 1. its stream waited for an event of another stream;
//! 2. the host was blocked in a wait when the gap began, so it could not launch;
//! 3. the host had not launched yet: it allocated, loaded code, was in another call, or did other work;
//! 4. it was launched in time, and another stream had the engine it needs;
//! 5. it was launched, and started as late as launches do;
//! 6. the profiler spent the time on itself;
//! 7. nothing on the timeline shows why.
//!
//! (Latency is asked after the engines: a busy engine is a record, latency is only its absence.)
//! `event` holds the search for what a stream waited for, `host` what the host thread did meanwhile.

mod event;
mod host;
#[cfg(test)]
mod tests;

use super::CallIndex;
use super::figures::share;
use super::findings::Evidence;
use crate::activity::units::{duration, percent};
use crate::activity::{Ns, Span, What};
use crate::trace::describe;
use crate::trace::{Engine, LaneId, LaneKind, Trace, engine_of};
pub use host::HostWork;
pub(crate) use host::{driver_overhead, work_of};

/// How long after its host call an operation may start on an idle device and be called on time. In the
/// traces of H100, H200, A100 and V100 that the figures were tested with, half of the launches onto an
/// idle device start 4 to 12 us after their call began, 99 of 100 within 39 us.
pub const LATENCY_MAX: Ns = 40_000;

/// Why a gap is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The stream waited for an event of another stream.
    Event,
    /// The host was blocked in a wait for the GPU.
    Blocked,
    /// The host had not launched yet.
    Host(HostWork),
    /// Another stream had the engine.
    Engine,
    /// Launched, and started as late as launches do.
    Latency,
    /// The profiler spent the time on itself.
    Profiler,
    /// Nothing shows why.
    Unknown,
}

impl Cause {
    /// In a few words.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Cause::Event => "waited for an event",
            Cause::Blocked => "host blocked in a wait",
            Cause::Host(HostWork::Allocating) => "host allocating",
            Cause::Host(HostWork::Loading) => "host loading code",
            Cause::Host(HostWork::Calling) => "host in another call",
            Cause::Host(HostWork::Elsewhere) => "host busy elsewhere",
            Cause::Engine => "engine taken",
            Cause::Latency => "launch latency",
            Cause::Profiler => "profiler overhead",
            Cause::Unknown => "unknown",
        }
    }
}

/// A gap with its cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The gap.
    pub gap: Span,
    /// Why it is there.
    pub cause: Cause,
    /// The same in a sentence.
    pub sentence: String,
    /// The records that show it, the most telling first.
    pub evidence: Vec<Evidence>,
    /// A wait of the host for the GPU that kept it from launching for at least a part of the gap,
    /// whatever the rest of it went to: without such a wait it could have run ahead.
    pub wait: Option<Evidence>,
}

/// How much of a device's idle time has one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleCause {
    /// The cause.
    pub cause: Cause,
    /// Gaps.
    pub count: u64,
    /// Their lengths together.
    pub total_ns: Ns,
}

/// Sums gaps by cause, most time first.
#[must_use]
pub fn by_cause<'a>(gaps: impl IntoIterator<Item = &'a Explanation>) -> Vec<IdleCause> {
    let mut sums: Vec<IdleCause> = Vec::new();
    for gap in gaps {
        let length = gap.gap.len();
        match sums.iter_mut().find(|s| s.cause == gap.cause) {
            Some(sum) => {
                sum.count += 1;
                sum.total_ns += length;
            }
            None => sums.push(IdleCause {
                cause: gap.cause,
                count: 1,
                total_ns: length,
            }),
        }
    }
    sums.sort_by_key(|s| std::cmp::Reverse(s.total_ns));
    sums
}

/// Why a stretch without an operation on one stream is there.
#[must_use]
pub fn of_stream(trace: &Trace, calls: Option<&CallIndex>, lane: LaneId, gap: Span) -> Explanation {
    Question::new(trace, calls, gap, &[lane]).answer()
}

/// Why a stretch without an operation on a whole device (index into [`Trace::devices`]) is there.
#[must_use]
pub fn of_device(
    trace: &Trace,
    calls: Option<&CallIndex>,
    device: usize,
    gap: Span,
) -> Explanation {
    let lanes: Vec<LaneId> = trace.streams_of(device).map(|(id, _)| id).collect();
    Question::new(trace, calls, gap, &lanes).answer()
}

/// A row of a lane.
type At = (LaneId, usize);

/// What is asked, and the records next to the gap.
struct Question<'a> {
    trace: &'a Trace,
    calls: Option<&'a CallIndex>,
    gap: Span,
    /// The operation that ends the gap.
    next: Option<At>,
    /// The operation whose end began it.
    previous: Option<At>,
}

impl<'a> Question<'a> {
    fn new(trace: &'a Trace, calls: Option<&'a CallIndex>, gap: Span, lanes: &[LaneId]) -> Self {
        let span = |&(lane, row): &At| trace.lanes()[lane].span(row);
        let next = lanes
            .iter()
            .filter_map(|&lane| Some((lane, trace.lanes()[lane].next(gap.end)?)))
            .min_by_key(|at| span(at).start);
        let previous = lanes
            .iter()
            .filter_map(|&lane| Some((lane, trace.lanes()[lane].previous(gap.end)?)))
            .filter(|at| span(at).start < gap.end)
            .max_by_key(|at| span(at).end);
        Question {
            trace,
            calls,
            gap,
            next,
            previous,
        }
    }

    fn span(&self, at: At) -> Span {
        self.trace.lanes()[at.0].span(at.1)
    }

    fn process(&self, at: At) -> usize {
        self.trace.lanes()[at.0].key().process
    }

    fn correlation(&self, at: At) -> u32 {
        self.trace.lanes()[at.0].correlation(at.1)
    }

    /// The host call behind a row.
    fn call_of(&self, at: At) -> Option<At> {
        let (process, correlation) = (self.process(at), self.correlation(at));
        match self.calls {
            Some(calls) => calls.find(process, correlation),
            None => self.trace.call(process, correlation),
        }
    }

    /// When the host issued what stands in a row: its call's start, else its own.
    fn issued(&self, at: At) -> Ns {
        self.span(self.call_of(at).unwrap_or(at)).start
    }

    fn evidence(&self, at: At) -> Evidence {
        Evidence::row(self.trace, at.0, at.1)
    }

    fn answer(&self) -> Explanation {
        let Some(next) = self.next else {
            return self.explain(Cause::Unknown, "Nothing followed.".to_owned(), Vec::new());
        };
        let call = self.call_of(next);
        self.event(next, call)
            .or_else(|| self.host(next, call))
            .or_else(|| self.engine(next))
            .or_else(|| self.latency(next, call))
            .or_else(|| self.profiler())
            .unwrap_or_else(|| self.unknown(next, call))
    }

    fn explain(&self, cause: Cause, sentence: String, evidence: Vec<At>) -> Explanation {
        Explanation {
            gap: self.gap,
            cause,
            sentence,
            evidence: evidence.into_iter().map(|at| self.evidence(at)).collect(),
            wait: None,
        }
    }

    /// The engine that the next operation needs worked for another stream for half of the gap.
    fn engine(&self, next: At) -> Option<Explanation> {
        let what = self.trace.activity(next.0, next.1).what;
        let device = what.place()?.device as usize;
        let mut taken: Vec<(Ns, At)> = Vec::new();
        for (lane, columns) in self.trace.streams_of(device) {
            if lane == next.0 {
                continue;
            }
            for row in columns.rows(self.gap) {
                let other = self.trace.activity(lane, row);
                if needs_same(&what, &other.what) {
                    let part = other.span.intersect(self.gap).len();
                    taken.push((part, (lane, row)));
                }
            }
        }
        taken.sort_by_key(|&(part, _)| std::cmp::Reverse(part));
        let spans = taken
            .iter()
            .map(|&(_, at)| self.span(at).intersect(self.gap));
        let part = share(super::tables::union(spans.collect()), self.gap.len());
        if part < 0.5 {
            return None;
        }
        let (_, longest) = *taken.first()?;
        let engine = match what {
            What::Copy(copy) => format!("The {} copy engine", copy.direction.label()),
            _ => "The SMs".to_owned(),
        };
        let sentence = format!(
            "{engine} worked for {} in {} of the gap ({}).",
            self.stream_name(longest.0),
            percent(part),
            self.name(longest),
        );
        let evidence = taken.into_iter().take(8).map(|(_, at)| at).collect();
        Some(self.explain(Cause::Engine, sentence, evidence))
    }

    /// Launched when the gap had begun or shortly before, and started soon after.
    fn latency(&self, next: At, call: Option<At>) -> Option<Explanation> {
        let call = call?;
        let delay = self.gap.end - self.span(call).start;
        let waited = self.gap.end - self.gap.start.max(self.span(call).start);
        if waited > LATENCY_MAX {
            return None;
        }
        let sentence = format!(
            "{} was launched {} before it started: launch latency.",
            self.name(next),
            duration(delay)
        );
        Some(self.explain(Cause::Latency, sentence, vec![call]))
    }

    fn unknown(&self, next: At, call: Option<At>) -> Explanation {
        let (sentence, evidence) = match call {
            Some(call) => (
                format!(
                    "Unknown: {} had been launched {} before, and nothing on the timeline shows what it waited for.",
                    self.name(next),
                    duration(self.gap.end - self.span(call).start)
                ),
                vec![call],
            ),
            None => (
                format!(
                    "Unknown: the host call of {} is not on the timeline.",
                    self.name(next)
                ),
                Vec::new(),
            ),
        };
        self.explain(Cause::Unknown, sentence, evidence)
    }

    fn lane(&self, process: usize, is_wanted: impl Fn(LaneKind) -> bool) -> Option<LaneId> {
        self.trace
            .lanes()
            .iter()
            .position(|lane| lane.key().process == process && is_wanted(lane.key().kind))
    }

    fn name(&self, (lane, row): At) -> String {
        describe::in_sentence(self.trace, &self.trace.activity(lane, row).what)
    }

    fn stream_name(&self, lane: LaneId) -> String {
        describe::lane_stream(self.trace, lane)
    }
}

/// Whether two operations need the same engine.
fn needs_same(a: &What, b: &What) -> bool {
    match (engine_of(a), engine_of(b)) {
        (Some(Engine::Copy(a)), Some(Engine::Copy(b))) => a == b,
        (Some(Engine::Copy(_)) | None, _) | (_, Some(Engine::Copy(_)) | None) => false,
        // Kernels and memsets run on the same multiprocessors.
        _ => true,
    }
}

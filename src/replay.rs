//! Sends a complete timeline once more as if it were live: each record when it had ended.
//!
//! All of it lies in memory until then ([`ReplayBuffer`]), beside the timeline that is made from it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use activity::feed::{Feed, Gone, Message, Outcome, Outlet, Pause};
use activity::samples::{Sampling, StackSample};
use activity::{Activity, Batch, Hardware, Health, Ns, OffCpu, RangeKind, Samples, Span, What};
use trace::{Clock, Clocks, SourceInfo, Trace};

/// Records are sent this often.
const FLUSH: Duration = Duration::from_millis(20);

/// A timeline in the order in which its records arrived.
#[derive(Debug, Default)]
pub struct ReplayBuffer {
    /// Definitions that records refer to, without the records.
    first: Vec<Batch>,
    events: Vec<Event>,
    /// The last counters of each process.
    health: BTreeMap<u32, Health>,
    /// First start to last end of all GPUs' operations.
    operations: Option<Span>,
    /// The spans to play, in order. For a scenario these are its passes; what lies between appears at once. Else it is
    /// the span from the first operation of a GPU to the last one's end. Without one, it is everything.
    pub stretches: Vec<Span>,
}

/// A record, and when it was complete.
#[derive(Debug)]
struct Event {
    at: Ns,
    process: u32,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Item(Activity),
    Hardware(Hardware),
    OffCpu(OffCpu),
    StackSample(u32, StackSample, Sampling),
}

impl Event {
    /// The series of a look: a batch holds looks of one series.
    fn series(&self) -> Option<u32> {
        match self.content {
            Content::StackSample(series, ..) => Some(series),
            _ => None,
        }
    }
}

impl ReplayBuffer {
    /// Completes the buffer after the last batch.
    pub fn finish(mut self) -> ReplayBuffer {
        self.events.sort_by_key(|event| event.at);
        let all = || {
            let (first, last) = (self.events.first()?, self.events.last()?);
            Some(Span::new(first.at, last.at))
        };
        let whole = self.operations.or_else(all);
        if self.stretches.is_empty() {
            self.stretches.extend(whole);
        }
        self.stretches.sort_unstable();
        // Passes of several processes may lie over each other.
        self.stretches.dedup_by(|next, before| {
            let are_one = next.start < before.end;
            if are_one {
                *before = before.hull(*next);
            }
            are_one
        });
        self
    }

    /// Takes in a batch. The caller keeps the order in which a source sends them.
    pub fn add(&mut self, mut batch: Batch) {
        let process = batch.process;
        if let Some(health) = batch.health.take() {
            self.health.insert(process, health);
        }
        for item in std::mem::take(&mut batch.items) {
            self.note_span(&item);
            self.push(item.span.end, process, Content::Item(item));
        }
        for hardware in std::mem::take(&mut batch.hardware) {
            let at = match &hardware {
                Hardware::Reading(reading) | Hardware::Sample(reading) => reading.span.end,
                Hardware::Occupants { time, .. } => *time,
                Hardware::Gpu(_)
                | Hardware::Limits(_)
                | Hardware::Note(_)
                | Hardware::Cost(_)
                | Hardware::Stalls(_) => {
                    batch.hardware.push(hardware);
                    continue;
                }
            };
            self.push(at, process, Content::Hardware(hardware));
        }
        for off_cpu in std::mem::take(&mut batch.off_cpu) {
            let at = match &off_cpu {
                OffCpu::Thread(window) => window.span.end,
                OffCpu::Group(window) => window.span.end,
                OffCpu::Note(_) => {
                    batch.off_cpu.push(off_cpu);
                    continue;
                }
            };
            self.push(at, process, Content::OffCpu(off_cpu));
        }
        if let Some(samples) = &mut batch.samples {
            for look in std::mem::take(&mut samples.looks) {
                let (series, sampling) = (samples.series, samples.sampling);
                self.push(
                    look.time,
                    process,
                    Content::StackSample(series, look, sampling),
                );
            }
        }
        if !batch.is_empty() {
            self.first.push(batch);
        }
    }

    /// Processes that sent something.
    pub fn processes(&self) -> usize {
        let all = self.first.iter().map(|batch| batch.process);
        let all: BTreeSet<u32> = all.chain(self.health.keys().copied()).collect();
        all.len()
    }

    /// Plays it in the order of one clock, if the whole timeline tells the `clocks` of its processes. The caller does this
    /// before [`ReplayBuffer::finish`]. Records stay as they are. Returns what their timeline is to know about clocks.
    pub fn align(
        &mut self,
        source: SourceInfo,
        clocks: impl FnOnce(&Trace) -> Option<Vec<Clock>>,
    ) -> SourceInfo {
        let Some(clocks) = clocks(&self.trace(source.clone())) else {
            return source;
        };
        (self.operations, self.stretches) = (None, Vec::new());
        let mut events = std::mem::take(&mut self.events);
        for event in &mut events {
            let clock = clocks
                .get(event.process as usize)
                .copied()
                .unwrap_or_default();
            event.at = clock.apply(event.at);
            if let Content::Item(item) = &event.content {
                let span = clock.span(item.span);
                self.note_span(&Activity { span, ..*item });
            }
        }
        self.events = events;
        SourceInfo {
            clocks: Clocks::Set(clocks),
            ..source
        }
    }

    fn push(&mut self, at: Ns, process: u32, content: Content) {
        self.events.push(Event {
            at,
            process,
            content,
        });
    }

    fn note_span(&mut self, item: &Activity) {
        match item.what {
            what if what.is_operation() => {
                let all = self.operations.map_or(item.span, |all| all.hull(item.span));
                self.operations = Some(all);
            }
            What::Range(range) if matches!(range.kind, RangeKind::Repeat | RangeKind::Warmup) => {
                self.stretches.push(item.span);
            }
            _ => {}
        }
    }

    /// How long the played spans took when they happened.
    pub fn length(&self) -> Ns {
        self.stretches.iter().map(|stretch| stretch.len()).sum()
    }

    /// The moment that it reaches after playing for a while; `None` when it is over.
    pub fn moment(&self, speed: f64, played: Duration) -> Option<Ns> {
        // Saturates: at any speed the end is the end.
        let mut left = (played.as_nanos() as f64 * speed) as Ns;
        for stretch in &self.stretches {
            if left < stretch.len() {
                return Some(stretch.start + left);
            }
            left -= stretch.len();
        }
        None
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            buffer: self,
            next: 0,
            has_begun: false,
            received: BTreeMap::new(),
        }
    }

    pub fn trace(&self, source: SourceInfo) -> Trace {
        let mut trace = Trace::new(source);
        for batch in self.cursor().take_until(Ns::MAX) {
            trace.apply(batch);
        }
        trace
    }

    /// Sends it on a thread at `speed` times the speed at which it happened, and then `outcome`.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn play(self: &Arc<Self>, speed: f64, pause: Pause, outcome: Outcome) -> io::Result<Feed> {
        let buffer = Arc::clone(self);
        Feed::spawn("cuptop-replay", move |outlet| {
            match in_step(&buffer, speed, &pause, outlet) {
                Ok(true) => outcome,
                Ok(false) | Err(Gone) => Outcome::Stopped,
            }
        })
    }
}

/// Sends records as their time comes. Returns whether it reached the end.
fn in_step(
    buffer: &ReplayBuffer,
    speed: f64,
    pause: &Pause,
    outlet: &Outlet,
) -> Result<bool, Gone> {
    let mut head = buffer.cursor();
    let (mut before, mut played) = (Instant::now(), Duration::ZERO);
    loop {
        let now = Instant::now();
        if !pause.is_held() {
            played += now - before;
        }
        before = now;
        let at = buffer.moment(speed, played);
        for batch in head.take_until(at.unwrap_or(Ns::MAX)) {
            outlet.send(Message::Batch(batch))?;
        }
        if at.is_none() {
            return Ok(true);
        }
        if outlet.stop.is_stopped() {
            return Ok(false);
        }
        std::thread::sleep(FLUSH);
    }
}

/// A place in a replay.
#[derive(Debug)]
pub struct Cursor<'a> {
    buffer: &'a ReplayBuffer,
    next: usize,
    has_begun: bool,
    /// Records that were played, by process.
    received: BTreeMap<u32, u64>,
}

impl Cursor<'_> {
    /// The batches up to a moment that were not yet played; all the rest at `Ns::MAX`.
    pub fn take_until(&mut self, time: Ns) -> Vec<Batch> {
        let buffer = self.buffer;
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let mut batches = Vec::new();
        if is_first {
            batches.extend(buffer.first.iter().cloned());
        }
        let from = self.next;
        let left = &buffer.events[from..];
        self.next += left.partition_point(|event| time == Ns::MAX || event.at <= time);
        let is_last = self.next == buffer.events.len();
        let are_one = |a: &Event, b: &Event| (a.process, a.series()) == (b.process, b.series());
        for events in buffer.events[from..self.next].chunk_by(are_one) {
            batches.push(self.batch(events));
        }
        // The counts grow with the records; losses are known from the first frame on.
        for (process, health) in &buffer.health {
            let played = self.received.get(process).copied().unwrap_or(0);
            let received = match is_last {
                true => health.received,
                false => played.min(health.received),
            };
            if is_first || from != self.next {
                batches.push(Batch {
                    process: *process,
                    health: Some(Health {
                        received,
                        oldest_open: None,
                        ..*health
                    }),
                    ..Batch::default()
                });
            }
        }
        batches
    }

    fn batch(&mut self, events: &[Event]) -> Batch {
        let process = events[0].process;
        let mut batch = Batch {
            process,
            ..Batch::default()
        };
        for event in events {
            match &event.content {
                Content::Item(item) => batch.items.push(*item),
                Content::Hardware(hardware) => batch.hardware.push(hardware.clone()),
                Content::OffCpu(off_cpu) => batch.off_cpu.push(off_cpu.clone()),
                Content::StackSample(series, look, sampling) => {
                    let samples = batch.samples.get_or_insert_with(|| Samples {
                        series: *series,
                        sampling: *sampling,
                        ..Samples::default()
                    });
                    samples.looks.push(look.clone());
                    samples.sampling = *sampling;
                }
            }
        }
        *self.received.entry(process).or_default() += batch.items.len() as u64;
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundled::LIBRARY;
    use activity::feed::Outcome;
    use scenario::{Overrides, compile};
    use sim::{self, Pace, Profile};

    /// A bundled scenario's run on the model, as messages.
    fn run() -> Feed {
        let source = LIBRARY.get("pipeline").expect("it is bundled");
        let compiled = compile(&source, &Overrides::default()).expect("it compiles");
        let plan = Arc::new(compiled.plan);
        sim::run(plan, &Profile::bundled(), Pace::AsFastAsPossible, None).expect("a thread")
    }

    fn buffer() -> ReplayBuffer {
        let mut buffer = ReplayBuffer::default();
        for message in run().receiver() {
            if let Message::Batch(batch) = message {
                buffer.add(batch);
            }
        }
        buffer.finish()
    }

    fn trace(batches: impl IntoIterator<Item = Batch>) -> Trace {
        let mut trace = Trace::default();
        for batch in batches {
            trace.apply(batch);
        }
        trace
    }

    /// When what is on a timeline was, lane by lane.
    fn all(trace: &Trace) -> Vec<(String, Span)> {
        let lanes = trace.lanes().iter();
        let spans = lanes.flat_map(|lane| {
            let key = format!("{:?}", lane.key());
            (0..lane.len()).map(move |row| (key.clone(), lane.span(row)))
        });
        let mut all: Vec<_> = spans.collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn what_was_played_is_the_whole_timeline_and_nothing_comes_before_it_ended() {
        let mut direct = Vec::new();
        for message in run().receiver() {
            if let Message::Batch(batch) = message {
                direct.push(batch);
            }
        }
        let buffer = buffer();
        let plan_passes = direct.iter().flat_map(|b| &b.items);
        let is_pass = |a: &&Activity| matches!(a.what, What::Range(r) if matches!(r.kind, RangeKind::Repeat | RangeKind::Warmup));
        assert_eq!(buffer.stretches.len(), plan_passes.filter(is_pass).count());
        let mut head = buffer.cursor();
        let mut played = Vec::new();
        for tenth in 0..=10 {
            // A second for each tenth.
            let speed = buffer.length() as f64 / 1e10;
            let now = buffer.moment(speed, Duration::from_secs(tenth));
            assert_eq!(now.is_none(), tenth == 10);
            let now = now.unwrap_or(Ns::MAX);
            let batches = head.take_until(now);
            let mut items = batches.iter().flat_map(|b| &b.items).peekable();
            assert!(items.peek().is_some(), "{tenth}");
            assert!(items.all(|item| item.span.end <= now), "{tenth}");
            played.extend(batches);
        }
        let (played, direct) = (trace(played), trace(direct));
        assert_eq!(played.health(), direct.health());
        let (played, direct) = (all(&played), all(&direct));
        assert!(direct.len() > 500);
        assert_eq!(played, direct);
    }

    #[test]
    fn time_is_stretched_by_the_speed_and_held_by_a_pause() {
        let two = ReplayBuffer {
            stretches: vec![Span::new(1_000, 2_000), Span::new(9_000, 9_500)],
            ..ReplayBuffer::default()
        };
        let at = |us| two.moment(0.001, Duration::from_micros(us));
        // 999 ns of the first stretch, then straight into the second one, then the end.
        assert_eq!(
            (at(999), at(1_000), at(1_499)),
            (Some(1_999), Some(9_000), Some(9_499))
        );
        assert_eq!((at(1_500), two.length()), (None, 1_500));
        assert_eq!(two.moment(1e300, Duration::from_secs(1)), None);
        let buffer = Arc::new(buffer());
        let pause = Pause::default();
        pause.hold(true);
        // At this speed it would be over with the first message.
        let feed = buffer
            .play(1e6, pause.clone(), Outcome::Complete)
            .expect("a thread");
        let mut seen = 0;
        while let Ok(message) = feed.receiver().recv_timeout(Duration::from_millis(100)) {
            assert!(!matches!(message, Message::Finished(_)));
            seen += 1;
        }
        assert!(seen > 0, "definitions");
        pause.hold(false);
        let last = feed.receiver().iter().last();
        assert!(matches!(last, Some(Message::Finished(Outcome::Complete))));
    }
}

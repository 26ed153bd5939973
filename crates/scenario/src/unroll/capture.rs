//! Graphs: what a capture may hold, and which streams take part in it.
//!
//! CUDA's rule: a capture begins on one stream. Another joins by waiting for an event that was recorded in the capture.
//! At its end every one must have been joined back in the same way.

use std::collections::{BTreeMap, HashMap};

use super::super::diagnostics::quoted;
use super::super::expr::Loc;
use super::super::plan::{EventId, Op, StreamId};
use super::Unroll;

/// How far each stream of a capture is known to have come, by its own count of operations.
type Progress = HashMap<StreamId, u64>;

/// A capture that is going on.
#[derive(Default)]
pub(crate) struct Capturing {
    pub(crate) ops: Vec<Op>,
    streams: BTreeMap<StreamId, Progress>,
    events: HashMap<EventId, Progress>,
}

impl Unroll<'_, '_> {
    /// Reports a step that a graph cannot hold.
    pub(crate) fn not_captured(&mut self, what: &str, loc: Loc) -> Option<()> {
        if self.capturing.is_none() {
            return Some(());
        }
        let help =
            "graphs hold copies, memsets, kernels and events; do this before or after the capture";
        self.error_help(loc, format!("a graph cannot hold {what}"), help)
    }

    /// Whether a capture is going on.
    pub(crate) fn is_capturing(&self) -> bool {
        self.capturing.is_some()
    }

    /// Begins a capture on a stream: operations go into a graph from here on.
    pub(crate) fn begin_capture(&mut self, origin: StreamId) {
        let start = Progress::from([(origin, 0)]);
        self.capturing = Some(Capturing {
            streams: BTreeMap::from([(origin, start)]),
            ..Capturing::default()
        });
    }

    /// Ends the capture that began on `origin`, and hands out what the graph holds.
    pub(crate) fn end_capture(&mut self, origin: StreamId, loc: Loc) -> Option<Vec<Op>> {
        let capturing = self.capturing.take()?;
        self.all_joined(&capturing, origin, loc)?;
        Some(capturing.ops)
    }

    /// Checks that every stream was joined back.
    fn all_joined(&mut self, capturing: &Capturing, origin: StreamId, loc: Loc) -> Option<()> {
        let seen = &capturing.streams[&origin];
        for (&stream, progress) in &capturing.streams {
            if seen
                .get(&stream)
                .is_none_or(|known| *known < progress[&stream])
            {
                let [name, main] = [stream, origin].map(|id| quoted(&self.plan.streams[id].name));
                let help = format!(
                    "record an event on {name} after its last step, and let {main} wait for it"
                );
                let is_left = format!("the stream {name} has not been joined back to {main}");
                return self.error_help(loc, format!("the capture ends while {is_left}"), help);
            }
        }
        Some(())
    }

    /// Notes an operation on a stream; in a capture, the stream must take part in it.
    pub(crate) fn captured_use(&mut self, stream: StreamId, loc: Loc) -> Option<()> {
        let Some(capturing) = &mut self.capturing else {
            return Some(());
        };
        if let Some(progress) = capturing.streams.get_mut(&stream) {
            *progress.entry(stream).or_default() += 1;
            return Some(());
        }
        let name = quoted(&self.plan.streams[stream].name);
        let message = format!("the stream {name} does not take part in this capture");
        let help = "first let it wait for an event that is recorded inside the capture";
        self.error_help(loc, message, help)
    }

    pub(crate) fn captured_record(
        &mut self,
        event: EventId,
        stream: StreamId,
        loc: Loc,
    ) -> Option<()> {
        self.captured_use(stream, loc)?;
        let capturing = self.capturing.as_mut()?;
        let progress = capturing.streams.get(&stream)?.clone();
        capturing.events.insert(event, progress);
        Some(())
    }

    pub(crate) fn captured_wait(
        &mut self,
        event: EventId,
        stream: StreamId,
        loc: Loc,
    ) -> Option<()> {
        let capturing = self.capturing.as_mut()?;
        let Some(known) = capturing.events.get(&event) else {
            let name = quoted(&self.plan.events[event]);
            return self.error(
                loc,
                format!("the event {name} is not recorded in this capture"),
            );
        };
        let progress = capturing.streams.entry(stream).or_default();
        for (other, done) in known {
            let at = progress.entry(*other).or_default();
            *at = (*at).max(*done);
        }
        *progress.entry(stream).or_default() += 1;
        Some(())
    }
}

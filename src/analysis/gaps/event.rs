//! What a stream waited for: the event, its record, and the operation it stands for.

use super::{At, Cause, Explanation, Question};
use crate::activity::units::duration;
use crate::activity::{Ns, Span, SyncKind, What};
use crate::trace::{LaneId, LaneKind};

/// How many rows of a lane a search goes back before it gives up: a cursor must not hang on a lane of
/// millions of waits, and what matters lies near the gap.
const HOST_ROWS_MAX: usize = 4096;

impl Question<'_> {
    /// The stream waited for an event: a wait was issued for it between its last operation and the
    /// next one, and what the event stands for ended within the gap, after the next was launched.
    pub(super) fn event(&self, next: At, call: Option<At>) -> Option<Explanation> {
        let LaneKind::Stream {
            stream, context, ..
        } = self.trace.lanes()[next.0].key().kind
        else {
            return None;
        };
        let launched = self.span(call?).start;
        let after = self.trace.lanes()[next.0]
            .previous(self.span(next).start)
            .map_or(Ns::MIN, |row| self.issued((next.0, row)));
        let (wait, event) = self.wait_before(next, (context, stream), after, launched)?;
        let record = event.and_then(|event| self.record_of(next, event, self.issued(wait)));
        let cause = self.awaited(next, wait, record)?;
        let ended = self.span(cause).end;
        if launched > ended {
            return None;
        }
        let sentence = format!(
            "{} waited for an event of {}, until {} ended {} into the gap.",
            self.stream_name(next.0),
            self.stream_name(cause.0),
            self.name(cause),
            duration(ended - self.gap.start),
        );
        let mut evidence = vec![wait, cause];
        evidence.extend(record);
        Some(self.explain(Cause::Event, sentence, evidence))
    }

    /// The last stream-wait that was issued on this stream between two host times, and its event.
    fn wait_before(
        &self,
        next: At,
        of: (u32, u32),
        after: Ns,
        before: Ns,
    ) -> Option<(At, Option<u32>)> {
        let process = self.process(next);
        let lane = self.lane(process, |kind| kind == LaneKind::Sync)?;
        let rows = self.trace.lanes()[lane].len();
        let to = self.trace.lanes()[lane]
            .starting(Span::new(Ns::MIN, before))
            .end;
        let columns = &self.trace.lanes()[lane];
        // A wait is recorded when it is issued or later, so one that starts before was issued before.
        let is_near = |row: &usize| columns.span(*row).start >= after;
        let near = (0..to.min(rows)).rev().take_while(is_near);
        near.take(HOST_ROWS_MAX).find_map(|row| {
            let at = (lane, row);
            let What::Sync(sync) = self.trace.activity(lane, row).what else {
                return None;
            };
            let is_wait = sync.kind == SyncKind::StreamWaitEvent
                && sync.stream == Some(of.1)
                && (sync.context == of.0 || sync.context == 0 || of.0 == 0);
            if !is_wait {
                return None;
            }
            let issued = self.issued(at);
            (issued >= after && issued <= before).then_some((at, sync.event))
        })
    }

    /// The last record of `event` that the host issued before `before`.
    fn record_of(&self, next: At, event: u32, before: Ns) -> Option<At> {
        let lane = self.lane(self.process(next), |kind| kind == LaneKind::Event)?;
        let is_it = |row: usize| {
            matches!(self.trace.activity(lane, row).what, What::Event(e) if e.event == event)
                && self.issued((lane, row)) <= before
        };
        let rows = self.trace.lanes()[lane].len();
        let row = (0..rows)
            .rev()
            .take(HOST_ROWS_MAX)
            .find(|&row| is_it(row))?;
        Some((lane, row))
    }

    /// What the stream waited for: the last operation on the stream of the event's record (on any
    /// other stream where there is no record), issued before it, that ended within the gap.
    fn awaited(&self, next: At, wait: At, record: Option<At>) -> Option<At> {
        let place = record.and_then(|(lane, row)| match self.trace.activity(lane, row).what {
            What::Event(e) => Some(e.place),
            _ => None,
        });
        let issued_by = self.issued(record.unwrap_or(wait));
        let process = self.process(next);
        let is_candidate = |lane: LaneId| {
            let key = self.trace.lanes()[lane].key();
            let LaneKind::Stream {
                context, stream, ..
            } = key.kind
            else {
                return false;
            };
            let is_on_it = place.is_none_or(|p| (p.context, p.stream) == (context, stream));
            lane != next.0 && key.process == process && is_on_it
        };
        (0..self.trace.lanes().len())
            .filter(|&lane| is_candidate(lane))
            .filter_map(|lane| {
                let columns = &self.trace.lanes()[lane];
                let to = columns.starting(Span::new(Ns::MIN, self.gap.end)).end;
                // An event covers what its stream was given before: the last such operation counts.
                let row = (0..to)
                    .rev()
                    .take(HOST_ROWS_MAX)
                    .find(|&row| self.issued((lane, row)) <= issued_by)?;
                let end = columns.span(row).end;
                (end > self.gap.start && end <= self.gap.end).then_some((lane, row))
            })
            .max_by_key(|&at| self.span(at).end)
    }
}

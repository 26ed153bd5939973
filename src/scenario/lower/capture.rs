//! Graphs: what a capture may hold, and which streams take part in it.
//!
//! CUDA's rule: a capture begins on one stream; another joins by waiting for an event that was
//! recorded in the capture; and at its end every one must have been joined back in the same way.

use std::collections::HashMap;

use super::super::diagnostics::{Diagnostic, quoted};
use super::super::expr::Loc;
use super::super::expr::parse::Template;
use super::super::file::Step;
use super::super::plan::{EventId, GraphSpec, Op, OpKind, StreamId};
use super::Unroll;

/// How far each stream of a capture is known to have come, by its own count of operations.
type Progress = HashMap<StreamId, u64>;

/// A capture that is going on.
#[derive(Default)]
pub(super) struct Capturing {
    pub(super) ops: Vec<Op>,
    streams: HashMap<StreamId, Progress>,
    events: HashMap<EventId, Progress>,
}

impl<'f> Unroll<'_, 'f> {
    /// Reports a step that a graph cannot hold.
    pub(super) fn not_captured(&mut self, what: &str, loc: Loc) -> Option<()> {
        if self.capturing.is_none() {
            return Some(());
        }
        let help =
            "graphs hold copies, memsets, kernels and events; do this before or after the capture";
        self.report(
            Diagnostic::error(loc.range(), format!("a graph cannot hold {what}")).help(help),
        );
        None
    }

    pub(super) fn capture(
        &mut self,
        graph: &Template,
        stream: Option<&Template>,
        body: &'f [Step],
        loc: Loc,
    ) -> Option<()> {
        self.not_captured("another capture", loc)?;
        let name = self.name(graph)?;
        let origin = self.stream(stream, None)?;
        if self.plan.streams[origin].is_default() {
            self.report(
                Diagnostic::error(loc.range(), "the default stream cannot be captured")
                    .help("name a stream: stream = \"main\""),
            );
            return None;
        }
        let start = Progress::from([(origin, 0)]);
        self.capturing = Some(Capturing {
            streams: HashMap::from([(origin, start)]),
            ..Capturing::default()
        });
        self.steps(body);
        let capturing = self.capturing.take()?;
        self.all_joined(&capturing, origin, loc)?;
        if capturing.ops.is_empty() {
            self.report(Diagnostic::warning(
                loc.range(),
                format!("the graph {} is empty", quoted(&name)),
            ));
        }
        let known = self.objects.graphs.get(&name).copied();
        let id = match known {
            Some(id) if self.plan.graphs[id].ops == capturing.ops => id,
            _ => {
                self.plan.graphs.push(GraphSpec {
                    name: name.clone(),
                    ops: capturing.ops,
                });
                self.plan.graphs.len() - 1
            }
        };
        self.objects.graphs.insert(name, id);
        self.emit(
            OpKind::Capture {
                graph: id,
                stream: origin,
            },
            loc,
        )
    }

    /// Checks that every stream was joined back.
    fn all_joined(&mut self, capturing: &Capturing, origin: StreamId, loc: Loc) -> Option<()> {
        let seen = &capturing.streams[&origin];
        let mut others: Vec<StreamId> = capturing
            .streams
            .keys()
            .copied()
            .filter(|stream| *stream != origin)
            .collect();
        others.sort_unstable();
        for stream in others {
            let done = capturing.streams[&stream][&stream];
            if seen.get(&stream).is_none_or(|known| *known < done) {
                let (name, main) = (
                    self.plan.streams[stream].name.clone(),
                    self.plan.streams[origin].name.clone(),
                );
                let help = format!(
                    "record an event on `{name}` after its last step, and let `{main}` wait for it"
                );
                let message = format!(
                    "the capture ends while the stream {} has not been joined back to {}",
                    quoted(&name),
                    quoted(&main)
                );
                self.report(Diagnostic::error(loc.range(), message).help(help));
                return None;
            }
        }
        Some(())
    }

    /// Notes an operation on a stream; in a capture, the stream must take part in it.
    pub(super) fn captured_use(&mut self, stream: StreamId, loc: Loc) -> Option<()> {
        let Some(capturing) = &mut self.capturing else {
            return Some(());
        };
        if let Some(progress) = capturing.streams.get_mut(&stream) {
            *progress.entry(stream).or_default() += 1;
            return Some(());
        }
        let message = format!(
            "the stream {} does not take part in this capture",
            quoted(&self.plan.streams[stream].name)
        );
        let help = "first let it wait for an event that is recorded inside the capture";
        self.report(Diagnostic::error(loc.range(), message).help(help));
        None
    }

    pub(super) fn captured_record(
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

    pub(super) fn captured_wait(
        &mut self,
        event: EventId,
        stream: StreamId,
        loc: Loc,
    ) -> Option<()> {
        let capturing = self.capturing.as_mut()?;
        let Some(known) = capturing.events.get(&event) else {
            let message = format!(
                "the event {} is not recorded in this capture",
                quoted(&self.plan.events[event])
            );
            self.error(loc, message);
            return None;
        };
        let progress = capturing.streams.entry(stream).or_default();
        for (other, done) in known {
            let at = progress.entry(*other).or_default();
            *at = (*at).max(*done);
        }
        *progress.entry(stream).or_default() += 1;
        Some(())
    }

    pub(super) fn launch_graph(
        &mut self,
        graph: &Template,
        stream: Option<&Template>,
        loc: Loc,
    ) -> Option<()> {
        self.not_captured("the launch of another graph", loc)?;
        let name = self.name(graph)?;
        let Some(id) = self.objects.graphs.get(&name).copied() else {
            let known = self.objects.graphs.keys().map(String::as_str);
            let help = super::super::diagnostics::did_you_mean(&name, known).unwrap_or_else(|| {
                format!("a step {{ capture = \"{name}\", do = [ … ] }} must come before")
            });
            let message = format!(
                "the graph {} has not been captured before this",
                quoted(&name)
            );
            self.report(Diagnostic::error(graph.loc.range(), message).help(help));
            return None;
        };
        let stream = self.stream(stream, None)?;
        self.feed(stream);
        let nodes = self.plan.graphs[id].ops.len() as u64;
        self.emit_many(OpKind::GraphLaunch { graph: id, stream }, loc, nodes.max(1))
    }
}

//! The source line behind what is selected.

use rustc_hash::FxHashMap;

use super::{Item, RowKind, State};
use activity::{Frame, RangeKind, Span, What};
use trace::samples::short_file;
use trace::{LaneId, LaneKind, Trace, describe};

/// A line of a source file, as the interpreter names that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Whether the timeline has what tells of lines.
pub fn has_lines(trace: &Trace) -> bool {
    let is_function = |it: LaneKind| it.range_kind() == Some(RangeKind::Function);
    trace.processes().iter().any(|it| !it.sampled.is_empty())
        || trace.has_launch_stacks()
        || trace.lanes().iter().any(|it| is_function(it.key().kind))
}

impl State {
    /// The line behind what is selected on the timeline.
    pub fn selected_source(&self) -> Option<SourceLine> {
        self.source_of(self.focus.selection.row?, self.focus.selection.item)
    }

    /// The line of the program's own that an operation, a call or a Python function comes from, or that was at work in a gap.
    pub fn source_of(&self, row: RowKind, item: Item) -> Option<SourceLine> {
        let (trace, span) = (&self.model.run.trace, item.span()?);
        let key = |id: LaneId| trace.lanes()[id].key();
        let device = || trace.streams_of(row.device()?).next().map(|it| it.0);
        let process = key(row.lane().or_else(device)?).process;
        let main = trace.processes()[process].info.pid;
        let (Some(id), Item::Record { row, .. }) = (row.lane(), item) else {
            return seen_at(trace, process, main, span, "");
        };
        match key(id).kind {
            LaneKind::Range { thread, .. } => match trace.what(id, row) {
                What::Range(it) if it.kind == RangeKind::Function => {
                    let (file, line, _) = describe::function_parts(trace.names().full(it.name))?;
                    let file = file.to_owned();
                    Some(SourceLine { file, line })
                }
                What::Range(it) => {
                    seen_at(trace, process, thread, span, trace.names().full(it.name))
                }
                _ => None,
            },
            LaneKind::Thread { thread } => seen_at(trace, process, thread, span, ""),
            // What launched it.
            _ => {
                let (call, row) = trace.call(process, trace.lanes()[id].correlation(row))?;
                let span = trace.lanes()[call].span(row);
                self.source_of(RowKind::Thread(call), Item::Record { row, span })
            }
        }
    }
}

/// The line at which a thread was sampled most often in a stretch. It is that of the frame of this name, else of the innermost one of
/// the user's own.
fn seen_at(
    trace: &Trace,
    process: usize,
    thread: u32,
    span: Span,
    name: &str,
) -> Option<SourceLine> {
    let stacks = trace.stacks();
    let is_it =
        |it: &&Frame| format!("{}:{} {}", short_file(&it.file), it.line, it.function) == name;
    let mut seen: FxHashMap<(&str, u32), u32> = FxHashMap::default();
    for sample in trace.processes()[process].sampled.within(thread, span) {
        let own = || stacks.own_line(sample.stack).map(|it| it.0);
        if let Some(frame) = stacks.frames(sample.stack).find(is_it).or_else(own) {
            *seen.entry((&frame.file, frame.line)).or_default() += 1;
        }
    }
    let ((file, line), _) = seen.into_iter().max_by_key(|it| (it.1, it.0))?;
    let file = file.to_owned();
    Some(SourceLine { file, line })
}

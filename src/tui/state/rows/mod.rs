//! What is drawn: the rows of the timeline, and which of all they are.

mod act;
pub mod counters;
pub mod lanes;
mod make;
mod quiet;

use super::focus::Focus;
use super::row::{Row, RowKind};
use super::run::Run;
use super::scope::Scope;
use activity::Span;
use counters::Counters;
use figures::memory::MemoryUse;
use lanes::Lanes;
pub use make::all;

/// The rows of the timeline.
#[derive(Debug, Default)]
pub struct Rows {
    pub list: Vec<Row>,
    /// Which of all rows those are.
    pub lanes: Lanes,
    /// Which counters of GPUs have rows.
    pub counters: Counters,
    /// Memory in use by device, as far as the rows show it.
    pub memory: Vec<MemoryUse>,
    /// Lines that the timeline has for them.
    pub(super) room: usize,
    made_of: Option<RowsKey>,
}

/// What rows are made of: as long as it is the same, they are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RowsKey {
    run: u64,
    revision: u64,
    scope: Scope,
    span: Span,
    lanes: u64,
    counters: Counters,
    prediction: (u32, bool),
    room: usize,
}

impl Rows {
    /// Another run has none yet. What was chosen stays.
    pub(super) fn begin(&mut self) {
        self.list.clear();
        self.memory.clear();
        self.made_of = None;
    }

    /// What they show.
    pub fn kinds(&self) -> impl Iterator<Item = RowKind> {
        self.list.iter().map(|row| row.kind)
    }

    /// The devices with a row of their own.
    pub fn gpus(&self) -> impl Iterator<Item = usize> {
        self.kinds().filter_map(|kind| match kind {
            RowKind::Gpu(device) => Some(device),
            _ => None,
        })
    }

    /// Makes them for what is looked at. Returns whether they had changed.
    pub(super) fn update(&mut self, run: &Run, focus: &Focus) -> bool {
        let (trace, scope) = (&run.trace, focus.camera.scope);
        let span = run.scope_span(scope).unwrap_or_default();
        let key = RowsKey {
            run: run.number,
            revision: trace.revision(),
            scope,
            span,
            lanes: self.lanes.version,
            counters: self.counters,
            prediction: focus.prediction.version(),
            room: self.room,
        };
        let before = self.made_of.replace(key);
        if before == Some(key) {
            return false;
        }
        let all = all(trace, span, scope == Scope::Whole, self.counters);
        let (minor, lines) = quiet::minor(trace, span, &all);
        // Two lines for each, and what stands below them.
        self.lanes.has_room = 2 * all.len() < self.room;
        self.list = self.lanes.choose(all, minor);
        if self.lanes.leaves_minor_out() {
            self.list.extend(lines);
        }
        make::deepen(trace, span, self.room, &mut self.list);
        make::put_prediction(&mut self.list, focus.prediction.rows(run, scope));
        if before.is_some_and(|before| before.run != run.number) {
            self.memory.clear();
        }
        self.memory
            .resize_with(trace.devices().len(), MemoryUse::default);
        for (device, memory) in self.memory.iter_mut().enumerate() {
            let kind = RowKind::Memory(device);
            if self.list.iter().any(|row| row.kind == kind) {
                memory.update(trace, Some(device));
            }
        }
        true
    }
}

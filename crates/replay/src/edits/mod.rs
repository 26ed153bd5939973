//! What-if edits as changes of a replayed [`Program`]. One file an edit; `docs/WHATIF.md` says what each assumes.
//!
//! [`apply`] makes the edits of a set in an order in which none stands in another's way, whatever order they were
//! written in. A set that finds nothing to change, or lacks a rate, is refused with the reason.

mod ahead;
mod blocking;
mod copies;
mod fuse;
mod graph;
mod memory;
mod names;
mod streams;
mod sync;
#[cfg(test)]
mod tests;
mod within;

pub use streams::is_one_graph;

use crate::program::{List, NONE, Program};
use activity::{Ns, What};
use causes::graph::{Graph, OpId};
use scenario::edit::{Edit, EditKind, EditSet};
use trace::{LaneId, Trace};
use within::Within;

/// A launch that takes so long by itself loads code.
const LOAD_MIN: Ns = 100_000;

/// What a thread is at for so long between two launches does not serve these.
const WORK_MIN: Ns = 1_000_000;

/// A thread that does no more than this between two calls goes around its loop. What takes longer is work of its own,
/// and calls on both sides of it are no neighbours. From C++ it is 0.1 to 4 us, from Python 5 to 15. A thread that is
/// quiet for as long as this counts as quiet elsewhere, too.
pub const AROUND_MAX: Ns = 20_000;

/// What edits need to know beside the program.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub trace: &'a Trace,
    pub graph: &'a Graph,
    /// Where steps of the program begin, ascending: what becomes one in an edit stays within a step.
    pub steps: &'a [Ns],
    /// Which end of what no record tells is made.
    pub bound: Bound,
}

/// What no record tells about an edit leaves it a range. It is made as it most likely comes out, or at an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// The program takes as little time as it may.
    Least,
    /// As what was recorded says.
    #[default]
    Likely,
    /// It takes as much as it may.
    Most,
}

/// What edits did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Calls and operations that they changed.
    pub count: usize,
    /// What they take for granted, and what they left alone; one sentence each.
    pub notes: Vec<String>,
    /// What no record tells, so that [`Bound::Least`] and [`Bound::Most`] differ; one phrase each.
    pub unknowns: Vec<String>,
}

impl Applied {
    /// Adds what was done elsewhere; each sentence once.
    pub(crate) fn add(&mut self, other: Applied) {
        self.count += other.count;
        for note in other.notes {
            self.note(note);
        }
        for unknown in other.unknowns {
            self.unknown(unknown);
        }
    }

    fn note(&mut self, note: impl Into<String>) {
        add(&mut self.notes, note.into());
    }

    fn unknown(&mut self, unknown: impl Into<String>) {
        add(&mut self.unknowns, unknown.into());
    }
}

/// Adds a sentence that is not there.
fn add(list: &mut Vec<String>, sentence: String) {
    if !list.contains(&sentence) {
        list.push(sentence);
    }
}

/// Makes edits on a program.
///
/// # Errors
/// Why one of them cannot be made, in a sentence.
pub fn apply<'g>(
    set: &EditSet,
    program: &mut Program<'g>,
    scene: Scene<'g>,
) -> Result<Applied, String> {
    let mut edits: Vec<&Edit> = set.edits.iter().collect();
    edits.sort_by_key(|edit| order(&edit.kind));
    let mut applied = Applied::default();
    let mut idle: Vec<String> = Vec::new();
    for edit in edits {
        let within = Within::new(edit.range.as_deref(), scene)?;
        let mut one = Applied::default();
        let on = &mut Editing {
            program: &mut *program,
            scene,
            within: &within,
            applied: &mut one,
        };
        match &edit.kind {
            EditKind::Pin { gb_per_s } => copies::pin(on, *gb_per_s)?,
            EditKind::Async => blocking::asynchronous(on),
            EditKind::NoSync => sync::no_sync(on),
            EditKind::OwnStream => streams::own_stream(on),
            EditKind::MergeCopies => copies::merge(on),
            EditKind::Graph => graph::graph(on)?,
            EditKind::Fuse { once } => fuse::fuse(on, *once)?,
            EditKind::Reuse => memory::reuse(on),
            EditKind::Scale { name, factor } => names::scale(on, name, *factor),
            EditKind::Drop { name } => names::drop(on, name),
            EditKind::Prefetch { name, workers } => ahead::prefetch(on, name, *workers)?,
        }
        if one.count == 0 {
            idle.push(nothing(&edit.kind).to_owned());
        }
        applied.add(one);
    }
    if applied.count == 0 {
        return Err(idle.into_iter().next().unwrap_or_default());
    }
    // What finds nothing beside others that do stands in nobody's way.
    for reason in idle {
        applied.note(format!("one part of the edit has no effect: {reason}"));
    }
    program.order();
    Ok(applied)
}

/// What is said where a CUDA graph has nothing to hold.
pub const NOTHING_TO_CAPTURE: &str =
    "nothing to capture: no two launches in a row without a sync or a new step between them";

/// First what changes single calls and operations, then what makes one of several, last what changes
/// their order.
fn order(kind: &EditKind) -> u8 {
    match kind {
        EditKind::Drop { .. } | EditKind::Prefetch { .. } => 0,
        EditKind::Pin { .. } => 1,
        EditKind::Reuse => 2,
        EditKind::Async => 3,
        EditKind::MergeCopies => 4,
        EditKind::Fuse { .. } => 5,
        EditKind::NoSync => 6,
        EditKind::Graph => 7,
        EditKind::OwnStream => 8,
        EditKind::Scale { .. } => 9,
    }
}

fn nothing(kind: &EditKind) -> &'static str {
    match kind {
        EditKind::Pin { .. } => "nothing to pin: no pageable copy would get faster",
        EditKind::Async => "nothing to make asynchronous: no copy of pinned memory is blocking",
        EditKind::NoSync => {
            "nothing to remove: before the end the CPU syncs only for what it works on, if at all"
        }
        EditKind::OwnStream => {
            "nothing to overlap: no stream holds several batches that each have their own copies and memory"
        }
        EditKind::MergeCopies => {
            "nothing to merge: no two copies of one direction come in a row without a sync"
        }
        EditKind::Graph => NOTHING_TO_CAPTURE,
        EditKind::Fuse { .. } => "nothing to fuse: no two kernels in a row on a stream",
        EditKind::Reuse => "nothing to reuse: no memory is allocated or freed",
        EditKind::Scale { .. } | EditKind::Drop { .. } => "nothing with this name can be changed",
        EditKind::Prefetch { .. } => "no CPU work was found inside ranges of this name",
    }
}

/// One edit being made.
struct Editing<'a, 'b> {
    program: &'a mut Program<'b>,
    scene: Scene<'b>,
    within: &'a Within,
    applied: &'a mut Applied,
}

impl Editing<'_, '_> {
    /// Whether a call lies where the edit is limited to.
    fn has_call(&self, call: u32) -> bool {
        let lane = self.program.lane(call) as LaneId;
        let begins = self.program.call_span(call).start;
        self.within.has(self.scene.trace, lane, begins)
    }

    /// Whether an operation does: by its call.
    fn has_op(&self, op: u32) -> bool {
        match self.program.ops[op as usize].call {
            NONE => self.within.0.is_none(),
            call => self.has_call(call),
        }
    }

    fn what(&self, op: u32) -> What {
        what(self.scene, self.program.op_id(op))
    }

    fn call_name(&self, call: u32) -> &str {
        let call = self.program.call_id(call);
        self.scene.graph.function(self.scene.trace, call)
    }

    /// Takes a call away; what the thread did before it stays.
    fn remove_call(&mut self, call: u32) {
        let call = &mut self.program.calls[call as usize];
        call.is_gone = true;
        call.waits = List::default();
        self.applied.count += 1;
    }

    /// Takes a call away with what the thread did to get there.
    fn remove_work(&mut self, call: u32) {
        self.remove_call(call);
        self.program.calls[call as usize].think = 0;
        self.program.hand_over.remove(&call);
    }

    /// Joins the calls of a run of operations. The first one's call stays. Those of the others go, with all that their
    /// thread did between the first and the last, unless that is kept. Returns the one that stays.
    fn join_calls(&mut self, run: &[u32], keeps_work: bool) -> Option<u32> {
        let calls = run.iter().map(|&op| self.program.ops[op as usize].call);
        let mut calls: Vec<u32> = calls.filter(|&call| call != NONE).collect();
        calls.sort_unstable();
        let (&first, &last) = (calls.first()?, calls.last()?);
        let mut lanes: Vec<u32> = calls.iter().map(|&c| self.program.lane(c)).collect();
        lanes.sort_unstable();
        lanes.dedup();
        for call in first + 1..=last {
            let of = &self.program.calls[call as usize];
            // What loads code, or works for long, does so however often is launched.
            if of.own >= LOAD_MIN {
                continue;
            }
            let keeps_work = keeps_work || of.think > WORK_MIN;
            // Calls between that wait for nothing only served the launches.
            let served = of.waits.is_empty() && lanes.contains(&self.program.lane(call));
            if served || calls.binary_search(&call).is_ok() {
                if keeps_work {
                    self.remove_call(call);
                } else {
                    self.remove_work(call);
                }
            }
        }
        Some(first)
    }

    /// By stream, its operations in order.
    fn streams(&self) -> Vec<Vec<u32>> {
        let mut streams: Vec<Vec<u32>> = Vec::new();
        for (i, op) in self.program.ops.iter().enumerate() {
            let stream = op.stream as usize;
            if streams.len() <= stream {
                streams.resize(stream + 1, Vec::new());
            }
            if !op.is_gone {
                streams[stream].push(i as u32);
            }
        }
        streams
    }

    /// Whether a step begins between two moments.
    fn is_step_between(&self, from: Ns, to: Ns) -> bool {
        let steps = self.scene.steps;
        let at = steps.partition_point(|&s| s <= from);
        steps.get(at).is_some_and(|&s| s <= to)
    }

    /// By lane of a thread, calls that are still there and wait.
    fn next_wait(&self, after: u32) -> Option<u32> {
        let lane = self.program.lane(after);
        (after + 1..self.program.calls.len() as u32).find(|&c| {
            let is_gone = self.program.calls[c as usize].is_gone;
            self.program.lane(c) == lane && !is_gone && self.program.kind(c).is_wait()
        })
    }
}

fn what(scene: Scene<'_>, op: OpId) -> What {
    let (lane, row) = scene.graph.ops.place(op);
    scene.trace.what(lane, row)
}

//! The timeline that a prediction comes to: the operations as they would run.

use rustc_hash::{FxHashMap, FxHashSet};

use super::WhatIf;
use crate::edits::{self, Bound};
use crate::program::{Program, Times};
use activity::{Activity, Batch, Def, Span, StreamInfo, What};
use scenario::edit::EditSet;
use trace::{LaneKind, SourceInfo, Trace};

impl WhatIf<'_> {
    /// Replays the repeat that begins within `window` (else the first one, or all) with edits. The timeline has nothing but
    /// operations, in the recording's own time; streams that an edit makes are named "new 1" and so on.
    ///
    /// # Errors
    /// Why nothing is predicted.
    pub fn timeline(&self, set: &EditSet, window: Option<Span>) -> Result<Trace, String> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let begins = |program: &Program<'_>| {
            let known = window.zip(program.begin());
            known.is_some_and(|(window, at)| window.contains(at))
        };
        let mut parts = self.parts.iter();
        let part = parts
            .find(|part| begins(&part.program))
            .or(self.parts.first());
        let Some(part) = part else {
            return Err("no GPU operation was recorded".to_owned());
        };
        let mut program = part.program.clone();
        edits::apply(set, &mut program, self.scene(part, Bound::Likely))?;
        Ok(self.drawn(&program, &program.replay()))
    }

    fn drawn(&self, program: &Program<'_>, times: &Times) -> Trace {
        let trace = self.trace;
        let mut batches: Vec<Batch> = (0..trace.processes().len() as u32)
            .map(|process| Batch {
                process,
                ..Batch::default()
            })
            .collect();
        let devices = trace.devices().iter().map(|d| Def::Device(d.info.clone()));
        if let Some(first) = batches.first_mut() {
            first.defs.extend(devices);
        }
        let mut said = Definitions::default();
        let lanes = trace.lanes().iter();
        let streams = lanes.filter_map(|lane| match lane.key().kind {
            LaneKind::Stream { stream, .. } => Some(stream),
            _ => None,
        });
        let free = streams.max().unwrap_or(0) + 1;
        for (i, op) in program.ops.iter().enumerate().filter(|(_, op)| !op.is_gone) {
            let (lane, row) = self.graph.ops.place(program.op_id(i as u32));
            let batch = &mut batches[trace.lanes()[lane].key().process];
            let mut what = trace.what(lane, row);
            if let Some(new) = (op.stream as usize).checked_sub(trace.lanes().len()) {
                said.stream(batch, &mut what, free, new as u32);
            }
            said.kernel(trace, batch, &what);
            let span = Span::new(times.op_start[i], times.op_end[i].max(times.op_start[i]));
            batch.items.push(Activity::new(span, 0, what));
        }
        let mut drawn = Trace::new(SourceInfo {
            simulated: trace.source.simulated,
            ..SourceInfo::default()
        });
        for mut batch in batches {
            batch.items.sort_by_key(|item| item.span.start);
            drawn.apply(batch);
        }
        drawn
    }
}

/// What was defined, so that nothing is twice.
#[derive(Default)]
struct Definitions {
    shapes: FxHashSet<(u32, u32)>,
    streams: FxHashMap<(u32, u32), u32>,
}

impl Definitions {
    /// Moves an operation to a stream that an edit made.
    fn stream(&mut self, batch: &mut Batch, what: &mut What, free: u32, new: u32) {
        let place = match what {
            What::Kernel(kernel) => &mut kernel.place,
            What::Copy(copy) => &mut copy.place,
            What::Memset(memset) => &mut memset.place,
            _ => return,
        };
        let count = self.streams.len() as u32;
        let number = *self.streams.entry((batch.process, new)).or_insert(count);
        place.stream = free + number;
        if number == count {
            let mut stream = StreamInfo::at(*place);
            stream.name = format!("new {}", number + 1);
            batch.defs.push(Def::Stream(stream));
        }
    }

    fn kernel(&mut self, trace: &Trace, batch: &mut Batch, what: &What) {
        let What::Kernel(kernel) = what else { return };
        if self.shapes.insert((batch.process, kernel.shape)) {
            let shape = trace.shape(kernel.shape);
            let (id, text) = (shape.name, trace.names().full(shape.name).to_owned());
            batch.defs.push(Def::Name { id, text });
            let id = kernel.shape;
            batch.defs.push(Def::Shape { id, shape });
        }
    }
}

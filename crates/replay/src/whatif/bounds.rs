//! What stands beside predictions: what faster kernels would gain, and what no edit can beat.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{Part, WhatIf};
use crate::program::{NONE, Program};
use activity::stats::median_time;
use activity::{Ns, What};
use causes::graph::Engine;
use trace::describe;

/// What a step gains when the operations of one name take half of their time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Faster {
    /// The kernel's short name, or the copies' direction.
    pub name: String,
    /// Time of all of them in a step.
    #[serde(rename = "time_ns")]
    pub time: Ns,
    /// What a step takes less.
    #[serde(rename = "half_gains_ns")]
    pub gain: Ns,
}

/// What a step takes at the least.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ideal {
    /// What no order of the same operations beats: the busiest engine or the longest chain.
    #[serde(rename = "gpu_ns")]
    pub gpu: Ns,
    /// The longest chain of operations that pass data on, with as many streams as it likes and a host
    /// that takes no time.
    #[serde(rename = "chain_ns")]
    pub chain: Ns,
    /// What the busiest thread does by itself in a step: its calls without their waits, and between them.
    #[serde(rename = "host_ns")]
    pub host: Ns,
    /// By engine, on the device where it takes most, the busiest first.
    pub engines: Vec<EngineTime>,
}

/// The time of an engine's operations in a step, one behind the other. Kernels that leave room for others on the SMs
/// count for as much as they fill. Those that ran together count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EngineTime {
    pub engine: &'static str,
    #[serde(rename = "time_ns")]
    pub time: Ns,
}

impl WhatIf<'_> {
    /// What half of the time would gain, for the operations that take most of it: one replay each. Those whose half gains
    /// nothing are left out.
    pub fn faster(&self, top: usize) -> Vec<Faster> {
        let mut sums: FxHashMap<String, Ns> = FxHashMap::default();
        let mut labels: Vec<Vec<String>> = Vec::new();
        for part in &self.parts {
            let ops = 0..part.program.ops.len() as u32;
            let names: Vec<String> = ops.map(|op| self.label(part.program.op_id(op))).collect();
            for ((op, i), name) in part.program.ops.iter().zip(0..).zip(&names) {
                if self.is_measured(part, part.program.op_span(i).start) {
                    *sums.entry(name.clone()).or_default() += op.time;
                }
            }
            labels.push(names);
        }
        let mut order: Vec<(String, Ns)> = sums.into_iter().collect();
        order.sort_unstable_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        order.truncate(top);
        let steps = self.samples.len().max(1) as Ns;
        let half = |(name, sum): (String, Ns)| {
            let mut samples = Vec::new();
            for (part, labels) in self.parts.iter().zip(&labels) {
                let mut program = part.program.clone();
                for (op, label) in program.ops.iter_mut().zip(labels) {
                    if *label == name {
                        op.time /= 2;
                    }
                }
                part.measure(&program, &program.replay(), &mut samples);
            }
            Faster {
                time: sum / steps,
                gain: self.measured() - median_time(&samples).unwrap_or(0),
                name,
            }
        };
        let halves = order.into_iter().map(half);
        halves.filter(|it| it.gain > 0).collect()
    }

    fn label(&self, op: u32) -> String {
        let name = match self.graph.what(self.trace, op) {
            What::Kernel(kernel) => {
                let name = self.trace.shape(kernel.shape).name;
                Some(self.trace.names().short(name))
            }
            what => describe::operation_name(self.trace, &what),
        };
        name.unwrap_or_default().to_owned()
    }

    fn is_measured(&self, part: &Part<'_>, time: Ns) -> bool {
        let at = |mark: u32| match mark {
            NONE => Ns::MAX,
            mark => part.program.op_span(mark).start,
        };
        if part.marks.is_empty() {
            return true;
        }
        let behind = part.marks.partition_point(|&mark| at(mark) <= time);
        let step = behind.checked_sub(1);
        step.is_some_and(|step| part.is_asked.get(step) == Some(&true))
    }

    /// What a step takes at the least.
    pub fn ideal(&self) -> Ideal {
        let mut needs = Needs::default();
        for part in &self.parts {
            needs.add(self, part, &part.program);
        }
        needs.ideal(self.samples.len())
    }
}

/// What is added up for an [`Ideal`].
#[derive(Default)]
pub(super) struct Needs {
    /// By device and engine: the time of its operations, the time in which it was busy, and when that ended last.
    engines: FxHashMap<(u32, &'static str), (Ns, Ns, Ns)>,
    threads: FxHashMap<u32, Ns>,
    chain: Ns,
}

impl Needs {
    /// Adds a part as it was recorded, or as an edit made it.
    pub(super) fn add(&mut self, of: &WhatIf<'_>, part: &Part<'_>, program: &Program<'_>) {
        let mut longest = LongestChain::default();
        for (op, i) in program.ops.iter().zip(0..) {
            let span = program.op_span(i);
            if op.is_gone || !of.is_measured(part, span.start) {
                continue;
            }
            let share = match op.engine.is_copy() {
                true => 1.0,
                false => f64::from(op.share),
            };
            let place = self.engines.entry((op.device, op.engine.label()));
            let (sum, busy, end) = place.or_insert((0, 0, Ns::MIN));
            *sum += (op.time as f64 * share) as Ns;
            *busy += (span.end - span.start.max(*end)).max(0);
            *end = span.end.max(*end);
            self.chain += longest.after(op.engine, op.stream, op.time);
        }
        // What comes before the first operation is no part of what is replayed.
        let from = program.begin().unwrap_or(Ns::MIN);
        for (call, c) in program.calls.iter().zip(0..) {
            let span = program.call_span(c);
            if span.end > from && of.is_measured(part, span.start) {
                let think = call.think.min((span.start - from).max(0));
                let own = call.own.min(span.end - from);
                *self.threads.entry(program.lane(c)).or_default() += own + think;
            }
        }
    }

    /// Of one of so many steps.
    pub(super) fn ideal(self, steps: usize) -> Ideal {
        let steps = steps.max(1) as Ns;
        // Kernels that ran at the same time may do so again, and devices do.
        let engine = |((_, engine), (sum, busy, _)): ((u32, _), (Ns, Ns, Ns))| EngineTime {
            engine,
            time: sum.min(busy) / steps,
        };
        let mut engines: Vec<EngineTime> = self.engines.into_iter().map(engine).collect();
        engines.sort_unstable_by_key(|it| (Reverse(it.time), it.engine));
        let mut known: Vec<&str> = Vec::new();
        engines.retain(|it| {
            !known.contains(&it.engine) && {
                known.push(it.engine);
                true
            }
        });
        let chain = self.chain / steps;
        Ideal {
            gpu: engines.first().map_or(chain, |it| it.time.max(chain)),
            chain,
            host: self.threads.into_values().max().unwrap_or(0) / steps,
            engines,
        }
    }
}

/// The longest chain of operations of a stream that pass data on: copies in, kernels, copies out.
#[derive(Default)]
struct LongestChain {
    streams: FxHashMap<u32, (Ns, Option<Engine>)>,
    longest: Ns,
}

impl LongestChain {
    /// Adds an operation; returns by how much the longest chain grew.
    fn after(&mut self, engine: Engine, stream: u32, time: Ns) -> Ns {
        let (length, last) = self.streams.get(&stream).copied().unwrap_or((0, None));
        let continues = last.is_some_and(|last| Program::carries(last, engine));
        let length = if continues { length + time } else { time };
        self.streams.insert(stream, (length, Some(engine)));
        let grown = (length - self.longest).max(0);
        self.longest += grown;
        grown
    }
}

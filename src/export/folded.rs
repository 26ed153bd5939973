//! Collapsed stacks, for flame graphs: `outermost;...;innermost weight`, one line a stack.
//!
//! Weighed by idle time, a line is what a thread that launches was seen doing while a GPU was idle: under the GPU's name, and in
//! microseconds that its samples stand for (an estimate). Weighed by samples, it is every sample of every thread, under process and
//! thread.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::activity::{Frame, Span, StackId};
use crate::analysis::{CallIndex, lines};
use crate::text::printable;
use crate::trace::Trace;
use crate::trace::samples::short_file;

/// What a stack weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Microseconds of idle time of a GPU.
    Idle,
    /// Samples.
    Samples,
}

/// Whether there is anything to be written.
#[must_use]
pub fn has_stacks(trace: &Trace) -> bool {
    let mut processes = trace.processes().iter();
    processes.any(|it| !it.sampled.is_empty())
}

/// Writes the stacks of a timeline, in order.
pub(super) fn write(trace: &Trace, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    match weight {
        Weight::Idle => {
            let calls = CallIndex::new(trace);
            for device in lines::stacks(trace, &calls) {
                let of = format!("GPU {}", trace.devices()[device.device].info.id);
                let all: u64 = device.stacks.values().sum();
                let each = device.idle_ns as f64 / all.max(1) as f64 / 1000.0;
                for (stack, samples) in device.stacks {
                    let weight = (samples as f64 * each).round() as u64;
                    *folded.entry(line(trace, &of, stack)).or_default() += weight;
                }
            }
        }
        Weight::Samples => {
            for process in trace.processes() {
                let Some(extent) = process.sampled.extent() else {
                    continue;
                };
                let whole = Span::new(extent.start, extent.end + 1);
                for thread in process.sampled.threads() {
                    let name = match process.threads.get(&thread) {
                        Some(name) => format!("{name} {thread}"),
                        None => format!("thread {thread}"),
                    };
                    let of = format!("process {};{}", process.info.pid, plain(&name));
                    for sample in process.sampled.of(thread, whole) {
                        *folded.entry(line(trace, &of, sample.stack)).or_default() += 1;
                    }
                }
            }
        }
    }
    for (stack, weight) in folded.iter().filter(|it| *it.1 > 0) {
        writeln!(out, "{stack} {weight}")?;
    }
    Ok(())
}

fn line(trace: &Trace, of: &str, stack: StackId) -> String {
    let frame = |it: &Frame| {
        let place = format!("{} ({}:{})", it.function, short_file(&it.file), it.line);
        plain(&place)
    };
    let mut frames: Vec<String> = trace.stacks().frames(stack).map(frame).collect();
    frames.push(of.to_owned());
    frames.reverse();
    frames.join(";")
}

/// Without what separates frames and lines.
fn plain(text: &str) -> String {
    printable(text).replace(';', ":")
}

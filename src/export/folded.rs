//! Collapsed stacks, for flame graphs: `outermost;...;innermost weight`, one line a stack.
//!
//! Where operations ran, a line is what a thread that launches was seen doing while a GPU was idle. The stretch is that
//! of a report's lines. It stands under the GPU's name, with the microseconds that its samples stand for (an estimate).
//! Where none ran, it is every sample of every thread, under process and thread.
//!
//! Without samples, stacks come from the program's own profiler where that recorded every call of a Python function.
//! They are right to the nanosecond. What is rounded off a line goes to the next. So the sum of any function with all
//! that it calls is right to a microsecond.

use std::collections::BTreeMap;
use std::io::{self, Write};

use activity::text::printable;
use activity::{Frame, Ns, Span, StackId};
use advice::Facts;
use figures::lines;
use trace::samples::short_file;
use trace::{Process, Trace};

/// Whether there is anything to be written.
pub fn has_stacks(trace: &Trace) -> bool {
    is_sampled(trace) || (trace.operations_extent().is_some() && lines::has_functions(trace))
}

fn is_sampled(trace: &Trace) -> bool {
    let mut processes = trace.processes().iter();
    processes.any(|it| !it.sampled.is_empty())
}

/// Writes the stacks of a timeline, in order.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    match trace.operations_extent() {
        Some(_) => by_idle_time(trace, &mut folded),
        None => by_samples(trace, &mut folded),
    }
    for (stack, weight) in folded.iter().filter(|it| *it.1 > 0) {
        writeln!(out, "{stack} {weight}")?;
    }
    Ok(())
}

fn by_idle_time(trace: &Trace, folded: &mut BTreeMap<String, u64>) {
    let facts = Facts::new(trace);
    let (calls, steps) = (facts.calls(), facts.steps());
    if !is_sampled(trace) {
        for (device, stacks) in lines::idle_stacks(trace, calls, steps) {
            let of = format!("GPU {}", trace.devices()[device].info.id);
            add(trace, &of, &stacks, folded);
        }
    }
    for device in lines::stacks(trace, calls, steps) {
        let of = format!("GPU {}", trace.devices()[device.device].info.id);
        let all: u64 = device.stacks.values().sum();
        let each = device.idle_ns as f64 / all.max(1) as f64 / 1000.0;
        for (stack, samples) in device.stacks {
            let weight = (samples as f64 * each).round() as u64;
            *folded.entry(line(trace, &of, stack)).or_default() += weight;
        }
    }
}

fn by_samples(trace: &Trace, folded: &mut BTreeMap<String, u64>) {
    for process in trace.processes() {
        let Some(extent) = process.sampled.extent() else {
            continue;
        };
        let whole = Span::new(extent.start, extent.end + 1);
        for thread in process.sampled.threads() {
            let of = thread_of(process, thread);
            for sample in process.sampled.within(thread, whole) {
                *folded.entry(line(trace, &of, sample.stack)).or_default() += 1;
            }
        }
    }
}

fn thread_of(process: &Process, thread: u32) -> String {
    let name = match process.threads.get(&thread) {
        Some(name) => format!("{name} {thread}"),
        None => format!("thread {thread}"),
    };
    format!("process {};{}", process.info.pid, plain(&name))
}

/// Adds stacks of recorded functions, in microseconds.
fn add(trace: &Trace, of: &str, stacks: &lines::Stacks, folded: &mut BTreeMap<String, u64>) {
    let mut exact: BTreeMap<String, Ns> = BTreeMap::new();
    for (stack, time) in stacks {
        let names = stack.iter().map(|&name| trace.names().full(name));
        let frames: Vec<String> = names.map(|name| plain(&lines::frame(name))).collect();
        // Names that read alike are one.
        *exact
            .entry(format!("{of};{}", frames.join(";")))
            .or_default() += time;
    }
    // What a function calls stands right behind it.
    let (mut sum, mut told) = (0, 0);
    for (line, time) in exact {
        sum += time;
        let weight = (sum + 500) / 1000 - told;
        told += weight;
        *folded.entry(line).or_default() += weight.unsigned_abs();
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use activity::RangeKind;
    use trace::testing::Scene;

    /// In microseconds, by hand: idle from 10 to 40, of which each function has what no function within it has.
    #[test]
    fn recorded_functions_are_stacks_to_the_nanosecond() {
        const US: i64 = 1000;
        let mut scene = Scene::new();
        scene.kernel("k", 7, 0, 10 * US);
        scene.call("cudaLaunchKernel", 38 * US, 39 * US);
        scene.kernel("k", 7, 40 * US, 50 * US);
        for (name, start, end) in [
            ("train.py(1): <module>", 0, 100),
            ("train.py(5): step;s", 12, 38),
            ("torch/nn/module.py(9): forward", 20, 30),
            ("<built-in method item of Tensor object at 0x7f>", 32, 36),
        ] {
            scene.range(RangeKind::Function, name, 0, start * US, end * US);
        }
        let trace = scene.trace();
        let mut out = Vec::new();
        write(&trace, &mut out).expect("written");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "GPU 0;<module> (train.py:1) 4\n\
             GPU 0;<module> (train.py:1);step:s (train.py:5) 12\n\
             GPU 0;<module> (train.py:1);step:s (train.py:5);forward (torch/nn/module.py:9) 10\n\
             GPU 0;<module> (train.py:1);step:s (train.py:5);item 4\n"
        );

        // Ten functions of 400 ns each, in a gap of 4 us.
        let mut scene = Scene::new();
        scene.kernel("k", 7, -US, 0);
        scene.call("cudaLaunchKernel", 3_999, 4_000);
        scene.kernel("k", 7, 4 * US, 5 * US);
        for at in 0..10 {
            let name = format!("a.py({at}): f");
            scene.range(RangeKind::Function, &name, 0, 400 * at, 400 * (at + 1));
        }
        let mut out = Vec::new();
        write(&scene.trace(), &mut out).expect("written");
        assert_eq!(String::from_utf8_lossy(&out).lines().count(), 4);
    }
}

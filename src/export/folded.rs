//! Collapsed stacks, for flame graphs: `outermost;...;innermost weight`, one line a stack.
//!
//! Weighed by idle time, a line is what a thread that launches was seen doing while a GPU was idle. The stretch is that
//! of a report's lines. It stands under the GPU's name, with the microseconds that its samples stand for (an estimate).
//! Weighed by samples, it is every sample of every thread, under process and thread.
//!
//! Without samples, stacks come from the program's own profiler where that recorded every call of a Python function.
//! They are right to the nanosecond: of idle time, and, weighed by time, of every thread. What is rounded off a line
//! goes to the next. So the sum of any function with all that it calls is right to a microsecond.

use std::collections::BTreeMap;
use std::io::{self, Write};

use activity::text::printable;
use activity::{Frame, Ns, Span, StackId};
use analysis::{Facts, lines};
use trace::samples::short_file;
use trace::{Process, Trace};

/// What a stack weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Weight {
    /// Microseconds of GPUs' idle time, by the stacks of the threads that launch.
    Idle,
    /// Samples of all threads.
    Samples,
    /// Microseconds of all threads, by the Python functions that the program's own profiler recorded.
    Time,
}

/// Whether there is anything to be written.
pub fn has_stacks(trace: &Trace) -> bool {
    let mut processes = trace.processes().iter();
    processes.any(|it| !it.sampled.is_empty())
}

/// Writes the stacks of a timeline, in order.
pub(super) fn write(trace: &Trace, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    match weight {
        Weight::Idle => {
            let facts = Facts::new(trace);
            let (calls, steps) = (facts.calls(), facts.steps());
            if !has_stacks(trace) {
                for (device, stacks) in lines::idle_stacks(trace, calls, steps) {
                    let of = format!("GPU {}", trace.devices()[device].info.id);
                    add(trace, &of, &stacks, &mut folded);
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
        Weight::Time => {}
        Weight::Samples => {
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
    }
    if weight == Weight::Time {
        for ((process, thread), stacks) in lines::thread_stacks(trace) {
            let of = thread_of(&trace.processes()[process], thread);
            add(trace, &of, &stacks, &mut folded);
        }
    }
    for (stack, weight) in folded.iter().filter(|it| *it.1 > 0) {
        writeln!(out, "{stack} {weight}")?;
    }
    Ok(())
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
    use analysis::testing::Scene;

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
        let folded = |weight| {
            let mut out = Vec::new();
            write(&trace, weight, &mut out).expect("written");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(
            folded(Weight::Idle),
            "GPU 0;<module> (train.py:1) 4\n\
             GPU 0;<module> (train.py:1);step:s (train.py:5) 12\n\
             GPU 0;<module> (train.py:1);step:s (train.py:5);forward (torch/nn/module.py:9) 10\n\
             GPU 0;<module> (train.py:1);step:s (train.py:5);item 4\n"
        );
        let whole = folded(Weight::Time);
        let weights = whole
            .lines()
            .filter_map(|it| it.rsplit_once(' ')?.1.parse::<u64>().ok());
        assert_eq!(weights.sum::<u64>(), 100);
        assert!(whole.contains(";<module> (train.py:1) 74\n"), "{whole}");
        assert_eq!(folded(Weight::Samples), "");

        // Ten functions of 400 ns each: 4 us.
        let mut scene = Scene::new();
        for at in 0..10 {
            let name = format!("a.py({at}): f");
            scene.range(RangeKind::Function, &name, 0, 400 * at, 400 * (at + 1));
        }
        let mut out = Vec::new();
        write(&scene.trace(), Weight::Time, &mut out).expect("written");
        assert_eq!(String::from_utf8_lossy(&out).lines().count(), 4);
    }
}

//! Traces of XLA (JAX, TensorFlow 2) and timelines of TensorFlow 1: their events have none of Kineto's categories.
//!
//! Only the metadata say which process is a GPU and which thread of it a stream, and they may come last. So events wait
//! until all are read. The formats are those of <https://github.com/openxla/xprof> and of TensorFlow's `client/timeline.py`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::event::{Args, Event};
use super::values::{direction, thread_id, times};
use crate::gather::Gather;
use activity::{
    Copy, Correlation, Def, HostCall, Kernel, LaunchShape, MemoryKind, Memset, Place, Range,
    RangeKind, Span, What,
};

/// Who writes such profiles.
pub(super) const WRITER: &str = "the profiler of TensorFlow and JAX";

/// An event until the names of its process and thread are known.
#[derive(Debug)]
pub(super) struct PendingEvent {
    track: (i64, i64),
    span: Span,
    name: Box<str>,
    correlation: Correlation,
    /// XLA's "key:value" words on a kernel or a copy.
    details: Box<str>,
    /// TensorFlow 1: the op of the program that it is of, by its full name.
    op: Box<str>,
}

/// What a thread of a trace stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Track {
    Host,
    /// TensorFlow 1: when the ops of a device were run, which put those of a GPU on its streams.
    Ops,
    Stream(Place),
    /// All streams of a GPU together, which those with numbers repeat.
    AllStreams(u32),
    /// What lies on streams once more: XLA's modules and ops.
    Other,
}

fn track(process: &str, thread: &str) -> Track {
    let process = process.to_ascii_lowercase();
    let number = |text: &str| {
        let digits = text.find(|c: char| !c.is_ascii_digit());
        text[..digits.unwrap_or(text.len())].parse::<u32>().ok()
    };
    if process.starts_with("/job:") && !process.contains("/stream:") {
        return Track::Ops;
    }
    let Some((_, gpu)) = process.split_once("gpu:") else {
        return Track::Host;
    };
    let Some(device) = number(gpu) else {
        return Track::Other;
    };
    let of_process = gpu.split_once("/stream:").map(|it| it.1);
    match thread.strip_prefix("Stream #").or(of_process) {
        Some(all) if all.starts_with("all") => Track::AllStreams(device),
        Some(stream) => number(stream).map_or(Track::Other, |stream| {
            Track::Stream(Place {
                device,
                stream,
                ..Place::default()
            })
        }),
        None => Track::Other,
    }
}

/// TensorFlow 1 counts the threads of each device anew.
fn thread_of((process, thread): (i64, i64), track: Track) -> u32 {
    thread_id(Some(match track {
        Track::Ops => (process << 16) + thread,
        _ => thread,
    }))
}

/// "TensorFlow CPU:0" of "/job:localhost/replica:0/task:0/device:CPU:0 Compute".
fn ops_of(process: &str) -> String {
    let device = process.rsplit('/').next().unwrap_or_default();
    let device = device.strip_prefix("device:").unwrap_or(device);
    format!("TensorFlow {}", device.trim_end_matches(" Compute"))
}

/// The value of a key in "regs:64 grid:128,1,1".
fn detail<'t>(details: &'t str, key: &str) -> Option<&'t str> {
    let mut words = details.split_whitespace();
    words.find_map(|word| word.strip_prefix(key)?.strip_prefix(':'))
}

fn number<T: std::str::FromStr + Default>(details: &str, key: &str) -> T {
    let value = detail(details, key).and_then(|text| text.parse().ok());
    value.unwrap_or_default()
}

fn sizes(details: &str, key: &str) -> [u32; 3] {
    let texts = detail(details, key).unwrap_or_default();
    let mut sizes = texts.split(',').map(|text| text.parse().unwrap_or(0));
    [0; 3].map(|_| sizes.next().unwrap_or(0))
}

/// "step.py(12): train" of "$step.py:12 train", as Kineto names functions of Python.
fn function(name: &str) -> Option<String> {
    let (place, function) = name.strip_prefix('$')?.split_once(' ')?;
    Some(match place.rsplit_once(':') {
        Some((file, line)) => format!("{file}({line}): {function}"),
        None => format!("{place} {function}"),
    })
}

/// "cuLaunchKernel", "cudaMemcpyAsync".
fn is_call(name: &str) -> bool {
    let rest = name.strip_prefix("cu").unwrap_or_default();
    rest.starts_with("da") || rest.starts_with(|c: char| c.is_ascii_uppercase())
}

impl PendingEvent {
    /// Keeps an event without a category of Kineto's; `None` for one without a time.
    pub(super) fn of(event: &Event<'_>) -> Option<PendingEvent> {
        let (start, end) = times(event)?;
        let args = Args::read(event);
        let correlation = args.correlation.and_then(|it| it.try_into().ok());
        Some(PendingEvent {
            track: (event.pid.unwrap_or(0), event.tid.unwrap_or(0)),
            span: Span { start, end },
            name: event.name.0.as_ref().into(),
            correlation: correlation.unwrap_or(0),
            details: args.details.0.as_ref().into(),
            op: args.name.0.as_ref().into(),
        })
    }

    /// What ran on a stream.
    fn on_gpu(&self, place: Place, gather: &mut Gather) -> What {
        let lower = self.name.to_ascii_lowercase();
        let details = &*self.details;
        if lower.contains("memcpy") {
            let kind = |key| MemoryKind::named(detail(details, key).unwrap_or_default());
            return What::Copy(Copy {
                place,
                // "MemcpyH2D", TensorFlow 1: "MEMCPYHtoD".
                direction: direction(&self.name.replace('2', "to")),
                from: kind("kind_src"),
                to: kind("kind_dst"),
                // Corrected when all calls are known.
                is_async: true,
                bytes: number(details, "size"),
                peer: detail(details, "dest").map_or(place.device, |_| number(details, "dest")),
                graph: 0,
                node: 0,
            });
        }
        if lower.contains("memset") {
            return What::Memset(Memset {
                place,
                bytes: number(details, "size"),
                graph: 0,
                node: 0,
            });
        }
        let shape = LaunchShape {
            name: gather.name(0, &self.name),
            grid: sizes(details, "grid"),
            block: sizes(details, "block"),
            registers: number(details, "regs"),
            static_shared: number(details, "static_shared"),
            dynamic_shared: number(details, "dynamic_shared"),
            ..LaunchShape::default()
        };
        What::Kernel(Kernel {
            place,
            shape: gather.shape(0, shape),
            graph: 0,
            node: 0,
        })
    }

    /// The run of an op that put something on a stream.
    fn launch(&self, gather: &mut Gather) -> What {
        let name = gather.name(0, &format!("Launch of {}", self.name));
        let (thread, code) = (self.thread(Track::Ops), 0);
        What::Call(HostCall { thread, name, code })
    }

    fn thread(&self, track: Track) -> u32 {
        thread_of(self.track, track)
    }

    /// The call of CUDA that an event on the host is. TensorFlow names it after what it puts on a stream.
    fn call(&self, has_put: bool) -> Option<&str> {
        if is_call(&self.name) {
            return Some(&self.name);
        }
        let is_async = detail(&self.details, "async") != Some("0");
        has_put.then(|| match self.name.to_ascii_lowercase().as_str() {
            name if name.starts_with("memcpy") && is_async => "cuMemcpyAsync",
            name if name.starts_with("memcpy") => "cuMemcpy",
            name if name.starts_with("memset") => "cuMemsetAsync",
            _ => "cuLaunchKernel",
        })
    }

    /// What a thread of the host did. `has_put`: something on a stream has its number.
    fn on_host(&self, track: Track, has_put: bool, gather: &mut Gather) -> What {
        let thread = self.thread(track);
        if let Some(call) = self.call(has_put) {
            let name = gather.name(0, call);
            gather.call_named(0, self.correlation, name, call);
            let code = 0;
            return What::Call(HostCall { thread, name, code });
        }
        let function = function(&self.name);
        What::Range(Range {
            kind: match function {
                Some(_) => RangeKind::Function,
                None => RangeKind::CpuOp,
            },
            name: gather.name(0, function.as_deref().unwrap_or(&self.name)),
            thread,
            index: 0,
        })
    }
}

/// Names of processes by pid, and of threads by pid and tid.
type Names<'n> = (
    &'n FxHashMap<i64, String>,
    &'n FxHashMap<(i64, i64), String>,
);

/// Gathers what has waited, now that all names are known. Says how many operations that were, and of what each event is that was
/// left out.
pub(super) fn settle(
    waiting: &[PendingEvent],
    (processes, threads): Names<'_>,
    gather: &mut Gather,
) -> (u64, Vec<String>) {
    let mut tracks: FxHashMap<(i64, i64), Track> = FxHashMap::default();
    let name = |of: Option<&String>| of.cloned().unwrap_or_default();
    for it in waiting {
        tracks.entry(it.track).or_insert_with(|| {
            track(
                &name(processes.get(&it.track.0)),
                &name(threads.get(&it.track)),
            )
        });
    }
    let numbered = tracks.values().filter_map(|track| match track {
        Track::Stream(place) => Some(place.device),
        _ => None,
    });
    let numbered: FxHashSet<u32> = numbered.collect();
    let has_gpu = !tracks
        .values()
        .all(|it| matches!(it, Track::Host | Track::Ops));
    let mut all = processes.values();
    let is_of_xla = all.any(|it| it.starts_with("/device:") || it.starts_with("/host:"));
    let is_on_stream =
        |it: &&PendingEvent| matches!(tracks[&it.track], Track::Stream(_) | Track::AllStreams(_));
    let on_stream = || waiting.iter().filter(is_on_stream);
    let launched: FxHashSet<&str> = on_stream().map(|it| &*it.op).collect();
    let put: FxHashSet<Correlation> = on_stream().map(|it| it.correlation).collect();
    let has_put = |it: &PendingEvent| it.correlation != 0 && put.contains(&it.correlation);
    // What was launched has the number of its op.
    let ops = (1..).zip(waiting).filter(|(_, it)| {
        tracks[&it.track] == Track::Ops && !it.op.is_empty() && launched.contains(&*it.op)
    });
    let ops: FxHashMap<&str, Correlation> = ops.map(|(at, it)| (&*it.op, at)).collect();
    // Where nothing of a GPU's streams was kept its ops have launched what is missing.
    let is_of_gpu = |pid: i64| {
        let process = name(processes.get(&pid)).to_ascii_lowercase();
        process.contains("gpu:")
    };
    let runs_unseen = |it: &PendingEvent| !has_gpu && is_of_gpu(it.track.0);
    let (mut operations, mut left_out) = (0, Vec::new());
    for it in waiting {
        let track = tracks[&it.track];
        let of_op = ops.get(&*it.op).copied();
        let place = match track {
            Track::Stream(place) => Some(place),
            Track::AllStreams(device) if !numbered.contains(&device) => Some(Place {
                device,
                ..Place::default()
            }),
            Track::Ops => None,
            Track::Host if has_gpu || is_of_xla => None,
            // Without a GPU it may be a trace of anything.
            Track::Host => {
                left_out.push("events without a category".to_owned());
                continue;
            }
            Track::AllStreams(_) | Track::Other => {
                left_out.push(name(threads.get(&it.track).or(processes.get(&it.track.0))));
                continue;
            }
        };
        operations += u64::from(place.is_some());
        let what = match place {
            Some(place) => it.on_gpu(place, gather),
            None if track == Track::Ops && (of_op.is_some() || runs_unseen(it)) => {
                it.launch(gather)
            }
            None => it.on_host(track, has_put(it), gather),
        };
        let correlation = of_op.unwrap_or(it.correlation);
        gather.push(0, (it.span.start, it.span.end), correlation, what);
    }
    for (track, of) in tracks {
        let name = match of {
            Track::Host if has_gpu || is_of_xla => threads.get(&track).cloned(),
            Track::Ops => processes.get(&track.0).map(|it| ops_of(it)),
            _ => None,
        };
        let thread = thread_of(track, of);
        if let Some(name) = name {
            gather.define(0, Def::Thread { thread, name });
        }
    }
    (operations, left_out)
}

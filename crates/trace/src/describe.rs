//! Names the things of a timeline: streams, threads, devices, processes, operations. Every view, export and sentence
//! asks here, so a stream has one name.

use super::{Lane, LaneId, LaneKey, LaneKind, Trace};
use activity::text::{NAME_MAX, cut_middle};
use activity::{Direction, NameId, Ns, Place, RangeKind, Span, StreamInfo, SyncKind, What};

/// Whether a CPU thread waits in this record for the GPU.
pub fn is_host_wait(trace: &Trace, what: &What) -> bool {
    match what {
        What::Sync(sync) => sync.kind != SyncKind::StreamWaitEvent,
        What::Call(call) => trace.names().full(call.name).contains("Synchronize"),
        _ => false,
    }
}

/// What the process recorded about a stream. `None` for lanes that are no streams.
pub fn stream_info(trace: &Trace, key: LaneKey) -> Option<&StreamInfo> {
    let LaneKind::Stream {
        context, stream, ..
    } = key.kind
    else {
        return None;
    };
    let process = trace.processes().get(key.process)?;
    process.streams.get(&(context, stream))
}

/// CUPTI's number for the default stream of a program's first context, where no record says which one it is.
const DEFAULT: u32 = 7;

/// The legacy default stream of a device that has other streams, too.
pub fn default_stream(trace: &Trace, device: usize) -> Option<LaneId> {
    let streams = || trace.streams_of(device).filter(|it| !it.1.is_empty());
    let is_said = |lane: &Lane| stream_info(trace, lane.key()).is_some_and(|it| it.is_default);
    let is_unsaid = |lane: &Lane| {
        let process = &trace.processes()[lane.key().process];
        let is_numbered = matches!(
            lane.key().kind,
            LaneKind::Stream {
                stream: DEFAULT,
                ..
            }
        );
        is_numbered && !process.streams.values().any(|it| it.is_default)
    };
    let mut found = streams().filter(|(_, lane)| is_said(lane) || is_unsaid(lane));
    found
        .next()
        .map(|it| it.0)
        .filter(|_| streams().count() > 2)
}

/// A stream: the program's own name for it, "default", or its id. Empty for lanes that are no streams.
pub fn stream(trace: &Trace, key: LaneKey) -> String {
    let LaneKind::Stream { stream, .. } = key.kind else {
        return String::new();
    };
    match stream_info(trace, key) {
        Some(info) if !info.name.is_empty() => info.name.clone(),
        Some(info) if info.is_default => "default".to_owned(),
        _ => format!("stream {stream}"),
    }
}

/// The stream at a place.
pub fn stream_at(trace: &Trace, process: usize, place: Place) -> String {
    let kind = place.into();
    stream(trace, LaneKey { process, kind })
}

/// A thread: the program's own name for it, "main" for the one whose id is the process's, or its id.
pub fn thread(trace: &Trace, process: usize, thread: u32) -> String {
    let process = trace.processes().get(process);
    let is_main = process.is_some_and(|p| p.info.pid == thread && thread != 0);
    if let Some(name) = process.and_then(|p| p.threads.get(&thread)) {
        // PyTorch's profiler names every thread like this, the main one too: "thread 4711 (python3)".
        let is_number = name.starts_with(&format!("thread {thread} ("));
        if !(is_main && is_number) {
            return name.clone();
        }
    }
    if is_main {
        return "main".to_owned();
    }
    format!("thread {thread}")
}

/// A device with its model: "GPU 0 NVIDIA H200".
pub fn device(trace: &Trace, device: usize) -> String {
    let name = trace.devices().get(device).map_or("", |d| &d.info.name);
    format!("{} {name}", device_id(trace, device))
        .trim_end()
        .to_owned()
}

/// A device by its id alone: "GPU 0".
pub fn device_id(trace: &Trace, device: usize) -> String {
    let known = trace.devices().get(device);
    let id = known.map_or(device as u32, |d| d.info.id);
    format!("GPU {id}")
}

/// A process in a few words: rank, process id, command, and whether it ended badly.
pub fn process(trace: &Trace, process: usize) -> String {
    let Some(info) = trace.processes().get(process).map(|p| &p.info) else {
        return String::new();
    };
    let mut parts = Vec::new();
    parts.extend(info.rank.map(|rank| format!("rank {rank}")));
    parts.extend((info.pid != 0).then(|| format!("pid {}", info.pid)));
    parts.extend((!info.command.is_empty()).then(|| info.command.clone()));
    parts.extend((info.ended_well == Some(false)).then(|| "did not end well".to_owned()));
    parts.join(" · ")
}

/// An activity in a word or two: "H2D", "memset", a kernel's short name, the function of a host call.
pub fn activity(trace: &Trace, what: &What) -> String {
    match what {
        What::Kernel(k) => trace.names().short(trace.shape(k.shape).name).to_owned(),
        What::Copy(c) => c.direction.label().to_owned(),
        What::Memset(_) => "memset".to_owned(),
        What::Graph(g) => format!("graph {}", g.graph),
        What::Call(c) => trace.names().full(c.name).to_owned(),
        What::Overhead(o) => trace.names().full(o.name).to_owned(),
        What::Range(r) => trace.names().full(r.name).to_owned(),
        What::Sync(_) => "sync".to_owned(),
        What::Memory(_) => "memory".to_owned(),
        What::Event(_) => "event".to_owned(),
    }
}

/// What the host was in, as tables call it, too: a call, an operator, a range. These have no parameters to be left out
/// (`enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__`, which is the DataLoader).
pub fn host_name(trace: &Trace, name: NameId) -> String {
    host_label(trace.names().full(name))
}

/// Whether TensorFlow calls so what brings the next batch.
pub fn is_input(name: &str) -> bool {
    name.starts_with("Iterator::") || name.starts_with("IteratorGetNext")
}

/// The same of such a name; of a Python function without the folders of its file.
pub fn host_label(name: &str) -> String {
    if let Some((file, line, function)) = function_parts(name) {
        let file = file.rsplit('/').next().unwrap_or(file);
        return cut_middle(&format!("{function} at {file}:{line}"), 2 * NAME_MAX);
    }
    match name.split_once('#') {
        Some(("enumerate(DataLoader)", _)) => "DataLoader".to_owned(),
        _ if is_input(name) => format!("tf.data ({})", cut_middle(name, NAME_MAX)),
        // XLA's ranges have keys and values: what one is of is the first.
        Some((of, rest)) if of.ends_with(':') && rest.contains('=') => {
            let first = rest.split([',', '#']).next().unwrap_or(rest);
            let value = first.split_once('=').map_or(first, |it| it.1);
            match of {
                "Thunk:" => cut_middle(value.rsplit('/').next().unwrap_or(value), NAME_MAX),
                of => cut_middle(&format!("{of} {value}"), NAME_MAX),
            }
        }
        _ => cut_middle(name, NAME_MAX),
    }
}

/// "torch/nn/module.py(99): forward", as PyTorch's profiler calls a Python function, as its parts. `None` for what is built in.
pub fn function_parts(name: &str) -> Option<(&str, u32, &str)> {
    let (place, function) = name.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some((file, line.parse().ok()?, function))
}

/// The kind of a GPU operation, in a word. `None` for other records.
pub fn operation_kind(what: &What) -> Option<&'static str> {
    match what {
        What::Kernel(_) => Some("kernel"),
        What::Copy(_) => Some("copy"),
        What::Memset(_) => Some("memset"),
        What::Graph(_) => Some("graph"),
        _ => None,
    }
}

/// What GPU operations are added up under: a kernel's whole name, a copy's direction, "memset", "graph". `None` for other
/// records.
pub fn operation_name<'t>(trace: &'t Trace, what: &What) -> Option<&'t str> {
    match what {
        What::Kernel(k) => Some(trace.names().full(trace.shape(k.shape).name)),
        What::Copy(c) => Some(c.direction.label()),
        _ => operation_kind(what),
    }
}

/// An activity with the whole name of a kernel, and with what a sync waits for.
pub fn whole(trace: &Trace, what: &What) -> String {
    match what {
        What::Kernel(k) => trace.names().full(trace.shape(k.shape).name).to_owned(),
        What::Sync(s) => match s.kind {
            SyncKind::Event => "event sync",
            SyncKind::StreamWaitEvent => "stream wait event",
            SyncKind::Stream => "stream sync",
            SyncKind::Context => "device sync",
        }
        .to_owned(),
        _ => activity(trace, what),
    }
}

/// An activity as a sentence names it: "the H2D copy", "a wait for the device".
pub fn in_sentence(trace: &Trace, what: &What) -> String {
    match what {
        What::Copy(c) if c.direction == Direction::Other => "a copy".to_owned(),
        What::Copy(c) => format!("the {} copy", c.direction.label()),
        What::Memset(_) => "the memset".to_owned(),
        What::Sync(s) => match s.kind {
            SyncKind::Event => "a wait for an event",
            SyncKind::StreamWaitEvent => "a stream's wait",
            SyncKind::Stream => "a wait for a stream",
            SyncKind::Context => "a wait for the device",
        }
        .to_owned(),
        What::Memory(_) => "an allocation".to_owned(),
        What::Event(_) => "an event".to_owned(),
        What::Kernel(_) | What::Graph(_) | What::Call(_) | What::Overhead(_) | What::Range(_) => {
            activity(trace, what)
        }
    }
}

/// The stream of a lane, as a sentence names it.
pub fn lane_stream(trace: &Trace, lane: LaneId) -> String {
    match trace.lanes().get(lane).map(|lane| lane.key()) {
        Some(key) if matches!(key.kind, LaneKind::Stream { .. }) => stream(trace, key),
        _ => "another lane".to_owned(),
    }
}

/// The longest wait for PyTorch's loader that ends before a moment.
pub fn loads(trace: &Trace, until: Ns) -> Option<Ns> {
    let is_loader = |name: &str| name.contains("DataLoader") && name.contains("__next__");
    let loads = ranges(trace, until).filter(|it| it.0.end <= until && is_loader(it.2));
    loads.map(|it| it.0.len()).max()
}

/// The ranges that begin before a moment: when, of which kind, by which name.
pub fn ranges(trace: &Trace, until: Ns) -> impl Iterator<Item = (Span, RangeKind, &str)> {
    let mut all = Vec::new();
    for (id, lane) in trace.lanes().iter().enumerate() {
        if !matches!(lane.key().kind, LaneKind::Range { .. }) {
            continue;
        }
        for row in lane.starting(Span::new(Ns::MIN, until)) {
            if let What::Range(of) = trace.what(id, row) {
                all.push((lane.span(row), of.kind, trace.names().full(of.name)));
            }
        }
    }
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceInfo;
    use activity::{Batch, Def, DeviceInfo, ProcessInfo};

    fn key(stream: u32) -> LaneKey {
        LaneKey {
            process: 0,
            kind: LaneKind::Stream {
                device: 0,
                context: 1,
                stream,
            },
        }
    }

    fn trace(evil: &str) -> Trace {
        let stream = |stream, name: String, is_default| {
            Def::Stream(StreamInfo {
                context: 1,
                stream,
                name,
                is_default,
                ..StreamInfo::default()
            })
        };
        let mut trace = Trace::new(SourceInfo::default());
        trace.apply(Batch {
            defs: vec![
                Def::Device(DeviceInfo {
                    name: format!("NVIDIA {evil}"),
                    link: evil.to_owned(),
                    ..DeviceInfo::default()
                }),
                Def::Process(ProcessInfo {
                    pid: 7,
                    command: format!("python{evil}"),
                    rank: Some(3),
                    host: evil.to_owned(),
                    versions: evil.to_owned(),
                    ended_well: Some(false),
                    ..ProcessInfo::default()
                }),
                stream(7, String::new(), true),
                stream(13, format!("copy{evil}"), false),
                Def::Thread {
                    thread: 9,
                    name: format!("loader{evil}"),
                },
            ],
            ..Batch::default()
        });
        trace
    }

    #[test]
    fn things_have_names() {
        let t = trace("");
        assert_eq!(stream(&t, key(7)), "default");
        assert_eq!(stream(&t, key(13)), "copy");
        assert_eq!(stream(&t, key(14)), "stream 14");
        assert_eq!(thread(&t, 0, 7), "main");
        assert_eq!(thread(&t, 0, 9), "loader");
        assert_eq!(thread(&t, 0, 10), "thread 10");
        let mut t = t;
        t.processes[0]
            .threads
            .insert(7, "thread 7 (python3)".to_owned());
        assert_eq!(thread(&t, 0, 7), "main");
        assert_eq!(device(&t, 0), "GPU 0 NVIDIA");
        assert_eq!(device_id(&t, 0), "GPU 0");
        assert_eq!(process(&t, 0), "rank 3 · pid 7 · python · did not end well");
    }

    #[test]
    fn what_sources_say_of_things_is_fit_to_be_shown_wherever_it_is_asked_for() {
        let t = trace("\u{1b}[2J\u{200b}\u{202e}");
        let info = &t.devices()[0].info;
        for text in [
            stream(&t, key(13)),
            thread(&t, 0, 9),
            device(&t, 0),
            process(&t, 0),
            info.name.clone(),
            info.link.clone(),
            t.processes()[0].info.versions.clone(),
        ] {
            assert!(text.contains("\\u{1b}[2J\\u{200b}\\u{202e}"), "{text:?}");
            assert!(
                !text.chars().any(activity::text::is_unprintable),
                "{text:?}"
            );
        }
    }
}

//! Converts events of `traceEvents` to activities.
//!
//! | category (old one) | becomes |
//! |---|---|
//! | `kernel` (`Kernel`), `gpu_memcpy` (`Memcpy`), `gpu_memset` (`Memset`), cuptop's own `gpu_graph` | the operation |
//! | `cuda_runtime`, `cuda_driver` (`Runtime`) | a host call |
//! | `cuda_sync`, `cuda_event`, `overhead` | a sync, an event record, an overhead |
//! | `user_annotation`, `cpu_op` (`Operator`), `python_function` | a range of its own kind on its host thread: what the host did in a gap |
//! | ONNX Runtime's `Node` and `Session` | a range, named by the operator and by who ran it |
//! | none, TensorFlow 1's `Op` | what the names of its process and thread say ([`xla`](super::xla)) |
//!
//! Flow arrows (`ac2g`, `fwdbwd`) tell nothing that correlation ids do not. Everything else is counted and named to the
//! user: the allocator's `cpu_instant_event`, and `gpu_user_annotation`, which draws host ranges again on the GPU. The
//! addresses in names of Python's built-in functions tell nothing, and would make each name another. They are left out.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::event::{Args, Event, OLD_GPU, id_of};
use super::header::Header;
use super::values::{direction, memory_kinds, thread_id, times};
use super::xla::{self, PendingEvent};
use crate::gather::{self, Gather};
use activity::{
    Collective, Copy, Def, DeviceInfo, EventRecord, Graph, HostCall, Kernel, LaunchShape, Memset,
    Overhead, Place, ProcessInfo, Range, RangeKind, Sync, SyncKind, What,
};

/// Categories that the notice names; it calls further ones "others".
const CATEGORIES_MAX: usize = 40;
/// Processes that one file may hold (only cuptop's own exports have more than one).
const PROCESSES_MAX: i64 = 4096;

/// What PyTorch calls convolutions on a CPU.
const ON_CPU: &str = "aten::mkldnn_convolution";

/// What a process and its threads are called of which ONNX Runtime wrote its own profile.
const ONNX: &str = "ONNX Runtime";

/// How names of processes begin, by who wrote the profile. MXNet has one for each device.
const WRITERS: [(&str, &str); 4] = [
    (ONNX, ONNX),
    ("gpu/0", "MXNet"),
    ("/device:", xla::WRITER),
    ("/host:", xla::WRITER),
];

/// Events of the allocator that are looked at.
const ALLOCATIONS_MAX: u64 = 10_000;

/// Takes events in and keeps activities.
#[derive(Debug, Default)]
pub(super) struct Converter {
    pub(super) gather: Gather,
    /// Events that are not shown, by category.
    pub(super) left_out: FxHashMap<String, u64>,
    /// Operations so far.
    pub(super) operations: u64,
    /// Whether CUDA was called.
    pub(super) has_calls: bool,
    /// Whether there are times of a GPU as PyTorch's old profiler wrote them, by operator.
    pub(super) has_old_times: bool,
    /// Whether convolutions ran on the CPU: there alone is such an operator.
    pub(super) convolves_on_cpu: bool,
    /// Whether any event has a category, or the name of an operator: others' traces have neither.
    pub(super) is_of_pytorch: bool,
    /// How often memory was taken or given back on the CPU, and on a GPU.
    allocations: [u64; 2],
    /// Names from metadata: of processes by pid, of threads by pid and tid.
    process_names: FxHashMap<i64, String>,
    thread_names: FxHashMap<(i64, i64), String>,
    /// Events that cannot be told before all names are known.
    waiting: Vec<PendingEvent>,
    /// The timeline's process of each host process and thread.
    threads: FxHashMap<(i64, i64), u32>,
}

impl Converter {
    /// Adds the events of a later part of the same file.
    pub(super) fn absorb(&mut self, later: Converter) {
        self.gather.absorb(later.gather);
        for (category, count) in later.left_out {
            self.leave_out(&category, count);
        }
        self.operations += later.operations;
        self.has_calls |= later.has_calls;
        self.has_old_times |= later.has_old_times;
        self.convolves_on_cpu |= later.convolves_on_cpu;
        self.is_of_pytorch |= later.is_of_pytorch;
        self.allocations[0] += later.allocations[0];
        self.allocations[1] += later.allocations[1];
        self.waiting.extend(later.waiting);
        // The last name counts, and the first process.
        self.process_names.extend(later.process_names);
        self.thread_names.extend(later.thread_names);
        for (thread, process) in later.threads {
            self.threads.entry(thread).or_insert(process);
        }
    }

    pub(super) fn take(&mut self, event: &Event<'_>) {
        if event.name.0 == "[memory]" {
            self.allocation(event);
        }
        match event.phase.0.as_ref() {
            "X" => {}
            "M" => return self.metadata(event),
            // Flow arrows, and Kineto's marks of its own window, which have no category.
            "s" | "t" | "f" => return,
            _ if event.category.0.is_empty() => return,
            _ => return self.leave_out(&event.category.0, 1),
        }
        self.is_of_pytorch |= !event.category.0.is_empty() || event.name.0.contains("::");
        match event.category.0.as_ref() {
            "Kernel" if event.name.0.starts_with("Memcpy") => self.operation(event, Self::copy),
            "kernel" | "Kernel" => self.operation(event, Self::kernel),
            "gpu_memcpy" | "Memcpy" => self.operation(event, Self::copy),
            "gpu_memset" | "Memset" => self.operation(event, Self::memset),
            "gpu_graph" => self.operation(event, Self::graph),
            "cuda_runtime" | "cuda_driver" | "Runtime" => self.span(event, Self::call),
            "cuda_sync" => self.span(event, Self::sync),
            "cuda_event" => self.span(event, Self::event),
            "overhead" => self.span(event, Self::overhead),
            "user_annotation" => self.range(event, RangeKind::Nvtx, &event.name.0),
            "cpu_op" | "Operator" => {
                self.convolves_on_cpu |= event.name.0.starts_with(ON_CPU);
                self.range(event, RangeKind::CpuOp, &event.name.0);
            }
            "python_function" => {
                let name = without_address(&event.name.0);
                self.range(event, RangeKind::Function, &name);
            }
            "Node" | "Session" => self.onnx(event),
            "" if event.pid == Some(id_of(OLD_GPU)) => self.has_old_times = true,
            "" | "Op" => match PendingEvent::of(event) {
                Some(it) => self.waiting.push(it),
                None => self.gather.timeless(0),
            },
            // The profiler's own window, with words in place of ids.
            "Trace" => {}
            other => self.leave_out(other, 1),
        }
    }

    fn leave_out(&mut self, category: &str, events: u64) {
        if let Some(count) = self.left_out.get_mut(category) {
            *count += events;
            return;
        }
        let is_full = self.left_out.len() >= CATEGORIES_MAX;
        let name = if is_full { "others" } else { category };
        *self.left_out.entry(name.to_owned()).or_default() += events;
    }

    /// Of many the first tell where tensors are.
    fn allocation(&mut self, event: &Event<'_>) {
        if self.allocations.iter().sum::<u64>() < ALLOCATIONS_MAX {
            let is_of_gpu = Args::read(event).device_type.is_some_and(|it| it > 0);
            self.allocations[usize::from(is_of_gpu)] += 1;
        }
    }

    /// Whether tensors were on a GPU, where no operation of one was recorded and memory says so.
    pub(super) fn has_tensors(&self) -> Option<bool> {
        match self.allocations {
            _ if self.operations > 0 => None,
            [0, 0] => None,
            [_, on_gpu] => Some(on_gpu > 0),
        }
    }

    /// Whose profile it is, of those that may hold the CPU's threads alone.
    pub(super) fn writer(&self) -> Option<&'static str> {
        let mut names = self.process_names.values();
        names.find_map(|name| Some(WRITERS.iter().find(|it| name.starts_with(it.0))?.1))
    }

    fn metadata(&mut self, event: &Event<'_>) {
        let (Some(pid), args) = (event.pid, Args::read(event)) else {
            return;
        };
        let name = args.name.0.trim();
        if name.is_empty() {
            return;
        }
        match (event.name.0.as_ref(), event.tid) {
            ("process_name", _) => {
                self.process_names.insert(pid, name.to_owned());
            }
            ("thread_name", Some(tid)) => {
                self.thread_names.insert((pid, tid), name.to_owned());
            }
            _ => {}
        }
    }

    fn operation(
        &mut self,
        event: &Event<'_>,
        what: fn(&mut Self, u32, &Event<'_>, &Args<'_>) -> What,
    ) {
        self.operations += 1;
        self.span(event, what);
    }

    fn span(&mut self, event: &Event<'_>, what: fn(&mut Self, u32, &Event<'_>, &Args<'_>) -> What) {
        let args = Args::read(event);
        let process = process_of(&args);
        let Some(times) = times(event) else {
            return self.gather.timeless(process);
        };
        let what = what(self, process, event, &args);
        // Early profiles of ROCm have one number alone for a call and what it launches. Others mean operators by it.
        let has_one = match what {
            What::Call(_) => event.name.0.starts_with("hip"),
            What::Kernel(_) | What::Copy(_) | What::Memset(_) => true,
            _ => false,
        };
        let external = args.external.filter(|_| has_one);
        let correlation = number(args.correlation.or(external));
        if let What::Call(call) = what {
            self.has_calls = true;
            self.gather
                .call_named(process, correlation, call.name, &event.name.0);
        }
        self.gather.push(process, times, correlation, what);
    }

    fn kernel(&mut self, process: u32, event: &Event<'_>, args: &Args<'_>) -> What {
        let name = self.gather.name(process, &event.name.0);
        let collective = collective(args);
        let shape = LaunchShape {
            name,
            collective: collective.map_or(0, |it| self.gather.collective(process, it)),
            grid: args.grid,
            block: args.block,
            registers: number(args.registers),
            // Kineto writes the sum of static and dynamic.
            static_shared: number(args.shared),
            ..LaunchShape::default()
        };
        What::Kernel(Kernel {
            place: place(event, args),
            shape: self.gather.shape(process, shape),
            graph: number(args.graph),
            node: number(args.node),
        })
    }

    fn copy(&mut self, _: u32, event: &Event<'_>, args: &Args<'_>) -> What {
        let place = place(event, args);
        let (from, to) = memory_kinds(&event.name.0);
        let peer = [args.from_device, args.to_device]
            .into_iter()
            .flatten()
            .filter_map(|d| u32::try_from(d).ok())
            .find(|&d| d != place.device);
        What::Copy(Copy {
            place,
            direction: direction(&event.name.0),
            from,
            to,
            // Corrected when all calls are known.
            is_async: true,
            bytes: number(args.bytes),
            peer: peer.unwrap_or(place.device),
            graph: number(args.graph),
            node: activity::node_number(number(args.node)),
        })
    }

    fn memset(&mut self, _: u32, event: &Event<'_>, args: &Args<'_>) -> What {
        What::Memset(Memset {
            place: place(event, args),
            bytes: number(args.bytes),
            graph: number(args.graph),
            node: activity::node_number(number(args.node)),
        })
    }

    fn graph(&mut self, _: u32, event: &Event<'_>, args: &Args<'_>) -> What {
        What::Graph(Graph {
            place: place(event, args),
            graph: number(args.graph),
        })
    }

    fn call(&mut self, process: u32, event: &Event<'_>, args: &Args<'_>) -> What {
        What::Call(HostCall {
            thread: self.thread(process, event),
            name: self.gather.name(process, &event.name.0),
            code: number(args.code),
        })
    }

    fn sync(&mut self, _: u32, event: &Event<'_>, args: &Args<'_>) -> What {
        let kind = match args.sync_kind.0.as_ref() {
            "" => &event.name.0,
            kind => kind,
        };
        let known = |v: Option<i64>| {
            v.and_then(|v| u32::try_from(v).ok())
                .filter(|&v| v != u32::MAX)
        };
        let mut kinds = (0..).map_while(SyncKind::from_code);
        let kind = kinds.find(|it| it.kineto_name() == kind);
        What::Sync(Sync {
            kind: kind.unwrap_or(SyncKind::Context),
            context: number(args.context),
            stream: known(args.stream),
            event: known(args.event),
        })
    }

    fn event(&mut self, _: u32, event: &Event<'_>, args: &Args<'_>) -> What {
        What::Event(EventRecord {
            place: place(event, args),
            event: number(args.event),
        })
    }

    fn overhead(&mut self, process: u32, event: &Event<'_>, _: &Args<'_>) -> What {
        What::Overhead(Overhead {
            name: self.gather.name(process, &event.name.0),
            thread: thread_id(event.tid),
        })
    }

    /// A node of ONNX Runtime: "TopK on CPU". What it does beside the nodes has no provider.
    fn onnx(&mut self, event: &Event<'_>) {
        let args = Args::read(event);
        let thread = (event.pid.unwrap_or(0), event.tid.unwrap_or(0));
        self.thread_names.insert(thread, ONNX.to_owned());
        self.process_names.insert(thread.0, ONNX.to_owned());
        match args.provider.0.strip_suffix("ExecutionProvider") {
            Some(on) => {
                let name = format!("{} on {on}", args.op.0);
                self.range(event, RangeKind::CpuOp, &name);
            }
            // Fences around a node are part of its launch.
            None if event.category.0 == "Node" => {}
            None => self.range(event, RangeKind::Nvtx, &event.name.0),
        }
    }

    fn range(&mut self, event: &Event<'_>, kind: RangeKind, name: &str) {
        // Tensor shapes and the like fill the arguments of a cpu_op: it skips them.
        let args = if kind == RangeKind::Nvtx {
            Args::read(event)
        } else {
            Cow::default()
        };
        let process = process_of(&args);
        let Some(times) = times(event) else {
            return self.gather.timeless(process);
        };
        let mut known = RangeKind::WORDS.iter();
        let known = known.find(|it| it.0 == args.range_kind.0);
        let what = What::Range(Range {
            kind: known.map_or(kind, |it| it.1),
            name: self.gather.name(process, name),
            thread: self.thread(process, event),
            index: number(args.index),
        });
        self.gather.push(process, times, 0, what);
    }

    fn thread(&mut self, process: u32, event: &Event<'_>) -> u32 {
        let key = (event.pid.unwrap_or(0), event.tid.unwrap_or(0));
        self.threads.entry(key).or_insert(process);
        thread_id(event.tid)
    }

    /// Adds what the header and the metadata tell about processes, threads and devices, and what waited for that.
    pub(super) fn finish(&mut self, header: &Header) {
        let waiting = std::mem::take(&mut self.waiting);
        let names = (&self.process_names, &self.thread_names);
        let (operations, left_out) = xla::settle(&waiting, names, &mut self.gather);
        self.operations += operations;
        for name in left_out {
            self.leave_out(&name, 1);
        }
        let mut threads: Vec<_> = self.threads.drain().collect();
        threads.sort_unstable_by_key(|&(thread, process)| (process, thread));
        for process in 0..self.gather.processes().max(1) {
            let from = threads.partition_point(|it| it.1 < process);
            let mine = || {
                threads[from..]
                    .iter()
                    .take_while(|it| it.1 == process)
                    .map(|it| it.0)
            };
            let pid = mine().map(|(pid, _)| pid).find(|&pid| pid > 0).unwrap_or(0);
            self.gather.define(
                process,
                Def::Process(ProcessInfo {
                    pid: number(Some(pid)),
                    command: self.process_names.get(&pid).cloned().unwrap_or_default(),
                    rank: header.rank,
                    world: header.world,
                    versions: header.versions.join(" · "),
                    ended_well: Some(true),
                    has_tensors: self.has_tensors(),
                    ..ProcessInfo::default()
                }),
            );
            for (pid, tid) in mine() {
                if let Some(name) = self.thread_names.get(&(pid, tid)) {
                    let thread = thread_id(Some(tid));
                    let name = name.clone();
                    self.gather.define(process, Def::Thread { thread, name });
                }
            }
            for id in self.gather.devices(process) {
                if let Some(info) = device(header, id) {
                    self.gather.define(process, Def::Device(info));
                }
            }
        }
    }
}

/// What a header tells about a device; `None` when it tells nothing.
pub(super) fn device(header: &Header, id: u32) -> Option<DeviceInfo> {
    let known = header.devices.iter().find(|d| d.id == id);
    (known.is_some() || header.rank.is_some()).then(|| DeviceInfo {
        id,
        uuid: header.rank.map(|rank| uuid_of_rank(rank, id)),
        ..known.cloned().unwrap_or_default()
    })
}

/// "<built-in method reshape of Tensor object at 0x7cc1559c5310>" without its address.
fn without_address(name: &str) -> Cow<'_, str> {
    let Some((what, _)) = name.rsplit_once(" at 0x") else {
        return Cow::Borrowed(name);
    };
    match name.starts_with('<') {
        true => Cow::Owned(format!("{what}>")),
        false => Cow::Borrowed(name),
    }
}

/// Stands in for the device's own id, which Kineto does not write. Each rank of a distributed program has its own GPU,
/// and often all of them call theirs 0.
fn uuid_of_rank(rank: u32, device: u32) -> [u8; 16] {
    let mut uuid = *b"rank....device..";
    uuid[4..8].copy_from_slice(&rank.to_be_bytes());
    uuid[12..].copy_from_slice(&device.to_be_bytes());
    uuid
}

/// What Kineto writes about a kernel of collective communication.
fn collective(args: &Args<'_>) -> Option<Collective> {
    let operation = args.collective.0.trim();
    if operation.is_empty() {
        return None;
    }
    let (name, ranks) = (args.group_name.0.trim(), args.group_ranks.0.trim());
    Some(Collective {
        operation: operation.to_owned(),
        group: [name, ranks].join(" ").trim().to_owned(),
        size: number(args.group_size),
        elements: [number(args.elements_in), number(args.elements_out)],
        element: args.element.0.trim().to_owned(),
        peer: args.peer.and_then(|rank| u32::try_from(rank).ok()),
    })
}

fn process_of(args: &Args<'_>) -> u32 {
    number(args.process.filter(|&p| p < PROCESSES_MAX))
}

/// A number, such as an id; 0 for none, and for anything that does not fit.
fn number<T: TryFrom<i64> + Default>(value: Option<i64>) -> T {
    value.and_then(|v| T::try_from(v).ok()).unwrap_or_default()
}

/// Where an operation ran. Old traces have it in `pid` and `tid` only.
fn place(event: &Event<'_>, args: &Args<'_>) -> Place {
    // A device that is no number counts as one out of range, which is refused.
    let device = match args.device.or(event.pid) {
        // ONNX Runtime says nothing of it.
        Some(-1) if args.stream.is_some() => 0,
        device => device.unwrap_or(-1),
    };
    let stream = args.stream.or(event.tid).unwrap_or(0);
    Place {
        device: u32::try_from(device).unwrap_or(u32::MAX),
        context: number(args.context),
        stream: gather::stream_id(stream),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_built_in_functions_have_no_address() {
        for (name, expected) in [
            (
                "<built-in method reshape of Tensor object at 0x7cc1559c5310>",
                "<built-in method reshape of Tensor object>",
            ),
            ("<built-in function len>", "<built-in function len>"),
            ("look at 0x1.py(3): f", "look at 0x1.py(3): f"),
        ] {
            assert_eq!(without_address(name), expected);
        }
    }
}

//! A timeline as Chrome JSON in Kineto's manner. <https://ui.perfetto.dev>, Chrome's viewer and every tool for traces of
//! PyTorch's profiler read it. Reading it back, cuptop gets the same figures.
//!
//! What Kineto has no word for stands in arguments of its own: `cuptop process` (which process, where
//! there are several), `cuptop range` and `index` (variants and repeats of a scenario). The document
//! begins with `"simulated"` and `"lost records"`; of a job `"rankClocks"` says what aligns its ranks' clocks.
//!
//! A device is a process of its own in viewers, its streams are threads. Arrows lead from a host call to the operations
//! that it caused (`bind_id`). Where slices of one row overlap without nesting, Perfetto draws them below each other;
//! before June 2026 it left them out.

use std::borrow::Cow;
use std::fmt::{Arguments, Display};
use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value, json};

use super::clocks;
use super::rows::{self, Caveats};
use activity::units::gb_per_s;
use activity::{Activity, Collective, Direction, LaunchShape, Metric, Ns, RangeKind, SLOWED, What};
use causes::stacks::LaunchLine;
use figures::memory::MemoryUse;
use figures::nodes::{self, NodeName};
use trace::{LaneKey, LaneKind, Trace, describe};

/// The row of a process's synchronizations, which CUPTI tells without their threads; no system has as many threads.
const SYNCS: u64 = 4_000_000_000;
/// From here on rows of streams whose number another stream of their device has already.
const FURTHER_STREAMS: u64 = 1_000_000_000;

pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = ChromeWriter {
        trace,
        out,
        marks: Caveats::of(trace),
        hosts: rows::pids(trace).into_iter().map(u64::from).collect(),
        streams: FxHashMap::default(),
        nodes: nodes::all(trace),
        named: 0,
        separator: "",
        // Viewers keep microseconds as doubles: small numbers keep their nanoseconds.
        base: trace.extent().map_or(0, |extent| {
            extent.start.div_euclid(1_000_000_000) * 1_000_000_000
        }),
    };
    writer.head()?;
    for (id, lane) in trace.lanes().iter().enumerate() {
        for row in lane.kept() {
            writer.event(lane.key().process, &trace.activity(id, row))?;
        }
    }
    for device in 0..trace.devices().len() {
        writer.rates(device)?;
        for (time, bytes) in MemoryUse::of(trace, Some(device)).steps {
            writer.counter(device, "device memory", "bytes", time, bytes)?;
        }
        writer.hardware(device)?;
    }
    writeln!(writer.out, "\n]}}")
}

struct ChromeWriter<'a> {
    trace: &'a Trace,
    out: &'a mut dyn Write,
    marks: Caveats,
    /// The process id of each process; a device's id is that of the process that stands for it.
    hosts: Vec<u64>,
    /// The id of the thread that stands for each stream.
    streams: FxHashMap<LaneKey, u64>,
    /// What nodes of CUDA graphs are called.
    nodes: FxHashMap<(usize, u64), NodeName<'a>>,
    /// Processes and rows that have been named, in the order in which viewers show them.
    named: usize,
    /// What stands before the next event.
    separator: &'static str,
    base: Ns,
}

/// Microseconds with all nanoseconds.
fn us(ns: Ns) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:03}", ns / 1000, ns % 1000)
}

impl ChromeWriter<'_> {
    fn head(&mut self) -> io::Result<()> {
        let (trace, out) = (self.trace, &mut *self.out);
        writeln!(
            out,
            "{{\n\"simulated\": {},\n\"lost records\": {},\n\"cuptop\": {},\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ns\",\n\
             \"baseTimeNanoseconds\": {},",
            self.marks.simulated,
            self.marks.lost,
            Value::from(env!("CARGO_PKG_VERSION")),
            self.base
        )?;
        if let [process] = trace.processes()
            && let Some(rank) = process.info.rank
        {
            let world = process.info.world;
            let world = world.map_or_else(String::new, |n| format!(", \"world_size\": {n}"));
            writeln!(out, "\"distributedInfo\": {{\"rank\": {rank}{world}}},")?;
        }
        if let Some(clocks) = clocks::find(trace) {
            writeln!(out, "\"rankClocks\": {clocks},")?;
        }
        let devices = trace.devices().iter().map(|d| device(&d.info)).collect();
        writeln!(out, "\"deviceProperties\": {},", Value::Array(devices))?;
        write!(out, "\"traceEvents\": [")?;
        self.names()
    }

    /// Names what viewers show: devices with their streams, processes with their threads.
    fn names(&mut self) -> io::Result<()> {
        let trace = self.trace;
        for index in 0..trace.devices().len() {
            let name = self.marks.mark(&describe::device(trace, index));
            self.name("process", self.gpu(index), 0, &name)?;
        }
        let mut taken = FxHashSet::default();
        for (id, lane) in trace.streams() {
            let key = lane.key();
            let LaneKind::Stream { device, stream, .. } = key.kind else {
                continue;
            };
            let row = match taken.insert((device, stream)) {
                true => u64::from(stream),
                false => FURTHER_STREAMS + id as u64,
            };
            self.streams.insert(key, row);
            let mut name = describe::stream(trace, key);
            if trace.processes().len() > 1 {
                name += &format!(" · process {}", key.process);
            }
            self.name("thread", self.gpu(device), row, &name)?;
        }
        for (index, process) in trace.processes().iter().enumerate() {
            let (pid, command) = (self.hosts[index], &process.info.command);
            let name = match process.info.rank {
                Some(rank) if trace.processes().len() > 1 => format!("rank {rank}: {command}"),
                _ => command.clone(),
            };
            self.name("process", pid, 0, &self.marks.mark(&name))?;
            for (thread, name) in &process.threads {
                self.name("thread", pid, u64::from(*thread), name)?;
            }
            self.name("thread", pid, SYNCS, "synchronizations")?;
        }
        Ok(())
    }

    fn name(&mut self, what: &str, pid: u64, tid: u64, name: &str) -> io::Result<()> {
        self.named += 1;
        for (part, value) in [
            ("name", Value::from(name)),
            ("sort_index", self.named.into()),
        ] {
            self.add(format_args!(
                "{{\"ph\":\"M\",\"name\":\"{what}_{part}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"{part}\":{value}}}}}"
            ))?;
        }
        Ok(())
    }

    fn add(&mut self, event: Arguments<'_>) -> io::Result<()> {
        let separator = std::mem::replace(&mut self.separator, ",");
        write!(self.out, "{separator}\n{event}")
    }

    fn gpu(&self, device: usize) -> u64 {
        u64::from(self.trace.devices()[device].info.id)
    }

    fn event(&mut self, process: usize, activity: &Activity) -> io::Result<()> {
        let what = &activity.what;
        let (pid, tid) = match what {
            What::Call(c) => (self.hosts[process], u64::from(c.thread)),
            What::Range(r) => (self.hosts[process], u64::from(r.thread)),
            What::Overhead(o) => (self.hosts[process], u64::from(o.thread)),
            What::Sync(_) => (self.hosts[process], SYNCS),
            // Drawn as a counter.
            What::Memory(_) => return Ok(()),
            on_gpu => self.on_gpu(process, on_gpu),
        };
        let direction = match what {
            What::Call(_) => "out",
            _ => "in",
        };
        let mut arrow = String::new();
        if activity.correlation != 0 && (direction == "out" || activity.is_operation()) {
            let id = (process as u64) << 32 | u64::from(activity.correlation);
            arrow = format!("\"bind_id\":\"{id:#x}\",\"flow_{direction}\":true,");
        }
        self.add(format_args!(
            "{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{pid},\"tid\":{tid},\"ts\":{},\"dur\":{},{arrow}\"args\":{}}}",
            self.category(process, what),
            Value::from(rows::kineto_name(self.trace, activity)),
            us(activity.span.start - self.base),
            us(activity.span.len()),
            Value::Object(self.args(process, activity))
        ))
    }

    /// The row of what a stream did.
    fn on_gpu(&self, process: usize, what: &What) -> (u64, u64) {
        let place = what.place().unwrap_or_default();
        let kind = place.into();
        let row = self.streams.get(&LaneKey { process, kind }).copied();
        let row = row.unwrap_or(u64::from(place.stream));
        (self.gpu(place.device as usize), row)
    }

    fn category(&self, process: usize, what: &What) -> Cow<'static, str> {
        let category = match what {
            What::Kernel(_) => "kernel",
            What::Copy(_) => "gpu_memcpy",
            What::Memset(_) => "gpu_memset",
            What::Call(c) => match self.trace.names().full(c.name).starts_with("cuda") {
                true => "cuda_runtime",
                false => "cuda_driver",
            },
            What::Sync(_) => "cuda_sync",
            What::Event(_) => "cuda_event",
            What::Overhead(_) => "overhead",
            // Nobody reads the arguments of these two, so where there are several processes they go as annotations.
            What::Range(r) => match r.kind {
                RangeKind::CpuOp if process == 0 => "cpu_op",
                RangeKind::Function if process == 0 => "python_function",
                _ => "user_annotation",
            },
            operation => {
                let kind = describe::operation_kind(operation).unwrap_or("operation");
                return Cow::Owned(format!("gpu_{kind}"));
            }
        };
        Cow::Borrowed(category)
    }

    fn args(&self, process: usize, activity: &Activity) -> Args {
        let mut all = Args::default();
        let args = &mut all;
        if let Some(bytes) = rows::bytes(&activity.what) {
            put(args, "bytes", bytes);
            if let Some(rate) = gb_per_s(bytes, activity.span.len()) {
                put(args, "memory bandwidth (GB/s)", rate);
            }
        }
        match &activity.what {
            What::Kernel(k) => {
                let shape = self.trace.shape(k.shape);
                kernel_args(args, &shape);
                if let Some(collective) = self.trace.collective(&shape) {
                    collective_args(args, collective);
                }
            }
            What::Copy(c) if c.peer != c.place.device => {
                put(args, "fromDevice", self.gpu(c.place.device as usize));
                put(args, "toDevice", self.gpu(c.peer as usize));
            }
            What::Call(c) if c.code != 0 => put(args, "return value", c.code),
            What::Sync(s) => {
                let none = |id: Option<u32>| id.map_or(-1, i64::from);
                put(args, "cuda_sync_kind", s.kind.kineto_name());
                put(args, "stream", none(s.stream));
                put(args, "wait_on_cuda_event_id", none(s.event));
                put(args, "context", s.context);
            }
            What::Event(e) => put(args, "event_id", e.event),
            What::Range(r) => {
                if let Some((word, _)) = RangeKind::WORDS.iter().find(|it| it.1 == r.kind) {
                    put(args, "cuptop range", *word);
                    put(args, "index", r.index);
                }
            }
            _ => {}
        }
        put_some(args, "graph id", u64::from(activity.what.graph()));
        let node = activity.what.node();
        put_some(args, "graph node id", node);
        let of_node = self.nodes.get(&(process, node)).and_then(NodeName::text);
        let of_launch = self.trace.launch_stack(process, activity.correlation);
        let of_launch = of_launch.and_then(|it| LaunchLine::own(self.trace, it));
        if let Some(name) = of_node.or_else(|| Some(of_launch?.text())) {
            put(args, "source", name);
        }
        if let Some(place) = activity.what.place() {
            put(args, "device", self.gpu(place.device as usize));
            put(args, "context", place.context);
            put(args, "stream", place.stream);
        }
        put_some(args, "correlation", u64::from(activity.correlation));
        put_some(args, "cuptop process", process as u64);
        all
    }

    /// A value of a device's counter.
    fn counter(
        &mut self,
        device: usize,
        name: &str,
        unit: &str,
        time: Ns,
        value: impl Display,
    ) -> io::Result<()> {
        let pid = self.gpu(device);
        self.add(format_args!(
            "{{\"ph\":\"C\",\"name\":{},\"pid\":{pid},\"ts\":{},\"args\":{{\"{unit}\":{value}}}}}",
            Value::from(name),
            us(time - self.base)
        ))
    }

    /// GB/s of each direction: at each moment the sum over the copies that run.
    fn rates(&mut self, device: usize) -> io::Result<()> {
        let trace = self.trace;
        for direction in Direction::NAMED {
            // When, whether a copy begins there, and by how much the rate changes: a copy of no bytes changes it by nothing.
            let mut edges: Vec<(Ns, bool, f64)> = Vec::new();
            for (id, lane) in trace.streams_of(device) {
                for row in lane.kept() {
                    let activity = trace.activity(id, row);
                    if let What::Copy(copy) = activity.what
                        && copy.direction == direction
                        && let Some(rate) = gb_per_s(copy.bytes, activity.span.len())
                    {
                        edges.push((activity.span.start, true, rate));
                        edges.push((activity.span.end, false, -rate));
                    }
                }
            }
            edges.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
            let (mut running, mut sum) = (0usize, 0.0);
            for (i, (time, begins, change)) in edges.iter().enumerate() {
                running = if *begins { running + 1 } else { running - 1 };
                // Rounding must not add up to a rate where nothing runs.
                sum = if running == 0 { 0.0 } else { sum + change };
                if edges.get(i + 1).is_none_or(|next| next.0 != *time) {
                    self.counter(device, direction.label(), "GB/s", *time, sum)?;
                }
            }
        }
        Ok(())
    }

    /// What the GPU's counters and sensors said: each value stands at its window's start.
    fn hardware(&mut self, device: usize) -> io::Result<()> {
        let Some(gpu) = self.trace.readings(device) else {
            return Ok(());
        };
        for metric in Metric::ALL.into_iter().filter(|&metric| gpu.has(metric)) {
            let name = format!("{} (hardware)", metric.words());
            for window in gpu.windows_of(metric) {
                if let Some(value) = window.value(metric) {
                    let unit = metric.unit().label();
                    self.counter(device, &name, unit, window.span.start, value)?;
                }
            }
        }
        if gpu.limits.tells_slowdowns {
            for window in gpu.windows() {
                let (name, at) = ("clocks held down (hardware)", window.span.start);
                let is_slowed = u8::from(window.reasons & SLOWED != 0);
                self.counter(device, name, "yes", at, is_slowed)?;
            }
        }
        Ok(())
    }
}

fn kernel_args(args: &mut Args, shape: &LaunchShape) {
    put(args, "grid", shape.grid.to_vec());
    put(args, "block", shape.block.to_vec());
    put(args, "registers per thread", shape.registers);
    put(args, "shared memory", rows::shared(shape));
}

fn collective_args(args: &mut Args, it: &Collective) {
    let (name, ranks) = match it.group.split_once(" [") {
        Some((name, ranks)) => (name, format!("[{ranks}")),
        None => (it.group.as_str(), String::new()),
    };
    put(args, "Collective name", it.operation.as_str());
    put(args, "In msg nelems", it.elements[0]);
    put(args, "Out msg nelems", it.elements[1]);
    put(args, "Group size", it.size);
    put(args, "dtype", it.element.as_str());
    put(args, "Process Group Name", name);
    put(args, "Process Group Ranks", ranks);
    if let Some(peer) = it.peer {
        let is_send = it.operation == "send";
        put(args, if is_send { "Dst Rank" } else { "Src Rank" }, peer);
    }
}

fn device(info: &activity::DeviceInfo) -> Value {
    json!({
        "id": info.id,
        "name": info.name,
        "totalGlobalMem": info.memory,
        "computeMajor": info.capability.0,
        "computeMinor": info.capability.1,
        "maxThreadsPerMultiprocessor": u64::from(info.max_warps_per_sm) * u64::from(info.warp_size),
        "regsPerMultiprocessor": info.registers_per_sm,
        "warpSize": info.warp_size,
        "sharedMemPerMultiprocessor": info.shared_per_sm,
        "numSms": info.multiprocessors,
    })
}

type Args = Map<String, Value>;

fn put(args: &mut Args, key: &str, value: impl Into<Value>) {
    args.insert(key.to_owned(), value.into());
}

/// Zero stands for none.
fn put_some(args: &mut Args, key: &str, value: u64) {
    if value != 0 {
        put(args, key, value);
    }
}

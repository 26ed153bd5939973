//! A timeline as Chrome JSON in Kineto's manner. Chrome's and Perfetto's viewers read it, and every tool for traces of
//! PyTorch's profiler. Reading it back, cuptop gets the same figures.
//!
//! What Kineto has no word for stands in arguments of its own: `cuptop process` (which process, where
//! there are several), `cuptop range` and `index` (variants and repeats of a scenario). The document
//! begins with `"simulated"` and `"lost records"`; of a job `"rankClocks"` says what aligns its ranks' clocks.

use std::borrow::Cow;
use std::io::{self, Write};

use super::clocks;
use super::rows::{self, Marks};
use activity::{Activity, Collective, LaunchShape, Metric, Ns, RangeKind, What};
use analysis::memory::MemoryUse;
use trace::{LaneKind, Trace, describe};

/// Writes a timeline.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer {
        trace,
        out,
        marks: Marks::of(trace),
        pids: rows::pids(trace),
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
    writer.memory()?;
    writer.hardware()?;
    // A last event without a comma before the end.
    writeln!(
        writer.out,
        "{{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":-1,\"tid\":0,\"args\":{{\"labels\":\"profiler\"}}}}\n]}}"
    )
}

struct Writer<'a> {
    trace: &'a Trace,
    out: &'a mut dyn Write,
    marks: Marks,
    pids: Vec<u32>,
    base: Ns,
}

/// A string in quotes.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Microseconds with all nanoseconds.
fn us(ns: Ns) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:03}", ns / 1000, ns % 1000)
}

impl Writer<'_> {
    fn head(&mut self) -> io::Result<()> {
        let (trace, out) = (self.trace, &mut *self.out);
        writeln!(
            out,
            "{{\n\"simulated\": {},\n\"lost records\": {},\n\"cuptop\": {},\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ns\",\n\
             \"baseTimeNanoseconds\": {},",
            self.marks.simulated,
            self.marks.lost,
            json(env!("CARGO_PKG_VERSION")),
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
            writeln!(out, "\"rankClocks\": {},", serde_json::to_string(&clocks)?)?;
        }
        let devices: Vec<_> = trace.devices().iter().map(|d| device(&d.info)).collect();
        writeln!(out, "\"deviceProperties\": [{}],", devices.join(", "))?;
        writeln!(out, "\"traceEvents\": [")?;
        for (index, process) in trace.processes().iter().enumerate() {
            let pid = i64::from(self.pids[index]);
            let name = self.marks.on(&process.info.command);
            self.named("process_name", pid, 0, &name)?;
            for (thread, name) in &process.threads {
                self.named("thread_name", pid, *thread, name)?;
            }
        }
        for (index, device) in trace.devices().iter().enumerate() {
            let name = self.marks.on(&describe::device(trace, index));
            self.named("process_name", i64::from(device.info.id), 0, &name)?;
        }
        for lane in trace.lanes() {
            let key = lane.key();
            if let LaneKind::Stream { device, stream, .. } = key.kind {
                let name = describe::stream(trace, key);
                let id = trace.devices()[device].info.id;
                self.named("thread_name", i64::from(id), stream, &name)?;
            }
        }
        Ok(())
    }

    fn named(&mut self, what: &str, pid: i64, tid: u32, name: &str) -> io::Result<()> {
        writeln!(
            self.out,
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":{}}}}},",
            json(name)
        )
    }

    fn device_id(&self, index: u32) -> u32 {
        self.trace.devices()[index as usize].info.id
    }

    fn event(&mut self, process: usize, activity: &Activity) -> io::Result<()> {
        // Drawn as a counter: see [`Writer::memory`].
        if matches!(activity.what, What::Memory(_)) {
            return Ok(());
        }
        let (pid, tid) = self.row(process, &activity.what);
        writeln!(
            self.out,
            "{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{pid},\"tid\":{tid},\"ts\":{},\"dur\":{},\"args\":{{{}}}}},",
            self.category(process, &activity.what),
            json(&rows::kineto_name(self.trace, activity)),
            us(activity.span.start - self.base),
            us(activity.span.len()),
            self.args(process, activity).0
        )
    }

    /// The process and the thread that it is drawn on.
    fn row(&self, process: usize, what: &What) -> (i64, i64) {
        let host = i64::from(self.pids[process]);
        match what {
            What::Call(c) => (host, i64::from(c.thread)),
            What::Range(r) => (host, i64::from(r.thread)),
            What::Overhead(o) => (-1, i64::from(o.thread)),
            What::Sync(s) => {
                let device = self.device_of_context(process, s.context);
                (i64::from(device), s.stream.map_or(-1, i64::from))
            }
            on_gpu => {
                let place = on_gpu.place().unwrap_or_default();
                let device = self.device_id(place.device);
                (i64::from(device), i64::from(place.stream))
            }
        }
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
        let mut args = Args::default();
        match &activity.what {
            What::Kernel(k) => {
                let shape = self.trace.shape(k.shape);
                kernel_args(&mut args, &shape);
                if let Some(collective) = self.trace.collective(&shape) {
                    collective_args(&mut args, collective);
                }
                args.some("graph id", u64::from(k.graph));
                args.some("graph node id", k.node);
            }
            What::Copy(c) => {
                args.int("bytes", c.bytes);
                args.some("graph id", u64::from(c.graph));
                if c.peer != c.place.device {
                    args.int("fromDevice", u64::from(self.device_id(c.place.device)));
                    args.int("toDevice", u64::from(self.device_id(c.peer)));
                }
            }
            What::Memset(m) => {
                args.int("bytes", m.bytes);
                args.some("graph id", u64::from(m.graph));
            }
            What::Call(c) if c.code != 0 => args.raw("return value", &c.code.to_string()),
            What::Sync(s) => {
                let none =
                    |id: Option<u32>| id.map_or_else(|| "-1".to_owned(), |id| id.to_string());
                args.text("cuda_sync_kind", rows::sync_name(s.kind));
                args.raw("stream", &none(s.stream));
                args.raw("wait_on_cuda_event_id", &none(s.event));
                args.int("context", u64::from(s.context));
            }
            What::Event(e) => args.int("event_id", u64::from(e.event)),
            What::Range(r) => {
                if let Some(kind) = range_word(r.kind) {
                    args.text("cuptop range", kind);
                    args.int("index", u64::from(r.index));
                }
            }
            other => args.some("graph id", u64::from(other.graph())),
        }
        if let Some(place) = activity.what.place() {
            args.int("device", u64::from(self.device_id(place.device)));
            args.int("context", u64::from(place.context));
            args.int("stream", u64::from(place.stream));
        }
        args.some("correlation", u64::from(activity.correlation));
        args.some("cuptop process", process as u64);
        args
    }

    fn device_of_context(&self, process: usize, context: u32) -> u32 {
        let mut keys = self.trace.lanes().iter().map(trace::Lane::key);
        let id = keys.find_map(|key| match key.kind {
            LaneKind::Stream {
                device, context: c, ..
            } if (key.process, c) == (process, context) => {
                Some(self.trace.devices()[device].info.id)
            }
            _ => None,
        });
        id.unwrap_or(0)
    }

    /// Device memory in use, as a counter on each device.
    fn memory(&mut self) -> io::Result<()> {
        for index in 0..self.trace.devices().len() {
            for (time, bytes) in MemoryUse::of(self.trace, Some(index)).steps {
                writeln!(
                    self.out,
                    "{{\"ph\":\"C\",\"name\":\"device memory\",\"pid\":{},\"ts\":{},\"args\":{{\"bytes\":{bytes}}}}},",
                    self.device_id(index as u32),
                    us(time - self.base)
                )?;
            }
        }
        Ok(())
    }

    /// What GPUs' counters and sensors said: a value at each window's start.
    fn hardware(&mut self) -> io::Result<()> {
        for index in 0..self.trace.devices().len() {
            let Some(gpu) = self.trace.readings(index) else {
                continue;
            };
            for metric in Metric::ALL.into_iter().filter(|&metric| gpu.has(metric)) {
                let unit = metric.unit().label();
                for window in gpu.windows_of(metric) {
                    let Some(value) = window.value(metric) else {
                        continue;
                    };
                    writeln!(
                        self.out,
                        "{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"ts\":{},\"args\":{{\"{unit}\":{value}}}}},",
                        json(&format!("{} (hardware)", metric.words())),
                        self.device_id(index as u32),
                        us(window.span.start - self.base)
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// The kinds of ranges that Kineto does not know.
fn range_word(kind: RangeKind) -> Option<&'static str> {
    match kind {
        RangeKind::Variant => Some("variant"),
        RangeKind::Warmup => Some("warmup"),
        RangeKind::Repeat => Some("repeat"),
        RangeKind::Phase => Some("phase"),
        RangeKind::Python => Some("python"),
        RangeKind::CpuOp => Some("cpu_op"),
        RangeKind::Function => Some("python_function"),
        RangeKind::Nvtx => None,
    }
}

fn kernel_args(args: &mut Args, shape: &LaunchShape) {
    let list = |[x, y, z]: [u32; 3]| format!("[{x},{y},{z}]");
    args.raw("grid", &list(shape.grid));
    args.raw("block", &list(shape.block));
    args.int("registers per thread", u64::from(shape.registers));
    args.int("shared memory", rows::shared(shape));
}

fn collective_args(args: &mut Args, it: &Collective) {
    let (name, ranks) = match it.group.split_once(" [") {
        Some((name, ranks)) => (name, format!("[{ranks}")),
        None => (it.group.as_str(), String::new()),
    };
    args.raw("Collective name", &json(&it.operation));
    args.int("In msg nelems", it.elements[0]);
    args.int("Out msg nelems", it.elements[1]);
    args.int("Group size", u64::from(it.size));
    args.raw("dtype", &json(&it.element));
    args.raw("Process Group Name", &json(name));
    args.raw("Process Group Ranks", &json(&ranks));
}

fn device(info: &activity::DeviceInfo) -> String {
    let threads = u64::from(info.max_warps_per_sm) * u64::from(info.warp_size);
    format!(
        "{{\"id\": {}, \"name\": {}, \"totalGlobalMem\": {}, \"computeMajor\": {}, \"computeMinor\": {}, \
         \"maxThreadsPerMultiprocessor\": {threads}, \"regsPerMultiprocessor\": {}, \"warpSize\": {}, \
         \"sharedMemPerMultiprocessor\": {}, \"numSms\": {}}}",
        info.id,
        json(&info.name),
        info.memory,
        info.capability.0,
        info.capability.1,
        info.registers_per_sm,
        info.warp_size,
        info.shared_per_sm,
        info.multiprocessors
    )
}

/// The inside of an object.
#[derive(Default)]
struct Args(String);

impl Args {
    fn raw(&mut self, key: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&format!("\"{key}\":{value}"));
    }

    fn int(&mut self, key: &str, value: u64) {
        self.raw(key, &value.to_string());
    }

    /// Zero stands for none.
    fn some(&mut self, key: &str, value: u64) {
        if value != 0 {
            self.int(key, value);
        }
    }

    fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &json(value));
    }
}

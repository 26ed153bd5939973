//! What the exports of timelines have in common: marks, Kineto's names, and the order of operations.

use activity::{Activity, Copy, DeviceInfo, Direction, LaunchShape, MemoryKind, Metric, Ns, What};
use trace::{GpuWindow, LaneId, LaneKind, Trace, describe};

/// Marks that every export of a timeline carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caveats {
    /// No GPU was involved.
    pub(super) simulated: bool,
    /// Records that are not on the timeline.
    pub(super) lost: u64,
}

impl Caveats {
    pub(super) fn of(trace: &Trace) -> Self {
        Caveats {
            simulated: trace.source.simulated,
            lost: trace.health().losses(),
        }
    }

    /// In words; empty for a whole timeline of a real GPU.
    pub(super) fn describe(self) -> String {
        let mut words = Vec::new();
        if self.simulated {
            words.push("SIMULATED".to_owned());
        }
        if self.lost > 0 {
            words.push(format!("INCOMPLETE: {} records lost", self.lost));
        }
        words.join(" · ")
    }

    /// A name with the marks behind it.
    pub(super) fn mark(self, name: &str) -> String {
        match self.describe() {
            words if words.is_empty() => name.to_owned(),
            words => format!("{name} ({words})"),
        }
    }
}

/// A kernel, a copy or a memset, as tables have it.
pub(super) struct Operation<'a> {
    /// Its lane and its row there.
    pub(super) place: (LaneId, usize),
    pub(super) process: usize,
    pub(super) pid: u32,
    pub(super) device: &'a DeviceInfo,
    pub(super) context: u32,
    pub(super) stream: u32,
    pub(super) kind: &'static str,
    /// Of a kernel.
    pub(super) name: Option<String>,
    pub(super) activity: Activity,
    /// Bytes that it moved or wrote.
    pub(super) bytes: Option<u64>,
    pub(super) copy: Option<Copy>,
    pub(super) shape: Option<LaunchShape>,
}

impl<'a> Operation<'a> {
    /// `None` for what is none.
    fn find(trace: &'a Trace, place: (LaneId, usize)) -> Option<Self> {
        let key = trace.lanes()[place.0].key();
        let LaneKind::Stream {
            device,
            context,
            stream,
        } = key.kind
        else {
            return None;
        };
        let activity = trace.activity(place.0, place.1);
        let (name, shape) = match activity.what {
            What::Kernel(kernel) => (
                Some(describe::whole(trace, &activity.what)),
                Some(trace.shape(kernel.shape)),
            ),
            _ => (None, None),
        };
        Some(Operation {
            place,
            process: key.process,
            pid: trace.processes()[key.process].info.pid,
            device: &trace.devices()[device].info,
            context,
            stream,
            kind: kind(&activity.what)?,
            name,
            bytes: bytes(&activity.what),
            copy: match activity.what {
                What::Copy(copy) => Some(copy),
                _ => None,
            },
            shape,
            activity,
        })
    }
}

/// The operations of all streams, by start.
pub(super) fn operations(trace: &Trace) -> impl Iterator<Item = Operation<'_>> {
    let mut list: Vec<(Ns, u32, u32)> = Vec::new();
    for (id, lane) in trace.streams() {
        let rows = lane.kept();
        list.extend(rows.map(|row| (lane.span(row).start, id as u32, row as u32)));
    }
    list.sort_unstable();
    list.into_iter()
        .filter_map(|(_, lane, row)| Operation::find(trace, (lane as usize, row as usize)))
}

/// The name of an operation or a call in traces of Kineto. It has words of its own for copies, memsets and syncs, and
/// readers of such traces know them by those.
pub(super) fn kineto_name(trace: &Trace, activity: &Activity) -> String {
    match &activity.what {
        What::Copy(c) => copy_name(c),
        What::Memset(_) => "Memset (Device)".to_owned(),
        What::Sync(s) => s.kind.kineto_name().to_owned(),
        what => describe::whole(trace, what),
    }
}

fn copy_name(copy: &Copy) -> String {
    let direction = match copy.direction {
        Direction::H2D => "HtoD",
        Direction::D2H => "DtoH",
        Direction::D2D => "DtoD",
        Direction::P2P => "PtoP",
        Direction::Other => "other",
    };
    format!(
        "Memcpy {direction} ({} -> {})",
        kind_name(copy.from),
        kind_name(copy.to)
    )
}

/// Kineto's word for it: it begins with a capital.
fn kind_name(kind: MemoryKind) -> String {
    let label = kind.label();
    label[..1].to_uppercase() + &label[1..]
}

/// The kind of an operation in tables: copies by their direction. `None` for what is none.
fn kind(what: &What) -> Option<&'static str> {
    Some(match what {
        What::Copy(copy) => match copy.direction {
            Direction::H2D => "h2d",
            Direction::D2H => "d2h",
            Direction::D2D => "d2d",
            Direction::P2P => "p2p",
            Direction::Other => "copy",
        },
        what => return describe::operation_kind(what),
    })
}

/// Bytes that an operation moved or wrote.
pub(super) fn bytes(what: &What) -> Option<u64> {
    match what {
        What::Copy(c) => Some(c.bytes),
        What::Memset(m) => Some(m.bytes),
        _ => None,
    }
}

/// The dimensions of a grid or a block.
pub(super) fn size([x, y, z]: [u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

/// Bytes of shared memory that a block of a kernel takes.
pub(super) fn shared(shape: &LaunchShape) -> u64 {
    u64::from(shape.static_shared) + u64::from(shape.dynamic_shared)
}

/// What GPUs' counters and sensors said: each value with its device and its window.
pub(super) fn readings(
    trace: &Trace,
) -> impl Iterator<Item = (&DeviceInfo, &GpuWindow, Metric, f64)> {
    let devices = trace.devices().iter().enumerate();
    let read = devices.filter_map(|(index, it)| Some((&it.info, trace.readings(index)?)));
    read.flat_map(|(device, gpu)| {
        let windows = gpu.windows().chain(gpu.samples());
        windows.flat_map(move |window| {
            let value = move |metric| Some((device, window, metric, window.value(metric)?));
            Metric::ALL.into_iter().filter_map(value)
        })
    })
}

/// A system's id for each process, made up where it is not known or stands for two of them.
pub(super) fn pids(trace: &Trace) -> Vec<u32> {
    let mut pids: Vec<u32> = Vec::new();
    for (index, process) in trace.processes().iter().enumerate() {
        let known = process.info.pid;
        // Devices stand in the place of process ids in Kineto's format, and are small numbers.
        let is_usable = known > 4095 && !pids.contains(&known);
        pids.push(if is_usable {
            known
        } else {
            1_000_000_000 + index as u32
        });
    }
    pids
}

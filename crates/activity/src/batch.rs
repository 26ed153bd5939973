//! Batches: activities of one process, the definitions they refer to, and the losses so far.

use super::{
    Activity, Collective, DeviceInfo, Hardware, Health, LaunchShape, Mode, NameId, OffCpu,
    ProcessInfo, Samples, ShapeId, StreamInfo,
};

/// What one process sent, in the order in which it was collected.
///
/// A definition stands in a batch no later than the first activity that refers to it. Ids are local
/// to the process; the trace store maps them to its own.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Which process of the timeline sent it: an index that the source counts up from 0.
    pub process: u32,
    /// Whether another process's records of the same time follow, so that sums can wait.
    pub is_part: bool,
    /// Whether a model made it, and no GPU was involved.
    pub simulated: bool,
    /// Names, launch shapes, devices, streams, threads.
    pub defs: Vec<Def>,
    /// What happened, by and large in order of end time. Order is not promised.
    pub items: Vec<Activity>,
    /// This process's counters so far (totals, not increments), when they changed.
    pub health: Option<Health>,
    /// Stack samples of it.
    pub samples: Option<Samples>,
    /// What GPUs' counters and sensors said, whatever the process.
    pub hardware: Vec<Hardware>,
    /// What its launching threads did on and off their processors.
    pub off_cpu: Vec<OffCpu>,
}

impl Batch {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
            && self.defs.is_empty()
            && self.health.is_none()
            && self.samples.is_none()
            && self.hardware.is_empty()
            && self.off_cpu.is_empty()
    }
}

/// Something that activities refer to.
#[derive(Clone, Debug, PartialEq)]
pub enum Def {
    /// A string.
    Name {
        /// Its id in this process.
        id: NameId,
        /// The text, as the source had it: it may hold control characters and mangled symbols.
        text: String,
    },
    /// A kernel's name and launch configuration.
    Shape {
        /// Its id in this process.
        id: ShapeId,
        /// The configuration.
        shape: LaunchShape,
    },
    /// What the kernels of a shape, defined before it, do together with those of other processes.
    Collective {
        /// The shape's id in this process.
        shape: ShapeId,
        /// What they do.
        collective: Collective,
    },
    /// A device of the process.
    Device(DeviceInfo),
    /// A stream of the process.
    Stream(StreamInfo),
    /// A host thread's name.
    Thread {
        /// The operating system's id.
        thread: u32,
        /// What the program calls it.
        name: String,
    },
    /// What is recorded of the process from a moment on; all is where it was never said.
    Mode(Mode),
    /// The process itself. May come again when more is known.
    Process(ProcessInfo),
}

//! Record kinds (`CUpti_ActivityKind`) and the numbers inside records, as in `cupti_activity.h`.
//!
//! The values are the same in every release from 11.8 to 13.5.

#![allow(missing_docs)] // the names are the header's names

pub const MEMCPY: u32 = 1;
pub const MEMSET: u32 = 2;
/// Serialises all kernels: never enabled by cuptop. The records are those of [`CONCURRENT_KERNEL`].
pub const KERNEL: u32 = 3;
pub const DRIVER: u32 = 4;
pub const RUNTIME: u32 = 5;
pub const DEVICE: u32 = 8;
pub const CONTEXT: u32 = 9;
pub const CONCURRENT_KERNEL: u32 = 10;
pub const NAME: u32 = 11;
pub const MARKER: u32 = 12;
pub const MARKER_DATA: u32 = 13;
pub const OVERHEAD: u32 = 17;
pub const ENVIRONMENT: u32 = 20;
/// Copies between two devices.
pub const MEMCPY2: u32 = 22;
pub const UNIFIED_MEMORY_COUNTER: u32 = 25;
pub const FUNCTION: u32 = 26;
pub const MODULE: u32 = 27;
pub const DEVICE_ATTRIBUTE: u32 = 28;
pub const CUDA_EVENT: u32 = 36;
pub const STREAM: u32 = 37;
pub const SYNCHRONIZATION: u32 = 38;
pub const EXTERNAL_CORRELATION: u32 = 39;
pub const MEMORY: u32 = 45;
pub const INTERNAL_LAUNCH_API: u32 = 48;
/// Allocations and frees as they happen.
pub const MEMORY2: u32 = 49;
pub const MEMORY_POOL: u32 = 50;
pub const GRAPH_TRACE: u32 = 51;
pub const JIT: u32 = 52;
pub const DEVICE_GRAPH_TRACE: u32 = 53;
/// One more than the highest kind of which a size is asked.
pub const LIMIT: u32 = 64;

/// Both kinds of kernels have the same.
const KERNELS: &[(u32, u16)] = &[
    (20, 208),
    (130_000, 216),
    (130_100, 224),
    (130_300, 232),
    (130_400, 248),
];

/// The kinds whose records are walked, each with the length of a record by the first version that has it. Lengths were
/// measured with the libraries of 12.2 to 13.1, and taken from the headers of 13.2 to 13.5. For versions up to 18 (11.8
/// to 12.1) only where all three agree. Where there is none the library is asked alone.
pub(crate) const LAYOUTS: &[(u32, &[(u32, u16)])] = &[
    (MEMCPY, &[(0, 88), (26, 96), (130_400, 112)]),
    (MEMSET, &[(0, 88), (130_400, 104)]),
    (KERNEL, KERNELS),
    (DRIVER, &[(0, 40)]),
    (RUNTIME, &[(0, 40)]),
    (DEVICE, &[(0, 176), (20, 184), (130_200, 192)]),
    (CONTEXT, &[(0, 16), (22, 24), (23, 32), (130_100, 40)]),
    (CONCURRENT_KERNEL, KERNELS),
    (NAME, &[(0, 32)]),
    (MARKER, &[(0, 56)]),
    (MARKER_DATA, &[(0, 32), (130_000, 40)]),
    (OVERHEAD, &[(0, 40), (21, 48), (22, 56)]),
    (ENVIRONMENT, &[(0, 40)]),
    (MEMCPY2, &[(0, 96)]),
    (UNIFIED_MEMORY_COUNTER, &[]),
    (FUNCTION, &[(0, 32)]),
    (MODULE, &[(0, 24)]),
    (DEVICE_ATTRIBUTE, &[(0, 24)]),
    (CUDA_EVENT, &[(0, 24), (26, 56), (130_500, 80)]),
    (STREAM, &[(0, 24)]),
    (SYNCHRONIZATION, &[(0, 40), (26, 56)]),
    (EXTERNAL_CORRELATION, &[(0, 24)]),
    (MEMORY, &[(0, 80)]),
    (INTERNAL_LAUNCH_API, &[(0, 40)]),
    (MEMORY2, &[(0, 120), (26, 128)]),
    (MEMORY_POOL, &[]),
    (GRAPH_TRACE, &[(0, 48), (21, 56)]),
    (JIT, &[(0, 64), (22, 72)]),
    (DEVICE_GRAPH_TRACE, &[]),
];

/// `CUpti_ActivityAttribute`.
pub mod attribute {
    /// The tool zeroes buffers itself (u8).
    pub const ZEROED_OUT_ACTIVITY_BUFFER: u32 = 5;
    /// One buffer for each thread that calls CUDA (u8); exists since 12.3, on by default since 13.0.
    pub const PER_THREAD_ACTIVITY_BUFFER: u32 = 9;
}

/// `CUpti_ActivityMemcpyKind`.
pub mod copy {
    pub const UNKNOWN: u8 = 0;
    pub const HTOD: u8 = 1;
    pub const DTOH: u8 = 2;
    pub const HTOA: u8 = 3;
    pub const ATOH: u8 = 4;
    pub const ATOA: u8 = 5;
    pub const ATOD: u8 = 6;
    pub const DTOA: u8 = 7;
    pub const DTOD: u8 = 8;
    pub const HTOH: u8 = 9;
    pub const PTOP: u8 = 10;
    /// Flag of copies and memsets: the call was asynchronous.
    pub const FLAG_ASYNC: u32 = 1;
}

/// `CUpti_ActivityMemoryKind`. (Nsight Systems numbers the same kinds differently.)
pub mod memory {
    pub const UNKNOWN: u32 = 0;
    pub const PAGEABLE: u32 = 1;
    pub const PINNED: u32 = 2;
    pub const DEVICE: u32 = 3;
    pub const ARRAY: u32 = 4;
    pub const MANAGED: u32 = 5;
    pub const DEVICE_STATIC: u32 = 6;
    pub const MANAGED_STATIC: u32 = 7;
    /// `CUpti_ActivityMemoryOperationType`: allocated.
    pub const OPERATION_ALLOCATION: u32 = 1;
    /// `CUpti_ActivityMemoryOperationType`: freed.
    pub const OPERATION_RELEASE: u32 = 2;
}

/// `CUpti_ActivitySynchronizationType`.
pub mod sync {
    pub const EVENT_SYNCHRONIZE: u32 = 1;
    pub const STREAM_WAIT_EVENT: u32 = 2;
    pub const STREAM_SYNCHRONIZE: u32 = 3;
    pub const CONTEXT_SYNCHRONIZE: u32 = 4;
    /// A stream or event that does not apply.
    pub const INVALID: u32 = u32::MAX;
}

/// `CUpti_ActivityObjectKind`.
pub mod object {
    pub const PROCESS: u32 = 1;
    pub const THREAD: u32 = 2;
    pub const DEVICE: u32 = 3;
    pub const CONTEXT: u32 = 4;
    pub const STREAM: u32 = 5;
}

/// `CUpti_ActivityFlag` of markers.
pub mod marker {
    pub const START: u32 = 1 << 1;
    pub const END: u32 = 1 << 2;
}

/// `CUpti_ActivityOverheadKind` in words.
pub fn overhead_name(kind: u32) -> &'static str {
    match kind {
        1 => "driver compiler (JIT)",
        0x1_0000 => "activity buffer flush",
        0x2_0000 => "instrumentation",
        0x3_0000 => "profiler resources",
        0x4_0000 => "module loading by the runtime",
        0x5_0000 => "lazy function loading",
        0x6_0000 => "command buffer full",
        0x7_0000 => "activity buffer request",
        0x8_0000 => "unified memory initialisation",
        _ => "overhead of an unknown kind",
    }
}

/// `CUpti_CallbackDomain`.
pub mod domain {
    pub const DRIVER_API: u32 = 1;
    pub const RUNTIME_API: u32 = 2;
    pub const RESOURCE: u32 = 3;
}

/// `CUpti_CallbackIdResource`, as far as it is of modules and graphs.
pub mod resource {
    pub const MODULE_LOADED: u32 = 6;
    /// Of a capture: when it begins.
    pub const GRAPH_CREATED: u32 = 9;
    pub const NODE_CREATED: u32 = 13;
    pub const EXEC_STARTS: u32 = 17;
    pub const EXEC_CREATED: u32 = 18;
    pub const NODE_CLONED: u32 = 20;
    /// From CUDA 13.0 on, as the next.
    pub const NODE_UPDATED: u32 = 22;
    pub const NODE_SET_PARAMS: u32 = 23;
    /// What tells of new nodes, and of those that become others.
    pub const MADE: [u32; 4] = [NODE_CREATED, NODE_CLONED, EXEC_STARTS, EXEC_CREATED];
    pub const CHANGED: [u32; 2] = [NODE_UPDATED, NODE_SET_PARAMS];
}

/// Flag of a flush: hand out buffers with unfinished records too.
pub const FLUSH_FORCED: u32 = 1;
/// Thread ids are the kernel's (`gettid`) instead of `pthread_self`.
pub const THREAD_ID_SYSTEM: u32 = 1;

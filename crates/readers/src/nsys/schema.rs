//! The tables that are read: which columns of each, and what becomes of its rows.

use rusqlite::Row;

use super::rows::Reader;

/// A table that is read.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The first two are the record's time; without the very first the table is not read.
    pub(super) columns: &'static [&'static str],
    pub(super) take: fn(&mut Reader<'_>, &Row<'_>) -> rusqlite::Result<()>,
}

/// Host calls come first: of a schema that does not say which process an operation belongs to, there
/// is one process, and the calls say which.
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "CUPTI_ACTIVITY_KIND_RUNTIME",
        columns: &[
            "start",
            "end",
            "globalTid",
            "correlationId",
            "nameId",
            "returnValue",
        ],
        take: |reader, row| reader.call(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_KERNEL",
        columns: &[
            "start",
            "end",
            "globalPid",
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "demangledName",
            "shortName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
            "localMemoryPerThread",
            "clusterX",
            "clusterY",
            "clusterZ",
            "graphId",
            "graphNodeId",
        ],
        take: |reader, row| reader.kernel(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMCPY",
        columns: &[
            "start",
            "end",
            "globalPid",
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "bytes",
            "copyKind",
            "srcKind",
            "dstKind",
            "srcDeviceId",
            "dstDeviceId",
            "graphNodeId",
        ],
        take: |reader, row| reader.copy(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMSET",
        columns: &[
            "start",
            "end",
            "globalPid",
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "bytes",
            "graphNodeId",
        ],
        take: |reader, row| reader.memset(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        columns: &[
            "start",
            "end",
            "globalPid",
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "graphId",
        ],
        take: |reader, row| reader.graph(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        columns: &[
            "start",
            "end",
            "globalPid",
            "correlationId",
            "contextId",
            "streamId",
            "eventId",
            "syncType",
        ],
        take: |reader, row| reader.sync(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_OVERHEAD",
        columns: &["start", "end", "globalTid", "nameId", "overheadType"],
        take: |reader, row| reader.overhead(row),
    },
    Table {
        name: "PROFILER_OVERHEAD",
        columns: &["start", "end", "globalTid", "nameId", "overheadType"],
        take: |reader, row| reader.overhead(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        columns: &[
            "timestamp",
            "timestamp",
            "globalPid",
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "eventId",
        ],
        take: |reader, row| reader.event(row),
    },
    Table {
        name: "CUDA_GPU_MEMORY_USAGE_EVENTS",
        columns: &[
            "start",
            "start",
            "globalPid",
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "bytes",
            "memKind",
            "memoryOperationType",
            "address",
            "localMemoryPoolAddress",
        ],
        take: |reader, row| reader.memory(row),
    },
    Table {
        name: "NVTX_EVENTS",
        columns: &["start", "end", "globalTid", "eventType", "text", "textId"],
        take: |reader, row| reader.nvtx(row),
    },
];

//! The tables that the reader needs: which columns of each, and which activity its rows become.

use rusqlite::Row;

use super::rows::RowReader;

/// A table that the reader needs.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The first two are the record's time; a table without the very first is skipped.
    pub(super) columns: &'static [&'static str],
    pub(super) take: fn(&mut RowReader<'_>, &Row<'_>) -> rusqlite::Result<()>,
}

/// Table, the functions that take its rows, its columns.
macro_rules! tables {
    ($($name:ident $take:ident $($what:ident)?: $($column:ident)*;)*) => {
        /// Host calls come first. Some schemas do not tell which process an operation belongs to: then there is one
        /// process, and the calls name it.
        pub(super) const TABLES: &[Table] = &[$(Table {
            name: stringify!($name),
            columns: &[$(stringify!($column)),*],
            take: |reader, row| reader.$take(row $(, RowReader::$what)?),
        }),*];
    };
}

tables! {
    CUPTI_ACTIVITY_KIND_RUNTIME call:
        start end globalTid correlationId nameId returnValue;
    OSRT_API os_call:
        start end globalTid nameId;
    MPI_OTHER_EVENTS mpi_call:
        start end globalTid textId;
    MPI_P2P_EVENTS mpi_call:
        start end globalTid textId;
    MPI_COLLECTIVES_EVENTS mpi_call:
        start end globalTid textId;
    MPI_START_WAIT_EVENTS mpi_call:
        start end globalTid textId;
    CUPTI_ACTIVITY_KIND_KERNEL operation kernel:
        start end globalPid correlationId deviceId contextId streamId demangledName shortName gridX gridY gridZ
        blockX blockY blockZ registersPerThread staticSharedMemory dynamicSharedMemory localMemoryPerThread clusterX
        clusterY clusterZ graphId graphNodeId mangledName;
    CUPTI_ACTIVITY_KIND_MEMCPY operation copy:
        start end globalPid correlationId deviceId contextId streamId bytes copyKind srcKind dstKind srcDeviceId
        dstDeviceId graphNodeId migrationCause;
    CUPTI_ACTIVITY_KIND_MEMSET operation memset:
        start end globalPid correlationId deviceId contextId streamId bytes graphNodeId;
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE operation graph:
        start end globalPid correlationId deviceId contextId streamId graphId;
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION operation sync:
        start end globalPid correlationId contextId streamId eventId;
    CUPTI_ACTIVITY_KIND_OVERHEAD overhead:
        start end globalTid nameId overheadType;
    PROFILER_OVERHEAD overhead:
        start end globalTid nameId overheadType;
    CUPTI_ACTIVITY_KIND_CUDA_EVENT operation event:
        timestamp timestamp globalPid correlationId deviceId contextId streamId eventId;
    CUDA_GPU_MEMORY_USAGE_EVENTS operation memory:
        start start globalPid correlationId deviceId contextId streamId bytes memKind memoryOperationType address
        localMemoryPoolAddress;
    NVTX_EVENTS nvtx:
        start end globalTid eventType text textId;
}

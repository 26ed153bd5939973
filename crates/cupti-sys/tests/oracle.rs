//! Offsets and constants against cudarc's bindings, which bindgen made from CUDA 13.0's headers.

use std::mem::offset_of;

use cudarc::cupti::sys;
use cupti_sys::{api, kinds, records, sizes::RecordSizes};

/// Fills a record so that every byte differs from its neighbours and says where it lies.
fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from((at * 7 + at / 251) % 251).expect("under 251"))
        .collect()
}

fn u64_in(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}
fn u32_in(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
}
fn u16_in(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(record[at..at + 2].try_into().expect("two bytes"))
}

/// `same!(read, record, sys::Type, ours => theirs: width, …)`
macro_rules! same {
    ($read:ident, $record:ident, $type:ty, $($ours:ident => $theirs:ident : $width:ident),* $(,)?) => {
        $(assert_eq!(
            $read.$ours,
            $width(&$record, offset_of!($type, $theirs)).into(),
            concat!(stringify!($type), ".", stringify!($theirs))
        );)*
    };
}
/// The same for signed fields.
macro_rules! same_signed {
    ($read:ident, $record:ident, $type:ty, $($ours:ident => $theirs:ident),* $(,)?) => {
        $(assert_eq!(
            $read.$ours.cast_unsigned(),
            u32_in(&$record, offset_of!($type, $theirs)),
            concat!(stringify!($type), ".", stringify!($theirs))
        );)*
    };
}
fn u8_in(record: &[u8], at: usize) -> u8 {
    record[at]
}
fn pointer_in(record: &[u8], at: usize) -> records::Text {
    records::Text(u64_in(record, at))
}

#[test]
fn kernel() {
    type T = sys::CUpti_ActivityKernel10;
    let bytes = pattern(size_of::<T>());
    let read = records::Kernel::read(&bytes).expect("long enough");
    same!(read, bytes, T, registers => registersPerThread: u16_in, start => start: u64_in, end => end: u64_in,
        device => deviceId: u32_in, context => contextId: u32_in, stream => streamId: u32_in,
        static_shared => staticSharedMemory: u32_in, dynamic_shared => dynamicSharedMemory: u32_in,
        local => localMemoryPerThread: u32_in, correlation => correlationId: u32_in, name => name: pointer_in,
        graph_node => graphNodeId: u64_in, graph => graphId: u32_in, channel => channelID: u32_in,
        channel_type => channelType: u32_in);
    let three = |at| {
        [
            u32_in(&bytes, at),
            u32_in(&bytes, at + 4),
            u32_in(&bytes, at + 8),
        ]
    };
    assert_eq!(read.grid, three(offset_of!(T, gridX)));
    assert_eq!(offset_of!(T, gridZ), offset_of!(T, gridX) + 8);
    assert_eq!(read.block, three(offset_of!(T, blockX)));
    assert_eq!(offset_of!(T, blockZ), offset_of!(T, blockX) + 8);
    assert_eq!(read.cluster, three(offset_of!(T, clusterX)));
}

#[test]
fn copies_and_memsets() {
    type C = sys::CUpti_ActivityMemcpy6;
    let bytes = pattern(size_of::<C>());
    let read = records::Memcpy::read(&bytes).expect("long enough");
    same!(read, bytes, C, copy_kind => copyKind: u8_in, source_kind => srcKind: u8_in, target_kind => dstKind: u8_in,
        flags => flags: u8_in, bytes => bytes: u64_in, start => start: u64_in, end => end: u64_in,
        device => deviceId: u32_in, context => contextId: u32_in, stream => streamId: u32_in,
        correlation => correlationId: u32_in, graph => graphId: u32_in, channel => channelID: u32_in,
        channel_type => channelType: u32_in);
    assert_eq!(
        read.copy_count,
        Some(u64_in(&bytes, offset_of!(C, copyCount)))
    );

    type P = sys::CUpti_ActivityMemcpyPtoP4;
    let bytes = pattern(size_of::<P>());
    let read = records::PeerCopy::read(&bytes).expect("long enough");
    same!(read, bytes, P, copy_kind => copyKind: u8_in, source_kind => srcKind: u8_in, target_kind => dstKind: u8_in,
        flags => flags: u8_in, bytes => bytes: u64_in, start => start: u64_in, end => end: u64_in,
        device => deviceId: u32_in, context => contextId: u32_in, stream => streamId: u32_in,
        source_device => srcDeviceId: u32_in, target_device => dstDeviceId: u32_in,
        correlation => correlationId: u32_in, graph => graphId: u32_in, channel => channelID: u32_in);

    type M = sys::CUpti_ActivityMemset4;
    let bytes = pattern(size_of::<M>());
    let read = records::Memset::read(&bytes).expect("long enough");
    same!(read, bytes, M, bytes => bytes: u64_in, start => start: u64_in, end => end: u64_in,
        device => deviceId: u32_in, context => contextId: u32_in, stream => streamId: u32_in,
        correlation => correlationId: u32_in, graph => graphId: u32_in, channel => channelID: u32_in);
}

#[test]
fn host_side() {
    type A = sys::CUpti_ActivityAPI;
    let bytes = pattern(size_of::<A>());
    let read = records::ApiCall::read(&bytes).expect("long enough");
    same!(read, bytes, A, callback_id => cbid: u32_in, start => start: u64_in, end => end: u64_in,
        thread => threadId: u32_in, correlation => correlationId: u32_in);
    same_signed!(read, bytes, A, code => returnValue);

    type S = sys::CUpti_ActivitySynchronization2;
    let bytes = pattern(size_of::<S>());
    let read = records::Sync::read(&bytes).expect("long enough");
    same!(read, bytes, S, sync_kind => type_: u32_in, start => start: u64_in, end => end: u64_in,
        correlation => correlationId: u32_in, context => contextId: u32_in, stream => streamId: u32_in,
        event => cudaEventId: u32_in);

    type O = sys::CUpti_ActivityOverhead3;
    let bytes = pattern(size_of::<O>());
    let read = records::Overhead::read(&bytes).expect("long enough");
    same!(read, bytes, O, overhead_kind => overheadKind: u32_in, object_kind => objectKind: u32_in,
        start => start: u64_in, end => end: u64_in);
    assert_eq!(read.object[0], u32_in(&bytes, offset_of!(O, objectId)));
    assert_eq!(
        read.correlation,
        Some(u32_in(&bytes, offset_of!(O, correlationId)))
    );

    type N = sys::CUpti_ActivityName;
    let bytes = pattern(size_of::<N>());
    let read = records::Name::read(&bytes).expect("long enough");
    same!(read, bytes, N, object_kind => objectKind: u32_in, name => name: pointer_in);
    assert_eq!(read.object[0], u32_in(&bytes, offset_of!(N, objectId)));

    type K = sys::CUpti_ActivityMarker2;
    let bytes = pattern(size_of::<K>());
    let read = records::Marker::read(&bytes).expect("long enough");
    same!(read, bytes, K, flags => flags: u32_in, time => timestamp: u64_in, id => id: u32_in,
        object_kind => objectKind: u32_in, name => name: pointer_in, domain => domain: pointer_in);
    assert_eq!(read.object[0], u32_in(&bytes, offset_of!(K, objectId)));
}

#[test]
fn things_that_operations_refer_to() {
    type D = sys::CUpti_ActivityDevice5;
    let bytes = pattern(size_of::<D>());
    let read = records::Device::read(&bytes).expect("long enough");
    same!(read, bytes, D, memory_bandwidth => globalMemoryBandwidth: u64_in, memory => globalMemorySize: u64_in,
        warp => numThreadsPerWarp: u32_in, clock => coreClockRate: u32_in, copy_engines => numMemcpyEngines: u32_in,
        multiprocessors => numMultiprocessors: u32_in, max_warps => maxWarpsPerMultiprocessor: u32_in,
        max_blocks => maxBlocksPerMultiprocessor: u32_in, shared => maxSharedMemoryPerMultiprocessor: u32_in,
        registers => maxRegistersPerMultiprocessor: u32_in, major => computeCapabilityMajor: u32_in,
        minor => computeCapabilityMinor: u32_in, id => id: u32_in, name => name: pointer_in,
        visible => isCudaVisible: u8_in);
    assert_eq!(read.uuid, bytes[offset_of!(D, uuid)..][..16]);

    type X = sys::CUpti_ActivityContext3;
    let bytes = pattern(size_of::<X>());
    let read = records::Context::read(&bytes).expect("long enough");
    same!(read, bytes, X, id => contextId: u32_in, device => deviceId: u32_in, null_stream => nullStreamId: u16_in);

    type S = sys::CUpti_ActivityStream;
    let bytes = pattern(size_of::<S>());
    let read = records::Stream::read(&bytes).expect("long enough");
    same!(read, bytes, S, context => contextId: u32_in, id => streamId: u32_in, flag => flag: u32_in);
    same_signed!(read, bytes, S, priority => priority);

    type E = sys::CUpti_ActivityCudaEvent2;
    let bytes = pattern(size_of::<E>());
    let read = records::CudaEvent::read(&bytes).expect("long enough");
    same!(read, bytes, E, correlation => correlationId: u32_in, context => contextId: u32_in,
        stream => streamId: u32_in, event => eventId: u32_in);
    assert_eq!(read.device, Some(u32_in(&bytes, offset_of!(E, deviceId))));

    type M = sys::CUpti_ActivityMemory4;
    let bytes = pattern(size_of::<M>());
    let read = records::Memory::read(&bytes).expect("long enough");
    same!(read, bytes, M, operation => memoryOperationType: u32_in, memory_kind => memoryKind: u32_in,
        correlation => correlationId: u32_in, address => address: u64_in, bytes => bytes: u64_in,
        time => timestamp: u64_in, device => deviceId: u32_in, context => contextId: u32_in,
        stream => streamId: u32_in, is_async => isAsync: u32_in);
}

#[test]
fn the_table_of_sizes_is_right_for_13_0() {
    let known = RecordSizes::known(130_001);
    for (kind, size) in [
        (
            kinds::CONCURRENT_KERNEL,
            size_of::<sys::CUpti_ActivityKernel10>(),
        ),
        (kinds::MEMCPY, size_of::<sys::CUpti_ActivityMemcpy6>()),
        (kinds::MEMCPY2, size_of::<sys::CUpti_ActivityMemcpyPtoP4>()),
        (kinds::MEMSET, size_of::<sys::CUpti_ActivityMemset4>()),
        (kinds::RUNTIME, size_of::<sys::CUpti_ActivityAPI>()),
        (
            kinds::SYNCHRONIZATION,
            size_of::<sys::CUpti_ActivitySynchronization2>(),
        ),
        (kinds::OVERHEAD, size_of::<sys::CUpti_ActivityOverhead3>()),
        (kinds::NAME, size_of::<sys::CUpti_ActivityName>()),
        (kinds::MARKER, size_of::<sys::CUpti_ActivityMarker2>()),
        (
            kinds::MARKER_DATA,
            size_of::<sys::CUpti_ActivityMarkerData2>(),
        ),
        (kinds::DEVICE, size_of::<sys::CUpti_ActivityDevice5>()),
        (kinds::CONTEXT, size_of::<sys::CUpti_ActivityContext3>()),
        (kinds::STREAM, size_of::<sys::CUpti_ActivityStream>()),
        (
            kinds::CUDA_EVENT,
            size_of::<sys::CUpti_ActivityCudaEvent2>(),
        ),
        (kinds::MEMORY2, size_of::<sys::CUpti_ActivityMemory4>()),
        (
            kinds::GRAPH_TRACE,
            size_of::<sys::CUpti_ActivityGraphTrace2>(),
        ),
    ] {
        assert_eq!(known.get(kind), Some(size), "kind {kind}");
    }
}

#[test]
fn constants() {
    use sys::CUpti_ActivityAttribute as Attribute;
    use sys::CUpti_ActivityKind as Kind;
    use sys::CUpti_ActivityMemcpyKind as CopyKind;
    use sys::CUpti_ActivityMemoryKind as MemoryKind;
    use sys::CUpti_ActivityObjectKind as Object;
    use sys::CUpti_ActivitySynchronizationType as SyncType;
    use sys::CUptiResult as Result;
    let pairs: &[(u32, u32)] = &[
        (kinds::MEMCPY, Kind::CUPTI_ACTIVITY_KIND_MEMCPY as u32),
        (kinds::MEMSET, Kind::CUPTI_ACTIVITY_KIND_MEMSET as u32),
        (kinds::KERNEL, Kind::CUPTI_ACTIVITY_KIND_KERNEL as u32),
        (kinds::DRIVER, Kind::CUPTI_ACTIVITY_KIND_DRIVER as u32),
        (kinds::RUNTIME, Kind::CUPTI_ACTIVITY_KIND_RUNTIME as u32),
        (kinds::DEVICE, Kind::CUPTI_ACTIVITY_KIND_DEVICE as u32),
        (kinds::CONTEXT, Kind::CUPTI_ACTIVITY_KIND_CONTEXT as u32),
        (
            kinds::CONCURRENT_KERNEL,
            Kind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL as u32,
        ),
        (kinds::NAME, Kind::CUPTI_ACTIVITY_KIND_NAME as u32),
        (kinds::MARKER, Kind::CUPTI_ACTIVITY_KIND_MARKER as u32),
        (
            kinds::MARKER_DATA,
            Kind::CUPTI_ACTIVITY_KIND_MARKER_DATA as u32,
        ),
        (kinds::OVERHEAD, Kind::CUPTI_ACTIVITY_KIND_OVERHEAD as u32),
        (
            kinds::ENVIRONMENT,
            Kind::CUPTI_ACTIVITY_KIND_ENVIRONMENT as u32,
        ),
        (kinds::MEMCPY2, Kind::CUPTI_ACTIVITY_KIND_MEMCPY2 as u32),
        (
            kinds::UNIFIED_MEMORY_COUNTER,
            Kind::CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER as u32,
        ),
        (kinds::FUNCTION, Kind::CUPTI_ACTIVITY_KIND_FUNCTION as u32),
        (kinds::MODULE, Kind::CUPTI_ACTIVITY_KIND_MODULE as u32),
        (
            kinds::DEVICE_ATTRIBUTE,
            Kind::CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE as u32,
        ),
        (
            kinds::CUDA_EVENT,
            Kind::CUPTI_ACTIVITY_KIND_CUDA_EVENT as u32,
        ),
        (kinds::STREAM, Kind::CUPTI_ACTIVITY_KIND_STREAM as u32),
        (
            kinds::SYNCHRONIZATION,
            Kind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION as u32,
        ),
        (
            kinds::EXTERNAL_CORRELATION,
            Kind::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION as u32,
        ),
        (kinds::MEMORY, Kind::CUPTI_ACTIVITY_KIND_MEMORY as u32),
        (
            kinds::INTERNAL_LAUNCH_API,
            Kind::CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API as u32,
        ),
        (kinds::MEMORY2, Kind::CUPTI_ACTIVITY_KIND_MEMORY2 as u32),
        (
            kinds::MEMORY_POOL,
            Kind::CUPTI_ACTIVITY_KIND_MEMORY_POOL as u32,
        ),
        (
            kinds::GRAPH_TRACE,
            Kind::CUPTI_ACTIVITY_KIND_GRAPH_TRACE as u32,
        ),
        (kinds::JIT, Kind::CUPTI_ACTIVITY_KIND_JIT as u32),
        (
            kinds::DEVICE_GRAPH_TRACE,
            Kind::CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE as u32,
        ),
        (
            kinds::attribute::DEVICE_BUFFER_SIZE,
            Attribute::CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE as u32,
        ),
        (
            kinds::attribute::DEVICE_BUFFER_POOL_LIMIT,
            Attribute::CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT as u32,
        ),
        (
            kinds::attribute::ZEROED_OUT_ACTIVITY_BUFFER,
            Attribute::CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER as u32,
        ),
        (
            kinds::attribute::DEVICE_BUFFER_PRE_ALLOCATE_VALUE,
            Attribute::CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE as u32,
        ),
        (
            kinds::attribute::PER_THREAD_ACTIVITY_BUFFER,
            Attribute::CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER as u32,
        ),
        (
            u32::from(kinds::copy::HTOD),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_HTOD as u32,
        ),
        (
            u32::from(kinds::copy::DTOH),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_DTOH as u32,
        ),
        (
            u32::from(kinds::copy::HTOA),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_HTOA as u32,
        ),
        (
            u32::from(kinds::copy::ATOH),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_ATOH as u32,
        ),
        (
            u32::from(kinds::copy::ATOA),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_ATOA as u32,
        ),
        (
            u32::from(kinds::copy::ATOD),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_ATOD as u32,
        ),
        (
            u32::from(kinds::copy::DTOA),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_DTOA as u32,
        ),
        (
            u32::from(kinds::copy::DTOD),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_DTOD as u32,
        ),
        (
            u32::from(kinds::copy::HTOH),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_HTOH as u32,
        ),
        (
            u32::from(kinds::copy::PTOP),
            CopyKind::CUPTI_ACTIVITY_MEMCPY_KIND_PTOP as u32,
        ),
        (
            kinds::memory::PAGEABLE,
            MemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE as u32,
        ),
        (
            kinds::memory::PINNED,
            MemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_PINNED as u32,
        ),
        (
            kinds::memory::DEVICE,
            MemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE as u32,
        ),
        (
            kinds::memory::ARRAY,
            MemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_ARRAY as u32,
        ),
        (
            kinds::memory::MANAGED,
            MemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED as u32,
        ),
        (
            kinds::memory::DEVICE_STATIC,
            MemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC as u32,
        ),
        (
            kinds::memory::MANAGED_STATIC,
            MemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC as u32,
        ),
        (
            kinds::sync::EVENT_SYNCHRONIZE,
            SyncType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE as u32,
        ),
        (
            kinds::sync::STREAM_WAIT_EVENT,
            SyncType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT as u32,
        ),
        (
            kinds::sync::STREAM_SYNCHRONIZE,
            SyncType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE as u32,
        ),
        (
            kinds::sync::CONTEXT_SYNCHRONIZE,
            SyncType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE as u32,
        ),
        (
            kinds::object::PROCESS,
            Object::CUPTI_ACTIVITY_OBJECT_PROCESS as u32,
        ),
        (
            kinds::object::THREAD,
            Object::CUPTI_ACTIVITY_OBJECT_THREAD as u32,
        ),
        (
            kinds::object::DEVICE,
            Object::CUPTI_ACTIVITY_OBJECT_DEVICE as u32,
        ),
        (
            kinds::object::CONTEXT,
            Object::CUPTI_ACTIVITY_OBJECT_CONTEXT as u32,
        ),
        (
            kinds::object::STREAM,
            Object::CUPTI_ACTIVITY_OBJECT_STREAM as u32,
        ),
        (
            kinds::marker::INSTANTANEOUS,
            sys::CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS as u32,
        ),
        (
            kinds::marker::START,
            sys::CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_MARKER_START as u32,
        ),
        (
            kinds::marker::END,
            sys::CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_MARKER_END as u32,
        ),
        (
            kinds::copy::FLAG_ASYNC,
            sys::CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC as u32,
        ),
        (
            kinds::FLUSH_FORCED,
            sys::CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_FLUSH_FORCED as u32,
        ),
        (
            kinds::THREAD_ID_SYSTEM,
            sys::CUpti_ActivityThreadIdType::CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM as u32,
        ),
        (
            kinds::domain::DRIVER_API,
            sys::CUpti_CallbackDomain::CUPTI_CB_DOMAIN_DRIVER_API as u32,
        ),
        (
            kinds::domain::RUNTIME_API,
            sys::CUpti_CallbackDomain::CUPTI_CB_DOMAIN_RUNTIME_API as u32,
        ),
        (
            api::MAX_LIMIT_REACHED,
            Result::CUPTI_ERROR_MAX_LIMIT_REACHED as u32,
        ),
        (
            api::NOT_INITIALIZED,
            Result::CUPTI_ERROR_NOT_INITIALIZED as u32,
        ),
        (api::INVALID_KIND, Result::CUPTI_ERROR_INVALID_KIND as u32),
        (api::NOT_SUPPORTED, Result::CUPTI_ERROR_NOT_SUPPORTED as u32),
        (
            api::INSUFFICIENT_PRIVILEGES,
            Result::CUPTI_ERROR_INSUFFICIENT_PRIVILEGES as u32,
        ),
        (
            api::MULTIPLE_SUBSCRIBERS,
            Result::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED as u32,
        ),
        (api::UNKNOWN, Result::CUPTI_ERROR_UNKNOWN as u32),
    ];
    for (at, (ours, theirs)) in pairs.iter().enumerate() {
        assert_eq!(ours, theirs, "pair {at}");
    }
}

#[test]
fn parameters_of_subscribe() {
    type T = sys::CUpti_SubscriberParams;
    assert_eq!(size_of::<api::SubscriberParams>(), size_of::<T>());
    assert_eq!(
        offset_of!(api::SubscriberParams, subscriber_name),
        offset_of!(T, subscriberName)
    );
    assert_eq!(
        offset_of!(api::SubscriberParams, old_subscriber_name),
        offset_of!(T, oldSubscriberName)
    );
    assert_eq!(
        offset_of!(api::SubscriberParams, old_subscriber_size),
        offset_of!(T, oldSubscriberSize)
    );
}

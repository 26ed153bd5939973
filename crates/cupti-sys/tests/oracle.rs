//! Offsets and constants against cudarc's bindings, which bindgen made from CUDA 13.0's headers.

use std::mem::offset_of;

use cudarc::cupti::sys;
use cupti_sys::{api, kinds, records, sizes::known_size};

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
        graph_node => graphNodeId: u64_in, graph => graphId: u32_in);
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
        correlation => correlationId: u32_in, graph_node => graphNodeId: u64_in, graph => graphId: u32_in);

    type P = sys::CUpti_ActivityMemcpyPtoP4;
    let bytes = pattern(size_of::<P>());
    let read = records::Memcpy::read(&bytes).expect("long enough");
    same!(read, bytes, P, copy_kind => copyKind: u8_in, source_kind => srcKind: u8_in, target_kind => dstKind: u8_in,
        flags => flags: u8_in, bytes => bytes: u64_in, start => start: u64_in, end => end: u64_in,
        device => deviceId: u32_in, context => contextId: u32_in, stream => streamId: u32_in);
    let read = records::PeerCopy::read(&bytes).expect("long enough");
    same!(read, bytes, P, source_device => srcDeviceId: u32_in, target_device => dstDeviceId: u32_in,
        correlation => correlationId: u32_in, graph_node => graphNodeId: u64_in, graph => graphId: u32_in);

    type M = sys::CUpti_ActivityMemset4;
    let bytes = pattern(size_of::<M>());
    let read = records::Memset::read(&bytes).expect("long enough");
    same!(read, bytes, M, bytes => bytes: u64_in, start => start: u64_in, end => end: u64_in,
        device => deviceId: u32_in, context => contextId: u32_in, stream => streamId: u32_in,
        correlation => correlationId: u32_in, graph_node => graphNodeId: u64_in, graph => graphId: u32_in);
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
        object_kind => objectKind: u32_in, name => name: pointer_in);
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

    type G = sys::CUpti_ActivityGraphTrace2;
    let bytes = pattern(size_of::<G>());
    let read = records::GraphTrace::read(&bytes).expect("long enough");
    same!(read, bytes, G, correlation => correlationId: u32_in, start => start: u64_in, end => end: u64_in,
        device => deviceId: u32_in, graph => graphId: u32_in, context => contextId: u32_in,
        stream => streamId: u32_in);

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
        assert_eq!(
            known_size(kind, 130_001).map(usize::from),
            Some(size),
            "kind {kind}"
        );
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

//! Constants against cudarc's bindings, which bindgen made from CUDA 13.0's headers.

use cudarc::cupti::sys;
use cupti_sys::{api, kinds};

#[test]
fn constants() {
    use cupti_sys::kinds::{domain, resource};
    use sys::CUpti_ActivityAttribute as Attribute;
    use sys::CUpti_ActivityKind as Kind;
    use sys::CUpti_ActivityMemcpyKind as CopyKind;
    use sys::CUpti_ActivityMemoryKind as MemoryKind;
    use sys::CUpti_ActivityObjectKind as Object;
    use sys::CUpti_ActivitySynchronizationType as SyncType;
    use sys::CUpti_CallbackDomain as Domain;
    use sys::CUpti_CallbackIdResource as Notice;
    use sys::CUptiResult as Result;
    let pairs: &[(u32, u32)] = &[
        (domain::RESOURCE, Domain::CUPTI_CB_DOMAIN_RESOURCE as u32),
        (
            resource::GRAPH_CREATED,
            Notice::CUPTI_CBID_RESOURCE_GRAPH_CREATED as u32,
        ),
        (
            resource::NODE_CREATED,
            Notice::CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED as u32,
        ),
        (
            resource::EXEC_STARTS,
            Notice::CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING as u32,
        ),
        (
            resource::EXEC_CREATED,
            Notice::CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED as u32,
        ),
        (
            resource::NODE_CLONED,
            Notice::CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED as u32,
        ),
        (
            resource::NODE_UPDATED,
            Notice::CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED as u32,
        ),
        (
            resource::NODE_SET_PARAMS,
            Notice::CUPTI_CBID_RESOURCE_GRAPH_NODE_SET_PARAMS as u32,
        ),
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
            kinds::attribute::ZEROED_OUT_ACTIVITY_BUFFER,
            Attribute::CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER as u32,
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

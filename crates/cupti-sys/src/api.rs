//! The table of libcupti functions, and its result codes.
//!
//! Only what the collector calls. Functions that not every supported release exports are `Option`s:
//! a missing one is a `None` to be handled, not a crash at the first call.

use std::ffi::{c_char, c_void};

/// What a call returned.
pub type Code = u32;

/// A subscriber's handle.
pub type Subscriber = *mut c_void;
/// Asks for an empty buffer: sets the buffer, its size and the most records it may hold (0: as many as fit).
pub type BufferRequested =
    unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize);
/// Hands a buffer back: context, stream (both historic), buffer, its size, bytes that hold records.
pub type BufferCompleted = unsafe extern "C" fn(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
);
/// A subscriber's callback: user data, domain, callback id, details.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// `CUPTI_SUCCESS`.
pub const SUCCESS: Code = 0;
/// `CUPTI_ERROR_MAX_LIMIT_REACHED`: no further record in a buffer.
pub const MAX_LIMIT_REACHED: Code = 12;
/// `CUPTI_ERROR_NOT_INITIALIZED`.
pub const NOT_INITIALIZED: Code = 15;
/// `CUPTI_ERROR_INVALID_KIND`.
pub const INVALID_KIND: Code = 21;
/// `CUPTI_ERROR_NOT_SUPPORTED`.
pub const NOT_SUPPORTED: Code = 27;
/// `CUPTI_ERROR_INSUFFICIENT_PRIVILEGES`.
pub const INSUFFICIENT_PRIVILEGES: Code = 35;
/// `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`: another tool holds the process.
pub const MULTIPLE_SUBSCRIBERS: Code = 39;
/// `CUPTI_ERROR_UNKNOWN`.
pub const UNKNOWN: Code = 999;

/// A result code in words: the header's name without its prefix, and what it means in practice.
pub fn describe(code: Code) -> &'static str {
    match code {
        SUCCESS => "success",
        1 => "invalid parameter",
        2 => "invalid device",
        3 => "invalid context",
        7 => "invalid operation",
        8 => "out of memory",
        9 => "hardware failure or a sticky CUDA error",
        MAX_LIMIT_REACHED => "limit reached",
        13 => "not ready",
        14 => "not compatible with what is already enabled",
        NOT_INITIALIZED => {
            "not initialised: the CUDA driver is missing, or older than this libcupti"
        }
        INVALID_KIND => "unknown record kind",
        26 => "another program has this GPU's counters",
        NOT_SUPPORTED => "not supported on this system",
        31 => "not supported under MPS",
        33 => "not supported on a virtual GPU",
        INSUFFICIENT_PRIVILEGES => "insufficient privileges (see NVIDIA's ERR_NVGPUCTRPERM)",
        38 => "the older profiling API is in use",
        MULTIPLE_SUBSCRIBERS => "another profiler is already attached to this process",
        40 => "not allowed on this virtual GPU",
        41 => "not supported under confidential computing",
        42 => "not supported on this mining GPU",
        43 => "not supported on a MIG slice",
        44 => "not supported under SLI",
        45 => "not supported under WSL",
        46 => "unknown chip",
        47 => "hardware tracing is not supported under MPS",
        UNKNOWN => "unknown error (also what newer libraries say when no driver is loaded)",
        _ => "a code that this version of cuptop does not know",
    }
}

/// Parameters of `cuptiSubscribe_v2` (CUDA 13.0 and later), as CUDA 13.0 lays them out.
#[repr(C)]
pub struct SubscriberParams {
    /// Size of this structure: 32.
    pub struct_size: usize,
    /// Who subscribes.
    pub subscriber_name: *const c_char,
    /// Where the name of the tool that already subscribed is put.
    pub old_subscriber_name: *mut c_char,
    /// Room there, at least 64 bytes.
    pub old_subscriber_size: usize,
}

// The types are those of the headers; they have not changed from 11.8 to 13.5.
crate::functions! {
    /// The functions of one loaded libcupti.
    pub struct Api
    required {
        /// `cuptiGetVersion(version)`
        get_version = c"cuptiGetVersion" (*mut u32);
        /// `cuptiSubscribe(subscriber, callback, userdata)`
        subscribe = c"cuptiSubscribe" (*mut Subscriber, Option<Callback>, *mut c_void);
        /// `cuptiUnsubscribe(subscriber)`
        unsubscribe = c"cuptiUnsubscribe" (Subscriber);
        /// `cuptiActivityRegisterCallbacks(requested, completed)`
        register_callbacks = c"cuptiActivityRegisterCallbacks" (BufferRequested, BufferCompleted);
        /// `cuptiActivityEnable(kind)`
        enable = c"cuptiActivityEnable" (u32);
        /// `cuptiActivityDisable(kind)`
        disable = c"cuptiActivityDisable" (u32);
        /// `cuptiActivityFlushAll(flags)`
        flush_all = c"cuptiActivityFlushAll" (u32);
        /// `cuptiActivityGetNextRecord(buffer, valid bytes, record)`
        get_next_record = c"cuptiActivityGetNextRecord" (*mut u8, usize, *mut *mut u8);
        /// `cuptiActivityGetNumDroppedRecords(context, stream, dropped)`; reading resets it
        num_dropped = c"cuptiActivityGetNumDroppedRecords" (*mut c_void, u32, *mut usize);
        /// `cuptiActivitySetAttribute(attribute, size, value)`
        set_attribute = c"cuptiActivitySetAttribute" (u32, *mut usize, *mut c_void);
        /// `cuptiActivityGetAttribute(attribute, size, value)`
        get_attribute = c"cuptiActivityGetAttribute" (u32, *mut usize, *mut c_void);
        /// `cuptiGetCallbackName(domain, callback id, name)`
        callback_name = c"cuptiGetCallbackName" (u32, u32, *mut *const c_char);
        /// `cuptiGetTimestamp(nanoseconds)`
        timestamp = c"cuptiGetTimestamp" (*mut u64);
    }
    optional {
        /// `cuptiSubscribe_v2(subscriber, callback, userdata, params)`, CUDA 13.0 and later
        subscribe_v2 = c"cuptiSubscribe_v2" (*mut Subscriber, Option<Callback>, *mut c_void, *mut SubscriberParams);
        /// `cuptiEnableCallback(enable, subscriber, domain, callback id)`
        enable_callback = c"cuptiEnableCallback" (u32, Subscriber, u32, u32);
        /// `cuptiSetThreadIdType(type)`
        set_thread_id_type = c"cuptiSetThreadIdType" (u32);
        /// `cuptiActivityEnableRuntimeApi(callback id, enable)`, CUDA 12.5 and later
        enable_runtime_api = c"cuptiActivityEnableRuntimeApi" (u32, u8);
        /// `cuptiActivityEnableDriverApi(callback id, enable)`, CUDA 12.5 and later
        enable_driver_api = c"cuptiActivityEnableDriverApi" (u32, u8);
        /// `cuptiActivityEnableAndDump(kind)`: also reports what exists already
        enable_and_dump = c"cuptiActivityEnableAndDump" (u32);
        /// `cuptiActivityGetStructSize(kind, version, size)`, CUDA 13.2 and later
        struct_size = c"cuptiActivityGetStructSize" (u32, u32, *mut usize);
        /// `cuptiActivityEnableAllSyncRecords(enable)`: whether queries that found work unfinished are recorded
        enable_all_sync_records = c"cuptiActivityEnableAllSyncRecords" (u8);
        /// `cuptiGetContextId(context, id)`
        context_id = c"cuptiGetContextId" (*mut c_void, *mut u32);
        /// `cuptiGetDeviceId(context, device)`
        device_id = c"cuptiGetDeviceId" (*mut c_void, *mut u32);
        /// `cuptiGetStreamIdEx(context, stream, per thread, id)`
        stream_id = c"cuptiGetStreamIdEx" (*mut c_void, *mut c_void, u8, *mut u32);
        /// `cuptiGetGraphNodeId(node, id)`
        graph_node_id = c"cuptiGetGraphNodeId" (*mut c_void, *mut u64);
        /// `cuptiGetCubinCrc(params)`
        cubin_crc = c"cuptiGetCubinCrc" (*mut c_void);
        /// `InitializeInjectionNvtx2(export table getter)`: 1 when NVTX calls will be recorded
        nvtx_injection = c"InitializeInjectionNvtx2" (*mut c_void);
    }
}

//! Telling CUPTI what to collect: subscription, attributes, record kinds, host calls.

use std::ffi::CStr;

use cupti_sys::api::{
    Callback, MULTIPLE_SUBSCRIBERS, SUCCESS, Subscriber, SubscriberParams, describe,
};
use cupti_sys::kinds::{self, attribute, domain, resource};
use cupti_sys::names::{self, callback_name};
use cupti_sys::{Cupti, LoadError};

use crate::buffers;
use crate::nodes;
use crate::options::{ApiCalls, Graphs, Options};

/// Why nothing is collected.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No driver or no libcupti.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Another tool has the process.
    #[error(
        "another profiler{} is attached to this process, and CUPTI serves one at a time",
        name_of(tool)
    )]
    Taken {
        /// Its name, where the library tells.
        tool: Option<String>,
    },
    /// CUPTI refused.
    #[error("CUPTI refused to {what}: code {code}, {}", describe(*code))]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// Its answer.
        code: u32,
    },
    /// The recording cannot be written.
    #[error("the recording cannot be written: {0}")]
    Recording(#[source] std::io::Error),
    /// The operating system gives no thread.
    #[error("no thread could be started: {0}")]
    Thread(#[source] std::io::Error),
    /// A process has one collector at a time.
    #[error("this process has a collector already")]
    Again,
    /// There is none left.
    #[error("there is no memory for buffers")]
    Memory,
}

fn name_of(tool: &Option<String>) -> String {
    tool.as_ref()
        .map(|name| format!(" ({name})"))
        .unwrap_or_default()
}

impl StartError {
    /// What would help; empty when nothing is known to.
    pub fn help(&self) -> &'static str {
        match self {
            StartError::Load(error) => error.help(),
            StartError::Taken { .. } => {
                "run it without Nsight Systems, torch.profiler, cuda-gdb or compute-sanitizer"
            }
            _ => "",
        }
    }
}

/// The handle of a subscription.
#[derive(Debug)]
pub(crate) struct Subscription(Subscriber);

// SAFETY: the handle is an opaque number to us, and CUPTI takes it from any thread.
unsafe impl Send for Subscription {}

/// Subscribes. Must come before anything else. Whoever registers buffers without a subscription loses all of
/// them as soon as another tool starts in the process, and spoils that tool's too.
pub(crate) fn subscribe(cupti: &Cupti, called: Callback) -> Result<Subscription, StartError> {
    let mut handle = std::ptr::null_mut();
    // SAFETY: writes one pointer; the callback has the right type and lives forever.
    let code =
        unsafe { (cupti.api.subscribe)(&raw mut handle, Some(called), std::ptr::null_mut()) };
    if code == MULTIPLE_SUBSCRIBERS {
        let tool = other_tool(cupti, called);
        return Err(StartError::Taken { tool });
    }
    insist(code, "accept a subscriber")?;
    Ok(Subscription(handle))
}

/// Whether CUPTI did what nothing can be recorded without.
fn insist(code: u32, what: &'static str) -> Result<(), StartError> {
    match code {
        SUCCESS => Ok(()),
        code => Err(StartError::Refused { what, code }),
    }
}

/// The name of the tool that is subscribed already. CUDA 13.0 and later tell it when refusing a second one.
fn other_tool(cupti: &Cupti, called: Callback) -> Option<String> {
    let subscribe = cupti.api.subscribe_v2?;
    let mut name = [0_u8; 256];
    let mut params = SubscriberParams {
        struct_size: size_of::<SubscriberParams>(),
        subscriber_name: c"cuptop".as_ptr(),
        old_subscriber_name: name.as_mut_ptr().cast(),
        old_subscriber_size: name.len(),
    };
    let mut handle = std::ptr::null_mut();
    // SAFETY: the parameters are laid out as 13.0 has them and say so; all pointers outlive the call.
    let code = unsafe {
        subscribe(
            &raw mut handle,
            Some(called),
            std::ptr::null_mut(),
            &raw mut params,
        )
    };
    if code == SUCCESS {
        // The other tool left in between. The old call's answer stands.
        // SAFETY: the handle was given a moment ago.
        unsafe { (cupti.api.unsubscribe)(handle) };
        return None;
    }
    let name = CStr::from_bytes_until_nul(&name).ok()?.to_string_lossy();
    (!name.is_empty()).then(|| name.into_owned())
}

/// What the GPU does; without the first two there is no timeline.
const WORK: &[(u32, &str)] = &[
    (kinds::CONCURRENT_KERNEL, "kernels"),
    (kinds::MEMCPY, "copies"),
    (kinds::MEMCPY2, "copies between devices"),
    (kinds::MEMSET, "memsets"),
    (kinds::OVERHEAD, "overhead"),
];
/// What is collected whether or not recording is on: who is who, and what memory is in use.
const ALWAYS: &[(u32, &str)] = &[
    (kinds::DEVICE, "devices"),
    (kinds::CONTEXT, "contexts"),
    (kinds::STREAM, "streams"),
    (kinds::MEMORY2, "allocations"),
    (kinds::NAME, "names"),
    (kinds::MARKER, "NVTX ranges"),
];
const ESSENTIAL: usize = 2;

/// Sets CUPTI up, with everything on but wait records. Returns what could not be had, in words.
pub(crate) fn enable(cupti: &Cupti, options: &Options) -> Result<Vec<String>, StartError> {
    let api = &cupti.api;
    let mut lacks = Vec::new();
    if let Some(set) = api.set_thread_id_type {
        // SAFETY: takes a number.
        unsafe { set(kinds::THREAD_ID_SYSTEM) };
    }
    // Device buffers keep their defaults: smaller ones run out under graphs, and show as zero time stamps.
    // Buffers are zeroed by the decode thread; else CUPTI does it in the program's.
    set_u8(cupti, attribute::ZEROED_OUT_ACTIVITY_BUFFER, 1);
    // Buffers for each thread (the default since 13.0) cost threads x 256 KiB. They make every thread's records
    // wait for a buffer of its own. The attribute exists since 12.3.
    if cupti.version >= 21 {
        set_u8(cupti, attribute::PER_THREAD_ACTIVITY_BUFFER, 0);
    }
    // SAFETY: both functions have the right types and live forever.
    let code = unsafe { (api.register_callbacks)(buffers::requested, buffers::completed) };
    insist(code, "take buffers")?;
    for &(kind, _) in &WORK[..ESSENTIAL] {
        // SAFETY: takes a number.
        let code = unsafe { (api.enable)(kind) };
        insist(code, "record kernels and copies")?;
    }
    for &(kind, what) in ALWAYS {
        enable_kind(cupti, kind, what, &mut lacks);
    }
    enable_work(cupti, options.api, options.graphs, &mut lacks);
    Ok(lacks)
}

/// Records what the GPU does and who asked for it.
pub(crate) fn enable_work(cupti: &Cupti, calls: ApiCalls, graphs: Graphs, lacks: &mut Vec<String>) {
    for &(kind, what) in WORK {
        enable_kind(cupti, kind, what, lacks);
    }
    enable_calls(cupti, calls, lacks);
    if graphs == Graphs::Whole {
        // From here on CUPTI records no nodes, whatever is disabled later.
        enable_kind(cupti, kinds::GRAPH_TRACE, "graphs as a whole", lacks);
    }
}

/// The reverse of [`enable_work`].
pub(crate) fn disable_work(cupti: &Cupti, calls: ApiCalls) {
    if calls == ApiCalls::Mixed {
        set_each(cupti, domain::DRIVER_API, 0, starts_or_awaits_work);
    }
    let calls = [kinds::RUNTIME, kinds::DRIVER, kinds::GRAPH_TRACE];
    for kind in calls.into_iter().chain(WORK.iter().map(|(kind, _)| *kind)) {
        disable_kind(cupti, kind);
    }
}

/// The reverse of [`enable_waits`].
pub(crate) fn disable_waits(cupti: &Cupti) {
    disable_kind(cupti, kinds::SYNCHRONIZATION);
    disable_kind(cupti, kinds::CUDA_EVENT);
}

/// What the subscription's callback is called for: no other one is ever on. Whose it is, what it costs, and from when on CUPTI has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callbacks {
    /// Entry and exit of an API's functions that give the GPU work.
    /// The gate has them while recording goes off, and lines of launches (`--lines on`) have them always: 1 to 3 µs each. All versions.
    Launches(u32),
    /// For stalls (`--stalls on`): modules that are loaded, of which each is copied. All versions.
    Modules,
    /// For lines of graphs' nodes: graphs and nodes that are made, at each of which Python's frames are read. Some 0.9 µs a node and
    /// its clone, which ends with naming. Where CUPTI has ids of nodes.
    Nodes,
    /// The same for nodes that become others; from CUDA 13.0 on.
    ChangedNodes,
}

impl Callbacks {
    /// Switches them on or off; whether this CUPTI does.
    pub(crate) fn set(self, cupti: &Cupti, subscription: &Subscription, on: bool) -> bool {
        const LAUNCHES: &str = "cuLaunch cuGraphLaunch cuMemcpy cuMemset cudaLaunch cudaGraphLaunch cudaMemcpy cudaMemset";
        let Some(set) = cupti.api.enable_callback else {
            return false;
        };
        // SAFETY: takes numbers and the handle that CUPTI gave.
        let set = |of, id| SUCCESS == unsafe { set(u32::from(on), subscription.0, of, id) };
        let resources = |ids: &[u32]| ids.iter().all(|id| set(domain::RESOURCE, *id));
        match self {
            Callbacks::Launches(api) => {
                let name = |id| callback_name(&cupti.api, api, id);
                let is_one = |id: &u32| name(*id).is_some_and(|it| begins_with_one(&it, LAUNCHES));
                let ids = (1..names::LIMIT).filter(is_one);
                ids.filter(|id| !set(api, *id)).count() == 0
            }
            Callbacks::Modules => resources(&[resource::MODULE_LOADED]),
            Callbacks::Nodes => {
                // Without it, what autograd's threads capture has no name.
                resources(&[resource::GRAPH_CREATED]);
                (!on || nodes::begin(&cupti.api)) && resources(&resource::MADE)
            }
            Callbacks::ChangedNodes => resources(&resource::CHANGED),
        }
    }
}

fn disable_kind(cupti: &Cupti, kind: u32) {
    // SAFETY: takes a number; a kind that is not enabled is refused without harm.
    unsafe { (cupti.api.disable)(kind) };
}

fn enable_kind(cupti: &Cupti, kind: u32, what: &str, lacks: &mut Vec<String>) {
    // SAFETY: takes a number.
    let code = unsafe { (cupti.api.enable)(kind) };
    if code != SUCCESS {
        lacks.push(format!("CUPTI does not record {what}: {}", describe(code)));
    }
}

/// Records what streams and threads wait for.
pub(crate) fn enable_waits(cupti: &Cupti, lacks: &mut Vec<String>) {
    enable_kind(cupti, kinds::SYNCHRONIZATION, "synchronisations", lacks);
    if let Some(all) = cupti.api.enable_all_sync_records {
        // Programs poll events by the million.
        // SAFETY: takes a number.
        unsafe { all(0) };
    }
    // Event records carry no time: they get their call's.
    enable_kind(cupti, kinds::CUDA_EVENT, "events", lacks);
}

fn enable_calls(cupti: &Cupti, calls: ApiCalls, lacks: &mut Vec<String>) {
    let (kind, domain, what) = match calls {
        ApiCalls::Mixed | ApiCalls::MixedLate => (kinds::RUNTIME, domain::RUNTIME_API, "runtime"),
        ApiCalls::Driver => (kinds::DRIVER, domain::DRIVER_API, "driver"),
    };
    // Filters are set after the kind: enabling it sets them back.
    enable_kind(cupti, kind, &format!("calls of the {what} API"), lacks);
    set_each(cupti, domain, 0, is_noise);
    match calls {
        // Single functions can be recorded without their kind …
        ApiCalls::Mixed => set_each(cupti, domain::DRIVER_API, 1, starts_or_awaits_work),
        // … but not where CUPTI comes after the driver: libcupti 13.0 accepts that and records none of them (tests/gpu/late_calls.py).
        ApiCalls::MixedLate => {
            enable_kind(cupti, kinds::DRIVER, "calls of the driver API", lacks);
            set_each(cupti, domain::DRIVER_API, 0, |it| {
                !starts_or_awaits_work(it)
            });
        }
        ApiCalls::Driver => {}
    }
}

/// Switches the functions that `which` picks on or off. CUDA before 12.5 cannot: there all or none are recorded.
fn set_each(cupti: &Cupti, domain: u32, on: u8, which: fn(&str) -> bool) {
    let set = match domain {
        domain::RUNTIME_API => cupti.api.enable_runtime_api,
        _ => cupti.api.enable_driver_api,
    };
    let Some(set) = set else { return };
    for id in 1..names::LIMIT {
        if let Some(name) = callback_name(&cupti.api, domain, id)
            && which(&name)
        {
            // SAFETY: takes two numbers.
            unsafe { set(id, on) };
        }
    }
}

/// Functions that ask and do not act. They are called between any two launches, and cost a record each.
fn is_noise(name: &str) -> bool {
    const RUNTIME: &str = "cudaGetDevice cudaSetDevice cudaGetLastError cudaPeekAtLastError cudaGetErrorString \
        cudaGetErrorName cudaEventQuery cudaEventCreate cudaEventDestroy cudaStreamQuery \
        cudaStreamIsCapturing cudaStreamGetCaptureInfo cudaThreadExchangeStreamCaptureMode \
        cudaStreamGetPriority cudaStreamGetFlags cudaDeviceGet cudaFuncGetAttributes \
        cudaFuncSetAttribute cudaPointerGetAttributes cudaOccupancy cudaDriverGetVersion \
        cudaRuntimeGetVersion cudaGetDriverEntryPoint cudaGetFuncBySymbol __cuda";
    const DRIVER: &str = "cuCtxGet cuCtxSetCurrent cuCtxPush cuCtxPop cuDeviceGet cuDevicePrimaryCtxGetState \
        cuDriverGetVersion cuEventQuery cuEventCreate cuEventDestroy cuFuncGet cuFuncSet \
        cuGetError cuGetExportTable cuGetProcAddress cuInit cuKernelGet cuKernelSet cuLibraryGet \
        cuModuleGet cuOccupancy cuPointerGet cuStreamGet cuStreamIsCapturing cuStreamQuery \
        cuThreadExchangeStreamCaptureMode";
    let prefixes = if name.starts_with("cuda") || name.starts_with("__") {
        RUNTIME
    } else {
        DRIVER
    };
    begins_with_one(name, prefixes)
}

/// Functions of the driver API that programs of the runtime API call directly to do GPU work.
fn starts_or_awaits_work(name: &str) -> bool {
    const PREFIXES: &str = "cuLaunch cuGraphLaunch cuMemcpy cuMemset cuEventRecord cuEventSynchronize \
        cuStreamSynchronize cuStreamWaitEvent cuCtxSynchronize";
    begins_with_one(name, PREFIXES)
}

fn begins_with_one(name: &str, prefixes: &str) -> bool {
    let mut prefixes = prefixes.split(' ');
    prefixes.any(|prefix| name.starts_with(prefix))
}

fn set_u8(cupti: &Cupti, attribute: u32, mut value: u8) {
    let mut size = 1;
    // A library that does not know an attribute keeps its default, which works too.
    // SAFETY: reads `size` bytes at `value`.
    unsafe {
        (cupti.api.set_attribute)(attribute, &raw mut size, (&raw mut value).cast());
    }
}

/// Stops the collection and lets another tool in. The buffers that CUPTI still holds stay its own.
pub(crate) fn release(cupti: &Cupti, subscription: Subscription) {
    disable_waits(cupti);
    disable_work(cupti, ApiCalls::Driver);
    for &(kind, _) in ALWAYS {
        disable_kind(cupti, kind);
    }
    // SAFETY: the handle is the one that CUPTI gave.
    unsafe { (cupti.api.unsubscribe)(subscription.0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_act_are_no_noise() {
        for name in [
            "cudaLaunchKernel",
            "cudaMemcpyAsync",
            "cudaMalloc",
            "cudaEventRecord",
            "cudaStreamSynchronize",
            "cuLaunchKernel",
            "cuStreamWaitEvent",
            "cuMemAlloc_v2",
            "cuEventRecord",
            "cuModuleLoadData",
        ] {
            assert!(!is_noise(name), "{name}");
        }
        for name in [
            "cudaGetDevice",
            "cudaGetLastError",
            "cuCtxGetCurrent",
            "cuPointerGetAttributes",
        ] {
            assert!(is_noise(name), "{name}");
        }
    }
}

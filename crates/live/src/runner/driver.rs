//! The CUDA driver's functions, looked up once.
//!
//! Types and numbers are cudarc's, the table is our own (docs/DECISIONS.md says why). A launch loop calls straight
//! through these pointers.

#![expect(unsafe_code, reason = "looks symbols up and calls the driver")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUmemoryPool,
    CUmodule, CUresult, CUstream,
};
use cupti_sys::library::{Library, Visibility};
use cupti_sys::search::DRIVER;

/// What a driver function returned; 0 is success.
pub(crate) type Code = u32;

pub(crate) const SUCCESS: Code = CUresult::CUDA_SUCCESS as Code;
pub(crate) const INVALID_VALUE: Code = CUresult::CUDA_ERROR_INVALID_VALUE as Code;
pub(crate) const OUT_OF_MEMORY: Code = CUresult::CUDA_ERROR_OUT_OF_MEMORY as Code;
pub(crate) const NO_DEVICE: Code = CUresult::CUDA_ERROR_NO_DEVICE as Code;
pub(crate) const STUB_LIBRARY: Code = CUresult::CUDA_ERROR_STUB_LIBRARY as Code;
pub(crate) const NO_BINARY_FOR_GPU: Code = CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU as Code;
pub(crate) const UNSUPPORTED_PTX: Code = CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION as Code;
/// No such symbol in the module.
pub(crate) const NOT_FOUND: Code = CUresult::CUDA_ERROR_NOT_FOUND as Code;
pub(crate) const ILLEGAL_ADDRESS: Code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS as Code;
pub(crate) const OUT_OF_RESOURCES: Code = CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES as Code;
pub(crate) const LAUNCH_TIMEOUT: Code = CUresult::CUDA_ERROR_LAUNCH_TIMEOUT as Code;
pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Code =
    CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED as Code;
pub(crate) const MISALIGNED_ADDRESS: Code = CUresult::CUDA_ERROR_MISALIGNED_ADDRESS as Code;
/// What this driver does not have.
pub(crate) const NOT_SUPPORTED: Code = CUresult::CUDA_ERROR_NOT_SUPPORTED as Code;
pub(crate) const DRIVER_MISMATCH: Code = CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH as Code;

/// Errors that work on the device causes, whichever call reports them. All of them end the process's use of CUDA.
const ASYNCHRONOUS: [Code; 9] = [
    ILLEGAL_ADDRESS,
    LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_ASSERT as Code,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR as Code,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION as Code,
    MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE as Code,
    CUresult::CUDA_ERROR_INVALID_PC as Code,
    CUresult::CUDA_ERROR_LAUNCH_FAILED as Code,
];

// The types are those of cuda.h for these symbols, with CUresult as u32.
cupti_sys::functions! {
    /// The functions of libcuda that cuptop calls.
    pub(crate) struct Driver
    required {
        init = c"cuInit" (c_uint);
        driver_get_version = c"cuDriverGetVersion" (*mut c_int);
        get_error_name = c"cuGetErrorName" (Code, *mut *const c_char);
        get_error_string = c"cuGetErrorString" (Code, *mut *const c_char);
        device_get_count = c"cuDeviceGetCount" (*mut c_int);
        device_get = c"cuDeviceGet" (*mut CUdevice, c_int);
        device_get_name = c"cuDeviceGetName" (*mut c_char, c_int, CUdevice);
        device_get_uuid = c"cuDeviceGetUuid_v2" (*mut [u8; 16], CUdevice);
        device_get_attribute = c"cuDeviceGetAttribute" (*mut c_int, c_uint, CUdevice);
        device_total_mem = c"cuDeviceTotalMem_v2" (*mut usize, CUdevice);
        device_get_pci_bus_id = c"cuDeviceGetPCIBusId" (*mut c_char, c_int, CUdevice);
        device_get_default_mem_pool = c"cuDeviceGetDefaultMemPool" (*mut CUmemoryPool, CUdevice);
        device_can_access_peer = c"cuDeviceCanAccessPeer" (*mut c_int, CUdevice, CUdevice);
        primary_ctx_retain = c"cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
        primary_ctx_release = c"cuDevicePrimaryCtxRelease_v2" (CUdevice);
        ctx_create = c"cuCtxCreate_v2" (*mut CUcontext, c_uint, CUdevice);
        ctx_destroy = c"cuCtxDestroy_v2" (CUcontext);
        ctx_set_current = c"cuCtxSetCurrent" (CUcontext);
        ctx_synchronize = c"cuCtxSynchronize" ();
        ctx_enable_peer_access = c"cuCtxEnablePeerAccess" (CUcontext, c_uint);
        stream_create = c"cuStreamCreateWithPriority" (*mut CUstream, c_uint, c_int);
        stream_destroy = c"cuStreamDestroy_v2" (CUstream);
        stream_synchronize = c"cuStreamSynchronize" (CUstream);
        stream_wait_event = c"cuStreamWaitEvent" (CUstream, CUevent, c_uint);
        stream_begin_capture = c"cuStreamBeginCapture_v2" (CUstream, c_uint);
        stream_end_capture = c"cuStreamEndCapture" (CUstream, *mut CUgraph);
        event_create = c"cuEventCreate" (*mut CUevent, c_uint);
        event_destroy = c"cuEventDestroy_v2" (CUevent);
        event_record = c"cuEventRecord" (CUevent, CUstream);
        event_synchronize = c"cuEventSynchronize" (CUevent);
        mem_get_info = c"cuMemGetInfo_v2" (*mut usize, *mut usize);
        mem_alloc = c"cuMemAlloc_v2" (*mut CUdeviceptr, usize);
        mem_free = c"cuMemFree_v2" (CUdeviceptr);
        mem_alloc_async = c"cuMemAllocAsync" (*mut CUdeviceptr, usize, CUstream);
        mem_free_async = c"cuMemFreeAsync" (CUdeviceptr, CUstream);
        mem_pool_set_attribute = c"cuMemPoolSetAttribute" (CUmemoryPool, c_uint, *mut c_void);
        mem_alloc_managed = c"cuMemAllocManaged" (*mut CUdeviceptr, usize, c_uint);
        mem_host_alloc = c"cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
        mem_free_host = c"cuMemFreeHost" (*mut c_void);
        memcpy_htod = c"cuMemcpyHtoD_v2" (CUdeviceptr, *const c_void, usize);
        memcpy_htod_async = c"cuMemcpyHtoDAsync_v2" (CUdeviceptr, *const c_void, usize, CUstream);
        memcpy_dtoh = c"cuMemcpyDtoH_v2" (*mut c_void, CUdeviceptr, usize);
        memcpy_dtoh_async = c"cuMemcpyDtoHAsync_v2" (*mut c_void, CUdeviceptr, usize, CUstream);
        memcpy_dtod = c"cuMemcpyDtoD_v2" (CUdeviceptr, CUdeviceptr, usize);
        memcpy_dtod_async = c"cuMemcpyDtoDAsync_v2" (CUdeviceptr, CUdeviceptr, usize, CUstream);
        memcpy_peer = c"cuMemcpyPeer" (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize);
        memcpy_peer_async = c"cuMemcpyPeerAsync" (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream);
        memset_d8_async = c"cuMemsetD8Async" (CUdeviceptr, u8, usize, CUstream);
        module_load_data = c"cuModuleLoadData" (*mut CUmodule, *const c_void);
        module_unload = c"cuModuleUnload" (CUmodule);
        module_get_function = c"cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
        func_get_attribute = c"cuFuncGetAttribute" (*mut c_int, c_uint, CUfunction);
        func_set_attribute = c"cuFuncSetAttribute" (CUfunction, c_uint, c_int);
        launch_kernel = c"cuLaunchKernel" (CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void);
        graph_instantiate = c"cuGraphInstantiateWithFlags" (*mut CUgraphExec, CUgraph, c_ulonglong);
        graph_launch = c"cuGraphLaunch" (CUgraphExec, CUstream);
        graph_exec_destroy = c"cuGraphExecDestroy" (CUgraphExec);
        graph_destroy = c"cuGraphDestroy" (CUgraph);
    }
    optional {
        // CUDA 12.4.
        func_get_param_info = c"cuFuncGetParamInfo" (CUfunction, usize, *mut usize, *mut usize);
        func_load = c"cuFuncLoad" (CUfunction);
    }
}

/// Why there is no driver to call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoadError {
    /// The library is not there.
    #[error("the NVIDIA driver's library libcuda.so.1 cannot be loaded: {0}")]
    Missing(String),
    /// It is too old, or no libcuda at all.
    #[error("the NVIDIA driver is too old: its libcuda.so.1 has no function {0}")]
    TooOld(String),
    /// It is there and cannot start.
    #[error("the NVIDIA driver cannot start: {0}")]
    Init(CudaError),
}

impl LoadError {
    /// What would help.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            LoadError::Missing(_) => {
                "install the NVIDIA driver, or in a container start it with the NVIDIA runtime \
                 (--gpus all); without a GPU use --backend sim"
            }
            LoadError::TooOld(_) => "cuptop needs a driver for CUDA 11.4 or newer (470 or newer)",
            LoadError::Init(error) if error.code == NO_DEVICE => {
                "no GPU is visible to this process: look at nvidia-smi and CUDA_VISIBLE_DEVICES; \
                 without a GPU use --backend sim"
            }
            LoadError::Init(error) if error.code == STUB_LIBRARY => {
                "the libcuda.so.1 that was found is the toolkit's stub: take the `stubs` folder out of \
                 LD_LIBRARY_PATH"
            }
            LoadError::Init(error) if error.code == DRIVER_MISMATCH => {
                "the driver's library and its kernel module are of different versions: reboot, or \
                 reload the kernel module"
            }
            LoadError::Init(_) => "look at nvidia-smi and at dmesg for what the driver says",
        }
    }
}

/// A driver function's failure, with CUDA's own name and words for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} ({name})")]
pub(crate) struct CudaError {
    /// The number.
    pub(crate) code: Code,
    /// "CUDA_ERROR_OUT_OF_MEMORY".
    pub(crate) name: String,
    /// "out of memory".
    pub(crate) text: String,
}

impl CudaError {
    /// Whether something that ran on the device caused it, maybe long before the call that reports it.
    pub(crate) fn is_asynchronous(&self) -> bool {
        ASYNCHRONOUS.contains(&self.code)
    }
}

impl Driver {
    /// Loads libcuda and initialises it. `library` is a path for tests; `None` asks the system's loader.
    ///
    /// # Errors
    /// When there is no driver, or it is too old, or it does not start.
    pub(crate) fn start(library: Option<&Path>) -> Result<Driver, LoadError> {
        let path = library.unwrap_or(Path::new(DRIVER));
        // Global, as a program that links libcuda has it: libcupti looks its symbols up.
        let library = Library::open(path, Visibility::Global).map_err(LoadError::Missing)?;
        // SAFETY: what is found under libcuda's name is taken for it.
        let driver = unsafe { Driver::resolve(library) }
            .map_err(|symbol| LoadError::TooOld(symbol.to_string_lossy().into_owned()))?;
        // SAFETY: cuInit takes flags, which must be 0.
        match unsafe { (driver.init)(0) } {
            SUCCESS => Ok(driver),
            code => Err(LoadError::Init(driver.error(code))),
        }
    }

    /// Turns a result into an error with CUDA's words.
    ///
    /// # Errors
    /// When `code` is not success.
    pub(crate) fn check(&self, code: Code) -> Result<(), CudaError> {
        if code == SUCCESS {
            Ok(())
        } else {
            Err(self.error(code))
        }
    }

    /// CUDA's words for a code.
    pub(crate) fn error(&self, code: Code) -> CudaError {
        let name = self.describe(code, self.get_error_name);
        let text = self.describe(code, self.get_error_string);
        CudaError {
            code,
            name: name.unwrap_or_else(|| format!("CUDA error {code}")),
            text: text.unwrap_or_else(|| "an error this driver has no words for".to_owned()),
        }
    }

    fn describe(
        &self,
        code: Code,
        function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    ) -> Option<String> {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: both functions take any code and write a pointer to a static string, or null.
        let result = unsafe { function(code, &mut text) };
        if result != SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: the driver returned a NUL-terminated static string.
        Some(
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        )
    }

    /// The newest CUDA that the driver supports, major and minor.
    pub(crate) fn version(&self) -> Result<(u32, u32), CudaError> {
        let mut version = 0;
        // SAFETY: writes one int.
        self.check(unsafe { (self.driver_get_version)(&mut version) })?;
        let version = version.unsigned_abs();
        Ok((version / 1000, version % 1000 / 10))
    }
}

//! A small laboratory on one GPU: bundled kernels compiled and launched one at a time, their results
//! brought back. For checking kernels, where a plan would only add distance.

use std::collections::HashMap;
use std::ffi::{CString, c_void};

use cudarc::driver::sys::{CUdeviceptr, CUfunction, CUmodule};

use crate::scenario::bundled;

use super::super::compile::{Compiler, Source, cache_folder};
use super::super::driver::Driver;
use super::super::fault::Fault;
use super::super::nvrtc::Nvrtc;
use super::context::Contexts;
use super::kernels::capability;

/// An argument of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Memory(&'a Memory),
    Int(i32),
}

/// Device memory with f32 values, freed when dropped.
#[derive(Debug)]
pub(super) struct Memory {
    driver: Driver,
    address: CUdeviceptr,
    count: usize,
}

/// A GPU's primary context with what has been loaded into it.
pub(super) struct Lab {
    driver: Driver,
    compiler: Compiler,
    modules: HashMap<String, CUmodule>,
    // Given back last, after the modules.
    _contexts: Contexts,
}

impl Lab {
    /// Sets up on device 0.
    pub(super) fn new(driver: &Driver) -> Result<Lab, Fault> {
        let contexts = Contexts::primary(driver, 1)?;
        let (major, _) = driver
            .version()
            .map_err(|e| Fault::cuda("cuDriverGetVersion", &e))?;
        let nvrtc = Nvrtc::find(major).map_err(|e| Fault::machine(e.to_string(), e.help()))?;
        Ok(Lab {
            driver: *driver,
            compiler: Compiler::new(nvrtc, capability(driver, 0)?, cache_folder()),
            modules: HashMap::new(),
            _contexts: contexts,
        })
    }

    /// Device memory with these values in it.
    #[expect(unsafe_code, reason = "calls the driver")]
    pub(super) fn upload(&self, values: &[f32]) -> Result<Memory, Fault> {
        let bytes = size_of_val(values);
        let mut memory = Memory {
            driver: self.driver,
            address: 0,
            count: values.len(),
        };
        // SAFETY: a context is current; writes one address, then as many bytes as were allocated.
        unsafe {
            self.check(
                (self.driver.mem_alloc)(&mut memory.address, bytes.max(4)),
                "cuMemAlloc",
            )?;
            self.check(
                (self.driver.memcpy_htod)(memory.address, values.as_ptr().cast(), bytes),
                "cuMemcpyHtoD",
            )?;
        }
        Ok(memory)
    }

    /// The values in device memory, after everything launched before.
    #[expect(unsafe_code, reason = "calls the driver")]
    pub(super) fn download(&self, memory: &Memory) -> Result<Vec<f32>, Fault> {
        let mut values = vec![0.0_f32; memory.count];
        let bytes = size_of_val(values.as_slice());
        // SAFETY: the vector and the allocation both have `bytes` bytes; the call returns after the copy.
        unsafe {
            self.check((self.driver.ctx_synchronize)(), "cuCtxSynchronize")?;
            self.check(
                (self.driver.memcpy_dtoh)(values.as_mut_ptr().cast(), memory.address, bytes),
                "cuMemcpyDtoH",
            )?;
        }
        Ok(values)
    }

    /// Launches a bundled kernel on the default stream.
    #[expect(unsafe_code, reason = "calls the driver")]
    pub(super) fn launch(
        &mut self,
        file: &str,
        entry: &str,
        grid: [u32; 3],
        block: [u32; 3],
        values: &[Value<'_>],
    ) -> Result<(), Fault> {
        let function = self.function(file, entry)?;
        let slots: Vec<u64> = values
            .iter()
            .map(|value| match *value {
                Value::Memory(memory) => memory.address,
                Value::Int(v) => u64::from(v.cast_unsigned()).to_le(),
            })
            .collect();
        let mut params: Vec<*mut c_void> = slots
            .iter()
            .map(|slot| std::ptr::from_ref(slot).cast_mut().cast())
            .collect();
        // SAFETY: the function is loaded; the arguments are those that the kernel's source declares, and
        // the driver copies them before it returns.
        let code = unsafe {
            (self.driver.launch_kernel)(
                function,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                0,
                std::ptr::null_mut(),
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.check(code, &format!("launching `{entry}`"))
    }

    #[expect(unsafe_code, reason = "calls the driver")]
    fn function(&mut self, file: &str, entry: &str) -> Result<CUfunction, Fault> {
        let module = match self.modules.get(file) {
            Some(&module) => module,
            None => {
                let text = bundled::kernel(file)
                    .ok_or_else(|| Fault::input(format!("no kernel file {file} is bundled"), ""))?;
                let source = Source {
                    file,
                    text,
                    include: None,
                };
                let image = self
                    .compiler
                    .compile(source)
                    .map_err(|e| Fault::input(e.to_string(), ""))?;
                let mut module: CUmodule = std::ptr::null_mut();
                // SAFETY: the image is a whole cubin or NUL-terminated PTX.
                let code =
                    unsafe { (self.driver.module_load_data)(&mut module, image.as_ptr().cast()) };
                self.check(code, &format!("loading the code of {file}"))?;
                self.modules.insert(file.to_owned(), module);
                module
            }
        };
        let name = CString::new(entry)
            .map_err(|_| Fault::input("an entry point's name holds a NUL byte", ""))?;
        let mut function: CUfunction = std::ptr::null_mut();
        // SAFETY: the module is loaded; the name is NUL-terminated.
        let code =
            unsafe { (self.driver.module_get_function)(&mut function, module, name.as_ptr()) };
        self.check(code, &format!("cuModuleGetFunction of `{entry}`"))?;
        Ok(function)
    }

    fn check(&self, code: u32, doing: &str) -> Result<(), Fault> {
        self.driver
            .check(code)
            .map_err(|error| Fault::cuda(doing, &error))
    }
}

impl Drop for Lab {
    #[expect(unsafe_code, reason = "calls the driver")]
    fn drop(&mut self) {
        for &module in self.modules.values() {
            // SAFETY: each module was loaded once, and every launch was waited for by `download`.
            unsafe { (self.driver.module_unload)(module) };
        }
    }
}

impl Drop for Memory {
    #[expect(unsafe_code, reason = "calls the driver")]
    fn drop(&mut self) {
        // SAFETY: the address came from cuMemAlloc (or is 0, which is allowed) and is freed once.
        unsafe { (self.driver.mem_free)(self.address) };
    }
}

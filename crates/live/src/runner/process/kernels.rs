//! From kernel sources to launches that are ready: images, modules, functions, argument blocks.

#![expect(unsafe_code, reason = "calls the driver")]

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

use cudarc::driver::sys::{
    CUdevice_attribute as Attribute, CUdeviceptr, CUfunction, CUfunction_attribute, CUmodule,
};

use scenario::plan::{
    Arg, BufferId, KernelSpec, LaunchId, LaunchSpec, MemRef, OpKind, Plan, SiteId, VariantPlan,
};

use super::super::compile::{Compiler, Source};
use super::super::driver::{Driver, INVALID_VALUE, NOT_FOUND, SUCCESS};
use super::super::fault::Fault;
use super::context::Contexts;
use super::memory::Buffers;

/// A block gets this much dynamic shared memory without being allowed more.
const PLAIN_SHARED: u32 = 48 * 1024;

/// Compiled sources, by text and compute capability.
#[derive(Debug, Default)]
pub(crate) struct Images(HashMap<(Arc<str>, u32), Vec<u8>>);

impl Images {
    /// Compiles every kernel of a plan for the capabilities in `compilers`, one compiler for each. Calls
    /// `progress` with how many are done and how many there are, and `reject` with what does not compile.
    pub(crate) fn compile(
        plan: &Plan,
        include: Option<&std::path::Path>,
        compilers: &[(u32, Compiler)],
        progress: impl Fn(u64, u64),
        mut reject: impl FnMut(Fault, u32) -> Result<(), Fault>,
    ) -> Result<Images, Fault> {
        let mut wanted: Vec<&KernelSpec> = Vec::new();
        for kernel in plan.variants.iter().flat_map(|v| &v.kernels) {
            if !wanted.iter().any(|k| k.source == kernel.source) {
                wanted.push(kernel);
            }
        }
        let total = (wanted.len() * compilers.len()) as u64;
        let mut images = Images::default();
        for (capability, compiler) in compilers {
            for kernel in &wanted {
                progress(images.0.len() as u64, total);
                let source = Source {
                    file: &kernel.file,
                    text: &kernel.source,
                    include,
                };
                let key = (Arc::clone(&kernel.source), *capability);
                match compiler.compile(source) {
                    Ok(image) => _ = images.0.insert(key, image),
                    Err(error) => {
                        let why = format!("kernel `{}`: {error}", kernel.name);
                        let help = format!("correct {} where the compiler points", kernel.file);
                        reject(Fault::input(why, help).placed_at(kernel.site), *capability)?;
                    }
                }
            }
        }
        if total > 0 {
            progress(total, total);
        }
        Ok(images)
    }

    /// An image compiled elsewhere, for tests.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, source: Arc<str>, capability: u32, image: Vec<u8>) {
        self.0.insert((source, capability), image);
    }
}

/// A launch with everything that the driver needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) function: CUfunction,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared: u32,
    pub(super) params: *mut *mut c_void,
}

/// An argument that holds the address of a buffer which passes allocate and free.
#[derive(Clone, Copy, Debug)]
struct Moving {
    slot: usize,
    offset: u64,
}

/// The launches of a variant, on each device that they are used on.
pub(super) struct Launches {
    driver: Driver,
    modules: Vec<CUmodule>,
    devices: usize,
    /// By launch and device.
    ready: Vec<Option<Ready>>,
    /// Every argument's value, 8 bytes each, little-endian, and the pointers to them that
    /// [`Ready::params`] points into. Neither moves after it was made.
    slots: Box<[u64]>,
    _pointers: Box<[*mut c_void]>,
    moving: HashMap<BufferId, Vec<Moving>>,
}

impl Launches {
    /// Loads the modules that a variant uses and prepares its launches.
    pub(super) fn new(
        driver: &Driver,
        contexts: &Contexts,
        variant: &VariantPlan,
        images: &Images,
        buffers: &Buffers<'_>,
    ) -> Result<Launches, Fault> {
        let devices = contexts.len() as usize;
        let mut launches = Launches {
            driver: *driver,
            modules: Vec::new(),
            devices,
            ready: vec![None; variant.launches.len() * devices],
            slots: Box::default(),
            _pointers: Box::default(),
            moving: HashMap::new(),
        };
        let starts = launches.lay_out_arguments(variant, buffers);
        let mut modules: HashMap<(Arc<str>, u32), CUmodule> = HashMap::new();
        for (launch, device, site) in used_launches(variant) {
            let spec = &variant.launches[launch];
            let kernel = &variant.kernels[spec.kernel];
            contexts.enter(device)?;
            let key = (Arc::clone(&kernel.source), device);
            let module = match modules.get(&key) {
                Some(&module) => module,
                None => {
                    let module = launches.load(kernel, device, images)?;
                    modules.insert(key, module);
                    module
                }
            };
            let function = launches
                .function(module, kernel)
                .map_err(|fault| fault.or_at(kernel.site))?;
            launches
                .check(function, kernel, spec)
                .map_err(|fault| fault.or_at(site))?;
            launches.ready[launch * devices + device as usize] = Some(Ready {
                function,
                grid: spec.grid,
                block: spec.block,
                shared: spec.shared,
                params: launches._pointers.as_mut_ptr().wrapping_add(starts[launch]),
            });
        }
        contexts.enter(0)?;
        Ok(launches)
    }

    /// The launch on a device.
    #[inline]
    pub(super) fn get(&self, launch: LaunchId, device: u32) -> Option<&Ready> {
        self.ready[launch * self.devices + device as usize].as_ref()
    }

    /// Puts a buffer's new address into the arguments that name it.
    pub(super) fn moved(&mut self, buffer: BufferId, address: CUdeviceptr) {
        for moving in self.moving.get(&buffer).into_iter().flatten() {
            self.slots[moving.slot] = address.wrapping_add(moving.offset);
        }
    }

    /// Writes all arguments, and returns where each launch's pointers start.
    fn lay_out_arguments(&mut self, variant: &VariantPlan, buffers: &Buffers<'_>) -> Vec<usize> {
        let mut slots = Vec::new();
        let mut starts = Vec::with_capacity(variant.launches.len());
        for spec in &variant.launches {
            starts.push(slots.len());
            for arg in &spec.args {
                let slot = slots.len();
                slots.push(match *arg {
                    Arg::Device(at) => {
                        if !variant.buffers[at.buffer].preallocated {
                            let MemRef { buffer, offset } = at;
                            let moving = Moving { slot, offset };
                            self.moving.entry(buffer).or_default().push(moving);
                        }
                        buffers.device(at)
                    }
                    // The driver reads as many bytes as the parameter has: the low ones.
                    Arg::U32(v) => u64::from(v).to_le(),
                    Arg::U64(v) => v,
                });
            }
        }
        self.slots = slots.into_boxed_slice();
        let first = self.slots.as_mut_ptr();
        self._pointers = (0..self.slots.len())
            .map(|i| first.wrapping_add(i).cast())
            .collect();
        starts
    }

    fn load(
        &mut self,
        kernel: &KernelSpec,
        device: u32,
        images: &Images,
    ) -> Result<CUmodule, Fault> {
        let capability = capability(&self.driver, device)?;
        let key = (Arc::clone(&kernel.source), capability);
        let image = images.0.get(&key).ok_or_else(|| {
            let why = format!("{} was not compiled for device {device}", kernel.file);
            Fault::machine(why, "")
        })?;
        let mut module: CUmodule = std::ptr::null_mut();
        // SAFETY: the image is a whole cubin or NUL-terminated PTX; the driver copies what it needs.
        let code = unsafe { (self.driver.module_load_data)(&mut module, image.as_ptr().cast()) };
        let loaded = (self.driver).must(&format!("loading the code of {}", kernel.file), code);
        loaded.map_err(|fault| fault.placed_at(kernel.site))?;
        self.modules.push(module);
        Ok(module)
    }

    fn function(&self, module: CUmodule, kernel: &KernelSpec) -> Result<CUfunction, Fault> {
        let entry = CString::new(kernel.entry.as_str())
            .map_err(|_| Fault::input("an entry point's name holds a NUL byte", ""))?;
        let mut function: CUfunction = std::ptr::null_mut();
        // SAFETY: the module is loaded; the name is NUL-terminated; writes one handle.
        let code =
            unsafe { (self.driver.module_get_function)(&mut function, module, entry.as_ptr()) };
        if code == NOT_FOUND {
            let message = format!("{} has no entry point `{}`", kernel.file, kernel.entry);
            let help = "an entry point is declared as extern \"C\" __global__ void NAME(…)";
            return Err(Fault::input(message, help));
        }
        let doing = format!("cuModuleGetFunction of `{}`", kernel.entry);
        self.driver.must(&doing, code)?;
        if let Some(load) = self.driver.func_load {
            // Otherwise the first launch would load it.
            // SAFETY: the function belongs to a loaded module.
            let code = unsafe { load(function) };
            let doing = format!("loading kernel `{}`", kernel.entry);
            self.driver.must(&doing, code)?;
        }
        Ok(function)
    }

    /// Compares a launch with what the kernel takes, where the driver can tell.
    fn check(
        &self,
        function: CUfunction,
        kernel: &KernelSpec,
        spec: &LaunchSpec,
    ) -> Result<(), Fault> {
        if let Some(takes) = self.parameters(function) {
            check_arguments(kernel, &spec.args, &takes)?;
        }
        let mut most: c_int = 0;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as u32;
        // SAFETY: the function is loaded; writes one int.
        let code = unsafe { (self.driver.func_get_attribute)(&mut most, attribute, function) };
        let threads: u64 = spec.block.iter().map(|&n| u64::from(n)).product();
        let most = u64::from(most.unsigned_abs());
        if code == SUCCESS && most > 0 && threads > most {
            let [x, y, z] = spec.block;
            return Err(Fault::input(
                format!(
                    "a block of {x} x {y} x {z} = {threads} threads is too large: kernel `{}` can have {most}",
                    kernel.name
                ),
                "make `block` smaller and `grid` larger",
            ));
        }
        if spec.shared > PLAIN_SHARED {
            let attribute =
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as u32;
            let bytes = spec.shared as c_int;
            // SAFETY: the function is loaded.
            let code = unsafe { (self.driver.func_set_attribute)(function, attribute, bytes) };
            let doing = format!("{bytes} bytes of shared memory for a block");
            self.driver.must(&doing, code)?;
        }
        Ok(())
    }

    /// The sizes of a kernel's parameters; `None` where the driver cannot tell (before CUDA 12.4).
    fn parameters(&self, function: CUfunction) -> Option<Vec<usize>> {
        /// The most bytes of parameters that a kernel can have.
        const LIMIT: usize = 32_764;
        let info = self.driver.func_get_param_info?;
        let mut sizes = Vec::new();
        while sizes.len() < LIMIT {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is loaded; writes two sizes; an index past the end is an error code.
            match unsafe { info(function, sizes.len(), &mut offset, &mut size) } {
                SUCCESS => sizes.push(size),
                INVALID_VALUE => return Some(sizes),
                _ => return None,
            }
        }
        None
    }
}

impl Drop for Launches {
    fn drop(&mut self) {
        for &module in &self.modules {
            // SAFETY: each module was loaded once and nothing launches from it any more.
            unsafe { (self.driver.module_unload)(module) };
        }
    }
}

/// A device's compute capability as 90 for 9.0.
pub(crate) fn capability(driver: &Driver, device: u32) -> Result<u32, Fault> {
    let handle = driver
        .device(device)
        .map_err(|e| Fault::cuda(&format!("cuDeviceGet of device {device}"), &e))?;
    let major = Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    let minor = Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    Ok(driver.attribute(handle, major) * 10 + driver.attribute(handle, minor))
}

/// Every launch with a device that it is used on, and the first step that does.
fn used_launches(variant: &VariantPlan) -> Vec<(LaunchId, u32, SiteId)> {
    let mut seen = std::collections::HashSet::new();
    variant
        .listed()
        .filter_map(|op| match op.kind {
            OpKind::Launch { launch, stream } => {
                Some((launch, variant.streams[stream].device, op.site))
            }
            _ => None,
        })
        .filter(|&(launch, device, _)| seen.insert((launch, device)))
        .collect()
}

fn check_arguments(kernel: &KernelSpec, args: &[Arg], takes: &[usize]) -> Result<(), Fault> {
    let given = args.iter().map(|arg| match arg {
        Arg::Device(_) | Arg::U64(_) => 8,
        Arg::U32(_) => 4,
    });
    let given: Vec<usize> = given.collect();
    if given == takes {
        return Ok(());
    }
    let KernelSpec {
        name, entry, file, ..
    } = kernel;
    Err(Fault::input(
        format!("kernel `{name}` takes arguments of {takes:?} bytes and is given {given:?}"),
        format!("look at the parameters of `{entry}` in {file}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(source: &str, entry: &str) -> KernelSpec {
        KernelSpec {
            name: "k".to_owned(),
            file: "k.cu".to_owned(),
            source: source.into(),
            entry: entry.to_owned(),
            site: 0,
        }
    }

    #[test]
    fn arguments_must_agree_in_number_and_size() {
        let k = kernel("", "k");
        let pointer = Arg::Device(MemRef::default());
        assert!(check_arguments(&k, &[pointer, Arg::U32(1)], &[8, 4]).is_ok());
        let few = check_arguments(&k, &[pointer], &[8, 4]).expect_err("too few");
        let message = "kernel `k` takes arguments of [8, 4] bytes and is given [8]";
        assert_eq!(few.message, message);
        assert!(check_arguments(&k, &[pointer, Arg::U32(1)], &[8, 8]).is_err());
    }
}

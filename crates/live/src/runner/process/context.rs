//! CUDA contexts: the devices' primary ones, or new ones for a pass that must start cold.

#![expect(unsafe_code, reason = "calls the driver")]

use cudarc::driver::sys::{CUcontext, CUdevice};

use super::super::driver::{CudaError, Driver, PEER_ACCESS_ALREADY_ENABLED};
use super::super::fault::Fault;
use cudarc::driver::sys::CUdevice_attribute as Attribute;

/// A context on each of the first devices. Given back when dropped.
pub(crate) struct Contexts {
    driver: Driver,
    is_primary: bool,
    entries: Vec<(CUdevice, CUcontext)>,
}

impl Contexts {
    /// Contexts on devices `0..count`: the primary ones, which the CUDA runtime would use, or new ones.
    pub(crate) fn make(driver: &Driver, count: u32, is_primary: bool) -> Result<Contexts, Fault> {
        let mut contexts = Contexts {
            driver: *driver,
            is_primary,
            entries: Vec::new(),
        };
        for ordinal in 0..count {
            let device = driver
                .device(ordinal)
                .map_err(|e| Fault::cuda(&format!("cuDeviceGet of device {ordinal}"), &e))?;
            let mut context: CUcontext = std::ptr::null_mut();
            // SAFETY: the device came from cuDeviceGet; each call writes one handle.
            let code = unsafe {
                if is_primary {
                    (driver.primary_ctx_retain)(&mut context, device)
                } else {
                    (driver.ctx_create)(&mut context, 0, device)
                }
            };
            let doing = format!("making a CUDA context on device {ordinal}");
            driver.must(&doing, code)?;
            contexts.entries.push((device, context));
        }
        contexts.enter(0)?;
        Ok(contexts)
    }

    /// How many devices.
    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The context on a device.
    pub(crate) fn get(&self, device: u32) -> CUcontext {
        self.entries[device as usize].1
    }

    /// Makes the context of a device the thread's current one.
    pub(crate) fn enter(&self, device: u32) -> Result<(), Fault> {
        // SAFETY: the context is alive until this is dropped.
        let code = unsafe { (self.driver.ctx_set_current)(self.get(device)) };
        self.driver.must("cuCtxSetCurrent", code)
    }

    /// Lets every pair of devices copy directly. Returns the pairs that cannot: their copies go through
    /// the host.
    pub(crate) fn enable_peers(&self) -> Result<Vec<(u32, u32)>, Fault> {
        let mut apart = Vec::new();
        for a in 0..self.len() {
            for b in (0..self.len()).filter(|&b| b != a) {
                let mut can = 0;
                let (from, to) = (self.entries[a as usize].0, self.entries[b as usize].0);
                // SAFETY: both devices came from cuDeviceGet; writes one int.
                let code = unsafe { (self.driver.device_can_access_peer)(&mut can, from, to) };
                if code != 0 || can == 0 {
                    apart.push((a, b));
                    continue;
                }
                self.enter(a)?;
                // SAFETY: the peer's context is alive; flags must be 0.
                let code = unsafe { (self.driver.ctx_enable_peer_access)(self.get(b), 0) };
                if code != PEER_ACCESS_ALREADY_ENABLED {
                    self.driver.must("cuCtxEnablePeerAccess", code)?;
                }
            }
        }
        self.enter(0)?;
        Ok(apart)
    }

    /// Lets each device's pool keep what is freed, so that stream-ordered allocations really reuse it.
    pub(crate) fn keep_pools(&self) -> Result<(), Fault> {
        use cudarc::driver::sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        for &(device, _) in &self.entries {
            let supported = Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
            if self.driver.attribute(device, supported) == 0 {
                return Err(Fault::machine(
                    "this GPU has no memory pools for stream-ordered allocation",
                    "use plain `alloc` and `free` without a stream, or --backend sim",
                ));
            }
            let mut pool = std::ptr::null_mut();
            let mut threshold = u64::MAX;
            // SAFETY: the device came from cuDeviceGet; the attribute's type is a 64-bit number.
            let codes = unsafe {
                [
                    (self.driver.device_get_default_mem_pool)(&mut pool, device),
                    (self.driver.mem_pool_set_attribute)(
                        pool,
                        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as u32,
                        (&raw mut threshold).cast(),
                    ),
                ]
            };
            for code in codes {
                self.driver.must("setting up the memory pool", code)?;
            }
        }
        Ok(())
    }

    /// Waits until nothing runs on any device, and leaves device 0 current.
    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        for &(_, context) in self.entries.iter().rev() {
            if self.entries.len() > 1 {
                // SAFETY: the context is alive until this is dropped.
                let code = unsafe { (self.driver.ctx_set_current)(context) };
                self.driver.check(code)?;
            }
            // SAFETY: takes nothing; waits for the current context.
            let code = unsafe { (self.driver.ctx_synchronize)() };
            self.driver.check(code)?;
        }
        Ok(())
    }
}

impl Drop for Contexts {
    fn drop(&mut self) {
        for &(device, context) in &self.entries {
            // SAFETY: each context is given back once, and what lived in it was freed before.
            unsafe {
                if self.is_primary {
                    (self.driver.primary_ctx_release)(device);
                } else {
                    (self.driver.ctx_destroy)(context);
                }
            }
        }
    }
}

//! What the driver says of the machine's GPUs.

#![expect(unsafe_code, reason = "calls the driver")]

use std::ffi::{CStr, c_int};

use cudarc::driver::sys::{CUdevice, CUdevice_attribute as Attribute};
use serde::{Deserialize, Serialize};

use super::driver::{CudaError, Driver, SUCCESS};
use activity::Uuid;

/// A GPU of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// CUDA's ordinal for it in this process (after `CUDA_VISIBLE_DEVICES`).
    pub ordinal: u32,
    /// "NVIDIA H200".
    pub name: String,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Memory in bytes.
    pub memory: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    pub copy_engines: u32,
    /// Peak SM clock in kHz.
    pub clock_khz: u32,
    /// Peak device memory bandwidth in bytes per second. It is the bus width times twice the memory
    /// clock, as the driver gives them. 0 where it does not say.
    pub memory_bandwidth: u64,
    /// Its address on the PCI bus ("0000:3b:00.0").
    pub pci: String,
    /// How it is attached ("PCIe 5.0 x16"), empty where the system does not say.
    pub link: String,
}

impl Driver {
    /// How many GPUs this process sees.
    pub(crate) fn device_count(&self) -> Result<u32, CudaError> {
        let mut count: c_int = 0;
        // SAFETY: writes one int.
        self.check(unsafe { (self.device_get_count)(&mut count) })?;
        Ok(count.unsigned_abs())
    }

    /// Its UUID, where the device tells it.
    pub(crate) fn uuid(&self, ordinal: u32) -> Option<Uuid> {
        let mut uuid = [0; 16];
        let device = self.device(ordinal).ok()?;
        // SAFETY: writes 16 bytes.
        let code = unsafe { (self.device_get_uuid)(&raw mut uuid, device) };
        (code == SUCCESS).then_some(uuid)
    }

    /// The device with this ordinal.
    pub(crate) fn device(&self, ordinal: u32) -> Result<CUdevice, CudaError> {
        let mut device: CUdevice = 0;
        // SAFETY: writes one CUdevice; a bad ordinal is an error code.
        self.check(unsafe { (self.device_get)(&mut device, ordinal as c_int) })?;
        Ok(device)
    }

    /// An attribute of a device; 0 where the driver does not know it.
    pub(crate) fn attribute(&self, device: CUdevice, attribute: Attribute) -> u32 {
        let mut value: c_int = 0;
        // SAFETY: writes one int; an attribute that the driver does not know is an error code.
        let code = unsafe { (self.device_get_attribute)(&mut value, attribute as u32, device) };
        if self.check(code).is_ok() {
            value.unsigned_abs()
        } else {
            0
        }
    }

    /// Everything [`Gpu`] has.
    pub(crate) fn gpu(&self, ordinal: u32) -> Result<Gpu, CudaError> {
        let device = self.device(ordinal)?;
        let mut name = [0_u8; 256];
        let mut pci = [0_u8; 32];
        let mut memory = 0_usize;
        // SAFETY: each call writes within the array whose length it is given, or one usize.
        unsafe {
            self.check((self.device_get_name)(
                name.as_mut_ptr().cast(),
                name.len() as c_int,
                device,
            ))?;
            self.check((self.device_get_pci_bus_id)(
                pci.as_mut_ptr().cast(),
                pci.len() as c_int,
                device,
            ))?;
            self.check((self.device_total_mem)(&mut memory, device))?;
        }
        let attribute = |a| self.attribute(device, a);
        let pci = text(&pci).to_ascii_lowercase();
        let memory_clock = u64::from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
        let bus_bits = u64::from(attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
        ));
        Ok(Gpu {
            ordinal,
            name: text(&name),
            capability: (
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            ),
            memory: memory as u64,
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            copy_engines: attribute(Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
            clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            // The clock is in kHz and data moves on both of its edges.
            memory_bandwidth: memory_clock * 1000 * 2 * bus_bits / 8,
            link: collector::link::of_pci(&pci).unwrap_or_default(),
            pci,
        })
    }
}

fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes)
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}

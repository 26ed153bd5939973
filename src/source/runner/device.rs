//! What the driver says of the machine's GPUs.

use std::ffi::{CStr, c_int};
use std::path::Path;

use cudarc::driver::sys::{CUdevice, CUdevice_attribute as Attribute};
use serde::{Deserialize, Serialize};

use super::driver::{CudaError, Driver};

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
    /// Copy engines.
    pub copy_engines: u32,
    /// Peak SM clock in kHz.
    pub clock_khz: u32,
    /// Peak device memory bandwidth in bytes per second: bus width times twice the memory clock, as the
    /// driver gives them. 0 where it does not say.
    pub memory_bandwidth: u64,
    /// Its address on the PCI bus ("0000:3b:00.0").
    pub pci: String,
    /// How it is attached ("PCIe 5.0 x16"), empty where the system does not say.
    pub link: String,
}

impl Driver {
    /// How many GPUs this process sees.
    #[expect(unsafe_code, reason = "calls the driver")]
    pub(crate) fn device_count(&self) -> Result<u32, CudaError> {
        let mut count: c_int = 0;
        // SAFETY: writes one int.
        self.check(unsafe { (self.device_get_count)(&mut count) })?;
        Ok(count.unsigned_abs())
    }

    /// The device with this ordinal.
    #[expect(unsafe_code, reason = "calls the driver")]
    pub(crate) fn device(&self, ordinal: u32) -> Result<CUdevice, CudaError> {
        let mut device: CUdevice = 0;
        // SAFETY: writes one CUdevice; a bad ordinal is an error code.
        self.check(unsafe { (self.device_get)(&mut device, ordinal as c_int) })?;
        Ok(device)
    }

    /// An attribute of a device; 0 where the driver does not know it.
    #[expect(unsafe_code, reason = "calls the driver")]
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
    #[expect(unsafe_code, reason = "calls the driver")]
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
            link: link(Path::new("/sys/bus/pci/devices"), &pci).unwrap_or_default(),
            pci,
        })
    }
}

fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes)
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// How a PCI device is attached, from the kernel's `max_link_speed` and `max_link_width`: what the link
/// can do, because an idle GPU lets its current speed drop to save power. In a virtual machine the files
/// can be missing or say 0 or "Unknown".
fn link(devices: &Path, pci: &str) -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(devices.join(pci).join(name)).ok();
    let speed = read("max_link_speed")?;
    let width: u32 = read("max_link_width")?.trim().parse().ok()?;
    // Gigatransfers per second of a lane, by generation (PCI-SIG).
    let generation = match speed.split_whitespace().next()? {
        "2.5" => "1.0",
        "5.0" | "5" => "2.0",
        "8.0" | "8" => "3.0",
        "16.0" | "16" => "4.0",
        "32.0" | "32" => "5.0",
        "64.0" | "64" => "6.0",
        _ => return None,
    };
    (1..=32)
        .contains(&width)
        .then(|| format!("PCIe {generation} x{width}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_read_from_sysfs_and_nonsense_is_not_believed() {
        let root = tempfile::tempdir().expect("a directory");
        let cases = [
            ("a", "32.0 GT/s PCIe\n", "16\n", Some("PCIe 5.0 x16")),
            ("b", "16.0 GT/s PCIe\n", "8\n", Some("PCIe 4.0 x8")),
            ("c", "Unknown\n", "0\n", None),
            ("d", "32.0 GT/s PCIe\n", "0\n", None),
            ("e", "32.0 GT/s PCIe\n", "255\n", None),
        ];
        for (name, speed, width, expected) in cases {
            let device = root.path().join(name);
            std::fs::create_dir(&device).expect("a directory");
            std::fs::write(device.join("max_link_speed"), speed).expect("a file");
            std::fs::write(device.join("max_link_width"), width).expect("a file");
            assert_eq!(link(root.path(), name).as_deref(), expected, "{name}");
        }
        assert_eq!(link(root.path(), "missing"), None);
    }
}

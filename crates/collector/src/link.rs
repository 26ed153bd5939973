//! How a GPU is attached, from the kernel's files and without a CUDA call.

use std::fs;
use std::path::Path;

const DEVICES: &str = "/sys/bus/pci/devices";

/// "PCIe 5.0 x16" for the device at this address ("0000:3b:00.0"), where the system tells.
pub fn of_pci(address: &str) -> Option<String> {
    link(Path::new(DEVICES), address)
}

/// "PCIe 5.0 x16" for the GPU with this UUID; empty where the system does not tell.
pub(crate) fn describe(uuid: &[u8; 16]) -> String {
    find(
        Path::new("/proc/driver/nvidia/gpus"),
        Path::new(DEVICES),
        uuid,
    )
    .unwrap_or_default()
}

fn find(gpus: &Path, devices: &Path, uuid: &[u8; 16]) -> Option<String> {
    let wanted = format!("GPU-{}", activity::uuid_text(uuid));
    for gpu in fs::read_dir(gpus).ok()?.flatten() {
        let information = fs::read_to_string(gpu.path().join("information")).unwrap_or_default();
        if information.contains(&wanted) {
            return link(devices, &gpu.file_name().to_string_lossy());
        }
    }
    None
}

/// How a PCI device is attached, from the kernel's `max_link_speed` and `max_link_width`. That is what
/// the link can do, because an idle GPU lets its current speed drop to save power. In a virtual machine
/// the files can be missing or say 0 or "Unknown".
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
    fn the_link_is_found_by_uuid() {
        let root = tempfile::tempdir().expect("a directory");
        let (gpus, devices) = (root.path().join("gpus"), root.path().join("devices"));
        let name = "0000:3b:00.0";
        fs::create_dir_all(gpus.join(name)).expect("made");
        fs::create_dir_all(devices.join(name)).expect("made");
        fs::write(
            gpus.join(name).join("information"),
            "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-00010203-0405-0607-0809-0a0b0c0d0e0f\n",
        )
        .expect("written");
        // Idle: now it is slower than it can be.
        fs::write(
            devices.join(name).join("current_link_speed"),
            "2.5 GT/s PCIe\n",
        )
        .expect("written");
        fs::write(
            devices.join(name).join("max_link_speed"),
            "32.0 GT/s PCIe\n",
        )
        .expect("written");
        fs::write(devices.join(name).join("max_link_width"), "16\n").expect("written");
        let uuid = std::array::from_fn(|at| u8::try_from(at).expect("small"));
        assert_eq!(
            find(&gpus, &devices, &uuid).as_deref(),
            Some("PCIe 5.0 x16")
        );
        assert_eq!(find(&gpus, &devices, &[9; 16]), None);
    }
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

//! The text around `traceEvents`: the clock's base, devices, the rank, versions, the program that wrote it.

use serde_json::Value;

use activity::{DeviceInfo, Ns};

/// The keys of the document that cuptop reads; it skips every other one.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// Nanoseconds since 1970 that times count from.
    pub(super) base: Ns,
    pub(super) rank: Option<u32>,
    /// Ranks of the distributed program.
    pub(super) world: Option<u32>,
    pub(super) devices: Vec<DeviceInfo>,
    pub(super) versions: Vec<String>,
    /// Whether the trace was made without a GPU, by its own account.
    pub(super) simulated: bool,
    /// How many records were lost on the way to it, by cuptop's own export.
    pub(super) lost: u64,
}

/// The keys that [`Header::take`] reads.
pub(super) const KEYS: [&str; 9] = [
    "baseTimeNanoseconds",
    "deviceProperties",
    "distributedInfo",
    "cuda_driver_version",
    "cuda_runtime_version",
    "cupti_version",
    "simulated",
    "lost records",
    "cuptop",
];

impl Header {
    /// Takes in the value of one of [`KEYS`]; a value of another type than expected is ignored.
    pub(super) fn take(&mut self, key: &str, text: &[u8]) {
        let number = || serde_json::from_slice::<u64>(text).ok();
        match key {
            "baseTimeNanoseconds" => {
                self.base = serde_json::from_slice(text).unwrap_or(0);
            }
            "deviceProperties" => {
                let list: Vec<Value> = serde_json::from_slice(text).unwrap_or_default();
                self.devices = list.iter().filter_map(device).collect();
            }
            "distributedInfo" => {
                let info: Value = serde_json::from_slice(text).unwrap_or_default();
                let number = |key: &str| info[key].as_u64().and_then(|n| u32::try_from(n).ok());
                self.rank = number("rank");
                self.world = number("world_size").filter(|&world| Some(world) > self.rank);
            }
            "cuda_driver_version" => self.version("driver CUDA", number().map(cuda_version)),
            "cuda_runtime_version" => self.version("runtime CUDA", number().map(cuda_version)),
            "cupti_version" => self.version("CUPTI", number().map(|v| v.to_string())),
            "simulated" => self.simulated = text == b"true",
            "lost records" => self.lost = number().unwrap_or(0),
            _ => {}
        }
    }

    /// Whether it says nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.versions.is_empty() && self.base == 0
    }

    fn version(&mut self, what: &str, version: Option<String>) {
        if let Some(version) = version {
            self.versions.push(format!("{what} {version}"));
        }
    }
}

/// 13000 is 13.0, as `cuDriverGetVersion` counts.
fn cuda_version(version: u64) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// A device by its properties, whatever the type of their numbers: some writers have "8.5e10".
fn device(of: &Value) -> Option<DeviceInfo> {
    let number = |key: &str| match &of[key] {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    let size = |key: &str| number(key).unwrap_or(0.0) as u32;
    let warp_size = size("warpSize");
    Some(DeviceInfo {
        id: number("id")? as u32,
        name: of["name"].as_str().unwrap_or_default().to_owned(),
        capability: (size("computeMajor"), size("computeMinor")),
        multiprocessors: size("numSms"),
        memory: number("totalGlobalMem").unwrap_or(0.0) as u64,
        max_warps_per_sm: size("maxThreadsPerMultiprocessor")
            .checked_div(warp_size)
            .unwrap_or(0),
        shared_per_sm: size("sharedMemPerMultiprocessor"),
        registers_per_sm: size("regsPerMultiprocessor"),
        warp_size,
        ..DeviceInfo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_kineto_is_understood() {
        let mut header = Header::default();
        header.take("baseTimeNanoseconds", b"1790857026000000000");
        header.take(
            "distributedInfo",
            br#"{"backend": "nccl", "rank": 3, "world_size": 8}"#,
        );
        header.take("cuda_driver_version", b"12090");
        header.take("cupti_version", b"130001");
        header.take(
            "deviceProperties",
            br#"[{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 1.5e11, "computeMajor": 9, "computeMinor": 0,
                "maxThreadsPerMultiprocessor": 2048, "warpSize": "32", "numSms": 132.0}, {"id": "x"}, 7]"#,
        );
        assert_eq!(header.base, 1_790_857_026_000_000_000);
        assert_eq!((header.rank, header.world), (Some(3), Some(8)));
        assert_eq!(header.versions, ["driver CUDA 12.9", "CUPTI 130001"]);
        assert_eq!(header.devices.len(), 1);
        let device = &header.devices[0];
        assert_eq!(
            (
                device.max_warps_per_sm,
                device.multiprocessors,
                device.memory
            ),
            (64, 132, 150_000_000_000)
        );
        assert_eq!(header.devices[0].capability, (9, 0));
        assert!(!header.simulated);
    }
}

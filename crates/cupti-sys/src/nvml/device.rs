//! One GPU.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};

use super::layouts::{
    Handle, MemoryV1, MemoryV2, ProcessInfo, ProcessUse, TemperatureV1, Utilization, version_of,
};
use super::{Nvml, checked, code};

/// `NVML_CLOCK_SM`.
const CLOCK_SM: u32 = 1;
/// `NVML_TEMPERATURE_GPU`.
const SENSOR_GPU: u32 = 0;
/// `NVML_DEVICE_UUID_V2_BUFFER_SIZE` and `NVML_DEVICE_NAME_V2_BUFFER_SIZE`, with the NUL.
const TEXT_MAX: usize = 96;
/// Processes that are read of a GPU at most.
const PROCESSES_MAX: u32 = 1024;

/// Bytes per second and lane, one way, of each PCIe generation from 1. These are its transfers per second with what
/// the encoding takes: 8b/10b, then 128b/130b; generation 6 without its error correction.
const PCIE_LANE: [u64; 6] = [
    250_000_000,
    500_000_000,
    984_615_384,
    1_969_230_769,
    3_938_461_538,
    7_876_923_076,
];

/// A process on a GPU, as NVML lists it: its id is that of the driver's process namespace, which a container's is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuProcess {
    /// The process.
    pub pid: u32,
    /// Bytes of the GPU's memory that it uses, where NVML tells.
    pub memory: Option<u64>,
}

/// A GPU's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// In use by anybody, without what the driver keeps to itself where this driver tells them apart.
    pub used: u64,
    /// All.
    pub total: u64,
}

/// One GPU.
#[derive(Clone, Debug)]
pub struct Device {
    pub(super) nvml: Nvml,
    pub(super) handle: Handle,
}

/// "8f0c2a4e-…": the sixteen bytes as NVML and CUDA write them.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*uuid));
    [0..8, 8..12, 12..16, 16..20, 20..32]
        .map(|part| &digits[part])
        .join("-")
}

/// The bytes of "GPU-8f0c2a4e-…" or "MIG-…"; `None` for another form.
fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let (_, digits) = text.split_once('-')?;
    let digits = digits.replace('-', "");
    let is_whole = digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok();
    number.filter(|_| is_whole).map(u128::to_be_bytes)
}

impl Device {
    pub(super) fn find(nvml: &Nvml, prefix: &CStr, uuid: &[u8; 16]) -> Result<Device, u32> {
        let mut name = prefix.to_bytes().to_vec();
        name.extend(uuid_text(uuid).bytes());
        // Hexadecimal digits hold no NUL.
        let name = CString::new(name).map_err(|_| code::NOT_FOUND)?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: a NUL-terminated string, and room for one handle.
        checked(unsafe { (nvml.api().handle_by_uuid)(name.as_ptr(), &raw mut handle) })?;
        let nvml = nvml.clone();
        Ok(Device { nvml, handle })
    }

    pub(super) fn at(nvml: &Nvml, index: u32) -> Result<Device, u32> {
        let function = nvml.api().handle_by_index;
        let function = function.ok_or(code::FUNCTION_NOT_FOUND)?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: room for one handle; NVML checks the index.
        checked(unsafe { function(index, &raw mut handle) })?;
        let nvml = nvml.clone();
        Ok(Device { nvml, handle })
    }

    fn text(
        &self,
        function: Option<unsafe extern "C" fn(Handle, *mut c_char, u32) -> u32>,
    ) -> Result<String, u32> {
        let function = function.ok_or(code::FUNCTION_NOT_FOUND)?;
        let mut bytes = [0u8; TEXT_MAX];
        // SAFETY: the handle is of this session, which lives; NVML writes a NUL-terminated string of no more than the length given.
        checked(unsafe { function(self.handle, bytes.as_mut_ptr().cast(), TEXT_MAX as u32) })?;
        let text = CStr::from_bytes_until_nul(&bytes).map_err(|_| code::NO_DATA)?;
        Ok(text.to_string_lossy().into_owned())
    }

    /// Its UUID. Of a part of a GPU (MIG) that of the part.
    ///
    /// # Errors
    /// NVML's code; [`code::NO_DATA`] for a text that is none.
    pub fn uuid(&self) -> Result<[u8; 16], u32> {
        uuid_of(&self.text(self.nvml.api().uuid)?).ok_or(code::NO_DATA)
    }

    /// What it is called ("NVIDIA H200").
    ///
    /// # Errors
    /// NVML's code.
    pub fn name(&self) -> Result<String, u32> {
        self.text(self.nvml.api().name)
    }

    /// The N of its device file `/dev/nvidiaN`.
    ///
    /// # Errors
    /// NVML's code.
    pub fn minor_number(&self) -> Result<u32, u32> {
        self.ask(self.nvml.api().minor_number, 0)
    }

    fn ask<T: Default>(
        &self,
        function: Option<unsafe extern "C" fn(Handle, *mut T) -> u32>,
        mut value: T,
    ) -> Result<T, u32> {
        let function = function.ok_or(code::FUNCTION_NOT_FOUND)?;
        // SAFETY: the handle is of this session, which lives; the table has the function with the type of what it writes.
        checked(unsafe { function(self.handle, &raw mut value) }).map(|()| value)
    }

    fn ask_for(
        &self,
        function: Option<unsafe extern "C" fn(Handle, u32, *mut u32) -> u32>,
        which: u32,
    ) -> Result<u32, u32> {
        let function = function.ok_or(code::FUNCTION_NOT_FOUND)?;
        let mut value = 0;
        // SAFETY: as above; `which` is a number that NVML checks.
        checked(unsafe { function(self.handle, which, &raw mut value) }).map(|()| value)
    }

    /// Power drawn, in mW: on most GPUs a mean over about a second.
    ///
    /// # Errors
    /// NVML's code, here and below.
    pub fn power(&self) -> Result<u32, u32> {
        self.ask(self.nvml.api().power_usage, 0)
    }

    /// The power limit in force, in mW.
    ///
    /// # Errors
    /// NVML's code.
    pub fn power_limit(&self) -> Result<u32, u32> {
        self.ask(self.nvml.api().power_limit, 0)
    }

    /// The clock of the multiprocessors, in MHz.
    ///
    /// # Errors
    /// NVML's code.
    pub fn clock(&self) -> Result<u32, u32> {
        self.ask_for(self.nvml.api().clock, CLOCK_SM)
    }

    /// The highest clock of the multiprocessors, in MHz.
    ///
    /// # Errors
    /// NVML's code.
    pub fn max_clock(&self) -> Result<u32, u32> {
        self.ask_for(self.nvml.api().max_clock, CLOCK_SM)
    }

    /// The GPU's temperature, in degrees Celsius.
    ///
    /// # Errors
    /// NVML's code.
    pub fn temperature(&self) -> Result<i32, u32> {
        let api = self.nvml.api();
        if api.temperature.is_some() {
            let degrees = self.ask_for(api.temperature, SENSOR_GPU)?;
            return Ok(i32::try_from(degrees).unwrap_or(i32::MAX));
        }
        let asked = TemperatureV1 {
            version: version_of::<TemperatureV1>(1),
            sensor: SENSOR_GPU,
            celsius: 0,
        };
        Ok(self.ask(api.temperature_v, asked)?.celsius)
    }

    /// Why clocks are not higher: bits (`nvmlClocksEventReason…`).
    ///
    /// # Errors
    /// NVML's code.
    pub fn event_reasons(&self) -> Result<u64, u32> {
        self.ask(self.nvml.api().event_reasons, 0)
    }

    /// Its memory.
    ///
    /// # Errors
    /// NVML's code.
    pub fn memory(&self) -> Result<Memory, u32> {
        let asked = MemoryV2 {
            version: version_of::<MemoryV2>(2),
            ..MemoryV2::default()
        };
        let api = self.nvml.api();
        if let Ok(memory) = self.ask(api.memory_v2, asked) {
            let (used, total) = (memory.used, memory.total);
            return Ok(Memory { used, total });
        }
        let MemoryV1 { used, total, .. } = self.ask(api.memory, MemoryV1::default())?;
        Ok(Memory { used, total })
    }

    /// What its PCIe link could carry at most one way, in bytes per second: of the GPU and its slot, the lesser.
    ///
    /// # Errors
    /// NVML's code; [`code::NO_DATA`] for a generation that is not known here.
    pub fn pcie_peak(&self) -> Result<u64, u32> {
        let api = self.nvml.api();
        let generation = self.ask(api.max_link_generation, 0)?;
        let width = self.ask(api.max_link_width, 0)?;
        let lane = (generation as usize)
            .checked_sub(1)
            .and_then(|index| PCIE_LANE.get(index));
        Ok(lane.ok_or(code::NO_DATA)? * u64::from(width))
    }

    /// The processes that compute on it, those behind MPS with them, each once.
    ///
    /// # Errors
    /// NVML's code.
    pub fn processes(&self) -> Result<Vec<GpuProcess>, u32> {
        let api = self.nvml.api();
        let mut all = self.list(api.compute_processes)?;
        for process in self.list(api.mps_processes).unwrap_or_default() {
            if all.iter().all(|it| it.pid != process.pid) {
                all.push(process);
            }
        }
        Ok(all)
    }

    /// The processes that draw on it.
    ///
    /// # Errors
    /// NVML's code.
    pub fn graphics_processes(&self) -> Result<Vec<GpuProcess>, u32> {
        self.list(self.nvml.api().graphics_processes)
    }

    /// Percent of the last sample period, 1/6 s to 1 s, in which a kernel ran.
    ///
    /// # Errors
    /// NVML's code.
    pub fn busy(&self) -> Result<u32, u32> {
        let rates = self.ask(self.nvml.api().utilization, Utilization::default())?;
        Ok(rates.gpu)
    }

    /// Percent of the multiprocessors' time by process, each by its newest sample after `since` (µs since 1970). Who used none is
    /// left out.
    ///
    /// # Errors
    /// NVML's code.
    pub fn process_shares(&self, since: u64) -> Result<BTreeMap<u32, u32>, u32> {
        let function = self.nvml.api().process_use;
        let function = function.ok_or(code::FUNCTION_NOT_FOUND)?;
        let samples = gather(|count, found| {
            // SAFETY: `found` has room for `count` entries of the layout that it writes, and the handle is of this session.
            unsafe { function(self.handle, found, count, since) }
        });
        let mut samples: Vec<ProcessUse> = match samples {
            Err(code::NOT_FOUND) => Vec::new(),
            other => other?,
        };
        // Entries beyond what was written may hold anything.
        samples.retain(|it| it.pid != 0 && it.time > since && it.sm <= 100);
        samples.sort_unstable_by_key(|it| it.time);
        Ok(samples.iter().map(|it| (it.pid, it.sm)).collect())
    }

    fn list(
        &self,
        function: Option<unsafe extern "C" fn(Handle, *mut u32, *mut ProcessInfo) -> u32>,
    ) -> Result<Vec<GpuProcess>, u32> {
        let function = function.ok_or(code::FUNCTION_NOT_FOUND)?;
        let found = gather(|count, found| {
            // SAFETY: `found` has room for `count` entries of the layout that versions 2 and 3 write.
            unsafe { function(self.handle, count, found) }
        })?;
        let all = found.iter().map(|it| GpuProcess {
            pid: it.pid,
            // NVML_VALUE_NOT_AVAILABLE.
            memory: Some(it.used).filter(|used| *used != u64::MAX),
        });
        Ok(all.collect())
    }
}

/// All entries that a function writes which takes their count and room for them.
fn gather<T: Clone + Default>(mut ask: impl FnMut(*mut u32, *mut T) -> u32) -> Result<Vec<T>, u32> {
    let mut room = 32;
    loop {
        let mut found = vec![T::default(); room as usize];
        let mut count = room;
        match ask(&raw mut count, found.as_mut_ptr()) {
            code::SUCCESS => {
                found.truncate(count as usize);
                return Ok(found);
            }
            // More may have come since it said how many.
            code::INSUFFICIENT_SIZE if room < PROCESSES_MAX => {
                room = (count.max(room) + 32).min(PROCESSES_MAX);
            }
            code => return Err(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_read_as_it_is_written() {
        let uuid = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xfe];
        assert_eq!(uuid_of(&format!("GPU-{}", uuid_text(&uuid))), Some(uuid));
        for text in [
            "",
            "GPU-",
            "01020304-0506",
            "GPU-0102030405060708090a0b0c0d0e0fgg",
        ] {
            assert_eq!(uuid_of(text), None, "{text}");
        }
    }
}

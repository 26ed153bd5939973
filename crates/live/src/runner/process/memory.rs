//! A variant's buffers: host and device memory, what they hold at first, and giving them back.

#![expect(
    unsafe_code,
    reason = "calls the driver, and views memory that it allocated"
)]

use std::ffi::c_void;

use cudarc::driver::sys::{CU_MEMHOSTALLOC_PORTABLE as PORTABLE, CUdeviceptr, CUmemAttach_flags};

use activity::feed::FailureKind;
use activity::{Direction, units};
use scenario::plan::{BufferId, BufferSpec, Fill, HostMemory, MemRef};

use super::super::driver::{Driver, OUT_OF_MEMORY, SUCCESS};
use super::super::fault::Fault;
use super::super::protocol::Issued;
use super::context::Contexts;

/// Pages of ordinary memory; a buffer starts on one, as a large `malloc` would.
const PAGE: usize = 4096;
const ATTACH_GLOBAL: u32 = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;

/// The host side of a buffer.
enum Host {
    None,
    Pinned(*mut u8),
    /// Memory with a page to spare, so that a whole number of pages lies inside.
    Pageable(Vec<u8>),
    Managed(*mut u8),
}

/// The buffers of a variant. Freed when dropped.
pub(super) struct Buffers<'a> {
    driver: Driver,
    contexts: &'a Contexts,
    specs: &'a [BufferSpec],
    hosts: Vec<Host>,
    /// Device addresses by buffer; 0 while there is none.
    addresses: Vec<CUdeviceptr>,
    /// What filling them issued.
    pub(super) issued: Issued,
}

impl<'a> Buffers<'a> {
    /// Allocates and fills what a variant has before its first pass.
    pub(super) fn new(
        driver: &Driver,
        contexts: &'a Contexts,
        specs: &'a [BufferSpec],
    ) -> Result<Buffers<'a>, Fault> {
        let mut buffers = Buffers {
            driver: *driver,
            contexts,
            specs,
            hosts: Vec::with_capacity(specs.len()),
            addresses: vec![0; specs.len()],
            issued: Issued::default(),
        };
        for (id, spec) in specs.iter().enumerate() {
            contexts.enter(spec.device.unwrap_or(0))?;
            let host = buffers.allocate_host(id)?;
            match host {
                Host::Managed(address) => buffers.addresses[id] = address as CUdeviceptr,
                // Pinned memory has the same address on the device (CUDA's unified addressing).
                Host::Pinned(address) if spec.device.is_none() => {
                    buffers.addresses[id] = address as CUdeviceptr;
                }
                _ => {}
            }
            buffers.hosts.push(host);
            if buffers.has_device_side(id) && spec.preallocated {
                let code = buffers.allocate(id);
                if code != SUCCESS {
                    return Err(buffers.no_memory(id, "device", code));
                }
            }
            buffers.fill(id)?;
        }
        contexts.enter(0)?;
        Ok(buffers)
    }

    /// Whether a buffer has a device allocation of its own.
    fn has_device_side(&self, id: BufferId) -> bool {
        let spec = &self.specs[id];
        spec.device.is_some() && spec.host != HostMemory::Managed
    }

    fn allocate_host(&self, id: BufferId) -> Result<Host, Fault> {
        let spec = &self.specs[id];
        let bytes = to_usize(spec.bytes);
        match spec.host {
            HostMemory::None => Ok(Host::None),
            HostMemory::Pageable => {
                let mut memory = Vec::new();
                memory
                    .try_reserve_exact(bytes + PAGE)
                    .map_err(|_| no_host_memory(spec))?;
                memory.resize(bytes + PAGE, 0);
                Ok(Host::Pageable(memory))
            }
            HostMemory::Pinned => {
                let mut address: *mut c_void = std::ptr::null_mut();
                // SAFETY: a context is current; writes one pointer.
                let code = unsafe { (self.driver.mem_host_alloc)(&mut address, bytes, PORTABLE) };
                match code {
                    SUCCESS => Ok(Host::Pinned(address.cast())),
                    code => Err(self.no_memory(id, "pinned host", code)),
                }
            }
            HostMemory::Managed => {
                let mut address: CUdeviceptr = 0;
                // SAFETY: a context is current; writes one address.
                let code =
                    unsafe { (self.driver.mem_alloc_managed)(&mut address, bytes, ATTACH_GLOBAL) };
                match code {
                    SUCCESS => Ok(Host::Managed(address as *mut u8)),
                    code => Err(self.no_memory(id, "managed", code)),
                }
            }
        }
    }

    /// Allocates a buffer's device side in the current context. Returns the driver's code.
    pub(super) fn allocate(&mut self, id: BufferId) -> u32 {
        let bytes = to_usize(self.specs[id].bytes);
        // SAFETY: a context is current; writes one address.
        unsafe { (self.driver.mem_alloc)(&mut self.addresses[id], bytes) }
    }

    /// Where an allocation's address is written.
    pub(super) fn address_mut(&mut self, id: BufferId) -> &mut CUdeviceptr {
        &mut self.addresses[id]
    }

    /// The device address of a place in a buffer.
    #[inline]
    pub(super) fn device(&self, at: MemRef) -> CUdeviceptr {
        self.addresses[at.buffer].wrapping_add(at.offset)
    }

    /// The host address of a place in a buffer; null when it has no host side.
    #[inline]
    pub(super) fn host(&self, at: MemRef) -> *mut u8 {
        let base = match &self.hosts[at.buffer] {
            Host::None => return std::ptr::null_mut(),
            Host::Pinned(address) | Host::Managed(address) => *address,
            Host::Pageable(memory) => {
                let address = memory.as_ptr().cast_mut();
                address.wrapping_add(address.align_offset(PAGE))
            }
        };
        base.wrapping_add(to_usize(at.offset))
    }

    /// `bytes` of a buffer's host side as f32.
    ///
    /// # Safety
    /// Nothing else, on the host or the device, may use that part of the buffer meanwhile.
    pub(super) unsafe fn floats(&mut self, at: MemRef, bytes: u64) -> &mut [f32] {
        let room = self.specs[at.buffer].bytes.saturating_sub(at.offset);
        let start = self.host(at).cast::<f32>();
        if start.is_null() || !start.is_aligned() {
            return &mut [];
        }
        let count = to_usize(bytes.min(room)) / size_of::<f32>();
        // SAFETY: the host side has at least `room` bytes from `start`, all of them written when the
        // buffer was filled. Any bits are an f32. The caller vouches that nobody else uses them.
        unsafe { std::slice::from_raw_parts_mut(start, count) }
    }

    /// Writes what a buffer holds at first.
    fn fill(&mut self, id: BufferId) -> Result<(), Fault> {
        let spec = &self.specs[id];
        let start = MemRef {
            buffer: id,
            offset: 0,
        };
        let bytes = to_usize(spec.bytes);
        let host = self.host(start);
        if !host.is_null() {
            // Also touches every page, so that no pass pays for the first touch.
            // SAFETY: the host side has `bytes` bytes and nobody else has its address yet.
            unsafe { host.write_bytes(0, bytes) };
            // SAFETY: as above.
            write_pattern(unsafe { self.floats(start, spec.bytes) }, spec.fill, id);
        }
        if !self.has_device_side(id) || !spec.preallocated || bytes == 0 {
            return Ok(());
        }
        let to = self.device(start);
        let doing = format!("filling buffer `{}`", spec.name);
        if spec.fill == Fill::Zero {
            // SAFETY: the allocation has `bytes` bytes; stream 0 is the default stream.
            let code = unsafe { (self.driver.memset_d8_async)(to, 0, bytes, std::ptr::null_mut()) };
            self.driver.must(&doing, code)?;
            self.issued.memsets(1);
        } else {
            let mut pattern;
            let from: *const f32 = if host.is_null() {
                pattern = vec![0.0; bytes / size_of::<f32>()];
                write_pattern(&mut pattern, spec.fill, id);
                pattern.as_ptr()
            } else {
                host.cast()
            };
            let whole = bytes / size_of::<f32>() * size_of::<f32>();
            // SAFETY: both sides have `whole` bytes; the call returns after the copy.
            let code = unsafe { (self.driver.memcpy_htod)(to, from.cast(), whole) };
            self.driver.must(&doing, code)?;
            self.issued.copies(Direction::H2D, u64::from(whole > 0));
        }
        // SAFETY: waits for the current context.
        let code = unsafe { (self.driver.ctx_synchronize)() };
        self.driver.must(&doing, code)
    }

    /// Frees what a pass allocated and left behind.
    pub(super) fn free_leftovers(&mut self) {
        for id in 0..self.specs.len() {
            if self.has_device_side(id) && !self.specs[id].preallocated && self.addresses[id] != 0 {
                // SAFETY: the address came from an allocation that was not freed; nothing runs.
                unsafe { (self.driver.mem_free)(self.addresses[id]) };
                self.addresses[id] = 0;
            }
        }
    }

    /// Says how much was asked for and how much there is.
    pub(super) fn no_memory(&self, id: BufferId, what: &str, code: u32) -> Fault {
        let spec = &self.specs[id];
        let error = self.driver.error(code);
        let bytes = units::bytes(spec.bytes);
        let doing = format!(
            "allocating {bytes} of {what} memory for buffer `{}`",
            spec.name
        );
        let mut fault = Fault::cuda(&doing, &error);
        if code == OUT_OF_MEMORY {
            let (mut free, mut total) = (0, 0);
            // SAFETY: a context is current; writes two sizes.
            if unsafe { (self.driver.mem_get_info)(&mut free, &mut total) } == SUCCESS {
                let [free, total] = [free, total].map(|it: usize| units::bytes(it as u64));
                fault.message += &format!("; {free} of the GPU's {total} are free");
            }
            fault.kind = FailureKind::Machine;
            fault.help =
                "make the buffers smaller with --set, or see with nvidia-smi who else uses \
                          the GPU's memory"
                    .to_owned();
        }
        fault
    }
}

impl Drop for Buffers<'_> {
    fn drop(&mut self) {
        for (id, host) in self.hosts.iter().enumerate() {
            // SAFETY: each address came from the matching allocation and is freed once. After an error
            // of the device these fail, which changes nothing.
            unsafe {
                if self.has_device_side(id) && self.addresses[id] != 0 {
                    (self.driver.mem_free)(self.addresses[id]);
                }
                match host {
                    Host::Pinned(address) => {
                        (self.driver.mem_free_host)(address.cast());
                    }
                    Host::Managed(address) => {
                        (self.driver.mem_free)(*address as CUdeviceptr);
                    }
                    Host::None | Host::Pageable(_) => {}
                }
            }
        }
        // Reverse of what `new` needs; a failure shows in whatever comes next.
        let _ = self.contexts.enter(0);
    }
}

fn no_host_memory(spec: &BufferSpec) -> Fault {
    Fault::machine(
        format!(
            "allocating {} of host memory for buffer `{}`: out of memory",
            units::bytes(spec.bytes),
            spec.name
        ),
        "make the buffers smaller with --set",
    )
}

/// Sizes in a plan are bounded by what a machine can have.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Writes a pattern; `seed` makes the random numbers of two buffers differ.
fn write_pattern(values: &mut [f32], fill: Fill, seed: usize) {
    match fill {
        Fill::Zero => values.fill(0.0),
        Fill::One => values.fill(1.0),
        Fill::Iota => values
            .iter_mut()
            .enumerate()
            .for_each(|(i, v)| *v = i as f32),
        Fill::Random => {
            let mut state = seed as u64;
            values.iter_mut().for_each(|v| *v = random(&mut state));
        }
    }
}

/// The next number of a splitmix64 sequence, as f32 in [0, 1).
pub(crate) fn random(state: &mut u64) -> f32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    // 24 bits are what an f32 holds exactly.
    (z >> 40) as f32 / (1_u32 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_lie_in_the_unit_interval_and_differ_by_seed() {
        let mut a = [0.0; 1000];
        let mut b = [0.0; 1000];
        write_pattern(&mut a, Fill::Random, 1);
        write_pattern(&mut b, Fill::Random, 2);
        assert!(a.iter().all(|v| (0.0..1.0).contains(v)));
        assert_ne!(a, b);
        let mean = a.iter().sum::<f32>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }

    #[test]
    fn splitmix_gives_its_published_sequence() {
        // First output for seed 1234567 in the reference implementation: 6457827717110365317.
        let mut state = 1_234_567;
        let expected = (6_457_827_717_110_365_317_u64 >> 40) as f32 / 16_777_216.0;
        assert_eq!(random(&mut state), expected);
    }
}

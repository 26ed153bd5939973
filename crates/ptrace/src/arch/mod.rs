//! What differs from processor to processor: registers, the frame that `rt_sigreturn` takes, and the code of the call.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::is_after_call;
#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::is_after_call;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

pub(crate) type Registers = libc::user_regs_struct;

const SYS_EPOLL_PWAIT2: i64 = 441;

/// The bits of a return address that are the address: a processor may have signed the rest.
pub(crate) const ADDRESS: u64 = 0xffff_ffff_ffff;

/// Calls that wait for a lock: harmless where nothing of allocator and loader is on the stack.
pub(crate) const WAITING: &[i64] = &[
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_sched_yield,
];

/// The block that the code of the call works on: what it is to call, and what came of it. Its address is in a register; the code counts
/// in words of eight bytes where what lies.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) dlopen: u64,
    pub(crate) dlsym: u64,
    pub(crate) dlerror: u64,
    pub(crate) errno_location: u64,
    /// The function to call where the library is loaded already; 0 to load it.
    pub(crate) entry: u64,
    pub(crate) path: u64,
    pub(crate) flags: u64,
    pub(crate) symbol: u64,
    pub(crate) arguments: [u64; 4],
    /// 1 from the beginning on, then what came of it.
    pub(crate) stage: u64,
    pub(crate) result: u64,
    pub(crate) errno: u64,
    pub(crate) errno_at: u64,
    /// The stack pointer with which `rt_sigreturn` finds the frame.
    pub(crate) leave: u64,
    /// What the loader said.
    pub(crate) message: [u8; MESSAGE],
}

pub(crate) const MESSAGE: usize = 256;
const _: () = assert!(std::mem::offset_of!(Block, arguments) == 8 * 8);
const _: () = assert!(std::mem::offset_of!(Block, stage) == 8 * 12);
const _: () = assert!(std::mem::offset_of!(Block, leave) == 8 * 16);
const _: () = assert!(std::mem::offset_of!(Block, message) == 8 * 17);

/// What [`Block::stage`] ends with.
pub(crate) const DONE: u64 = 2;
pub(crate) const NOT_LOADED: u64 = 3;
pub(crate) const NO_SYMBOL: u64 = 4;

/// Plain bytes of something that holds nothing but numbers.
pub(crate) fn bytes_of<T: Copy>(it: &T) -> &[u8] {
    // SAFETY: all callers pass plain structures of numbers without padding, whose bytes are all initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(it).cast(), size_of::<T>()) }
}

unsafe extern "C" {
    static cuptop_call_begin: u8;
    static cuptop_call_given_up: u8;
    static cuptop_call_end: u8;
}

/// The code of the call: it runs wherever it lies.
pub(crate) fn code() -> &'static [u8] {
    let (begin, end) = (&raw const cuptop_call_begin, &raw const cuptop_call_end);
    // SAFETY: both labels are of one section, the second behind the first, and what lies between is never written.
    unsafe { std::slice::from_raw_parts(begin, end as usize - begin as usize) }
}

/// Where in it begins what closes the descriptors of a call that never was, and takes up the frame.
pub(crate) fn giving_up() -> u64 {
    (&raw const cuptop_call_given_up as u64) - (&raw const cuptop_call_begin as u64)
}

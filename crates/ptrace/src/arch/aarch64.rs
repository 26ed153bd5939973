//! aarch64. Run under emulation (tests/aarch64/run), not on hardware yet.
//!
//! Of the vectors only the 128 bits that every processor has are alive at a system call. The kernel lets go of the rest of SVE's.
//! A thread is taken when its call has ended early, where the kernel shows all registers. Only a tracer that dies between the two
//! leaves a program with an EINTR that it would not have seen.

use super::{ADDRESS, Registers, SYS_EPOLL_PWAIT2};

/// EM_AARCH64
pub(crate) const MACHINE: u16 = 183;
/// NT_PRFPREG
pub(crate) const VECTORS: i32 = 2;
/// `mov x8, #139; svc #0`
pub(crate) const SIGRETURN: &[u8] = b"\x68\x11\x80\xd2\x01\x00\x00\xd4";
/// `svc #0; ret`
pub(crate) const SYSCALL: &[u8] = b"\x01\x00\x00\xd4\xc0\x03\x5f\xd6";
pub(crate) const SIGRETURN_IN_LIBC: bool = false;

pub(crate) fn number(registers: &Registers) -> i64 {
    registers.regs[8].cast_signed()
}

pub(crate) fn stack(registers: &Registers) -> u64 {
    registers.sp
}

pub(crate) fn places(registers: &Registers) -> impl Iterator<Item = u64> {
    [registers.pc, registers.regs[30] & ADDRESS].into_iter()
}

pub(crate) fn result(registers: &Registers) -> i64 {
    registers.regs[0].cast_signed()
}

/// The kernel puts the registers back before anybody sees them, so the number is all there is to see.
pub(crate) fn interrupted(registers: &Registers) -> Option<i64> {
    Some(number(registers))
}

/// The first argument is gone where the result is. The kernel told it before, of the same call at the same place.
pub(crate) fn repeated(registers: &Registers, before: &str) -> Option<Registers> {
    let number = number(registers);
    let rest = registers.regs[1..6].iter();
    let rest = rest.chain([&registers.sp, &registers.pc]);
    let rest: String = rest.map(|it| format!(" {it:#x}")).collect();
    let first = before.trim_end().strip_suffix(&rest)?;
    let first = first.strip_prefix(&format!("{number} 0x"))?;
    let mut entry = *registers;
    entry.regs[0] = u64::from_str_radix(first, 16).ok()?;
    Some(back(&entry, number, registers))
}

const EINTR: i64 = -(libc::EINTR as i64);
pub(crate) const CUT_SHORT: &[i64] = &[libc::SYS_epoll_pwait, SYS_EPOLL_PWAIT2];
/// Not `ioctl`: what a driver does that is asked to end a call is not known.
pub(crate) const HARMLESS: &[i64] = &[
    libc::SYS_ppoll,
    libc::SYS_epoll_pwait,
    SYS_EPOLL_PWAIT2,
    libc::SYS_read,
    libc::SYS_write,
];
pub(crate) const RESTART: i64 = libc::SYS_restart_syscall;

pub(crate) fn waits_anew(_number: i64, _registers: &Registers) -> bool {
    true
}

/// At the entry of a call and at its end the kernel shows a number of its own in x7.
pub(crate) const AT_ENTRY: bool = false;

/// What a thread comes back with that was at this entry, and was stopped after the call: before it, where it was cut short.
pub(crate) fn back(entry: &Registers, number: i64, now: &Registers) -> Registers {
    let is_cut = result(now) == EINTR && CUT_SHORT.contains(&number);
    if now.pc + 4 != entry.pc && !is_cut {
        return *now;
    }
    let mut it = *entry;
    it.pc -= 4;
    it.regs[8] = number.cast_unsigned();
    it.regs[7] = now.regs[7];
    it
}

/// Has the thread make a call without effect, and take up `frame` after it.
pub(crate) fn neutral(
    registers: &Registers,
    syscall: u64,
    frame: u64,
    sigreturn: u64,
) -> Registers {
    let number = libc::SYS_getpid;
    calling(registers, number, [0; 6], syscall, frame, sigreturn)
}

pub(crate) fn calling(
    registers: &Registers,
    number: i64,
    arguments: [u64; 6],
    syscall: u64,
    frame: u64,
    sigreturn: u64,
) -> Registers {
    let mut it = *registers;
    it.regs[..6].copy_from_slice(&arguments);
    it.regs[8] = number.cast_unsigned();
    it.regs[30] = sigreturn;
    it.pc = syscall;
    it.sp = frame;
    it
}

pub(crate) fn entering(registers: &Registers, code: u64, block: u64, stack: u64) -> Registers {
    let mut it = *registers;
    it.pc = code;
    it.regs[19] = block;
    it.regs[29] = 0;
    it.sp = stack & !15;
    it
}

pub(crate) fn leave(frame: u64) -> u64 {
    frame
}

/// Where the context of the general registers begins, where those of others do, and the end: the vectors, and a context that is none.
const GENERAL: usize = 304;
const OTHERS: usize = 592;
const FPSIMD: u32 = 0x4650_8001;
const VECTOR_BYTES: usize = 512;
const FRAME: usize = OTHERS + 16 + VECTOR_BYTES + 16;

pub(crate) fn frame(
    registers: &Registers,
    vectors: &[u8],
    mask: u64,
    _sigreturn: u64,
    top: u64,
) -> (u64, Vec<u8>) {
    let frame = (top - FRAME as u64) & !15;
    let mut bytes = vec![0; FRAME];
    let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    // Flags of an alternative stack that are none, so that the present one stays.
    put(152, 4);
    put(168, mask);
    for (index, value) in registers.regs.iter().enumerate() {
        put(GENERAL + 8 + 8 * index, *value);
    }
    put(GENERAL + 256, registers.sp);
    put(GENERAL + 264, registers.pc);
    put(GENERAL + 272, registers.pstate);
    put(OTHERS, u64::from(FPSIMD) | (VECTOR_BYTES as u64 + 16) << 32);
    if let Some(state) = vectors.get(VECTOR_BYTES..VECTOR_BYTES + 8) {
        bytes[OTHERS + 8..OTHERS + 16].copy_from_slice(state);
        bytes[OTHERS + 16..OTHERS + 16 + VECTOR_BYTES].copy_from_slice(&vectors[..VECTOR_BYTES]);
    }
    (frame, bytes)
}

/// `bl`, or `blr` in any of its forms.
pub fn is_after_call(before: &[u8; 8]) -> bool {
    let code = u32::from_le_bytes([before[4], before[5], before[6], before[7]]);
    code >> 26 == 0b10_0101 || code & 0xfeff_f000 == 0xd63f_0000
}

std::arch::global_asm!(
    ".pushsection .rodata.cuptop_call, \"a\"; .balign 16",
    ".globl cuptop_call_begin; .hidden cuptop_call_begin",
    "cuptop_call_begin: 8: mov x9, 1; str x9, [x19, 8*12]",
    // The other end of the socket is another's.
    "ldr w0, [x19, 0x404]; mov x8, 57; svc 0",
    // errno is kept.
    "ldr x9, [x19, 8*3]; blr x9; str x0, [x19, 8*15]; ldr w9, [x0]; str x9, [x19, 8*14]",
    // The function, found by the loader where it is not known yet.
    "ldr x9, [x19, 8*4]; cbnz x9, 2f",
    "ldp x0, x1, [x19, 8*5]; ldr x9, [x19]; blr x9; cbz x0, 3f",
    "ldr x1, [x19, 8*7]; ldr x9, [x19, 8]; blr x9; mov x20, 4; cbz x0, 5f; mov x9, x0",
    "2: ldp x0, x1, [x19, 8*8]; ldp x2, x3, [x19, 8*10]",
    "blr x9; str x0, [x19, 8*13]; mov x20, 2; b 6f",
    // What the loader says of its failure: up to 255 bytes of it, so that the last stays zero.
    "3: ldr x9, [x19, 8*2]; blr x9; mov x20, 3; cbz x0, 5f; add x10, x19, 8*17; mov x11, 0",
    "4: ldrb w12, [x0, x11]; strb w12, [x10, x11]; add x11, x11, 1; cbz w12, 5f; cmp x11, 255; b.lo 4b",
    // The descriptors that nobody took.
    "5: add x21, x19, 8*8; mov x22, 3",
    "7: ldr x0, [x21], 8; mov x8, 57; svc 0; sub x22, x22, 1; cbnz x22, 7b",
    "6: ldr x9, [x19, 8*14]; ldr x10, [x19, 8*15]; str w9, [x10]; str x20, [x19, 8*12]",
    "ldr x9, [x19, 8*16]; mov sp, x9; mov x8, 139; svc 0",
    ".globl cuptop_call_given_up; .hidden cuptop_call_given_up",
    "cuptop_call_given_up: adr x19, 8b+0x10400; mov x8, 57; ldr w0, [x19]; svc 0; ldr w0, [x19, 4]; svc 0",
    "ldr w0, [x19, 0x80]; svc 0; ldr w0, [x19, 0x84]; svc 0; mov x8, 139; svc 0",
    ".globl cuptop_call_end; .hidden cuptop_call_end; cuptop_call_end: .popsection",
);

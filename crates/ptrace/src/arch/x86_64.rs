//! x86-64.

use std::arch::x86_64::__cpuid_count;

use super::{Registers, SYS_EPOLL_PWAIT2};

/// EM_X86_64
pub(crate) const MACHINE: u16 = 62;
/// The set of registers that holds the vectors: NT_X86_XSTATE, in the layout of XSAVE.
pub(crate) const VECTORS: i32 = 0x202;
/// `mov $15, %rax; syscall`: where signal handlers return to.
pub(crate) const SIGRETURN: &[u8] = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05";
/// `syscall; ret`
pub(crate) const SYSCALL: &[u8] = b"\x0f\x05\xc3";
/// The mapping in which both are looked for.
pub(crate) const SIGRETURN_IN_LIBC: bool = true;
/// Bytes below the stack pointer that belong to the running function.
const RED_ZONE: u64 = 128;
/// Errors that a call leaves in rax when it was interrupted, the last of which goes on as `restart_syscall`.
const INTERRUPTED: std::ops::RangeInclusive<i64> = -516..=-512;

/// The number of the system call that a thread is at the entry of.
pub(crate) fn number(registers: &Registers) -> i64 {
    registers.orig_rax.cast_signed()
}

pub(crate) fn argument(registers: &Registers, index: usize) -> u64 {
    let it = registers;
    [it.rdi, it.rsi, it.rdx, it.r10, it.r8, it.r9][index]
}

pub(crate) fn stack(registers: &Registers) -> u64 {
    registers.rsp
}

/// Where a thread is, and what the innermost function returns to where that is not on the stack.
pub(crate) fn places(registers: &Registers) -> impl Iterator<Item = u64> {
    [registers.rip].into_iter()
}

pub(crate) fn result(registers: &Registers) -> i64 {
    registers.rax.cast_signed()
}

/// The system call that a stopped thread was interrupted in.
pub(crate) fn interrupted(registers: &Registers) -> Option<i64> {
    let is_in_call = number(registers) >= 0;
    let is_cut =
        INTERRUPTED.contains(&result(registers)) || result(registers) == -i64::from(libc::EINTR);
    (is_in_call && is_cut).then(|| number(registers))
}

/// Calls that the kernel ends with EINTR only because somebody stopped the thread.
pub(crate) const CUT_SHORT: &[i64] = &[
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    SYS_EPOLL_PWAIT2,
];

/// Has a thread make such a call again.
pub(crate) fn repeated(registers: &Registers, _before: &str) -> Option<Registers> {
    let is_cut = result(registers) == -i64::from(libc::EINTR);
    let is_it = is_cut && CUT_SHORT.contains(&number(registers));
    is_it.then(|| back(registers, number(registers), registers))
}

/// Calls that neither allocator nor loader makes while it holds a lock that loading a library takes.
pub(crate) const HARMLESS: &[i64] = &[
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    SYS_EPOLL_PWAIT2,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_ioctl,
];
pub(crate) const RESTART: i64 = libc::SYS_restart_syscall;

/// Whether a call waits for a length of time: made again, it waits for all of it again.
pub(crate) fn waits_anew(number: i64, registers: &Registers) -> bool {
    let argument = |index| argument(registers, index);
    match number {
        libc::SYS_poll => argument(2).cast_signed() as i32 > 0,
        libc::SYS_futex => argument(1) & 0x7f == 0 && argument(3) != 0,
        libc::SYS_clock_nanosleep => argument(1) & 1 == 0,
        libc::SYS_read | libc::SYS_write | libc::SYS_ioctl => false,
        _ => true,
    }
}

/// All registers can be seen and changed at the entry of a call.
pub(crate) const AT_ENTRY: bool = true;

/// The registers of just before a call of this number.
pub(crate) fn back(registers: &Registers, number: i64, _now: &Registers) -> Registers {
    let mut it = *registers;
    it.rip -= 2;
    it.rax = number.cast_unsigned();
    it.orig_rax = u64::MAX;
    it
}

/// At the entry of a call: makes the call fail without effect, and the thread take up `frame` after it.
pub(crate) fn neutral(
    registers: &Registers,
    syscall: u64,
    frame: u64,
    _sigreturn: u64,
) -> Registers {
    let mut it = *registers;
    (it.rdi, it.rsi, it.rdx) = (u64::MAX, u64::MAX, u64::MAX);
    (it.r10, it.r8, it.r9) = (u64::MAX, u64::MAX, u64::MAX);
    // One that is made again knows its arguments by itself.
    it.orig_rax = libc::SYS_read as u64;
    // Its `ret` finds the frame's first word.
    it.rip = syscall + 2;
    it.rsp = frame;
    it
}

/// Has the thread make a system call, and take up `frame` after it.
pub(crate) fn calling(
    registers: &Registers,
    number: i64,
    arguments: [u64; 6],
    syscall: u64,
    frame: u64,
    _sigreturn: u64,
) -> Registers {
    let mut it = *registers;
    [it.rdi, it.rsi, it.rdx, it.r10, it.r8, it.r9] = arguments;
    it.rax = number.cast_unsigned();
    it.orig_rax = u64::MAX;
    it.rip = syscall;
    it.rsp = frame;
    it
}

/// Has the thread run the code of the call.
pub(crate) fn entering(registers: &Registers, code: u64, block: u64, stack: u64) -> Registers {
    let mut it = *registers;
    it.rip = code;
    it.rbx = block;
    it.rsp = stack & !15;
    it.rbp = 0;
    it.rax = 0;
    it.orig_rax = u64::MAX;
    it
}

/// Where the frame lies for `rt_sigreturn`'s stack pointer.
pub(crate) fn leave(frame: u64) -> u64 {
    frame + 8
}

const FRAME: usize = 440;
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
/// Where XSAVE's area has room for software's words, the components that it holds, and its end without any.
const SOFTWARE: usize = 464;
const IN_USE: usize = 512;
const HEADER_END: usize = 576;
/// The tiles of AMX, which a program has only where it asked for them.
const TILES: u64 = 1 << 18;

/// Where a frame that ends below `top` begins, and its bytes: what `rt_sigreturn` makes of them is a thread with these registers, vectors
/// and mask. The kernel takes no alternative signal stack from it.
pub(crate) fn frame(
    registers: &Registers,
    vectors: &[u8],
    mask: u64,
    sigreturn: u64,
    top: u64,
) -> (u64, Vec<u8>) {
    let vectors = for_frame(vectors);
    let area = (top - RED_ZONE - vectors.len() as u64) & !63;
    let frame = (area - FRAME as u64) & !15;
    let mut bytes = vec![0; (area - frame) as usize];
    let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    let it = registers;
    put(0, sigreturn);
    // There are vectors; the stack's segment is told, and to be taken as it is.
    put(8, 7);
    // Flags of an alternative stack that are none, so that the present one stays.
    put(32, 4);
    let general = [
        it.r8, it.r9, it.r10, it.r11, it.r12, it.r13, it.r14, it.r15, it.rdi, it.rsi, it.rbp,
        it.rbx, it.rdx, it.rax, it.rcx, it.rsp, it.rip, it.eflags,
    ];
    for (index, value) in general.into_iter().enumerate() {
        put(48 + 8 * index, value);
    }
    put(192, it.cs & 0xffff | it.ss << 48);
    put(232, area);
    put(304, mask);
    bytes.extend(vectors);
    (frame, bytes)
}

/// The area of XSAVE as a frame has it: as long as what is in use, with software's words about that.
fn for_frame(vectors: &[u8]) -> Vec<u8> {
    let word = |at: usize| {
        let bytes = vectors.get(at..at + 8).and_then(|it| it.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let mut features = word(SOFTWARE);
    if word(IN_USE) & TILES == 0 {
        features &= !TILES;
    }
    let mut length = HEADER_END;
    for component in (2..63).filter(|it| features >> it & 1 == 1) {
        // Sizes and offsets of components, which are the same for all processes of this machine.
        let it = __cpuid_count(0xd, component);
        length = length.max((it.eax + it.ebx) as usize);
    }
    let length = length.min(vectors.len());
    let mut area = vectors[..length].to_vec();
    let mut software = [0; 48];
    software[..4].copy_from_slice(&MAGIC1.to_le_bytes());
    software[4..8].copy_from_slice(&(length as u32 + 4).to_le_bytes());
    software[8..16].copy_from_slice(&features.to_le_bytes());
    software[16..20].copy_from_slice(&(length as u32).to_le_bytes());
    area[SOFTWARE..SOFTWARE + 48].copy_from_slice(&software);
    area.extend(MAGIC2.to_le_bytes());
    area
}

/// Whether the instruction before this address is a call, so that it may be one that is returned to.
pub fn is_after_call(before: &[u8; 8]) -> bool {
    // call rel32; call through a register or memory, by the length of its operand.
    before[3] == 0xe8
        || [2, 3, 4, 6, 7].iter().any(|length| {
            let at = 8 - length;
            before[at] == 0xff && before[at + 1] >> 3 & 7 == 2
        })
}

std::arch::global_asm!(
    ".pushsection .rodata.cuptop_call, \"a\"; .balign 16",
    ".globl cuptop_call_begin; .hidden cuptop_call_begin",
    "cuptop_call_begin: 8: cld; movq $1, 8*12(%rbx)",
    // The other end of the socket is another's.
    "mov 0x404(%rbx), %edi; mov $3, %eax; syscall",
    // errno is kept.
    "call *8*3(%rbx); mov %rax, 8*15(%rbx); mov (%rax), %ecx; mov %rcx, 8*14(%rbx)",
    // The function, found by the loader where it is not known yet.
    "mov 8*4(%rbx), %rax; test %rax, %rax; jnz 2f",
    "mov 8*5(%rbx), %rdi; mov 8*6(%rbx), %rsi; call *(%rbx); test %rax, %rax; jz 3f",
    "mov %rax, %rdi; mov 8*7(%rbx), %rsi; call *8(%rbx); mov $4, %r12d; test %rax, %rax; jz 5f",
    "2: mov 8*8(%rbx), %rdi; mov 8*9(%rbx), %rsi; mov 8*10(%rbx), %rdx; mov 8*11(%rbx), %rcx",
    "call *%rax; mov %rax, 8*13(%rbx); mov $2, %r12d; jmp 6f",
    // What the loader says of its failure: up to 255 bytes of it, so that the last stays zero.
    "3: call *8*2(%rbx); mov $3, %r12d; test %rax, %rax; jz 5f; xor %ecx, %ecx",
    "4: mov (%rax,%rcx), %dl; mov %dl, 8*17(%rbx,%rcx); inc %ecx; test %dl, %dl; jz 5f; cmp $255, %ecx; jb 4b",
    // The descriptors that nobody took.
    "5: xor %r13d, %r13d",
    "7: mov 8*8(%rbx,%r13,8), %rdi; mov $3, %eax; syscall; inc %r13d; cmp $3, %r13d; jb 7b",
    "6: mov 8*14(%rbx), %rcx; mov 8*15(%rbx), %rax; mov %ecx, (%rax); mov %r12, 8*12(%rbx)",
    "mov 8*16(%rbx), %rsp; mov $15, %eax; syscall",
    ".globl cuptop_call_given_up; .hidden cuptop_call_given_up",
    "cuptop_call_given_up: lea 8b+0x10400(%rip), %rbx",
    "mov (%rbx), %edi; mov $3, %eax; syscall; mov 4(%rbx), %edi; mov $3, %eax; syscall",
    "mov 0x80(%rbx), %edi; mov $3, %eax; syscall; mov 0x84(%rbx), %edi; mov $3, %eax; syscall",
    "mov $15, %eax; syscall",
    ".globl cuptop_call_end; .hidden cuptop_call_end; cuptop_call_end: .popsection",
    options(att_syntax),
);

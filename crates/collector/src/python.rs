//! The Python frames of the calling thread, read without running or changing anything of the interpreter.
//!
//! A CUDA call is under way on this thread, so its frames stand still, and the interpreter keeps them and their code. All is read by
//! `process_vm_readv` of this very process: an address that is gone is an error there, and never a signal. Another thread may end the
//! interpreter meanwhile, and what was read then is dropped. What does not look as the version's own headers have it is refused.
//! Only the main thread reads without the system's help, in pages that were readable before. It is the one that ends the interpreter:
//! nothing goes while it looks.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use activity::Frame;

/// Frames that are looked at; a deeper stack is told by its innermost ones.
const MOST: usize = 128;
/// Characters of a name or a path, and bytes of a table of lines, that are read.
const MOST_TEXT: usize = 4096;
const MOST_TABLE: usize = 64 << 10;
/// Bytes of a code object up to its table of lines.
const CODE: usize = 144;
const PAGE: u64 = 4096;
/// Pages that are remembered as readable.
const PAGES: usize = 256;
/// Where an object's type stands, and in a string or bytes its length and its state.
const TYPE: usize = 8;
const LENGTH: usize = 16;
const STATE: usize = 32;
/// Where a thread's state names its interpreter.
const INTERPRETER: u64 = 16;
/// Who owns a frame that runs no Python, from this one on.
const C_STACK: u8 = 3;
/// The last number of an owner: 3.14 alone has so many.
const LAST_OWNER: u8 = 4;
/// Bits of a frame's pointer to its code that 3.14 and later keep for themselves.
const TAGS: u64 = 3;

/// Where things stand in a minor version of CPython, by its headers.
#[derive(Debug)]
struct Layout {
    minor: &'static str,
    /// From a thread's state to its innermost frame.
    to_frame: &'static [u64],
    /// Bytes of a frame that are read.
    frame: usize,
    previous: usize,
    code: usize,
    /// The present instruction: a pointer, in 3.10 a number.
    at: usize,
    owner: Option<usize>,
    first_line: usize,
    name: usize,
    file: usize,
    table: usize,
    /// Where the instructions begin.
    instructions: Option<u64>,
    /// Where the characters of an ASCII string begin, and of any other.
    text: [u64; 2],
}

impl Layout {
    /// The code of a frame.
    fn code(&self, frame: &[u8]) -> u64 {
        word(frame, self.code) & !TAGS
    }

    /// Where a frame's code is: a pointer, or a number of bytes.
    fn position(&self, frame: &[u8]) -> u64 {
        match self.instructions {
            Some(_) => word(frame, self.at),
            // Counted in pairs of bytes.
            None => u64::from(half(frame, self.at)) * 2,
        }
    }
}

#[rustfmt::skip]
const LAYOUTS: [Layout; 6] = [
    Layout { minor: "10", to_frame: &[24], frame: 100, previous: 24, code: 32, at: 96, owner: None, first_line: 40, name: 112, file: 104, table: 120, instructions: None, text: [48, 72] },
    Layout { minor: "11", to_frame: &[56, 8], frame: 72, previous: 48, code: 32, at: 56, owner: Some(69), first_line: 72, name: 128, file: 112, table: 136, instructions: Some(184), text: [48, 72] },
    Layout { minor: "12", to_frame: &[56, 0], frame: 72, previous: 8, code: 0, at: 56, owner: Some(70), first_line: 68, name: 128, file: 112, table: 136, instructions: Some(192), text: [40, 56] },
    Layout { minor: "13", to_frame: &[72], frame: 72, previous: 8, code: 0, at: 56, owner: Some(70), first_line: 68, name: 128, file: 112, table: 136, instructions: Some(200), text: [40, 56] },
    Layout { minor: "14", to_frame: &[72], frame: 80, previous: 8, code: 0, at: 56, owner: Some(74), first_line: 68, name: 128, file: 112, table: 136, instructions: Some(208), text: [40, 56] },
    Layout { minor: "15", to_frame: &[72], frame: 80, previous: 8, code: 0, at: 56, owner: Some(74), first_line: 68, name: 128, file: 112, table: 136, instructions: Some(208), text: [40, 56] },
];

/// The versions of CPython whose frames are read: they give nodes of CUDA graphs their names.
pub fn pythons() -> impl Iterator<Item = String> {
    LAYOUTS.iter().map(|it| format!("3.{}", it.minor))
}

/// A frame as it is told apart from others: where it is in which code object. An address that was used again has another name,
/// file or table of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Level {
    code: u64,
    file: u64,
    name: u64,
    table: u64,
    first_line: u32,
    /// Bytes of instructions before the present one.
    offset: u32,
}

/// A function of the interpreter that reads one word, which is there as long as the library is.
type Get<T> = unsafe extern "C" fn() -> T;

/// The interpreter of this process.
#[derive(Debug)]
pub(crate) struct Python {
    layout: &'static Layout,
    this_thread: Get<*const c_void>,
    newest: Get<*const c_void>,
    main: Get<*const c_void>,
    is_finalizing: Get<c_int>,
    code_type: u64,
    text_type: u64,
    bytes_type: u64,
    /// Whether a walk has shown that all is where it should be.
    is_proved: AtomicBool,
}

/// What one walk has read of frames, from an address on.
type Stretch = (u64, Vec<u8>);
/// Pages that could be read when they were first seen.
type Pages = [Cell<u64>; PAGES];

static PYTHON: OnceLock<Python> = OnceLock::new();

thread_local! {
    static READABLE: Pages = const { [const { Cell::new(0) }; PAGES] };
    /// Whether this is the main thread, once somebody asked.
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Why frames are not read.
pub(crate) type Refused = String;

impl Python {
    /// That of this process.
    ///
    /// # Errors
    /// When its frames cannot be read; with an empty text where there is none.
    pub(crate) fn of_process() -> Result<&'static Python, Refused> {
        match PYTHON.get() {
            Some(known) => Ok(known),
            None => Python::find().map(|it| PYTHON.get_or_init(|| it)),
        }
    }

    fn find() -> Result<Python, Refused> {
        // SAFETY: CPython's function of this name takes nothing and gives a text that lasts.
        let version = unsafe {
            let version: Get<*const c_char> =
                symbol(c"Py_GetVersion").map_err(|_| Refused::new())?;
            CStr::from_ptr(version()).to_string_lossy()
        };
        let short = version.split(' ').next().unwrap_or_default();
        let minor = short.strip_prefix("3.").and_then(|it| it.split('.').next());
        let layout = LAYOUTS.iter().find(|it| minor == Some(it.minor));
        let layout = layout.filter(|_| !version.contains("free-threading"));
        // SAFETY: CPython's functions of these names take nothing, give this, and need no lock of the interpreter.
        unsafe {
            Ok(Python {
                layout: layout.ok_or_else(|| format!("Python {short} is not known"))?,
                this_thread: symbol(c"PyGILState_GetThisThreadState")?,
                newest: symbol(c"PyInterpreterState_Head")?,
                main: symbol(c"PyInterpreterState_Main")?,
                is_finalizing: symbol(c"Py_IsFinalizing")
                    .or_else(|_| symbol(c"_Py_IsFinalizing"))?,
                code_type: symbol(c"PyCode_Type")?,
                text_type: symbol(c"PyUnicode_Type")?,
                bytes_type: symbol(c"PyBytes_Type")?,
                is_proved: AtomicBool::new(false),
            })
        }
    }

    /// The frames of the calling thread, innermost first; none on a thread without any, or where the interpreter ends.
    ///
    /// # Errors
    /// When they can never be read here.
    pub(crate) fn walk(&self) -> Result<Vec<Level>, Refused> {
        self.thread()
            .map_or(Ok(Vec::new()), |thread| self.walk_of(thread))
    }

    /// As [`Python::walk`], of a thread that stands still, by its [`Python::thread`].
    pub(crate) fn walk_of(&self, thread: u64) -> Result<Vec<Level>, Refused> {
        if self.main() != word_at(thread + INTERPRETER) {
            let why = match self.main() {
                0 => "there are several interpreters",
                _ => "its threads cannot be read",
            };
            return Err(why.to_owned());
        }
        let mut levels = self.levels(thread)?;
        match self.is_ending() {
            false if levels.is_empty() => {}
            false => self.is_proved.store(true, Ordering::Relaxed),
            true => levels.clear(),
        }
        Ok(levels)
    }

    /// A number for the chain of frames that the calling thread has now, the same for the same chain; `None` where only a walk tells.
    /// It may be another one for the same chain, too.
    pub(crate) fn chain(&self) -> Option<u64> {
        let is_main = IS_MAIN.get().unwrap_or_else(|| {
            // By number: a C library before 2.30 has no function for it.
            // SAFETY: neither has preconditions.
            let is_main = unsafe { libc::syscall(libc::SYS_gettid) == libc::getpid().into() };
            IS_MAIN.set(Some(is_main));
            is_main
        });
        if !is_main || !self.is_proved.load(Ordering::Relaxed) || self.main() == 0 {
            return None;
        }
        let thread = self.thread()?;
        READABLE.with(|pages| self.chain_of(thread, pages))
    }

    fn chain_of(&self, thread: u64, pages: &Pages) -> Option<u64> {
        let (it, mut next) = (self.layout, thread);
        for step in it.to_frame {
            next = seen_at(pages, next + step, 8).then(|| present(next + step, 0))?;
        }
        let (mut sum, mut frames) = (0_u64, 0);
        for _ in 0..2 * MOST {
            if frames == MOST || !seen_at(pages, next, it.frame) {
                break;
            }
            let code = present::<u64>(next, it.code) & !TAGS;
            let owner = it.owner.map_or(0, |at| present(next, at));
            let at = match it.instructions {
                Some(_) => present(next, it.at),
                None => u64::from(present::<u32>(next, it.at)),
            };
            if owner < C_STACK && seen_at(pages, code, CODE) {
                // An address that was used again has another name or table of lines.
                let [name, table] = [it.name, it.table].map(|at| present::<u64>(code, at));
                frames += 1;
                let all = code ^ at.rotate_left(16) ^ name.rotate_left(32) ^ table.rotate_left(48);
                sum = (sum.rotate_left(7) ^ all).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            next = present(next, it.previous);
        }
        Some(sum)
    }

    /// The state of the calling thread, where the interpreter lives.
    pub(crate) fn thread(&self) -> Option<u64> {
        // SAFETY: reads a word of this thread's storage.
        let thread = unsafe { (self.this_thread)() } as u64;
        (thread != 0 && !self.is_ending()).then_some(thread)
    }

    /// The interpreter, if it is the only one, else 0.
    fn main(&self) -> u64 {
        // SAFETY: each reads a word of the interpreter's own.
        let (newest, main) = unsafe { ((self.newest)(), (self.main)()) };
        if newest == main { main as u64 } else { 0 }
    }

    fn is_ending(&self) -> bool {
        // SAFETY: reads a word of the interpreter's own.
        unsafe { (self.is_finalizing)() != 0 }
    }

    fn levels(&self, thread: u64) -> Result<Vec<Level>, Refused> {
        let (it, mut pages, mut levels) = (self.layout, Stretch::default(), Vec::new());
        let step = |at: u64, step: &u64| word_at(at.wrapping_add(*step));
        let mut next = it.to_frame.iter().fold(thread, step);
        // Code objects, and where in them the frames are.
        let mut found: Vec<(u64, u64)> = Vec::with_capacity(MOST);
        // Frames of the C stack lie between those of Python.
        for _ in 0..2 * MOST {
            let Some(frame) = self.frame_at(next, &mut pages) else {
                break;
            };
            next = word(frame, it.previous);
            match it.owner.map_or(0, |at| frame[at]) {
                0..C_STACK => found.push((it.code(frame), it.position(frame))),
                C_STACK..=LAST_OWNER => {}
                _ => found.push((0, 0)),
            }
            if found.len() == MOST {
                break;
            }
        }
        let places: Vec<_> = found.iter().map(|it| place(it.0, CODE)).collect();
        let mut codes = vec![0; found.len() * CODE];
        let length = read(&places, &mut codes);
        for ((object, at), code) in found.into_iter().zip(codes[..length].chunks_exact(CODE)) {
            // A thread that switches stacks by itself ends its chain with something else.
            if word(code, TYPE) != self.code_type {
                break;
            }
            let begin = it
                .instructions
                .map_or(0, |begin| object.wrapping_add(begin));
            // One that has not begun stands before its first instruction.
            if let Ok(offset) = u32::try_from(at.wrapping_sub(begin)) {
                levels.push(Level {
                    code: object,
                    file: word(code, it.file),
                    name: word(code, it.name),
                    table: word(code, it.table),
                    first_line: half(code, it.first_line),
                    offset,
                });
            }
        }
        let is_proved = self.is_proved.load(Ordering::Relaxed);
        match is_proved || !levels.is_empty() || places.is_empty() {
            true => Ok(levels),
            false => Err("its frames are laid out otherwise".to_owned()),
        }
    }

    /// A frame, of the pages that the last one lies in where it is there, too.
    fn frame_at<'p>(&self, address: u64, pages: &'p mut Stretch) -> Option<&'p [u8]> {
        let length = self.layout.frame;
        let is_here = |(start, bytes): &Stretch| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            (at.checked_add(length)? <= bytes.len()).then_some(at)
        };
        if is_here(pages).is_none() {
            let before = address % PAGE;
            let length = (before as usize + length).next_multiple_of(PAGE as usize);
            *pages = (address - before, content(address - before, length)?);
        }
        let at = is_here(pages)?;
        pages.1.get(at..at + length)
    }

    /// What a frame of the present walk is called. Its code object lives as long as the frame does.
    pub(crate) fn frame(&self, level: &Level) -> Option<Frame> {
        let (_, length) = head(level.table, self.bytes_type)?;
        let table = content(level.table + 32, length.min(MOST_TABLE))?;
        let line = match self.layout.instructions {
            Some(_) => line_at(&table, level.first_line, level.offset / 2),
            None => old_line_at(&table, level.first_line, level.offset),
        };
        let frame = Frame {
            file: self.text(level.file)?,
            function: self.text(level.name)?,
            line: line.unwrap_or(0),
        };
        (!self.is_ending()).then_some(frame)
    }

    fn text(&self, address: u64) -> Option<String> {
        let (head, length) = head(address, self.text_type)?;
        let state = half(&head, STATE);
        let (width, is_compact, is_other) = (state as usize >> 2 & 7, state & 32, state & 64 == 0);
        if is_compact == 0 || ![1, 2, 4].contains(&width) {
            return None;
        }
        let at = address + self.layout.text[usize::from(is_other)];
        let bytes = content(at, length.min(MOST_TEXT) * width)?;
        let number = |it: &[u8]| it.iter().rfold(0, |sum, it| sum << 8 | u32::from(*it));
        let letter = |it| char::from_u32(number(it)).unwrap_or(char::REPLACEMENT_CHARACTER);
        Some(bytes.chunks_exact(width).map(letter).collect())
    }
}

/// The beginning of an object of this type, and the length that it says.
fn head(address: u64, of_type: u64) -> Option<(Vec<u8>, usize)> {
    let head = content(address, STATE + 4).filter(|it| word(it, TYPE) == of_type)?;
    let length = usize::try_from(word(&head, LENGTH)).ok()?;
    Some((head, length))
}

/// What is at an address; `None` where it is not all there.
fn content(address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    (read(&[place(address, length)], &mut bytes) == length).then_some(bytes)
}

/// Whether so many bytes lie in pages that could be read when they were first seen.
fn seen_at(pages: &Pages, address: u64, length: usize) -> bool {
    let is_seen = |page: u64| {
        let known = &pages[page as usize % PAGES];
        known.get() == page && page != 0 || is_readable(page, known)
    };
    let last = address.saturating_add(length as u64 - 1) / PAGE;
    is_seen(address / PAGE) && (last == address / PAGE || is_seen(last))
}

#[cold]
fn is_readable(page: u64, known: &Cell<u64>) -> bool {
    let is_there = page != 0 && content(page.wrapping_mul(PAGE), 1).is_some();
    if is_there {
        known.set(page);
    }
    is_there
}

/// What stands so far behind an address, of which [`seen_at`] has said that it is there.
fn present<T: Copy>(address: u64, behind: usize) -> T {
    // SAFETY: only the main thread comes here, along the frames of its own. The interpreter keeps them while this call lasts. Where
    // they point no more, as on a stack that was switched, lies a page that was never seen. Numbers alone are read.
    unsafe {
        (address as usize as *const T)
            .byte_add(behind)
            .read_unaligned()
    }
}

/// The word at an address; 0 where there is none.
fn word_at(address: u64) -> u64 {
    content(address, 8).map_or(0, |it| word(&it, 0))
}

fn place(address: u64, length: usize) -> libc::iovec {
    libc::iovec {
        iov_base: address as usize as *mut c_void,
        iov_len: length,
    }
}

/// Reads this process's memory, one place after the other. Returns how many bytes are there.
fn read(places: &[libc::iovec], into: &mut [u8]) -> usize {
    let to = place(into.as_mut_ptr() as u64, into.len());
    // SAFETY: the kernel writes into `into` alone, and only as much as it holds. What it reads it checks itself.
    let done = unsafe {
        let count = places.len() as libc::c_ulong;
        libc::process_vm_readv(libc::getpid(), &raw const to, 1, places.as_ptr(), count, 0)
    };
    usize::try_from(done).unwrap_or(0)
}

/// The line of an instruction, by the table of Python 3.11 and later (its `Objects/locations.md`).
fn line_at(table: &[u8], first: u32, wanted: u32) -> Option<u32> {
    let (mut line, mut end, mut rest) = (i64::from(first), 0, table);
    while let Some((&head, after)) = rest.split_first() {
        let length = after.iter().take_while(|it| **it < 0x80).count();
        let (entry, others) = after.split_at(length);
        rest = others;
        let code = head >> 3 & 15;
        line += match code {
            10..=12 => i64::from(code - 10),
            13 | 14 => signed(entry),
            _ => 0,
        };
        end += u32::from(head & 7) + 1;
        if wanted < end {
            return u32::try_from(line).ok().filter(|_| code != 15);
        }
    }
    None
}

/// A number of six bits a byte, its sign last.
fn signed(bytes: &[u8]) -> i64 {
    let more = bytes.iter().take_while(|it| *it & 64 != 0).count();
    let six = &bytes[..bytes.len().min(more + 1).min(6)];
    let number = six.iter().rfold(0, |sum, it| sum << 6 | i64::from(it & 63));
    (number >> 1) * (1 - 2 * (number & 1))
}

/// The same by the table of Python 3.10 (its `Objects/lnotab_notes.txt`).
fn old_line_at(table: &[u8], first: u32, wanted: u32) -> Option<u32> {
    const NONE: i8 = -128;
    let (mut line, mut end) = (i64::from(first), 0);
    for pair in table.chunks_exact(2) {
        let change = pair[1].cast_signed();
        line += if change == NONE { 0 } else { i64::from(change) };
        end += u32::from(pair[0]);
        if wanted < end {
            return u32::try_from(line).ok().filter(|_| change != NONE);
        }
    }
    None
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes[at..].first_chunk();
    bytes.map_or(0, |it| u64::from_ne_bytes(*it))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes[at..].first_chunk();
    bytes.map_or(0, |it| u32::from_ne_bytes(*it))
}

/// What an exported name stands for.
///
/// # Safety
/// It must be that: an address, or a function of this type.
unsafe fn symbol<T>(name: &CStr) -> Result<T, Refused> {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    // SAFETY: looks a name up among the libraries that are there; the rest is the caller's promise.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        match found.is_null() {
            true => Err(format!("this Python hides {name:?}")),
            false => Ok(std::mem::transmute_copy(&found)),
        }
    }
}

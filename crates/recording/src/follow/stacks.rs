//! Stack samples as a file beside a recording: kind `stacks`, version 1.
//!
//! A block holds half a second or so of looks, and what they refer to. Numbers are LEB128 (`n` below), signed ones
//! zigzag; a text is its length in bytes, then UTF-8. A block begins with
//!
//! | what | |
//! |---|---|
//! | n n n n | texts, frames, stacks and looks before this block |
//! | n n n n | totals with this block: aimed-at looks a second, torn looks, lost looks, ns of one core that looking took |
//!
//! and goes on with entries:
//!
//! | tag | what follows |
//! |---|---|
//! | 1 process | text: the command line |
//! | 2 text | text; texts, frames and stacks are numbered from 1 in the order in which they come |
//! | 3 frame | n n n: text of the file, text of the function, line |
//! | 4 stack | n n: stack of the caller (0 none), frame |
//! | 5 thread | n: its id; text: its name |
//! | 6 look | signed n: ns since the look before, or since 1970 for the first of the block; n: entries that follow; each n n: thread, 2 × stack + 1 when it was running |
//!
//! A look names the threads that were seen doing something else than at the look before; the first of a block names all, so
//! that a lost block costs no more than itself. A stack of 0 is that of a thread that is gone.

mod copy;
mod decode;
mod encode;

pub(super) use copy::Copier;
pub(super) use decode::Stacks;
pub use encode::Encoder;

/// The kind's name.
pub const KIND: &str = "stacks";
/// Its version.
pub const VERSION: u32 = 1;

const PROCESS: u8 = 1;
const TEXT: u8 = 2;
const FRAME: u8 = 3;
const STACK: u8 = 4;
const THREAD: u8 = 5;
const LOOK: u8 = 6;

#[cfg(test)]
mod tests;

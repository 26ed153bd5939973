//! Getting a shared library into a process that runs already, on Linux (x86-64, aarch64).
//!
//! ```text
//! process  what the process is, and whether its kind can be entered at all
//! elf      functions of the libraries in it, read from its memory
//! tracee   ptrace's requests, one thread's each
//! search   a thread at the entry of a system call in which neither allocator nor loader holds a lock
//! places   what is asked for, and where in the process lies what it takes
//! guest    the stopped thread as our hands in its process
//! inject   the way in, from the first look to the end of the call
//! arch     registers, signal frames, the code that makes the call
//! steps    where a test ends the tracer
//! ```
//!
//! A thread is stopped at the entry of a harmless system call while all others run on. A signal frame that brings it back there is
//! written first, so from then on whatever it does ends in `rt_sigreturn`. A tracer that dies between any two requests leaves a
//! program that goes on as if nothing had been. The library comes through a descriptor, and no path has to exist in the process's
//! mount namespace. The call itself runs without a tracer, on a stack of its own.

mod arch;
mod elf;
mod guest;
mod inject;
mod memory;
mod places;
mod process;
mod refused;
mod search;
mod steps;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod tracee;

pub use arch::is_after_call;
pub use inject::{Call, CallState, Loaded, TRACER, load};
pub use places::Request;
pub use process::{Mapping, Seen, check, maps, may_read};
pub use refused::Refused;

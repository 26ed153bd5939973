//! The entry point for a program that runs already, into which `cuptop attach` has loaded this library.
//!
//! The call comes in a thread of the program that was stopped somewhere: it starts a thread and returns. That thread waits until the
//! program uses CUDA. It collects until it is told to leave or the other end of its socket is gone, and lets CUPTI go. The library
//! stays.

use std::ffi::{CString, OsString, c_int, c_void};
use std::io;
use std::panic::catch_unwind;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cupti_sys::{Cupti, driver};

use crate::collector::Collector;
use crate::fork;
use crate::hand::{self, BUSY, CHILD, LONGEST, NO_THREAD, Said};
use crate::inject::{COLLECTOR, at_exit};
use crate::options::{self, ApiCalls, Caller, Ending, Options};
use crate::threads;

/// Whether somebody is attached.
static HAS_HAND: AtomicBool = AtomicBool::new(false);
static AT_EXIT: Once = Once::new();
/// How often CUPTI was asked to record here.
static TIMES: AtomicU32 = AtomicU32::new(0);

/// Where the memory of the call lies that loaded this library.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "it is found by this name")]
pub static cuptop_area: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Begins to serve whoever holds the other end of `socket`: with a recording in the folder `directory`. All three descriptors are this
/// library's from now on; `library`, by which it was loaded, is closed.
///
/// # Safety
/// The descriptors must be open, or -1, and nobody else's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptop_attach_1(
    socket: c_int,
    directory: c_int,
    library: c_int,
    area: *mut c_void,
) -> c_int {
    let hand = Hand { socket, directory };
    if library >= 0 {
        // SAFETY: it is nobody else's, by the caller's promise.
        unsafe { libc::close(library) };
    }
    cuptop_area.store(area, Ordering::Relaxed);
    catch_unwind(move || begin(hand)).unwrap_or(NO_THREAD)
}

fn begin(hand: Hand) -> c_int {
    if fork::is_child() {
        return CHILD;
    }
    if HAS_HAND.swap(true, Ordering::AcqRel) {
        return BUSY;
    }
    // Nobody joins it: it ends with its work, and the library stays.
    if threads::start("cuptop-attach", move || hand.serve()).is_ok() {
        return 0;
    }
    HAS_HAND.store(false, Ordering::Release);
    NO_THREAD
}

/// Gives the calling thread the name by which others see that somebody is attached.
fn name_this_thread() {
    // By number: a C library before 2.30 has no function for it.
    // SAFETY: has no preconditions. Thread ids are ints.
    let number = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    if let Ok(name) = CString::new(hand::thread_name(number)) {
        // SAFETY: reads a text that ends with zero, and at most 16 bytes of it.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// The two descriptors that came with the call.
struct Hand {
    socket: c_int,
    directory: c_int,
}

/// How long the first message may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the program uses CUDA.
const LOOK: Duration = Duration::from_millis(100);

impl Hand {
    fn serve(self) {
        name_this_thread();
        let _ = catch_unwind(std::panic::AssertUnwindSafe(|| self.until_left()));
        drop(self);
        HAS_HAND.store(false, Ordering::Release);
    }

    fn until_left(&self) -> Option<()> {
        let begun = Instant::now();
        let variables = loop {
            match self.next(LOOK) {
                Ok(Some(text)) => break text,
                Ok(None) if begun.elapsed() < PATIENCE => {}
                _ => return None,
            }
        };
        let mut is_told = false;
        while !driver::is_in_use() {
            if !std::mem::replace(&mut is_told, true) {
                self.say(&Said::Waits);
            }
            if !matches!(self.next(LOOK), Ok(None)) {
                return None;
            }
        }
        let mut options = Options::from_environment(|name| {
            if name == options::DIRECTORY {
                return Some(format!("/proc/self/fd/{}", self.directory).into());
            }
            let mut pairs = variables.lines().filter_map(|line| line.split_once('='));
            pairs
                .find(|pair| pair.0 == name)
                .map(|pair| OsString::from(pair.1))
        })?;
        options.caller = Caller::Attached;
        options.api = ApiCalls::MixedLate;
        if options::is_worn(&TIMES) {
            let text = format!(
                "it was attached to {} times, and NVIDIA's libcupti crashes programs after some 200",
                options::TIMES_MAX
            );
            let help = "from outside it can still be looked at: cuptop attach --stacks-only";
            self.say(&Said::Refused(text, help.to_owned()));
            return Some(());
        }
        match Collector::start_with(options, Cupti::load) {
            Ok(collector) => self.collect(collector),
            Err(error) => {
                self.say(&Said::Refused(error.to_string(), error.help().to_owned()));
                Some(())
            }
        }
    }

    /// Lets the collector work until nobody wants it any more.
    fn collect(&self, collector: Collector) -> Option<()> {
        let with = collector.cupti.describe();
        *COLLECTOR.lock().ok()? = Some(collector);
        // SAFETY: the handler lives as long as the library, which is never unloaded (linked with `nodelete`).
        AT_EXIT.call_once(|| unsafe {
            libc::atexit(at_exit);
        });
        self.say(&Said::Records(with));
        while let Ok(None) = self.next(Duration::from_secs(1)) {}
        // A program that ends has taken it.
        let collector = COLLECTOR.lock().ok()?.take()?;
        collector.finish(Ending::Release);
        self.say(&Said::Left);
        Some(())
    }

    /// The next message; nothing when none comes for so long.
    fn next(&self, patience: Duration) -> io::Result<Option<String>> {
        let mut poll = libc::pollfd {
            fd: self.socket,
            events: libc::POLLIN,
            revents: 0,
        };
        let milliseconds = c_int::try_from(patience.as_millis()).unwrap_or(1000);
        // SAFETY: one structure, which lives until the call returns.
        if unsafe { libc::poll(&raw mut poll, 1, milliseconds) } == 0 {
            return Ok(None);
        }
        let mut text = vec![0; LONGEST];
        // SAFETY: writes at most so many bytes.
        let length = unsafe { libc::recv(self.socket, text.as_mut_ptr().cast(), text.len(), 0) };
        match usize::try_from(length) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(Some(String::from_utf8_lossy(&text[..length]).into_owned())),
        }
    }

    fn say(&self, said: &Said) {
        let text = said.encode();
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // Whoever is gone is noticed by the next look.
        // SAFETY: reads so many bytes.
        unsafe { libc::send(self.socket, text.as_ptr().cast(), text.len(), flags) };
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        for descriptor in [self.socket, self.directory] {
            // SAFETY: it is this library's own.
            unsafe { libc::close(descriptor) };
        }
    }
}
